"""The layer check must be able to fail: small trees with one bad include each, and good ones."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent / "check_layers"


def run_on(files):
    """Runs the checker on a tree of {path: text}; returns (exit code, output)."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        command = [sys.executable, str(SCRIPT), folder]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        return result.returncode, result.stdout + result.stderr


class CheckLayers(unittest.TestCase):
    def assert_accepts(self, path, text):
        code, output = run_on({path: text})
        self.assertEqual(code, 0, output)

    def assert_refuses(self, path, text, expected):
        code, output = run_on({path: text})
        self.assertEqual(code, 1, output)
        self.assertIn(expected, output)

    def test_an_arrow_downward_is_accepted(self):
        self.assert_accepts("fenestra/ops/conv/spec.hpp", "#include <fenestra/spec/window.hpp>\n")

    def test_a_layer_may_include_itself_and_the_standard_library(self):
        text = "#include <fenestra/tensor/shape.hpp>\n#include <vector>\n"
        self.assert_accepts("fenestra/tensor/tensor.hpp", text)

    def test_an_arrow_upward_is_refused_with_file_line_and_arrow(self):
        self.assert_refuses(
            "fenestra/tensor/tensor.hpp",
            "#pragma once\n\n#  include  <fenestra/ops/conv/spec.hpp>\n",
            "fenestra/tensor/tensor.hpp:3: tensor -> ops",
        )

    def test_an_arrow_sideways_is_refused(self):
        self.assert_refuses(
            "fenestra/graph/plan.cpp", "#include <fenestra/engine/tape.hpp>\n", "graph -> engine"
        )

    def test_onnx_is_above_nn_and_other_files_are_not(self):
        text = "#include <fenestra/nn/slots.hpp>\n"
        self.assert_accepts("fenestra/io/onnx/network.hpp", text)
        self.assert_accepts("fenestra/io/onnx.hpp", text)
        self.assert_refuses("fenestra/io/npy.hpp", text, "io -> nn")
        self.assert_refuses(
            "fenestra/io/npy.hpp", "#include <fenestra/io/onnx/wire.hpp>\n", "io -> onnx"
        )

    def test_templates_of_generated_files_are_read_too(self):
        self.assert_refuses(
            "fenestra/base/version.hpp.in",
            "#include <fenestra/tensor/shape.hpp>\n",
            "base -> tensor",
        )

    def test_an_operator_includes_those_it_says_it_uses_and_no_others(self):
        header = {"fenestra/ops/conv/conv.hpp": "#include <fenestra/ops/pad/pad.hpp>\n"}
        listed = {"fenestra/ops/operators.txt": "pad  # the first\nconv: slice pad\n"}
        self.assertEqual(run_on(header | listed)[0], 0)
        code, output = run_on(header | {"fenestra/ops/operators.txt": "pad\nconv: slice\n"})
        self.assertEqual(code, 1, output)
        self.assertIn("conv.hpp:1: <fenestra/ops/pad/pad.hpp>: operators.txt does not say", output)
        self.assert_accepts(
            "fenestra/ops/conv/conv.hpp",
            "#include <fenestra/ops/require.hpp>\n#include <fenestra/ops/conv/options.hpp>\n",
        )

    def test_what_operators_share_includes_none_of_them(self):
        text = "#include <fenestra/ops/pad/pad.hpp>\n"
        self.assert_refuses("fenestra/ops/values.cpp", text, "values.cpp:1: <fenestra/ops/pad/pad.hpp>")
        self.assert_accepts("fenestra/ops/values_test.cpp", text)
        self.assert_accepts("fenestra/ops/values.cpp", "#include <fenestra/ops/require.hpp>\n")

    def test_a_family_uses_what_any_of_its_members_says(self):
        header = {"fenestra/ops/pool/max/op.hpp": "#include <fenestra/ops/pad/pad.hpp>\n"}
        listed = {"fenestra/ops/operators.txt": "pool/avg: pad\npool/max\n"}
        self.assertEqual(run_on(header | listed)[0], 0)

    def test_circles_of_files_and_of_operators_are_refused(self):
        code, output = run_on({
            "fenestra/tensor/a.hpp": "#include <fenestra/tensor/b.hpp>\n",
            "fenestra/tensor/b.hpp": "#include <fenestra/tensor/c.hpp>\n",
            "fenestra/tensor/c.hpp": "#include <fenestra/tensor/b.hpp>\n",
        })
        self.assertEqual(code, 1, output)
        self.assertIn("fenestra/tensor/b.hpp -> fenestra/tensor/c.hpp -> fenestra/tensor/b.hpp", output)
        code, output = run_on({
            "fenestra/ops/operators.txt": "conv: pad\npad: slice\nslice: pad\n",
            "fenestra/ops/values.cpp": "",
        })
        self.assertEqual(code, 1, output)
        self.assertIn("in a circle: pad -> slice -> pad", output)

    def test_quoted_and_relative_includes_are_refused(self):
        for include in ('"shape.hpp"', '"fenestra/tensor/shape.hpp"', "<../tensor/shape.hpp>"):
            self.assert_refuses(
                "fenestra/tensor/tensor.hpp", f"#include {include}\n", "tensor.hpp:1: "
            )

    def test_nothing_below_the_programs_includes_them_the_umbrella_or_a_test(self):
        for target, layer in (
            ("cli/explain.hpp", "cli"),
            ("fenestra.hpp", "fenestra"),
            ("ops/conv_test.hpp", "tests"),
        ):
            self.assert_refuses(
                "fenestra/io/npy.cpp", f"#include <fenestra/{target}>\n", f"io -> {layer}"
            )

    def test_the_umbrella_includes_what_is_installed_and_no_more(self):
        self.assert_accepts("fenestra/fenestra.hpp", "#include <fenestra/nn/layer.hpp>\n")
        self.assert_refuses(
            "fenestra/fenestra.hpp", "#include <fenestra/check/laws.hpp>\n", "fenestra -> check"
        )

    def test_tests_beside_a_layer_see_everything(self):
        self.assert_accepts("fenestra/spec/dual_test.cpp", "#include <fenestra/check/laws.hpp>\n")

    def test_programs_do_not_include_each_other(self):
        self.assert_refuses(
            "examples/a.cpp", "#include <fenestra/cli/args.hpp>\n", "examples -> cli"
        )

    def test_a_layer_that_is_not_in_the_table_is_refused(self):
        self.assert_refuses("fenestra/utils/misc.hpp", "#pragma once\n", "no layer 'utils'")
        self.assert_refuses("fenestra/cli/a.cpp", "#include <fenestra/utils/misc.hpp>\n", "'utils'")

    def test_an_empty_tree_is_refused(self):
        code, output = run_on({"README.md": ""})
        self.assertEqual(code, 1, output)


if __name__ == "__main__":
    unittest.main()
