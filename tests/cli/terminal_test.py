#!/usr/bin/env python3
"""What people see: terminals of several widths, and pipes. Called with show_terminal and the tool."""

import re
import subprocess
import sys
import unittest

from terminal import environment, run_in_terminal, screen_lines, width

SHOW, TOOL = sys.argv[1:3]


class Terminal(unittest.TestCase):
    def in_terminal(self, what, columns, **variables):
        code, seen = run_in_terminal([SHOW, what], columns, **variables)
        self.assertEqual(code, 0, seen)
        return seen

    def in_pipe(self, what, **variables):
        done = subprocess.run([SHOW, what], capture_output=True, text=True, timeout=60,
                              env=environment(**variables))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, done.stderr

    def test_a_terminal_says_what_it_is(self):
        for variables, expected in [
            ({}, "live=1 width=40 known=1 colour=1 unicode=1"),
            ({"COLUMNS": "57"}, "live=1 width=57 known=1 colour=1 unicode=1"),
            ({"COLUMNS": "none"}, "live=1 width=40 known=1 colour=1 unicode=1"),
            ({"NO_COLOR": "1"}, "live=1 width=40 known=1 colour=0 unicode=1"),
            ({"TERM": "dumb"}, "live=0 width=40 known=1 colour=0 unicode=1"),
            ({"LC_ALL": "C"}, "live=1 width=40 known=1 colour=1 unicode=0"),
            ({"LC_ALL": None, "LANG": "de_DE.utf8"}, "live=1 width=40 known=1 colour=1 unicode=1"),
            ({"LC_ALL": None}, "live=1 width=40 known=1 colour=1 unicode=0"),
        ]:
            lines = screen_lines(self.in_terminal("facts", 40, **variables))
            self.assertEqual(lines, [expected, expected, ""], variables)
        lines = screen_lines(self.in_terminal("facts", 0))
        self.assertIn("width=80 known=0", lines[0])

    def test_a_pipe_says_what_it_is(self):
        expected = "live=0 width=80 known=0 colour=0 unicode=1\n"
        self.assertEqual(self.in_pipe("facts"), (expected, expected))
        self.assertIn("width=33 known=1", self.in_pipe("facts", COLUMNS="33")[0])

    def test_progress_is_drawn_ten_times_a_second_and_never_wraps(self):
        for columns in [40, 120]:
            for locale in ["C.UTF-8", "C"]:
                with self.subTest(columns=columns, locale=locale):
                    seen = self.in_terminal("progress", columns, LC_ALL=locale)
                    draws = re.findall(r"\r\x1b\[K(epoch[^\r\n]*)", seen)
                    # Half a second and more: once at the beginning, once after `clear`, once at the
                    # end, and ten times a second.
                    self.assertGreaterEqual(len(draws), 4)
                    asked = int(re.search(r"asked (\d+)", seen).group(1))
                    self.assertEqual(asked, len(draws) - 1)
                    self.assertLess(asked, 250)
                    for draw in draws:
                        self.assertLess(width(draw), columns)
                        self.assertIn("epoch 3/10", draw)
                    self.assertEqual("█" in seen, columns == 120 and locale == "C.UTF-8")
                    self.assertEqual(locale == "C", all(ord(c) < 128 for c in seen))
                    lines = screen_lines(seen)
                    self.assertEqual(lines[0], "halfway")
                    self.assertEqual(lines[1], draws[-1])
                    self.assertEqual(lines[2:], [f"asked {asked}", ""])

    def test_progress_is_not_for_pipes_nor_for_dumb_terminals(self):
        self.assertEqual(self.in_pipe("progress"), ("halfway\nasked 0\n", ""))
        self.assertEqual(screen_lines(self.in_terminal("progress", 80, TERM="dumb")),
                         ["halfway", "asked 0", ""])

    def test_tables_fit(self):
        for columns in [40, 120]:
            lines = screen_lines(self.in_terminal("table", columns))
            self.assertTrue(all(width(line) <= columns for line in lines), lines)
            self.assertTrue(any("1,281,000" in line for line in lines), lines)
            self.assertEqual(any("…" in line for line in lines), columns == 40, lines)
        out, _ = self.in_pipe("table")
        self.assertIn("backbone.stage2.block0.conv.depthwise", out)
        self.assertNotIn("\x1b", out)
        out, _ = self.in_pipe("table", COLUMNS="40")
        self.assertTrue(all(width(line) <= 40 for line in out.splitlines()), out)

    def test_pictures_fit_and_keep_to_the_characters_there_are(self):
        for columns in [40, 120]:
            seen = self.in_terminal("pictures", columns)
            self.assertTrue(all(width(line) <= columns for line in screen_lines(seen)))
            self.assertIn("▀", seen)
            self.assertIn("\x1b[31m4 as 0\x1b[0m", seen)
            plain = self.in_terminal("pictures", columns, LC_ALL="C", NO_COLOR="1")
            self.assertTrue(all(ord(c) < 128 for c in plain))
            self.assertNotIn("\x1b", plain)
            for text in [plain, self.in_pipe("pictures", COLUMNS=str(columns))[0]]:
                self.assertTrue(all(width(line) <= columns for line in screen_lines(text)))
                self.assertIn("4 as 0", text)

    def test_the_tool_shows_how_far_it_is(self):
        for columns in [40, 120]:
            code, seen = run_in_terminal([TOOL, "check", "conv", "--cases", "5"], columns)
            self.assertEqual(code, 0, seen)
            draws = re.findall(r"\r\x1b\[K(checking[^\r\n]*)", seen)
            self.assertTrue(draws and all(width(draw) < columns for draw in draws), draws)
            self.assertNotIn("checking", "\n".join(screen_lines(seen)))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
