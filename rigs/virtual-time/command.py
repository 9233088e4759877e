# SPDX-License-Identifier: MIT OR Apache-2.0
"""Commands whose output is wanted."""

import subprocess

from errors import Failed, Missing


def output(command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, **more)
    if done.returncode == 3:
        raise Missing(f"{command[0]} could not be made here")
    if done.returncode != 0:
        raise Failed(f"{' '.join(map(str, command))} ended with {done.returncode}")
    return done.stdout
