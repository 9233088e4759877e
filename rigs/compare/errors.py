# SPDX-License-Identifier: MIT OR Apache-2.0
"""What can be wrong with a comparison."""


class BadInput(Exception):
    """What the user gave is wrong."""


class Missing(Exception):
    """The rig says that this machine lacks what it needs."""


class Contradiction(Exception):
    """Counters of one run do not agree."""
