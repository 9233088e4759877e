# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a sweep of the cache deletes, and what it leaves alone."""

import contextlib
import fcntl
import io
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

from leftovers import MAKING, RUN, own, sweep
from places import HERE

# A run that goes on until it is killed.
LIVING = """
import pathlib, sys, time
import leftovers
with leftovers.own(pathlib.Path(sys.argv[1]), leftovers.RUN) as folder:
    (folder / "in").mkdir()
    print(folder.name, flush=True)
    time.sleep(600)
"""


class Leftovers(unittest.TestCase):
    def setUp(self):
        self.cache = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def left(self):
        return {path.name for path in self.cache.iterdir()}

    def make(self, *names):
        for name in names:
            (self.cache / name).mkdir(parents=True)

    def test_a_run_that_was_killed_goes_and_one_that_lives_stays(self):
        def start():
            process = subprocess.Popen([sys.executable, "-B", "-c", LIVING, self.cache], cwd=HERE, text=True,
                                       stdout=subprocess.PIPE)
            self.addCleanup(process.stdout.close)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            return process, process.stdout.readline().strip()

        (one, one_folder), (_, other_folder) = start(), start()
        sweep(self.cache)
        self.assertEqual(self.left(), {one_folder, other_folder})
        one.kill()
        one.wait()
        sweep(self.cache)
        self.assertEqual(self.left(), {other_folder})

    def test_only_what_is_of_one_process_goes(self):
        self.make("run-a", "making-a", "kept-a", "guest-a", "tests", "cargo", "record")
        with own(self.cache, RUN) as run, own(self.cache, MAKING) as making:
            sweep(self.cache)
            self.assertEqual(self.left(), {run.name, making.name, "kept-a", "guest-a", "tests", "cargo", "record"})
        self.assertEqual(self.left(), {"kept-a", "guest-a", "tests", "cargo", "record"})

    def test_what_is_to_be_kept_survives_sweeps(self):
        with contextlib.redirect_stderr(io.StringIO()) as said, own(self.cache, RUN, keep=True) as folder:
            pass
        self.assertEqual(said.getvalue(), f"kept {folder}\n")
        sweep(self.cache)
        self.assertEqual(self.left(), {folder.name})

    def test_a_folder_that_a_sweep_took_before_it_was_locked_is_made_again(self):
        made, mkdtemp = [], tempfile.mkdtemp

        def taken_at_first(**where):
            folder = mkdtemp(**where)
            made.append(folder)
            if len(made) == 1:
                sweep(self.cache)
            return folder

        with unittest.mock.patch("tempfile.mkdtemp", taken_at_first), own(self.cache, RUN) as folder:
            self.assertEqual([str(folder)], made[1:])
            self.assertTrue(folder.is_dir())
        # And between the opening and the lock, which the sweep holds until it is done.
        made.clear()
        flock = fcntl.flock

        def taken_on_the_way(lock, how):
            if len(made) == 1 and how == fcntl.LOCK_EX:
                shutil.rmtree(made[0])
            flock(lock, how)

        def note(**where):
            made.append(mkdtemp(**where))
            return made[-1]

        with unittest.mock.patch("tempfile.mkdtemp", note), unittest.mock.patch("fcntl.flock", taken_on_the_way), \
                own(self.cache, RUN) as folder:
            self.assertEqual([str(folder)], made[1:])
            self.assertTrue(folder.is_dir())

    def test_sources_stay_as_long_as_their_kernels(self):
        self.make("source-1", "source-2", "source-3", "kernel-plain-1", "kernel-kasan-2")
        (self.cache / "kernel-plain-1/source").symlink_to(self.cache / "source-1")
        (self.cache / "kernel-plain-1/complete").touch()
        # This one's build was killed.
        (self.cache / "kernel-kasan-2/source").symlink_to(self.cache / "source-2")
        everything = self.left() | {"lock"}
        with open(self.cache / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            sweep(self.cache)
            self.assertEqual(self.left(), everything, "something is being built")
        sweep(self.cache)
        self.assertEqual(self.left(), {"lock", "source-1", "kernel-plain-1"})
