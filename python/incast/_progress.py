"""How far runs are: a line in a terminal, an output cell's line in a notebook, nothing elsewhere."""

import sys
from collections.abc import Callable

Progress = Callable[[float, str], None]


def reporter(wanted: bool | Progress | None) -> tuple[Progress | None, Callable[[], None]]:
    """What is called with the part that is done, from 0 to 1, and a line; and what is called at the end."""
    if callable(wanted):
        return wanted, lambda: None
    if wanted is False:
        return None, lambda: None
    if (notebook := _notebook()) is not None:
        return notebook
    if wanted or sys.stderr.isatty():
        return _terminal, _clear
    return None, lambda: None


def pace(done: int, of: int, seconds: float) -> str:
    """How fast it goes and for how long it will, once something is done."""
    if not 0 < done < of or seconds < 1:
        return ""
    left = seconds / done * (of - done)
    unit, scale = next((it for it in (("h", 3600), ("min", 60)) if left >= 2 * it[1]), ("s", 1))
    return f", {60 * done / seconds:.3g} a minute, about {left / scale:.0f} {unit} left"


def _notebook() -> tuple[Progress, Callable[[], None]] | None:
    ipython = sys.modules.get("IPython")
    shell = ipython and ipython.get_ipython()
    if not (shell and hasattr(shell, "kernel")):
        return None
    from IPython.display import display  # pyright: ignore[reportMissingImports]

    handle = display({"text/plain": ""}, raw=True, display_id=True)
    assert handle is not None  # as an id was asked for

    def show(part: float, line: str) -> None:
        handle.update({"text/plain": f"{100 * part:3.0f}%  {line}"}, raw=True)

    return show, lambda: handle.update({"text/plain": ""}, raw=True)


def _terminal(part: float, line: str) -> None:
    filled = round(20 * part)
    sys.stderr.write(f"\r\x1b[K[{'#' * filled}{'.' * (20 - filled)}] {line}")
    sys.stderr.flush()


def _clear() -> None:
    sys.stderr.write("\r\x1b[K")
    sys.stderr.flush()
