"""Functions on values in Python beyond their formulas: masks, integers, axes, custom pullbacks."""

import numpy as np
import pytest

import fenestra as fn

X = np.array([[3.0, -1.0, 2.0], [0.5, 4.0, -2.0]])


def same(found, needed):
    np.testing.assert_array_equal(np.asarray(found), np.asarray(needed))


def test_where_takes_truth_values_of_every_kind():
    x = fn.tensor(X)
    for mask in (x > 0, X > 0, (X > 0).tolist(), fn.greater(x, 0.0), (X > 0).astype(float)):
        same(fn.where(mask, x, 0.0), np.where(X > 0, X, 0))
    same(fn.where(True, x, -x), X)
    same(fn.where(np.bool_(False), x, -x), -X)
    assert fn.where(X > 0, x.astype("float32"), 0.0).dtype == np.float32
    with pytest.raises(ValueError, match="fix"):
        fn.where(x > 0, x, np.ones(4))
    with pytest.raises(TypeError, match="condition"):
        fn.where("yes", x, x)


def test_masks_work_where_numbers_are_hidden():
    positive = lambda x: fn.where(fn.greater(x, 0.0), x, 0.25 * x)
    needed = np.where(X > 0, X, X / 4)
    same(fn.vmap(positive)(X), needed)
    same(fn.compile(positive, X)(X), needed)
    same(fn.grad(lambda x: fn.sum(positive(x)))(fn.tensor(X)), np.where(X > 0, 1, 0.25))


def test_python_operators_are_the_functions():
    x, y = fn.tensor(X), fn.tensor([2.0, -0.75, 1.5])
    same(x % y, X % y.numpy())
    same(x // y, X // y.numpy())
    same(x % 2, X % 2)
    same(x // 2, X // 2)
    same(7 % y, 7 % y.numpy())
    same(7 // y, 7 // y.numpy())
    same(fn.grad(lambda y: fn.sum(x % y))(y), -np.floor(X / y.numpy()).sum(0))


def test_remainders_are_those_of_numpy(rng):
    a, b = rng.normal(size=1000) * 100, rng.normal(size=1000)
    a[:6], b[:6] = [1, -1, np.inf, 1, -1, 0.0], [0, 0, 2, np.inf, np.inf, -3]
    with np.errstate(all="ignore"):
        same(fn.mod(a, b), np.mod(a, b))
        same(fn.floor_divide(a, b), np.floor_divide(a, b))


def test_integers_of_choices(rng):
    x = rng.normal(size=(4, 5, 6))
    for axis in (0, 1, -1):
        same(fn.argmax(x, axis=axis), x.argmax(axis))
        same(fn.argmin(x, dim=axis, keepdim=True), np.expand_dims(x.argmin(axis), axis))
        values, indices = fn.sort(x, axis=axis)
        same(values, np.sort(x, axis))
        same(indices, np.argsort(x, axis, kind="stable"))
        values, indices = fn.topk(x, 3, axis=axis, largest=False)
        same(indices, np.argsort(x, axis, kind="stable").take(range(3), axis))
        same(fn.gather(x, indices, axis), np.take_along_axis(x, indices, axis))
        same(fn.take(x, [1, -1], axis), x.take([1, -1], axis))
    assert fn.argmax(x).dtype == np.int64 and fn.argmax(x) == x.argmax()
    x[1, 2, 3] = np.nan
    assert fn.argmax(x) == x.argmax() and fn.argmin(x) == x.argmin()
    same(fn.tensor(x).argmax(axis=2), x.argmax(2))


def test_integers_of_choices_under_vmap_and_compile(rng):
    x = rng.normal(size=(4, 5, 6))

    def best(x):
        return fn.gather(x * x, fn.argmax(x, axis=0, keepdims=True), 0)

    needed = np.take_along_axis(x * x, x.argmax(1)[:, None], 1)
    same(fn.vmap(best)(x), needed)
    same(fn.compile(fn.vmap(best), x)(x), needed)
    with pytest.raises(TypeError, match="integers inside"):
        fn.compile(fn.argmax, x)
    bars = fn.vmap(fn.grad(lambda x: fn.sum(fn.topk(x, 2, axis=1)[0] ** 2)))(x)
    ranks = np.argsort(np.argsort(-x, -1), -1)
    same(bars, np.where(ranks < 2, 2 * x, 0))


def test_wrong_choices_are_refused():
    with pytest.raises(ValueError, match="index 3 at element 1"):
        fn.take(X, [0, 3], 1)
    with pytest.raises(ValueError, match="fix"):
        fn.gather(X, [0, 1], 1)
    with pytest.raises(TypeError):
        fn.gather(X, [[0.5], [1.0]], 1)
    with pytest.raises(ValueError, match="4 elements"):
        fn.topk(X, 4)
    with pytest.raises(ValueError, match="axis"):
        fn.cumsum(X, 2)
    with pytest.raises(ValueError, match="correction"):
        fn.var(X, axis=0, correction=2)


def test_split_takes_a_number_of_parts_or_sizes():
    assert [p.shape for p in fn.split(X, 3, axis=1)] == [(2, 1)] * 3
    assert [p.shape for p in fn.split(X, (1, 2), axis=-1)] == [(2, 1), (2, 2)]
    for wrong in (2, [1, 1], [], 0, [4, -1]):
        with pytest.raises(ValueError, match="fix"):
            fn.split(X, wrong, axis=1)
    with pytest.raises(TypeError):
        fn.split(X, "12", axis=1)


@pytest.mark.parametrize("letters", ["ii->i", "i...->i", "ij->k", "ij,jk->ik", "i", "i j k"])
def test_einsum_says_what_it_does_not_take(letters):
    with pytest.raises(ValueError, match="(?s)einsum.*fix"):
        fn.einsum(letters, X)


def test_numbers_of_whole_functions_agree_with_torch(rng):
    torch = pytest.importorskip("torch")
    x = rng.normal(size=(3, 4)) * 3
    t = torch.tensor(x)
    for name in ("sin", "cos", "erf"):
        np.testing.assert_allclose(np.asarray(getattr(fn, name)(x)), getattr(torch, name)(t),
                                   rtol=4e-16, atol=1e-16)
    for name in ("floor", "ceil", "round", "sign"):
        same(getattr(fn, name)(x), getattr(torch, name)(t))
    np.testing.assert_allclose(fn.elu(x, 0.5).numpy(), torch.nn.functional.elu(t, 0.5), rtol=1e-15)
    same(fn.cumsum(x, 1), torch.cumsum(t, 1))
    np.testing.assert_allclose(np.asarray(fn.std(x, axis=1, correction=1)), t.std(1), rtol=1e-14)
    same(fn.where(fn.less(x, 0.0), x, 1.0), torch.where(t < 0, t, torch.tensor(1.0, dtype=t.dtype)))


# --- Transforms ------------------------------


def test_vmap_maps_any_axis_and_puts_results_on_any_axis(rng):
    x, w = rng.normal(size=(2, 3, 4)), rng.normal(size=(4, 5))
    f = lambda x, w: (x * 2, fn.sum(x, axis=0) @ w)
    y, z = fn.vmap(f, in_axes=(1, None), out_axes=(2, -1))(x, w)
    same(y, np.moveaxis(x * 2, 1, 2))
    np.testing.assert_allclose(np.asarray(z), np.einsum("aib,bc->ci", x, w), rtol=1e-13)
    same(fn.vmap(fn.neg, in_axes=-1, out_axes=-1)(x), -x)
    same(fn.vmap(lambda x, i: fn.take(x, i, 0), in_axes=(0, 1))(x, np.array([[1, 2]])), x[[0, 1], [1, 2]][:, None])
    bars = fn.grad(lambda x: fn.sum(fn.vmap(lambda v: v ** 2, in_axes=2, out_axes=1)(x)))(fn.tensor(x))
    same(bars, 2 * x)


@pytest.mark.parametrize("options", [dict(in_axes=3), dict(in_axes="0"), dict(in_axes=(0, 1)),
                                     dict(out_axes=2), dict(out_axes=(0, 1)), dict(out_axes=None),
                                     dict(in_axes=True)])
def test_vmap_refuses_axes_that_are_not_there(options):
    with pytest.raises(ValueError, match="fix"):
        fn.vmap(lambda x: 2 * x, **options)(X)


def test_hessian_is_the_derivative_of_the_gradient(rng):
    a = rng.normal(size=(3, 3))
    h = fn.hessian(lambda c, x: fn.einsum("i,i->", x, fn.einsum("ij,j->i", c, x)), 1)(a, rng.normal(size=3))
    np.testing.assert_allclose(np.asarray(h), a + a.T, rtol=1e-14)


def clipped_exp():
    """exp whose gradient claims to be cut at 1."""
    return fn.custom_vjp(
        fn.exp,
        lambda x: ((y := fn.exp(x)), y),
        lambda y, y_bar: y_bar * fn.clip(y, None, 1.0),
    )


def test_custom_vjp_is_used_by_every_transform(rng):
    f, x = clipped_exp(), rng.normal(size=(3, 4))
    same(f(x), fn.exp(x))
    slope = np.minimum(fn.exp(x).numpy(), 1)
    loss = lambda x: fn.sum(f(x))
    same(fn.grad(loss)(x), slope)
    same(fn.jvp(f, (x,), (np.ones_like(x),))[1], slope)
    same(fn.vmap(fn.grad(loss))(x), slope)
    same(fn.grad(lambda x: fn.sum(fn.vmap(f)(x)))(fn.tensor(x)), slope)
    same(fn.compile(fn.grad(loss), x)(x), slope)
    second = np.where(x <= 0, fn.exp(x).numpy(), 0)
    same(fn.grad(lambda x: fn.sum(fn.grad(loss)(x)))(fn.tensor(x)), second)
    same(fn.hvp(loss, (x,), (np.ones_like(x),)), second)


def test_custom_vjp_takes_trees_and_arguments_without_derivatives():
    def forward(parameters, labels, power):
        return fn.sum(fn.take(parameters["w"], labels, 0) ** power), (parameters, power)

    def backward(residuals, y_bar):
        parameters, power = residuals
        return {"w": 7.0 * y_bar * fn.ones_like(parameters["w"])}, None, None

    f = fn.custom_vjp(lambda *args: forward(*args)[0], forward, backward)
    parameters = {"w": fn.tensor([1.0, 2.0, 3.0])}
    labels = np.array([0, 2])
    value, bars = fn.value_and_grad(lambda p: f(p, labels, 2))(parameters)
    assert value.item() == 10
    same(bars["w"], [7, 7, 7])


def test_custom_vjp_says_what_is_wrong():
    x = fn.tensor([1.0, 2.0])
    no_pair = fn.custom_vjp(fn.exp, fn.exp, lambda r, y_bar: y_bar)
    with pytest.raises(TypeError, match="return y, residuals"):
        fn.grad(lambda x: fn.sum(no_pair(x)))(x)
    too_few = fn.custom_vjp(fn.mul, lambda a, b: (a * b, None), lambda r, y_bar: (y_bar,))
    with pytest.raises(ValueError, match="2 arguments"):
        fn.grad(lambda x: fn.sum(too_few(x, x)))(x)
    misshapen = fn.custom_vjp(fn.sum, lambda x: (fn.sum(x), None), lambda r, y_bar: y_bar)
    with pytest.raises(ValueError, match="cotangent"):
        fn.grad(misshapen)(x)
    failing = fn.custom_vjp(fn.exp, lambda x: (fn.exp(x), None), lambda r, y_bar: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        fn.grad(lambda x: fn.sum(failing(x)))(x)


def test_a_stop_is_a_stop_in_programs_too():
    f = fn.grad(lambda x: fn.sum(x * fn.stop_gradient(x * x)))
    same(fn.compile(f, X)(X), X * X)
    same(f(fn.tensor(X)), X * X)
