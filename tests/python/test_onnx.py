"""ONNX models from Python: run, differentiated, compiled, trained, saved, and what is no model."""

import copy
import pathlib
import pickle
import re
import subprocess
import sys

import numpy as np
import onnx_files as files
import pytest

import fenestra as fn
from fenestra import nn

ROOT = pathlib.Path(__file__).resolve().parents[2]


def mlp(rng, tmp_path, **more):
    """Relu(x a + b) c with its arrays: everything NumPy can say too."""
    arrays = {name: rng.normal(size=shape).astype(np.float32)
              for name, shape in (("a", (3, 5)), ("b", (5,)), ("c", (5, 2)))}
    nodes = [files.node("Gemm", ["x", "a", "b"], ["h"]), files.node("Relu", ["h"], ["r"]),
             files.node("MatMul", ["r", "c"], ["scores"]), files.node("Softmax", ["scores"], ["y"], axis=1)]
    path = tmp_path / "mlp.onnx"
    path.write_bytes(files.model(
        nodes, [files.value("x", files.FLOAT, ["N", 3])], [files.value("y", files.FLOAT, ["N", 2])],
        [files.tensor(name, array) for name, array in arrays.items()], metadata={"author": "a test"}))
    return path, arrays


def reference(arrays, x):
    h = np.maximum(x @ arrays["a"].astype(np.float64) + arrays["b"], 0)
    return h, h @ arrays["c"].astype(np.float64)


# Products of at most 5 terms, one after the other, and a softmax: far below a hundred roundings.
def close(ours, theirs, dtype="float32"):
    np.testing.assert_allclose(np.asarray(ours), theirs, rtol=0, atol=100 * np.finfo(dtype).eps * np.abs(theirs).max())


def test_a_file_says_what_it_takes_and_gives(rng, tmp_path):
    path, arrays = mlp(rng, tmp_path)
    net = fn.onnx.load(path)
    assert net.inputs == [fn.onnx.ValueInfo("x", "float32", ("N", 3))]
    assert net.outputs == [fn.onnx.ValueInfo("y", "float32", ("N", 2))]
    assert (net.opset, net.metadata, net.kind, net.dtype) == (17, {"author": "a test"}, "onnx", np.float32)
    assert list(net.parameters()) == ["a", "b", "c"] and net.buffers() == {}
    assert net.scores_value == "scores" and net.file == str(path)
    assert repr(net) == f"<Network {path}: x(N, 3) -> y(N, 2)>"
    for name, array in arrays.items():
        np.testing.assert_array_equal(net.parameters()[name].numpy(), array)
    assert nn.parameter_count(net) == 30
    assert nn.summary(net, (4, 3)).output == (4, 2)
    assert net.check({"x": (4, 3)}) == [] and "Gemm" in net.check({"x": (4, 5)})[0] and "open" in net.check()[0]


def test_a_name_that_is_no_text_is_refused_with_its_byte(rng, tmp_path):
    path, _ = mlp(rng, tmp_path)
    for name in (b"scores", b"author"):
        broken = name[:-1] + b"\xff"
        bad = path.read_bytes().replace(name, broken)
        place = bad.find(broken) + len(name) - 1
        (tmp_path / "bad.onnx").write_bytes(bad)
        for read in (fn.onnx.load, fn.onnx.problems):
            with pytest.raises(OSError, match=rf"byte {place}: .*UTF-8"):
                read(tmp_path / "bad.onnx")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_it_computes_what_numpy_computes(rng, tmp_path, dtype):
    path, arrays = mlp(rng, tmp_path)
    x = rng.normal(size=(4, 3)).astype(dtype)
    scores = reference(arrays, x)[1]
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    net = fn.onnx.load(path, dtype=dtype)
    close(net(x), e / e.sum(axis=1, keepdims=True), dtype)
    assert list(net.run({"x": x})) == ["y"]
    close(fn.onnx.load(path, dtype=dtype, outputs=["scores", "h"]).run({"x": x})["scores"], scores, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients_by_weights_and_inputs_are_those_of_the_formula(rng, tmp_path, dtype):
    path, arrays = mlp(rng, tmp_path)
    x = rng.normal(size=(4, 3)).astype(dtype)
    net = fn.onnx.load(path, dtype=dtype, outputs=["scores"])
    bars = fn.grad(lambda net, x: fn.sum(net(x)), argnums=(0, 1))(net, x)
    h, _ = reference(arrays, x)
    h_bar = (h > 0) * arrays["c"].astype(np.float64).sum(axis=1)
    got = bars[0].parameters()
    close(got["c"], np.repeat(h.sum(axis=0)[:, None], 2, axis=1), dtype)
    close(got["a"], x.T @ h_bar, dtype)
    close(got["b"], h_bar.sum(axis=0), dtype)
    close(bars[1], h_bar @ arrays["a"].astype(np.float64).T, dtype)


def test_every_transform_takes_it(rng, tmp_path):
    net = fn.onnx.load(mlp(rng, tmp_path)[0], dtype="float64")
    x, dx = rng.normal(size=(2, 4, 3))
    loss = lambda net, x: fn.mean(net(x) ** 2)
    slope = fn.grad(loss, argnums=1)(net, x)
    y, dy = fn.jvp(lambda x: net(x), (x,), (dx,))
    y2, pull = fn.vjp(lambda x: net(x), x)
    v = rng.normal(size=y.shape)
    np.testing.assert_allclose(np.sum(dy.numpy() * v), np.sum(np.asarray(pull(fn.tensor(v))) * dx), rtol=1e-12)
    np.testing.assert_array_equal(y.numpy(), y2.numpy())
    for f in (fn.compile(loss), fn.compile(fn.grad(loss, argnums=1))):
        f(net, x)
    np.testing.assert_allclose(fn.compile(fn.grad(loss, argnums=1))(net, x).numpy(), slope.numpy(), rtol=1e-12)
    # A sample each: vmap adds the axis that the model has anyway.
    one = fn.vmap(lambda row: net(row.reshape(1, 3)))(x)
    np.testing.assert_allclose(one.numpy()[:, 0], y.numpy(), rtol=1e-13)
    each = fn.vmap(fn.grad(lambda net, row: fn.sum(net(row.reshape(1, 3)) ** 2)), in_axes=(None, 0))(net, x)
    whole = fn.grad(lambda net, x: fn.sum(net(x) ** 2))(net, x)
    for name, bar in whole.parameters().items():
        np.testing.assert_allclose(each.parameters()[name].numpy().sum(axis=0), bar.numpy(), rtol=0, atol=1e-14)
    assert fn.gradcheck(lambda x: loss(net, x), x)


def test_compiled_functions_see_other_weights_and_what_is_frozen(rng, tmp_path):
    net = fn.onnx.load(mlp(rng, tmp_path)[0])
    x = rng.normal(size=(4, 3)).astype(np.float32)
    gradient = fn.compile(fn.grad(lambda net, x: fn.sum(net(x)[:, 0])))
    assert list(gradient(net, x).parameters()) == ["a", "b", "c"]
    net.update({"b": np.ones(5, np.float32)})
    np.testing.assert_array_equal(gradient(net, x).parameters()["a"].numpy(),
                                  fn.grad(lambda net: fn.sum(net(x)[:, 0]))(net).parameters()["a"].numpy())
    assert net.set_trained("[ab]", False) == ["a", "b"]
    assert list(net.parameters()) == ["c"] and list(net.buffers()) == ["a", "b"]
    assert list(gradient(net, x).parameters()) == ["c"]
    assert net.set_trained("a", True) == ["a"]
    assert list(gradient(net, x).parameters()) == ["a", "c"]


def test_inputs_and_outputs_by_name_with_integers_and_truth_values(rng, tmp_path):
    nodes = [files.node("Where", ["keep", "x", "other"], ["y"]), files.node("Gather", ["y", "which"], ["z"], axis=1),
             files.node("ArgMax", ["z"], ["best"], axis=1, keepdims=0), files.node("Greater", ["z", "limit"], ["large"])]
    path = tmp_path / "named.onnx"
    F, I, B = files.FLOAT, files.INT64, files.BOOL
    path.write_bytes(files.model(
        nodes, [files.value("x", F, [None, 4]), files.value("keep", B, [4]), files.value("which", I, ["K"])],
        [files.value("z", F, ["N", "K"]), files.value("best", I, ["N"]), files.value("large", B, ["N", "K"])],
        [files.tensor("other", np.zeros(4, np.float32)), files.tensor("limit", np.array(0.5, np.float32))]))
    net = fn.onnx.load(path)
    x, keep, which = rng.normal(size=(3, 4)).astype(np.float32), np.array([True, False, True, True]), np.array([3, 1, 0])
    assert [info.dtype for info in net.inputs] == ["float32", "bool", "int64"]
    assert net.inputs[0].shape == (None, 4)
    got = net.run({"x": x, "keep": keep, "which": which})
    z = np.where(keep, x, 0)[:, which]
    np.testing.assert_array_equal(got["z"].numpy(), z)
    np.testing.assert_array_equal(got["best"], z.argmax(axis=1))
    assert got["large"].dtype == bool
    np.testing.assert_array_equal(got["large"], z > 0.5)
    bar = fn.grad(lambda x: fn.sum(net.run({"x": x, "keep": keep, "which": which})["z"]))(x)
    np.testing.assert_array_equal(bar.numpy(), np.repeat([[1, 0, 0, 1]], 3, axis=0))
    program = fn.compile(lambda x: net.run({"x": x, "keep": keep, "which": which})["z"], x)
    np.testing.assert_array_equal(program(x).numpy(), z)
    assert "limit" not in net.parameters() and "other" in net.parameters()
    with pytest.raises(ValueError, match=r"has 3 inputs\n  fix: run\(\{'x': \.\.\., 'keep': \.\.\., 'which': \.\.\.\}\)"):
        net(x)
    for inputs, error, words in (
        ({"x": x, "keep": keep}, ValueError, "'which' is not given"),
        ({"x": x, "keep": keep, "which": which, "w": x}, ValueError, "has no input 'w'"),
        ({"x": x, "keep": keep, "which": x}, TypeError, "which"),
        ({"x": x.astype(np.float64), "keep": keep, "which": which}, TypeError, "x is float64, the network is float32"),
        ([x], TypeError, "list is no dict"),
    ):
        with pytest.raises(error, match=words):
            net.run(inputs)


def test_saving_changes_the_weights_and_nothing_else(rng, tmp_path):
    path, arrays = mlp(rng, tmp_path)
    net = fn.onnx.load(path)
    net.save(tmp_path / "same.onnx")
    assert (tmp_path / "same.onnx").read_bytes() == path.read_bytes()
    net.update({"b": arrays["b"] + 1})
    net.save(tmp_path / "tuned.onnx", {"tuned": "yes"})
    old, new = path.read_bytes(), (tmp_path / "tuned.onnx").read_bytes()
    assert arrays["a"].tobytes() in new and (arrays["b"] + 1).tobytes() in new and arrays["b"].tobytes() not in new
    assert len(new) == len(old) + len(files.field(14, files.field(1, "tuned") + files.field(2, "yes")))
    again = fn.onnx.load(tmp_path / "tuned.onnx")
    assert again.metadata == {"author": "a test", "tuned": "yes"}
    np.testing.assert_array_equal(again.parameters()["b"].numpy(), arrays["b"] + 1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_copies_and_pickles_have_the_same_numbers(rng, tmp_path, dtype):
    net = fn.onnx.load(mlp(rng, tmp_path)[0], dtype=dtype, outputs=["scores"])
    net.update({"b": (np.arange(5) / 3).astype(dtype)})  # of float64: no numbers that the file can hold
    net.set_trained("c", False)
    x = rng.normal(size=(2, 3)).astype(dtype)
    for other in (net.copy(), copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert type(other) is fn.onnx.Network and list(other.parameters()) == ["a", "b"]
        np.testing.assert_array_equal(other(x).numpy(), net(x).numpy())
        other.update({"b": np.zeros(5, dtype)})
    assert net.parameters()["b"].numpy()[3] == np.asarray(1, dtype)


def test_exported_layers_come_back_with_their_numbers(rng, tmp_path):
    net = nn.initialise(nn.Sequential(
        nn.Conv(2, 4, kernel=3, padding=1), nn.BatchNorm(4), nn.Relu(), nn.MaxPool(2), nn.Flatten(), nn.Linear(16, 3)), 3)
    path = tmp_path / "net.onnx"
    fn.onnx.export_model(path, net, (2, 4, 4), nn.ModelInfo("net", ["a", "b", "c"]))
    again = fn.onnx.load(path)
    x = rng.normal(size=(5, 2, 4, 4)).astype(np.float32)
    np.testing.assert_allclose(again(x).numpy(), net(x).numpy(), rtol=0, atol=1e-5)
    assert {**again.parameters(), **again.buffers()}.keys() == {**net.parameters(), **net.buffers()}.keys()
    assert list(again.buffers()) == list(net.buffers())
    assert fn.onnx.problems(path) == [] and again.cut_off() == [] and again.check() != []
    assert fn.onnx.load(path, classes=7)(x).shape == (5, 7)
    cut = fn.onnx.load(path, classes=6, cut=rectified(path), sample=(2, 4, 4), seed=4)
    assert cut(x).shape == (5, 6) and "head.weight" in cut.parameters()
    # By the batch, in training alone.
    by_batch = fn.onnx.load(path, batch_norm="batch")
    training = nn.Pass.training(1)
    by_batch(x, training)
    nn.apply_updates(by_batch, training)
    name = next(iter(by_batch.buffers()))
    assert not np.array_equal(by_batch.buffers()[name].numpy(), again.buffers()[name].numpy())


def rectified(path):
    """The value that the rectifier makes: the first output of a node of that kind, in the file's own bytes."""
    data = path.read_bytes()
    end = data.index(files.field(4, "Relu"))
    names = [name for name in (data[max(0, end - 60):end]).split(b"\x12")]
    return names[-1][1 : 1 + names[-1][0]].decode()


def test_a_trainer_trains_it(rng, tmp_path):
    path, _ = mlp(rng, tmp_path)
    x = rng.normal(size=(64, 3)).astype(np.float32)
    y = (x[:, 0] > 0).astype(np.int64)
    net = fn.onnx.load(path, outputs=["scores"])
    net.set_trained("b", False)
    trainer = nn.Trainer(net, optimiser="adamw rate=0.05")
    data = nn.array_dataset(x.reshape(64, 3), y)
    result = trainer.fit(nn.Loader(data, batch=16, seed=1), 20, validation=nn.Loader(data, batch=64))
    assert result.validation.score > 0.9
    tuned = trainer.trained()
    np.testing.assert_array_equal(tuned.buffers()["b"].numpy(), net.buffers()["b"].numpy())
    tuned.save(tmp_path / "tuned.onnx")
    np.testing.assert_array_equal(fn.onnx.load(tmp_path / "tuned.onnx", outputs=["scores"])(x).numpy(), tuned(x).numpy())


def test_the_checker_of_onnx_accepts_what_is_written(rng, tmp_path):
    onnx = pytest.importorskip("onnx", reason="Debian's python3-onnx is not installed")
    from onnx import numpy_helper

    def check(path):
        onnx.checker.check_model(str(path), full_check=True)
        return onnx.load(str(path))

    # The checker is of the standard itself, and infers all shapes again.
    for name, entry in nn.model_entries().items():
        net = nn.make_model(name, width=0.25)
        path = tmp_path / f"{name}.onnx"
        fn.onnx.export_model(path, net, entry.input, nn.ModelInfo(name))
        said = check(path)
        assert {tensor.name for tensor in said.graph.initializer} >= {*net.parameters(), *net.buffers()}
        output = said.graph.output[0].type.tensor_type.shape.dim
        assert [d.dim_value for d in output][1:] == list(nn.summary(net, (1, *entry.input)).output)[1:], name
    path, arrays = mlp(rng, tmp_path)
    net = fn.onnx.load(path)
    net.update({name: array + 1 for name, array in arrays.items()})
    net.save(tmp_path / "tuned.onnx", {"tuned": "yes"})
    said = check(tmp_path / "tuned.onnx")
    assert {entry.key: entry.value for entry in said.metadata_props} == {"author": "a test", "tuned": "yes"}
    for tensor in said.graph.initializer:
        np.testing.assert_array_equal(numpy_helper.to_array(tensor), arrays[tensor.name] + 1)
    lenet = tmp_path / "lenet.onnx"
    fn.onnx.load(lenet, classes=3, seed=1).save(tmp_path / "head.onnx")
    assert check(tmp_path / "head.onnx").graph.output[0].type.tensor_type.shape.dim[1].dim_value == 3
    fn.onnx.load(lenet, classes=4, cut=rectified(lenet), sample=(1, 28, 28)).save(tmp_path / "cut.onnx")
    assert "head.weight" in [tensor.name for tensor in check(tmp_path / "cut.onnx").graph.initializer]


@pytest.mark.parametrize("content, words", [
    (b"", "empty"),
    (b"<!DOCTYPE html><html></html>", "web page"),
    (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "Git LFS"),
    (b"\xff" * 40, "bad.onnx"),
    (files.model([], [], [], opset=1000), "opset"),
])  # fmt: skip
def test_what_is_no_model_is_said(tmp_path, content, words):
    path = tmp_path / "bad.onnx"
    path.write_bytes(content)
    for read in (fn.onnx.load, fn.onnx.problems):
        with pytest.raises((OSError, ValueError), match=words) as caught:
            read(path)
        assert "\n  fix: " in str(caught.value)


def test_all_problems_are_listed_at_once(tmp_path):
    path = tmp_path / "bad.onnx"
    value = lambda name: files.value(name, files.FLOAT, [3])
    path.write_bytes(files.model([files.node("Frobnicate", ["x"], ["h"]), files.node("Nonsense", ["h"], ["y"])],
                                 [value("x")], [value("y")]))
    found = fn.onnx.problems(path)
    assert len(found) == 2 and "Frobnicate" in found[0] and "Nonsense" in found[1]
    with pytest.raises(ValueError, match="2 problems(.|\n)*Frobnicate(.|\n)*Nonsense"):
        fn.onnx.load(path)


def test_wrong_arguments_are_refused_with_words(rng, tmp_path):
    path, _ = mlp(rng, tmp_path)
    net = fn.onnx.load(path)
    for call, error, words in (
        (lambda: fn.onnx.Network(), TypeError, "onnx.load"),
        (lambda: fn.onnx.load(tmp_path / "none.onnx"), OSError, "none.onnx"),
        (lambda: fn.onnx.load(3), TypeError, "PathLike"),
        (lambda: fn.onnx.load(path, dtype="int32"), TypeError, "float32"),
        (lambda: fn.onnx.load(path, batch_norm="maybe"), ValueError, "'frozen' or 'batch'"),
        (lambda: fn.onnx.load(path, outputs="scores"), TypeError, "names"),
        (lambda: fn.onnx.load(path, outputs=["nothing"]), ValueError, "nothing"),
        (lambda: fn.onnx.load(path, classes="ten"), TypeError, "an int"),
        (lambda: fn.onnx.load(path, classes=-1), ValueError, "-1"),
        (lambda: fn.onnx.load(path, cut="h"), ValueError, "classes and sample"),
        (lambda: fn.onnx.load(path, budget="1 GiB"), TypeError, "budget is str, needed an int"),
        (lambda: fn.onnx.load(path, budget=-1), ValueError, r"budget = -0x1\n  fix: from 0 to 2\^64 - 1"),
        (lambda: net.set_trained("z*", False), ValueError, "there is no weight 'z\\*'"),
        (lambda: net.set_trained(1, False), TypeError, "is no text"),
        (lambda: net.update({"d": [1.0]}), ValueError, "'d'"),
        (lambda: net.update({"b": np.ones(4, np.float32)}), ValueError, r"\[4\]|\(4"),
        (lambda: net(np.ones((2, 4), np.float32)), ValueError, "Gemm"),
        (lambda: net(np.ones((2, 3))), TypeError, "float64, the network is float32"),
        (lambda: net(np.ones((2, 3), np.float32), 7), TypeError, "pass_"),
        (lambda: net.save(tmp_path / "no" / "folder.onnx"), OSError, "folder"),
        (lambda: net.check({"x": "2x3"}), TypeError, "x"),
        (lambda: fn.onnx.export_model(tmp_path / "y.onnx", net, (3,)), TypeError, "net.save"),
        (lambda: fn.onnx.export_model(tmp_path / "y.onnx", fn.relu, (3,)), TypeError, "no model"),
        (lambda: fn.onnx.export_model(tmp_path / "y.onnx", nn.Function(fn.relu), (3,)), ValueError, "description"),
        (lambda: fn.grad(lambda net: net.save(tmp_path / "y.onnx"))(net), ValueError, "belongs to a transform"),
    ):  # fmt: skip
        with pytest.raises(error, match=words):
            call()
    assert not (tmp_path / "y.onnx").exists()


def test_sizes_of_a_model_are_bounded_by_a_budget_in_bytes(tmp_path):
    path = tmp_path / "tile.onnx"
    path.write_bytes(files.model(
        [files.node("Tile", ["x", "repeats"], ["y"])], [files.value("x", files.FLOAT, [1000])],
        [files.value("y", files.FLOAT, [None])], [files.tensor("repeats", np.array([1000]))]))  # fmt: skip
    x = np.zeros(1000, np.float32)
    assert fn.onnx.load(path)(x).shape == (10**6,)
    assert fn.onnx.load(path, budget=4 * 10**6)(x).shape == (10**6,)
    small = fn.onnx.load(path, budget=4 * 10**6 - 1)
    words = r"\(1000000,\) passes the budget of 3999999 bytes\n  fix: smaller inputs, or a larger budget$"
    for net in (small, small.copy(), pickle.loads(pickle.dumps(small))):
        with pytest.raises(ValueError, match=words) as caught:
            net(x)
        assert caught.value.code == "memory-limit"
    assert re.search("passes the budget", small.check()[0])


def test_messages_of_operators_are_in_pythons_words(tmp_path):
    path = tmp_path / "conv.onnx"
    path.write_bytes(files.model(
        [files.node("Conv", ["x", "w"], ["y"])], [files.value("x", files.FLOAT, [1, 3, 4, 4])],
        [files.value("y", files.FLOAT, [1, 1, 4, 4])], [files.tensor("w", np.ones((1, 2, 1, 1), np.float32))]))  # fmt: skip
    with pytest.raises(ValueError, match=r"(?s)onnx: node .*Conv-11.* input has 3 channels.* fix: weight for 3 channels"):
        fn.onnx.load(path)(np.zeros((1, 3, 4, 4), np.float32))


def test_the_example_tunes_a_file(tmp_path):
    script = ROOT / "examples" / "python" / "onnx_finetune.py"
    ran = subprocess.run([sys.executable, script, tmp_path], capture_output=True, text=True, check=True, cwd=ROOT)
    assert "held-out digits are right" in ran.stdout and ", a " in ran.stdout
    assert len([line for line in script.read_text().split('"""')[2].splitlines() if line.strip()]) <= 30
    five, tuned = (fn.onnx.load(tmp_path / name) for name in ("five.onnx", "tuned.onnx"))
    np.testing.assert_array_equal(five.parameters()["0.weight"].numpy(), tuned.parameters()["0.weight"].numpy())


def test_versions_of_operators_are_those_of_the_standard():
    onnx = pytest.importorskip("onnx", reason="Debian's python3-onnx is not installed")
    newest = onnx.defs.onnx_opset_version()
    theirs = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            theirs.setdefault(schema.name, set()).add(schema.since_version)
    theirs["ThresholdedRelu"].add(1)  # of its experimental days, without a schema
    table = (ROOT / "docs" / "onnx-operators.md").read_text()
    ours = {match[1]: {int(version) for version in match[2].split(",")}
            for match in re.finditer(r"^\| (\w+) \| ([\d, ]+)\+ \|", table, re.M)}  # fmt: skip
    assert len(ours) > 120
    for op, versions in ours.items():
        assert {version for version in versions if version <= newest} == theirs.get(op, set()), op
