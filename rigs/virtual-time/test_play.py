# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a result depends on."""

import ast
import unittest

import play
from places import HERE

# Modules that have no say in what comes of a run. What guest.py makes has its content in its name.
NO_SAY = {"cache", "command", "errors", "guest", "leftovers", "places"}


def imported(name, found):
    """Modules of this folder that one imports, and those that they do."""
    for node in ast.walk(ast.parse((HERE / f"{name}.py").read_text())):
        names = [node.module] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for other in names:
            if (HERE / f"{other}.py").exists() and other not in found:
                found.add(other)
                imported(other, found)
    return found


class Fingerprint(unittest.TestCase):
    def test_every_module_of_a_run_has_a_part_in_it_or_no_say(self):
        hashed = {name.removesuffix(".py") for name in play.SOURCES} - {"host.c"}
        self.assertEqual(hashed & NO_SAY, set())
        self.assertEqual(imported("play", {"play"}), hashed | NO_SAY)
