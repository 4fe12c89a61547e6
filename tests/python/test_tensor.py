"""Class Tensor as a NumPy user expects it, and the memory it shares."""

import copy
import pickle
import warnings

import numpy as np
import pytest

import fenestra as fn


def array(tensor):
    return np.asarray(tensor)


def test_contiguous_arrays_are_borrowed_and_seen_through():
    for dtype in (np.float32, np.float64):
        x = np.arange(6, dtype=dtype).reshape(2, 3)
        t = fn.asarray(x)
        x[0, 0] = 10
        assert t[0, 0].item() == 10
        assert np.shares_memory(t.numpy(), x)
        t.numpy()[1, 1] = 20
        assert x[1, 1] == 20
        t[1, 2] = 30
        assert x[1, 2] == 30


def test_results_are_writable_and_numpy_shares_their_memory():
    x = np.ones((2, 3))
    y = fn.exp(x)
    view = y.numpy()
    assert view.flags.writeable
    assert np.shares_memory(view, y.numpy())
    assert np.shares_memory(view, np.asarray(y))
    view[0, 0] = 7
    assert y[0, 0].item() == 7
    assert x[0, 0] == 1


def test_operators_never_write_into_the_callers_memory():
    x = np.array([1.0, 2.0])
    y_bar = np.array([1.0, 1.0])
    _, pullback = fn.vjp(lambda x: x + x + x, x)
    np.testing.assert_array_equal(array(pullback(y_bar)), [3, 3])
    np.testing.assert_array_equal(x, [1, 2])
    np.testing.assert_array_equal(y_bar, [1, 1])


def test_what_a_tape_saved_does_not_change_with_the_result():
    tape = fn.Tape()
    x = tape.parameter([1.0, 2.0])
    y = fn.exp(x)
    value = y.detach()
    expected = array(value).copy()
    value.numpy()[:] = 0
    np.testing.assert_array_equal(array(tape.backward(y)[x]), expected)


def test_read_only_arrays_stay_as_they_are():
    x = np.arange(3.0)
    x.flags.writeable = False
    view = fn.asarray(x).numpy()
    view[0] = 5
    assert x[0] == 0


@pytest.mark.parametrize("change", [lambda x: x[:, ::2], lambda x: x.T, lambda x: x[::-1],
                                    lambda x: x.astype(">f8"), lambda x: np.asfortranarray(x)])
def test_arrays_of_any_strides_and_byte_order_are_taken(change):
    x = change(np.arange(12.0).reshape(3, 4))
    np.testing.assert_array_equal(array(fn.asarray(x)), x)
    np.testing.assert_array_equal(array(fn.neg(x)), -x)


def test_unaligned_arrays_are_taken():
    x = np.frombuffer(bytearray(b"x" + np.arange(4.0).tobytes()), dtype=np.float64, offset=1)
    assert not x.flags.aligned
    assert np.asarray(fn.asarray(x)).flags.aligned  # copied: kernels read whole numbers
    np.testing.assert_array_equal(array(fn.neg(x)), -x)


def test_attributes_are_those_of_an_array():
    t = fn.asarray(np.zeros((2, 3, 4), np.float32))
    assert (t.shape, t.ndim, t.size, t.dtype) == ((2, 3, 4), 3, 24, np.float32)
    assert len(t) == 2 and t.T.shape == (4, 3, 2)
    assert [row.shape for row in t] == [(3, 4)] * 2
    assert fn.tensor(2.5).item() == 2.5 and float(fn.tensor([[2.5]])) == 2.5
    assert t.reshape(6, 4).shape == t.reshape((6, -1)).shape == (6, 4)
    assert t.transpose(2, 0, 1).shape == (4, 2, 3)
    assert t.astype("float64").dtype == np.float64 and t.astype(np.float32) is t
    assert not t.is_tracked


def test_repr_shows_numbers_and_type():
    assert repr(fn.tensor([1.0, 2.5])) == "Tensor([1. , 2.5], dtype=float64)"
    assert repr(fn.zeros((0, 2), "float32")) == "Tensor([], shape=(0, 2), dtype=float32)"
    assert repr(fn.zeros(0)) == "Tensor([], dtype=float64)"
    large = repr(fn.zeros((100, 100)))
    assert large.endswith("shape=(100, 100), dtype=float64)") and "..." in large and len(large) < 1000
    with np.printoptions(threshold=3, precision=2):
        assert repr(fn.tensor([0.123, 1, 2, 3])) == "Tensor([0.12, 1.  , 2.  , 3.  ], shape=(4,), dtype=float64)"


def test_repr_says_what_a_tensor_is_inside_a_transform():
    seen = []

    def f(x):
        seen.append(repr(x))
        return fn.sum(x * x)

    fn.grad(f)(np.ones(2))
    fn.jvp(f, (np.ones(2),), (np.ones(2),))
    fn.vmap(f)(np.ones((3, 2)))
    fn.compile(f, np.ones(2))
    assert seen == [
        "Tensor([1., 1.], dtype=float64, on a tape)",
        "Tensor([1., 1.], dtype=float64, with a tangent)",
        "Tensor(<numbers not known here>, shape=(2,), dtype=float64, each of 3 samples)",
        "Tensor(<numbers not known here>, shape=(2,), dtype=float64, being compiled)",
    ]  # fmt: skip


def test_a_single_element_is_formatted_like_a_number():
    loss = fn.tensor(1.23456, "float32")
    assert f"{loss:.3f}|{fn.tensor([[2.5]]):8.2e}|{loss:>7.1f}" == "1.235|2.50e+00|    1.2"
    assert f"{fn.tensor(1.5)}" == "1.5" and f"{fn.tensor([1.5])}" == "Tensor([1.5], dtype=float64)"
    texts = []
    fn.grad(lambda x: (texts.append(f"{x:.1f}"), x * x)[1])(2.0)
    fn.vmap(lambda x: (texts.append(f"{x}"), x * x)[1])(np.ones(2))
    assert texts[0] == "2.0" and "each of 2 samples" in texts[1]
    with pytest.raises(TypeError, match=r"format: the tensor \(2,\) is not a single element"):
        f"{fn.ones(2):.3f}"
    with pytest.raises(TypeError, match="stands for all samples"):
        fn.vmap(lambda x: fn.tensor(float(f"{x:.3f}")))(np.ones(2))
    with pytest.raises(ValueError):
        f"{loss:.3q}"


def test_tolist_gives_nested_lists_of_numbers():
    assert fn.tensor([[1.0, 2.0], [3.0, 4.0]]).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert fn.tensor(2.5, "float32").tolist() == 2.5 and fn.zeros((0, 2)).tolist() == []
    assert type(fn.ones(1, "float32").tolist()[0]) is float
    seen = []
    fn.grad(lambda x: (seen.append(x.tolist()), fn.sum(x))[1])(np.ones(2))
    assert seen == [[1.0, 1.0]]
    with pytest.raises(TypeError, match="tolist: .*not known while"):
        fn.compile(lambda x: x * x.tolist()[0], np.ones(2))


def test_operators_are_those_of_numpy(rng):
    a, b = rng.uniform(1, 2, (3, 2)), rng.uniform(1, 2, (3, 1))
    m = rng.uniform(1, 2, (2, 2))
    ta, tb = fn.asarray(a), fn.asarray(b)
    for got, expected in [
        (ta + tb, a + b), (ta - tb, a - b), (ta * tb, a * b), (ta / tb, a / b), (-ta, -a),
        (abs(-ta), a), (+ta, a), (ta + 1, a + 1), (1 - ta, 1 - a), (2 * ta, 2 * a), (1 / ta, 1 / a),
        (a + tb, a + b), (ta * b, a * b), (a / tb, a / b), (a - tb, a - b), (ta**2, a**2),
    ]:  # fmt: skip
        np.testing.assert_array_equal(array(got), expected)
        assert isinstance(got, fn.Tensor)
    u = np.finfo(np.float64).eps / 2
    np.testing.assert_allclose(array(ta @ m), a @ m, rtol=4 * u)
    np.testing.assert_allclose(array(m @ ta.T), m @ a.T, rtol=4 * u)
    np.testing.assert_allclose(array(ta**tb), a**b, rtol=8 * u)
    np.testing.assert_allclose(array(2.0**tb), 2.0**b, rtol=8 * u)


def test_python_numbers_do_not_change_the_type():
    t = fn.ones(2, "float32")
    for result in (t + 1, 2.5 * t, t**2, t / 3, np.float64(2) * t, t + np.float32(1), t + [1, 2]):
        assert result.dtype == np.float32


def test_comparisons_give_numpy_truth_values():
    a, b = fn.tensor([1.0, 2.0, 3.0]), fn.tensor([3.0, 2.0, 1.0])
    for got, expected in [(a < b, [1, 0, 0]), (a <= b, [1, 1, 0]), (a == b, [0, 1, 0]),
                          (a != b, [1, 0, 1]), (a > 2, [0, 0, 1]), (a >= np.array(2.0), [0, 1, 1])]:
        assert isinstance(got, np.ndarray) and got.dtype == bool
        np.testing.assert_array_equal(got, np.array(expected, bool))
    assert fn.tensor(1.0) and not fn.tensor(0.0)
    assert hash(a) == hash(a)
    assert 2 in a and 5 not in a and int(fn.tensor(2.5)) == 2


@pytest.mark.parametrize("name, compare", [
    ("greater", lambda x: x > 0), ("less", lambda x: x < 0), ("equal", lambda x: x == 0), ("less", lambda x: 0 > x),
    ("greater_equal", lambda x: x >= x), ("less_equal", lambda x: x <= 0), ("not_equal", lambda x: x != 0),
])
def test_comparisons_name_the_function_where_there_are_no_truth_values(name, compare):
    x = np.array([[-1.0, 2.0], [3.0, 0.0]])
    for call in (fn.compile(lambda x: fn.where(compare(x), x, 0.0)), fn.vmap(lambda x: x * compare(x))):
        with pytest.raises(TypeError, match=rf"comparison: .*\n  fix: fn\.{name} gives zeros and ones"):
            call(x)
    ours = getattr(fn, name)
    assert fn.vmap(lambda x: fn.where(ours(x, 0.0), x, 0.0))(x).shape == x.shape


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_comparisons_give_is_calculated_with_as_zeros_and_ones(dtype):
    x = np.array([[-1.0, 2.0], [3.0, -4.0]], dtype)
    t = fn.asarray(x)
    for got, expected in [(t * (t > 0), x * (x > 0)), ((t > 0) * t, x * (x > 0)), (t + True, x + 1),
                          (t - (t[0, 0] < 0), x - 1), (True - t, 1 - x), ((x > 2) / t, (x > 2) / x)]:
        assert got.dtype == dtype
        np.testing.assert_array_equal(array(got), expected)
    bar = fn.grad(lambda t: fn.sum(t * t * (t > 0)))(t)
    np.testing.assert_array_equal(array(bar), 2 * x * (x > 0))
    with pytest.raises(TypeError, match="bool"):
        fn.asarray(x > 0)


KEYS = [0, -1, (1, 2), (slice(None), 1), (..., 0), (0, ...), None, (None, 0, ..., None), slice(1, None),
        slice(None, None, -1), (slice(None, None, 2), slice(3, 0, -2)), slice(2, 2), (..., slice(0, 1)),
        [0, 2], (slice(None), [1, 1, 0]), np.array([[0, 1], [2, 0]]), (np.array([0, 1]), np.array([1, 3])),
        (np.int64(1), 2), ()]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_indexing_is_that_of_numpy_and_differentiable(key):
    x = np.arange(60.0).reshape(3, 4, 5)
    np.testing.assert_array_equal(array(fn.asarray(x)[key]), x[key])
    y_bar = np.arange(1.0, x[key].size + 1).reshape(x[key].shape)
    expected = np.zeros_like(x)
    np.add.at(expected, key, y_bar)
    _, pullback = fn.vjp(lambda t: t[key], x)
    np.testing.assert_array_equal(array(pullback(y_bar)), expected)
    np.testing.assert_array_equal(array(fn.jvp(lambda t: t[key], (x,), (2 * x,))[1]), 2 * x[key])


@pytest.mark.parametrize("key", [
    np.arange(6).reshape(2, 3) > 2, (slice(None), [True, False, True]), (0, np.array([True, False, True])), True,
    False, (True, 1)], ids=str)
def test_a_mask_selects_what_it_says(key):
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(array(fn.asarray(x)[key]), x[key])
    changed, t = x.copy(), fn.tensor(x)
    changed[key] = t[key] = -1
    np.testing.assert_array_equal(array(t), changed)


def test_a_truth_value_of_numpy_is_a_mask_and_no_index():
    x = np.arange(6.0).reshape(2, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # NumPy's own arrays are asked the same
        np.testing.assert_array_equal(array(fn.asarray(x)[np.bool_(True)]), x[np.bool_(True)])


@pytest.mark.parametrize("key", [3, -4, (0, 0, 0, 0), (..., ...)], ids=str)
def test_indices_outside_raise_index_errors(key):
    with pytest.raises(IndexError):
        fn.zeros((3, 2))[key]


def test_dlpack_shares_memory_with_numpy():
    t = fn.tensor([1.0, 2.0, 3.0])
    assert t.__dlpack_device__() == (1, 0)
    view = np.from_dlpack(t)
    t.numpy()[0] = 9
    assert view[0] == 9
    again = fn.asarray(t)
    again.numpy()[1] = 8
    assert view[1] == 8


def test_dlpack_says_where_and_copies_when_asked():
    t = fn.tensor([1.0, 2.0])

    class Asking:
        def __init__(self, **options):
            self.options = options

        def __dlpack__(self, stream=None):
            return t.__dlpack__(max_version=(1, 0), **self.options)

        def __dlpack_device__(self):
            return t.__dlpack_device__()

    for options, shares in (({}, True), ({"copy": False, "dl_device": (1, 0)}, True), ({"copy": True}, False)):
        view = np.from_dlpack(Asking(**options))
        assert np.shares_memory(view, t.numpy()) == shares and view.tolist() == [1, 2]
    with pytest.raises(BufferError, match="main memory"):
        t.__dlpack__(dl_device=(2, 0))


def test_an_unused_dlpack_capsule_is_released():
    t = fn.tensor([1.0])
    for _ in range(100):
        t.__dlpack__()


def test_tensors_are_pickled_and_copied_with_their_numbers():
    t = fn.tensor([[1.0, 2.0]], dtype="float32")
    for other in (pickle.loads(pickle.dumps(t)), copy.deepcopy({"t": t})["t"]):
        assert other.dtype == np.float32 and (other == t).all()
        other[0, 0] = 9
        assert t[0, 0].item() == 1


def test_creation_says_shape_and_type():
    assert fn.zeros((2, 3)).dtype == np.float64 and fn.ones(3, "float32").shape == (3,)
    np.testing.assert_array_equal(array(fn.full((2,), 3)), [3, 3])
    x = np.array([1.0, 2.0])
    assert not np.shares_memory(fn.tensor(x).numpy(), x)
    assert not np.shares_memory(fn.asarray(x).copy().numpy(), x)
    assert fn.zeros_like(fn.ones((2, 1), "float32")).dtype == np.float32
