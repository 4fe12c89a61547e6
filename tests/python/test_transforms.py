"""Derivatives of Python functions: nested in any order, of trees, of all samples at once."""

import math

import numpy as np
import pytest

import fenestra as fn

ONE = fn.tensor(1.0)


def cube(x):
    return x * x * x


def derivative(f):
    return lambda x: fn.jvp(f, (x,), (ONE,))[1]


def test_both_modes_nest_in_every_order():
    for outer in (fn.grad, derivative):
        for inner in (fn.grad, derivative):
            assert outer(inner(cube))(fn.tensor(5.0)).item() == 30
            for middle in (fn.grad, derivative):
                assert outer(middle(inner(cube)))(fn.tensor(5.0)).item() == 6


def test_perturbations_are_not_confused():
    """d/dx (x * d/dy (x + y)) is 1; 2 where levels are confused."""
    for outer in (fn.grad, derivative):
        for inner in (fn.grad, derivative):
            assert outer(lambda x: x * inner(lambda y: x + y)(ONE))(ONE).item() == 1
            # The inner function ignores its own variable and uses the outer one.
            assert outer(lambda x: x * inner(lambda y: x * x * y)(ONE))(fn.tensor(2.0)).item() == 12


def test_a_gradient_of_nothing_is_zero():
    assert fn.grad(lambda x: fn.tensor(3.0))(fn.tensor(2.0)).item() == 0
    assert fn.jvp(lambda x: fn.tensor(3.0), (ONE,), (ONE,))[1].item() == 0
    assert fn.grad(lambda x: x.detach() * 2)(ONE).item() == 0


def network(parameters, x):
    h = fn.max_pool2d(fn.relu(fn.conv2d(x, parameters["conv"]["w"], parameters["conv"]["b"])), 2)
    return fn.linear(h.reshape(h.shape[0], -1), *parameters["head"])


def parameters_of(rng, dtype=np.float64):
    draw = lambda *shape: rng.normal(size=shape).astype(dtype) / math.sqrt(math.prod(shape[1:]) or 1)
    return {"conv": {"w": draw(3, 1, 3, 3), "b": draw(3)}, "head": [draw(4, 12), draw(4)]}


def loss(parameters, x, labels):
    return fn.cross_entropy(network(parameters, x), labels)


def batch_of(rng, n=5, dtype=np.float64):
    return rng.normal(size=(n, 1, 6, 6)).astype(dtype), rng.integers(0, 4, n)


def test_gradients_have_the_structure_of_the_parameters(rng):
    parameters = parameters_of(rng)
    value, grads = fn.value_and_grad(loss)(parameters, *batch_of(rng))
    assert value.shape == ()
    assert list(grads) == ["conv", "head"] and isinstance(grads["head"], list)
    shapes = fn.tree_map(lambda a, b: np.shape(a) == np.shape(b), parameters, grads)
    assert all(fn.tree_flatten(shapes))


def test_gradients_agree_with_differences(rng):
    x, labels = batch_of(rng)
    report = fn.gradcheck(lambda p: loss(p, x, labels), parameters_of(rng))
    assert report, str(report)
    assert report.checked == 3 * 9 + 3 + 4 * 12 + 4


def test_gradcheck_finds_a_wrong_gradient():
    report = fn.gradcheck(lambda x: fn.sum(x * x.detach()), np.array([1.0, 2.0]))
    assert not report and "differ" in str(report)


def test_argnums_choose_what_is_differentiated():
    f = lambda a, b, c: fn.sum(a * b * c)
    a, b, c = fn.tensor([1.0, 2.0]), fn.tensor([3.0, 4.0]), fn.tensor([5.0, 6.0])
    assert (fn.grad(f, 1)(a, b, c) == np.array([5.0, 12.0])).all()
    two = fn.grad(f, (0, -1))(a, b, c)
    assert isinstance(two, tuple) and (two[1] == np.array([3.0, 8.0])).all()
    with pytest.raises(ValueError, match="argnums"):
        fn.grad(f, 3)(a, b, c)


def test_value_and_grad_passes_the_rest_on():
    f = lambda x: (fn.sum(x * x), {"twice": x * 2})
    (value, aux), bar = fn.value_and_grad(f, has_aux=True)(fn.tensor([1.0, 2.0]))
    assert value.item() == 5 and (bar == np.array([2.0, 4.0])).all()
    assert not aux["twice"].is_tracked and (aux["twice"] == np.array([2.0, 4.0])).all()


def test_vjp_and_jvp_are_adjoint_on_trees(rng):
    parameters, (x, _) = parameters_of(rng), batch_of(rng)
    f = lambda p, x: {"scores": network(p, x)}
    p_dot = fn.tree_map(lambda w: rng.normal(size=w.shape), parameters)
    x_dot = rng.normal(size=x.shape)
    y, y_dot = fn.jvp(f, (parameters, x), (p_dot, x_dot))
    value, pullback = fn.vjp(f, parameters, x)
    y_bar = {"scores": rng.normal(size=y["scores"].shape)}
    p_bar, x_bar = pullback(y_bar)
    left = np.sum(y_bar["scores"] * y_dot["scores"].numpy())
    pairs = list(zip(fn.tree_flatten([p_bar, x_bar]), fn.tree_flatten([p_dot, x_dot])))
    right = sum(np.sum(np.asarray(bar) * dot) for bar, dot in pairs)
    size = sum(np.sum(np.abs(np.asarray(bar) * dot)) for bar, dot in pairs)
    m = 100 * np.finfo(np.float64).eps  # 36 + 12 products and their sums on every way
    assert abs(left - right) <= m * size
    np.testing.assert_array_equal(value["scores"].numpy(), y["scores"].numpy())
    again, _ = pullback(y_bar)  # the pullback may be called often
    np.testing.assert_array_equal(again["conv"]["w"].numpy(), p_bar["conv"]["w"].numpy())


def test_trees_meet_by_keys_and_not_by_their_order():
    f = lambda p: {"y": p["a"] * 2, "z": p["b"] * 3}
    p = {"a": fn.tensor(1.0), "b": fn.tensor(1.0)}
    _, tangent = fn.jvp(f, (p,), ({"b": fn.tensor(10.0), "a": fn.tensor(1.0)},))
    assert tangent["y"].item() == 2 and tangent["z"].item() == 30
    bars = fn.vjp(f, p)[1]({"z": fn.tensor(10.0), "y": fn.tensor(1.0)})
    assert bars["a"].item() == 2 and bars["b"].item() == 30
    for wrong in ({"a": 1.0}, {"a": 1.0, "c": 1.0}, [1.0, 1.0], {"a": 1.0, "b": [1.0]}, None):
        with pytest.raises(ValueError, match="fix: trees of one structure"):
            fn.tree_map(lambda a, b: a + b, p, wrong)


def test_jacobians_of_both_modes_agree(rng):
    w = rng.normal(size=(2, 1, 2, 2))
    x = rng.normal(size=(1, 1, 3, 4))
    f = lambda x: fn.tanh(fn.conv2d(x, w))
    reverse, forward = fn.jacrev(f)(x), fn.jacfwd(f)(x)
    assert reverse.shape == (1, 2, 2, 3) + x.shape
    u = np.finfo(np.float64).eps
    np.testing.assert_allclose(reverse.numpy(), forward.numpy(), rtol=0, atol=16 * u * np.max(np.abs(w)))
    column = fn.jvp(f, (x,), (np.eye(12)[5].reshape(x.shape),))[1]
    np.testing.assert_allclose(forward.numpy().reshape(12, 12)[:, 5].reshape(column.shape),
                               column.numpy(), rtol=0, atol=16 * u * np.max(np.abs(w)))


@pytest.mark.parametrize("f", [
    lambda x: fn.softmax(x, axis=0), lambda x: fn.max(x, axis=1), lambda x: x[::-1, 1:],
    lambda x: fn.layer_norm(x), lambda x: fn.concat([x, x * x], 1), lambda x: fn.pad(x, [(1, 0), (0, 1)]),
    lambda x: fn.batch_norm(x)[0], lambda x: fn.logsumexp(x), lambda x: fn.transpose(x) * 2,
    lambda x: fn.resize(x[None], 5), lambda x: fn.maximum(x, 0.5),
], ids=["softmax", "max", "index", "layer_norm", "concat", "pad", "batch_norm", "logsumexp", "transpose",
        "resize", "maximum"])
def test_jacobians_go_through_the_glue(f, rng):
    x = rng.permutation(12).reshape(3, 4) / 8.0
    reverse, forward = fn.jacrev(f)(x).numpy(), fn.jacfwd(f)(x).numpy()
    u = np.finfo(np.float64).eps
    np.testing.assert_allclose(reverse, forward, rtol=0, atol=128 * u * max(1, np.max(np.abs(forward))))


def test_jacobians_of_jacobians_are_hessians():
    f = lambda x: fn.sum(x**3)
    x = fn.tensor([1.0, 2.0])
    for outer in (fn.jacrev, fn.jacfwd):
        for inner in (fn.jacrev, fn.jacfwd):
            np.testing.assert_array_equal(outer(inner(f))(x).numpy(), [[6, 0], [0, 12]])
    np.testing.assert_array_equal(
        fn.hvp(f, (x,), (fn.tensor([1.0, 10.0]),)).numpy(), [6, 120])


def test_hvp_of_several_arguments_is_a_tuple():
    f = lambda a, b: fn.sum(a * a * b)
    a, b = fn.tensor([2.0]), fn.tensor([3.0])
    ha, hb = fn.hvp(f, (a, b), (fn.tensor([1.0]), fn.tensor([0.0])))
    assert ha.item() == 6 and hb.item() == 4


def test_per_sample_gradients_are_those_of_each_sample(rng):
    parameters, (x, labels) = parameters_of(rng), batch_of(rng)
    one_loss = lambda p, x, label: fn.cross_entropy(network(p, x[None])[0], label)
    found = fn.per_sample_grad(one_loss)(parameters, x, labels)
    for i in range(len(x)):
        one = fn.grad(loss)(parameters, x[i : i + 1], labels[i : i + 1])
        for bars, bar in zip(fn.tree_flatten(found), fn.tree_flatten(one)):
            assert bars.shape == (len(x),) + bar.shape
            scale = max(1.0, np.max(np.abs(bar.numpy())))
            np.testing.assert_allclose(bars.numpy()[i], bar.numpy(), rtol=0,
                                       atol=256 * np.finfo(np.float64).eps * scale)


def test_per_sample_gradients_call_the_function_once(rng):
    calls = []

    def f(w, x):
        calls.append(1)
        return fn.sum(fn.conv2d(x, w) ** 2)

    bars = fn.per_sample_grad(f)(rng.normal(size=(2, 1, 3, 3)), rng.normal(size=(64, 1, 5, 5)))
    assert bars.shape == (64, 2, 1, 3, 3) and len(calls) == 1


def test_vmap_cuts_and_stacks(rng):
    xs, w = rng.normal(size=(4, 2, 5)), rng.normal(size=(3, 2, 2))
    ys = fn.vmap(lambda x, w: fn.conv1d(x, w), in_axes=(0, None))(xs, w)
    assert ys.shape == (4, 3, 4)
    np.testing.assert_array_equal(ys[1].numpy(), fn.conv1d(xs[1], w).numpy())
    with pytest.raises(ValueError, match="items|extents"):
        fn.vmap(lambda a, b: a + b)(np.ones((2, 3)), np.ones((3, 3)))


def test_a_tape_gives_what_grad_gives(rng):
    x, w = rng.normal(size=(1, 1, 4, 4)), rng.normal(size=(1, 1, 2, 2))
    f = lambda x, w: fn.mean(fn.relu(fn.conv2d(x, w)))
    tape = fn.Tape()
    xv, wv = tape.parameter(x), tape.parameter(w)
    y = f(xv, wv)
    assert y.is_tracked and len(tape) > 2
    grads = tape.backward(y, retain=True)
    expected = fn.grad(f, (0, 1))(x, w)
    np.testing.assert_array_equal(grads[xv].numpy(), expected[0].numpy())
    np.testing.assert_array_equal(grads[wv].numpy(), expected[1].numpy())
    only = tape.backward(y, wrt=[wv])
    with pytest.raises(ValueError, match="none was kept"):
        only[xv]
    with pytest.raises(ValueError, match="released"):
        tape.backward(y)
    with pytest.raises(ValueError, match="depends on no parameter"):
        tape.backward(fn.tensor(1.0))


def test_tapes_nest_and_refuse_values_of_later_ones():
    outer = fn.Tape()
    x = outer.parameter(3.0)
    inner = fn.Tape()
    v = inner.parameter(x)
    first = inner.backward(v * v * v)[v]
    assert outer.backward(first)[x].item() == 18
    with pytest.raises(ValueError, match="began later"):
        outer.parameter(v)


def test_no_grad_records_nothing():
    tape = fn.Tape()
    x = tape.parameter(2.0)
    with fn.no_grad():
        assert not (x * x).is_tracked
    assert (x * x).is_tracked


def test_what_is_tracked_does_not_leave_silently():
    def f(x):
        with pytest.raises(TypeError, match="detach"):
            x.numpy()
        with pytest.raises(TypeError, match="detach"):
            np.asarray(x)
        with pytest.raises(TypeError, match="detach"):
            x[0] = 1
        with pytest.raises(TypeError, match="detach"):
            x.astype("float32")
        assert x[0].item() == 1 and "Tensor" in repr(x) and (x > 0).all()
        return fn.sum(x)

    fn.grad(f)(fn.tensor([1.0, 2.0]))


def test_a_function_of_a_single_element_is_needed():
    with pytest.raises(ValueError, match=r"returned \(2,\)"):
        fn.grad(lambda x: x * x)(fn.tensor([1.0, 2.0]))


def test_float32_stays_float32(rng):
    x, labels = batch_of(rng, dtype=np.float32)
    value, grads = fn.value_and_grad(loss)(parameters_of(rng, np.float32), x, labels)
    assert value.dtype == np.float32
    assert {bar.dtype for bar in fn.tree_flatten(grads)} == {np.dtype(np.float32)}
    column = fn.jvp(lambda x: x * 2, (x,), (x,))[1]
    assert column.dtype == np.float32
