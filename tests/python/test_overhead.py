"""A tiny convolution from Python costs at most what it costs in torch, measured in the same run."""

import time

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402

import fenestra as fn  # noqa: E402


def microseconds(f, calls=2000):
    start = time.perf_counter()
    for _ in range(calls):
        f()
    return (time.perf_counter() - start) / calls * 1e6


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
