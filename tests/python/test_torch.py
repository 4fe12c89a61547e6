"""The operators that torch has, against torch: values, VJP and JVP; memory shared both ways.

Both results carry rounding errors of at most gamma(m) * scale each, see test_operators.py.
"""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402

import fenestra as fn  # noqa: E402
from fenestra import nn  # noqa: E402

LABELS = np.array([2, 0, 1])
CASES = {
    "conv1d": (lambda m, x, w, b: m.conv1d(x, w, b, stride=2, padding=1, dilation=2),
               [(2, 3, 9), (4, 3, 2), (4,)], 8),
    "conv2d": (lambda m, x, w, b: m.conv2d(x, w, b, stride=(2, 1), padding=(1, 2), groups=2),
               [(2, 4, 7, 6), (6, 2, 3, 2), (6,)], 14),
    "conv3d": (lambda m, x, w: m.conv3d(x, w, padding="same"), [(1, 2, 4, 3, 5), (2, 2, 3, 3, 3)], 56),
    "conv_transpose2d": (lambda m, x, w, b: m.conv_transpose2d(x, w, b, stride=2, padding=1,
                                                               output_padding=1, groups=2),
                         [(2, 4, 3, 4), (4, 3, 3, 3), (6,)], 20),
    "max_pool2d": (lambda m, x: m.max_pool2d(x, 3, 2, 1, ceil_mode=True), [(2, 3, 8, 7)], 0),
    "max_pool1d": (lambda m, x: m.max_pool1d(x, kernel_size=2, dilation=2), [(2, 3, 8)], 0),
    "avg_pool2d": (lambda m, x: m.avg_pool2d(x, (3, 2), stride=2, padding=1, count_include_pad=False),
                   [(2, 3, 8, 7)], 7),
    "avg_pool3d": (lambda m, x: m.avg_pool3d(x, 2, divisor_override=3), [(1, 2, 4, 4, 5)], 9),
    "lp_pool2d": (lambda m, x: m.lp_pool2d(x * x + 1, 2, 2), [(1, 2, 4, 5)], 16),
    "adaptive_max_pool2d": (lambda m, x: m.adaptive_max_pool2d(x, (3, 4)), [(2, 3, 8, 7)], 0),
    "adaptive_avg_pool2d": (lambda m, x: m.adaptive_avg_pool2d(x, (3, 4)), [(2, 3, 8, 7)], 13),
    "relu": (lambda m, x: m.relu(x), [(3, 4)], 0),
    "gelu": (lambda m, x: m.gelu(x), [(3, 4)], 20),
    "silu": (lambda m, x: m.silu(x), [(3, 4)], 12),
    "softplus": (lambda m, x: m.softplus(x), [(3, 4)], 12),
    "leaky_relu": (lambda m, x: m.leaky_relu(x, negative_slope=0.2), [(3, 4)], 1),
    "softmax": (lambda m, x: m.softmax(x, dim=1), [(3, 4)], 24),
    "log_softmax": (lambda m, x: m.log_softmax(x, dim=0), [(3, 4)], 24),
    "cross_entropy": (lambda m, x: m.cross_entropy(x, labels_of(m), reduction="sum"), [(3, 4)], 40),
    "mse_loss": (lambda m, x, y: m.mse_loss(x, y), [(3, 4), (3, 4)], 15),
    "linear": (lambda m, x, w, b: m.linear(x, w, b), [(2, 4), (5, 4), (5,)], 6),
    "layer_norm": (lambda m, x, w, b: m.layer_norm(x, w, b) if m is fn else m.layer_norm(x, (4,), w, b),
                   [(3, 4), (4,), (4,)], 64),
    "group_norm": (lambda m, x, w, b: m.group_norm(x, 2, weight=w, bias=b), [(3, 4, 5), (4,), (4,)], 96),
}  # fmt: skip


def labels_of(module):
    return LABELS if module is fn else torch.from_numpy(LABELS)


def gamma(m):
    u = np.finfo(np.float64).eps / 2
    return (m + 1) * u / (1 - (m + 1) * u)


def close(found, expected, roundings, scale=8.0):
    expected = expected.detach().numpy()
    size = max(scale, float(np.max(np.abs(expected), initial=0)))
    np.testing.assert_allclose(np.asarray(found), expected, rtol=0, atol=2 * gamma(roundings) * size)


@pytest.mark.parametrize("name", CASES)
def test_value_vjp_and_jvp_are_those_of_torch(name, rng):
    f, shapes, roundings = CASES[name]
    inputs = [rng.normal(size=shape) for shape in shapes]
    tangents = [rng.normal(size=shape) for shape in shapes]
    theirs = [torch.from_numpy(x.copy()).requires_grad_() for x in inputs]
    y_torch = f(F, *theirs)
    y, pullback = fn.vjp(lambda *args: f(fn, *args), *inputs)
    close(y, y_torch, roundings)
    y_bar = rng.normal(size=y.shape)
    bars = pullback(y_bar)
    bars = bars if isinstance(bars, tuple) else (bars,)
    for bar, bar_torch in zip(bars, torch.autograd.grad(y_torch, theirs, torch.from_numpy(y_bar))):
        close(bar, bar_torch, 3 * roundings + y.size)
    _, y_dot = fn.jvp(lambda *args: f(fn, *args), inputs, tangents)
    _, y_dot_torch = torch.autograd.functional.jvp(
        lambda *args: f(F, *args), tuple(map(torch.from_numpy, inputs)),
        tuple(map(torch.from_numpy, tangents)))
    close(y_dot, y_dot_torch, 3 * roundings + y.size)


def test_batch_norm_has_the_statistics_of_torch_over_50_steps(rng):
    momentum, cells = 0.1, 4 * 5 * 2
    ours = nn.BatchNorm(3, momentum=momentum, dtype="float64")
    theirs = torch.nn.BatchNorm2d(3, momentum=momentum, dtype=torch.float64)
    weight, bias = rng.normal(size=3), rng.normal(size=3)
    ours.update({"weight": weight, "bias": bias})
    theirs.load_state_dict({"weight": torch.from_numpy(weight), "bias": torch.from_numpy(bias)}, strict=False)
    largest = 0.0
    for step in range(50):
        x = rng.normal(size=(4, 3, 5, 2)) * (1 + step % 7) + rng.normal(size=(1, 3, 1, 1))
        largest = max(largest, np.abs(x).max())
        pass_ = nn.Pass.training(nn.Key(step))
        y = ours(x, pass_)
        nn.apply_updates(ours, pass_)
        # With x up to X and the deviation s, a mean is off by cells * u * X and a deviation by cells * u * s:
        # their quotients, which are below 2 X / s, by three times the former over s.
        quotient = np.abs(x).max() / x.std(axis=(0, 2, 3)).min()
        close(y, theirs(torch.from_numpy(x)), cells + 16, 3 * quotient * np.abs(weight).max() + np.abs(bias).max())
    # Errors of a batch's sums enter by the momentum and fade by the rest of it: those of one batch in all,
    # and 1 / momentum times the roundings of a step.
    roundings = cells + 8 + 4 / momentum
    var_size = (2 * largest) ** 2
    for name, size in (("running_mean", largest), ("running_var", var_size)):
        expected = getattr(theirs, name)
        assert np.abs(expected.numpy() - (name == "running_var")).max() > 0.1, "they move"
        close(ours.buffers()[name], expected, roundings, size)
    theirs.eval()
    var = theirs.running_var.min().item()
    quotient = 2 * largest / var**0.5
    size = (largest / var**0.5 + quotient * var_size / var) * np.abs(weight).max() + np.abs(bias).max()
    close(ours(x), theirs(torch.from_numpy(x)), roundings + 8, size)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_torch_tensors_come_in_without_a_copy(dtype):
    x = torch.arange(6, dtype=dtype).reshape(2, 3)
    t = fn.asarray(x)
    x[0, 1] = 42
    assert t[0, 1].item() == 42
    t.numpy()[1, 1] = 7
    assert x[1, 1] == 7
    w = torch.ones(1, 1, 2, dtype=dtype)
    np.testing.assert_array_equal(fn.conv1d(x.reshape(2, 1, 3), w).numpy().reshape(2, 2),
                                  [[42, 44], [10, 12]])


def test_tensors_go_to_torch_without_a_copy():
    t = fn.tensor([1.0, 2.0])
    x = torch.from_dlpack(t)
    x[0] = 5
    assert t[0].item() == 5
    assert t.numpy()[0] == 5


# Before torch 2, as_tensor knows sequences and NumPy's arrays only: it copies, number by number.
COPIES = int(torch.__version__.split(".")[0]) < 2


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("take", [torch.from_dlpack, torch.as_tensor])
def test_torch_takes_tensors_of_both_types(take, dtype, rng):
    copies = COPIES and take is torch.as_tensor
    for shape in ((5,), (2, 3), (1, 2, 3, 2), (0,)):
        t = fn.tensor(rng.normal(size=shape), dtype)
        x = take(t)
        assert x.shape == shape
        if t.size:  # sequences without numbers have no type
            assert x.dtype == getattr(torch, dtype)
        np.testing.assert_array_equal(x.numpy(), t.numpy())
    t = fn.tensor([[1.0, 2.0], [3.0, 4.0]], dtype)
    x = take(t)
    x[0, 1] = 7
    assert t[0, 1].item() == (2 if copies else 7)
    with pytest.raises(TypeError, match="from_dlpack" if copies else "detach"):
        fn.grad(lambda v: fn.sum(v * take(v).sum().item()))(t)


@pytest.mark.skipif(not COPIES, reason="torch.as_tensor takes tensors of rank 0 from torch 2 on")
def test_a_tensor_without_axes_says_what_to_call_instead():
    with pytest.raises(TypeError, match="torch.from_dlpack"):
        torch.as_tensor(fn.tensor(1.0))


def test_items_are_tensors_in_python_whatever_c_gets():
    t = fn.tensor([1.0, 2.0, 3.0])
    for items in (list(t), list(reversed(t))[::-1], [t[i] for i in range(3)]):
        assert [type(item) for item in items] == [fn.Tensor] * 3
        assert [item.item() for item in items] == [1, 2, 3]


def test_torch_tensors_and_arrays_share_a_program(rng):
    compiled = fn.compile(lambda x, labels: fn.cross_entropy(x, labels))
    x, labels = rng.normal(size=(3, 2)), np.array([0, 1, 1])
    expected = fn.cross_entropy(x, labels).item()
    for args in ((x, labels), (torch.from_numpy(x), labels), (x, torch.from_numpy(labels))):
        assert compiled(*args).item() == expected
    assert compiled.cache_info() == fn.CacheInfo(hits=2, misses=1, maxsize=32, currsize=1)


def test_strided_and_foreign_torch_tensors():
    x = torch.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(fn.asarray(x.t()).numpy(), x.t().numpy())
    np.testing.assert_array_equal(fn.asarray(x[:, 1:3]).numpy(), x[:, 1:3].numpy())
    with pytest.raises(TypeError, match="float32 or float64"):
        fn.relu(torch.ones(2, dtype=torch.int64))
    assert fn.cross_entropy(np.zeros((2, 2)), torch.tensor([0, 1])).shape == ()


def test_torch_memory_is_released():
    import sys

    x = torch.ones(4)
    before = sys.getrefcount(x)
    for _ in range(100):
        fn.relu(x)
    assert sys.getrefcount(x) == before
