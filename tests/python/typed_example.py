"""What a user with a type checker writes; read by mypy, not run."""

import numpy as np
import numpy.typing as npt

import fenestra as fn


def model(
    x: npt.NDArray[np.float32], w: fn.Tensor, b: fn.Tensor | None = None
) -> tuple[fn.Tensor, npt.NDArray[np.int64]]:
    y = fn.relu(fn.conv2d(x, w, b, stride=2, padding=[(1, 0), (0, 1)], layout="channels_first"))
    pooled, indices = fn.max_pool2d(y, (2, 2), return_indices=True)
    return fn.max_unpool2d(pooled, indices, 2) + 1.0, indices


def loss(w: fn.Tensor, x: npt.NDArray[np.float32]) -> fn.Tensor:
    scores = model(x, w)[0].reshape(len(x), -1)
    return fn.cross_entropy(scores / 2, np.zeros(len(x), dtype=np.int64), reduction="mean")


def train(w: fn.Tensor, x: npt.NDArray[np.float32]) -> fn.Tensor:
    value, w_bar = fn.value_and_grad(loss)(w, x)
    assert value.shape == () and bool((w != w_bar).any())
    y, tangent = fn.jvp(lambda v: fn.nhwc.max_pool2d(v, kernel_size=2), (x,), (x,))
    compiled: fn.Compiled = fn.compile(fn.value_and_grad(loss), w, x)
    assert compiled(w, x)[0] == value and compiled.peak_bytes > 0 and "conv" in compiled.explain()
    named: fn.Tensor = fn.grad(loss, argnames="w")(w, x=x)
    cached: fn.CompiledFunction = fn.compile(loss)
    assert cached(w, x=x) == value and cached.cache_info().misses == 1 and cached.programs()[0].arguments

    @fn.compile(cache_size=4)
    def doubled(v: fn.Tensor) -> fn.Tensor:
        return v * 2

    print(f"{value:.3f}", doubled(named).tolist())
    with fn.no_grad():
        step: fn.Tensor = w - 0.1 * fn.asarray(w_bar)
    return step if float(fn.mean(fn.asarray(tangent) * y)) > 0 else w[..., 0] @ w.T
