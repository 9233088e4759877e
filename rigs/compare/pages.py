# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tables within pages of the documentation."""

import os

from errors import BadInput

END = "<!-- end of hosts -->"


def begin(name):
    return f"<!-- hosts {name} -->"


def update(page, name, body):
    """Rewrites the table of a scenario in a page."""
    text = page.read_text()
    start = text.find(begin(name))
    if start < 0:
        return False
    stop = text.find(END, start)
    if stop < 0:
        raise BadInput(f"{page}: after {begin(name)} there is no {END}")
    text = text[: start + len(begin(name))] + "\n" + body.rstrip() + "\n" + text[stop:]
    temporary = page.with_suffix(page.suffix + ".tmp")
    temporary.write_text(text)
    os.replace(temporary, page)
    return True
