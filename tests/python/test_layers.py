"""Layers: made of the library's own fields, trees of their parameters, in every transform and in files."""

import copy
import inspect
import pickle
import threading

import numpy as np
import pytest

import fenestra as fn
from fenestra import _core, kinds, layers, nn


def small_net(dtype="float32", key=1):
    net = nn.Sequential(
        conv=nn.Conv(1, 3, kernel=3, padding=1, dtype=dtype), norm=nn.BatchNorm(3, dtype=dtype), act=nn.Relu(dtype=dtype),
        flat=nn.Flatten(dtype=dtype), head=nn.Linear(48, 4, dtype=dtype))  # fmt: skip
    return nn.initialise(net, key)


def batch(rng, dtype="float64", count=5):
    return rng.normal(size=(count, 1, 4, 4)).astype(dtype), rng.integers(0, 4, count)


def loss(net, x, y, pass_=None):
    return fn.cross_entropy(net(x, pass_), y)


def assert_same(a, b):
    assert list(a) == list(b)
    for name in a:
        np.testing.assert_array_equal(np.asarray(a[name]), np.asarray(b[name]), err_msg=name)


# --- Making layers ---


def test_every_kind_of_the_library_is_a_class_with_words_for_it_and_its_fields():
    for kind in nn.layer_kinds():
        made = getattr(nn, layers.class_name(kind))
        assert issubclass(made, nn.Layer) and made.__doc__
        if made.__name__ in kinds.__all__:
            assert kind in kinds.KINDS, f"{kind} has no words in kinds.py"
            for field in layers.layer_fields(kind):
                assert field.key in kinds.FIELDS or f"{kind}.{field.key}" in kinds.FIELDS, (kind, field.key)
                assert f"    {field.name}: " in made.__doc__


def test_signatures_are_what_is_taken():
    assert str(inspect.signature(nn.Conv)) == (
        "(in_, out, *, kernel=1, stride=1, padding=0, dilation=1, groups=1, bias=True, dtype='float32')")
    assert str(inspect.signature(nn.MaxPool)).startswith("(kernel=None, *, stride=None, padding=0")


@pytest.mark.parametrize("make", [
    lambda: nn.Conv(2, 4, kernel=[3, 1], stride=2, padding=[(1, 0), (0, 1)], dilation=1, groups=2, bias=False),
    lambda: nn.Conv(2, 4, kernel=np.int64(3), padding="same"), lambda: nn.Conv(1, 1, kernel=[3], padding="valid"),
    lambda: nn.MaxPool(3, stride=2, padding=1, pad_cells="zero"), lambda: nn.AvgPool([2, 3], divisor_override=5),
    lambda: nn.LayerNorm(7, channels=True), lambda: nn.Dropout(0.25, channels=True), lambda: nn.LeakyRelu(0.2),
    lambda: nn.Residual(nn.Relu(), projection=nn.Identity(), after=nn.Tanh()), lambda: nn.Sequential(),
    lambda: nn.Branches(nn.Relu(), nn.Sequential(a=nn.Gelu())), lambda: nn.Upsample([2, 3], bilinear=True)])  # fmt: skip
def test_a_repr_is_what_makes_the_layer_again(make):
    layer = make()
    names = {name: getattr(nn, name) for name in [*kinds.__all__, "Sequential", "Residual", "Branches"]}
    again = eval(repr(layer), names)
    assert again.describe() == layer.describe() == nn.build_layer(layer.describe()).describe()


def test_a_layer_computes_what_the_operator_does(rng):
    x = rng.normal(size=(2, 4, 7, 6))
    conv = nn.initialise(nn.Conv(4, 6, kernel=[3, 2], stride=[2, 1], padding=[(1, 0), (0, 1)], groups=2, dtype="float64"), 3)
    p = conv.parameters()
    expected = fn.conv2d(x, p["weight"], p["bias"], stride=[2, 1], padding=[(1, 0), (0, 1)], groups=2)
    np.testing.assert_array_equal(conv(x).numpy(), expected.numpy())
    pool = nn.MaxPool(3, stride=2, padding=1, dtype="float64")
    np.testing.assert_array_equal(pool(x).numpy(), fn.max_pool2d(x, 3, stride=2, padding=1).numpy())


@pytest.mark.parametrize("call,error,words", [
    (lambda: nn.Conv(3, 4, kernal=3), TypeError, "'kernel'"), (lambda: nn.Conv(3), TypeError, "out"),
    (lambda: nn.Conv(3, 4, kernel="three"), TypeError, "one for each spatial axis"),
    (lambda: nn.Conv(3, 4, kernel=True), TypeError, "kernel"), (lambda: nn.Conv(3, 4, bias=1), TypeError, "True or False"),
    (lambda: nn.Conv(3, 4, padding="some"), TypeError, "padding"), (lambda: nn.Conv(3, 0), ValueError, "out"),
    (lambda: nn.Conv(3, 4, groups=2), ValueError, "groups"), (lambda: nn.Conv(3, 4, dtype="int8"), TypeError, "float32"),
    (lambda: nn.Conv(3, 4, kernel=[]), ValueError, "kernel"), (lambda: nn.Dropout(1.5), ValueError, "drop"),
    (lambda: nn.Dropout(float("nan")), ValueError, ""), (lambda: nn.MaxPool(2, pad_cells="none"), ValueError, "ignore"),
    (lambda: nn.Sequential(nn.Relu), TypeError, r"Relu\(...\)"), (lambda: nn.Sequential(3), TypeError, "no layer"),
    (lambda: nn.Sequential(**{"a.b": nn.Relu()}), ValueError, "without a dot"),
    (lambda: nn.Sequential(nn.Relu(), nn.Relu(dtype="float64")), TypeError, "dtype='float32'"),
    (lambda: nn.Branches(), ValueError, "at least one"), (lambda: nn.build_layer({"layer": "konv"}), ValueError, "conv"),
    (lambda: nn.build_layer("{"), ValueError, ""), (lambda: nn.build_layer({"layer": "relu", "x": 1}), ValueError, "no fields"),
    (lambda: nn.Layer(), TypeError, "nn.Conv"), (lambda: nn.make_model("lenett"), ValueError, "'lenet'"),
    (lambda: nn.lenet(width=-1), ValueError, "width"), (lambda: nn.Function(3), TypeError, "no function"),
    (lambda: nn.Key(-1), ValueError, "2\\^64"), (lambda: nn.Key("one"), TypeError, "whole number"),
    (lambda: nn.Relu()(np.ones(3)), TypeError, "float32"), (lambda: nn.Relu()(np.ones(3, "float32"), 1), TypeError, "Pass"),
    (lambda: nn.Linear(3, 4)(np.ones((2, 5), "float32")), ValueError, "3"),
    (lambda: nn.Sequential(nn.Flatten(), head=nn.Linear(3, 4))(np.ones((2, 5), "float32")), ValueError, '"head"'),
    (lambda: nn.initialise(3, 1), TypeError, "no model"), (lambda: nn.summary(nn.Relu(), "x"), TypeError, "shape"),
    (lambda: nn.apply_updates(nn.Relu(), None), TypeError, "no pass")])  # fmt: skip
def test_wrong_input_says_what_is_wrong(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call()
    assert len(str(caught.value)) > 10


# --- Parameters and buffers ---


def test_names_are_dotted_in_order_and_numbers_are_set_by_them(rng):
    net = small_net()
    assert list(net.parameters()) == ["conv.weight", "conv.bias", "norm.weight", "norm.bias", "head.weight", "head.bias"]
    assert list(net.buffers()) == ["norm.running_mean", "norm.running_var"]
    bias = rng.normal(size=4).astype("float32")
    net.update({"head.bias": bias, "norm.running_mean": [1.0, 2.0, 3.0]})
    bias[0] = 77  # the network has its own memory
    assert net.parameters()["head.bias"].numpy()[0] != 77
    assert net.buffers()["norm.running_mean"].tolist() == [1, 2, 3]
    before = net.parameters()
    for wrong, error in (({"head.bais": bias}, ValueError), ({"head.bias": np.ones(5, "float32")}, ValueError),
                         ({"conv.bias": np.ones(3, "float32"), "head.bias": np.ones(4)}, TypeError)):  # fmt: skip
        with pytest.raises(error):
            net.update(wrong)
    with pytest.raises(ValueError, match="'head.bias'"):
        net.update({"head.bais": bias})
    assert_same(net.parameters(), before)


def test_copies_are_independent_and_keep_their_numbers():
    net = small_net()
    copies = [net.copy(), copy.copy(net), copy.deepcopy(net), pickle.loads(pickle.dumps(net)), fn.tree_map(lambda w: w, net)]
    for other in copies:
        assert type(other) is nn.Sequential
        assert_same(other.tree_state(), net.tree_state())
    net.update({"conv.bias": np.ones(3, "float32")})
    assert all(other.parameters()["conv.bias"].tolist() == [0, 0, 0] for other in copies)


def test_the_same_key_draws_the_same_weights_on_every_machine():
    assert_same(small_net().parameters(), small_net().parameters())
    a, b = small_net(key=1).parameters()["conv.weight"], small_net(key=2).parameters()["conv.weight"]
    assert not np.array_equal(a.numpy(), b.numpy())


# --- Transforms ---


def test_gradients_of_a_model_are_a_model_and_those_of_the_plain_function(rng):
    net = small_net("float64")
    x, y = batch(rng)
    value, bars = fn.value_and_grad(loss)(net, x, y)
    assert isinstance(bars, nn.Sequential) and list(bars.parameters()) == list(net.parameters())

    def plain(p, x, y):
        h = fn.conv2d(x, p["conv.weight"], p["conv.bias"], padding=1)
        mean, var = (net.buffers()[f"norm.running_{what}"].reshape(1, 3, 1, 1) for what in ("mean", "var"))
        h = (h - mean) / fn.sqrt(var + 1e-5) * p["norm.weight"].reshape(1, 3, 1, 1) + p["norm.bias"].reshape(1, 3, 1, 1)
        return fn.cross_entropy(fn.linear(fn.relu(h).reshape(len(x), -1), p["head.weight"], p["head.bias"]), y)

    expected_value, expected = fn.value_and_grad(plain)(net.parameters(), x, y)
    np.testing.assert_allclose(value.item(), expected_value.item(), rtol=1e-12)
    for name, bar in bars.parameters().items():
        np.testing.assert_allclose(bar.numpy(), expected[name].numpy(), rtol=1e-9, atol=1e-12, err_msg=name)
    applied = fn.grad(lambda p: fn.cross_entropy(nn.apply(net, p, x), y))(net.parameters())
    assert_same(applied, bars.parameters())


def test_gradients_agree_with_difference_quotients_in_training_too(rng):
    net = small_net("float64")
    x, y = batch(rng)
    assert fn.gradcheck(lambda net: loss(net, x, y, nn.Pass.training(3)), net)


def test_a_pass_carries_what_buffers_become_and_nothing_changes_before(rng):
    net = small_net("float64")
    x, y = batch(rng)
    training = nn.Pass.training(nn.Key(1))
    assert training.is_training and not nn.Pass.inference().is_training
    before = net.buffers()
    fn.grad(loss)(net, x, y, training)
    assert_same(net.buffers(), before)
    nn.apply_updates(net, training)
    h = fn.conv2d(x, *[net.parameters()[f"conv.{n}"] for n in ("weight", "bias")], padding=1).numpy()
    np.testing.assert_allclose(net.buffers()["norm.running_mean"].numpy(), 0.1 * h.mean(axis=(0, 2, 3)), rtol=1e-12)


def test_forward_mode_and_all_samples_at_once(rng):
    net = small_net("float64")
    x, y = batch(rng)
    direction = fn.tree_map(lambda w: rng.normal(size=w.shape), net)
    _, slope = fn.jvp(lambda net: loss(net, x, y), (net,), (direction,))
    bars = fn.grad(loss)(net, x, y).parameters()
    expected = sum(np.sum(bars[n].numpy() * d.numpy()) for n, d in direction.parameters().items())
    np.testing.assert_allclose(slope.item(), expected, rtol=1e-10)
    each = fn.vmap(lambda image: net(image.reshape(1, 1, 4, 4))[0])(x)
    np.testing.assert_allclose(each.numpy(), net(x).numpy(), rtol=1e-12)
    samples = fn.per_sample_grad(lambda net, x, goal: fn.sum(net(x.reshape(1, 1, 4, 4)) * goal))(net, x, np.ones((5, 4)))
    whole = fn.grad(lambda net: fn.sum(net(x)))(net).parameters()
    for name, bar in samples.parameters().items():
        assert bar.shape == (5, *whole[name].shape)
        np.testing.assert_allclose(bar.numpy().sum(axis=0), whole[name].numpy(), rtol=1e-9, atol=1e-12)


def test_programs_take_models_as_arguments_and_see_every_change(rng):
    calls = []

    @fn.compile
    def step(net, x, y):
        calls.append(1)
        training = nn.Pass.training(0)
        value, bars = fn.value_and_grad(loss)(net, x, y, training)
        nn.apply_updates(net, training)
        return value, bars, net.buffers()

    net = small_net("float64")
    for _ in range(3):
        x, y = batch(rng)
        training = nn.Pass.training(0)
        expected, expected_bars = fn.value_and_grad(loss)(net, x, y, training)
        value, bars, buffers = step(net, x, y)
        assert isinstance(bars, nn.Sequential)
        np.testing.assert_array_equal(value.numpy(), expected.numpy())
        assert_same(bars.parameters(), expected_bars.parameters())
        nn.apply_updates(net, training)
        assert_same(buffers, net.buffers())
        net = fn.tree_map(lambda w, bar: w - 0.1 * bar, net, bars)
        net.update(buffers)
    assert len(calls) == 1
    step(nn.initialise(nn.Sequential(nn.Flatten(dtype="float64"), nn.Linear(16, 4, dtype="float64")), 1), x, y)
    assert len(calls) == 2
    assert "net['conv.weight'] float64 (3, 1, 3, 3)" in step.programs()[0].arguments
    one = fn.compile(loss, net, x, y)
    np.testing.assert_array_equal(one(net, x, y).numpy(), loss(net, x, y).numpy())
    with pytest.raises(ValueError, match="network"):
        one(nn.Linear(16, 4, dtype="float64"), x, y)
    inference = fn.compile(net, x)
    np.testing.assert_array_equal(inference(x).numpy(), net(x).numpy())
    folded = fn.compile(net, x, fold=True)
    np.testing.assert_allclose(folded(x).numpy(), net(x).numpy(), rtol=1e-10, atol=1e-12)
    assert "batch_norm" not in folded.explain() and len(folded.explain()) < len(inference.explain())


def test_a_layer_changes_for_those_who_begin_afterwards():
    net = nn.initialise(nn.Sequential(*(nn.Conv(8, 8, kernel=3, padding=1) for _ in range(8))), 1)
    x = np.ones((4, 8, 24, 24), "float32")
    states = [small.tree_state() for small in (net.copy(), nn.initialise(net.copy(), 2))]
    expected = [net.tree_restored(list(state.values()))(x).numpy() for state in states]
    done, found = threading.Event(), []

    def change():
        while not done.is_set():
            for state in states:
                net.update(state)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(20):
            found.append(net(x).numpy())
    finally:
        done.set()
        thread.join()
    assert all(any(np.array_equal(y, e) for e in expected) for y in found)


def test_dropout_draws_by_key_and_is_refused_where_its_mask_would_be_a_constant():
    drop, x = nn.Dropout(0.5), np.ones((100, 10), "float32")
    a, b, c = (drop(x, nn.Pass.training(key)).numpy() for key in (1, 1, 2))
    assert np.array_equal(a, b) and not np.array_equal(a, c) and set(np.unique(a)) == {0.0, 2.0}
    assert np.array_equal(drop(x).numpy(), x)
    with pytest.raises(ValueError, match="same mask"):
        fn.compile(lambda x: drop(x, nn.Pass.training(1)), x)
    assert drop(x, nn.Pass.training(1)).shape == x.shape


def test_a_pass_watches_layers_by_name():
    seen = []
    watching = nn.Pass.inference()
    watching.observe(lambda name, kind, x, y: seen.append((name, kind, y.shape)))
    small_net()(np.ones((1, 1, 4, 4), "float32"), watching)
    assert seen[0] == ("conv", "conv", (1, 3, 4, 4)) and seen[-1] == ("", "sequential", (1, 4))


# --- Functions of the program ---


def test_functions_with_parts_are_layers(rng):
    kept = []

    def block(parts, x, pass_):
        kept.append(pass_)
        return parts.scale * parts.norm(parts.conv(x), pass_)

    net = nn.Sequential(
        nn.Function(block, dtype="float64", conv=nn.Conv(1, 2, kernel=3, dtype="float64"), norm=nn.BatchNorm(2, dtype="float64"),
                    scale=np.full((2, 1, 1), 2)), fn.relu, nn.Flatten(dtype="float64"))  # fmt: skip
    nn.initialise(net, 1)
    assert list(net.parameters()) == ["0.conv.weight", "0.conv.bias", "0.norm.weight", "0.norm.bias", "0.scale"]
    x = rng.normal(size=(3, 1, 4, 4))
    training = nn.Pass.training(1)
    y = net(x, training)
    nn.apply_updates(net, training)
    assert y.shape == (3, 8) and net.buffers()["0.norm.running_mean"].numpy().any()
    assert fn.gradcheck(lambda net: fn.sum(net(x) ** 2), net)
    with pytest.raises(ValueError, match="over"):
        nn.BatchNorm(2, dtype="float64")(np.ones((1, 2)), kept[0])
    with pytest.raises(ValueError, match="no description"):
        pickle.dumps(net)
    with pytest.raises(ZeroDivisionError):
        nn.Sequential(lambda x: 1 / 0)(np.ones(2, "float32"))
    with pytest.raises(TypeError):
        nn.Sequential(lambda x: "text")(np.ones(2, "float32"))


# --- Files and summaries ---


def test_files_hold_the_model_and_what_is_said_about_it(tmp_path):
    net = small_net()
    path = tmp_path / "net.safetensors"
    said = nn.ModelInfo("small", ["a", "b", "c", "d"], nn.Preprocessing([4, 4], [0.5], [0.25]), {"who": "a test"})
    nn.save_model(path, net, said)
    model, info = nn.load_model(path)
    assert info == said == nn.load_info(path)
    assert_same(model.tree_state(), net.tree_state())
    assert nn.load(path, "float64").dtype == "float64"
    other = small_net(key=2)
    nn.load_weights(path, other)
    assert_same(other.tree_state(), net.tree_state())
    with pytest.raises(ValueError, match="missing in the file"):
        nn.load_weights(path, nn.Linear(2, 2))
    with pytest.raises(OSError):
        nn.load(tmp_path / "none.safetensors")
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(OSError):
        nn.load(path)
    with pytest.raises(TypeError, match="'classes'"):
        nn.save(net, path, clases=[])
    own = nn.Sequential(nn.Linear(2, 2), fn.relu)
    nn.save(nn.initialise(own, 1), tmp_path / "own.safetensors")
    with pytest.raises(OSError, match="load_weights"):
        nn.load(tmp_path / "own.safetensors")
    again = nn.Sequential(nn.Linear(2, 2), fn.relu)
    nn.load_weights(tmp_path / "own.safetensors", again)
    assert_same(again.parameters(), own.parameters())


@pytest.mark.parametrize("name", nn.model_entries())
def test_ready_models_are_functions(name):
    entry = nn.model_entries()[name]
    model = getattr(nn, name)(width=0.25, classes=3)
    found = nn.summary(model, (1, *entry.input))
    assert found.parameters == nn.parameter_count(model) and str(found).count("\n") >= len(found.rows)
    assert found.output[:2] == (1, 3)


def test_published_sizes():
    assert nn.parameter_count(nn.mobilenet_v2()) == 3_504_872
    assert nn.parameter_count(nn.resnet18()) == 11_689_512


@pytest.mark.parametrize("kind,use", [
    (_core._Layer, "slots"), (_core._Trainer, "state"), (_core._Loader, "next"), (_core._Dataset, "normalisation"),
    (_core._Schedule, "at"), (_core._Optimiser, "state")])  # fmt: skip
def test_objects_that_were_never_initialised_are_refused(kind, use):
    empty = kind.__new__(kind)
    with pytest.raises(TypeError):
        getattr(empty, use)()
