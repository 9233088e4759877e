# SPDX-License-Identifier: MIT OR Apache-2.0
"""The command that is a rig."""

import hashlib
import json
import shlex
import subprocess

from errors import Missing

# Exit codes of a rig.
MISSING, UNFINISHED = 3, 4


class Rig:
    """A program that plays `rig.json` and `plan.csv` of a folder on real hosts and leaves what came of it there."""

    def __init__(self, command):
        self.command = shlex.split(command)
        self.fingerprint = self.ask()

    def ask(self):
        """What the rig's results depend on besides its input: kernel, module, the rig itself."""
        done = subprocess.run([*self.command, "--fingerprint"], capture_output=True, text=True)
        said = (done.stdout + done.stderr).strip()
        if done.returncode == MISSING:
            raise Missing(said)
        words = done.stdout.split()
        if done.returncode != 0 or len(words) != 1:
            raise RuntimeError(f"{' '.join(self.command)} --fingerprint ended with {done.returncode}: expected one hash, "
                               f"found {said!r}")
        return words[0]

    def play(self, folder, settings, files):
        """Plays unless the folder holds the results of exactly this."""
        texts = {"rig.json": json.dumps(settings, indent=1, sort_keys=True) + "\n", **files}
        stamp = hashlib.sha256(json.dumps([texts, self.command, self.fingerprint]).encode()).hexdigest()
        done = folder / "done"
        if done.exists() and done.read_text() == stamp:
            return
        folder.mkdir(parents=True, exist_ok=True)
        for old in [path for path in folder.iterdir() if path.is_file()]:
            old.unlink()
        for name, text in texts.items():
            (folder / name).write_text(text)
        with open(folder / "rig.log", "w") as log:
            code = subprocess.call([*self.command, str(folder / "rig.json"), str(folder)], stdout=log, stderr=log)
        if code == MISSING:
            raise Missing((folder / "rig.log").read_text().strip())
        # Flows that did not finish are a result: `ok` says so of each.
        if code not in (0, UNFINISHED):
            last = (folder / "rig.log").read_text().strip().splitlines()[-1:]
            raise RuntimeError(f"{folder}: the rig ended with {code}: {' '.join(last)}")
        done.write_text(stamp)
