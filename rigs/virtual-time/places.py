# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where things are."""

import os
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CACHE = pathlib.Path(os.environ.get("RIG_CACHE", ROOT / "target/rigs/virtual-time"))
