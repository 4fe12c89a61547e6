"""A caller's mistake is a ValueError, a TypeError or an OSError with the library's own text."""

import numpy as np
import pytest

import fenestra as fn

X, W = np.ones((1, 3, 8, 8)), np.ones((4, 3, 3, 3))


def test_shapes_and_values_are_value_errors_with_the_librarys_text():
    with pytest.raises(ValueError) as caught:
        fn.conv2d(np.ones((8, 3, 2, 64)), W, stride=2)
    text = str(caught.value)
    assert text.startswith("conv") and "floor((2 + 0 + 0 - 3)/2) + 1" in text and "fix: " in text
    assert caught.value.code == "kernel-exceeds-input"


@pytest.mark.parametrize("call, code", [
    (lambda: fn.conv2d(X, np.ones((4, 2, 3, 3))), "channel-mismatch"),
    (lambda: fn.conv2d(X, W, stride=0), "invalid-stride"),
    (lambda: fn.conv2d(X, W, padding=-1), "invalid-padding"),
    (lambda: fn.conv2d(X, W, groups=2), "channels-not-divisible"),
    (lambda: fn.conv2d(X, W, np.ones(3)), "bias-mismatch"),
    (lambda: fn.conv1d(X, W), "rank-mismatch"),
    (lambda: fn.max_pool2d(X, 9), "kernel-exceeds-input"),
    (lambda: fn.smooth_max_pool(X, 2, beta=0.0), "invalid-beta"),
    (lambda: fn.avg_pool2d(X, 2, divisor_override=0), "invalid-divisor"),
    (lambda: fn.add(np.ones(2), np.ones(3)), "shape-mismatch"),
    (lambda: fn.reshape(X, (5, -1)), "shape-mismatch"),
    (lambda: fn.cross_entropy(np.ones((2, 3)), np.array([0, 3])), "invalid-index"),
    (lambda: fn.layer_norm(np.ones((2, 3)), np.ones(3)), "bias-mismatch"),
])
def test_errors_carry_their_stable_code(call, code):
    with pytest.raises(ValueError) as caught:
        call()
    assert caught.value.code == code


@pytest.mark.parametrize("call, text", [
    (lambda: fn.conv2d(X, W.astype(np.float32)), "float64.*float32"),
    (lambda: fn.conv2d(X.astype(int), W), "int64"),
    (lambda: fn.conv2d(X.astype(np.float16), W), "float16"),
    (lambda: fn.conv2d("x", W), "str"),
    (lambda: fn.conv2d(None, W), "NoneType"),
    (lambda: fn.conv2d(X, W, stride="2"), "stride is str"),
    (lambda: fn.conv2d(X, W, stride=1.5), "stride is float"),
    (lambda: fn.max_pool2d(X, 2, ceil_mode=1), "ceil_mode is int"),
    (lambda: fn.conv2d(X, W, strides=2), "no argument strides"),
    (lambda: fn.conv2d(X), "weight is missing"),
    (lambda: fn.conv2d(X, W, weight=W), "given twice"),
    (lambda: fn.conv2d(X, W, None, 1, 0, 1, 1, "channels_last"), "at most 7"),
    (lambda: fn.cross_entropy(np.ones((2, 3)), np.ones(2)), "integers"),
    (lambda: fn.concat(3.0), "sequence"),
    (lambda: len(fn.tensor(1.0)), "rank 0"),
    (lambda: fn.jvp(fn.exp, fn.tensor(1.0), fn.tensor(1.0)), "tuple"),
])
def test_kinds_are_type_errors(call, text):
    with pytest.raises(TypeError, match=text):
        call()


def test_unknown_names_are_value_errors_that_list_the_known_ones():
    with pytest.raises(ValueError, match="'channels_first', 'channels_last'"):
        fn.conv2d(X, W, layout="NHWC")
    with pytest.raises(ValueError, match="same"):
        fn.conv2d(X, W, padding="full")


def test_an_exception_of_the_callers_function_comes_through():
    class Mine(Exception):
        pass

    def f(x):
        raise Mine

    for call in (lambda: fn.grad(f)(1.0), lambda: fn.jvp(f, (1.0,), (1.0,)), lambda: fn.vmap(f)(fn.ones(2))):
        with pytest.raises(Mine):
            call()


def test_files_are_os_errors_with_the_librarys_text(tmp_path):
    with pytest.raises(OSError) as caught:
        fn.load_npy(tmp_path / "missing.npy")
    assert caught.value.code == "bad-file" and "missing.npy" in str(caught.value)
    (tmp_path / "wrong.npy").write_bytes(b"not an array")
    with pytest.raises(OSError):
        fn.load_npy(tmp_path / "wrong.npy")
    fn.save_npy(tmp_path / "right.npy", X)
    np.testing.assert_array_equal(np.load(tmp_path / "right.npy"), X)
    assert fn.load_npy(str(tmp_path / "right.npy"), "float32").dtype == np.float32
    with pytest.raises(TypeError, match="int64"):
        fn.load_npy(tmp_path / "right.npy", int)


def test_sizes_that_overflow_are_refused():
    with pytest.raises(ValueError):
        fn.broadcast_to(np.ones(1), (2**31, 2**31, 2**31))
    with pytest.raises(ValueError):
        fn.reshape(np.ones(1), (2**70,))
