"""Every version of an operator that came after opset 17, beside ONNX Runtime; see scripts/compare-onnxruntime.

The official vectors that Debian has end at opset 17. Here each later version in docs/onnx-operators.md has at least one
model of a single node at that opset, with what the version brought where it brought more than types.
Called with a folder for the models.
"""

import json
import pathlib
import re
import subprocess
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "python"))
import onnx_files as files  # noqa: E402

import fenestra as fn  # noqa: E402

rng = np.random.default_rng(1)
cases = []


def x(*shape):
    return rng.uniform(-2, 2, shape).astype(np.float32)


def ints(*numbers):
    return np.array(numbers, np.int64)


def case(op, version, inputs, outputs=1, **attributes):
    """None for an input that is left out. Integers are initialisers, since operators may look at their numbers."""
    cases.append((op, version, inputs, outputs, attributes))


def each(op, versions, inputs, outputs=1, **attributes):
    for version in versions:
        case(op, version, inputs, outputs, **attributes)


TYPES = (19, 21, 23, 24, 25)  # opsets that gave types to whatever moves numbers

# --- Windows ---
plane, line = x(1, 2, 7, 6), x(1, 2, 9)
for version in (19, 22):
    case("AveragePool", version, [plane], kernel_shape=[2, 3], dilations=[2, 1])
    case("AveragePool", version, [plane], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 0, 1, 1], count_include_pad=1)
    case("AveragePool", version, [plane], kernel_shape=[3, 2], strides=[2, 2], ceil_mode=1)
for version in (18, 22):
    case("LpPool", version, [plane], kernel_shape=[2, 3], dilations=[2, 1], p=3)
    case("LpPool", version, [plane], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
case("Conv", 22, [plane, x(4, 1, 3, 2), x(4)], group=2, strides=[2, 1], dilations=[1, 2], pads=[1, 0, 2, 1])
case("Conv", 22, [plane, x(3, 2, 3, 3)], auto_pad="SAME_LOWER", strides=[2, 2])
case("ConvTranspose", 22, [line, x(2, 3, 4), x(3)], strides=[2], pads=[1, 0], output_padding=[1])
case("MaxPool", 22, [plane], kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1], ceil_mode=1)
case("MaxPool", 22, [plane], 2, kernel_shape=[2, 2], strides=[2, 2])
case("MaxUnpool", 22, [x(1, 1, 2, 2), ints(0, 3, 9, 14).reshape(1, 1, 2, 2)], kernel_shape=[2, 2], strides=[2, 2])
each("GlobalAveragePool", [22], [plane])
each("GlobalMaxPool", [22], [plane])
case("GlobalLpPool", 22, [plane], p=3)
each("RoiAlign", [22], [plane, np.array([[0.5, 1, 4, 5], [1, 0, 5, 6.5]], np.float32), ints(0, 0)],
     output_height=2, output_width=3, sampling_ratio=2, spatial_scale=0.8)
for version, mode in ((20, "linear"), (20, "nearest"), (20, "cubic"), (22, "linear")):
    for padding in ("zeros", "border", "reflection"):
        case("GridSample", version, [plane, 0.7 * x(1, 3, 4, 2)], mode=mode, padding_mode=padding)
case("GridSample", 22, [plane, 0.7 * x(1, 3, 4, 2)], align_corners=1)

# --- Norms and activations ---
groups = x(2, 4, 5)
case("GroupNormalization", 18, [groups, x(2), x(2)], num_groups=2)
case("GroupNormalization", 21, [groups, x(4), x(4)], num_groups=2, epsilon=0.01)
case("InstanceNormalization", 22, [groups, x(4), x(4)])
case("LpNormalization", 22, [groups], axis=1, p=1)
case("LpNormalization", 22, [groups])
case("RMSNormalization", 23, [groups, x(5)])
case("RMSNormalization", 23, [groups, x(4, 5)], axis=1, epsilon=0.1)
each("Mish", (18, 22), [line])
case("Gelu", 20, [line])
case("Gelu", 20, [line], approximate="tanh")
case("Swish", 24, [line], alpha=0.7)
for op in ("Elu", "Selu", "HardSigmoid", "ThresholdedRelu"):
    case(op, 22, [line], alpha=0.6)
for op in ("Cos", "Cosh", "HardSwish", "Round", "Sin", "Sinh", "Softplus", "Softsign", "Tan"):
    case(op, 22, [0.7 * line])
case("Dropout", 22, [line, np.float32(0.4)])

# --- Reductions: axes are an input ---
cube = x(2, 3, 4)
for op in ("ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
           "ReduceSumSquare"):  # fmt: skip
    for version in (18, 20) if op in ("ReduceMax", "ReduceMin") else (18,):
        case(op, version, [cube, ints(1, -1)], keepdims=0)
        case(op, version, [cube])
        case(op, version, [cube, ints()], noop_with_empty_axes=1)
case("ReduceLogSum", 18, [np.abs(cube) + 1, ints(0)])
case("ReduceMax", 20, [cube > 0, ints(2)])
case("ReduceMin", 20, [cube > 0, ints(2)])

# --- Moving numbers ---
each("Cast", TYPES, [x(7)], to=7)
each("Cast", TYPES, [ints(-3, 0, 5)], to=1)
each("Cast", TYPES, [np.array([0.0, -0.2, 3], np.float32)], to=9)
each("CastLike", TYPES, [x(7), ints(1)])
each("Constant", TYPES, [], value=x(2, 3))
each("Constant", TYPES, [], value_floats=[1.5, -2.0])
each("ConstantOfShape", (20, 21, 23, 24, 25), [ints(2, 3)], value=np.array([1.5], np.float32))
each("Flatten", (21, 23, 24, 25), [cube], axis=2)
each("Identity", TYPES, [cube])
branches = {name: files.graph([files.node(op, ["x0"], [name])], [], [files.value(name, files.FLOAT, [2, 3, 4])])
            for name, op in (("yes", "Neg"), ("no", "Abs"))}  # fmt: skip
for version in TYPES:
    for truth in (True, False):
        cases.append(("If", version, [np.array(truth)], 1, {"then_branch": branches["yes"], "else_branch": branches["no"]}))
each("Reshape", TYPES, [cube, ints(0, -1)])
each("Shape", TYPES, [cube], start=1, end=-1)
each("Size", TYPES, [cube])
each("Squeeze", (21, 23, 24, 25), [x(1, 3, 1), ints(-1)])
each("Unsqueeze", (21, 23, 24, 25), [x(3), ints(0, -1)])
each("Transpose", (21, 23, 24, 25), [cube], perm=[2, 0, 1])
for version in (18, 19, 21, 23, 24, 25):
    for mode in ("constant", "reflect", "edge") + (("wrap",) if version >= 19 else ()):
        case("Pad", version, [cube, ints(1, 0, 1, 2)] + ([np.float32(0.5)] if mode == "constant" else [None]) + [ints(0, 2)],
             mode=mode)  # fmt: skip
case("Split", 18, [x(7)], 3, num_outputs=3)
case("Split", 18, [x(7)] + [ints(4, 3)], 2)
each("Equal", [19], [ints(1, 2, 3), ints(1, 0, 3)])
each("Equal", [19], [x(3) > 0, x(3) > 0])
each("IsNaN", [20], [np.array([1, np.nan, np.inf], np.float32)])
for reduction in ("add", "mul", "max", "min"):
    case("ScatterElements", 18, [x(4, 3), ints(1, 0, 2, 1).reshape(2, 2), x(2, 2)], reduction=reduction)
    case("ScatterND", 18, [x(4, 3), ints(1, 3).reshape(2, 1), x(2, 3)], reduction=reduction)
case("TopK", 24, [x(2, 6), ints(3)], 2)
case("TopK", 24, [x(2, 6), ints(2)], 2, largest=0, axis=0)
image = x(1, 2, 5, 6)
for version in (18, 19):
    for mode in ("nearest", "linear", "cubic"):
        case("Resize", version, [image, None, None, ints(8, 3)], axes=[2, 3], mode=mode)
        case("Resize", version, [image, None, np.array([1, 1, 1.6, 0.5], np.float32)], mode=mode)
        case("Resize", version, [image, None, np.array([1, 1, 1.6, 2.5], np.float32)], mode=mode,
             coordinate_transformation_mode="align_corners")  # fmt: skip
    for mode in ("linear", "cubic"):
        case("Resize", version, [image, None, None, ints(3, 2)], axes=[2, 3], mode=mode, antialias=1)
    for policy in ("not_larger", "not_smaller"):
        case("Resize", version, [image, None, None, ints(9, 8)], axes=[2, 3], mode="linear", keep_aspect_ratio_policy=policy)
for mode in ("nearest", "linear", "cubic"):
    case("Resize", 19, [image, None, np.array([1, 1, 1.3, 0.7], np.float32)], mode=mode,
         coordinate_transformation_mode="half_pixel_symmetric")  # fmt: skip

# --- Losses and recurrent networks ---
for reduction in ("mean", "sum", "none"):
    case("NegativeLogLikelihoodLoss", 22, [x(3, 4, 2), ints(0, 3, 1, 2, 2, 0).reshape(3, 2), np.abs(x(4))],
         reduction=reduction, ignore_index=2)  # fmt: skip
steps = x(4, 2, 3)
for op, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
    outputs = 3 if op == "LSTM" else 2
    case(op, 22, [steps, x(2, 5 * gates, 3), x(2, 5 * gates, 5), x(2, 10 * gates)], outputs,
         hidden_size=5, direction="bidirectional")  # fmt: skip
case("GRU", 22, [steps, x(1, 15, 3), x(1, 15, 5), x(1, 30), None, x(1, 2, 5)], 2, hidden_size=5, linear_before_reset=1)

# --- Both runtimes ---


def model_of(op, version, inputs, outputs, attributes):
    """The model, the inputs that it has, and the names of its outputs."""
    names = [f"x{i}" if given is not None else "" for i, given in enumerate(inputs)]
    given = {name: np.asarray(value) for name, value in zip(names, inputs) if name}
    fixed = [files.tensor(name, value) for name, value in given.items() if value.dtype == np.int64 or value.ndim == 0 and op != "If"]
    data = {name: value for name, value in given.items() if value.dtype != np.int64 and (value.ndim > 0 or op == "If")}
    if op == "If":  # the branches read it
        data = {"x0": cube, "truth": given["x0"]}
        names = ["truth"]
    results = [f"y{i}" for i in range(outputs)]
    infos = [files.value(name, files.KINDS[value.dtype.name], value.shape) for name, value in data.items()]
    node = files.node(op, names, results, **attributes)
    # Which type an output has follows from the node; a value without one is what models of other tools have, too.
    whole = files.model([node], infos, [files.field(1, name) for name in results], fixed, opset=version)
    return whole, data, results


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    listed = {(match[1], int(version))
              for match in re.finditer(r"^\| (\w+) \| ([\d, ]+)\+ \|", (ROOT / "docs" / "onnx-operators.md").read_text(), re.M)
              for version in match[2].split(",") if int(version) > 17}  # fmt: skip
    index = []
    for number, one in enumerate(cases):
        whole, data, results = model_of(*one)
        (folder / f"{number}.onnx").write_bytes(whole)
        inputs = []
        for name, value in data.items():
            (folder / f"{number}.{name}").write_bytes(np.ascontiguousarray(value).tobytes())
            inputs.append({"name": name, "type": value.dtype.name, "extents": list(value.shape)})
        index.append({"inputs": inputs, "outputs": results})
    (folder / "index.json").write_text(json.dumps(index))
    subprocess.run(["node", pathlib.Path(__file__).with_suffix(".cjs"), folder], check=True)
    theirs = json.loads((folder / "results.json").read_text())
    wrong, refused, held = [], [], set()
    for number, (one, said) in enumerate(zip(cases, theirs)):
        op, version, inputs, _, attributes = one
        title = f"{op}-{version} " + " ".join(f"{k}={v}" for k, v in attributes.items() if not isinstance(v, (bytes, np.ndarray)))
        if "error" in said:
            refused.append(f"{title}: {said['error']}")
            continue
        _, data, results = model_of(*one)
        terms = max([np.asarray(value).size for value in inputs if value is not None], default=1)
        try:
            got = [fn.onnx.load(folder / f"{number}.onnx", dtype=dtype).run(
                {name: value.astype(dtype) if value.dtype == np.float32 else value for name, value in data.items()})
                for dtype in ("float32", "float64")]  # fmt: skip
        except ValueError as error:
            wrong.append(f"{title}: {error}")
            continue
        held.add((op, version))
        for name, output in zip(results, said["outputs"]):
            kind = {"float32": np.float32, "int64": np.int64, "bool": np.bool_}[output["type"]]
            wanted = np.frombuffer((folder / output["file"]).read_bytes(), kind).reshape(output["extents"])
            ours, exact = (np.asarray(each[name]) for each in got)
            if ours.shape != wanted.shape or (ours.dtype.kind != wanted.dtype.kind):
                wrong.append(f"{title}: {name} is {ours.dtype} {ours.shape}, there {wanted.dtype} {wanted.shape}")
            elif kind is not np.float32:
                if not np.array_equal(ours, wanted):
                    wrong.append(f"{title}: {name} is {ours.tolist()}, there {wanted.tolist()}")
            else:
                # No sum has more terms than the largest input has elements; a function takes a few roundings.
                size = max(1.0, float(np.max(np.abs(exact), initial=0)))
                bound = (terms + 16) * 2.0**-24 * size
                for place, numbers in (("here", ours), ("there", wanted)):
                    off = float(np.max(np.abs(numbers - exact), initial=0))
                    if not off <= bound:
                        wrong.append(f"{title}: {name} {place} is off by {off:.2g}, at most {bound:.2g}")
    print(f"{len(cases)} models of opsets 18 to 26: {len(refused)} are not run by ONNX Runtime, {len(wrong)} differ; "
          f"{len(held & listed)} of {len(listed)} versions are held")  # fmt: skip
    for text in refused:
        print(f"  not run there: {text}")
    for op, version in sorted(listed - {(op, version) for op, version, *_ in cases}):
        wrong.append(f"{op}-{version} has no case")
    for text in wrong:
        print(f"  {text}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
