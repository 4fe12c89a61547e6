"""Sizes: cost follows what is computed, and windows that hang over are one window, as in PyTorch."""

import time

import numpy as np
import pytest

import fenestra as fn

FIVE = np.arange(5.0).reshape(1, 1, 5)


@pytest.mark.parametrize("stride", [2**24, 2**31, 2**61, 2**62])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_window_slides_nowhere(stride, dtype):
    x = FIVE.astype(dtype)
    start = time.process_time()
    assert np.array_equal(fn.max_pool1d(x, 3, stride=stride), [[[2.0]]])
    assert np.array_equal(fn.avg_pool1d(x, 3, stride=stride), [[[1.0]]])
    assert np.array_equal(fn.conv1d(x, np.ones((1, 1, 3), dtype), stride=stride), [[[3.0]]])
    assert time.process_time() - start < 0.5


def test_same_padding_of_an_enormous_dilation_finds_the_middle_tap():
    start = time.process_time()
    assert np.array_equal(fn.max_pool1d(FIVE, 3, stride=1, padding="same", dilation=2**31 - 1), FIVE)
    w = np.array([[[10.0, 1.0, 100.0]]])
    assert np.array_equal(fn.conv1d(FIVE, w, padding="same", dilation=2**31 - 1), FIVE)
    assert time.process_time() - start < 0.5


def test_a_transposed_convolution_of_one_element_costs_its_result():
    start = time.process_time()
    y = np.asarray(fn.conv_transpose1d(np.ones((1, 1, 2)), np.ones((1, 1, 3)), stride=2**16))
    assert y.shape == (1, 1, 2**16 + 3) and y.sum() == 6
    assert time.process_time() - start < 0.5


def test_an_empty_batch_costs_nothing():
    start = time.process_time()
    x = np.zeros((0, 1, 10**9), np.float32)
    assert fn.max_pool1d(x, 3).shape == (0, 1, 333333333)
    assert fn.conv1d(x, np.ones((1, 1, 3), np.float32)).shape == (0, 1, 10**9 - 2)
    assert time.process_time() - start < 0.5


def test_hardly_any_sharpness_gives_the_mean():
    x = np.array([[[1.0, 2.0]]], np.float32)
    assert np.asarray(fn.smooth_max_pool1d(x, 2, beta=1e-10, normalised=True)).item() == 1.5


def test_a_window_larger_than_the_input_hangs_over_in_ceil_mode():
    x = np.arange(1.0, 7.0).reshape(1, 1, 6)
    assert np.array_equal(fn.max_pool1d(x, 7, stride=2, ceil_mode=True), [[[6.0]]])
    assert np.array_equal(fn.avg_pool1d(x, 7, stride=2, ceil_mode=True), [[[3.5]]])
    for call in (lambda: fn.max_pool1d(x, 7, stride=2), lambda: fn.max_pool1d(x, 8, stride=2, ceil_mode=True)):
        with pytest.raises(ValueError) as caught:
            call()
        assert caught.value.code == "kernel-exceeds-input"
