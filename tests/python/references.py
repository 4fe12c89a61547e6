"""What every operator computes, written in NumPy from the formulas and nothing else.

Everything works on complex numbers as well: with an imaginary part h*x_dot, h tiny, the imaginary
part of the result is h times the derivative, free of cancellation. So one plain formula is the
reference of value, JVP and VJP. Choices (maxima, signs) look at the real part.
"""

import itertools

import numpy as np

LONG = np.longdouble
STEP = LONG(1e-200)


def derivative(f, inputs, tangents):
    """The derivative of f along the tangents, by a complex step."""
    moved = [x.astype(LONG) + 1j * STEP * t.astype(LONG) for x, t in zip(inputs, tangents)]
    return np.imag(f(*moved)) / STEP


def jacobian(f, inputs, which):
    """d f / d inputs[which], outputs by rows."""
    columns = []
    for i in range(inputs[which].size):
        tangents = [np.zeros_like(x) for x in inputs]
        tangents[which].flat[i] = 1
        columns.append(derivative(f, inputs, tangents).reshape(-1))
    return np.array(columns).T


# --- Windows ------------------------------


def per_axis(value, rank):
    return [value] * rank if np.isscalar(value) else list(value)


def pads(padding, rank):
    if np.isscalar(padding):
        return [(padding, padding)] * rank
    return [(p, p) if np.isscalar(p) else tuple(p) for p in padding]


def window_count(extent, low, high, kernel, stride, dilation, ceil_mode=False):
    span = extent + low + high - (dilation * (kernel - 1) + 1)
    count = (span + (stride - 1 if ceil_mode else 0)) // stride + 1
    if ceil_mode and (count - 1) * stride >= extent + low:
        count -= 1
    return count


class Windows:
    """All windows of an input: for each, the real cells it covers and how it is padded."""

    def __init__(self, spatial, kernel, stride=None, padding=0, dilation=1, ceil_mode=False):
        rank = len(spatial)
        self.spatial = spatial
        self.kernel = per_axis(kernel, rank)
        self.stride = per_axis(kernel if stride is None else stride, rank)
        self.pads = pads(padding, rank)
        self.dilation = per_axis(dilation, rank)
        self.out = tuple(
            window_count(spatial[a], *self.pads[a], self.kernel[a], self.stride[a], self.dilation[a],
                         ceil_mode)
            for a in range(rank))

    def positions(self, o):
        """(tap, cell or None, inside the declared padding) of the window at o."""
        for tap in itertools.product(*map(range, self.kernel)):
            cell = tuple(o[a] * self.stride[a] + tap[a] * self.dilation[a] - self.pads[a][0]
                         for a in range(len(o)))
            real = all(0 <= c < n for c, n in zip(cell, self.spatial))
            declared = all(c < n + high for c, n, (_, high) in zip(cell, self.spatial, self.pads))
            yield tap, cell if real else None, declared

    def each(self):
        return itertools.product(*map(range, self.out))


def pooled(x, windows, f):
    """f(values of the real cells (N, C, cells), padded cells in the declared padding) per window."""
    y = np.zeros(x.shape[:2] + windows.out, dtype=x.dtype)
    for o in windows.each():
        positions = list(windows.positions(o))
        cells = [cell for _, cell, _ in positions if cell is not None]
        padded = sum(1 for _, cell, declared in positions if cell is None and declared)
        values = np.stack([x[(slice(None), slice(None)) + cell] for cell in cells], axis=-1) if cells \
            else np.zeros(x.shape[:2] + (0,), dtype=x.dtype)
        y[(slice(None), slice(None)) + o] = f(values, padded)
    return y


def conv(x, w, b=None, stride=1, padding=0, dilation=1, groups=1):
    windows = Windows(x.shape[2:], w.shape[2:], stride, padding, dilation)
    out, inner = w.shape[:2]
    y = np.zeros((x.shape[0], out) + windows.out, dtype=np.result_type(x, w))
    for o in windows.each():
        for tap, cell, _ in windows.positions(o):
            if cell is None:
                continue
            for co in range(out):
                first = co // (out // groups) * inner
                values = x[(slice(None), slice(first, first + inner)) + cell]
                y[(slice(None), co) + o] += values @ w[(co, slice(None)) + tap]
    return y if b is None else y + b.reshape((1, -1) + (1,) * len(windows.out))


def conv_transpose(x, w, b=None, stride=1, padding=0, dilation=1, groups=1, output_padding=0):
    rank = x.ndim - 2
    stride, dilation = per_axis(stride, rank), per_axis(dilation, rank)
    extra, sides = per_axis(output_padding, rank), pads(padding, rank)
    full = [(n - 1) * s + d * (k - 1) + 1 + e
            for n, s, d, k, e in zip(x.shape[2:], stride, dilation, w.shape[2:], extra)]
    inner = x.shape[1] // groups
    out = w.shape[1]
    y = np.zeros((x.shape[0], out * groups, *full), dtype=np.result_type(x, w))
    for cell in itertools.product(*map(range, x.shape[2:])):
        for tap in itertools.product(*map(range, w.shape[2:])):
            at = tuple(c * s + t * d for c, s, t, d in zip(cell, stride, tap, dilation))
            for ci in range(x.shape[1]):
                g = ci // inner
                y[(slice(None), slice(g * out, (g + 1) * out)) + at] += (
                    x[(slice(None), ci) + cell][:, None] * w[(ci, slice(None)) + tap][None])
    cut = tuple(slice(low, n - high) for n, (low, high) in zip(full, sides))
    y = y[(slice(None), slice(None)) + cut]
    return y if b is None else y + b.reshape((1, -1) + (1,) * rank)


def largest(values):
    winner = np.argmax(values.real, axis=-1)
    return np.take_along_axis(values, winner[..., None], axis=-1)[..., 0]


def max_pool(x, kernel, pad_cells="ignore", **options):
    def f(values, padded):
        if pad_cells == "zero" and padded:
            zeros = np.zeros(values.shape[:2] + (1,), dtype=values.dtype)
            values = np.concatenate([values, zeros], axis=-1)
        return largest(values)

    return pooled(x, Windows(x.shape[2:], kernel, **options), f)


def avg_pool(x, kernel, count_include_pad=True, divisor_override=None, **options):
    def f(values, padded):
        count = values.shape[-1] + (padded if count_include_pad else 0)
        return values.sum(-1) / (divisor_override or count)

    return pooled(x, Windows(x.shape[2:], kernel, **options), f)


def smooth_max_pool(x, kernel, beta, normalised=False, **options):
    def f(values, padded):
        y = np.log(np.exp(beta * values).sum(-1)) / beta
        return y - np.log(LONG(values.shape[-1])) / beta if normalised else y

    return pooled(x, Windows(x.shape[2:], kernel, **options), f)


def magnitude(x):
    return np.where(x.real < 0, -x, x)


def lp_pool(x, p, kernel, **options):
    return pooled(x, Windows(x.shape[2:], kernel, **options),
                  lambda values, _: (magnitude(values) ** p).sum(-1) ** (LONG(1) / LONG(p)))


def adaptive_pool(x, output, f):
    out = per_axis(output, x.ndim - 2)
    y = np.zeros(x.shape[:2] + tuple(out), dtype=x.dtype)
    for o in itertools.product(*map(range, out)):
        bins = tuple(slice(j * n // m, -(-(j + 1) * n // m)) for j, n, m in zip(o, x.shape[2:], out))
        values = x[(slice(None), slice(None)) + bins]
        y[(slice(None), slice(None)) + o] = f(values.reshape(values.shape[:2] + (-1,)))
    return y


def max_unpool(x, indices, size):
    y = np.zeros(x.shape[:2] + (int(np.prod(size)),), dtype=x.dtype)
    for n, c in itertools.product(*map(range, x.shape[:2])):
        y[n, c, indices[n, c].reshape(-1)] = x[n, c].reshape(-1)
    return y.reshape(x.shape[:2] + tuple(size))


# --- Glue ------------------------------


def softmax(x, axis=-1):
    e = np.exp(x - x.real.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def cross_entropy(x, labels):
    total = np.log(np.exp(x).sum(axis=1))
    return total - np.take_along_axis(x, np.expand_dims(labels, 1), axis=1)[:, 0]


def normalise(x, axes, eps, mean=None, var=None):
    mean = x.mean(axis=axes, keepdims=True) if mean is None else mean
    var = ((x - mean) ** 2).mean(axis=axes, keepdims=True) if var is None else var
    return (x - mean) / np.sqrt(var + eps)


def variance(x, axes, correction):
    squares = (x - x.mean(axis=axes, keepdims=True)) ** 2
    count = int(np.prod([x.shape[a] for a in axes]))
    return squares.sum(axis=axes) / (count - correction)


def group_norm(x, groups, eps):
    split = x.reshape(x.shape[0], groups, -1)
    return normalise(split, (2,), eps).reshape(x.shape)


def channels(v, rank):
    return v.reshape((1, -1) + (1,) * rank)


def resize_nearest(x, size):
    for axis, n in enumerate(size, start=2):
        cells = [o * x.shape[axis] // n for o in range(n)]
        x = np.take(x, cells, axis=axis)
    return x


def resize_bilinear(x, size, align_corners):
    for axis, n in enumerate(size, start=2):
        extent = x.shape[axis]
        lines = []
        for o in range(n):
            if align_corners:
                at = LONG(o) * (extent - 1) / (n - 1)
            else:
                at = max((LONG(o) + LONG(0.5)) * extent / n - LONG(0.5), LONG(0))
            low = min(int(np.floor(at)), extent - 1)
            high = min(low + 1, extent - 1)
            part = at - low
            lines.append(np.take(x, low, axis) * (1 - part) + np.take(x, high, axis) * part)
        x = np.stack(lines, axis=axis)
    return x


def normal_cdf(x):
    """By the series around 0, which converges everywhere; for the small arguments of the tests."""
    term, total, n = x, x, 0
    while n < 200:
        n += 1
        term = -term * x * x / (2 * n)
        total = total + term / (2 * n + 1)
    return LONG(0.5) + total / np.sqrt(2 * LONG(np.pi))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def where_positive(x, positive, otherwise):
    return np.where(x.real > 0, positive, otherwise)


def extremum(a, b, sign):
    a, b = np.broadcast_arrays(a, b)
    return np.where(sign * b.real > sign * a.real, b, a)
