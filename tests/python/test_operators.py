"""Every function against its NumPy formula: values, JVP and VJP, in both precisions.

A result may differ from the exact one by gamma(m) * scale: m roundings on the longest way from an
input to an output, gamma(m) = m*u/(1 - m*u), and scale the largest number that occurs on the way,
which is bounded by the formula on absolute values. The references are computed in extended
precision, so their own error is below all bounds.
"""

import dataclasses
from typing import Any, Callable

import numpy as np
import pytest
import references as ref

import fenestra as fn
from fenestra import _core

PI = np.longdouble(np.pi)


@dataclasses.dataclass
class Case:
    name: str  #: of the function
    call: Callable[..., Any]
    reference: Callable[..., Any]
    shapes: list[tuple[int, ...]]
    roundings: int  #: on the longest way through the operator
    positive: bool = False
    distinct: bool = False  #: no ties, so that the derivative exists
    scale: float = 1.0  #: a bound on intermediate numbers, where they exceed inputs and outputs
    label: str = ""

    def __str__(self):
        return self.name + ("_" + self.label if self.label else "")


def pool_cases():
    x, windows = (2, 3, 7, 6), dict(stride=(2, 1), padding=1, dilation=(1, 2))
    unpool = np.array([[[[0, 3], [8, 11]]]])
    yield Case("max_pool", lambda x: fn.max_pool(x, (3, 2), **windows),
               lambda x: ref.max_pool(x, (3, 2), **windows), [x], 0, distinct=True)
    yield Case("max_pool", lambda x: fn.max_pool(x, 3, 2, 1, ceil_mode=True, pad_cells="zero"),
               lambda x: ref.max_pool(x, 3, stride=2, padding=1, ceil_mode=True, pad_cells="zero"),
               [x], 0, distinct=True, label="zeros")
    yield Case("avg_pool", lambda x: fn.avg_pool(x, (3, 2), **windows),
               lambda x: ref.avg_pool(x, (3, 2), **windows), [x], 7)
    yield Case("avg_pool", lambda x: fn.avg_pool(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
               lambda x: ref.avg_pool(x, 3, stride=2, padding=1, ceil_mode=True,
                                      count_include_pad=False), [x], 10, label="real_cells")
    yield Case("avg_pool", lambda x: fn.avg_pool(x, 2, divisor_override=3),
               lambda x: ref.avg_pool(x, 2, divisor_override=3), [x], 5, label="override")
    yield Case("smooth_max_pool", lambda x, b: fn.smooth_max_pool(x, (3, 2), beta=b, **windows),
               lambda x, b: ref.smooth_max_pool(x, (3, 2), b, **windows), [x, ()], 40, scale=8)
    yield Case("smooth_max_pool", lambda x: fn.smooth_max_pool(x, 2, normalised=True, beta=-2.0),
               lambda x: ref.smooth_max_pool(x, 2, -2, normalised=True), [x], 40, scale=8,
               label="normalised")
    betas = lambda b: b.reshape(-1, 1, 1)
    yield Case("smooth_max_pool", lambda x, b: fn.smooth_max_pool(x, 2, beta=b),
               lambda x, b: ref.smooth_max_pool(x * betas(b), 2, 1) / betas(b), [(2, 3, 4, 4), (3,)], 60,
               scale=16, positive=True, label="channels")
    yield Case("lp_pool", lambda x: fn.lp_pool(x, 2, 3, 2, padding=1),
               lambda x: ref.lp_pool(x, 2, 3, stride=2, padding=1), [x], 24, scale=8)
    yield Case("lp_pool", lambda x: fn.lp_pool(x, 3, 2), lambda x: ref.lp_pool(x, 3, 2), [x], 40,
               positive=True, scale=8, label="cubes")
    yield Case("adaptive_max_pool", lambda x: fn.adaptive_max_pool(x, (3, 4)),
               lambda x: ref.adaptive_pool(x, (3, 4), ref.largest), [x], 0, distinct=True)
    yield Case("adaptive_avg_pool", lambda x: fn.adaptive_avg_pool(x, (3, 4)),
               lambda x: ref.adaptive_pool(x, (3, 4), lambda v: v.mean(-1)), [x], 13)
    yield Case("global_max_pool", fn.global_max_pool,
               lambda x: ref.adaptive_pool(x, 1, ref.largest), [x], 0, distinct=True)
    yield Case("global_avg_pool", fn.global_avg_pool,
               lambda x: ref.adaptive_pool(x, 1, lambda v: v.mean(-1)), [x], 43)
    yield Case("max_unpool", lambda x: fn.max_unpool(x, unpool, output_size=(3, 4)),
               lambda x: ref.max_unpool(x, unpool, (3, 4)), [(1, 1, 2, 2)], 0)


def conv_cases():
    options = dict(stride=(2, 1), padding=[(1, 0), (0, 2)], dilation=(1, 2))
    yield Case("conv", lambda x, w, b: fn.conv(x, w, b, **options),
               lambda x, w, b: ref.conv(x, w, b, **options), [(2, 3, 5, 6), (4, 3, 3, 2), (4,)], 20)
    yield Case("conv", lambda x, w: fn.conv(x, w, groups=2, padding=1),
               lambda x, w: ref.conv(x, w, groups=2, padding=1), [(2, 4, 7), (6, 2, 3)], 8,
               label="groups")
    yield Case("conv", lambda x, w: fn.conv(x, w, layout="channels_last"),
               lambda x, w: np.moveaxis(
                   ref.conv(np.moveaxis(x, -1, 1), np.moveaxis(w, (3, 2), (0, 1))), 1, -1),
               [(2, 5, 6, 3), (3, 2, 3, 4)], 20, label="channels_last")
    yield Case("conv_transpose",
               lambda x, w, b: fn.conv_transpose(x, w, b, stride=2, padding=1, output_padding=1),
               lambda x, w, b: ref.conv_transpose(x, w, b, stride=2, padding=1, output_padding=1),
               [(2, 3, 3, 4), (3, 2, 3, 3), (2,)], 30)
    yield Case("conv_transpose", lambda x, w: fn.conv_transpose(x, w, groups=2, dilation=2),
               lambda x, w: ref.conv_transpose(x, w, groups=2, dilation=2), [(1, 4, 5), (4, 3, 2)],
               6, label="groups")


def elementwise_cases():
    x = (3, 4)
    unary = {
        "neg": (lambda x: -x, 0), "exp": (np.exp, 4), "tanh": (np.tanh, 8),
        "abs": (ref.magnitude, 0), "relu": (lambda x: ref.where_positive(x, x, 0 * x), 0),
        "sign": (lambda x: np.sign(x.real) + 0j, 0), "sigmoid": (ref.sigmoid, 8),
        "normal_cdf": (ref.normal_cdf, 16), "gelu": (lambda x: x * ref.normal_cdf(x), 20),
        "silu": (lambda x: x * ref.sigmoid(x), 12), "softplus": (lambda x: np.log(1 + np.exp(x)), 12),
        "hard_sigmoid": (lambda x: (x + 3) / 6, 3), "sin": (np.sin, 8), "cos": (np.cos, 8),
        "erf": (lambda x: 2 * ref.normal_cdf(x * np.sqrt(np.longdouble(2))) - 1, 20),
        "floor": (lambda x: np.floor(x.real) + 0j, 0), "ceil": (lambda x: np.ceil(x.real) + 0j, 0),
        "round": (lambda x: np.rint(x.real) + 0j, 0),
        "stop_gradient": (lambda x: x.real + 0j, 0),
    }  # fmt: skip
    for name, (reference, roundings) in unary.items():
        yield Case(name, getattr(fn, name), reference, [x], roundings, scale=8)
    for name, reference in {"log": np.log, "sqrt": np.sqrt}.items():
        yield Case(name, getattr(fn, name), reference, [x], 4, positive=True, scale=8)
    yield Case("leaky_relu", lambda x: fn.leaky_relu(x, 0.25),
               lambda x: ref.where_positive(x, x, x / 4), [x], 1)
    yield Case("elu", lambda x: fn.elu(x, 0.5),
               lambda x: ref.where_positive(x, x, (np.exp(x) - 1) / 2), [x], 8, scale=8)
    yield Case("clip", lambda x: fn.clip(x, -0.5, 0.5),
               lambda x: np.where(np.abs(x.real) < 0.5, x, np.sign(x.real) / 2), [x], 0)
    yield Case("power", lambda x: fn.power(x, 3), lambda x: x**3, [x], 6)
    yield Case("scale", lambda x: fn.scale(x, -1.5), lambda x: x * np.longdouble(-1.5), [x], 1)
    binary = {
        "add": (lambda a, b: a + b, 1), "sub": (lambda a, b: a - b, 1),
        "mul": (lambda a, b: a * b, 1), "minimum": (lambda a, b: ref.extremum(a, b, -1), 0),
        "maximum": (lambda a, b: ref.extremum(a, b, 1), 0),
    }  # fmt: skip
    for name, (reference, roundings) in binary.items():
        yield Case(name, getattr(fn, name), reference, [(2, 3, 4), (3, 1)], roundings + 8)
    compared = {"less": np.less, "less_equal": np.less_equal, "greater": np.greater,
                "greater_equal": np.greater_equal, "equal": np.equal, "not_equal": np.not_equal,
                "floor_divide": np.floor_divide}  # fmt: skip
    for name, reference in compared.items():
        yield Case(name, getattr(fn, name), lambda a, b, f=reference: f(a.real, b.real) + 0j,
                   [(2, 3, 4), (3, 1)], 0, positive=True)
    yield Case("mod", fn.mod, lambda a, b: a - b * np.floor(a.real / b.real), [(2, 3, 4), (3, 1)], 12,
               positive=True, scale=16)
    mask = np.array([[True], [False], [True]])
    yield Case("where", lambda a, b: fn.where(mask, a, b), lambda a, b: np.where(mask, a, b),
               [(2, 3, 4), (3, 1)], 8)
    yield Case("div", fn.div, lambda a, b: a / b, [(2, 3, 4), (3, 1)], 12, positive=True, scale=16)
    yield Case("pow", fn.pow, lambda a, b: np.exp(b * np.log(a)), [(2, 3, 4), (3, 1)], 24,
               positive=True, scale=16)


def glue_cases():
    labels = np.array([2, 0, 1])
    eps = np.longdouble(1e-5)
    yield Case("sum", lambda x: fn.sum(x, axis=(0, 2)), lambda x: x.sum((0, 2)), [(3, 4, 5)], 15)
    yield Case("mean", lambda x: fn.mean(x, axis=1, keepdims=True),
               lambda x: x.mean(1, keepdims=True), [(3, 4, 5)], 5)
    yield Case("max", lambda x: fn.max(x, axis=1), lambda x: ref.largest(np.moveaxis(x, 1, -1)),
               [(3, 4, 5)], 0, distinct=True)
    yield Case("min", lambda x: fn.min(x, dim=1, keepdim=True),
               lambda x: -ref.largest(-np.moveaxis(x, 1, -1))[:, None], [(3, 4, 5)], 0, distinct=True)
    for correction in (0, 1):
        yield Case("var", lambda x, c=correction: fn.var(x, axis=(0, 2), correction=c),
                   lambda x, c=correction: ref.variance(x, (0, 2), c), [(3, 4, 5)], 40, scale=4,
                   label=str(correction))
    yield Case("std", lambda x: fn.std(x, dim=1, keepdim=True),
               lambda x: np.sqrt(ref.variance(x, (1,), 0))[:, None], [(3, 4, 5)], 40, scale=16,
               distinct=True)
    yield Case("argmax", lambda x: fn.gather(x, fn.argmax(x, axis=1, keepdims=True), 1),
               lambda x: ref.largest(np.moveaxis(x, 1, -1))[:, None], [(3, 4, 5)], 0, distinct=True)
    yield Case("argmin", lambda x: fn.take(fn.flatten(x), fn.argmin(x)),
               lambda x: -ref.largest(-x.reshape(-1)), [(3, 4, 5)], 0, distinct=True)
    yield Case("cumsum", lambda x: fn.cumsum(x, 1), lambda x: np.cumsum(x, 1), [(3, 4, 5)], 4)
    yield Case("cumsum", lambda x: fn.cumsum(x, 1, reverse=True),
               lambda x: np.cumsum(x[:, ::-1], 1)[:, ::-1], [(3, 4, 5)], 4, label="reverse")
    yield Case("sort", lambda x: fn.sort(x, axis=1)[0],
               lambda x: np.take_along_axis(x, np.argsort(x.real, 1), 1), [(3, 4, 5)], 0, distinct=True)
    yield Case("topk", lambda x: fn.topk(x, 2, axis=1)[0],
               lambda x: np.take_along_axis(x, np.argsort(-x.real, 1)[:, :2], 1), [(3, 4, 5)], 0,
               distinct=True)
    chosen = np.array([[2, -1, 0, 2], [0, 0, 1, -2]])
    yield Case("gather", lambda x: fn.gather(x, chosen, axis=1),
               lambda x: np.take_along_axis(x, chosen, 1), [(2, 3)], 4)
    yield Case("take", lambda x: fn.take(x, chosen, axis=1), lambda x: np.take(x, chosen, 1),
               [(2, 3, 2)], 4)
    for letters in ("ij,jk->ik", "bij,bkj->bik", "ij,kl->jl", "ij,jk", "bi,bi->b", "ab,cb->abc"):
        first, second = letters.split("->")[0].split(",")
        extent = {"a": 2, "b": 3, "c": 4, "i": 2, "j": 3, "k": 4, "l": 2}
        yield Case("einsum", lambda a, b, text=letters: fn.einsum(text, a, b),
                   lambda a, b, text=letters: np.einsum(text, a, b),
                   [tuple(extent[c] for c in first), tuple(extent[c] for c in second)], 12,
                   label=letters)
    for letters in ("ijk->kij", "ijk->j", "ij->", "ji"):
        shape = tuple({"i": 2, "j": 3, "k": 4}[c] for c in letters.split("->")[0])
        yield Case("einsum", lambda a, text=letters: fn.einsum(text, a),
                   lambda a, text=letters: np.einsum(text, a), [shape], 12, label=letters)
    yield Case("flatten", lambda x: fn.flatten(x, 1), lambda x: x.reshape(3, -1), [(3, 4, 2)], 0)
    yield Case("squeeze", lambda x: fn.squeeze(x, (0, -1)), lambda x: x[0, :, :, 0], [(1, 4, 1, 1)], 0)
    yield Case("unsqueeze", lambda x: fn.unsqueeze(x, -2), lambda x: x[:, None], [(3, 4)], 0)
    yield Case("split", lambda x: fn.split(x, [1, 3], axis=1)[1], lambda x: x[:, 1:], [(3, 4)], 0)
    yield Case("broadcast_to", lambda x: fn.broadcast_to(x, (2, 3, 4)),
               lambda x: np.broadcast_to(x, (2, 3, 4)), [(3, 1)], 8)
    yield Case("reshape", lambda x: fn.reshape(x, (-1, 6)), lambda x: x.reshape(-1, 6), [(3, 4, 2)], 0)
    yield Case("transpose", lambda x: fn.transpose(x, (1, 2, 0)), lambda x: x.transpose(1, 2, 0),
               [(3, 4, 2)], 0)
    yield Case("slice", lambda x: fn.slice(x, 1, 4, 2, -2), lambda x: x[:, 4:1:-2], [(3, 5)], 0)
    yield Case("concat", lambda a, b: fn.concat([a, b], axis=1),
               lambda a, b: np.concatenate([a, b], axis=1), [(2, 3), (2, 1)], 0)
    yield Case("stack", lambda a, b: fn.stack([a, b], axis=-1),
               lambda a, b: np.stack([a, b], axis=-1), [(2, 3), (2, 3)], 0)
    for mode, name in (("zero", "constant"), ("reflect", "reflect"), ("replicate", "edge"),
                       ("circular", "wrap")):
        yield Case("pad", lambda x, mode=mode: fn.pad(x, [(1, 2), (0, 1)], mode, axes=(0, 1)),
                   lambda x, name=name: np.pad(x, [(1, 2), (0, 1)], mode=name), [(3, 4)], 4, label=mode)
    yield Case("resize", lambda x: fn.resize(x, (5, 2)), lambda x: ref.resize_nearest(x, (5, 2)),
               [(1, 2, 3, 4)], 4)
    for corners in (False, True):
        yield Case("resize", lambda x, c=corners: fn.resize(x, (5, 3), mode="bilinear", align_corners=c),
                   lambda x, c=corners: ref.resize_bilinear(x, (5, 3), c), [(1, 2, 3, 4)], 24,
                   label=f"bilinear_{corners}")
    yield Case("matmul", fn.matmul, lambda a, b: a @ b, [(2, 3, 4), (4, 5)], 5)
    yield Case("matmul", lambda a, b: fn.matmul(a, b, transpose_a=True), lambda a, b: a.T @ b,
               [(4, 3), (4, 5)], 5, label="transposed")
    yield Case("linear", fn.linear, lambda x, w, b: x @ w.T + b, [(2, 4), (5, 4), (5,)], 6)
    yield Case("softmax", lambda x: fn.softmax(x, axis=0), lambda x: ref.softmax(x, 0), [(4, 3)], 24)
    yield Case("log_softmax", fn.log_softmax, lambda x: np.log(ref.softmax(x)), [(4, 3)], 24, scale=8)
    yield Case("logsumexp", lambda x: fn.logsumexp(x, dim=1), lambda x: np.log(np.exp(x).sum(1)),
               [(4, 3)], 24, scale=8)
    yield Case("cross_entropy", lambda x: fn.cross_entropy(x, labels),
               lambda x: ref.cross_entropy(x, labels).mean(), [(3, 4)], 32, scale=8)
    yield Case("mse_loss", lambda x, y: fn.mse_loss(x, y, reduction="sum"),
               lambda x, y: ((x - y) ** 2).sum(), [(3, 4), (3, 4)], 15)
    yield Case("binary_cross_entropy_with_logits",
               lambda x: fn.binary_cross_entropy_with_logits(x, np.full((3, 4), 0.25, x.dtype)),
               lambda x: (np.log(1 + np.exp(x)) - x / 4).mean(), [(3, 4)], 32, scale=8)
    image = (3, 4, 2, 2)
    yield Case("batch_norm", lambda x, w, b: fn.batch_norm(x, w, b)[0],
               lambda x, w, b: ref.normalise(x, (0, 2, 3), eps) * ref.channels(w, 2)
               + ref.channels(b, 2), [image, (4,), (4,)], 96, scale=16)
    yield Case("batch_norm_inference",
               lambda x, m, v, w, b: fn.batch_norm_inference(x, m, v, w, b),
               lambda x, m, v, w, b: (x - ref.channels(m, 2)) / np.sqrt(ref.channels(v, 2) + eps)
               * ref.channels(w, 2) + ref.channels(b, 2), [image, (4,), (4,), (4,), (4,)], 64,
               positive=True, scale=16)
    yield Case("group_norm", lambda x, w, b: fn.group_norm(x, 2, w, b),
               lambda x, w, b: ref.group_norm(x, 2, eps) * ref.channels(w, 2) + ref.channels(b, 2),
               [image, (4,), (4,)], 96, scale=16)
    yield Case("layer_norm", fn.layer_norm,
               lambda x, w, b: ref.normalise(x, (-1,), eps) * w + b, [(3, 4), (4,), (4,)], 64,
               scale=16)


CASES = [*conv_cases(), *pool_cases(), *elementwise_cases(), *glue_cases()]


def unit_roundoff(dtype):
    return np.finfo(dtype).eps / 2


def gamma(m, dtype):
    m = (m + 1) * unit_roundoff(dtype)
    return m / (1 - m)


def inputs_of(case, rng, dtype):
    inputs = []
    for shape in case.shapes:
        size = int(np.prod(shape))
        if case.distinct:  # spread evenly, so that no rounding makes a tie
            x = (rng.permutation(size) - size // 2 + 0.25) / size * 2
        else:
            x = rng.uniform(0.5, 2, size) if case.positive else rng.uniform(-1, 1, size)
        inputs.append(x.reshape(shape).astype(dtype))
    return inputs


def assert_close(found, exact, case, dtype, magnitude, roundings):
    found, exact = np.asarray(found), np.asarray(exact).real
    assert found.dtype == dtype
    assert found.shape == exact.shape
    bound = gamma(roundings, dtype) * max(case.scale, float(np.max(magnitude, initial=1)))
    error = np.max(np.abs(found - exact), initial=0)
    assert error <= bound, f"error {error}, bound {bound}"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_value_jvp_and_vjp_are_those_of_the_formula(case, dtype, rng):
    inputs = inputs_of(case, rng, dtype)
    exact = case.reference(*[x.astype(np.longdouble) + 0j for x in inputs])
    magnitude = np.abs(exact)
    if not case.positive and not case.distinct and case.scale == 1:
        magnitude = np.abs(case.reference(*[np.abs(x.astype(np.longdouble)) + 0j for x in inputs]))
    assert_close(case.call(*inputs), exact, case, dtype, magnitude, case.roundings)

    jacobians = [ref.jacobian(case.reference, inputs, i) for i in range(len(inputs))]
    tangents = [rng.uniform(-1, 1, x.shape).astype(dtype) for x in inputs]
    y, y_dot = fn.jvp(case.call, inputs, tangents)
    assert_close(y, exact, case, dtype, magnitude, case.roundings)
    exact_dot = sum(j @ t.reshape(-1).astype(np.longdouble) for j, t in zip(jacobians, tangents))
    size_dot = sum(np.abs(j) @ np.abs(t.reshape(-1)) for j, t in zip(jacobians, tangents))
    assert_close(y_dot, exact_dot.reshape(y.shape), case, dtype, size_dot,
                 3 * case.roundings + 2 * len(inputs))

    y, pullback = fn.vjp(case.call, *inputs)
    y_bar = rng.uniform(-1, 1, y.shape).astype(dtype)
    bars = pullback(y_bar)
    for x_bar, j, x in zip(bars if len(inputs) > 1 else (bars,), jacobians, inputs):
        flat = y_bar.reshape(-1).astype(np.longdouble)
        assert_close(x_bar, (flat @ j).reshape(x.shape), case, dtype, np.abs(flat) @ np.abs(j),
                     3 * case.roundings + y.size)


def test_every_function_of_the_module_has_a_case():
    named = {name for name in _core._stubs if not name[-2:] in ("1d", "2d", "3d")}
    assert named == {case.name for case in CASES}


@pytest.mark.parametrize("name", sorted(name for name in _core._stubs if name.endswith("d") and name[-2].isdigit()))
def test_a_function_with_a_number_is_the_one_without_on_that_many_axes(name, rng):
    rank, base = int(name[-2]), getattr(fn, name[:-2])
    x = rng.uniform(0.5, 1, (2, 4) + (6, 4, 4)[:rank])
    if base in (fn.conv, fn.conv_transpose):
        arguments = (rng.uniform(-1, 1, (4, 4) + (2,) * rank),)
    elif base is fn.lp_pool:
        arguments = (2, 2)
    elif base is fn.max_unpool:
        x, indices = fn.max_pool(x, [2] * rank, return_indices=True)
        arguments = (indices, 2)
    else:
        arguments = () if base in (fn.global_avg_pool, fn.global_max_pool) else (2,)
    # One size for all axes says how many there are only in four axes and more: see test_pools.py.
    unnamed, listed = base, [*arguments[:-1], [2] * rank] if arguments and np.isscalar(arguments[-1]) else arguments
    if not arguments:
        unnamed, listed = getattr(fn, name[:-2].replace("global", "adaptive")), ([1] * rank,)
    np.testing.assert_array_equal(np.asarray(getattr(fn, name)(x, *arguments)),
                                  np.asarray(unnamed(x, *listed)))
    with pytest.raises(ValueError, match="axes"):
        getattr(fn, name)(np.ones((1,) * (rank + 4)), *(a if np.isscalar(a) or base is fn.max_unpool
                          else np.ones((1,) * (rank + 4)) for a in arguments))


def test_max_pool_returns_the_flat_indices_of_its_winners():
    y, indices = fn.max_pool2d(np.array([[[[1.0, 5, 2], [7, 0, 3]]]]), (2, 2), 1, return_indices=True)
    np.testing.assert_array_equal(np.asarray(y), [[[[7, 5]]]])
    assert indices.dtype == np.int64
    np.testing.assert_array_equal(indices, [[[[3, 1]]]])


def test_a_bound_of_clip_may_be_missing():
    x = np.array([-2.0, 0.0, 2.0])
    np.testing.assert_array_equal(fn.clip(x, 0).numpy(), [0, 0, 2])
    np.testing.assert_array_equal(fn.clip(x, None, 1.0).numpy(), [-2, 0, 1])
    np.testing.assert_array_equal(fn.clip(x).numpy(), x)


def test_padding_takes_every_form():
    x, w = np.ones((1, 1, 4, 4)), np.ones((1, 1, 3, 3))
    shapes = {"same": (4, 4), "valid": (2, 2), 1: (4, 4), (0, 1): (2, 4)}
    for padding, spatial in shapes.items():
        assert fn.conv2d(x, w, padding=padding).shape[2:] == spatial
    assert fn.conv2d(x, w, padding=[(1, 0), (0, 2)]).shape[2:] == (3, 4)


def test_a_batch_norm_says_its_statistics(rng):
    x = rng.normal(size=(4, 2, 3))
    _, mean, var = fn.batch_norm(x)
    bound = gamma(16, np.float64) * np.max(np.abs(x)) ** 2
    np.testing.assert_allclose(np.asarray(mean), x.mean((0, 2)), rtol=0, atol=bound)
    np.testing.assert_allclose(np.asarray(var), x.var((0, 2)), rtol=0, atol=2 * bound)


def test_nhwc_functions_are_the_operators_in_that_layout(rng):
    x, w = rng.normal(size=(2, 6, 5, 4)), rng.normal(size=(3, 2, 2, 6))
    b = rng.normal(size=6)
    first = [np.moveaxis(x, -1, 1), np.moveaxis(w, (3, 2), (0, 1)), b]

    def same(nhwc, nchw):
        np.testing.assert_array_equal(np.asarray(nhwc), np.moveaxis(np.asarray(nchw), 1, -1))

    def close(nhwc, nchw, terms):
        bound = gamma(terms, np.float64) * terms * np.max(np.abs(x)) * np.max(np.abs(w))
        np.testing.assert_allclose(np.asarray(nhwc), np.moveaxis(np.asarray(nchw), 1, -1), 0, bound)

    close(fn.nhwc.conv2d(x, w, stride=(2, 1), padding=(1, 0, 2, 1), groups=2, bias=b),
          fn.conv2d(*first, stride=(2, 1), padding=[(1, 0), (2, 1)], groups=2), 14)
    wt = rng.normal(size=(3, 2, 5, 4))
    close(fn.nhwc.conv2d_transpose(x, wt, stride=2, padding=1, output_paddings=1),
          fn.conv_transpose2d(first[0], np.moveaxis(wt, (3, 2), (0, 1)), stride=2, padding=1,
                              output_padding=1), 26)
    same(fn.nhwc.max_pool2d(x, kernel_size=3, stride=2, padding=(1, 0)),
         fn.max_pool2d(first[0], 3, 2, (1, 0), pad_cells="zero"))
    close(fn.nhwc.avg_pool2d(x, kernel_size=(3, 2), padding=(1, 0, 0, 1), dilation=(1, 2)),
          fn.avg_pool2d(first[0], (3, 2), padding=[(1, 0), (0, 1)], dilation=(1, 2)), 7)
    y, pullback = fn.vjp(lambda x, w: fn.nhwc.conv2d(x, w, groups=2), x, w)
    assert [bar.shape for bar in pullback(np.ones(y.shape))] == [x.shape, w.shape]
    for wrong in ({"padding": (1, 2, 3)}, {"input_layout": "NCHW"}, {"filter_layout": "OIHW"}):
        with pytest.raises(ValueError, match="fix"):
            fn.nhwc.conv2d(x, w, **wrong)
