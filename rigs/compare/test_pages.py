# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tables within pages."""

import pathlib
import tempfile
import unittest

import pages
from errors import BadInput


class Pages(unittest.TestCase):
    def test_tables_are_rewritten_in_place(self):
        page = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "page.md"
        text = f"before\n{pages.begin('a')}\nold\n{pages.END}\nbetween\n{pages.begin('b')}\nkept\n{pages.END}\n"
        page.write_text(text)
        self.assertTrue(pages.update(page, "a", "new\n"))
        self.assertEqual(page.read_text(), text.replace("old", "new"))
        self.assertFalse(pages.update(page, "c", "new\n"))
        page.write_text(f"{pages.begin('a')}\nno end")
        with self.assertRaisesRegex(BadInput, "there is no"):
            pages.update(page, "a", "new")
