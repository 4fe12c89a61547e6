"""`@fn.compile`: a program for each kind of arguments, the bits of the function, a bounded cache."""

import copy
import dataclasses
import enum
import pickle
import warnings

import numpy as np
import pytest
from test_compile import assert_same
from test_threads import run_in_threads
from test_transforms import batch_of, loss, parameters_of

import fenestra as fn


def counted(f):
    """f, compiled, with the number of times Python ran it."""

    def function(*args, **kwargs):
        function.calls += 1
        return f(*args, **kwargs)

    function.calls = 0
    return fn.compile(function), function


@fn.compile
def squared(x, *, scale=1.0):
    """A docstring."""
    return scale * x * x


def test_new_shapes_dtypes_structures_and_constants_are_traced_once_each(rng):
    f = lambda x, options: fn.sum(x["a"] * options[0]) + fn.relu(x["b"])
    compiled, count = counted(f)
    kinds = [
        lambda: ({"a": rng.normal(size=3), "b": rng.normal(size=2)}, (2.0,)),
        lambda: ({"a": rng.normal(size=4), "b": rng.normal(size=2)}, (2.0,)),
        lambda: ({"a": rng.normal(size=(3, 1)), "b": rng.normal(size=2)}, (2.0,)),
        lambda: ({"a": rng.normal(size=3).astype("float32"), "b": rng.normal(size=2).astype("float32")}, (2.0,)),
        lambda: ({"a": rng.normal(size=3), "b": rng.normal(size=2)}, (3.0,)),
        lambda: ({"a": rng.normal(size=3), "b": rng.normal(size=2)}, (3,)),
        lambda: ({"a": rng.normal(size=3), "b": rng.normal(size=2)}, [3, None]),
        lambda: ({"a": rng.normal(size=3), "b": rng.normal(size=2), "c": "text"}, (3,)),
        lambda: ({"a": rng.normal(size=3), "b": rng.normal(size=2)}, (rng.normal(size=3),)),
    ]  # fmt: skip
    for round in range(3):
        for kind in kinds:
            args = kind()
            assert_same(compiled(*args), f(*args))
    assert count.calls == len(kinds)
    assert compiled.cache_info() == fn.CacheInfo(hits=2 * len(kinds), misses=len(kinds), maxsize=32, currsize=len(kinds))


def test_tensors_arrays_and_layouts_of_memory_share_a_program(rng):
    compiled, count = counted(lambda x: fn.sum(x, 0))
    x = rng.normal(size=(3, 2))
    frozen = x.copy()
    frozen.setflags(write=False)
    for same in (x, fn.tensor(x), np.asfortranarray(x), x.astype(">f8"), frozen, x[::-1][::-1]):
        assert_same(compiled(same), fn.sum(x, 0))
    labels, count_labels = counted(lambda x, t: fn.cross_entropy(x, t))
    for kind in (np.int64, np.int32, np.uint8):
        assert_same(labels(x, np.array([0, 1, 1], kind)), fn.cross_entropy(x, np.array([0, 1, 1])))
    assert count.calls == count_labels.calls == 1


class Mode(enum.Enum):
    TWICE = 2


@dataclasses.dataclass(frozen=True)
class Frozen:
    factor: float


@pytest.mark.parametrize("first, second", [
    (0.0, -0.0), (1, 1.0), (1, True), ("a", "b"), (None, 0), (np.float32(1), np.float64(1)), (2**70, 2**71),
    (Mode.TWICE, 2), (Frozen(1.0), Frozen(2.0)), ([1, 2], (1, 2)), ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    (slice(1), slice(2)), (abs, len), (b"a", b"b"), (..., None), (1j, 2j), (float("inf"), float("nan")),
])
def test_constants_that_differ_are_different_programs(first, second):
    seen = []
    compiled = fn.compile(lambda x, constant: (seen.append(constant), x * 2)[1])
    for _ in range(2):
        for constant in (first, second):
            compiled(np.ones(2), constant)
    assert [(type(c), repr(c)) for c in seen] == [(type(c), repr(c)) for c in (first, second)]


def test_objects_that_may_change_are_refused():
    class Model:
        weight = np.ones(2)

        @fn.compile
        def forward(self, x):
            return x * self.weight

    @dataclasses.dataclass
    class Options:
        factor: float = 1.0

    for call in (lambda: Model().forward(np.ones(2)), lambda: squared(np.ones(2), scale=Options()),
                 lambda: squared(np.ones(2), scale=object()), lambda: squared(np.ones(2), scale={1, 2})):
        with pytest.raises(TypeError, match="may change without its program"):
            call()
    model = Model()
    assert fn.compile(lambda x: x * model.weight)(np.full(2, 3.0)).tolist() == [3, 3]


def test_arguments_by_name_and_by_place(rng):
    x = rng.normal(size=3)
    assert_same([squared(x), squared(x, scale=2.0), squared(x=x), squared(x, scale=x)],
                [x * x, 2 * x * x, x * x, x * x * x])
    explicit = fn.compile(lambda x, w, *, k: (x - w) * k, x, w=2 * x, k=3)
    assert_same([explicit(x, x, k=3), explicit(k=3, w=x, x=x), explicit(w=x, k=3, x=2 * x)], [0 * x, 0 * x, 3 * x])
    with pytest.raises(ValueError, match="k is 4, compiled for the constant 3"):
        explicit(x, x, k=4)
    with pytest.raises(TypeError, match="arguments by name none, compiled for k"):
        explicit(x, x)


def test_the_cache_is_bounded_and_says_so():
    compiled = fn.compile(cache_size=3)(lambda x, k: x * k)
    x = np.ones(2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for k in range(8):
            assert compiled(x, float(k)).tolist() == [k, k]
            compiled(x, 0.0)  # used all the time, so it stays
    assert len(caught) == 1 and "an array instead of a number" in str(caught[0].message)
    assert "k = 3.0" in str(caught[0].message)
    assert [p.arguments for p in compiled.programs()] == [
        "x float64 (2,), k = 6.0", "x float64 (2,), k = 7.0", "x float64 (2,), k = 0.0"]  # fmt: skip
    assert compiled.cache_info() == fn.CacheInfo(hits=8, misses=8, maxsize=3, currsize=3)
    assert "mul" in compiled.explain() and compiled.peak_bytes >= 0 and "3 programs" in repr(compiled)
    compiled.cache_clear()
    assert compiled.cache_info() == fn.CacheInfo(hits=0, misses=0, maxsize=3, currsize=0)
    assert compiled(x, 5.0).tolist() == [5, 5]


def test_a_step_of_training_goes_on_with_batches_of_any_size(rng):
    parameters = parameters_of(rng)

    def step(p, x, labels, *, rate):
        value, grads = fn.value_and_grad(loss)(p, x, labels)
        return value, fn.tree_map(lambda w, w_bar: w - rate * w_bar, p, grads)

    compiled, count = counted(step)
    eager = program = parameters
    for size in (4, 4, 3, 4, 3, 1):
        x, labels = batch_of(rng, size)
        expected, eager = step(eager, x, labels, rate=np.array(0.1))
        found, program = compiled(program, x, labels, rate=np.array(0.1))
        assert_same((found, program), (expected, eager))
    assert count.calls == 3
    assert isinstance(program["head"], list) and list(program) == list(eager)


def test_under_a_transform_it_is_the_function_and_no_grad_is_another_program(rng):
    x = rng.normal(size=3)
    f = lambda x: fn.sum(x**3)
    compiled, count = counted(f)
    assert_same(fn.grad(compiled)(x), fn.grad(f)(x))
    assert_same(fn.vmap(compiled)(x[None]), fn.vmap(f)(x[None]))
    assert_same(fn.compile(lambda x: compiled(x) * 2)(x), f(x) * 2)
    gradient = fn.compile(fn.grad(f))
    with fn.no_grad():
        inside = gradient(x)
    with fn.no_grad():
        assert_same(inside, fn.grad(f)(x))
    assert_same(gradient(x), fn.grad(f)(x))


def test_a_function_that_raises_leaves_nothing_behind():
    compiled = fn.compile(lambda x: x if x.sum() > 0 else -x)
    for _ in range(2):
        with pytest.raises(TypeError, match="not known while"):
            compiled(np.ones(2))
    assert compiled.cache_info().currsize == 0
    with pytest.raises(TypeError, match="bool"):
        squared(np.ones(2) > 0)
    with pytest.raises(TypeError, match="missing"):
        squared()
    cycle = []
    cycle.append(cycle)
    with pytest.raises(RecursionError):
        squared(cycle)


@pytest.mark.parametrize("size", [0, -1, 1.5, "3"])
def test_a_cache_holds_at_least_one(size):
    with pytest.raises(ValueError, match="cache_size"):
        fn.compile(lambda x: x, cache_size=size)
    with pytest.raises(TypeError, match="no function"):
        fn.compile(3)


def test_it_looks_like_the_function():
    assert squared.__name__ == "squared" and squared.__doc__ == "A docstring."
    assert pickle.loads(pickle.dumps(squared)) is squared and copy.deepcopy(squared) is squared
    assert "squared" in repr(squared)


def test_trees_of_other_kinds_come_back_as_they_are():
    import collections

    Pair = collections.namedtuple("Pair", "left right")

    class Parameters(dict):
        pass

    f = lambda p: (Pair(p["w"] * 2, None), Parameters(w=p["w"]), [p["w"]], ())
    compiled = fn.compile(f)
    p = Parameters(w=np.ones(2))
    for _ in range(2):
        pair, parameters, listed, nothing = compiled(p)
        assert type(pair) is Pair and pair.right is None and type(parameters) is Parameters
        assert type(listed) is list and nothing == () and pair.left.tolist() == [2, 2]


def test_threads_share_it(rng):
    compiled, _ = counted(lambda x: fn.sum(x * x, 0))
    inputs = [rng.normal(size=(n, 3)) for n in range(1, 5)]

    def work(i):
        for round in range(50):
            x = inputs[(i + round) % 4]
            assert_same(compiled(x), fn.sum(x * x, 0))

    run_in_threads(work)
    assert compiled.cache_info().currsize == 4
