# SPDX-License-Identifier: MIT OR Apache-2.0
"""What can be wrong with a run."""


class BadInput(Exception):
    """What the user gave is wrong."""


class Failed(Exception):
    """The run failed."""


class Missing(Exception):
    """This machine lacks something."""
