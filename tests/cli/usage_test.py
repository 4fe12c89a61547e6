#!/usr/bin/env python3
"""Runs the built tool as somebody who does not know it yet: usage errors, bad input, help, versions."""

import json
import os
import re
import shlex
import subprocess
import sys
import unittest

from tool import BAD_INPUT, CONV, TOOL, USAGE, ToolTest


class Errors(ToolTest):
    def test_a_command_that_launches_nothing_says_what_it_launches(self):
        self.assertIn("launch -n 4 -- train", self.refused("launch", code=2))

    def test_usage_errors_exit_with_2(self):
        for arguments in [[], ["chek"], ["check"], ["explain", "conv"], ["info", "extra"],
                          ["--foo"], ["explain", "conv", CONV, "--foo"], ["explain", "conv", CONV, "--time"],
                          ["check", "conv", "--cases"],
                          ["check", "conv", "--cases", "0"], ["check", "conv", "--cases", "-3"],
                          ["check", "conv", "--cases", "two"], ["check", "conv", "--seed", "-1"],
                          ["check", "conv", "--seed", "99999999999999999999"],
                          ["check", "conv", CONV, "--cases", "3"], ["check", "all", CONV],
                          ["check", "conv", "--minutes", "1"], ["check", "conv", "--hash"],
                          ["check", "kernels", "--minutes", "0"], ["check", "kernels", "--hash"],
                          ["check", "kernels", "conv " + CONV, "--minutes", "1"],
                          ["check", "bits", "conv " + CONV, "--hash"],
                          ["explain", "conv", CONV, "--axis", "2"],
                          ["explain", "conv", CONV, "--axis", "depth"],
                          ["explain", "max_unpool", "x=1x1x4x4 kernel=2", "--axis", "0"],
                          ["explain", "model"], ["explain", "model", "lenet", "--batch", "0"],
                          ["explain", "model", "lenet", "--batch", "many"],
                          ["explain", "model", "lenet", "--threads", "0"],
                          ["explain", "model", "lenet", "--memory-limit", "0"],
                          ["explain", "model", "lenet", "--memory-limit", "-1"],
                          ["explain", "model", "lenet", "--memory-limit", "1XiB"],
                          ["explain", "model", "lenet", "--form", "train"],
                          ["explain", "model", "lenet", "--dtype", "f16"],
                          ["explain", "model", "lenet", "--format", "pdf"]]:
            with self.subTest(arguments):
                self.assertIn("--help", self.refused(*arguments, code=USAGE))

    def test_an_unknown_command_suggests_the_nearest(self):
        self.assertIn("did you mean check?", self.refused("chek", code=USAGE))

    def test_bad_input_exits_with_3_and_the_code_of_the_error(self):
        for arguments, code in [
            (["explain", "nothing", "x=1"], "unknown-operator"),
            (["explain", "model", "alexnet"], "unknown-model"),
            (["explain", "model", "lenet", "--batch", str(2**60)], "overflow"),
            (["explain", "model", "lenet", "--memory-limit", "1000"], "memory-limit"),
            (["explain", "model", "lenet", "--output", "/no/such/folder/plan.txt"], "bad-file"),
            (["check", "nothing"], "unknown-operator"),
            (["check", "kernels", "nothing x=1"], "unknown-operator"),
            (["check", "kernels", "conv x=1x1x4 w=1x1x5"], "kernel-exceeds-input"),
            (["explain", "conv", ""], "bad-problem"),
            (["explain", "conv", "x=1x1x4"], "bad-problem"),
            (["explain", "conv", "x=1x1x4 w=1x1x2 colour=red"], "bad-problem"),
            (["check", "conv", "x=1x1x4 w=1x1x5"], "kernel-exceeds-input"),
            (["explain", "conv", "x=1x1x4 w=1x1x2 stride=0"], "invalid-stride"),
            (["explain", "conv", "x=1x2x4 w=1x1x2"], "channel-mismatch"),
            (["explain", "conv_transpose", "x=1x1x4 w=1x1x2 output_padding=1"],
             "invalid-output-padding"),
            (["explain", "max_pool",
              "x=1x1x4 kernel=9223372036854775807 padding=9223372036854775807"], "overflow"),
        ]:
            with self.subTest(arguments):
                self.assertIn(f"[{code}]", self.refused(*arguments, code=BAD_INPUT))

    def test_the_error_of_a_geometry_is_also_json(self):
        error = self.read_json("explain", "conv", "x=8x3x2x64 w=4x3x3x3 stride=2",
                               code=BAD_INPUT)["error"]
        self.assertEqual(list(error), ["code", "operator", "argument", "axis", "message"])
        self.assertEqual((error["code"], error["operator"], error["argument"], error["axis"]),
                         ("kernel-exceeds-input", "conv", "kernel", 0))
        self.assertIn("fix:", error["message"])
        error = self.read_json("check", "conv", "x=", code=BAD_INPUT)["error"]
        self.assertEqual((error["code"], error["operator"], error["argument"], error["axis"]),
                         ("bad-problem", "conv", None, None))

    def test_bytes_that_are_no_text_still_give_json(self):
        done = subprocess.run([TOOL.encode(), b"explain", b"conv", b"x=\xff\xfe", b"--json"],
                              capture_output=True)
        self.assertEqual(done.returncode, BAD_INPUT)
        self.assertEqual(json.loads(done.stdout)["error"]["code"], "bad-problem")

    def test_an_unknown_operator_suggests_the_nearest(self):
        for typed, meant in [("maxpool", "max_pool"), ("max_pool2d", "max_pool"),
                             ("convolution", "conv"), ("avgpool", "avg_pool"),
                             ("conv_transposed", "conv_transpose")]:
            err = self.refused("explain", typed, "x=1", code=BAD_INPUT)
            self.assertIn(f"did you mean {meant}?", err)
        self.assertIn("did you mean lenet?",
                      self.refused("explain", "model", "lenett", code=BAD_INPUT))
        self.assertNotIn("did you mean", self.refused("explain", "zzzzzz", code=BAD_INPUT))

    def test_a_full_disk_is_an_error(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        with open("/dev/full", "w") as full:
            done = subprocess.run([TOOL, "info"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, BAD_INPUT)
        self.assertIn("standard output", done.stderr)


class Help(ToolTest):
    COMMANDS = [[], ["explain"], ["explain", "model"], ["check"], ["info"], ["version"], ["help"],
                ["completion"], ["man"]]

    def test_the_tool_and_every_command_have_help_with_examples(self):
        for command in self.COMMANDS:
            for flag in ["--help", "-h"]:
                out, err = self.run_tool(*command, flag)
                self.assertEqual(err, "")
                self.assertIn("Usage: fenestra", out)
                self.assertIn("Examples:", out)

    def test_every_example_of_the_help_runs(self):
        for command in self.COMMANDS:
            out, _ = self.run_tool(*command, "--help")
            for example in re.findall(r"(?m)^  fenestra (.*)$", out):
                if example.startswith("train ") or "runs/" in example or ".onnx" in example:
                    continue  # network_test.py and onnx_test.py train, and have the files
                # A soak of minutes is one of seconds here, and hundreds of cases are a few.
                brief = re.sub(r"--minutes \S+", "--minutes 0.02", example)
                self.run_tool(*shlex.split(re.sub(r"--cases \S+", "--cases 5", brief)))

    def test_info_and_version_tell_the_build(self):
        out, _ = self.run_tool("info")
        self.assertEqual(self.run_tool("--version")[0], out)
        facts = self.read_json("info")
        self.assertEqual(self.read_json("--version"), facts)
        self.assertTrue(out.startswith(f"fenestra {facts['version']}\n"))
        self.assertIn(facts["compiler"], out)
        self.assertEqual("GmpRational" in facts["scalars"], facts["gmp"])
        self.assertEqual(facts["operators"], [entry["name"] for entry in self.operators()])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
