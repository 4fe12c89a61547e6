"""Functions as programs: traced once for each set of shapes, then run without Python in between."""

from __future__ import annotations

import functools
from typing import Any, Callable

import numpy as np

from . import _core
from ._core import Tensor
from .trees import tree_flatten, tree_unflatten

__all__ = ["Compiled", "compile"]


class _Plan:
    """One program of a compiled function, and how its arguments and results are arranged."""

    def __init__(self, f: Callable[..., Any], args: tuple[Any, ...], kinds: list[Any]) -> None:
        dtypes = {kind[1] for kind in kinds if kind[0] == "tensor"}
        if len(dtypes) > 1:
            raise TypeError(
                "compile: the arguments are float32 and float64\n  fix: .astype() one of them"
            )
        trace = _core._Trace(dtypes != {"float32"})
        handles = []
        for leaf, kind in zip(tree_flatten(args), kinds):
            if kind[0] == "tensor":
                handles.append(trace.input(kind[2]))
            elif kind[0] == "integers":
                handles.append(trace.data(kind[2]))
            else:
                handles.append(leaf)
        self.result = f(*tree_unflatten(args, iter(handles)))
        self.program = trace.finish(tree_flatten(self.result))
        self.places = [i for i, kind in enumerate(kinds) if kind[0] != "constant"]

    def __call__(self, leaves: list[Any]) -> Any:
        outputs = self.program.run([leaves[i] for i in self.places])
        return tree_unflatten(self.result, iter(outputs))


def _kind(leaf: Any) -> tuple[Any, ...]:
    """What a leaf is to a program: a tensor or integers of a shape, or a constant."""
    if isinstance(leaf, Tensor):
        return ("tensor", str(leaf.dtype), tuple(leaf.shape))
    if hasattr(leaf, "__dlpack__") or hasattr(leaf, "__array__"):
        dtype, shape = str(leaf.dtype).replace("torch.", ""), tuple(leaf.shape)
        return ("tensor" if dtype.startswith("float") else "integers", dtype, shape)
    return ("constant", leaf)


class Compiled:
    """What `compile` returns; call it like the function."""

    def __init__(self, f: Callable[..., Any]) -> None:
        functools.update_wrapper(self, f)
        self._f = f
        self._plans: dict[tuple[Any, ...], _Plan] = {}

    def _plan(self, args: tuple[Any, ...], leaves: list[Any]) -> _Plan:
        kinds = [_kind(leaf) for leaf in leaves]
        key = (repr(tree_unflatten(args, iter(["*"] * len(leaves)))), *kinds)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = _Plan(self._f, args, kinds)
        return plan

    def __call__(self, *args: Any) -> Any:
        leaves = tree_flatten(args)
        if not all(map(_core._is_plain, leaves)):
            return self._f(*args)
        return self._plan(args, leaves)(leaves)

    def explain(self, *args: Any) -> str:
        """Nodes, kernels and memory of the program for these arguments."""
        return self._plan(args, tree_flatten(args)).program.explain()

    def peak_bytes(self, *args: Any) -> int:
        """Bytes that one call with these arguments plans for what lies between its results."""
        return self._plan(args, tree_flatten(args)).program.peak_bytes


def compile(f: Callable[..., Any], *example: Any) -> Compiled:
    """f as a program, traced for the shapes and types of the example and of later arguments.

    f is called once for each combination of shapes, with tensors whose elements are not known:
    it may look at shapes, not at values. Numbers and what is no array are constants of the program;
    integer arrays (labels) are given anew at each call. The results are those of f, to the bit.
    Under a transform, that is called with tensors of one, the function runs as it is: compile what
    the transform returns instead, e.g. ``compile(value_and_grad(loss))``.

    >>> step = fn.compile(fn.grad(lambda w, x: fn.sum(fn.conv1d(x, w) ** 2)))
    >>> w, x = np.ones((1, 1, 2)), np.array([[[1.0, 2.0, 3.0]]])
    >>> step(w, x)
    Tensor([[[26., 42.]]], dtype=float64)
    """
    compiled = f if isinstance(f, Compiled) else Compiled(f)
    if example:
        compiled._plan(example, tree_flatten(example))
    return compiled
