"""Functions as programs: called once with tensors of a graph, then run without Python in between."""

from __future__ import annotations

import functools
import inspect
import itertools
import threading
import types
import warnings
from typing import Any, Callable, Mapping, NamedTuple, Optional, Sequence, overload

import numpy as np

from . import _core
from ._core import Indices, Tensor
from .transforms import _is_integer
from .trees import (
    closed,
    emptied,
    flatten_like,
    has_node,
    opened,
    tree_flatten,
    tree_names,
    tree_unflatten,
)

__all__ = ["CacheInfo", "Compiled", "CompiledFunction", "compile"]


def _bound(
    f: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments by position as far as f takes them so; as they are where that is not known."""
    try:
        bound = inspect.signature(f).bind(*args, **kwargs)
    except (TypeError, ValueError):  # no signature is known, or one of a function that f wraps
        return tuple(args), dict(kwargs)
    return bound.args, bound.kwargs


def _argument_names(
    f: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> list[str]:
    """What f calls the leaves of its arguments."""
    try:
        arguments = inspect.signature(f).bind_partial(*args).arguments
        names = [name for root, tree in arguments.items() for name in tree_names(tree, root)]
    except (TypeError, ValueError):
        names = tree_names(tuple(args), "args")
    return names + [name for root, tree in kwargs.items() for name in tree_names(tree, root)]


def _is_array(leaf: Any) -> bool:
    """Arrays and tensors of any library; NumPy's scalars are numbers."""
    return not isinstance(leaf, np.generic) and (
        hasattr(leaf, "__dlpack__") or hasattr(leaf, "__array__")
    )


def _is_tracked(leaf: Any) -> bool:
    return isinstance(leaf, Indices) or (isinstance(leaf, Tensor) and leaf.is_tracked)


def _same_constant(leaf: Any, constant: Any) -> bool:
    return leaf is constant or (not _is_array(leaf) and bool(leaf == constant))


class Compiled:
    """What `compile` returns for examples: call it like the function.

    >>> double = fn.compile(lambda x: x * 2, np.ones(3))
    >>> double(np.array([1., 2., 3.]))
    Tensor([2., 4., 6.], dtype=float64)
    >>> double.arguments
    'x float64 (3,)'
    """

    def __init__(
        self,
        f: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        fold: bool = False,
    ) -> None:
        if not isinstance(args, (tuple, list)):
            raise TypeError(f"compile: args is {type(args).__name__}\n  fix: a tuple of examples")
        functools.update_wrapper(self, f)
        self._f = f
        given = (tuple(args), dict(kwargs))
        # Networks are taken apart into all that they hold; the function gets them whole.
        examples = opened(given) if has_node(given) else given
        self._networks = None if examples is given else emptied(given)
        self._names = _argument_names(f, *examples)
        leaves = [
            _core.asarray(leaf) if _is_array(leaf) and not _is_integer(leaf) else leaf
            for leaf in tree_flatten(examples)
        ]
        for name, leaf in zip(self._names, leaves):
            if _is_tracked(leaf):
                raise TypeError(
                    f"compile: the example {name} belongs to a transform or a tape\n"
                    "  fix: compile outside of it"
                )
        dtypes = {leaf.dtype: name for name, leaf in zip(self._names, leaves) if isinstance(leaf, Tensor)}
        if len(dtypes) > 1:
            kinds = " and ".join(f"{name} {dtype}" for dtype, name in dtypes.items())
            raise TypeError(f"compile: arguments of one dtype needed, {kinds}\n  fix: .astype() one")
        # Places instead of leaves: the examples need not live on.
        self._like = tree_unflatten(examples, iter(range(len(leaves))))
        self._constants = {i: leaf for i, leaf in enumerate(leaves) if not _is_array(leaf)}
        self._given = [i for i in range(len(leaves)) if i not in self._constants]
        self._kinds = [
            f"{name} = {leaf!r}" if i in self._constants
            else f"{name} {leaf.dtype if isinstance(leaf, Tensor) else 'integers'} {tuple(leaf.shape)}"
            for i, (name, leaf) in enumerate(zip(self._names, leaves))
        ]  # fmt: skip
        signature = _core._call_signature(*given, False)
        self._key = None if signature is None else signature[0]

        trace = _core._Trace(np.dtype(np.float32) not in dtypes)
        handles = leaves.copy()
        for i in self._given:
            make = trace.input if isinstance(leaves[i], Tensor) else trace.data
            handles[i] = make(leaves[i].shape, self._names[i])
        arguments = tree_unflatten(examples, iter(handles))
        by_place, by_name = closed(given, arguments) if self._networks else arguments
        with trace:
            result = f(*by_place, **by_name)
        self._result_networks = emptied(result) if has_node(result) else None
        result = result if self._result_networks is None else opened(result)
        outputs = tree_flatten(result)
        self._program = trace.finish(outputs, tree_names(result, "result"), fold)
        self._result = tree_unflatten(result, iter(range(len(outputs))))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        result = self._program.call(args, kwargs, self._key, self._result)
        if result is NotImplemented:
            if _core._call_signature(args, kwargs, False) is None:
                return self._f(*args, **kwargs)
            return self._run(self._matched(args, kwargs))
        return result if self._result_networks is None else closed(self._result_networks, result)

    def _run(self, given: list[Any]) -> Any:
        """The results for arrays in the order of the examples."""
        result = self._program.run(given, self._result)
        return result if self._result_networks is None else closed(self._result_networks, result)

    def _matched(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """The arrays among arguments that are not the examples' to the letter."""
        args, kwargs = _bound(self._f, args, kwargs)
        if self._networks is not None:
            flatten_like(self._networks, (args, kwargs), "compile: arguments")
        if has_node((args, kwargs)):
            args, kwargs = opened((args, kwargs))
        like_args, like_kwargs = self._like
        if len(args) != len(like_args):
            raise TypeError(
                f"compile: {len(args)} arguments, compiled for {len(like_args)}\n"
                "  fix: as many as there were examples"
            )
        if kwargs.keys() != like_kwargs.keys():
            raise TypeError(
                f"compile: arguments by name {', '.join(kwargs) or 'none'}, compiled for "
                f"{', '.join(like_kwargs) or 'none'}\n  fix: those of the examples"
            )
        leaves = flatten_like(like_args, args, "compile: args")
        leaves += [
            leaf
            for name, like in like_kwargs.items()
            for leaf in flatten_like(like, kwargs[name], f"compile: {name}")
        ]
        for i, constant in self._constants.items():
            if not _same_constant(leaves[i], constant):
                raise ValueError(
                    f"compile: {self._names[i]} is {leaves[i]!r}, compiled for the constant "
                    f"{constant!r}\n  fix: an array where it changes, or compile again"
                )
        return [leaves[i] for i in self._given]

    def explain(self) -> str:
        """The nodes of the program, their kernels and where in memory they lie."""
        return self._program.explain()

    @property
    def peak_bytes(self) -> int:
        """What a call needs beside arguments, constants and results."""
        return self._program.peak_bytes

    @property
    def arguments(self) -> str:
        """What the program is for: name, dtype and shape of each array, and the constants."""
        return ", ".join(self._kinds)

    def __repr__(self) -> str:
        return f"<compiled {getattr(self, '__name__', 'function')}: {self.arguments}>"


class CacheInfo(NamedTuple):
    """How a compiled function was called: what functools.lru_cache says of itself.

    >>> fn.CacheInfo(hits=2, misses=1, maxsize=32, currsize=1)
    CacheInfo(hits=2, misses=1, maxsize=32, currsize=1)
    """

    hits: int  #: calls that found their program
    misses: int  #: calls for which the function was traced
    maxsize: int  #: programs that are kept
    currsize: int  #: programs that there are


class _Entry:
    """A program and how long ago it ran."""

    def __init__(self, compiled: Compiled, used: int) -> None:
        self.run = compiled._run
        self.compiled = compiled
        self.used = used
        self.calls = 0


class CompiledFunction:
    """What `compile` returns without examples: one program for each kind of arguments it meets.

    >>> @fn.compile
    ... def norm(x, *, scale=1.0):
    ...     return scale * fn.sum(x * x)
    >>> norm(np.array([3., 4.])), norm(np.array([1., 2., 2.]), scale=2.0)
    (Tensor(25., dtype=float64), Tensor(18., dtype=float64))
    >>> norm.cache_info()
    CacheInfo(hits=0, misses=2, maxsize=32, currsize=2)
    >>> for program in norm.programs():
    ...     print(program.arguments)
    x float64 (2,)
    x float64 (3,), scale = 2.0
    """

    def __init__(self, f: Callable[..., Any], cache_size: int, fold: bool = False) -> None:
        if not callable(f):
            raise TypeError(f"compile: {type(f).__name__} is no function\n  fix: compile(f)")
        if not isinstance(cache_size, int) or cache_size < 1:
            raise ValueError(f"compile: cache_size = {cache_size!r}\n  fix: an int, at least 1")
        functools.update_wrapper(self, f)
        self._f = f
        self._size = cache_size
        self._fold = fold
        self._entries: dict[Any, _Entry] = {}
        self._lock = threading.Lock()
        self._clock = itertools.count()
        self._misses = 0
        self._past_hits = 0  # of programs that are gone
        self._has_warned = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        signature = _core._call_signature(args, kwargs, True)
        if signature is None:
            return self._f(*args, **kwargs)
        key, given = signature
        entry = self._entries.get(key)
        if entry is None:
            entry = self._traced(key, args, kwargs)
        else:
            entry.calls += 1
            entry.used = next(self._clock)
        return entry.run(given)

    def __get__(self, instance: Any, owner: Optional[type] = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def _traced(self, key: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> _Entry:
        # Outside the lock: the function may call itself, and other threads go on.
        entry = _Entry(Compiled(self._f, args, kwargs, self._fold), next(self._clock))
        with self._lock:
            self._misses += 1
            self._entries[key] = entry
            full = len(self._entries) > self._size
            if full:
                oldest = min(self._entries, key=lambda other: self._entries[other].used)
                self._past_hits += self._entries.pop(oldest).calls
            warn = full and not self._has_warned
            self._has_warned = self._has_warned or full
        if warn:
            warnings.warn(
                f"compile: {getattr(self, '__name__', 'the function')} was traced for more than "
                f"{self._size} kinds of arguments, the last {entry.compiled.arguments}; the oldest "
                "programs are dropped\n  fix: an array instead of a number that changes, fewer "
                "shapes, or a larger cache_size",
                RuntimeWarning,
                stacklevel=3,
            )
        return entry

    def programs(self) -> list[Compiled]:
        """The programs that there are, those that ran last at the end."""
        with self._lock:
            entries = sorted(self._entries.values(), key=lambda entry: entry.used)
        return [entry.compiled for entry in entries]

    def cache_info(self) -> CacheInfo:
        """Hits, misses, limit and size of the cache."""
        with self._lock:
            hits = self._past_hits + sum(entry.calls for entry in self._entries.values())
            return CacheInfo(hits, self._misses, self._size, len(self._entries))

    def cache_clear(self) -> None:
        """Drops all programs and starts counting again."""
        with self._lock:
            self._entries.clear()
            self._misses = self._past_hits = 0
            self._has_warned = False

    def explain(self) -> str:
        """What `Compiled.explain` says of each program."""
        return "\n".join(f"{program.arguments}\n{program.explain()}" for program in self.programs())

    @property
    def peak_bytes(self) -> int:
        """What a call needs beside arguments, constants and results: of the largest program."""
        return max((program.peak_bytes for program in self.programs()), default=0)

    def __repr__(self) -> str:
        return f"<compiled {getattr(self, '__name__', 'function')}: {len(self._entries)} programs>"

    def __reduce__(self) -> str:
        """Pickled by its name, as functions are."""
        return getattr(self, "__qualname__", "")


@overload
def compile(
    f: Callable[..., Any], *, cache_size: int = ..., fold: bool = ...
) -> CompiledFunction: ...
@overload
def compile(
    f: None = ..., *, cache_size: int = ..., fold: bool = ...
) -> Callable[[Callable[..., Any]], CompiledFunction]: ...
@overload
def compile(
    f: Callable[..., Any], example: Any, *examples: Any, fold: bool = ..., **named: Any
) -> Compiled: ...


def compile(
    f: Optional[Callable[..., Any]] = None,
    *examples: Any,
    cache_size: int = 32,
    fold: bool = False,
    **named: Any,
) -> Any:
    """f as a program, planned in one piece of memory and run without Python in between.

    With examples, for arguments like them: equal structure, shapes and dtype; others are refused.
    Without, as a decorator too, f is called with whatever comes and a program is made for each kind
    of arguments, the first time it comes: for other shapes, dtypes, structures and constants.

    f is called with tensors whose numbers are not known: it may look at shapes and not at values.
    Arrays are arguments of the program, integers (labels, indices) too; numbers, texts and whatever
    f takes from around it are constants of it. The results are those of f: to the bit in float64,
    while convolutions in float32 may add in another order.

    Derivatives are compiled with the function: compile(value_and_grad(loss), ...). In the other
    order, a compiled function under a transform runs as f.

    Arguments:
        f: a function of arrays, or of lists, tuples and dicts of them. Without it, what is returned
            is a decorator.
        examples: arguments to make one program for.
        cache_size: without examples, how many programs are kept; the one that ran least lately
            goes first.
        fold: True computes what depends on constants alone while compiling, and folds normalisations
            into convolutions: for the inference of a network, `compile(net, x, fold=True)`, whose
            results differ from the function's by rounding.
        named: examples of arguments by name.

    >>> loss = lambda w, x: fn.sum(fn.conv1d(x, w) ** 2)
    >>> w, x = np.ones((1, 1, 2)), np.array([[[1.0, 2.0, 3.0]]])
    >>> step = fn.compile(fn.value_and_grad(loss), w, x)
    >>> step(w, x)
    (Tensor(34., dtype=float64), Tensor([[[26., 42.]]], dtype=float64))
    >>> step(w, 2 * x)[0].item()
    136.0
    >>> @fn.compile(cache_size=8)
    ... def halved(x):
    ...     return fn.avg_pool1d(x, 2)
    >>> halved(np.ones((1, 3, 4))).shape, halved(np.ones((5, 3, 8))).shape
    ((1, 3, 2), (5, 3, 4))
    """
    if f is None:
        return functools.partial(compile, cache_size=cache_size, fold=fold)
    if not isinstance(fold, bool):
        raise TypeError(f"compile: fold is {type(fold).__name__}\n  fix: True or False")
    if not examples and not named:
        return CompiledFunction(f, cache_size, fold)
    return Compiled(f, *_bound(f, examples, named), fold)
