"""Compiled functions give the bits of the functions they were made of, and say what they are for."""

import gc
import os
import re
import sys

import numpy as np
import pytest
from test_memory import resident_bytes
from test_operators import CASES, inputs_of
from test_threads import run_in_threads
from test_transforms import batch_of, loss, network, parameters_of

import fenestra as fn


def assert_same(found, expected):
    found, expected = fn.tree_flatten(found), fn.tree_flatten(expected)
    assert len(found) == len(expected) > 0
    for a, b in zip(found, expected):
        a, b = np.asarray(a), np.asarray(b)
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def assert_compiles(f, *args, **others):
    """Compiled for some arguments, f gives the same bits for them and for others like them."""
    compiled = fn.compile(f, *args)
    assert_same(compiled(*args), f(*args))
    fresh = others["then"] if others else fn.tree_map(halved, args)
    assert_same(compiled(*fresh), f(*fresh))


def halved(leaf):
    return np.asarray(leaf / 2, leaf.dtype) if np.asarray(leaf).dtype.kind == "f" else leaf


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_operator_its_vjp_and_its_jvp_have_the_bits_of_eager_calls(case, dtype, rng):
    inputs = inputs_of(case, rng, dtype)
    dots = [rng.uniform(-1, 1, x.shape).astype(dtype) for x in inputs]
    y_bar = rng.uniform(-1, 1, case.call(*inputs).shape).astype(dtype)

    def derivatives(inputs, dots, y_bar):
        y, pullback = fn.vjp(case.call, *inputs)
        return y, pullback(y_bar), fn.jvp(case.call, inputs, dots)

    assert_compiles(case.call, *inputs)
    assert_compiles(derivatives, inputs, dots, y_bar)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_second_derivatives_of_every_operator_have_the_bits_of_eager_calls(case, rng):
    inputs = inputs_of(case, rng, np.float64)
    dots = [rng.uniform(-1, 1, x.shape) for x in inputs]
    square = lambda *inputs: fn.sum(case.call(*inputs) ** 2)
    assert_compiles(lambda inputs, dots: fn.hvp(square, inputs, dots), inputs, dots)


def test_a_step_of_training_is_one_program(rng):
    parameters, (x, labels) = parameters_of(rng), batch_of(rng)

    def step(p, x, labels):
        value, grads = fn.value_and_grad(loss)(p, x, labels)
        return fn.tree_map(lambda w, w_bar: w - 0.1 * w_bar, p, grads), {"loss": value}

    compiled = fn.compile(step, parameters, x, labels)
    eager = program = parameters
    for _ in range(5):
        x, labels = batch_of(rng)
        eager, expected = step(eager, x, labels)
        program, found = compiled(program, x, labels)
        assert_same(found, expected)
    assert list(program) == ["conv", "head"] and isinstance(program["head"], list)
    assert_same(program, eager)


@pytest.mark.parametrize("transform", [
    fn.grad, fn.value_and_grad, fn.per_sample_grad, fn.jacrev, fn.jacfwd,
    lambda f: lambda p, x, t: fn.hvp(lambda p: f(p, x, t), (p,), (p,)),
    lambda f: lambda p, x, t: fn.grad(lambda x: fn.sum(fn.grad(f)(p, x, t)["conv"]["w"] ** 2))(x),
    lambda f: lambda p, x, t: fn.jvp(lambda x: fn.grad(f)(p, x, t), (x,), (x,)),
], ids=["grad", "value_and_grad", "per_sample_grad", "jacrev", "jacfwd", "hvp", "reverse over reverse",
        "forward over reverse"])
def test_transforms_compile_with_labels_as_arguments(transform, rng):
    parameters, (x, labels) = parameters_of(rng), batch_of(rng)
    if transform is fn.per_sample_grad:
        function = lambda p, x, label: fn.cross_entropy(network(p, x[None])[0], label)
    else:
        function = lambda p, x, labels: fn.mean(fn.cross_entropy(network(p, x), labels, "none"))
    assert_compiles(transform(function), parameters, x, labels,
                    then=(parameters_of(rng), *batch_of(rng)))


def test_labels_of_samples_with_an_axis_of_their_own_compile(rng):
    x, labels = rng.normal(size=(3, 2, 4)), rng.integers(0, 4, (3, 2))
    each = fn.per_sample_grad(lambda w, x, labels: fn.cross_entropy(x * w, labels))
    assert_compiles(each, np.ones(4), x, labels, then=(np.ones(4), -x, (labels + 1) % 4))


def test_indices_go_from_a_pool_to_an_unpool(rng):
    def f(x):
        y, indices = fn.max_pool2d(x, 2, 1, return_indices=True)
        assert indices.shape == y.shape
        return fn.max_unpool2d(3 * y, indices, 2, 1)

    x = rng.normal(size=(2, 3, 4, 5))
    assert_compiles(f, x, then=(-x,))
    assert_compiles(fn.grad(lambda x: fn.sum(f(x) ** 2)), x, then=(-x,))
    y, indices = fn.adaptive_max_pool2d(x, 2, return_indices=True)
    unpool = lambda y, indices: fn.max_unpool2d(y, indices, output_size=(4, 5))
    _, others = fn.adaptive_max_pool2d(-x, 2, return_indices=True)
    assert_compiles(unpool, y, indices, then=(y, others))


def test_a_sharpness_is_an_argument(rng):
    x, f = rng.normal(size=(1, 2, 5)), lambda x, beta: fn.sum(fn.smooth_max_pool1d(x, 2, beta=beta))
    assert_compiles(fn.grad(f, (0, 1)), x, np.array(2.0), then=(x, np.array(-3.0)))


def test_arguments_and_results_are_trees(rng):
    a, b = rng.normal(size=3), rng.normal(size=3)

    def f(tree, pair):
        return {"sum": [tree["a"] + pair[0]], "rest": (tree["b"], None, pair[1] * 2)}

    compiled = fn.compile(f, {"a": a, "b": b}, (a, b))
    found = compiled({"b": a, "a": b}, [b, a])  # the order of keys is not that of the example
    assert list(found) == ["sum", "rest"] and found["rest"][1] is None
    assert_same(found, f({"a": b, "b": a}, (b, a)))


def test_the_function_is_called_once(rng):
    calls = []

    def f(x):
        calls.append(x)
        return x * 2

    compiled = fn.compile(f, np.ones(3))
    for _ in range(3):
        compiled(np.ones(3))
    assert len(calls) == 1 and "not known" in repr(calls[0])


def test_numbers_and_what_a_function_takes_from_around_it_are_constants(rng):
    w = rng.normal(size=(2, 1, 3))
    x = rng.normal(size=(1, 1, 8))
    assert_compiles(lambda x: (fn.conv1d(x, w), fn.ones(2), 3.0 * x + 1, fn.sum(w * w)), x)
    scaled = fn.compile(lambda x, stride, mode: fn.conv1d(x, w, stride=stride, padding=mode), x, 1, "same")
    assert scaled(x, 1, "same").shape == (1, 2, 8)
    with pytest.raises(ValueError, match="stride is 2, compiled for the constant 1"):
        scaled(x, 2, "same")
    with pytest.raises(ValueError, match="stride is array"):
        scaled(x, np.array([1]), "same")


def test_a_program_says_what_it_does():
    f = lambda image, w: fn.max_pool2d(fn.relu(fn.conv2d(image, w["kernel"])), 2)
    compiled = fn.compile(f, np.ones((1, 2, 8, 8)), {"kernel": np.ones((4, 2, 3, 3))})
    text = compiled.explain()
    assert re.search(r"(?m)^  %\d+ +input +image ", text) and "w['kernel']" in text and "relu" in text and "conv_f64" in text
    assert 4 * 6 * 6 * 8 <= compiled.peak_bytes < 2 * 4 * 6 * 6 * 8  # what lies between conv and pool
    assert compiled.__name__ == "<lambda>"


def test_gradients_of_repeated_numbers_are_not_kept(rng):
    """The cotangent of a mean is one number; a constant of its size would live with the program."""
    x = rng.normal(size=(64, 64, 16))
    compiled = fn.compile(fn.grad(lambda x: fn.mean(x * x)), x)
    constants = int(compiled.explain().rsplit("constants ", 1)[1].split()[0].replace(",", ""))
    assert constants < x.nbytes // 100


MODEL = fn.compile(lambda x, labels: fn.cross_entropy(x, labels), np.ones((2, 3)), np.zeros(2, int))


@pytest.mark.parametrize("call, text", [
    (lambda: MODEL(np.ones((3, 3)), np.zeros(2, int)), r'"x".*\(3, 3\).*\(2, 3\)'),
    (lambda: MODEL(np.ones((2, 3)), np.zeros(3, int)), r'"labels".*\(3,\).*\(2,\)'),
    (lambda: MODEL(np.ones((2, 3)), np.array([0, 3])), r'"labels" holds 3'),
    (lambda: MODEL(np.ones((2, 3)), [0, 1]), "args.1. is a list of 2, needed a single value"),
    (lambda: MODEL({"x": np.ones((2, 3))}, np.zeros(2, int)), "args.0. is a dict of 'x', needed"),
    (lambda: fn.compile(lambda x: fn.conv1d(x, np.ones((1, 2, 3))), np.ones((1, 1, 8))), "conv"),
])
def test_other_shapes_structures_and_labels_are_value_errors(call, text):
    with pytest.raises(ValueError, match=text):
        call()


@pytest.mark.parametrize("call, text", [
    (lambda: MODEL(np.ones((2, 3), np.float32), np.zeros(2, int)), "x is float32, compiled for float64"),
    (lambda: MODEL(np.ones((2, 3)), np.zeros(2)), "labels is .*float64, needed integers"),
    (lambda: MODEL(np.ones((2, 3), int), np.zeros(2, int)), "x is .*int64, needed float"),
    (lambda: MODEL(np.ones((2, 3))), "1 arguments, compiled for 2"),
    (lambda: fn.compile(fn.add, np.ones(2), np.ones(2, np.float32)), "float64 and .* float32"),
    (lambda: fn.compile(lambda x: x if x.sum() > 0 else -x, np.ones(2)), "not known while"),
    (lambda: fn.compile(lambda x: x * float(x[0]), np.ones(2)), "not known while"),
    (lambda: fn.compile(lambda x: fn.grad(lambda y: y * y.item())(x), np.array(1.0)), "not known while"),
    (lambda: fn.compile(lambda x: np.exp(x.numpy()), np.ones(2)), "not known while"),
    (lambda: fn.compile(lambda x: x.astype("float32"), np.ones(2)), "not known while"),
    (lambda: fn.compile(lambda x: fn.max_pool1d(x, 2, return_indices=True), np.ones((1, 4))),
     r"result\[1\] is .*Indices, needed a tensor"),
    (lambda: fn.compile(lambda x: "text", np.ones(2)), "result is str"),
    (lambda: fn.compile(lambda x: x, np.ones(2) > 0), "bool"),
])
def test_other_types_and_decisions_by_numbers_are_type_errors(call, text):
    with pytest.raises(TypeError, match=text):
        call()


def test_a_compiled_function_under_a_transform_is_the_function(rng):
    x = rng.normal(size=4)
    f = lambda x: fn.sum(x**3)
    compiled = fn.compile(f, x)
    assert_same(fn.grad(compiled)(x), fn.grad(f)(x))
    assert_same(fn.vmap(compiled)(x[None]), fn.vmap(f)(x[None]))
    assert_compiles(lambda x: compiled(x) * 2, x)


def test_values_of_a_transform_around_a_compiled_function_do_not_enter_silently():
    inside = lambda v: fn.compile(lambda x: x * v, np.array(1.0))(np.array(2.0))
    with pytest.raises(ValueError, match="transform around it"):
        fn.grad(inside)(fn.tensor(3.0))
    assert fn.grad(lambda v: v * inside(v.detach()))(fn.tensor(3.0)).item() == 6
    tape = fn.Tape()

    def leaves(x):
        return tape.parameter(3.0) * x

    with pytest.raises(ValueError, match="transform"):
        fn.compile(leaves, np.array(1.0))
    with pytest.raises(TypeError, match="compile outside"):
        fn.grad(lambda v: fn.compile(lambda x: x, v)(v))(fn.tensor(3.0))


def test_results_belong_to_the_caller_and_arguments_are_not_written(rng):
    x = rng.normal(size=(2, 3))
    kept = x.copy()
    compiled = fn.compile(lambda x: (x, x * 2, fn.relu(x)), x)
    same, first, _ = compiled(x)
    value = first.numpy().copy()
    first.numpy()[0, 0] = same.numpy()[0, 0] = 100
    np.testing.assert_array_equal(x, kept)
    np.testing.assert_array_equal(compiled(x)[1].numpy(), value)


def test_strided_read_only_and_borrowed_arguments_work(rng):
    x = rng.normal(size=(4, 6))
    compiled = fn.compile(lambda x: x * 2, np.ones((6, 4)))
    assert_same(compiled(x.T), x.T * 2)
    frozen = np.ascontiguousarray(x.T)
    frozen.setflags(write=False)
    assert_same(compiled(frozen), x.T * 2)


def test_torch_tensors_go_in(rng):
    torch = pytest.importorskip("torch")
    parameters, (x, labels) = parameters_of(rng, np.float32), batch_of(rng, dtype=np.float32)
    compiled = fn.compile(fn.grad(loss), parameters, torch.from_numpy(x), torch.from_numpy(labels))
    expected = fn.grad(loss)(parameters, x, labels)
    assert_same(compiled(fn.tree_map(torch.from_numpy, parameters), torch.from_numpy(x), labels), expected)
    assert_same(compiled(parameters, x, torch.from_numpy(labels)), expected)


def test_threads_share_a_compiled_function(rng):
    parameters = parameters_of(rng)
    batches = [batch_of(rng, 32) for _ in range(4)]
    function = fn.value_and_grad(loss)
    compiled = fn.compile(function, parameters, *batches[0])
    expected = [function(parameters, *batch) for batch in batches]

    def work(i):
        for _ in range(50):
            assert_same(compiled(parameters, *batches[i]), expected[i])

    run_in_threads(work)


def test_memory_stays_flat_over_thousands_of_calls_and_programs(rng):
    parameters, (x, labels) = parameters_of(rng), batch_of(rng)
    compiled = fn.compile(fn.value_and_grad(loss), parameters, x, labels)
    before = fn.threads()
    fn.set_threads(1)  # tiny kernels, many calls: waiting for threads would be all that is timed

    def work():
        for _ in range(10_000):
            compiled(parameters, x, labels)
        for _ in range(1000):
            try:
                compiled(parameters, x, labels + 4)
            except ValueError:
                pass
        for _ in range(300):
            fn.compile(fn.grad(loss), parameters, x, labels)(parameters, x, labels)
        gc.collect()
        counts = [sys.getrefcount(value) for value in (x, labels)]
        return counts, len(gc.get_objects()), resident_bytes()

    work()  # caches fill, allocators settle
    counts, objects, memory = work()
    counts_after, objects_after, memory_after = work()
    fn.set_threads(before)
    assert counts_after == counts
    assert abs(objects_after - objects) < 100
    # A tensor header in each call would be 1.7 MB, the nodes of each program 3 MB. The address sanitizer
    # keeps what is freed, to see who reads it.
    if "ASAN_OPTIONS" not in os.environ:
        assert memory_after - memory < 500_000
