"""The ``incast`` command of the wheel."""

import signal
import sys

from . import _incast


def main() -> None:
    """Does what the command line asks for, and exits."""
    # The command has handlers of its own, and a reader that has seen enough is not an error for it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_incast.main())
