#!/usr/bin/env python3
"""Runs the built tool as a stranger would: what `explain` and `check` print, draw and write, JSON.

Called with the tool and with the same tool on a registry that breaks a law (broken_registry.cpp).
Tests the command line only; what the laws and the geometry are worth is tested beside them.
"""

import itertools
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

from page import Page
from terminal import run_in_terminal
from tool import BAD_INPUT, CONV, FINE, INTERRUPTED, LAW_BROKEN, TOOL, ToolTest, wait_until_it_listens

BROKEN = sys.argv[2]


class Explain(ToolTest):
    def test_a_convolution_is_explained_in_numbers_and_a_drawing(self):
        out, err = self.run_tool("explain", "conv", CONV)
        self.assertEqual(err, "")
        for expected in [
            "convolution",
            "x=8x3x32x32 w=16x3x3x3 stride=2,2 padding=1,1 dilation=1,1 groups=1",
            "(8, 16, 16, 16)",
            "height  floor((32 + 1 + 1 - 3)/2) + 1 = 16",
            "parameters     432",
            "multiply-adds  884,736",
            "window 7",
            "not drawn: 8 windows after",
        ]:
            self.assertIn(expected, out)

    def test_the_environment_limits_the_instruction_set(self):
        out, _ = self.run_tool("explain", "conv", CONV, "--kernels", FENESTRA_ISA="baseline")
        self.assertIn("(instruction set: baseline)", out)
        self.run_tool("check", "conv", "x=2x3x9x17 w=4x3x3x3", FENESTRA_ISA="baseline")

    def test_kernels_are_timed_and_the_chosen_one_is_named(self):
        for operator, problem in [("conv", CONV), ("max_pool", "x=1x4x9x40 kernel=2"),
                                  ("conv_transpose", "x=1x8x7x7 w=8x4x4x4 stride=2 padding=1")]:
            kernels = self.read_json("explain", operator, problem, "--kernels", "--time")["kernels"]
            for kernel in kernels:
                # Others, the gather of a max pool for one, no caller asks for by themselves.
                is_asked = kernel["direction"] in ["forward", "input_grad", "weight_grad", "scatter"]
                is_timed = kernel["seconds"] is not None and kernel["seconds"] > 0
                if kernel["refusal"] is None:
                    self.assertEqual(is_timed, is_asked, kernel)
                # One that refuses for speed only is timed, too; one that lacks something cannot be.
                reasons = ("a weight gradient only", "not a weight gradient")
                self.assertFalse(is_timed and kernel["refusal"] in reasons, kernel)
            for _, group in itertools.groupby(kernels, lambda k: (k["direction"], k["name"].split("_")[-2])):
                group = list(group)
                accepting = [kernel["name"] for kernel in group if kernel["refusal"] is None]
                self.assertEqual([kernel["name"] for kernel in group if kernel["chosen"]], accepting[:1])
        out, _ = self.run_tool("explain", "conv", CONV, "--kernels", "--time")
        self.assertRegex(out, r"forward +conv_f32_\w+ +[0-9.]+ us +chosen")
        self.assertRegex(out, r"forward +conv_f32_dense +[0-9.]+ us +too few products to a cell")
        out, _ = self.run_tool("explain", "conv", CONV, "--kernels")
        self.assertRegex(out, r"forward +conv_f32_\w+ +chosen")

    def test_an_instruction_set_that_is_not_there_is_refused_by_the_name_of_the_variable(self):
        for command in [("explain", "conv", CONV, "--kernels"), ("check", "conv", CONV),
                        ("check", "matmul", "a=2x3 b=3x4")]:
            _, err = self.run_tool(*command, code=BAD_INPUT, FENESTRA_ISA="avx1024")
            self.assertIn('[bad-environment] FENESTRA_ISA: instruction set "avx1024"', err)
            self.assertIn("baseline, or leave it unset", err)

    def test_a_drawing_shows_every_tap_of_a_small_axis(self):
        drawing = self.read_json("explain", "max_pool", "x=1x1x4 kernel=3 stride=2 padding=1 "
                                 "ceil_mode=true")["drawing"]
        self.assertEqual(drawing["lines"], [
            "cells      . 0 1 2 3 . ~",
            "window 0   o # #",
            "window 1       # # #",
            "window 2           # o o",
        ])
        for sign in "#o.~":
            self.assertIn(sign, drawing["legend"])

    def test_bins_are_drawn_and_unpooling_has_nothing_to_draw(self):
        facts = self.read_json("explain", "adaptive_max_pool", "x=1x1x10 output_size=3")
        self.assertEqual(facts["drawing"]["lines"], [
            "cells   0 1 2 3 4 5 6 7 8 9",
            "bin 0   # # # #",
            "bin 1         # # # #",
            "bin 2               # # # #",
        ])
        self.assertIsNone(self.read_json("explain", "max_unpool", "x=1x8x4x4 kernel=2")["drawing"])

    def test_windows_lost_in_padding_are_counted_and_the_others_drawn(self):
        drawing = self.read_json("explain", "max_pool", "x=1x1x4 kernel=1 padding=1000")["drawing"]
        rest = drawing["lines"][-1]
        counts = re.search(r"(\d+) windows before.* (\d+) windows after", rest).groups()
        before, after = map(int, counts)
        self.assertEqual(before + after + len(drawing["lines"]) - 2, 2004)
        self.assertIn(f"window {before} ", drawing["lines"][1])

    def test_no_line_of_a_drawing_is_wider_than_a_terminal(self):
        for problem in ["x=1x1x500 kernel=3", "x=1x1x9 kernel=2 padding=500",
                        "x=1x1x1000000000000 kernel=1000 stride=7 dilation=3"]:
            for line in self.read_json("explain", "avg_pool", problem)["drawing"]["lines"]:
                self.assertLessEqual(len(line), 78, line)

    def test_the_axis_of_the_drawing_is_chosen_by_number_or_name(self):
        problem = "x=1x1x9x8x7 kernel=1,2,3"
        for axis, name in enumerate(["depth", "height", "width"]):
            for spelling in [str(axis), name]:
                facts = self.read_json("explain", "max_pool", problem, "--axis", spelling)
                drawing = facts["drawing"]
                self.assertEqual((drawing["axis"], drawing["name"]), (axis, name))
        self.assertEqual(self.read_json("explain", "max_pool", problem)["drawing"]["axis"], 2)

    def test_a_transposed_convolution_lists_the_sizes_its_output_padding_reaches(self):
        problem = "x=1x8x7x7 w=8x4x4x4 stride=3,2 padding=1"
        facts = self.read_json("explain", "conv_transpose", problem)
        self.assertEqual(facts["windows_over"], "y")
        sizes = facts["notes"]["output_sizes"]
        self.assertEqual([axis["name"] for axis in sizes], ["height", "width"])
        ranges = [range(axis["low"], axis["high"] + 1) for axis in sizes]
        for height, width in itertools.product(range(1, 40), range(1, 40)):
            if height not in ranges[0] and width not in ranges[1]:
                continue  # one axis at fault is enough
            reachable = height in ranges[0] and width in ranges[1]
            if reachable or (height + width) % 9 == 0:
                self.run_tool("explain", "conv_transpose",
                              f"{problem} output_size={height},{width}",
                              code=FINE if reachable else BAD_INPUT)
        out, _ = self.run_tool("explain", "conv_transpose", problem)
        self.assertIn("output sizes reachable by output padding", out)
        self.assertIn("height  20 .. 22", out)

    def test_every_operator_explains_its_example_with_the_same_keys(self):
        keys = None
        for entry in self.operators():
            facts = self.read_json("explain", entry["name"], entry["example"])
            keys = keys or list(facts)
            self.assertEqual(list(facts), keys)
            self.assertEqual(facts["operator"], entry["name"])
            out, _ = self.run_tool("explain", entry["name"], entry["example"])
            for key in ["parameters", "multiply_adds", "cell_visits"]:
                line = re.search(rf"(?m)^{key.replace('_', '[- ]')} +([\d,]+)$", out)
                number = line and int(line.group(1).replace(",", ""))
                self.assertEqual(number, facts[key])
            self.assertTrue(facts["multiply_adds"] is None or facts["cell_visits"] is None)
            self.assertIn(facts["problem"], out)
            for axis in facts["axes"]:
                self.assertIn(f"{axis['name']}  ", out)
                self.assertIn(axis["formula"], out)

    def test_the_canonical_problem_explains_to_itself(self):
        for entry in self.operators():
            problem = self.read_json("explain", entry["name"], entry["example"])["problem"]
            again = self.read_json("explain", entry["name"], problem)
            self.assertEqual(again["problem"], problem)

    def test_without_an_operator_the_list_has_all_with_summary_and_example(self):
        out, err = self.run_tool("explain")
        self.assertEqual(err, "")
        self.assertGreaterEqual(len(self.operators()), 9)
        for entry in self.operators():
            self.assertIn(entry["summary"], out)
            self.assertIn(f'fenestra explain {entry["name"]} "{entry["example"]}"', out)

    def test_a_problem_needs_no_quotes(self):
        self.assertEqual(self.run_tool("explain", "conv", *CONV.split()),
                         self.run_tool("explain", "conv", CONV))

    def test_cell_visits_are_those_of_a_count_by_hand(self):
        draw = random.Random(1)
        for _ in range(60):
            rank = draw.choice([1, 2])
            axes = []
            while len(axes) < rank:
                i, k, s, d, low, high = [draw.randint(a, b) for a, b in
                                         [(1, 12), (1, 5), (1, 4), (1, 3), (0, 6), (0, 6)]]
                if d * (k - 1) + 1 <= i + low + high:
                    axes.append((i, k, s, d, low, high))
            i, k, s, d, low, high = zip(*axes)
            text = lambda values: ",".join(map(str, values))
            padding = ",".join(f"{a}:{b}" for a, b in zip(low, high))
            problem = (f"x=2x3x{'x'.join(map(str, i))} kernel={text(k)} stride={text(s)} "
                       f"dilation={text(d)} padding={padding} "
                       f"ceil_mode={draw.choice(['true', 'false'])}")
            facts = self.read_json("explain", "avg_pool", problem)
            needed = 6
            for a, facts_of_axis in zip(axes, facts["axes"]):
                needed *= sum(0 <= o * a[2] + t * a[3] - a[4] < a[0]
                              for o in range(facts_of_axis["windows"]) for t in range(a[1]))
            self.assertEqual(facts["cell_visits"], needed, problem)

    def test_visits_of_bins_are_those_of_a_count_by_hand(self):
        for i, o in itertools.product(range(1, 8), range(1, 8)):
            facts = self.read_json("explain", "adaptive_avg_pool", f"x=1x1x{i} output_size={o}")
            bins = [-(-(j + 1) * i // o) - j * i // o for j in range(o)]
            self.assertEqual(facts["cell_visits"], sum(bins))

    def test_huge_problems_are_explained_at_once(self):
        for op, problem in [
            ("conv", "x=64x3x4096x4096 w=64x3x7x7 stride=2 padding=3"),
            ("max_pool", "x=64x3x4096x4096 kernel=3 padding=1"),
            ("avg_pool", "x=1x1x9000000000000 kernel=9 stride=3 padding=4 ceil_mode=true"),
            ("lp_pool", "x=1x1x9000000000000 kernel=4000000000000 stride=4000000000000"),
            ("adaptive_max_pool", "x=1x1x4503599627370496x1 output_size=1,4503599627370496"),
        ]:
            done = subprocess.run([TOOL, "explain", op, problem], capture_output=True, timeout=10)
            self.assertEqual(done.returncode, FINE)


class OperatorHelp(ToolTest):
    def fields(self, op):
        return self.read_json("explain", op, "--help")["fields"]

    def without(self, problem, name):
        return " ".join(word for word in problem.split() if not word.startswith(name + "="))

    def test_a_person_sees_every_field_with_its_default(self):
        out, err = self.run_tool("explain", "conv", "--help")
        self.assertEqual(err, "")
        self.assertRegex(out, r"(?m)^  x +shape of the input.*; required$")
        self.assertRegex(out, r"(?m)^  stride +.*; left out: 1$")
        self.assertRegex(out, r"(?m)^  layout +.*: channels_first, channels_last; left out: channels_first$")
        self.assertEqual(out, self.run_tool("help", "explain", "conv")[0])
        for width in [40, 60, 100]:
            narrow = self.run_tool("explain", "conv", "--help", COLUMNS=str(width))[0]
            self.assertLessEqual(max(map(len, narrow.splitlines())), width)
            self.assertEqual(narrow.split(), out.split())

    def test_every_field_of_examples_and_canonical_problems_is_listed(self):
        for operator in self.operators():
            op, example = operator["name"], operator["example"]
            names = [field["name"] for field in self.fields(op)]
            self.assertEqual(len(names), len(set(names)), op)
            canonical = self.read_json("explain", op, example)["problem"]
            for word in [*example.split(), *canonical.split()]:
                self.assertIn(word.split("=")[0], names, op)

    def test_what_is_required_is_and_defaults_are_what_is_taken(self):
        for operator in self.operators():
            op, example = operator["name"], operator["example"]
            for field in self.fields(op):
                rest = self.without(example, field["name"])
                if field["required"]:
                    _, err = self.run_tool("explain", op, rest, code=BAD_INPUT)
                    self.assertIn(f"expected {field['name']}=...", err)
                elif re.fullmatch(r"[a-z0-9_.-]+", field["default"] or ""):
                    done = [subprocess.run([TOOL, "explain", op, problem, "--json"],
                                           capture_output=True, text=True)
                            for problem in [rest, f"{rest} {field['name']}={field['default']}"]]
                    if "expected a field of" not in done[1].stderr:  # of another function
                        self.assertEqual(done[0].stdout, done[1].stdout, (op, field))

    def test_an_unknown_field_or_operator_gets_the_nearest(self):
        _, err = self.run_tool("explain", "conv", CONV + " dilaton=2", code=BAD_INPUT)
        self.assertIn("found dilaton, did you mean dilation?", err)
        self.assertIn("fenestra explain conv --help", err)
        _, err = self.run_tool("explain", "conf", "--help", code=BAD_INPUT)
        self.assertIn("did you mean conv?", err)
        error = self.read_json("explain", "conf", "--help", code=BAD_INPUT)["error"]
        self.assertEqual(error["code"], "unknown-operator")


class ExplainModel(ToolTest):
    FORMS = ["run", "step", "infer"]

    def explain(self, *arguments, **options):
        return self.run_tool("explain", "model", *arguments, **options)[0]

    def facts(self, *arguments):
        return self.read_json("explain", "model", *arguments)

    def test_the_text_has_the_steps_and_totals_of_the_json(self):
        for form in self.FORMS:
            with self.subTest(form):
                options = ["lenet", "--form", form, "--batch", "16", "--threads", "2"]
                facts = self.facts(*options)
                text = self.explain(*options)
                self.assertIn(f"\n{facts['title']}: batch 16, f32, 2 threads\n", text)
                for step in facts["steps"]:
                    row = re.search(rf"(?m)^[| ] %{step['node']} +{re.escape(step['operation'])} .*$", text)
                    self.assertIsNotNone(row, step)
                    self.assertEqual(row.group().startswith("|"), step["group"] is not None)
                    self.assertIn(step["kernel"] or "-", row.group())
                self.assertEqual(len(re.findall(r"(?m)^\+ ", text)), len(facts["groups"]))
                work = sum(step["multiply_adds"] for step in facts["steps"])
                self.assertEqual(facts["multiply_adds"], work)
                self.assertIn(f"multiply-adds  {work:,}\n", text)
                self.assertIsNone(facts["seconds"])

    def test_multiply_adds_are_those_of_a_count_by_hand(self):
        batch = 3
        layers = [(6, 28 * 28, 25), (16, 10 * 10, 6 * 25), (120, 1, 400), (84, 1, 120), (10, 1, 84)]
        forward = batch * sum(out * cells * depth for out, cells, depth in layers)
        for form in ["run", "infer"]:
            facts = self.facts("lenet", "--batch", str(batch), "--form", form)
            self.assertEqual(facts["multiply_adds"], forward)
        # Backward is a product for the weights and one for the input, which the first layer has no
        # use for.
        first = batch * 6 * 28 * 28 * 25
        facts = self.facts("lenet", "--batch", str(batch), "--form", "step")
        self.assertEqual(facts["multiply_adds"], 3 * forward - first)

    def test_forms_differ_in_what_they_are_given(self):
        kinds = {}
        for form in self.FORMS:
            values = self.facts("lenet", "--form", form)["values"]
            kinds[form] = sorted({value["kind"] for value in values})
        self.assertEqual(kinds["run"], ["input", "parameter"])
        self.assertEqual(kinds["infer"], ["constant", "input"])
        self.assertTrue({"data", "input", "parameter"} <= set(kinds["step"]))
        outputs = self.facts("lenet", "--form", "step")["outputs"]
        self.assertEqual(len(outputs), 12)  # loss, scores and a gradient for each parameter

    def test_every_model_is_planned_in_both_types(self):
        for model in ["lenet", "unet", "small_resnet"]:
            sizes = []
            for dtype in ["f32", "f64"]:
                facts = self.facts(model, "--batch", "2", "--dtype", dtype, "--threads", "1")
                self.assertEqual({step["type"] for step in facts["steps"]}, {dtype})
                self.assertLess(facts["arena_bytes"], facts["bytes_without_reuse"])
                sizes.append(facts["bytes_without_reuse"])
            self.assertLess(sizes[0], sizes[1])

    def test_a_memory_limit_is_kept_by_computing_again(self):
        options = ["unet", "--form", "step", "--batch", "2", "--threads", "2"]
        free = self.facts(*options)
        limit = 3 * free["arena_bytes"] // 4 // 1024 * 1024
        limited = self.facts(*options, "--memory-limit", str(limit))
        self.assertLessEqual(limited["arena_bytes"], limit)
        self.assertGreater(limited["multiply_adds"], free["multiply_adds"])
        self.assertGreater(len(limited["steps"]), len(free["steps"]))
        for key in ["name", "shape", "copied"]:
            self.assertEqual([output[key] for output in limited["outputs"]],
                             [output[key] for output in free["outputs"]])
        self.assertEqual(self.facts(*options, "--memory-limit", str(free["arena_bytes"]))["steps"],
                         free["steps"])
        text = self.explain("lenet", "--threads", "1", "--memory-limit", str(2**20))
        self.assertIn("\nlenet, forward pass: batch 8, f32, 1 thread, at most 1 MiB\n", text)

    def test_layers_are_a_tree_with_names_and_parameters(self):
        text = self.explain("small_resnet", "--batch", "1", LC_ALL="C.UTF-8")
        facts = self.facts("small_resnet", "--batch", "1")
        self.assertRegex(text, r"(?m)^small_resnet +sequential +272,474 ")
        self.assertRegex(text, r"(?m)^├─ stage2 +sequential ")
        self.assertRegex(text, r"(?m)^│  ├─ 0 +residual ")
        for row in facts["layers"]:
            if row["parameters"]:
                own = row["name"].split(".")[-1]
                self.assertRegex(text, rf"(?m)─ {own} +{row['layer']} .* {row['parameters']:,} ")
        plain = self.explain("small_resnet", "--batch", "1", LC_ALL="C")
        self.assertRegex(plain, r"(?m)^\|- stage2 ")
        narrow = self.explain("small_resnet", "--batch", "1", COLUMNS="60", LC_ALL="C.UTF-8")
        self.assertLessEqual(max(map(len, narrow.splitlines())), 60)

    def test_the_layers_are_drawn(self):
        for model in ["small_resnet", "unet", "lenet"]:
            facts = self.facts(model, "--batch", "1")
            svg = self.explain(model, "--batch", "1", "--format", "svg")
            root = xml.etree.ElementTree.fromstring(svg)
            words = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
            boxes = [node for node in root.iter("{http://www.w3.org/2000/svg}rect")
                     if "net-layer" in node.get("class")]
            self.assertEqual(len(boxes), len(facts["layers"]))
            for row in facts["layers"]:
                self.assertTrue(any(row["layer"] in word for word in words), row)
            self.assertEqual(words.count("+"), 9 if model == "small_resnet" else 0)
            self.assertEqual("concat" in words, model == "unet")
            page = self.explain(model, "--batch", "1", "--format", "html")
            self.assertIn("<h2>Layers</h2>", page)
            self.assertEqual(Page(page).faults, [])

    def test_a_page_is_well_formed_and_needs_nothing_else(self):
        options = ["lenet", "--form", "step", "--batch", "16", "--threads", "2"]
        facts = self.facts(*options)
        text = self.explain(*options, "--format", "html")
        page = Page(text)
        self.assertEqual(page.faults, [])
        self.assertEqual(len(page.ids), len(set(page.ids)))
        for link in page.links:
            self.assertTrue(link.startswith("#") and link[1:] in page.ids, link)
        for step in facts["steps"]:
            self.assertIn(f"n{step['node']}", page.ids)
        rows = [given for tag, given in page.tags if given.get("class") == "group"]
        self.assertEqual(len(rows), len(facts["groups"]))
        self.assertFalse({"script", "link", "img", "iframe"} & {tag for tag, _ in page.tags})
        for outside in ["http:", "https:", "url(", "@import", "src="]:
            self.assertNotIn(outside, text)

    def test_a_drawing_has_a_frame_per_group_and_graphviz_reads_it(self):
        options = ["lenet", "--form", "step", "--batch", "16", "--threads", "2"]
        facts = self.facts(*options)
        drawing = self.explain(*options, "--format", "dot")
        self.assertEqual(drawing.count("subgraph cluster_"), len(facts["groups"]))
        for node in [*facts["steps"], *facts["values"]]:
            self.assertRegex(drawing, rf"(?m)^ *n{node['node']} \[label=")
        for step in facts["steps"]:
            for read in step["reads"]:
                self.assertIn(f"n{read['node']} -> n{step['node']} ", drawing)
        if dot := shutil.which("dot"):
            done = subprocess.run([dot, "-Tcanon"], input=drawing, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_profile_adds_times(self):
        options = ["lenet", "--form", "step", "--batch", "4", "--profile"]
        facts = self.facts(*options)
        self.assertTrue(all(step["seconds"] >= 0 for step in facts["steps"]))
        self.assertGreater(facts["seconds"], 0)
        total = sum(step["seconds"] for step in facts["steps"])
        self.assertAlmostEqual(facts["seconds"], total, delta=1e-12 * total)
        self.assertRegex(self.explain(*options), r"(?m)^time +[\d.]+ (us|ms|s) \(")
        self.assertIn("time of a run", Page(self.explain(*options, "--format", "html")).words)

    def test_a_file_gets_what_would_be_printed_and_is_not_replaced_unasked(self):
        options = ["lenet", "--format", "html"]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "plan.html")
            self.assertEqual(self.explain(*options, "--output", path), "")
            with open(path, encoding="utf-8") as file:
                self.assertEqual(file.read(), self.explain(*options))
            _, err = self.run_tool("explain", "model", "lenet", "--output", path, code=BAD_INPUT)
            self.assertIn("[bad-file]", err)
            self.explain("lenet", "--output", path, "--force")
            with open(path, encoding="utf-8") as file:
                self.assertEqual(file.read(), self.explain("lenet"))
            self.assertEqual(os.listdir(folder), ["plan.html"])

    def test_links_and_names_that_are_too_long_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            link = os.path.join(folder, "link")
            os.symlink(os.path.join(folder, "target"), link)
            for options in ((), ("--force",)):
                self.run_tool("explain", "model", "lenet", "--output", link, *options, code=BAD_INPUT)
            self.assertTrue(os.path.islink(link))
            self.assertFalse(os.path.exists(link))
            long = os.path.join(folder, "n" * 300)
            _, err = self.run_tool("explain", "model", "lenet", "--output", long, code=BAD_INPUT)
            self.assertIn("[bad-file]", err)
            self.assertEqual(os.listdir(folder), ["link"])


class Check(ToolTest):
    def test_one_problem_gives_a_line_per_law(self):
        problem = "x=2x4x9x8 w=6x4x3x2 stride=2,1 padding=1:0,0:1 dilation=1,2 groups=1"
        out, err = self.run_tool("check", "conv", problem)
        self.assertEqual(err, "")
        self.assertRegex(out, r"(?m)^  adjoint +holds ")
        self.assertRegex(out, r"(?m)^  groups +not applicable ")
        laws = self.read_json("check", "conv", problem)
        self.assertTrue(all(law["meaning"] for law in laws["laws"]), "a law without a meaning")
        self.assertTrue(laws["passed"])
        self.assertEqual(laws["seed"], 1)
        self.assertEqual({law["verdict"] for law in laws["laws"]}, {"holds", "not_applicable"})

    def test_random_problems_of_all_operators_give_a_table_of_counts(self):
        out, err = self.run_tool("check", "all", "--cases", "3", "--seed", "5")
        self.assertEqual(err, "")
        report = self.read_json("check", "all", "--cases", "3", "--seed", "5")
        self.assertTrue(report["passed"])
        self.assertIsNone(report["broken"])
        names = [entry["name"] for entry in self.operators()]
        self.assertEqual(list(report["operators"]), names)
        header, *rows = [line.split() for line in out.splitlines()[:len(names) + 1]]
        for row in rows:
            counts = report["operators"][row[0]]
            self.assertEqual(list(counts), header[1:])
            self.assertEqual(row[1:], ["-" if n is None else str(n) for n in counts.values()])
            self.assertEqual(counts["adjoint"], 3)
        lines = out.splitlines()[:len(names) + 1]
        self.assertEqual(len({len(line) for line in lines}), 1, "columns are not aligned")

    def test_an_operator_meets_the_same_problems_alone_as_among_all(self):
        every = self.read_json("check", "all", "--cases", "10", "--seed", "3")["operators"]
        alone = self.read_json("check", "conv", "--cases", "10", "--seed", "3")["operators"]
        self.assertEqual(alone, {"conv": every["conv"]})

    def test_a_seed_reproduces_a_run(self):
        run = lambda seed: self.run_tool("check", "conv", "--cases", "20", "--seed", seed)
        self.assertEqual(run("11"), run("11"))

    def test_a_broken_law_stops_the_run_and_names_a_command_that_shows_it_again(self):
        out, err = self.run_tool("check", "all", code=LAW_BROKEN, tool=BROKEN)
        self.assertEqual(err, "")
        self.assertIn('faulty breaks the law "adjoint"', out)
        self.assertIn("1/2, needed 1/3", out)
        command = shlex.split(re.search(r"(?m)^ +again +(fenestra check .*)$", out).group(1))
        again, _ = self.run_tool(*command[1:], code=LAW_BROKEN, tool=BROKEN)
        self.assertRegex(again, r"(?m)^  adjoint +broken +1/2, needed 1/3$")
        self.assertRegex(again, r"(?m)^  duals +broken ")

        report = self.read_json("check", "all", code=LAW_BROKEN, tool=BROKEN)
        self.assertFalse(report["passed"])
        broken = report["broken"]
        self.assertEqual((broken["operator"], broken["law"]), ("faulty", "adjoint"))
        self.assertEqual(shlex.split(broken["command"]), command)
        self.assertEqual(report["operators"]["faulty"]["adjoint"], broken["case"] - 1)

    def test_the_seed_decides_on_one_problem_too(self):
        self.run_tool("check", "faulty", "x=1", "--seed", "8", tool=BROKEN)
        report = self.read_json("check", "faulty", "x=1", "--seed", "7", code=LAW_BROKEN,
                                tool=BROKEN)
        self.assertFalse(report["passed"])
        details = {law["law"]: law["detail"] for law in report["laws"]}
        self.assertEqual(details["adjoint"], "1/2, needed 1/3")
        self.assertIsNone(details["string"])

    def test_a_large_problem_is_announced_and_still_checked(self):
        out, err = self.run_tool("check", "adaptive_max_pool", "x=1x1x2000001 output_size=1")
        self.assertRegex(err, r"^fenestra: this is exact arithmetic on [\d,]+ multiply-adds; ")
        self.assertRegex(out, r"(?m)^  adjoint +holds ")

    def test_kernels_are_soaked_and_counted(self):
        out, err = self.run_tool("check", "kernels", "--cases", "60", "--seed", "4")
        self.assertEqual(err, "")
        self.assertRegex(out, r"(?m)^60 problems in [\d.]+ s, [\d.]+ problems per second, seed 4$")
        self.assertRegex(out, r"(?m)^conv_f32_gemm +\d+$")
        report = self.read_json("check", "kernels", "--cases", "60", "--seed", "4")
        self.assertEqual((report["law"], report["problems"], report["passed"], report["broken"]),
                         ("integers", 60, True, None))
        self.assertGreater(report["problems_per_second"], 0)
        self.assertIn("conv_f64_gemm", report["candidates"])

    def test_a_soak_ends_in_time(self):
        report = self.read_json("check", "kernels", "--minutes", "0.02", "--seed", "4")
        self.assertGreaterEqual(report["seconds"], 1.2)
        self.assertGreater(report["problems"], 1)

    def test_an_interrupted_soak_reports_what_it_did(self):
        process = subprocess.Popen([TOOL, "check", "kernels", "--minutes", "10", "--json"],
                                   stdout=subprocess.PIPE, text=True)
        wait_until_it_listens(process)
        process.send_signal(signal.SIGINT)
        report = json.loads(process.communicate(timeout=120)[0])
        self.assertEqual(process.returncode, INTERRUPTED)
        self.assertTrue(report["passed"])

    def test_one_problem_of_kernels_takes_every_candidate(self):
        problem = "conv x=1x1x8x8 w=1x1x5x5 stride=2 padding=2"
        report = self.read_json("check", "kernels", problem)
        self.assertTrue(report["passed"])
        self.assertEqual(report["problems"], 1)
        self.assertLess({"conv_f32_gemm", "conv_f32_spec", "conv_f64_spec"},
                        set(report["candidates"]))
        self.assertTrue(self.read_json("check", "bits", problem)["passed"])

    def test_a_broken_kernel_stops_the_soak_and_names_a_command_that_shows_it_again(self):
        for word, law in [("kernels", "integers"), ("bits", "bits")]:
            out, err = self.run_tool("check", word, code=LAW_BROKEN, tool=BROKEN)
            self.assertEqual(err, "")
            self.assertIn(f'faulty breaks the law "{law}"', out)
            for line in ["candidate +faulty_f32_rows", "isa +avx2", "threads +3",
                         "direction +vjp of x", "detail +element 4: 1, needed 2"]:
                self.assertRegex(out, f"(?m)^  {line}$")
            command = shlex.split(re.search(r"(?m)^ +again +(fenestra check .*)$", out).group(1))
            self.assertEqual(command[2], word)
            again, _ = self.run_tool(*command[1:], code=LAW_BROKEN, tool=BROKEN)
            self.assertIn("element 4: 1, needed 2", again)
            report = self.read_json("check", word, code=LAW_BROKEN, tool=BROKEN)
            self.assertFalse(report["passed"])
            self.assertEqual(report["broken"]["threads"], 3)
            self.assertEqual(report["broken"]["number"], report["problems"])
            self.assertEqual(shlex.split(report["broken"]["command"]), command)

    def test_a_kernel_that_ends_the_process_is_named(self):
        done = subprocess.run([BROKEN, "check", "kernels", "faulty x=crash", "--seed", "3"],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, -signal.SIGFPE)
        self.assertIn('fenestra check kernels "faulty x=crash" --seed 3', done.stderr)

    def test_two_processes_on_different_threads_have_the_same_bits(self):
        hashes = {}
        for threads in ["1", "2", "3", "7", "16"]:
            done = subprocess.run([TOOL, "check", "bits", "--hash", "--cases", "300", "--json"],
                                  capture_output=True, text=True, timeout=300,
                                  env=dict(os.environ, FENESTRA_THREADS=threads))
            self.assertEqual(done.returncode, FINE, done.stderr)
            report = json.loads(done.stdout)
            self.assertEqual(report["problems"], 300)
            hashes[threads] = report["hash"]
        self.assertEqual(len(set(hashes.values())), 1, hashes)

    def test_progress_appears_on_a_terminal_and_is_wiped(self):
        with tempfile.TemporaryFile("w+") as out:
            _, seen = run_in_terminal([TOOL, "check", "conv", "--cases", "5"], 80, stdout=out)
            out.seek(0)
            self.assertNotIn("checking", out.read())
        self.assertIn("\r\x1b[Kchecking conv 1/5", seen)
        self.assertTrue(seen.endswith("\r\x1b[K"), seen)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
