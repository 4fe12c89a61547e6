"""What a user with a type checker writes; read by mypy, not run."""

import numpy as np
import numpy.typing as npt

import fenestra as fn
from fenestra import nn


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


def network(x: npt.NDArray[np.float32], y: npt.NDArray[np.int64]) -> nn.Layer:
    net = nn.initialise(nn.Sequential(nn.Conv(1, 8, kernel=(3, 3), padding="same"), fn.relu, head=nn.Linear(8, 10)), 1)
    loader = nn.Loader(nn.array_dataset(x, y), batch=8, augmentation="flip=0.5")
    trainer = nn.Trainer(net, loss=nn.Loss("cross-entropy", smoothing=0.1), optimiser="sgd rate=0.1")
    result: nn.FitResult = trainer.fit(loader, 2, validation=loader, on_step=lambda step: print(step.loss))
    if result.validation is not None and result.validation.confusion is not None:
        print(result.validation.confusion.accuracy, nn.summary(net, (1, 1, 8, 8)).parameters)
    bars: nn.Layer = fn.grad(lambda net: fn.mean(net(x, nn.Pass.training(nn.Key(1)))))(net)
    moved: nn.Layer = nn.Optimiser("adam", rate=0.1).update(net, bars)
    weights: dict[str, fn.Tensor] = moved.parameters()
    nn.save(moved, "net.safetensors", classes=[str(shape) for shape in weights])
    return nn.Residual(nn.mobilenet_v2(width=0.5, classes=10), projection=nn.load("net.safetensors"))
