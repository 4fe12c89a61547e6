#!/usr/bin/env python3
"""Trains with the built tool under mpirun: any number of processes must give the bits of one.

Called with the tool, mpirun, and a plugin whose MPI fails.
"""

import json
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

TOOL, MPIRUN, FAILING_MPI = os.path.abspath(sys.argv[1]), sys.argv[2], os.path.abspath(sys.argv[3])
FINE, USAGE, BAD_INPUT, LOST, INTERRUPTED = 0, 2, 3, 4, 130
NOT_AGAIN = 100
TIMEOUT = 300

LENET = ["lenet", "--data", "digits", "--width", "0.25", "--batch", "60", "--leaf", "8", "--threads", "1"]
# With batch norm; the last batch of 2, the last leaf of 1.
UNET = ["unet", "--data", "shapes", "--count", "14", "--width", "0.25", "--size", "16x16", "--batch", "12",
        "--leaf", "3"]
# With batch norm. On 8 processes sums go by halves, but in the last batch, of 82: it has 11 leaves.
RESNET = ["resnet18", "--data", "digits", "--width", "0.125", "--size", "16x16", "--batch", "128", "--leaf", "8",
          "--threads", "1"]

class RanksTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, *parts):
        return os.path.join(self.folder.name, *parts)

    def run_words(self, words, code=FINE, **environment):
        done = subprocess.run(words, cwd=self.folder.name, env={**ENVIRONMENT, **environment},
                              capture_output=True, text=True, timeout=TIMEOUT, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def train(self, ranks, words, output, *more, **keywords):
        """Under mpirun; 0 ranks: without."""
        launcher = [MPIRUN, "-n", str(ranks)] if ranks else []
        return self.run_words([*launcher, TOOL, "train", *words, "--output", output, *more], **keywords)

    def checkpoint(self, output):
        return numbers_of(self.path(output, "checkpoint.safetensors"))

    def test_any_number_of_processes_has_the_bits_of_one(self):
        for words, numbers in [([*LENET, "--epochs", "1"], [1, 2, 3, 4]), ([*UNET, "--epochs", "2"], [1, 2, 3, 4]),
                               ([*RESNET, "--epochs", "1"], [2, 8])]:
            self.train(0, words, f"{words[0]}0")
            expected = self.checkpoint(f"{words[0]}0")
            for ranks in numbers:
                output = f"{words[0]}{ranks}"
                out = self.train(ranks, words, output).stdout
                self.assertIn(f"on {ranks} processes", out)
                self.assertEqual(out.count("Try next"), 1)  # one of them speaks
                self.assertEqual(self.checkpoint(output), expected, output)

    def test_threads_and_wires_do_not_matter(self):
        words = [*UNET, "--epochs", "2"]
        self.train(0, words, "alone", "--threads", "2")
        self.train(2, words, "tcp", "--threads", "2", OMPI_MCA_btl="tcp,self")
        self.train(2, words, "memory", "--threads", "1", OMPI_MCA_btl="vader,self")
        self.assertEqual(self.checkpoint("tcp"), self.checkpoint("alone"))
        self.assertEqual(self.checkpoint("memory"), self.checkpoint("alone"))

    def test_a_run_goes_on_with_another_number_of_processes(self):
        self.train(3, UNET, "parts", "--epochs", "1", "--schedule", "constant")
        self.train(2, ["unet", "--data", "shapes", "--epochs", "2"], "parts", "--resume-or-start")
        self.train(0, UNET, "whole", "--epochs", "2", "--schedule", "constant")
        parts, whole = self.checkpoint("parts"), self.checkpoint("whole")
        self.assertEqual(parts[0], whole[0])

    def test_tiles_are_leaves(self):
        words = [*UNET[:-2], "--epochs", "1", "--tile", "8x16"]
        self.train(0, words, "alone")
        for ranks in [2, 3]:
            self.assertIn("in tiles of 8x16", self.train(ranks, words, f"tiles{ranks}").stdout)
            self.assertEqual(self.checkpoint(f"tiles{ranks}"), self.checkpoint("alone"))

    def test_processes_share_a_picture(self):
        with open(self.path("picture.pgm"), "wb") as file:
            file.write(b"P5\n40 72\n255\n" + bytes(i * i % 251 for i in range(40 * 72)))
        infer = [TOOL, "infer", "unet", "picture.pgm", "-o"]
        self.run_words([*infer, "alone.npy"])
        with open(self.path("alone.npy"), "rb") as file:
            expected = file.read()
        for ranks in [2, 3]:
            for halos in ["exchange", "recompute"]:
                done = self.run_words([MPIRUN, "-n", str(ranks), *infer, "shared.npy", "--halos", halos,
                                       "--force", "--json"])
                report = json.loads(done.stdout)
                self.assertEqual(report["ranks"], ranks)
                self.assertEqual(report["sent"] > 0, halos == "exchange")
                with open(self.path("shared.npy"), "rb") as file:
                    self.assertEqual(file.read(), expected, f"{ranks} {halos}")

    def test_processes_share_tiles(self):
        with open(self.path("picture.pgm"), "wb") as file:
            file.write(b"P5\n40 72\n255\n" + bytes(i * i % 251 for i in range(40 * 72)))
        infer = [TOOL, "infer", "unet", "picture.pgm", "--json", "-o"]
        self.run_words([*infer, "alone.npy"])
        with open(self.path("alone.npy"), "rb") as file:
            expected = file.read()
        # As many as there are, one more than that, and more processes than tiles.
        for ranks, options in [(2, ["--tile", "24x24"]), (3, ["--tile", "24x24"]), (3, ["--tile", "40x40"]),
                               (2, ["--memory", "7200K"])]:
            done = self.run_words([MPIRUN, "-n", str(ranks), *infer, "shared.npy", "--force", *options])
            report = json.loads(done.stdout)
            self.assertEqual(report["ranks"], ranks)
            if options[0] == "--tile":
                self.assertEqual(report["tiles"], 6 if "24x24" in options else 2)
            else:
                self.assertGreater(report["tiles"], 1)
                self.assertLess(report["bytes"], 7200000 // 2)
            with open(self.path("shared.npy"), "rb") as file:
                self.assertEqual(file.read(), expected, f"{ranks} {options}")
        done = self.run_words([MPIRUN, "-n", "2", *infer, "none.npy", "--tile", "8x8", "--halos", "exchange"],
                              code=USAGE)
        self.assertIn("--halos exchange: slabs take what memory they need", done.stderr)

    def test_refuses_what_would_not_be_one_training(self):
        done = self.train(2, ["lenet", "--data", "digits"], "none", code=BAD_INPUT)
        self.assertIn("--leaf 8", done.stderr)
        done = self.train(2, LENET, "none", code=BAD_INPUT, FENESTRA_MPI="/nowhere/plugin.so")
        self.assertIn("not there: /nowhere/plugin.so", done.stderr)
        self.assertFalse(os.path.exists(self.path("none")))
        # Ranks that were told different things say so, all of them, and nobody waits for ever.
        train = [TOOL, "train", *UNET, "--output", "mixed"]
        for option, complaint in [("--seed", "checksum of weights and kernels = "),
                                  ("--batch", "samples in the batch = ")]:
            other = [word for word in train if word != "12"] if option == "--batch" else train
            other = [word for word in other if word != option]
            done = self.run_words([MPIRUN, "-n", "1", *train, ":", "-n", "1", *other, option, "7"],
                                  code=BAD_INPUT)
            self.assertIn(complaint, done.stderr)
        # A shell inside a job, and a training without leaves: MPI is not asked for.
        self.train(0, [*UNET[:-2], "--epochs", "1"], "plain", OMPI_COMM_WORLD_SIZE="1",
                   FENESTRA_MPI="/nowhere/plugin.so")
        for words in [["--", "eval", "x"], ["--", "train", "lenet", "--force"], []]:
            self.run_words([TOOL, "launch", "-n", "2", *words], code=USAGE)
        done = self.run_words([TOOL, "launch", "--mpirun", "/nowhere/mpirun", "--", "train", *LENET],
                              code=BAD_INPUT)
        self.assertIn("openmpi-bin", done.stderr)
        # What was said wrongly is not tried again.
        for words, code in [(["--data", "/nowhere"], BAD_INPUT), (["--no-such-option"], USAGE)]:
            done = self.run_words([TOOL, "launch", "-n", "2", "--restarts", "3", "--", "train", "lenet", *words,
                                   "--leaf", "8"], code=code)
            self.assertNotIn("again", done.stderr)

    def test_a_signal_leaves_a_checkpoint_to_go_on_with(self):
        words = [*LENET, "--epochs", "12"]
        self.train(0, words, "whole")
        job = subprocess.Popen([TOOL, "launch", "-n", "2", "--restarts", "5", "--", "train", *words, "--output",
                                "parts"], cwd=self.folder.name, env=ENVIRONMENT, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
        deadline = time.monotonic() + TIMEOUT
        while not os.path.exists(self.path("parts", "checkpoint.safetensors")):
            self.assertIsNone(job.poll())
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        job.send_signal(signal.SIGTERM)
        out, _ = job.communicate(timeout=TIMEOUT)
        self.assertEqual(job.returncode, INTERRUPTED, out)
        self.train(3, ["lenet", "--data", "digits"], "parts", "--resume")
        self.assertEqual(self.checkpoint("parts")[0], self.checkpoint("whole")[0])

    def test_a_killed_process_ends_the_job_and_launch_starts_it_again(self):
        words = [*LENET, "--epochs", "12"]
        self.train(0, words, "whole")
        launcher = subprocess.Popen(
            [TOOL, "launch", "-n", "3", "--restarts", "2", "--fewer", "--", "train", *words, "--output", "killed"],
            cwd=self.folder.name, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        # After the first checkpoint, so that there is something to go on with.
        deadline = time.monotonic() + TIMEOUT
        while not os.path.exists(self.path("killed", "checkpoint.safetensors")):
            self.assertIsNone(launcher.poll())
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        ranks = [pid for pid in processes_of(launcher.pid) if is_tool(pid, TOOL)]
        os.kill(random.choice(ranks), signal.SIGKILL)
        out, _ = launcher.communicate(timeout=TIMEOUT)
        self.assertEqual(launcher.returncode, FINE, out)
        self.assertIn("launch: the job ended with code 137; start 1 of 2 again, with 2 processes", out)
        self.assertIn("going on after step", out)
        self.assertEqual(self.checkpoint("killed")[0], self.checkpoint("whole")[0])
        self.assertEqual([pid for pid in ranks if is_tool(pid, TOOL)], [])

    def launcher(self, name, first_start):
        """A program in the place of mpirun, which is mpirun from the second start on."""
        path = self.path(name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nif [ -e {name}.once ]; then exec {MPIRUN} "$@"; fi\ntouch {name}.once\n'
                       f'{first_start}\n')
        os.chmod(path, 0o755)
        return path

    def test_launch_starts_again_after_what_mpi_ends_with(self):
        words = [*UNET, "--epochs", "1"]
        self.train(0, words, "whole")
        # MPI and mpirun have codes of their own, and what the tool means by them is something else.
        starts = {f"mpi{code}": f"exit {code}" for code in [1, USAGE, BAD_INPUT, LOST]}
        # $1 to $3 are: -n 2 TOOL.
        starts["wire"] = f'shift 2; FENESTRA_MPI={FAILING_MPI} OMPI_COMM_WORLD_SIZE=2 exec "$@"'
        # A launcher that takes no note of the end of its processes.
        starts["hung"] = "sleep 0 & exec sleep 1000"
        for name, start in starts.items():
            code = int(name[3:]) if name.startswith("mpi") else 128 + signal.SIGKILL if name == "hung" else LOST
            done = self.run_words([TOOL, "launch", "-n", "2", "--restarts", "1", "--mpirun",
                                   self.launcher(name, start), "--", "train", *words, "--output", f"run-{name}"])
            self.assertIn(f"the job ended with code {code}; start 1 of 1 again", done.stderr)
            self.assertEqual(self.checkpoint(f"run-{name}")[0], self.checkpoint("whole")[0])

    def test_codes_say_whether_another_start_may_do(self):
        lost = {"FENESTRA_MPI": FAILING_MPI, "OMPI_COMM_WORLD_SIZE": "2"}
        for more in [[], ["--resume-or-start"]]:
            done = self.train(0, UNET, "lost", *more, code=LOST, **lost)
            self.assertIn("[bad-environment] MPI: code 3, the wire is cut", done.stderr)
        again = NOT_AGAIN
        self.train(0, ["lenet", "--data", "/nowhere"], "none", code=BAD_INPUT)
        self.train(0, ["lenet", "--data", "/nowhere"], "none", "--resume-or-start", code=again + BAD_INPUT)
        self.train(0, ["lenet", "--no-such-option"], "none", "--resume-or-start", code=again + USAGE)

    @unittest.skipUnless(os.geteuid() == 0, "is somebody else already")
    def test_it_need_not_be_root(self):
        words = [*UNET, "--epochs", "1"]
        self.train(0, words, "root")
        os.chmod(self.folder.name, 0o777)
        nobody = {"user": 65534, "group": 65534, "extra_groups": []}
        clean = {name: value for name, value in os.environ.items() if not name.startswith("OMPI_")}
        done = subprocess.run([MPIRUN, "--oversubscribe", "-n", "2", TOOL, "train", *words, "--output", "user"],
                              cwd=self.folder.name, env={**clean, "HOME": self.folder.name}, capture_output=True,
                              text=True, timeout=TIMEOUT, check=False, **nobody)
        self.assertEqual(done.returncode, FINE, done.stdout + done.stderr)
        self.assertEqual(os.stat(self.path("user", "checkpoint.safetensors")).st_uid, 65534)
        self.assertEqual(self.checkpoint("user"), self.checkpoint("root"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
