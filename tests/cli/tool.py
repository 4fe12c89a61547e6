"""The tool under test, as the first argument of the test names it, and what its exit codes mean."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import unittest

TOOL = os.path.abspath(sys.argv[1])

FINE, LAW_BROKEN, USAGE, BAD_INPUT = range(4)
INTERRUPTED = 130
CONV = "x=8x3x32x32 w=16x3x3x3 stride=2 padding=1"


def wait_until_it_listens(process):
    """Returns as soon as the process catches an interrupt; fails if it ends before."""
    caught = 0
    while not caught >> (signal.SIGINT - 1) & 1:
        if process.poll() is not None:
            raise AssertionError(f"ended with {process.returncode} before it caught an interrupt")
        time.sleep(0.002)
        with open(f"/proc/{process.pid}/status") as status:
            caught = int(re.search(r"(?m)^SigCgt:\s+(\w+)$", status.read())[1], 16)


class ToolTest(unittest.TestCase):
    folder = None  # where the tool runs, if not here

    def run_tool(self, *arguments, code=FINE, tool=TOOL, **environment):
        """Runs the tool and checks its exit code; returns what it printed."""
        done = subprocess.run([tool, *arguments], capture_output=True, text=True, timeout=120,
                              cwd=self.folder, env={**os.environ, **environment})
        self.assertEqual(done.returncode, code, f"{arguments}\n{done.stdout}{done.stderr}")
        return done.stdout, done.stderr

    def read_json(self, *arguments, code=FINE, tool=TOOL):
        return json.loads(self.run_tool(*arguments, "--json", code=code, tool=tool)[0])

    def refused(self, *arguments, code=BAD_INPUT):
        """What standard error says of a command that must print nothing else."""
        out, err = self.run_tool(*arguments, code=code)
        self.assertEqual(out, "")
        self.assertTrue(err.startswith("fenestra: "), err)
        return err

    def operators(self):
        return self.read_json("explain")["operators"]
