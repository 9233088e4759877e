# SPDX-License-Identifier: MIT OR Apache-2.0
"""What stays in the cache."""

import os
import pathlib
import tempfile
import time
import unittest

from cache import KEPT, KEPT_FOR, used


class Cache(unittest.TestCase):
    def test_what_was_not_used_for_long_goes(self):
        cache = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        names = [f"kernel-plain-{number}" for number in range(KEPT + 2)] + ["kernel-kasan-0", "guest-0"]
        for name in names:
            (cache / name).mkdir()
            # The first is the oldest.
            old = time.time() - 2 * KEPT_FOR + names.index(name)
            os.utime(cache / name, (old, old))
        elsewhere = cache / "elsewhere"
        elsewhere.mkdir()
        (cache / names[1]).rmdir()
        (cache / names[1]).symlink_to(elsewhere)
        os.utime(elsewhere, (1, 1))
        used(cache / names[0])
        left = {path.name for path in cache.iterdir()}
        self.assertEqual(left, {*names, "elsewhere"} - {names[1], names[2]})

    def test_what_was_used_lately_stays(self):
        cache = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        for number in range(KEPT + 3):
            (cache / f"guest-{number}").mkdir()
        used(cache / "guest-0")
        self.assertEqual(len(list(cache.iterdir())), KEPT + 3)
