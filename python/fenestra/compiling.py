"""Functions as programs: called once with tensors of a graph, then run without Python in between."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, Sequence

import numpy as np

from . import _core
from ._core import Indices, Tensor
from .transforms import _is_integer
from .trees import flatten_like, tree_flatten, tree_names, tree_unflatten

__all__ = ["Compiled", "compile"]


def _argument_names(f: Callable[..., Any], examples: Sequence[Any]) -> list[str]:
    """What f calls the leaves of its arguments."""
    try:
        arguments = inspect.signature(f).bind(*examples).arguments
    except (TypeError, ValueError):  # no signature is known, or one of a function that f wraps
        return tree_names(examples, "args")
    return [name for root, tree in arguments.items() for name in tree_names(tree, root)]


def _is_array(leaf: Any) -> bool:
    """Arrays and tensors of any library; NumPy's scalars are numbers."""
    return not isinstance(leaf, np.generic) and (
        hasattr(leaf, "__dlpack__") or hasattr(leaf, "__array__")
    )


def _is_tracked(leaf: Any) -> bool:
    return isinstance(leaf, Indices) or (isinstance(leaf, Tensor) and leaf.is_tracked)


class Compiled:
    """What `compile` returns: call it like the function."""

    def __init__(self, f: Callable[..., Any], examples: tuple[Any, ...]) -> None:
        functools.update_wrapper(self, f)
        self._f = f
        self._names = _argument_names(f, examples)
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

        trace = _core._Trace(np.dtype(np.float32) not in dtypes)
        handles = leaves.copy()
        for i in self._given:
            make = trace.input if isinstance(leaves[i], Tensor) else trace.data
            handles[i] = make(leaves[i].shape, self._names[i])
        self._result = f(*tree_unflatten(examples, iter(handles)))
        outputs = tree_flatten(self._result)
        self._program = trace.finish(outputs, tree_names(self._result, "result"))
        self._result = tree_unflatten(self._result, iter(range(len(outputs))))

    def __call__(self, *args: Any) -> Any:
        if any(map(_is_tracked, tree_flatten(args))):
            return self._f(*args)
        if len(args) != len(self._like):
            raise TypeError(
                f"compile: {len(args)} arguments, compiled for {len(self._like)}\n"
                "  fix: as many as there were examples"
            )
        leaves = flatten_like(self._like, args, "compile: args")
        for i, constant in self._constants.items():
            leaf = leaves[i]
            if leaf is not constant and (_is_array(leaf) or leaf != constant):
                raise ValueError(
                    f"compile: {self._names[i]} is {leaf!r}, compiled for the constant "
                    f"{constant!r}\n  fix: an array where it changes, or compile again"
                )
        found = self._program.run([leaves[i] for i in self._given])
        return tree_unflatten(self._result, iter(found))

    def explain(self) -> str:
        """The nodes of the program, their kernels and where in memory they lie."""
        return self._program.explain()

    @property
    def peak_bytes(self) -> int:
        """What a call needs beside arguments, constants and results."""
        return self._program.peak_bytes


def compile(f: Callable[..., Any], *examples: Any) -> Compiled:
    """f as a program for arguments like the examples: equal structure, shapes and dtype.

    f is called here, once, with tensors whose numbers are not known: it may look at shapes and not
    at values. Arrays are arguments of the program, integers (labels, indices) too; numbers, texts
    and whatever f takes from around it are constants of it, which must not change. The results are
    those of f, to the bit.

    Derivatives are compiled with the function: compile(value_and_grad(loss), ...). In the other
    order, a compiled function under a transform runs as f.

    >>> loss = lambda w, x: fn.sum(fn.conv1d(x, w) ** 2)
    >>> w, x = np.ones((1, 1, 2)), np.array([[[1.0, 2.0, 3.0]]])
    >>> step = fn.compile(fn.value_and_grad(loss), w, x)
    >>> step(w, x)
    (Tensor(34., dtype=float64), Tensor([[[26., 42.]]], dtype=float64))
    >>> step(w, 2 * x)[0].item()
    136.0
    """
    return Compiled(f, examples)
