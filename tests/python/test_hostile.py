"""Calls that nobody should make end with an exception in Python's words: no crash, no hang, no SystemError."""

import ctypes
import gc
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import fenestra as fn

PARTS = 6


@pytest.mark.parametrize("part", range(PARTS))
def test_every_public_function_survives_wrong_arguments(part, tmp_path):
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hostile.py")
    log = tmp_path / "log"
    command = [sys.executable, "-X", "faulthandler", script, str(log), "7", str(part), str(PARTS)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    last = log.read_text(encoding="utf-8", errors="backslashreplace").splitlines()[-1:]
    ended = signal.Signals(-ran.returncode).name if ran.returncode < 0 else ran.returncode
    assert ran.returncode == 0, f"ended with {ended} after {last}\n{ran.stdout}\n{ran.stderr[-4000:]}"
    made = int(ran.stdout.split()[0])
    assert made > 10_000


def test_an_unfinished_tensor_is_no_tensor():
    unfinished = fn.Tensor.__new__(fn.Tensor)
    for use in (lambda: unfinished.shape, lambda: unfinished + 1, lambda: fn.relu(unfinished), lambda: repr(unfinished)):
        with pytest.raises(TypeError):
            use()


@pytest.mark.parametrize("call", [fn.conv2d, fn.asarray, fn.Tensor, fn.load_npy, fn.tensor(1.0).astype, fn.tensor(1.0).detach])
def test_a_keyword_that_is_no_text_is_a_type_error(call):
    with pytest.raises(TypeError):
        call(**{"\ud800": 1})


def test_a_name_that_is_no_text_is_written_with_escapes():
    x, w = np.ones((1, 1, 4, 4)), np.ones((1, 1, 3, 3))
    with pytest.raises(TypeError, match=r"no argument \\ud800"):
        fn.conv2d(x, w, **{"\ud800": 1})
    with pytest.raises(ValueError, match=r"\\udcff"):
        fn.conv2d(x, w, layout="\udcff")
    with pytest.raises(OSError, match=r"\\xff"):
        fn.load_npy("\udcff")  # a path of bytes that are no text


@pytest.mark.parametrize("call", [
    lambda m: fn.relu(m), lambda m: fn.conv2d(m, np.ones((1, 1, 1, 1))), lambda m: fn.mul(np.ones(m.shape), m),
    lambda m: fn.maximum(m, m), lambda m: fn.sum(m), lambda m: fn.asarray(m), lambda m: fn.concat([m, m]),
    lambda m: fn.grad(fn.sum)(m), lambda m: fn.save_npy("no such folder/a", m)])  # fmt: skip
def test_arrays_of_truth_values_are_refused_like_integers(call):
    truths = np.ones((1, 1, 2, 2), bool)
    for array in (truths, truths.astype(int)):
        with pytest.raises(TypeError, match="needed float32 or float64"):
            call(array)


def test_lists_are_numbers_and_nothing_that_numpy_would_make_numbers_of():
    np.testing.assert_array_equal(np.asarray(fn.neg([1, 2.5])), [-1, -2.5])
    for wrong in (["1"], [None], [True], [1j], [[1], [1, 2]], [object()]):
        with pytest.raises(TypeError):
            fn.neg(wrong)


def test_memory_errors_say_what_was_asked_for():
    huge = np.broadcast_to(1.0, (2**20, 2**22))
    for call in (lambda: fn.broadcast_to(np.ones(1), (2**20, 2**22)), lambda: fn.relu(huge), lambda: fn.tensor(huge),
                 lambda: fn.zeros((2**20, 2**22)), lambda: fn.pad(np.ones(4), [(2**42, 2**42)])):  # fmt: skip
        with pytest.raises(MemoryError) as caught:
            call()
        assert len(str(caught.value)) > 10 and "std" not in str(caught.value)
    with pytest.raises(MemoryError, match=r"broadcast_to.*\(1048576, 4194304\).*35184372088832 bytes"):
        fn.broadcast_to(np.ones(1), (2**20, 2**22))


def test_advice_is_in_pythons_words():
    tape = fn.Tape()
    v = tape.parameter([1.0, 2.0])
    y = fn.sum(v * v)
    tape.backward(y)
    with pytest.raises(ValueError, match="retain=True") as caught:
        tape.backward(y)
    assert "{." not in str(caught.value) and caught.value.code == "released-graph"
    with pytest.raises(ValueError, match="align_corners=False"):
        fn.resize(np.ones((1, 1, 4, 4)), size=2, align_corners=True, mode="nearest")
    with pytest.raises(ValueError, match=r"(?s)input \(N,C,H,W\) = .*weight = .*fix: bias of shape \(4,\)"):
        fn.conv2d(np.ones((1, 3, 8, 8)), np.ones((4, 3, 3, 3)), np.ones(3))
    with pytest.raises(ValueError, match="fix: kernel_size >= 1"):
        fn.max_pool2d(np.ones((1, 3, 8, 8)), 0)
    with pytest.raises(ValueError, match="fix: weight of shape"):
        fn.layer_norm(np.ones((2, 3)), np.ones(4), np.ones(3))


# --- DLPack by hand ------------------------------


class DlTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("rank", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]  # fmt: skip


class DlManaged(ctypes.Structure):
    pass


DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(DlManaged))
DlManaged._fields_ = [("tensor", DlTensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Offer:
    """Offers a buffer as a tensor, and counts how often its memory was given back."""

    def __init__(self, buffer, shape, strides=None, *, name=b"dltensor", device=1, code=2, bits=64, lanes=1, rank=None,
                 offset=0, address=0, no_data=False, no_shape=False):  # fmt: skip
        self.buffer, self.released, self.name = buffer, 0, name
        where = np.frombuffer(buffer, np.uint8).ctypes.data if len(buffer) else 0
        extents = (ctypes.c_int64 * len(shape))(*shape)
        steps = None if strides is None else (ctypes.c_int64 * len(strides))(*strides)
        self.kept = extents, steps
        tensor = DlTensor(None if no_data else where + address, device, 0, len(shape) if rank is None else rank, code, bits,
                          lanes, None if no_shape else extents, steps, offset)  # fmt: skip
        self.managed = DlManaged(tensor, None, DELETER(self.release))

    def release(self, _managed):
        self.released += 1

    def __dlpack__(self):
        return new_capsule(ctypes.addressof(self.managed), self.name, None)


NUMBERS = np.arange(12.0)
BYTES = NUMBERS.tobytes() + b"12345678"


@pytest.mark.parametrize("offer, expected", [
    (lambda: Offer(BYTES, (3, 4)), NUMBERS.reshape(3, 4)),
    (lambda: Offer(BYTES, (3, 4), (4, 1)), NUMBERS.reshape(3, 4)),
    (lambda: Offer(BYTES, (4, 3), (1, 4)), NUMBERS.reshape(3, 4).T),
    (lambda: Offer(BYTES, (2, 3), (4, 1), offset=32), NUMBERS.reshape(3, 4)[1:, :3]),
    (lambda: Offer(BYTES, (3,), (-4,), offset=64), NUMBERS[8::-4]),
    (lambda: Offer(BYTES, (2, 5), (0, 1)), np.tile(NUMBERS[:5], (2, 1))),
    (lambda: Offer(BYTES, ()), NUMBERS[0]),
    (lambda: Offer(BYTES, (), offset=8), NUMBERS[1]),
    (lambda: Offer(BYTES, (1, 1, 12), (99, 99, 1)), NUMBERS.reshape(1, 1, 12)),
    (lambda: Offer(b"x" + BYTES, (3, 4), address=1), NUMBERS.reshape(3, 4)),
    (lambda: Offer(b"x" + BYTES, (3, 4), (4, 1), address=1), NUMBERS.reshape(3, 4)),
    (lambda: Offer(b"x" + BYTES, (2, 2), (4, 2), offset=1), NUMBERS.reshape(3, 4)[:2, ::2]),
    (lambda: Offer(b"", (0, 3), no_data=True), np.zeros((0, 3))),
    (lambda: Offer(b"", (2, 0), (-5, 2**62), no_data=True), np.zeros((2, 0))),
    (lambda: Offer(np.float32([1, 2]).tobytes(), (2,), bits=32), np.float32([1, 2])),
    (lambda: Offer(BYTES, (1,) * 16), NUMBERS[:1].reshape((1,) * 16)),
])  # fmt: skip
def test_dlpack_of_any_strides_and_alignment_is_read_and_released_once(offer, expected):
    offered = offer()
    taken = fn.asarray(offered)
    assert taken.dtype == expected.dtype
    np.testing.assert_array_equal(np.asarray(taken), expected)
    np.testing.assert_array_equal(np.asarray(fn.neg(taken)), -expected)
    del taken
    gc.collect()
    assert offered.released == 1


@pytest.mark.parametrize("offer, kind, text", [
    (lambda: Offer(BYTES, (3,), device=2), TypeError, "main memory"),
    (lambda: Offer(BYTES, (3,), code=0), TypeError, "float32 or float64"),
    (lambda: Offer(BYTES, (3,), code=6, bits=8), TypeError, "float32 or float64"),
    (lambda: Offer(BYTES, (3,), bits=16), TypeError, "float32 or float64"),
    (lambda: Offer(BYTES, (3,), lanes=2), TypeError, "float32 or float64"),
    (lambda: Offer(BYTES, (1,) * 17), ValueError, "17 axes"),
    (lambda: Offer(BYTES, (3,), rank=2**31 - 1), ValueError, "2147483647 axes"),
    (lambda: Offer(BYTES, (3,), rank=-1), ValueError, "-1 axes"),
    (lambda: Offer(BYTES, (-3,)), ValueError, "no memory holds"),
    (lambda: Offer(BYTES, (2**62, 2**62)), ValueError, "no memory holds"),
    (lambda: Offer(BYTES, (3,), no_shape=True), ValueError, "without extents"),
    (lambda: Offer(BYTES, (3,), no_data=True), ValueError, "without memory"),
    (lambda: Offer(BYTES, (3, 3), (2**62, 1)), ValueError, "strides"),
    (lambda: Offer(BYTES, (3, 3), (-(2**63), 1)), ValueError, "strides"),
    (lambda: Offer(BYTES, (3,), name=b"used_dltensor"), TypeError, "used already"),
    (lambda: Offer(BYTES, (3,), name=b"something"), TypeError, "no capsule named dltensor"),
])  # fmt: skip
def test_dlpack_that_is_not_to_be_believed_is_refused_and_not_taken(offer, kind, text):
    offered = offer()
    with pytest.raises(kind, match=text):
        fn.relu(offered)
    gc.collect()
    assert offered.released == 0


def test_a_capsule_is_taken_once():
    capsule = fn.tensor([1.0, 2.0]).__dlpack__()

    class Again:
        def __dlpack__(self):
            return capsule

    np.testing.assert_array_equal(np.asarray(fn.asarray(Again())), [1, 2])
    with pytest.raises(TypeError, match="used already"):
        fn.asarray(Again())
