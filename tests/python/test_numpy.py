"""NumPy's functions on tensors: ours where there is one, NumPy's where nothing is differentiated, else refused."""

import numpy as np
import pytest

import fenestra as fn

X = np.array([[0.5, -1.0, 2.0], [1.5, 3.0, -0.25]])
P = np.abs(X)
FUNCTIONS = {
    "exp": (np.exp, X), "log": (np.log, P), "sqrt": (np.sqrt, P), "tanh": (np.tanh, X), "abs": (np.abs, X),
    "negative": (np.negative, X), "positive": (np.positive, X), "square": (np.square, X),
    "reciprocal": (np.reciprocal, P), "sign": (np.sign, X),
    "add": (lambda x: np.add(x, 1.5), X), "subtract": (lambda x: np.subtract(P, x), X),
    "multiply": (lambda x: np.multiply(x, P), X), "divide": (lambda x: np.divide(1.0, x), P),
    "power": (lambda x: np.power(x, 3), X), "power of": (lambda x: np.power(2.0, x), X),
    "matmul": (lambda x: np.matmul(x, P.T), X), "dot": (lambda x: np.dot(P, x.T), X),
    "maximum": (lambda x: np.maximum(x, 0.1), X), "minimum": (lambda x: np.minimum(0.1, x), X),
    "sum": (np.sum, X), "sum of an axis": (lambda x: np.sum(x, axis=1, keepdims=True), X),
    "mean": (lambda x: np.mean(x, 0), X), "max": (lambda x: np.max(x, axis=(0, 1)), X), "min": (np.min, X),
    "clip": (lambda x: np.clip(x, -0.5, 1.0), X), "clip by arrays": (lambda x: np.clip(x, P - 1, P + 1), X),
    "reshape": (lambda x: np.reshape(x, (3, -1)), X), "ravel": (np.ravel, X), "transpose": (np.transpose, X),
    "concatenate": (lambda x: np.concatenate([x, P], axis=1), X),
    "concatenate all": (lambda x: np.concatenate([x, P], axis=None), X), "stack": (lambda x: np.stack([x, P], 1), X),
    "broadcast_to": (lambda x: np.broadcast_to(x, (2, 2, 3)), X), "expand_dims": (lambda x: np.expand_dims(x, 1), X),
    "squeeze": (lambda x: np.squeeze(x[None, :, None]), X), "flip": (np.flip, X), "flip rows": (lambda x: np.flip(x, 0), X),
    "moveaxis": (lambda x: np.moveaxis(x[None], 0, -1), X), "swapaxes": (lambda x: np.swapaxes(x, 0, 1), X),
    "remainder": (lambda x: np.remainder(x, 0.7), X), "array % tensor": (lambda x: (P + 0.3) % x, X),
    "array // tensor": (lambda x: (P + 0.3) // x + x, X), "mod": (lambda x: np.mod(x, P + 0.3), X),
    "var": (lambda x: np.var(x, axis=1), X), "std": (lambda x: np.std(x, ddof=1), X),
    "where": (lambda x: np.where(X > 0, x, 2.0), X), "sort": (lambda x: np.sort(x, axis=0), X),
    "sort all": (lambda x: np.sort(x, axis=None), X), "cumsum": (np.cumsum, X),
    "cumsum of an axis": (lambda x: np.cumsum(x, 1), X), "einsum": (lambda x: np.einsum("ij,kj->ik", x, P), X),
    "ceil": (lambda x: np.ceil(x) * x, X + 0.1), "rint": (lambda x: np.rint(x) * x, X + 0.1),
    "round": (lambda x: np.round(x) * x, X + 0.1), "around": (lambda x: np.around(x, 0) * x, X + 0.1),
    "vstack": (lambda x: np.vstack([x, P]), X), "vstack of rows": (lambda x: np.vstack((x[0], P[1], x[:1])), X),
    "hstack": (lambda x: np.hstack([P, x]), X), "hstack of rows": (lambda x: np.hstack((x[0], P[1], x[1, 2])), X),
    "take_along_axis": (lambda x: np.take_along_axis(x, np.array([[2, 0], [1, 1]]), axis=1), X),
    "take_along_axis of every row": (lambda x: np.take_along_axis(x, np.array([[2, -3]]), -1), X),
    "take_along_axis of all": (lambda x: np.take_along_axis(x, np.array([5, 0]), None), X),
    "take": (lambda x: np.take(x, [[2, 0], [1, 1]], axis=1), X), "take all": (lambda x: np.take(x, [5, -1, 0]), X),
    "split": (lambda x: np.split(x, [1, 2], axis=1)[2], X), "split equally": (lambda x: np.split(x, 3, 1)[1], X),
    "mixed": (lambda x: np.sum(P * x + P / x - (P > 1) * x), P), "zeros_like": (lambda x: x + np.zeros_like(x), X),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_with_a_counterpart_is_differentiated(name):
    f, x = FUNCTIONS[name]
    expected = f(x)
    found = f(fn.asarray(x))
    assert isinstance(found, fn.Tensor) and found.shape == np.shape(expected)
    # Four roundings of elementary functions and sums of at most six terms.
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-14, atol=1e-14)
    assert fn.gradcheck(lambda x: fn.sum(f(x) * np.cos(np.arange(np.size(expected))).reshape(np.shape(expected))), x)


def test_questions_are_answered_by_numpy():
    t = fn.tensor(X)
    assert np.shape(t) == (2, 3) and np.ndim(t) == 2 and np.size(t) == 6
    assert np.allclose(t, X) and np.array_equal(X, t) and np.isfinite(t).all() and not np.isnan(t).any()
    assert np.argmax(t) == 4 and np.any(t) and np.count_nonzero(t) == 6
    for found, expected in [(np.less(X, t), X < X), (np.arange(3.0) < t, np.arange(3.0) < X), (t == X, X == X)]:
        assert isinstance(found, np.ndarray) and found.dtype == bool
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(t, X)
    np.testing.assert_array_equal(t, X)
    # Shapes are known where numbers are not.
    assert fn.compile(lambda x: fn.sum(x) / np.size(x), X)(X).item() == pytest.approx(X.mean())


@pytest.mark.parametrize("call, text", [
    (lambda t: np.linalg.svd(t), r"np\.linalg\.svd does not differentiate.*\n.*np\.asarray\(t\.detach\(\)\)"),
    (lambda t: np.fft.fft(t), r"np\.fft\.fft does not"),
    (lambda t: np.arctan2(t, 1.0), r"np\.arctan2 does not"),
    (lambda t: np.add.reduce(t), r"(?s)np\.add\.reduce does not.*fn\.sum"),
    (lambda t: np.multiply.outer(t, t), r"np\.multiply\.outer does not"),
    (lambda t: np.pad(t, 1), r"(?s)np\.pad does not.*fn\.pad"),
    (lambda t: np.dstack([t, t]), r"(?s)np\.dstack does not.*fn\.concat"),
    (lambda t: np.column_stack([t, t]), r"(?s)np\.column_stack does not.*fn\.stack"),
    (lambda t: np.append(t, X), r"(?s)np\.append does not.*fn\.concat"),
    (lambda t: np.round(t, 2), r"np\.round: decimals is not known"),
    (lambda t: np.vstack([t, X], dtype="float32"), r"np\.vstack: dtype is not known"),
    (lambda t: np.sum(t, dtype="float32"), r"np\.sum: dtype is not known"),
    (lambda t: np.sum(t, initial=1.0), r"np\.sum: initial is not known"),
    (lambda t: np.exp(t, where=X > 0), r"np\.exp: where is not known"),
    (lambda t: np.reshape(t, -1, order="F"), r"np\.reshape: order is not known"),
])
def test_everything_else_says_what_to_call(call, text):
    with pytest.raises(TypeError, match=text):
        call(fn.tensor(X))
    with pytest.raises(TypeError, match=text):
        fn.grad(lambda t: fn.sum(call(t)))(X)


def test_an_array_is_added_to_in_place():
    total = kept = np.zeros(3)
    total += fn.tensor([1.0, 2.0, 3.0])
    assert total is kept and total.tolist() == [1, 2, 3]

    def f(x):
        total = np.zeros(3)
        total += x  # inside a transform the name goes on as a tensor
        return np.sum(total * total)

    assert fn.grad(f)(np.array([1.0, 2.0, 3.0])).tolist() == [2, 4, 6]
    with pytest.raises(TypeError, match="out is not known"):
        fn.grad(lambda x: np.sum(np.exp(x, out=np.zeros(3))))(np.zeros(3))


def test_asarray_keeps_working_and_shares_memory():
    t = fn.tensor(X)
    assert np.shares_memory(np.asarray(t), t.numpy())
    assert np.array(t, dtype="float32").dtype == np.float32
    with pytest.raises(TypeError, match="detach"):
        fn.grad(lambda x: fn.sum(x * np.linalg.norm(np.asarray(x))))(X)


def test_numpy_numbers_keep_the_type():
    t = fn.ones(2, "float32")
    for found in (np.float64(2) * t, np.add(1.0, t), np.maximum(t, 0.5), np.arange(2, dtype="float32") + t):
        assert isinstance(found, fn.Tensor) and found.dtype == np.float32
