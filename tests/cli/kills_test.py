#!/usr/bin/env python3
"""Kills processes of trainings at random moments, also while they write checkpoints, until the trainings
end: with the weights of one that nobody disturbed.

Called with the tool and mpirun. FENESTRA_KILLS says how many kills, 4 by default; FENESTRA_SEED which.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from ranks_runs import ENVIRONMENT, is_tool, numbers_of, processes_of

TOOL, MPIRUN = os.path.abspath(sys.argv[1]), sys.argv[2]
KILLS = int(os.environ.get("FENESTRA_KILLS", "4"))
SEED = int(os.environ.get("FENESTRA_SEED", "1"))
KILLS_PER_RUN = 10
TIMEOUT = 600

TRAINING = ["lenet", "--data", "digits", "--width", "0.25", "--batch", "60", "--leaf", "8", "--threads", "1",
            "--epochs", "8"]


class KillsTest(unittest.TestCase):
    def test_killed_trainings_end_with_the_weights_of_one_that_was_not(self):
        draw = random.Random(SEED)
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([TOOL, "train", *TRAINING, "--output", "whole"], cwd=folder, check=True,
                           capture_output=True, timeout=TIMEOUT)
            expected = numbers_of(os.path.join(folder, "whole", "checkpoint.safetensors"))
            done = during_writes = runs = 0
            while done < KILLS:
                kills, writes = self.run_killed(draw, folder, f"run{runs}", min(KILLS_PER_RUN, KILLS - done))
                found = numbers_of(os.path.join(folder, f"run{runs}", "checkpoint.safetensors"))
                self.assertEqual(found[0], expected[0], f"weights and optimiser of run {runs}, seed {SEED}")
                self.assertEqual(found[1], expected[1], f"log of run {runs}, seed {SEED}")
                done, during_writes, runs = done + kills, during_writes + writes, runs + 1
                print(f"{done} kills, {during_writes} during writes, {runs} runs, all alike", flush=True)
        self.assertGreaterEqual(done, KILLS)

    def run_killed(self, draw, folder, output, kills):
        """A training that loses up to so many processes; how many it lost, and how many during writes."""
        run = os.path.join(folder, output)
        ranks = draw.choice([2, 3, 4])
        launcher = subprocess.Popen(
            [TOOL, "launch", "-n", str(ranks), "--restarts", str(kills), *draw.choice([[], ["--fewer"]]),
             "--mpirun", MPIRUN, "--", "train", *TRAINING, "--output", output],
            cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        deadline = time.monotonic() + TIMEOUT
        killed = writes = 0
        while killed < kills and launcher.poll() is None:
            self.assertLess(time.monotonic(), deadline)
            started = self.ranks_of(launcher, deadline)
            if not started:
                break
            is_write = False
            if draw.random() < 0.5:
                # While a file is being written: it has another name then.
                while not is_write and launcher.poll() is None and time.monotonic() < deadline:
                    is_write = any(name.startswith(".fenestra-") for name in self.names_in(run))
                    time.sleep(0 if is_write else 0.0005)
            else:
                time.sleep(draw.uniform(0, 3))
            victims = [pid for pid in started if is_tool(pid, TOOL)]
            if victims:
                # The first one writes.
                os.kill(min(victims) if is_write else draw.choice(victims), signal.SIGKILL)
                killed += 1
                writes += is_write
                while any(is_tool(pid, TOOL) for pid in started) and time.monotonic() < deadline:
                    time.sleep(0.02)
        out, _ = launcher.communicate(timeout=TIMEOUT)
        self.assertEqual(launcher.returncode, 0, out)
        if "waits for processes that have ended" in out:
            print("an mpirun that hung was killed, too", flush=True)
        self.assertEqual([name for name in self.names_in(run) if "new" in name or name.startswith(".")], [])
        return killed, writes

    def ranks_of(self, launcher, deadline):
        """The processes of the job, when they have been started."""
        while launcher.poll() is None and time.monotonic() < deadline:
            found = [pid for pid in processes_of(launcher.pid) if is_tool(pid, TOOL)]
            if found:
                return found
            time.sleep(0.01)
        return []

    @staticmethod
    def names_in(folder):
        try:
            return os.listdir(folder)
        except OSError:
            return []


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
