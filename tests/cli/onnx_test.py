#!/usr/bin/env python3
"""ONNX files with the built tool: a network is trained here, exported, checked, run, given another
head, trained on and converted, as the guide tells it. Called with the tool.
"""

import ast
import json
import math
import os
import re
import shlex
import signal
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile
import zlib

TOOL = os.path.abspath(sys.argv[1])
FINE, LAW_BROKEN, USAGE, BAD_INPUT, INTERRUPTED = 0, 1, 2, 3, 130


def varint(number):
    out = b""
    while True:
        number, low = number >> 7, number & 127
        out += bytes([low | (128 if number else 0)])
        if not number:
            return out


def num(field, value):
    return varint(field * 8) + varint(value)


def sub(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field * 8 + 2) + varint(len(data)) + data


def node(op, inputs, outputs):
    return sub(1, b"".join(sub(1, i) for i in inputs) + b"".join(sub(2, o) for o in outputs) +
               sub(4, op))


def value(name, *extents):
    """float32 with these extents, those that are text by their names."""
    dims = b"".join(sub(1, sub(2, extent) if isinstance(extent, str) else num(1, extent))
                    for extent in extents)
    return sub(1, name) + sub(2, sub(1, num(1, 1) + sub(2, dims)))


def weights(name, numbers, *extents):
    """An initialiser of float32."""
    return sub(5, b"".join(num(1, extent) for extent in extents) + num(2, 1) + sub(8, name) +
               sub(9, struct.pack(f"<{len(numbers)}f", *numbers)))


def model(graph):
    return num(1, 8) + sub(8, num(2, 13)) + sub(7, graph)


def normed_network():
    """Digits of 8 x 8 by a convolution and batch norm; its statistics are those of no data."""
    def wave(count):
        return [math.sin(1.3 * i) / 2 for i in range(count)]
    return model(
        node("Conv", ["x", "w"], ["a"]) +
        node("BatchNormalization", ["a", "gamma", "beta", "mean", "var"], ["n"]) +
        node("Relu", ["n"], ["r"]) + node("Flatten", ["r"], ["flat"]) +
        node("Gemm", ["flat", "head"], ["y"]) +
        weights("w", wave(4 * 9), 4, 1, 3, 3) + weights("gamma", [1] * 4, 4) +
        weights("beta", [0] * 4, 4) + weights("mean", [0.25] * 4, 4) +
        weights("var", [2] * 4, 4) + weights("head", wave(144 * 10), 144, 10) +
        sub(11, value("x", "n", 1, 8, 8)) + sub(12, value("y", "n", 10)))


def png(rows):
    """A picture of rows of (red, green, blue)."""
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data +
                struct.pack(">I", zlib.crc32(kind + data)))
    lines = b"".join(b"\0" + bytes(part for cell in row for part in cell) for row in rows)
    return (b"\x89PNG\r\n\x1a\n" +
            chunk(b"IHDR", struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))


def resized(line, extent):
    """Numbers by a triangle filter, as wide as a new cell where that is the larger one."""
    ratio = len(line) / extent
    reach = max(ratio, 1)
    result = []
    for cell in range(extent):
        centre = (cell + 0.5) * ratio
        taps = [max(0, 1 - abs(i + 0.5 - centre) / reach) for i in range(len(line))]
        result.append(sum(tap * number for tap, number in zip(taps, line)) / sum(taps))
    return result


def transposed(rows):
    return [list(column) for column in zip(*rows)]


def array_of(path):
    """Extents and numbers of a float32 .npy file."""
    with open(path, "rb") as file:
        data = file.read()
    begin = 10 + struct.unpack_from("<H", data, 8)[0]
    header = ast.literal_eval(data[10:begin].decode())
    assert header["descr"] == "<f4" and not header["fortran_order"], header
    return header["shape"], struct.unpack(f"<{(len(data) - begin) // 4}f", data[begin:])


class Onnx(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        run = os.path.join(cls.folder.name, "run")
        cls.call(["train", "lenet", "--data", "digits", "--width", "0.5", "--epochs", "2",
                  "--threads", "1", "--output", run])
        cls.weights = os.path.join(run, "model.safetensors")
        cls.sample = os.path.join(run, "sample.png")
        cls.onnx = cls.path("lenet.onnx")
        cls.call(["convert", cls.weights, cls.onnx])

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    @classmethod
    def call(cls, words, code=FINE):
        result = subprocess.run([TOOL, *words], capture_output=True, text=True, check=False)
        if result.returncode != code:
            raise AssertionError(f"{words} exits with {result.returncode}, expected {code}\n"
                                 f"{result.stdout}{result.stderr}")
        return result

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)
        return self.path(name)

    def test_the_exported_network_says_what_the_model_file_says(self):
        ours = json.loads(self.call(["run", self.weights, self.sample, "--json"]).stdout)
        theirs = json.loads(self.call(["run", self.onnx, self.sample, "--json"]).stdout)
        for a, b in zip(ours["results"][0]["classes"], theirs["results"][0]["classes"]):
            self.assertEqual(a["class"], b["class"])
            self.assertAlmostEqual(a["probability"], b["probability"], places=5)
        ours = json.loads(self.call(["eval", self.weights, "--data", "digits", "--json"]).stdout)
        theirs = json.loads(self.call(["eval", self.onnx, "--data", "digits", "--json"]).stdout)
        self.assertEqual(ours["confusion"], theirs["confusion"])

    def test_it_is_summed_up_and_checked(self):
        ours = json.loads(self.call(["summary", self.weights, "--json"]).stdout)
        theirs = json.loads(self.call(["summary", self.onnx, "--json"]).stdout)
        self.assertEqual(ours["parameters"], theirs["parameters"])
        seen = [[row["receptive_field"] for row in summary["layers"]] for summary in (ours, theirs)]
        self.assertEqual(seen[0], seen[1][:len(seen[0])])
        self.assertIn("it runs", self.call(["check", self.onnx, "input=1x1x28x28"]).stdout)
        self.assertIn("did you mean input?", self.call(
            ["check", self.onnx, "inpt=1x1x28x28"], USAGE).stderr)

    def test_its_nodes_and_its_plan_are_explained(self):
        plan = json.loads(self.call(["explain", "model", self.onnx, "--format", "json"]).stdout)
        summary = json.loads(self.call(["summary", self.onnx, "--json"]).stdout)
        self.assertEqual(plan["parameters"], summary["parameters"])
        self.assertEqual([row["layer"] for row in plan["layers"]].count("Conv"), 2)
        self.assertIn("conv+relu", [step["operation"] for step in plan["steps"]])
        text = self.call(["explain", "model", self.onnx, "--form", "infer"]).stdout
        self.assertIn("MaxPool", text)
        page = self.path("plan.html")
        self.call(["explain", "model", self.onnx, "--format", "html", "--output", page])
        with open(page, encoding="utf-8") as file:
            self.assertIn("Nodes in the order in which they run", file.read())

    def test_what_numbers_decide_is_not_checked_and_no_problem(self):
        # y = 0 of a shape that an input says: it runs, but not before the numbers are there.
        shape = sub(1, "n") + sub(2, sub(1, num(1, 7) + sub(2, sub(1, num(1, 2)))))
        file = self.write("open.onnx", model(node("ConstantOfShape", ["n"], ["y"]) + sub(11, shape) +
                                             sub(12, value("y"))))
        result = self.call(["check", file])
        self.assertIn("not checked: node #0 (ConstantOfShape-9)", result.stdout)
        self.assertIn("it runs", result.stdout)

    def test_inputs_and_outputs_have_names(self):
        folder = self.path("outputs")
        text = self.call(["run", self.onnx, "--input", f"input={self.sample}", "--output-dir",
                          folder]).stdout
        self.assertIn("1x10", text)
        self.assertTrue(os.path.exists(os.path.join(folder, "output.npy")))
        self.assertIn("inputs are input", self.call(
            ["run", self.onnx, "--input", "no=x.npy", "--output-dir", folder], USAGE).stderr)

    def test_pictures_are_prepared_as_the_command_line_says(self):
        rows = [[tuple((40 * y + 23 * x + 70 * c) % 256 for c in range(3)) for x in range(4)]
                for y in range(6)]
        picture = self.write("cells.png", png(rows))
        mean, scale = [0.4, 0.5, 0.6], [0.2, 0.25, 0.5]
        # What the network is given: channels of rows.
        def prepared(height, width):
            channels = []
            for c in range(3):
                cells = [[cell[c] / 255 for cell in row] for row in rows]
                tall = transposed([resized(column, height) for column in transposed(cells)])
                channels.append([[(cell - mean[c]) / scale[c] for cell in resized(row, width)]
                                 for row in tall])
            return channels
        numbers = ["--mean", ",".join(map(str, mean)), "--scale", ",".join(map(str, scale))]
        # By --size, up and down at once; by the extents that the model says; as the picture is.
        for layout, size, extents, (height, width) in [
                ("nchw", ["--size", "9x3"], ("n", 3, "h", "w"), (9, 3)),
                ("nchw", [], ("n", 3, 5, 8), (5, 8)),
                ("nchw", [], ("n", 3, "h", "w"), (6, 4)),
                ("nhwc", ["--size", "9x3"], ("n", "h", "w", 3), (9, 3)),
                ("nhwc", [], ("n", 5, 8, 3), (5, 8))]:
            with self.subTest(layout=layout, size=size, extents=extents):
                file = self.write("neg.onnx", model(node("Neg", ["x"], ["y"]) +
                                                    sub(11, value("x", *extents)) +
                                                    sub(12, value("y"))))
                folder = self.path("prepared")
                self.call(["run", file, "--input", f"x={picture}", "--layout", layout, *size,
                           *numbers, "--output-dir", folder, "--force"])
                shape, got = array_of(os.path.join(folder, "y.npy"))
                channels = prepared(height, width)
                if layout == "nchw":
                    self.assertEqual(shape, (1, 3, height, width))
                    wanted = [n for channel in channels for row in channel for n in row]
                else:
                    self.assertEqual(shape, (1, height, width, 3))
                    wanted = [channels[c][y][x] for y in range(height) for x in range(width)
                              for c in range(3)]
                # Numbers up to 1/0.2, weights and up to 4 sums on two axes, mean and scale: some
                # 16 roundings of float32.
                for a, b in zip(got, wanted, strict=True):
                    self.assertAlmostEqual(-a, b, delta=5 * 16 * 2**-24)
        self.assertIn("--mean", self.call(
            ["run", file, "--input", f"x={picture}", "--mean", "a,b", "--output-dir", folder],
            USAGE).stderr)

    def test_no_output_takes_the_file_of_another(self):
        folder = self.path("both")
        file = self.write("both.onnx", model(
            node("Relu", ["x"], ["a/b"]) + node("Neg", ["x"], ["a_b"]) + sub(11, value("x", 1, 4)) +
            sub(12, value("a/b", 1, 4)) + sub(12, value("a_b", 1, 4))))
        header = ("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 4), }").ljust(117) + "\n"
        x = self.write("x.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) +
                       header.encode() + struct.pack("<4f", -1, 2, -3, 4))
        run = ["run", file, "--input", f"x={x}", "--output-dir", folder]
        self.call(run)
        self.assertEqual(sorted(os.listdir(folder)), ["a_b.npy", "a_b_2.npy"])
        # A file that is there is noticed before anything is written.
        os.remove(os.path.join(folder, "a_b.npy"))
        self.assertIn("a_b_2.npy: exists", self.call(run, BAD_INPUT).stderr)
        self.assertEqual(os.listdir(folder), ["a_b_2.npy"])

    def test_another_head_is_trained_on_and_nothing_else(self):
        tuned = self.path("tuned.onnx")
        lines = self.call(["finetune", self.onnx, "--data", "digits", "--head", "0", "--train",
                           "*", "--freeze", "conv1.*", "--epochs", "3", "--threads", "1", "--output",
                           tuned, "--json"]).stdout.splitlines()
        start, end = json.loads(lines[0]), json.loads(lines[-1])
        self.assertGreater(start["frozen"], 0)
        self.assertIn("--freeze conv1.*: 2 of 10 weights, conv1.weight, conv1.bias",
                      start["patterns"])
        self.assertEqual(start["frozen_weights"], ["conv1.weight", "conv1.bias"])
        self.assertGreater(end["accuracy"], 0.8)
        again = json.loads(self.call(["eval", tuned, "--data", "digits", "--json"]).stdout)
        self.assertEqual(again["confusion"], end["confusion"])
        before, after = self.path("before.safetensors"), self.path("after.safetensors")
        self.call(["convert", self.onnx, before])
        self.call(["convert", tuned, after])
        old, new = tensors_of(before), tensors_of(after)
        self.assertEqual(old.keys(), new.keys())
        for name in old:
            if name.startswith("conv1."):
                self.assertEqual(old[name], new[name], name)
        # And back: the same weights make the same file.
        back = self.path("back.onnx")
        self.call(["convert", after, back, "--model", tuned])
        with open(back, "rb") as one, open(tuned, "rb") as other:
            self.assertEqual(one.read(), other.read())

    def test_weights_go_into_an_npz_and_back(self):
        for file, kind in ((self.weights, "safetensors"), (self.onnx, "onnx")):
            npz, back = self.path(f"{kind}.npz"), self.path(f"npz.{kind}")
            self.call(["convert", file, npz])
            with zipfile.ZipFile(npz) as archive:
                names = archive.namelist()
            self.assertTrue(names and all(name.endswith(".npy") for name in names))
            done = self.call(["convert", npz, back, "--model", file]).stdout
            self.assertIn(f"{len(names)} of {len(names)} weights replaced", done)
            with open(file, "rb") as one, open(back, "rb") as other:
                self.assertEqual(one.read(), other.read())
        plain = self.path("plain.safetensors")
        self.call(["convert", self.path("safetensors.npz"), plain])
        self.assertEqual(tensors_of(plain), tensors_of(self.weights))
        other = self.write("scaled.onnx", model(
            node("Mul", ["x", "strange"], ["y"]) + weights("strange", [1.5], 1) +
            sub(11, value("x", 1)) + sub(12, value("y", 1))))
        self.call(["convert", other, self.path("scaled.npz")])
        self.assertIn("strange: the model has none of this name", self.call(
            ["convert", self.path("scaled.npz"), self.path("mixed.safetensors"), "--model",
             self.weights], BAD_INPUT).stderr)
        self.assertIn("with --model", self.call(
            ["convert", self.path("onnx.npz"), self.path("mixed.onnx")], USAGE).stderr)

    def finetuned(self, file, output, *words):
        """The lines of a run on the digits, and the tensors that it leaves."""
        output = self.path(output)
        lines = self.call(["finetune", file, "--data", "digits", "--threads", "1", "--output",
                           output, "--json", *words]).stdout.splitlines()
        return [json.loads(line) for line in lines], self.tensors(output)

    def tensors(self, file):
        weights_file = self.path("tensors.safetensors")
        self.call(["convert", file, weights_file, "--force"])
        return tensors_of(weights_file)

    def test_a_network_is_cut_and_gets_a_head_where_it_was(self):
        lines, after = self.finetuned(self.onnx, "cut.onnx", "--cut", "fc1/Gemm", "--epochs", "3")
        start, end = lines[0], lines[-1]
        self.assertIn("a new head of 10 classes after fc1/Gemm", start["head"])
        self.assertIn("left out, behind it: fc2.weight, fc2.bias, fc3.weight, fc3.bias", start["head"])
        self.assertGreater(end["accuracy"], 0.8)
        before = self.tensors(self.onnx)
        left = {name for name in before if not name.startswith(("fc2.", "fc3."))}
        self.assertEqual(before.keys() & after.keys(), left)
        self.assertEqual(len(after.keys() - left), 2)
        again = json.loads(self.call(["eval", self.path("cut.onnx"), "--data", "digits",
                                      "--json"]).stdout)
        self.assertEqual(again["confusion"], end["confusion"])
        self.assertIn("it runs", self.call(["check", self.path("cut.onnx"),
                                            "input=1x1x28x28"]).stdout)

    def test_batch_norm_goes_by_the_models_statistics_or_the_batchs(self):
        file = self.write("normed.onnx", normed_network())
        before = self.tensors(file)
        for words, used in [(["--bn", "frozen"], "frozen"), (["--bn", "batch"], "batch"),
                            ([], "batch"), (["--batch", "8"], "frozen")]:
            with self.subTest(words=words):
                lines, after = self.finetuned(file, "normed-tuned.onnx", "--epochs", "1",
                                              "--force", *words)
                self.assertEqual(lines[0]["batch_norm"], used)
                self.assertEqual(before.keys(), after.keys())
                for name in ("mean", "var"):
                    self.assertEqual(before[name] == after[name], used == "frozen", name)
                for name in ("w", "gamma", "beta", "head"):
                    self.assertNotEqual(before[name], after[name], name)

    def test_the_loss_is_the_one_that_was_asked_for(self):
        plain, weights_of_plain = self.finetuned(self.onnx, "plain.onnx", "--epochs", "1")
        smooth, weights_of_smooth = self.finetuned(self.onnx, "smooth.onnx", "--epochs", "1",
                                                   "--loss", "cross-entropy smoothing=0.2")
        self.assertNotEqual(weights_of_plain, weights_of_smooth)
        # No scores have less than the entropy of labels of which a fifth is spread over ten.
        least = -(0.82 * math.log(0.82) + 9 * 0.02 * math.log(0.02))
        self.assertLess(plain[-1]["loss"], least)
        self.assertGreater(smooth[-1]["loss"], least)
        self.call(["finetune", self.onnx, "--data", "digits", "--loss", "nonsense", "--output",
                   self.path("none.onnx")], BAD_INPUT)

    def test_interrupted_and_resumed_is_as_if_it_had_not_been(self):
        words = ["finetune", self.onnx, "--data", "digits", "--head", "0", "--freeze", "conv1.*",
                 "--epochs", "8", "--threads", "1"]
        whole, parts = self.path("whole.onnx"), self.path("parts.onnx")
        self.call([*words, "--output", whole])
        process = subprocess.Popen([TOOL, *words, "--output", parts], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.assertIn("epoch 1/", process.stderr.readline())
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, INTERRUPTED, err)
        self.assertFalse(os.path.exists(parts))
        line = re.search(r"to go on: (.*)", err).group(1)
        done = subprocess.run(shlex.split(line), capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, FINE, done.stderr)
        self.assertIn("going on after step", done.stdout)
        with open(whole, "rb") as one, open(parts, "rb") as other:
            self.assertEqual(one.read(), other.read())
        with open(self.path("parts.html"), encoding="utf-8") as page:
            report = page.read()
        for word in ["conv2", "finetune", "seed"]:
            self.assertIn(word, report)
        # A run that is there is neither replaced nor told otherwise.
        self.assertIn("a run has been here", self.call([*words, "--output", parts], BAD_INPUT).stderr)
        for option, text in [("--optimiser", "sgd"), ("--freeze", "conv2.*"), ("--batch", "8")]:
            said = self.call([*words, "--output", parts, "--resume", option, text], BAD_INPUT).stderr
            self.assertIn(f"{option} ", said)
            self.assertIn("the run in", said)
        self.assertIn("nothing can go on", self.call(
            [*words, "--output", self.path("none.onnx"), "--resume"], BAD_INPUT).stderr)
        self.call([*words, "--output", parts, "--resume", "--force"], USAGE)

    def test_calls_are_timed(self):
        for file in (self.onnx, self.weights, "lenet"):
            facts = json.loads(self.call(["bench", file, "--batch", "3", "--time", "0.01",
                                          "--threads", "1", "--json"]).stdout)
            self.assertEqual((facts["batch"], facts["threads"]), (3, 1))
            self.assertEqual(facts["input"], [3, 1, 28, 28])
            self.assertGreaterEqual(facts["calls"], 5)
            self.assertTrue(0 < facts["min_seconds"] <= facts["median_seconds"])
            self.assertAlmostEqual(facts["samples_per_second"] * facts["median_seconds"], 3, places=6)
        text = self.call(["bench", self.onnx, "--time", "0.01", "--step"]).stdout
        self.assertIn("training step", text)
        self.assertIn("median", text)
        self.call(["bench", self.onnx, "--time", "0"], USAGE)
        self.call(["bench", self.path("no.onnx")], BAD_INPUT)

    def test_what_does_not_fit_is_said(self):
        err = self.call(["finetune", self.onnx, "--data", "digits", "--freeze", "nothing*"],
                        USAGE).stderr
        self.assertIn("matches none", err)
        self.assertIn("names such as conv1.weight", err)
        for wrong, part in [("nothing", "the last on output"), ("fc2/Gem", "perhaps fc2/Gemm")]:
            err = self.call(["finetune", self.onnx, "--data", "digits", "--cut", wrong],
                            BAD_INPUT).stderr
            self.assertIn(f"no value is called '{wrong}'", err)
            self.assertIn(part, err)
        self.assertIn("a safetensors file, no ONNX model", self.call(
            ["finetune", self.weights, "--data", "digits"], BAD_INPUT).stderr)
        self.assertIn("a web page, no safetensors", self.call(
            ["summary", self.write("page.safetensors", b"<!DOCTYPE html>")], BAD_INPUT).stderr)
        page = self.write("page.onnx", b"<!DOCTYPE html>")
        self.assertIn("a web page", self.call(["summary", page], BAD_INPUT).stderr)
        self.assertIn("two of .onnx, .safetensors and .npz", self.call(
            ["convert", self.onnx, self.path("other.onnx")], USAGE).stderr)

    def test_all_problems_are_listed_at_once(self):
        bad = self.write("bad.onnx", model(
            node("Nonsense", ["x"], ["a"]) + node("Relu", ["lost"], ["b"]) +
            node("Loop", ["a"], ["y"]) + sub(11, value("x", 1, 4)) + sub(12, value("y", 1, 4))))
        text = self.call(["check", bad], LAW_BROKEN).stdout
        for word in ("Nonsense", "Loop"):
            self.assertIn(word, text)
        self.assertGreaterEqual(
            len(json.loads(self.call(["check", bad, "--json"], LAW_BROKEN).stdout)["problems"]), 2)
        # An operator that is not known does not hide an attribute that is missing.
        both = self.write("both-bad.onnx", model(
            node("Nonsense", ["x"], ["a"]) + node("MaxPool", ["x"], ["b"]) +
            node("Add", ["a", "b"], ["y"]) + sub(11, value("x", 1, 1, 4, 4)) + sub(12, value("y"))))
        text = self.call(["check", both], LAW_BROKEN).stdout
        self.assertIn("Nonsense", text)
        self.assertIn("kernel_shape is missing", text)


def tensors_of(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    header.pop("__metadata__", None)
    return {name: data[slice(*entry["data_offsets"])] for name, entry in header.items()}


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
