"""Calls public functions with arguments that nobody should pass: what test_hostile.py runs, in processes of
its own, because what it looks for are crashes and hangs.

    hostile.py LOG SEED PART OF    every OF-th function from PART on; exit code 0: all calls ended well

Ending well is a result, or an exception that a Python programmer expects, with a text in Python's words. The
log names each call before it is made, so that the last line names the one that ended the process.
"""

import array
import decimal
import faulthandler
import fractions
import inspect
import itertools
import os
import random
import re
import resource
import sys
import tempfile
import time
import warnings

import numpy as np
import onnx_files as files

import fenestra as fn

SECONDS_PER_CALL = 10
EXPECTED = (TypeError, ValueError, OverflowError, MemoryError, OSError, IndexError, BufferError, RecursionError)
# Spellings of C++ and names of our own insides.
FOREIGN = re.compile(r"std::|::|\{\.|bad_alloc|nullptr|nullopt|basic_string|vector<|Tensor<|AnyT|Value<|\btrue\b|\bfalse\b")


class Boom(Exception):
    """What the caller's own objects raise: it must come through."""


def raising(*_args, **_kwargs):
    raise Boom("from the caller's object")


def an_object(**members):
    """An instance of a new class with these methods."""
    return type("Evil", (), {name: member for name, member in members.items()})()


class TensorSubclass(fn.Tensor):
    pass


class ArraySubclass(np.ndarray):
    pass


def stale_tensors():
    """Tensors whose transform is over."""
    kept = []

    def keep(x):
        kept.append(x)
        return fn.sum(x * x)

    fn.grad(keep)(np.ones(3))
    fn.jvp(keep, (np.ones(3),), (np.ones(3),))
    fn.vmap(keep)(np.ones((2, 3)))
    tape = fn.Tape()
    kept.append(tape.parameter(np.ones((1, 2, 6, 6))))
    tape.reset()
    return kept


def endless():
    while True:
        yield 1.0


def hostile_values():
    x = np.arange(72.0).reshape(1, 2, 6, 6)
    read_only = x.copy()
    read_only.flags.writeable = False
    misaligned = np.frombuffer(b"x" + x.tobytes(), offset=1).reshape(x.shape)
    itself = []
    itself.append(itself)
    deep = 1.0
    for _ in range(200):
        deep = [deep]
    stale = stale_tensors()
    return {
        # Numbers.
        "none": None, "true": True, "zero": 0, "one": 1, "minus": -1, "2^31-1": 2**31 - 1, "2^31": 2**31, "2^32": 2**32,
        "2^53": 2**53, "2^61": 2**61, "2^62": 2**62, "2^63-1": 2**63 - 1, "2^63": 2**63, "-2^63": -(2**63), "2^64": 2**64,
        "10^400": 10**400, "-10^400": -(10**400), "10^5000": 10**5000, "nan": float("nan"), "inf": float("inf"),
        "-inf": -float("inf"), "-0.0": -0.0, "1e308": 1e308, "0.5": 0.5, "5e-324": 5e-324, "complex": 1j,
        "fraction": fractions.Fraction(1, 2), "decimal": decimal.Decimal("1.5"),
        "np.float16": np.float16(1), "np.float32": np.float32(1), "np.float64": np.float64(1), "np.int8": np.int8(1),
        "np.int64": np.int64(-3), "np.uint64": np.uint64(2**64 - 1), "np.bool_": np.bool_(True),
        "np.complex64": np.complex64(1j), "np.str_": np.str_("x"), "np.datetime64": np.datetime64("2000-01-01"),
        # Texts and bytes.
        "empty str": "", "str": "no such name", "surrogate": "\ud800", "zero byte": "a\0b", "long str": "x" * 100_000,
        "bytes": b"bytes", "bytearray": bytearray(b"bytes"), "number as str": "1.5",
        # Sequences and others.
        "[]": [], "()": (), "{}": {}, "set": {1, 2}, "[None]": [None], "['1']": ["1"], "[True]": [True, False],
        "[[1], [1, 2]]": [[1], [1, 2]], "itself": itself, "deep": deep, "range": range(10**12), "long": [1] * 1000,
        "pairs": [(0, 1)] * 4, "wrong pairs": [(1,), (1, 2)], "huge pairs": [(2**62, 2**62)] * 2, "[2^63]": [2**63, 2**63],
        "[-1, -1]": [-1, -1], "[0, 0]": [0, 0], "(2^31, 2^31)": (2**31, 2**31), "(2^62, 2^62)": (2**62, 2**62),
        "mixed": [1, 2.5, "x", None], "arrays": [x, x], "other shapes": [x, x[0]], "generator": (i for i in range(3)),
        "endless": endless(), "iterator": iter([1, 2]), "dict": {"a": 1}, "slice": slice(None), "ellipsis": ..., "type": int,
        "np.generic": np.generic, "Tensor class": fn.Tensor, "module": np, "function": len, "object": object(),
        "not implemented": NotImplemented, "lambda": lambda *a: a[0], "raises": raising, "one of none": itertools.count(),
        # Arrays of other types.
        "bool array": x > 0, "int array": x.astype(int), "uint8 array": x.astype(np.uint8), "float16 array": x.astype(np.float16),
        "longdouble array": x.astype(np.longdouble), "complex array": x.astype(complex), "object array": x.astype(object),
        "str array": x.astype(str), "bytes array": x.astype("S"), "structured": np.zeros(3, [("\xe9", "f4"), ("b", "i4")]),
        "dates": np.zeros(3, "datetime64[s]"), "uint64 array": np.full((1, 2, 6, 6), 2**64 - 1, np.uint64),
        # Arrays of other forms.
        "x": x, "float32": x.astype(np.float32), "0-d": np.array(1.0), "0-d int": np.array(1), "empty": np.zeros(0),
        "(0, 3)": np.zeros((0, 3)), "(1, 0, 6, 6)": np.zeros((1, 0, 6, 6)), "(1, 2, 0, 6)": np.zeros((1, 2, 0, 6)),
        "1-d": np.ones(6), "2-d": np.ones((2, 6)), "3-d": np.ones((2, 6, 6)), "5-d": np.ones((1, 2, 3, 3, 3)),
        "16-d": np.ones((1,) * 16), "17-d": np.ones((1,) * 17), "32-d": np.ones((1,) * 32), "ints": np.array([1, 2]),
        "nans": np.full((1, 2, 6, 6), np.nan), "strided": np.ones((1, 2, 12, 12))[:, :, ::2, ::-2], "fortran": np.asfortranarray(x),
        "read-only": read_only, "big-endian": x.astype(">f8"), "misaligned": misaligned, "matrix": np.matrix([[1.0]]),
        "broadcast": np.broadcast_to(1.0, (1, 2, 6, 6)), "2^40 elements": np.broadcast_to(1.0, (2**20, 2**20)),
        "2^58 elements": np.broadcast_to(1.0, (2**29, 2**29)), "0 by 2^50": np.zeros((0, 2**50)), "subclass": x.view(ArraySubclass),
        "masked": np.ma.masked_array(x, x > 3), "memoryview": memoryview(x), "memoryview of bytes": memoryview(b"12345678"),
        "array.array": array.array("d", [1, 2]), "array of ints": array.array("i", [1, 2]),
        # Tensors.
        "tensor": fn.tensor(x), "tensor 0-d": fn.tensor(1.0), "tensor32": fn.ones((2, 3), "float32"),
        "not initialised": fn.Tensor.__new__(fn.Tensor), "Tensor subclass": TensorSubclass(x),
        "stale variable": stale[0], "stale jet": stale[1], "stale batch": stale[2], "of a reset tape": stale[3],
        # Objects that misbehave when asked.
        "__index__ raises": an_object(__index__=raising), "__index__ gives str": an_object(__index__=lambda self: "1"),
        "__float__ raises": an_object(__float__=raising), "__float__ gives str": an_object(__float__=lambda self: "1"),
        "__len__ raises": a_sequence(raising),
        "__len__ is -1": a_sequence(lambda self: -1),
        "__len__ is 2^62": a_sequence(lambda self: 2**62),
        "__getitem__ raises": an_object(__len__=lambda self: 2, __getitem__=raising),
        "__len__ grows": growing(), "__array__ raises": an_object(__array__=raising),
        "__array__ gives str": an_object(__array__=lambda self, *a: "x"),
        "__dlpack__ raises": an_object(__dlpack__=raising), "__dlpack__ gives None": an_object(__dlpack__=lambda self: None),
        "__dlpack__ gives an array": an_object(__dlpack__=lambda self: x),
        "__dlpack__ of ints": an_object(__dlpack__=np.ones(3, int).__dlpack__),
        "__dlpack__ used": used_capsule(), "__bool__ raises": an_object(__bool__=raising), "__eq__ raises": an_object(__eq__=raising),
        "__getattr__ raises": an_object(__getattr__=raising), "__repr__ raises": an_object(__repr__=raising),
        "__fspath__ raises": an_object(__fspath__=raising), "__call__ raises": an_object(__call__=raising),
    }  # fmt: skip


def a_sequence(length):
    """Says one length and has another: a hundred entries."""

    def entry(self, i):
        if i >= 100:
            raise IndexError
        return 1

    return an_object(__len__=length, __getitem__=entry)


def growing():
    """A sequence that is longer each time it is asked."""
    lengths = itertools.count(1)
    return a_sequence(lambda self: next(lengths))


def used_capsule():
    capsule = np.ones(3).__dlpack__()
    holder = an_object(__dlpack__=lambda self: capsule)
    np.from_dlpack(holder)
    return holder


X = np.arange(72.0).reshape(1, 2, 6, 6)
# What an argument of this name may well be, so that a call reaches the place where the next one is looked at.
SENSIBLE = {
    "input": X, "weight": np.ones((2, 2, 3, 3)), "kernel_size": 2, "output_size": 2, "norm_type": 2.0, "target": np.zeros_like(X),
    "other": X, "exponent": 2.0, "factor": 2.0, "num_groups": 1, "indices": np.zeros((1, 2, 6, 6), int), "tensors": [X, X],
    "mean": np.zeros(2), "var": np.ones(2), "shape": (2, 36), "repeats": 2, "axis": 0, "begin": 0, "count": 1, "sections": 2,
    "pad": [(1, 1)] * 4, "padding": 0, "size": (3, 3), "x": X.transpose(0, 2, 3, 1), "filter": np.ones((3, 3, 2, 2)),
    "data": X, "like": X, "value": 1.0, "dtype": None, "path": "no such folder/file.npy", "tensor": X,
    "f": lambda *a: fn.sum(fn.relu(a[0])), "primals": (X,), "tangents": (X,), "tree": {"a": X}, "min": 0.0, "max": 1.0,
    "argnums": 0, "in_axes": 0, "has_aux": False, "negative_slope": 0.1, "beta": 1.0,
    "cache_size": 4, "pattern": "*", "trained": False, "sample": (2, 6, 6),
}  # fmt: skip
# What `a_network_file` writes.
FILE = "network.onnx"
SPECIAL = {
    "linear": {"weight": np.ones((3, 6))}, "matmul": {"other": np.ones((6, 2))}, "cross_entropy": {"target": np.zeros((1, 6, 6), int)},
    "layer_norm": {"weight": np.ones(6), "bias": np.ones(6)}, "max_pool1d": {"input": X[0]}, "avg_pool1d": {"input": X[0]},
    "onnx.load": {"path": FILE}, "onnx.load with a head": {"path": FILE, "classes": 3, "cut": "h", "sample": (2, 6, 6)},
    "onnx.problems": {"path": FILE}, "a network of a file.run": {"inputs": {"x": X}},
    "a network of a file.check": {"shapes": {"x": (1, 2, 6, 6)}},
    "conv1d": {"input": X[0], "weight": np.ones((2, 6, 3))}, "conv3d": {"input": X[None], "weight": np.ones((1, 1, 1, 3, 3))},
}  # fmt: skip


def parameters_of(function):
    """Names and whether they are given by keyword only."""
    text = getattr(function, "__text_signature__", None)
    ours = inspect.isclass(function) and function.__module__ != "fenestra._core"
    if text is None and not (inspect.isroutine(function) or ours):
        return []
    try:
        listed = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        # Functions that pybind11 made say their arguments in the first line of the docstring.
        line = (function.__doc__ or "").split("\n")[0]
        inside = line[line.find("(") + 1 : line.rfind(") ->")]
        names = [part.split(":")[0].strip() for part in inside.split(", ") if ":" in part]
        return [name for name in names if name != "self"]
    return [p.name for p in listed if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def public_functions():
    """Everything that can be called from outside: (name, function, positional first arguments)."""
    for name in sorted(set(dir(fn)) - {"set_threads", "threads"}):
        function = getattr(fn, name)
        if name.startswith("_") or inspect.ismodule(function) or not callable(function):
            continue
        yield name, function
    for name in ("conv2d", "conv2d_transpose", "avg_pool2d", "max_pool2d"):
        yield f"nhwc.{name}", getattr(fn.nhwc, name)
    yield from network_functions()
    yield from onnx_functions()
    tensor = fn.tensor(X)
    for name in sorted(dir(fn.Tensor)):
        if name in ("__class__", "__init_subclass__", "__subclasshook__", "__new__", "__init__", "__setattr__",
                    "__delattr__", "__dir__", "__getattribute__", "__sizeof__", "__format__", "__reduce_ex__",
                    "__getstate__"):  # fmt: skip
            continue
        member = getattr(tensor, name)
        if callable(member):
            yield f"Tensor.{name}", member
    tape = fn.Tape()
    variable = tape.parameter(X)
    yield "Tape.parameter", tape.parameter
    yield "Tape.backward", tape.backward
    yield "Tape.backward of a tensor", lambda **kw: tape.backward(fn.sum(variable), **kw)
    compiled = fn.compile(lambda x, k: fn.conv2d(x, np.ones((2, 2, 3, 3)), stride=k), X, 1)
    yield "a compiled function", lambda data, tree: compiled(data, tree)
    cached = fn.compile(lambda x, *k, **named: fn.relu(x), cache_size=4)
    yield "a function with a cache of programs", lambda data, tree: cached(data, tree, more=tree)
    for name in ("grad", "jacrev", "jacfwd", "vmap", "per_sample_grad", "value_and_grad"):
        transformed = getattr(fn, name)(lambda *a: fn.sum(fn.relu(a[0])))
        yield f"what {name} returns", lambda data, f=transformed: f(data)
    yield "what vjp returns", lambda data, f=fn.vjp(lambda x: fn.sum(x), X)[1]: f(data)


def network_functions():
    """The same of fenestra.nn, and of what its classes make."""
    for name in sorted(dir(fn.nn)):
        function = getattr(fn.nn, name)
        # Ready models are one function; most take long.
        if not name.startswith("_") and callable(function) and name not in set(fn.nn.model_entries()) - {"lenet"}:
            yield f"nn.{name}", function
    net = fn.nn.Sequential(fn.nn.Conv(2, 2), fn.nn.BatchNorm(2), fn.nn.Dropout(0.5))
    trainer = fn.nn.Trainer(net)
    loader = fn.nn.Loader(fn.nn.array_dataset(np.ones((4, 2, 3, 3), "float32"), [0, 1, 0, 1]), batch=2)
    made = {"a layer": net, "a trainer": trainer, "a loader": loader, "a dataset": loader.dataset,
            "an optimiser": fn.nn.Optimiser("sgd"), "a schedule": fn.nn.Schedule("cosine"),
            "a loss": fn.nn.Loss(), "a matrix": fn.nn.ConfusionMatrix(3), "a key": fn.nn.Key(1),
            "a pass": fn.nn.Pass.training(1)}  # fmt: skip
    for what, thing in made.items():
        yield from methods(what, thing)


def onnx_functions():
    """The same of fenestra.onnx."""
    a_network_file()
    for name in sorted(dir(fn.onnx)):
        function = getattr(fn.onnx, name)
        if not name.startswith("_") and inspect.getmodule(function) is fn.onnx and callable(function):
            yield f"onnx.{name}", function
    yield "onnx.load with a head", fn.onnx.load
    yield from methods("a network of a file", fn.onnx.load(FILE, dtype="float64"))


def methods(what, thing):
    for name in sorted(dir(type(thing))):
        # Nothing is observed by what is not called.
        if name == "__call__" or (not name.startswith(("_", "tree_")) and name not in ("observe", "seek")):
            member = getattr(thing, name)
            if callable(member):
                yield f"{what}.{name}", member


def a_network_file():
    """A convolution, "h", a rectifier and a linear layer, as a file of this folder."""
    nodes = [files.node("Conv", ["x", "w"], ["h"]), files.node("Relu", ["h"], ["r"]), files.node("Flatten", ["r"], ["f"]),
             files.node("Gemm", ["f", "a"], ["y"])]  # fmt: skip
    tensors = [files.tensor("w", np.ones((2, 2, 3, 3), np.float32)), files.tensor("a", np.ones((32, 2), np.float32))]
    shapes = ([files.value("x", files.FLOAT, ["N", 2, 6, 6])], [files.value("y", files.FLOAT, ["N", 2])])
    with open(FILE, "wb") as file:
        file.write(files.model(nodes, *shapes, tensors))


def calls(name, function, rng):
    """Texts and calls: each argument in turn is hostile, then several at random."""
    names = parameters_of(function)
    sensible = {**SENSIBLE, **SPECIAL.get(name, {})}
    base = {n: sensible[n] for n in names if n in sensible}
    if name.startswith("Tensor."):
        for how, value in hostile_values().items():
            yield f"{name}({how})", lambda v=value: function(v)
            yield f"{name}({how}, {how})", lambda v=value: function(v, v)
        yield f"{name}()", function
        return
    for parameter in names:
        for how, value in hostile_values().items():
            yield f"{name}({parameter} = {how})", lambda p=parameter, v=value: function(**{**base, p: v})
    for how in ("\ud800", "", "a\0b", "no_such_name", "self", "input "):
        yield f"{name}(**{{{how!a}: 1}})", lambda h=how: function(**{**base, h: 1})
    yield f"{name}()", function
    yield f"{name}(20 arguments)", lambda: function(*[X] * 20)
    for how, value in hostile_values().items():
        yield f"{name}({how})", lambda v=value: function(v)
    for _ in range(60):
        values = hostile_values()
        chosen = {p: rng.choice(list(values)) for p in rng.sample(names, min(len(names), rng.randint(2, 4)))}
        yield f"{name}({chosen})", lambda c=chosen, v=values: function(**{**base, **{p: v[h] for p, h in c.items()}})


def complaint_of(call):
    """What is wrong with how a call ended; None where it ended well."""
    try:
        call()
    except Boom:
        return None
    except EXPECTED as error:
        text = str(error)
        if not text:
            return f"{type(error).__name__} without a text"
        try:
            text.encode()
        except UnicodeEncodeError:
            if "unexpected keyword argument" in text:  # the interpreter's own text
                return None
            return f"{type(error).__name__} whose text cannot be printed: {text!a}"
        if not isinstance(error, UnicodeError) and FOREIGN.search(text):
            return f"{type(error).__name__} in another language: {text}"
        return None
    except BaseException as error:
        return f"{type(error).__module__}.{type(error).__name__}: {error}"
    return None


def main():
    log_path, seed, part, parts = sys.argv[1], *map(int, sys.argv[2:5])
    # What asks for more memory than this is refused by the system, as on a small machine. The address
    # sanitizer, which maps more than that for itself, refuses in its place (cmake/sanitizers.cmake).
    if "ASAN_OPTIONS" not in os.environ:
        resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    fn.set_threads(1)
    os.chdir(tempfile.mkdtemp())
    rng = random.Random(seed)
    wrong, made, slowest = [], 0, (0.0, "")
    with open(log_path, "w", encoding="utf-8", errors="backslashreplace", buffering=1) as log:
        for name, function in sorted(public_functions(), key=lambda pair: pair[0])[part::parts]:
            for text, call in calls(name, function, rng):
                log.write(text[:300].replace("\n", " ") + "\n")
                faulthandler.dump_traceback_later(SECONDS_PER_CALL, exit=True)
                begin = time.monotonic()
                complaint = complaint_of(call)
                slowest = max(slowest, (time.monotonic() - begin, text[:100]))
                made += 1
                if complaint:
                    wrong.append(f"{text[:200]}: {complaint[:1000]}")
        faulthandler.cancel_dump_traceback_later()
    print(f"{made} calls, the slowest {slowest[0]:.2f} s: {slowest[1]!a}, {len(wrong)} ended otherwise")
    for line in wrong[:50]:
        print(ascii(line))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
