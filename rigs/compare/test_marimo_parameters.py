# SPDX-License-Identifier: MIT OR Apache-2.0
"""The module's parameters from those of a scenario."""

import pathlib
import tempfile
import unittest

import marimo_parameters
from errors import BadInput
from testing import row, run_of, scheme


class MarimoParameters(unittest.TestCase):
    def test_marimos_parameters_are_the_modules(self):
        def told(**changes):
            run = run_of(scheme=[scheme("marimo", **changes)])
            return marimo_parameters.marimo(run, [row(0, law="marimo")], folder)

        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        words, table = told()
        self.assertEqual(words, {
            "rule": "paper", "decrease_from": "memory", "slow_start": "epoch", "settle": 0, "increase": 1, "max_increase": 1,
            "increase_below": 900, "decrease_above": 1000, "target": 950, "max_decrease": 500, "loss_load": 1200,
            "loss_decrease": 500, "beta_shift": 1, "forget": 1, "min_epoch": 2, "initial_window": 10,
        })
        self.assertIsNone(table)
        for changes, name, value in [
            ({"target": 0.875}, "target", 875), ({"beta": 0.0625}, "beta_shift", 4), ({"forget": False}, "forget", 0),
            ({"rule": "settling"}, "rule", "settling"), ({"settle": 3}, "settle", 3),
        ]:
            self.assertEqual(told(**changes)[0][name], value)
        for changes, says in [({"target": 0.9505}, "target: found 0.9505; the module has whole thousandths"),
                              ({"max_increase": 2.7}, "max_increase: found 2.7; the module has whole packets"),
                              ({"table": "linear"}, "table: a rig takes \"calibrated\" or a file")]:
            with self.assertRaisesRegex(BadInput, says):
                told(**changes)
        (folder / "f.table").write_text("marimo-f 1\n")
        self.assertEqual(told(table="f.table")[1], "marimo-f 1\n")
        # One module: classes share its parameters.
        rows = [row(0, name="first", law="marimo"), row(1, name="second", law="marimo")]
        run = run_of(scheme=[scheme("marimo", by_class={"second": scheme("marimo", target=0.9)})])
        with self.assertRaisesRegex(BadInput, "different parameters"):
            marimo_parameters.marimo(run, rows, folder)
        self.assertEqual(marimo_parameters.marimo(run_of(), [row(0)], folder), ({}, None))
