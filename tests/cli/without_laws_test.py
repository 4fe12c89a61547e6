#!/usr/bin/env python3
"""Runs the tool beside one that was linked without the laws: only `check` may tell them apart.

Called with the tool and with the other one (without_laws.cpp).
"""

import pathlib
import sys
import unittest

from tool import TOOL, USAGE, ToolTest

WITHOUT = sys.argv[2]


class WithoutLaws(ToolTest):
    def said(self, tool, *arguments):
        """With the names of both tools out of what they print."""
        return [text.replace(tool, "fenestra") for text in self.run_tool(*arguments, tool=tool)]

    def test_no_law_is_linked_into_it(self):
        harness = b"N8fenestra5check"  # as compilers write fenestra::check
        self.assertIn(harness, pathlib.Path(TOOL).read_bytes())
        self.assertNotIn(harness, pathlib.Path(WITHOUT).read_bytes())
        self.assertIn('no command "check"', self.run_tool("check", "all", tool=WITHOUT, code=USAGE)[1])

    def test_it_explains_every_operator_in_the_same_words(self):
        for operator in self.operators():
            name, example = operator["name"], operator["example"]
            for command in [(name, example), (name, example, "--kernels"), (name, example, "--json"),
                            (name, "--help")]:
                self.assertEqual(self.said(WITHOUT, "explain", *command),
                                 self.said(TOOL, "explain", *command))

    def test_it_lists_them_and_times_their_kernels(self):
        for command in [("explain",), ("explain", "--json"), ("info",)]:
            self.assertEqual(self.said(WITHOUT, *command), self.said(TOOL, *command))
        kernels = self.read_json("explain", "conv", "x=1x2x9x9 w=2x2x3x3", "--kernels", "--time",
                                 tool=WITHOUT)["kernels"]
        self.assertTrue(all(kernel["seconds"] > 0 for kernel in kernels if kernel["chosen"]))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
