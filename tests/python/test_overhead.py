"""What calls cost, measured in one run: a tiny convolution at most what it costs in torch, a compiled call less
than the same in Python."""

import time

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402

import fenestra as fn  # noqa: E402


def microseconds(f, calls=2000, clock=time.perf_counter):
    start = clock()
    for _ in range(calls):
        f()
    return (clock() - start) / calls * 1e6


def test_a_compiled_call_costs_less_than_an_eager_one(rng):
    """Of a function with four operators, and of a step of training a network with two layers."""
    x, w, b = rng.normal(size=(2, 1, 8, 8)), rng.normal(size=(4, 1, 3, 3)), rng.normal(size=4)
    parameters = [{"w": w, "b": b}, {"w": rng.normal(size=(4, 4, 3, 3)), "b": b}]

    def small(x, w, b):
        return fn.mean(fn.relu(fn.conv2d(x, w, b)) ** 2)

    def network(p, x):
        for layer in p:
            x = fn.relu(fn.conv2d(x, layer["w"], layer["b"]))
        return fn.mean(x * x)

    def step(p, x):
        value, grads = fn.value_and_grad(network)(p, x)
        return value, fn.tree_map(lambda w, w_bar: w - 0.01 * w_bar, p, grads)

    threads = fn.threads()
    fn.set_threads(1)
    try:
        for f, args in ((small, (x, w, b)), (step, (parameters, x))):
            cached, explicit = fn.compile(f), fn.compile(f, *args)
            cached(*args)
            # Time of this thread, which is all that is compared, whatever else the machine does.
            times = np.array([[microseconds(lambda: g(*args), 200, time.thread_time) for g in (f, cached, explicit)]
                              for _ in range(11)])
            eager, by_cache, by_example = np.median(times, axis=0)
            print(f"{f.__name__}: eager {eager:.1f} us, @compile {by_cache:.1f} us, compile(f, ...) {by_example:.1f} us")
            assert by_cache < eager and by_example < eager
    finally:
        fn.set_threads(threads)


@pytest.mark.parametrize("kind", ["arrays", "tensors"])
def test_a_tiny_convolution_costs_no_more_than_in_torch(kind, rng):
    x, w = rng.normal(size=(1, 1, 8, 8)).astype("float32"), rng.normal(size=(1, 1, 3, 3)).astype("float32")
    ours = (x, w) if kind == "arrays" else (fn.tensor(x), fn.tensor(w))
    theirs = (torch.from_numpy(x), torch.from_numpy(w))
    threads = torch.get_num_threads(), fn.threads()
    torch.set_num_threads(1)  # the faster way for torch, at this size
    fn.set_threads(1)
    try:
        pairs = [(microseconds(lambda: fn.conv2d(*ours)), microseconds(lambda: F.conv2d(*theirs)))
                 for _ in range(11)]
    finally:
        torch.set_num_threads(threads[0])
        fn.set_threads(threads[1])
    mine, torchs = np.median(np.array(pairs), axis=0)
    print(f"conv2d 1x1x8x8, 3x3, {kind}: {mine:.2f} us, torch {torchs:.2f} us")
    assert mine <= torchs
