#!/usr/bin/env python3
"""Trains, evaluates and runs networks with the built tool, as somebody who only uses the command line.

Called with the tool. Through a pipe and through a pseudo-terminal; interrupted and resumed; and with
every input that does not fit.
"""

import json
import math
import os
import random
import re
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

from page import Page, table_after
from terminal import run_in_terminal, screen_lines
from tool import BAD_INPUT, FINE, INTERRUPTED, TOOL, USAGE, ToolTest, wait_until_it_listens

# A small network that learns enough in a moment.
# What watches memory takes some itself.
with open(TOOL, "rb") as tool:
    SANITIZED = b"__asan_init" in (content := tool.read()) or b"__tsan_init" in content
QUICK = ["lenet", "--data", "digits", "--width", "0.5", "--threads", "1"]


def tensors_of(path):
    """Names, shapes and bytes of a safetensors file, read without the library."""
    with open(path, "rb") as file:
        length = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(length))
        data = file.read()
    metadata = header.pop("__metadata__")
    return {name: (entry["dtype"], entry["shape"], data[slice(*entry["data_offsets"])])
            for name, entry in header.items()}, metadata


def save_npy(path, shape, numbers, kind="<f4"):
    with open(path, "wb") as file:
        header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
        header += " " * (117 - len(header)) + "\n"
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack(f"<{len(numbers)}{'B' if kind == '|u1' else 'f'}", *numbers))


def load_npy(path):
    """Shape and numbers of a file of version 1."""
    with open(path, "rb") as file:
        length = struct.unpack("<8xH", file.read(10))[0]
        header = file.read(length).decode()
        data = file.read()
    shape = tuple(int(extent) for extent in
                  re.search(r"'shape': \(([^)]*)\)", header).group(1).split(",") if extent.strip())
    letter = {"<f4": "f", "<i8": "q"}[re.search(r"'descr': '([^']*)'", header).group(1)]
    return shape, struct.unpack(f"<{math.prod(shape)}{letter}", data)


class NetworkTest(ToolTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)

    def path(self, *parts):
        return os.path.join(self.folder, *parts)


class Trained(NetworkTest):
    """One run of two epochs, and all that can be asked about it."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        done = subprocess.run([TOOL, "train", *QUICK, "--epochs", "2", "--output", "run",
                               "--gradcheck", "--show", "4"],
                              capture_output=True, text=True, cwd=cls.folder, timeout=120)
        cls.code, cls.out, cls.err = done.returncode, done.stdout, done.stderr
        cls.model = os.path.join(cls.folder, "run", "model.safetensors")

    def test_through_a_pipe_there_is_a_table_a_line_for_each_epoch_and_no_escape(self):
        self.assertEqual(self.code, FINE, self.out + self.err)
        self.assertNotIn("\x1b", self.out + self.err)
        self.assertNotIn("\r", self.out + self.err)
        self.assertLess(self.out.index("multiply-adds"), self.out.index("1,618 samples to learn"))
        lines = self.err.splitlines()
        self.assertEqual([line.split("  ")[0] for line in lines], ["epoch 1/2", "epoch 2/2"])
        for line in lines:
            self.assertRegex(line, r"loss \d.*right [\d.]+ %.*held out.*samples/s")
        self.assertRegex(self.out, r"[\d.]+ % of 179 held-out samples right")
        self.assertEqual(self.out.count("gradients agree with difference quotients"), 1)

    def test_samples_of_all_classes_are_drawn(self):
        captions = re.findall(r"(\d) (?:not (\d)|\d+%)", self.out)
        self.assertEqual([truth or said for said, truth in captions], ["0", "1", "2", "3"])

    def test_the_commands_to_try_next_work_when_pasted(self):
        lines = self.out.split("Try next:\n")[1].splitlines()
        self.assertEqual(len(lines), 3)
        for line in lines:
            done = subprocess.run(line, shell=True, capture_output=True, text=True,
                                  cwd=self.folder)
            self.assertEqual(done.returncode, FINE, line + done.stderr)
            self.assertTrue(done.stdout)

    def test_nothing_but_what_is_to_be_pasted_is_wider_than_the_terminal(self):
        sample = os.path.join(self.folder, "run", "sample.png")
        for number, arguments in enumerate([
            ["train", *QUICK, "--epochs", "1", "--gradcheck"],
            ["eval", self.model, "--data", "digits"], ["run", self.model, sample], ["summary", self.model],
            ["gradcheck", self.model, "--samples", "1"], ["explain", "model", self.model],
            ["bench", self.model, "--time", "0.01"], ["info"], ["explain"],
            ["check", "conv", "x=1x1x4x4 w=1x1x2x2"], ["check", "--cases", "1"],
            ["train", "lenett", "--data", "digits"], ["train", "lenet", "--data", "digits:nowhere"],
            ["eval", self.model, "--data", "shapes"], ["run", sample, sample], []]):  # fmt: skip
            for width in (44, 80):
                more = ["--output", f"narrow{number}-{width}"] if arguments[:1] == ["train"] else []
                done = subprocess.run([TOOL, *arguments, *more], capture_output=True, text=True, timeout=120,
                                      cwd=self.folder, env={**os.environ, "COLUMNS": str(width), "LANG": "C.UTF-8"})
                for line in (done.stdout + done.stderr).splitlines():
                    is_to_paste = TOOL in line or line.startswith(("  fenestra ", "  x="))
                    # An epoch's line is for people who look, or for whoever reads the pipe: never cut there.
                    if not is_to_paste and not line.startswith("epoch ") and len(line.split()) > 2:
                        self.assertLessEqual(len(line), width, f"{arguments} at {width}: {line}")

    def test_the_model_file_says_what_it_is(self):
        tensors, metadata = tensors_of(self.model)
        self.assertEqual(tensors["conv1.weight"][:2], ("F32", [3, 1, 5, 5]))
        self.assertEqual(json.loads(metadata["fenestra.classes"]), list("0123456789"))
        self.assertEqual(json.loads(metadata["fenestra.preprocessing"])["size"], [28, 28])
        self.assertEqual(json.loads(metadata["fenestra.architecture"])["layer"], "sequential")
        self.assertEqual(metadata["input"], "1x28x28")
        self.assertEqual(sorted(os.listdir(self.path("run"))),
                         ["checkpoint.safetensors", "checkpoint.safetensors.previous",
                          "model.safetensors", "report.html", "sample.png"])

    def test_the_report_is_one_page_with_pictures_and_the_command(self):
        with open(self.path("run", "report.html")) as file:
            text = file.read()
        page = Page(text)
        self.assertEqual(page.named("script"), [])
        self.assertTrue(page.named("svg"))
        for _, attributes in page.tags:
            for key in ["src", "href"]:
                self.assertFalse(attributes.get(key, "").startswith("http"), attributes)
        for word in ["--data digits", "--seed 1", "conv1", "training steps"]:
            self.assertIn(word, page.words)

    def test_the_report_says_where_time_and_memory_went_by_layers(self):
        with open(self.path("run", "report.html")) as file:
            text = file.read()
        rows = {row[0].split("  ")[0]: row[1:] for row in table_after(text, "step")[1:]}
        self.assertEqual(list(rows), ["conv1", "relu1", "pool1", "conv2", "relu2", "pool2", "flatten", "fc1",
                                      "relu3", "fc2", "relu4", "fc3", "loss", "all"])
        for layer in ["conv1", "conv2", "fc1", "pool1", "all"]:
            self.assertRegex(rows[layer][1], r"\d+ (us|ms)$", layer)
            self.assertRegex(rows[layer][2], r"\d+ (us|ms)$", layer)
        facts = self.read_json("summary", self.model)
        work = {row["name"]: row["multiply_adds"] for row in facts["layers"]}
        self.assertIn(f"conv, {work['conv2']:,} multiply-adds", Page(text).words)
        self.assertIn(f"{facts['multiply_adds']:,} multiply-adds", Page(text).words)
        memory = {row[0].split("  ")[0]: row[1] for row in table_after(text, "memory")[1:]}
        self.assertEqual(list(memory), ["parameters", "gradients", "optimiser", "activations", "arena", "data",
                                        "the process at its peak"])
        self.assertEqual(memory["parameters"], f"{4 * facts['parameters'] / 1024:.1f} KiB")
        self.assertEqual(memory["gradients"], memory["parameters"])
        self.assertEqual(memory["optimiser"], f"{8 * facts['parameters'] / 1024:.0f} KiB")

    def test_of_an_eager_run_the_report_says_what_it_does_not_know(self):
        self.run_tool("train", *QUICK, "--epochs", "1", "--eager", "--output", self.path("eager"))
        with open(self.path("eager", "report.html")) as file:
            text = file.read()
        rows = {row[0].split("  ")[0]: row[1:] for row in table_after(text, "step")[1:]}
        self.assertRegex(rows["conv1"][1], r"\d+ (us|ms)$")
        self.assertEqual(rows["conv1"][2], "–")
        self.assertRegex(rows["all"][2], r"\d+ (us|ms)$")
        self.assertIn("the backward pass is known as a whole", Page(text).words)
        memory = {row[0].split("  ")[0]: row[1] for row in table_after(text, "memory")[1:]}
        self.assertEqual((memory["activations"], memory["arena"]), ("–", "–"))

    def test_eval_gives_what_train_said(self):
        said = re.search(r"([\d.]+) % of 179", self.out).group(1)
        out, err = self.run_tool("eval", self.model, "--data", "digits")
        self.assertIn(f"{said} % of 179 held-out samples right", out)
        self.assertIn("resized from 8x8 to 28x28", out)
        self.assertEqual(err, "")
        facts = self.read_json("eval", self.model, "--data", "digits")
        self.assertEqual(sum(map(sum, facts["confusion"])), 179)
        right = sum(facts["confusion"][i][i] for i in range(10))
        self.assertAlmostEqual(facts["accuracy"], right / 179)
        # A checkpoint is a model too.
        again = self.read_json("eval", self.path("run", "checkpoint.safetensors"), "--data",
                               "digits")
        self.assertEqual(again["confusion"], facts["confusion"])

    def test_run_names_classes_of_pictures_folders_and_arrays(self):
        sample = self.path("run", "sample.png")
        facts = self.read_json("run", self.model, sample, "--top", "2")["results"]
        self.assertEqual(len(facts), 1)
        first, second = facts[0]["classes"]
        self.assertGreaterEqual(first["probability"], second["probability"])
        os.makedirs(self.path("pictures"), exist_ok=True)
        for name in ["a.png", "b.png"]:
            shutil.copy(sample, self.path("pictures", name))
        with open(self.path("pictures", "notes.txt"), "w") as file:
            file.write("not a picture")
        both = self.read_json("run", self.model, self.path("pictures"))["results"]
        self.assertEqual([os.path.basename(item["input"]) for item in both], ["a.png", "b.png"])
        for item in both:
            self.assertEqual(item["classes"][0]["class"], first["class"])
        numbers = [random.Random(1).random() for _ in range(3 * 64)]
        save_npy(self.path("x.npy"), (3, 1, 8, 8), numbers)
        result = self.read_json("run", self.model, self.path("x.npy"), "-o",
                                self.path("scores.npy"), "--force")
        self.assertEqual(len(result["results"]), 3)
        shape, scores = load_npy(self.path("scores.npy"))
        self.assertEqual(shape, (3, 10))
        for i, item in enumerate(result["results"]):
            own = scores[10 * i:10 * i + 10]
            self.assertEqual(str(own.index(max(own))), item["classes"][0]["class"])
        # Bytes are levels, and one picture needs neither axis.
        save_npy(self.path("bytes.npy"), (8, 8), [int(255 * x) for x in numbers[:64]], "|u1")
        self.assertEqual(len(self.read_json("run", self.model, self.path("bytes.npy"))["results"]),
                         1)
        out, _ = self.run_tool("run", self.model, sample)
        self.assertIn("resized from 8x8 to 28x28", out)

    def test_summary_counts_what_the_file_holds(self):
        facts = self.read_json("summary", self.model)
        tensors, _ = tensors_of(self.model)
        count = sum(len(data) // 4 for _, _, data in tensors.values())
        self.assertEqual(facts["parameters"], count)
        self.assertEqual(sum(row["parameters"] for row in facts["layers"]), count)
        out, _ = self.run_tool("summary", self.model)
        self.assertIn(f"{count:,}", out)
        self.assertIn("conv1", out)
        for width in [40, 60]:
            out, _ = self.run_tool("summary", self.model, COLUMNS=str(width))
            self.assertLessEqual(max(map(len, out.splitlines())), width)

    def test_gradcheck_has_a_line_for_each_parameter_and_a_verdict(self):
        out, _ = self.run_tool("gradcheck", self.model, "--data", "digits", "--samples", "2",
                               "--directions", "1")
        tensors, _ = tensors_of(self.model)
        for name in tensors:
            self.assertRegex(out, rf"(?m)^{re.escape(name)} .* agrees$")
        self.assertIn(f"agree with difference quotients in all {len(tensors)} parameters", out)
        facts = self.read_json("gradcheck", self.model, "--samples", "2", "--directions", "1")
        self.assertTrue(facts["agrees"])
        self.assertEqual({row["parameter"] for row in facts["parameters"]}, set(tensors))

    def test_a_model_that_explain_takes_for_an_operator_gets_the_command_for_models(self):
        for arguments in (["explain", self.model], ["explain", "mode", self.model]):
            err = self.refused(*arguments)
            self.assertIn(f"explain model {self.model}", err)
        self.assertIn("explain model lenet\n", self.refused("explain", "lenet"))
        self.assertIn("did you mean conv?", self.refused("explain", "convv", "x=1"))

    def test_explain_model_draws_a_model_of_a_file(self):
        out, _ = self.run_tool("explain", "model", self.model)
        for word in ["conv1", "fc3", "parameters", "max_pool"]:
            self.assertIn(word, out)
        facts = self.read_json("explain", "model", self.model, "--form", "step", "--batch", "2")
        self.assertEqual(facts["layers"][0]["name"], "conv1")
        self.assertIn("conv1.weight", [value["name"] for value in facts["values"]])
        dot, _ = self.run_tool("explain", "model", self.model, "--format", "dot")
        self.assertTrue(dot.startswith("digraph"))

    def test_nothing_is_overwritten_unasked(self):
        before, _ = tensors_of(self.model)
        err = self.refused("train", *QUICK, "--output", "run")
        for word in ["[bad-file]", "--resume", "--force"]:
            self.assertIn(word, err)
        save_npy(self.path("kept.npy"), (1, 8, 8), [0] * 64)
        err = self.refused("run", self.model, self.path("kept.npy"), "--output",
                           self.path("kept.npy"))
        self.assertIn("--force", err)
        self.assertEqual(tensors_of(self.model)[0], before)

    def test_a_run_that_is_done_resumes_to_the_same_model_and_says_so(self):
        shutil.copytree(self.path("run"), self.path("done"), dirs_exist_ok=True)
        os.remove(self.path("done", "model.safetensors"))
        out, err = self.run_tool("train", *QUICK, "--output", "done", "--resume")
        self.assertIn("all epochs are done, nothing is left to train after step 102", out)
        self.assertEqual(err, "")
        self.assertEqual(tensors_of(self.path("done", "model.safetensors"))[0],
                         tensors_of(self.model)[0])

    def test_a_resumed_run_cannot_be_told_otherwise(self):
        for option, value in [("--batch", "16"), ("--seed", "9"), ("--rate", "0.5"),
                              ("--augmentation", "flip=0.5"), ("--schedule", "cosine")]:
            err = self.refused("train", *QUICK, "--output", "run", "--resume", option, value)
            self.assertIn("the run in", err)

    def test_what_does_not_fit_is_refused_with_the_reason(self):
        save_npy(self.path("colour.npy"), (2, 3, 8, 8), [0] * 384)
        save_npy(self.path("signal.npy"), (8,), [0] * 8)
        os.makedirs(self.path("three"), exist_ok=True)
        save_npy(self.path("three", "x.npy"), (6, 1, 8, 8), [0] * 384)
        save_npy(self.path("three", "y.npy"), (6,), [0, 1, 2, 0, 1, 2], "|u1")
        with open(self.path("broken.safetensors"), "wb") as file:
            with open(self.model, "rb") as whole:
                file.write(whole.read()[:1000])
        with open(self.path("text.png"), "w") as file:
            file.write("this is no picture")
        os.makedirs(self.path("empty"), exist_ok=True)
        for arguments, code, words in [
            (["eval", self.model, "--data", "digit"], "unknown-choice", ["did you mean digits?"]),
            (["eval", self.model, "--data", "tones"], "rank-mismatch", ["signals", "pictures"]),
            (["eval", self.model, "--data", "shapes"], "unsupported", ["segmentation"]),
            (["eval", self.model, "--data", "npy:three"], "shape-mismatch", ["3 class", "10"]),
            (["eval", "nowhere.safetensors", "--data", "digits"], "bad-file", ["nowhere"]),
            (["eval", "text.png", "--data", "digits"], "bad-file", ["text.png"]),
            (["summary", "broken.safetensors"], "bad-file", ["broken"]),
            (["summary", "lenett"], "unknown-model", ["did you mean lenet?"]),
            (["gradcheck", "text.png"], "bad-file", ["text.png"]),
            (["explain", "model", "broken.safetensors"], "bad-file", ["broken"]),
            (["run", self.model, "colour.npy"], "shape-mismatch", ["(2, 3, 8, 8)", "1 channel"]),
            (["run", self.model, "signal.npy"], "shape-mismatch", ["(8,)", "pictures"]),
            (["run", self.model, "text.png"], "bad-file", ["text.png"]),
            (["run", self.model, "empty"], "bad-file", ["no pictures"]),
            (["run", self.model, "nowhere.png"], "bad-file", ["nowhere.png"]),
            (["run", "sample.npy", "text.png"], "bad-file", ["sample.npy"]),
        ]:
            with self.subTest(arguments):
                err = self.refused(*arguments)
                self.assertIn(f"[{code}]", err)
                for word in words:
                    self.assertIn(word, err)

    def test_errors_are_json_too(self):
        error = self.read_json("eval", self.model, "--data", "digit", code=BAD_INPUT)["error"]
        self.assertEqual(error["code"], "unknown-choice")


class Training(NetworkTest):
    def test_what_cannot_be_trained_is_refused_before_anything_is_written(self):
        before = os.listdir(self.folder)
        for arguments, code, words in [
            (["lenett", "--data", "digits"], "unknown-model", ["did you mean lenet?"]),
            (["lenet", "--data", "digitz"], "unknown-choice", ["did you mean digits?"]),
            (["lenet", "--data", "tones"], "rank-mismatch", ["dilated_1d"]),
            (["lenet", "--data", "shapes"], "unsupported", ["unet"]),
            (["unet", "--data", "digits"], "unsupported", ["lenet"]),
            (["lenet", "--data", "folder:nowhere"], "bad-file", ["nowhere"]),
            (["lenet", "--data", "digits", "--optimiser", "adan"], "unknown-choice", ["adam"]),
            (["lenet", "--data", "digits", "--schedule", "cosin"], "unknown-choice", ["cosine"]),
            (["lenet", "--data", "digits", "--augmentation", "shfit=1"], "unknown-choice", ["shift"]),
            (["lenet", "--data", "digits", "--optimiser", "adam rat=1"], "unknown-choice", ["did you mean rate?"]),
            (["lenet", "--data", "digits", "--schedule", "cosine warm=1"], "unknown-choice", ["did you mean warmup?"]),
            (["lenet", "--data", "digits", "--augmentation", "flip=2"], "invalid-option", ["flip = 2\n"]),
            (["lenet", "--data", "digits", "--loss", "mse"], "unsupported", ["mse", "labels", "cross-entropy, dice, focal"]),
            (["autoencoder", "--data", "digits", "--loss", "cross-entropy"], "unsupported", ["numbers", "mse"]),
            (["lenet", "--data", "digits", "--size", "8x8"], None, ["conv2"]),
            (["lenet", "--data", "digits", "--resume"], "bad-file", ["--resume"]),
        ]:
            with self.subTest(arguments):
                err = self.refused("train", *arguments)
                if code:
                    self.assertIn(f"[{code}]", err)
                for word in words:
                    self.assertIn(word, err)
        self.assertEqual(os.listdir(self.folder), before)

    def test_usage_errors_exit_with_2(self):
        before = os.listdir(self.folder)
        for arguments in [["train"], ["train", "lenet"], ["train", "lenet", "--data"],
                          ["train", *QUICK, "--epochs", "0"], ["train", *QUICK, "--batch", "x"],
                          ["train", *QUICK, "--seed", "-1"], ["train", *QUICK, "--rate", "0"],
                          ["train", *QUICK, "--size", "8by8"], ["train", *QUICK, "--held-out", "1"],
                          ["train", *QUICK, "--resume", "--force"], ["eval", "x"], ["run", "x"],
                          ["summary"], ["gradcheck", "x", "--samples", "0"]]:
            with self.subTest(arguments):
                self.refused(*arguments, code=USAGE)
        self.assertEqual(os.listdir(self.folder), before)

    def test_infer_by_tiles_writes_the_bytes_of_the_whole_picture(self):
        drawn = random.Random(3)
        pixels = bytes(drawn.randrange(256) for _ in range(40 * 56))
        with open(self.path("big.pgm"), "wb") as file:
            file.write(b"P5\n56 40\n255\n" + pixels)
        save_npy(self.path("big.npy"), (1, 40, 56), pixels, "|u1")
        with open(self.path("big.bin"), "wb") as file:
            file.write(pixels)
        results = []
        for name, options in [("big.pgm", ["--memory", "1G"]), ("big.pgm", ["--tile", "17x24"]),
                              ("big.npy", ["--tile", "9x56"]),
                              ("big.bin", ["--raw", "40x56:u8", "--tile", "16x16"])]:
            facts = self.read_json("infer", "unet", self.path(name), *options, "--output",
                                   self.path("scores.npy"), "--force")
            self.assertEqual(facts["output"], [1, 1, 40, 56])
            with open(self.path("scores.npy"), "rb") as file:
                results.append(file.read())
        self.assertEqual(results, [results[0]] * 4)
        self.run_tool("infer", "unet", self.path("big.pgm"), "-o", self.path("picture.pgm"))
        with open(self.path("picture.pgm"), "rb") as file:
            self.assertTrue(file.read().startswith(b"P5\n56 40\n255\n"))
        for arguments, words in [
            (["small_resnet", "big.pgm", "-o", "x.npy"], []),
            (["unet", "missing.pgm", "-o", "x.npy"], ["missing.pgm"]),
            (["unet", "big.pgm", "-o", "x.npy", "--memory", "100"], ["memory-limit"]),
            (["unet", "big.pgm", "-o", "x.npy", "--tile", "4"], ["invalid-extent"]),
            (["unet", "big.bin", "-o", "x.npy", "--raw", "41x56:u8"], ["2240 bytes"]),
        ]:
            with self.subTest(arguments):
                err = self.refused("infer", *arguments)
                for word in words:
                    self.assertIn(word, err)
        self.refused("infer", "unet", "big.pgm", "-o", "x.png", code=USAGE)
        self.assertFalse(os.path.exists(self.path("x.npy")))

    def test_a_receptive_field_is_drawn_or_refused_by_the_name_of_the_layer(self):
        out, _ = self.run_tool("explain", "model", "unet", "--receptive-field")
        self.assertRegex(out, r"one cell of the output sees \d+x\d+ cells")
        self.assertIn("#", out)
        facts = self.read_json("explain", "model", "unet", "--receptive-field")
        self.assertFalse(facts["is_cut"])
        svg, _ = self.run_tool("explain", "model", "unet", "--receptive-field", "--format", "html")
        self.assertTrue(svg.startswith("<svg"))
        self.assertIn("(global_avg_pool)",
                      self.refused("explain", "model", "small_resnet", "--receptive-field"))

    def test_json_lines(self):
        out, err = self.run_tool("train", *QUICK, "--epochs", "1", "--output", "json", "--json",
                                 "--eager")
        self.assertEqual(err, "")
        events = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([event["event"] for event in events], ["start", "epoch", "end"])
        self.assertEqual(events[0]["settings"]["model"], "lenet")
        self.assertEqual(events[1]["epoch"], 1)
        self.assertEqual(events[2]["samples"], 179)
        self.assertTrue(os.path.exists(self.path(events[2]["model"])))
        # The compiled run has the same bits.
        self.run_tool("train", *QUICK, "--epochs", "1", "--output", "compiled", "--json")
        self.assertEqual(tensors_of(self.path("compiled", "model.safetensors"))[0],
                         tensors_of(self.path("json", "model.safetensors"))[0])

    def test_interrupted_and_resumed_is_as_if_it_had_not_been(self):
        # Long enough for a signal to come in time, however fast the machine is.
        words = ["train", *QUICK, "--epochs", "12"]
        self.run_tool(*words, "--output", "whole")
        for wait in ["epoch 1/", None]:
            shutil.rmtree(self.path("parts"), ignore_errors=True)
            command = [TOOL, *words, "--output", "parts"]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       text=True, cwd=self.folder)
            if wait:
                self.assertIn(wait, process.stderr.readline())
            else:
                wait_until_it_listens(process)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, INTERRUPTED, err)
            line = re.search(r"to go on: (.*)", err).group(1)
            self.assertFalse(os.path.exists(self.path("parts", "model.safetensors")))
            done = subprocess.run([*shlex.split(line), "--threads", "2"], capture_output=True,
                                  text=True, cwd=self.folder)
            self.assertEqual(done.returncode, FINE, done.stderr)
            self.assertIn("going on after step", done.stdout)
            self.assertEqual(tensors_of(self.path("parts", "model.safetensors"))[0],
                             tensors_of(self.path("whole", "model.safetensors"))[0])

    def test_a_terminal_sees_a_line_that_rewrites_itself_and_fits(self):
        code, text = run_in_terminal([TOOL, "train", *QUICK, "--epochs", "1", "--output", "terminal",
                                      "--show", "3"], 70, self.folder)
        self.assertEqual(code, FINE, text)
        self.assertRegex(text, r"\r(\x1b\[K)?epoch 1/1 .*loss .* left")
        self.assertIn("\x1b[", text)
        plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
        paths = ("model ", "report ", "  " + TOOL[:8], "epochs, ", "digits:")
        for line in re.split(r"[\r\n]+", plain):
            if not (line.startswith(paths) or "epochs, batches" in line):
                self.assertLessEqual(len(line), 70, repr(line))

    def test_a_narrow_terminal_still_sees_how_good_an_epoch_was(self):
        _, text = run_in_terminal([TOOL, "train", *QUICK, "--epochs", "1", "--output", "narrow"], 58,
                                  self.folder)
        lines = [line for line in screen_lines(text) if line.startswith("epoch 1/1")]
        self.assertEqual(len(lines), 1, lines)
        self.assertRegex(lines[0], r"held out: loss [\d.]+, [\d.]+ %$")
        self.assertNotIn("right", lines[0])
        self.assertLessEqual(len(lines[0]), 58)

    def test_patience_ends_early_and_keeps_the_best(self):
        out, _ = self.run_tool("train", *QUICK, "--epochs", "6", "--patience", "1", "--rate",
                               "1e-9", "--output", "patient", "--json")
        events = [json.loads(line) for line in out.splitlines()]
        self.assertEqual(events[-1]["reason"], "patience")
        self.assertLess(events[-1]["epochs"], 6)
        best = max(event["held_out_score"] for event in events if event["event"] == "epoch")
        self.assertAlmostEqual(events[-1]["accuracy"], best)

    def test_a_loss_that_is_no_number_is_an_error(self):
        err = self.refused_after_output("train", *QUICK, "--epochs", "1", "--optimiser", "sgd",
                                        "--rate", "1e30", "--schedule", "constant", "--output",
                                        "far")
        self.assertIn("--rate", err)

    def refused_after_output(self, *arguments):
        _, err = self.run_tool(*arguments, code=BAD_INPUT)
        return err

    def test_segmentation_and_reconstruction(self):
        self.run_tool("train", "unet", "--data", "shapes", "--width", "0.25", "--count", "16",
                      "--epochs", "1", "--batch", "8", "--output", "masks")
        model = self.path("masks", "model.safetensors")
        sample = self.path("masks", "sample.png")
        facts = self.read_json("run", model, sample, "--output", "mask.png")
        self.assertEqual(sum(facts["results"][0]["cells"].values()), 64 * 64)
        with open(self.path("mask.png"), "rb") as file:
            self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")
        self.run_tool("run", model, sample, "--output", "mask.npy")
        self.assertEqual(load_npy(self.path("mask.npy"))[0], (1, 64, 64))
        self.assertIn("mean_iou", self.read_json("eval", model, "--data", "shapes", "--count",
                                                 "8"))
        self.check_masks_by_parts(model)
        out, _ = self.run_tool("train", "autoencoder", "--data", "digits", "--width", "0.5", "--epochs",
                               "1", "--output", "codes")
        self.assertRegex(out, r"\n1 epoch, batches of 32")
        self.assertRegex(out, r"\nloss \d\.\d{4} on 179 held-out samples\n")
        model = self.path("codes", "model.safetensors")
        self.run_tool("run", model, self.path("codes", "sample.png"), "--output", "again.npy")
        shape, again = load_npy(self.path("again.npy"))
        self.assertEqual(shape, (1, 1, 28, 28))
        self.assertTrue(0 <= min(again) and max(again) <= 1)

    def check_masks_by_parts(self, model):
        """Masks of large parts are drawn band by band, with the bytes of small ones and in the memory that was
        given."""
        side = 1000
        with open(self.path("large.pgm"), "wb") as file:
            file.write(b"P5\n%d %d\n255\n" % (side, side) + random.Random(4).randbytes(side * side))
        masks = {}
        for ending in ["pgm", "ppm"]:
            for options in [["--tile", f"{side}x{side}"], ["--tile", "250x200"], ["--memory", "96M"]]:
                facts = self.read_json("infer", model, self.path("large.pgm"), *options, "--output",
                                       self.path("mask." + ending), "--force")
                with open(self.path("mask." + ending), "rb") as file:
                    masks.setdefault(ending, []).append(file.read())
            self.assertGreater(facts["tiles"], 1)
            if not SANITIZED:
                self.assertLess(facts["peak_memory"], 96_000_000)
            self.assertEqual(masks[ending], [masks[ending][0]] * 3)
        self.assertGreater(len(set(masks["pgm"][0])), 1)


class Ready(NetworkTest):
    def test_every_ready_model_has_a_summary(self):
        out, _ = self.run_tool("train", "--help")
        names = re.search(r"Models:\n((?:  \S+ .*\n)+)", out).group(1)
        names = [line.split()[0] for line in names.splitlines()]
        self.assertIn("mobilenet_v2", names)
        for name in names:
            facts = self.read_json("summary", name)
            self.assertEqual(sum(row["parameters"] for row in facts["layers"]),
                             facts["parameters"])
        self.assertEqual(self.read_json("summary", "mobilenet_v2")["parameters"], 3504872)

    def test_every_command_has_help_with_examples(self):
        for command in ["train", "eval", "run", "summary", "gradcheck"]:
            out, err = self.run_tool(command, "--help")
            self.assertEqual(err, "")
            self.assertIn("Examples:", out)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
