# The operators of fenestra/ops/operators.txt in torch, by name: f(problem, inputs, data) -> y.
#
# Torch's own operator is called wherever it has one with these options; the rest is built of its
# differentiable primitives (padding, unfolding, reductions), so that autograd makes the derivatives
# either way. Windows are moved to channels first and one batch axis; results are moved back.
from fractions import Fraction
from itertools import product
from math import prod, sqrt

import torch
import torch.nn.functional as F

INF = float("inf")


class Problem:
    """The fields of a problem string."""

    def __init__(self, text):
        self.fields = dict(field.split("=", 1) for field in text.split())

    def text(self, key, otherwise=None):
        return self.fields.get(key, otherwise)

    def flag(self, key, otherwise=False):
        return {"true": True, "1": True, "false": False, "0": False}[
            self.fields.get(key, str(otherwise).lower())]

    def real(self, key, otherwise=None):
        return float(self.fields[key]) if key in self.fields else otherwise

    def integers(self, key, otherwise=()):
        return [int(n) for n in self.fields[key].split(",")] if key in self.fields else [*otherwise]

    def integer(self, key, otherwise=None):
        return int(self.fields[key]) if key in self.fields else otherwise

    def reals(self, key):
        return [float(n) for n in self.fields[key].split(",")] if key in self.fields else []

    def shape(self, key):
        text = self.fields[key]
        return [] if text == "scalar" else [int(n) for n in text.split("x")]

    def per_axis(self, key, rank, otherwise=1):
        values = self.integers(key, [otherwise])
        return values * rank if len(values) == 1 else values

    def padding(self, rank):
        """(low, high) per axis."""
        parts = self.text("padding", "0").split(",")
        pairs = [tuple(int(n) for n in part.split(":")) for part in parts]
        pairs = [pair if len(pair) == 2 else pair * 2 for pair in pairs]
        return pairs * rank if len(pairs) == 1 else pairs


# --- layouts --------------------------------------------------------------------------------------


def channels_first(x, rank, last, batched):
    if not batched:
        x = x.unsqueeze(0)
    return x.movedim(-1, 1) if last else x


def as_given(y, last, batched):
    if last:
        y = y.movedim(1, -1)
    return y if batched else y.squeeze(0)


def weight_first(w, last):
    """(k..., in, out) -> (out, in, k...)."""
    return w.movedim(-1, 0).movedim(-1, 1).contiguous() if last else w


# --- windows --------------------------------------------------------------------------------------


class Windows:
    """The windows of a pool or convolution: padding, strides and the number of outputs per axis."""

    def __init__(self, problem, extents, kernel, ceil=False):
        rank = len(extents)
        self.rank, self.kernel, self.ceil = rank, kernel, ceil
        by_kernel = "kernel" in problem.fields and "stride" not in problem.fields
        self.stride = kernel if by_kernel else problem.per_axis("stride", rank)
        self.dilation = problem.per_axis("dilation", rank)
        self.padding = problem.padding(rank)
        self.extents = extents
        self.out, self.over = [], []
        axes = zip(extents, kernel, self.stride, self.dilation, self.padding)
        for i, k, s, d, (low, high) in axes:
            span = d * (k - 1) + 1
            outputs = (i + low + high - span + (s - 1 if ceil else 0)) // s + 1
            if ceil and (outputs - 1) * s >= i + low:
                outputs -= 1
            self.out.append(outputs)
            self.over.append(max((outputs - 1) * s + span - (i + low + high), 0))

    def symmetric(self):
        return all(low == high for low, high in self.padding)

    def half(self):
        """What torch's pools accept: the same padding on both sides, at most half the kernel."""
        fits = all(2 * low <= k for (low, _), k in zip(self.padding, self.kernel))
        return self.symmetric() and fits

    def low(self):
        return [low for low, _ in self.padding]

    def pad(self, x, declared, overhang):
        """The input with its declared padding, and the cells that only `ceil` windows reach."""
        flat = [n for pair in reversed(self.padding) for n in pair]
        x = F.pad(x, flat, value=declared)
        return F.pad(x, [n for over in reversed(self.over) for n in (0, over)], value=overhang)

    def unfold(self, padded):
        """N, C, outputs..., taps (flat)."""
        x = padded
        for axis in range(self.rank):
            span = self.dilation[axis] * (self.kernel[axis] - 1) + 1
            x = x.unfold(2 + axis, span, self.stride[axis])[..., :: self.dilation[axis]]
            x = x.narrow(2 + axis, 0, self.out[axis])
        return x.flatten(2 + self.rank)

    def mask(self, like, count_declared):
        """1 at taps that count, in the form of `unfold`."""
        ones = torch.ones([1, 1] + self.extents, dtype=like.dtype)
        return self.unfold(self.pad(ones, 1.0 if count_declared else 0.0, 0.0))


# --- convolutions ---------------------------------------------------------------------------------


def conv_inputs(p, inputs):
    x, w = inputs[0], inputs[1]
    last = p.text("layout") == "channels_last"
    rank = w.dim() - 2
    batched = x.dim() == rank + 2
    b = inputs[2] if len(inputs) > 2 else None
    return channels_first(x, rank, last, batched), weight_first(w, last), b, rank, last, batched


def conv(p, inputs, data):
    x, w, b, rank, last, batched = conv_inputs(p, inputs)
    groups = p.integer("groups", 1)
    windows = Windows(p, list(x.shape[2:]), list(w.shape[2:]))
    if rank <= 3 and x.numel() and w.numel():
        native = [F.conv1d, F.conv2d, F.conv3d][rank - 1]
        padding = 0
        if windows.symmetric():
            padding = windows.low()
        else:
            x = windows.pad(x, 0.0, 0.0)
        y = native(x, w, b, windows.stride, padding, windows.dilation, groups)
    else:
        taps = windows.unfold(windows.pad(x, 0.0, 0.0))
        n, outputs = x.shape[0], windows.out
        taps = taps.reshape(n, groups, x.shape[1] // groups, prod(outputs), prod(w.shape[2:]))
        kernel = w.reshape(groups, w.shape[0] // groups, w.shape[1], prod(w.shape[2:]))
        y = torch.einsum("ngcpt,goct->ngop", taps, kernel).reshape([n, w.shape[0]] + outputs)
        if b is not None:
            y = y + b.reshape([-1] + [1] * rank)
    return as_given(y, last, batched)


def conv_transpose(p, inputs, data):
    x, w, b, rank, last, batched = conv_inputs(p, inputs)
    groups = p.integer("groups", 1)
    stride, dilation = p.per_axis("stride", rank), p.per_axis("dilation", rank)
    padding, extra = p.padding(rank), p.per_axis("output_padding", rank, 0)
    kernel = list(w.shape[2:])
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, kernel)]
    full = [(i - 1) * s + span for i, s, span in zip(x.shape[2:], stride, spans)]
    sizes = [f - low - high + e for f, (low, high), e in zip(full, padding, extra)]
    easy = all(low == high for low, high in padding)
    channels = w.shape[1] * groups
    if rank <= 3 and x.numel() and w.numel():
        native = [F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d][rank - 1]
        if easy:
            y = native(x, w, b, stride, [low for low, _ in padding], extra, groups, dilation)
            return as_given(y, last, batched)
        y = native(x, w, None, stride, 0, 0, groups, dilation)
    else:
        y = x.new_zeros([x.shape[0], channels] + full)
        grouped = x.reshape([x.shape[0], groups, x.shape[1] // groups, prod(x.shape[2:])])
        for tap in product(*[range(k) for k in kernel]):
            weight = w[(slice(None), slice(None)) + tap]
            weight = weight.reshape(groups, x.shape[1] // groups, w.shape[1])
            term = torch.einsum("ngip,gio->ngop", grouped, weight)
            term = term.reshape([x.shape[0], channels] + list(x.shape[2:]))
            at = (slice(None), slice(None)) + tuple(
                slice(t * d, t * d + (i - 1) * s + 1, s)
                for t, d, i, s in zip(tap, dilation, x.shape[2:], stride))
            spread = torch.zeros_like(y)
            spread[at] = term
            y = y + spread
    # Padding crops, output padding reveals cells beyond the crop and then zeros.
    for axis, ((low, _), size, length) in enumerate(zip(padding, sizes, full)):
        y = y.narrow(2 + axis, min(low, length), max(min(size, length - low), 0))
        missing = size - y.shape[2 + axis]
        y = F.pad(y, [0, 0] * (rank - 1 - axis) + [0, missing]) if missing else y
    if b is not None:
        y = y + b.reshape([-1] + [1] * rank)
    return as_given(y, last, batched)


# --- pools ----------------------------------------------------------------------------------------


def pool_input(p, x, sizes):
    last = p.text("layout") == "channels_last"
    rank = len(p.integers(sizes))
    batched = p.flag("batched", True)
    return channels_first(x, rank, last, batched), rank, last, batched


def pool_windows(p, x, rank):
    return Windows(p, list(x.shape[2:]), p.per_axis("kernel", rank), p.flag("ceil_mode"))


def max_pool(p, inputs, data):
    x, rank, last, batched = pool_input(p, inputs[0], "kernel")
    windows = pool_windows(p, x, rank)
    zeros = p.text("pad_cells") == "zero"
    full = windows.mask(x, zeros).sum(-1) > 0
    native = rank <= 3 and windows.half() and not (zeros and any(windows.low()))
    if native and x.numel() and bool(full.all()):
        pool = [F.max_pool1d, F.max_pool2d, F.max_pool3d][rank - 1]
        y = pool(x, windows.kernel, windows.stride, windows.low(), windows.dilation, windows.ceil)
    elif x.numel() == 0:
        y = x.new_zeros(list(x.shape[:2]) + windows.out) + x.sum()
    else:
        y = windows.unfold(windows.pad(x, 0.0 if zeros else -INF, -INF)).amax(-1)
        y = torch.where(full, y, torch.zeros((), dtype=x.dtype))
    return as_given(y, last, batched)


def avg_pool(p, inputs, data):
    x, rank, last, batched = pool_input(p, inputs[0], "kernel")
    windows = pool_windows(p, x, rank)
    include = p.flag("count_include_pad", True)
    override = p.integer("divisor_override")
    dense = all(d == 1 for d in windows.dilation)
    real = windows.mask(x, False).sum(-1)
    # On three axes torch wants inputs of at least a window, even where it overhangs.
    fits = rank < 3 or all(i >= k for i, k in zip(x.shape[2:], windows.kernel))
    if (rank <= 3 and windows.half() and dense and x.numel() and (override is None or rank > 1)
            and fits and bool((real > 0).all())):
        native = [F.avg_pool1d, F.avg_pool2d, F.avg_pool3d][rank - 1]
        rest = [] if rank == 1 else [override]
        y = native(x, windows.kernel, windows.stride, windows.low(), windows.ceil, include, *rest)
    else:
        divisor = torch.full_like(real, override or 0)
        if override is None:
            divisor = windows.mask(x, include).sum(-1)
        total = windows.unfold(windows.pad(x, 0.0, 0.0)).sum(-1)
        y = total / torch.where(divisor == 0, torch.ones_like(divisor), divisor)
    return as_given(y, last, batched)


def smooth_max_pool(p, inputs, data):
    x, rank, last, batched = pool_input(p, inputs[0], "kernel")
    beta = inputs[1]
    windows = pool_windows(p, x, rank)
    counted = windows.mask(x, p.text("pad_cells") == "zero") > 0
    cells = counted.sum(-1, keepdim=True).to(x.dtype)
    some = cells > 0
    z = beta * windows.unfold(windows.pad(x, 0.0, 0.0))
    z = torch.where(counted, z, torch.full((), -INF, dtype=x.dtype))
    z = torch.where(some, z, torch.zeros((), dtype=x.dtype))
    y = torch.logsumexp(z, -1)
    some, cells = some[..., 0], cells[..., 0]
    if p.flag("normalised"):
        y = y - torch.log(torch.where(some, cells, torch.ones_like(cells)))
    y = torch.where(some, y, torch.zeros((), dtype=x.dtype)) / beta
    return as_given(y, last, batched)


def lp_pool(p, inputs, data):
    x, rank, last, batched = pool_input(p, inputs[0], "kernel")
    windows = pool_windows(p, x, rank)
    exponent = p.real("p", 2.0)
    real = windows.mask(x, False)
    # Padded cells are ones where the power is taken, so that no infinite slope meets a zero.
    cells = windows.unfold(windows.pad(x, 1.0, 1.0)).abs()
    total = ((cells if exponent == 1 else cells.pow(exponent)) * real).sum(-1)
    some = real.sum(-1) > 0
    total = torch.where(some, total, torch.ones((), dtype=x.dtype))
    y = total if exponent == 1 else total.pow(1 / exponent)
    y = torch.where(some, y, torch.zeros((), dtype=x.dtype))
    return as_given(y, last, batched)


def adaptive(p, inputs, natives, reduce):
    x, rank, last, batched = pool_input(p, inputs[0], "output_size")
    sizes = p.integers("output_size")
    if rank <= 3 and x.numel():
        y = natives[rank - 1](x, sizes)
    elif x.numel() == 0:
        y = x.new_zeros(list(x.shape[:2]) + sizes) + x.sum()
    else:
        bins = []
        for at in product(*[range(size) for size in sizes]):
            cells = x
            for axis, (j, size) in enumerate(zip(at, sizes)):
                i = x.shape[2 + axis]
                begin, end = j * i // size, -(-(j + 1) * i // size)
                cells = cells.narrow(2 + axis, begin, end - begin)
            bins.append(reduce(cells.flatten(2)))
        y = torch.stack(bins, -1).reshape(list(x.shape[:2]) + sizes)
    return as_given(y, last, batched)


def adaptive_max_pool(p, inputs, data):
    natives = [F.adaptive_max_pool1d, F.adaptive_max_pool2d, F.adaptive_max_pool3d]
    return adaptive(p, inputs, natives, lambda cells: cells.amax(-1))


def adaptive_avg_pool(p, inputs, data):
    natives = [F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d]
    return adaptive(p, inputs, natives, lambda cells: cells.mean(-1))


def max_unpool(p, inputs, data):
    last = p.text("layout") == "channels_last"
    sizes = p.integers("output_size")
    rank, batched = len(sizes), inputs[0].dim() == len(sizes) + 2
    x = channels_first(inputs[0], rank, last, batched)
    indices = channels_first(data[0], rank, last, batched)
    indices = indices.reshape(x.shape[0] * x.shape[1], prod(x.shape[2:]))
    values = x.reshape(indices.shape)
    rows, columns, sources = [], [], []
    for row, cells in enumerate(indices.tolist()):
        for cell, i in {cell: i for i, cell in enumerate(cells) if cell >= 0}.items():
            rows.append(row)  # the last writer of a cell stays in the dictionary
            columns.append(cell)
            sources.append(i)
    rows, columns, sources = (torch.tensor(list_, dtype=torch.long)
                              for list_ in (rows, columns, sources))
    y = x.new_zeros(indices.shape[0], prod(sizes)) + x.sum() * 0
    y = y.index_put((rows, columns), values[rows, sources])
    return as_given(y.reshape(list(x.shape[:2]) + sizes), last, batched)


# --- glue -----------------------------------------------------------------------------------------

UNARY = {
    "neg": lambda p, x: -x,
    "exp": lambda p, x: x.exp(),
    "log": lambda p, x: x.log(),
    "sqrt": lambda p, x: x.sqrt(),
    "abs": lambda p, x: x.abs(),
    "sign": lambda p, x: x.sign(),
    "relu": lambda p, x: F.relu(x),
    "leaky_relu": lambda p, x: F.leaky_relu(x, p.real("slope")),
    "sigmoid": lambda p, x: torch.sigmoid(x),
    "tanh": lambda p, x: torch.tanh(x),
    "normal_cdf": lambda p, x: torch.erfc(-x * sqrt(0.5)) / 2,
    "gelu": lambda p, x: F.gelu(x),
    "silu": lambda p, x: F.silu(x),
    # Torch's own has no second derivative.
    "hard_sigmoid": lambda p, x: torch.clamp((x + 3) / 6, 0, 1),
    "clip": lambda p, x: torch.clamp(x, p.real("low"), p.real("high")),
    "power": lambda p, x: torch.pow(x, p.real("p")),
    "scale": lambda p, x: x * p.real("factor"),
    "softplus": lambda p, x: F.softplus(x),
    "sin": lambda p, x: x.sin(),
    "cos": lambda p, x: x.cos(),
    "erf": lambda p, x: x.erf(),
    "floor": lambda p, x: x.floor(),
    "ceil": lambda p, x: x.ceil(),
    "round": lambda p, x: x.round(),
    "elu": lambda p, x: F.elu(x, p.real("alpha")),
}


def flat(f):
    """A function without derivatives as one whose derivatives are 0."""
    return lambda a, b: f(a, b).to(a.dtype) + 0 * (a + b)


BINARY = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "pow": torch.pow,
    "min": torch.minimum,
    "max": torch.maximum,
    "mod": torch.remainder,
    "floor_divide": flat(lambda a, b: torch.div(a, b, rounding_mode="floor")),
    "less": flat(torch.lt),
    "less_equal": flat(torch.le),
    "equal": flat(torch.eq),
}


def elementwise(p, inputs, data):
    name = p.text("f")
    return BINARY[name](*inputs) if name in BINARY else UNARY[name](p, inputs[0])


def reduce(p, inputs, data):
    x, = inputs
    natives = {"sum": torch.sum, "mean": torch.mean, "max": torch.amax, "min": torch.amin}
    axes = p.integers("axes", range(x.dim()))
    return natives[p.text("f")](x, dim=axes, keepdim=p.flag("keep")) if axes else x + 0


def where(p, inputs, data):
    mask, a, b = inputs
    return torch.where(mask != 0, a, b) + 0 * mask


def cumsum(p, inputs, data):
    x, axis = inputs[0], p.integer("axis")
    return x.flip(axis).cumsum(axis).flip(axis) if p.flag("reverse") else x.cumsum(axis)


def sort(p, inputs, data):
    x, axis = inputs[0], p.integer("axis")
    ordered = torch.sort(x, dim=axis, descending=p.flag("descending"), stable=True).values
    return ordered.narrow(axis, 0, p.integer("count"))


def gather(p, inputs, data):
    x, axis = inputs[0], p.integer("axis")
    indices = data[0] % x.shape[axis]
    if not p.flag("slices"):
        return torch.gather(x, axis, indices)
    chosen = torch.index_select(x, axis, indices.reshape(-1))
    return chosen.reshape(x.shape[:axis] + indices.shape + x.shape[axis + 1:])


def matmul(p, inputs, data):
    if "w" in p.fields:
        return F.linear(*inputs)
    a, b = inputs
    a = a.transpose(-1, -2) if p.flag("transpose_a") else a
    b = b.transpose(-1, -2) if p.flag("transpose_b") else b
    return torch.matmul(a, b)


def softmax(p, inputs, data):
    x, axis = inputs[0], p.integer("axis")
    if p.text("f") == "logsumexp":
        return torch.logsumexp(x, axis, keepdim=p.flag("keep"))
    return (torch.softmax if p.text("f") == "softmax" else torch.log_softmax)(x, axis)


def loss(p, inputs, data):
    reduction = p.text("reduction")
    if p.text("f") == "cross_entropy":
        return F.cross_entropy(inputs[0], data[0], reduction=reduction)
    native = F.mse_loss if p.text("f") == "mse" else F.binary_cross_entropy_with_logits
    return native(inputs[0], inputs[1], reduction=reduction)


def normalise(p, inputs, data):
    x, f, eps = inputs[0], p.text("f"), p.real("eps")
    if f == "layer":
        axes = p.integer("axes", 1)
        gamma, beta = inputs[1:] if p.flag("affine", True) else (None, None)
        return F.layer_norm(x, x.shape[-axes:], gamma, beta, eps)
    last = p.text("layout") == "channels_last"
    x = x.movedim(-1, 1) if last else x
    others = [axis for axis in range(x.dim()) if axis != 1]
    if f == "batch_mean":
        return x.mean(others)
    if f == "batch_var":
        return x.var(others, unbiased=False)
    given = list(inputs[1:])
    mean, var = (given.pop(0), given.pop(0)) if f == "inference" else (None, None)
    gamma, beta = given or (None, None)
    groups = p.integer("groups", 1)
    if f == "group" and x.numel() > x.shape[0] * groups:
        y = F.group_norm(x, groups, gamma, beta, eps)
    elif f == "batch" and x.numel() > x.shape[1]:
        y = F.batch_norm(x, None, None, gamma, beta, True, 0.0, eps)
    else:
        # Torch gives no gradients to running statistics, and takes none of a single value.
        form = [1, -1] + [1] * (x.dim() - 2)
        if f == "batch":
            mean, var = x.mean(others), x.var(others, unbiased=False)
        elif f == "group":
            mean, var, form = x, x - x, list(x.shape)
        y = (x - mean.reshape(form)) / torch.sqrt(var.reshape(form) + eps)
        channels = [1, -1] + [1] * (x.dim() - 2)
        y = y if gamma is None else y * gamma.reshape(channels) + beta.reshape(channels)
    return y.movedim(1, -1) if last else y


def reshape(p, inputs, data):
    return inputs[0].reshape(p.shape("y"))


def transpose(p, inputs, data):
    return inputs[0].permute(p.integers("order"))


def concat(p, inputs, data):
    return torch.cat(list(inputs), p.integer("axis", 0))


def adjoint(f, shape, u):
    """The transpose of a linear f, applied to u, by autograd; differentiable by u."""
    x = torch.zeros(shape, dtype=u.dtype, requires_grad=True)
    bar, = torch.autograd.grad(f(x), x, u, create_graph=True, allow_unused=True)
    return bar if bar is not None else torch.zeros(shape, dtype=u.dtype)


def slice_(p, inputs, data):
    shape = p.shape("shape")
    begins, counts, steps = p.integers("begin"), p.integers("count"), p.integers("step")

    def cut(x):
        for axis, (begin, count, step) in enumerate(zip(begins, counts, steps)):
            x = x.index_select(axis, begin + step * torch.arange(count))
        return x

    return cut(inputs[0]) if p.text("f", "slice") == "slice" else adjoint(cut, shape, inputs[0])


def pad(p, inputs, data):
    shape = p.shape("x")
    low, high = p.integers("low", [0] * len(shape)), p.integers("high", [0] * len(shape))
    mode, value = p.text("mode", "zero"), p.real("value", 0.0)
    linear = p.text("f", "pad") != "pad"

    def add(x):
        if mode in ("zero", "constant"):
            constant = 0.0 if mode == "zero" or linear else value
            pairs = reversed(list(zip(low, high)))
            return F.pad(x, [n for pair in pairs for n in pair], value=constant)
        for axis, (before, after) in enumerate(zip(low, high)):
            if before or after:
                moved = x.movedim(axis, -1)
                flat = F.pad(moved.reshape(1, -1, moved.shape[-1]), (before, after), mode=mode)
                x = flat.reshape(list(moved.shape[:-1]) + [flat.shape[-1]]).movedim(-1, axis)
        return x

    if prod(shape) == 0:  # torch pads no empty tensor
        given = inputs[0]
        out = shape if linear else [i + l + h for i, l, h in zip(shape, low, high)]
        constant = value if mode == "constant" and not linear else 0.0
        return torch.full(out, constant, dtype=given.dtype) + 0 * given.sum()
    return adjoint(add, shape, inputs[0]) if linear else add(inputs[0])


def resize(p, inputs, data):
    last, batched = p.text("layout") == "channels_last", p.flag("batched", True)
    shape = p.shape("x")
    rank = len(shape) - (2 if batched else 1)
    first = shape if batched else [1] + shape
    first = [first[0], first[-1]] + first[1:-1] if last else first
    extents, align = first[2:], p.flag("align_corners")
    scales = [Fraction(s).limit_denominator(1 << 20) for s in p.reals("scale")]
    scales = scales * rank if len(scales) == 1 else scales
    sizes = [int(i * s) for i, s in zip(extents, scales)] or p.per_axis("size", rank)

    def steps():
        for axis, (i, o) in enumerate(zip(extents, sizes)):
            if align:
                yield Fraction(i - 1, o - 1) if o > 1 else Fraction(0)
            else:
                yield 1 / scales[axis] if scales else Fraction(i, o)

    def grow(x):
        # Weights are exact fractions, rounded once: torch's interpolate rounds coordinates, which
        # moves a weight by more than its own rounding, and now and then a nearest cell.
        for axis, (i, o, step) in enumerate(zip(extents, sizes, steps())):
            if p.text("mode") == "nearest":
                cells = [min(int(j * step), i - 1) for j in range(o)]
                x = x.index_select(2 + axis, torch.tensor(cells))
                continue
            half = Fraction(0 if align else 1, 2)
            at = [max((j + half) * step - half, 0) for j in range(o)]
            low = [min(int(c), i - 1) for c in at]
            high = [min(c + 1, i - 1) for c in low]
            share = [float(c - int(c)) for c in at]
            left = [float(1 - (c - int(c))) for c in at]
            form = [-1] + [1] * (rank - 1 - axis)
            left, share = (torch.tensor(t, dtype=x.dtype).reshape(form) for t in (left, share))
            x = (x.index_select(2 + axis, torch.tensor(low)) * left
                 + x.index_select(2 + axis, torch.tensor(high)) * share)
        return x

    def native(x):
        if p.text("mode") != "nearest" or rank > 3 or scales or x.numel() == 0:
            return grow(x)
        return F.interpolate(x, sizes, mode="nearest") if exact_nearest(extents, sizes) else grow(x)

    x = channels_first(inputs[0], rank, last, batched)
    y = native(x) if p.text("f", "resize") == "resize" else adjoint(native, first, x)
    return as_given(y, last, batched)


def exact_nearest(extents, sizes):
    """Whether floor(j * (i/o)) in floating point finds the same cells as in fractions."""
    return all(int(torch.tensor(j, dtype=t) * (torch.tensor(i, dtype=t) / o)) == j * i // o
               for i, o in zip(extents, sizes) for j in range(o)
               for t in (torch.float32, torch.float64))


OPERATORS = {
    "conv": conv,
    "conv_transpose": conv_transpose,
    "max_pool": max_pool,
    "max_unpool": max_unpool,
    "avg_pool": avg_pool,
    "smooth_max_pool": smooth_max_pool,
    "lp_pool": lp_pool,
    "adaptive_max_pool": adaptive_max_pool,
    "adaptive_avg_pool": adaptive_avg_pool,
    "elementwise": elementwise,
    "reduce": reduce,
    "matmul": matmul,
    "softmax": softmax,
    "normalise": normalise,
    "loss": loss,
    "where": where,
    "cumsum": cumsum,
    "sort": sort,
    "gather": gather,
    "reshape": reshape,
    "transpose": transpose,
    "concat": concat,
    "slice": slice_,
    "pad": pad,
    "resize": resize,
}
