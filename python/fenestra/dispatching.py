"""NumPy's own functions on tensors: np.exp(t), np.mean(t, axis=0), array + t.

Those that have a differentiable counterpart here call it; questions that have no derivative (shapes,
comparisons, np.argmax) are answered by NumPy; everything else is refused with what to write instead,
since an array that NumPy makes on the way would lose the derivative without a word.
"""

from __future__ import annotations

import operator
from typing import Any, Callable, Iterable, Mapping, Optional

import numpy as np

from . import _core, arrays
from ._core import Tensor

__all__: list[str] = []

_UNARY = {
    np.negative: "neg",
    np.absolute: "abs",
    np.fabs: "abs",
    np.exp: "exp",
    np.log: "log",
    np.sqrt: "sqrt",
    np.tanh: "tanh",
    np.sign: "sign",
    np.sin: "sin",
    np.cos: "cos",
    np.floor: "floor",
    np.ceil: "ceil",
    np.rint: "round",
}
_OPERATORS: dict[Any, Callable[[Any, Any], Any]] = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.divide: operator.truediv,
    np.matmul: operator.matmul,
    np.power: operator.pow,
    np.remainder: operator.mod,
    np.floor_divide: operator.floordiv,
    np.less: operator.lt,
    np.less_equal: operator.le,
    np.greater: operator.gt,
    np.greater_equal: operator.ge,
    np.equal: operator.eq,
    np.not_equal: operator.ne,
}
_REFLECTED = {
    operator.add: "__radd__",
    operator.sub: "__rsub__",
    operator.mul: "__rmul__",
    operator.truediv: "__rtruediv__",
    operator.matmul: "__rmatmul__",
    operator.pow: "__rpow__",
    operator.mod: "__rmod__",
    operator.floordiv: "__rfloordiv__",
    operator.lt: "__gt__",
    operator.le: "__ge__",
    operator.gt: "__lt__",
    operator.ge: "__le__",
    operator.eq: "__eq__",
    operator.ne: "__ne__",
}
# Answers without a derivative: of universal functions, of others, and of those that ask for no
# numbers and may be asked where there are none.
_TESTS = {np.isnan, np.isinf, np.isfinite, np.signbit, np.logical_not, np.logical_and, np.logical_or}
_OF_SHAPES = {np.shape, np.ndim, np.size}
_OF_NUMBERS = {
    np.array_equal, np.array_equiv, np.allclose, np.isclose, np.any,
    np.all, np.argmax, np.argmin, np.argsort, np.argwhere, np.nonzero, np.flatnonzero,
    np.count_nonzero, np.searchsorted, np.digitize, np.bincount, np.histogram, np.array2string,
    np.array_repr, np.array_str, np.save, np.savez, np.savez_compressed, np.savetxt,
    np.shares_memory, np.may_share_memory, np.result_type, np.can_cast, np.min_scalar_type,
}  # fmt: skip


def _name(function: Any) -> str:
    module = getattr(function, "__module__", None) or "numpy"
    return f"{module.replace('numpy', 'np', 1)}.{function.__name__}"


def _refuse(name: str, ours: Optional[str] = None) -> TypeError:
    instead = f"fn.{ours}" if ours else "give it np.asarray(t.detach())"
    return TypeError(f"{name} does not differentiate tensors\n  fix: {instead}")


def _refuse_option(name: str, option: str) -> TypeError:
    return TypeError(
        f"{name}: {option} is not known for tensors\n  fix: leave it out, or give it np.asarray(t.detach())"
    )


def _numbers(value: Any) -> Any:
    """Arrays instead of the tensors in nested lists and tuples."""
    if isinstance(value, Tensor):
        return np.asarray(value.detach())
    if type(value) in (list, tuple):
        return type(value)(map(_numbers, value))
    return value


def _by_numpy(function: Callable[..., Any], args: Iterable[Any], kwargs: Mapping[str, Any]) -> Any:
    return function(*map(_numbers, args), **{name: _numbers(value) for name, value in kwargs.items()})


# --- Universal functions ------------------------------


def _ufunc(self: Tensor, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """What NumPy calls for its universal functions, and for array + tensor."""
    if not isinstance(ufunc, np.ufunc):
        raise TypeError(f"__array_ufunc__: {type(ufunc).__name__} is no universal function of NumPy")
    name = f"np.{ufunc.__name__}"
    if method != "__call__":
        raise _refuse(f"{name}.{method}", "sum" if ufunc is np.add and method == "reduce" else None)
    out = kwargs.pop("out", None)
    if kwargs:
        raise _refuse_option(name, next(iter(kwargs)))
    if ufunc in _TESTS:
        return _by_numpy(ufunc, inputs, {} if out is None else {"out": out})
    result = _applied(name, ufunc, inputs)
    return result if out is None else _written(name, out[0], inputs[0], result)


def _applied(name: str, ufunc: Any, inputs: tuple[Any, ...]) -> Any:
    if ufunc in _OPERATORS:
        left, right = inputs
        operation = _OPERATORS[ufunc]
        if isinstance(left, Tensor):
            return operation(left, right)
        # Not operation(left, right): an array would ask for this function again.
        return getattr(right, _REFLECTED[operation])(left)
    if ufunc in (np.maximum, np.minimum):
        return getattr(_core, ufunc.__name__)(*inputs)
    if ufunc is np.positive:
        return inputs[0]
    if ufunc is np.square:
        return inputs[0] * inputs[0]
    if ufunc is np.reciprocal:
        return 1 / inputs[0]
    ours = getattr(_core, _UNARY.get(ufunc, ""), None)
    if ours is None:
        raise _refuse(name)
    return ours(*inputs)


def _written(name: str, out: Any, first: Any, result: Any) -> Any:
    """The result in the memory of an array, for array += tensor."""
    if isinstance(out, np.ndarray) and not (isinstance(result, Tensor) and result.is_tracked):
        out[...] = np.asarray(result)
        return out
    if out is first:
        return result  # array += tensor inside a transform: the name goes on as a tensor
    raise _refuse_option(name, "out")


# --- Other functions ------------------------------


def _options(name: str, options: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    """Refuses what is neither left out nor at its default."""
    for option, value in options.items():
        if option not in defaults or value is not defaults[option]:
            raise _refuse_option(name, option)


_NOTHING = {"dtype": None, "out": None}


def _reduction(ours: str) -> Callable[..., Tensor]:
    def function(
        a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, **options: Any
    ) -> Tensor:
        _options(f"np.{ours}", {"dtype": dtype, "out": out, **options}, _NOTHING)
        found: Tensor = getattr(_core, ours)(a, axis, bool(keepdims))
        return found

    return function


def _extremum(ours: str) -> Callable[..., Tensor]:
    reduce = _reduction(ours)

    def function(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, **options: Any) -> Tensor:
        return reduce(a, axis, None, out, keepdims, **options)

    return function


def _spread(ours: str) -> Callable[..., Tensor]:
    def function(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        ddof: Any = 0,
        keepdims: Any = False,
        **options: Any,
    ) -> Tensor:
        _options(f"np.{ours}", {"dtype": dtype, "out": out, **options}, _NOTHING)
        found: Tensor = getattr(_core, ours)(a, axis, bool(keepdims), correction=ddof)
        return found

    return function


def _where(condition: Any, *choices: Any) -> Any:
    if not choices:
        return np.nonzero(_numbers(condition))
    return _core.where(condition, *choices)


def _einsum(letters: Any, *operands: Any, **options: Any) -> Tensor:
    _options("np.einsum", options, {"optimize": False, **_NOTHING})
    if not isinstance(letters, str) or len(operands) > 2:
        raise _refuse("np.einsum of more than two operands, or of lists of axes", "einsum")
    return _core.einsum(letters, *operands)


def _along(ours: str, pick: Callable[[Any], Any] = lambda found: found) -> Callable[..., Any]:
    """Of one axis; without one, of all elements in a row."""

    def function(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        _options(f"np.{ours}", {"dtype": dtype, "out": out}, _NOTHING)
        row = _core.reshape(a, -1) if axis is None else a
        return pick(getattr(_core, ours)(row, 0 if axis is None else axis))

    return function


def _sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None) -> Tensor:
    _options("np.sort", {"kind": kind, "order": order}, {"kind": None, "order": None})
    found: Tensor = _along("sort", lambda pair: pair[0])(a, axis)
    return found


def _take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Tensor:
    _options("np.take", {"out": out, "mode": mode}, {"out": None, "mode": "raise"})
    row = _core.reshape(a, -1) if axis is None else a
    return _core.take(row, indices, 0 if axis is None else axis)


def _split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    # NumPy cuts at places, and split here into extents.
    extents = [part.shape[axis] for part in np.split(_shaped(ary), indices_or_sections, axis)]
    return _core.split(ary, extents, axis)


def _clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, **options: Any) -> Any:
    _options("np.clip", {"out": out, **options}, _NOTHING)
    numbers = (int, float, type(None))
    if isinstance(a_min, numbers) and isinstance(a_max, numbers):
        return _core.clip(a, a_min, a_max)
    above = a if a_min is None else _core.maximum(a, a_min)
    return above if a_max is None else _core.minimum(above, a_max)


def _concatenate(arrays: Any, axis: Any = 0, out: Any = None, **options: Any) -> Tensor:
    _options("np.concatenate", {"out": out, **options}, _NOTHING)
    if axis is None:
        return _core.concat([_core.reshape(array, -1) for array in arrays], 0)
    return _core.concat(arrays, axis)


def _stack(arrays: Any, axis: int = 0, out: Any = None, **options: Any) -> Tensor:
    _options("np.stack", {"out": out, **options}, _NOTHING)
    return _core.stack(arrays, axis)


def _joined(name: str, least: int) -> Callable[..., Tensor]:
    """np.hstack or np.vstack: along the second axis or the first, of at least one axis or two."""

    def function(tup: Any, **options: Any) -> Tensor:
        _options(name, options, {"dtype": None, "casting": "same_kind"})
        parts = []
        for part in tup:
            shape = np.shape(_shaped(part))
            ones = (1,) * (least - len(shape))
            parts.append(_core.reshape(part, ones + shape) if ones else part)
        second = least == 1 and parts and np.ndim(_shaped(parts[0])) > 1
        return _core.concat(parts, 1 if second else 0)

    return function


def _take_along_axis(arr: Any, indices: Any, axis: Any) -> Tensor:
    if axis is None:
        return _core.gather(_core.reshape(arr, -1), indices, 0)
    shape = np.shape(_shaped(arr))
    if isinstance(indices, np.ndarray) and indices.ndim == len(shape):
        # NumPy lets indices stand for all rows; those here name each.
        wanted = list(shape)
        wanted[axis] = indices.shape[axis]
        indices = np.broadcast_to(indices, wanted)
    return _core.gather(arr, indices, axis)


def _round(a: Any, decimals: int = 0, out: Any = None) -> Tensor:
    _options("np.round", {"decimals": decimals, "out": out}, {"decimals": 0, "out": None})
    return _core.round(a)


def _reshape(a: Any, newshape: Any, order: str = "C") -> Tensor:
    if order != "C":
        raise _refuse_option("np.reshape", "order")
    return _core.reshape(a, newshape)


def _dot(a: Any, b: Any, out: Any = None) -> Any:
    _options("np.dot", {"out": out}, _NOTHING)
    ranks = np.ndim(_shaped(a)), np.ndim(_shaped(b))
    if 0 in ranks:
        return _core.mul(a, b)
    if max(ranks) > 2:
        raise _refuse("np.dot of more than two axes", "matmul")
    return _core.matmul(a, b)


def _shaped(a: Any) -> Any:
    """Something of the rank of a tensor, without its numbers."""
    return np.broadcast_to(0, a.shape) if isinstance(a, Tensor) else a


def _squeeze(a: Tensor, axis: Any = None) -> Tensor:
    return _core.reshape(a, np.squeeze(_shaped(a), axis).shape)


def _expand_dims(a: Tensor, axis: Any) -> Tensor:
    return _core.reshape(a, np.expand_dims(_shaped(a), axis).shape)


def _moved(move: Callable[..., Any]) -> Callable[..., Tensor]:
    """np.moveaxis or np.swapaxes, by what it does to the numbers of the axes."""

    def function(a: Tensor, *places: Any) -> Tensor:
        # Extents that are the numbers of the axes, and one more: the result's say where each went.
        marked = np.broadcast_to(0, [axis + 1 for axis in range(a.ndim)])
        return _core.transpose(a, [extent - 1 for extent in move(marked, *places).shape])

    return function


def _flip(m: Tensor, axis: Any = None) -> Tensor:
    axes = range(m.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    key = [slice(None)] * m.ndim
    for i in axes:
        key[i] = slice(None, None, -1)
    return m[tuple(key)]


def _like(make: Callable[[Any], Tensor]) -> Callable[..., Tensor]:
    def function(a: Any, dtype: Any = None, **options: Any) -> Tensor:
        _options(f"np.{make.__name__}", options, {})
        found = make(a.detach())
        return found if dtype is None else found.astype(dtype)

    return function


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.sum: _reduction("sum"),
    np.mean: _reduction("mean"),
    np.max: _extremum("max"),
    np.amax: _extremum("max"),
    np.min: _extremum("min"),
    np.amin: _extremum("min"),
    np.var: _spread("var"),
    np.std: _spread("std"),
    np.where: _where,
    np.einsum: _einsum,
    np.cumsum: _along("cumsum"),
    np.sort: _sort,
    np.take: _take,
    np.split: _split,
    np.clip: _clip,
    np.concatenate: _concatenate,
    np.stack: _stack,
    np.vstack: _joined("np.vstack", 2),
    np.hstack: _joined("np.hstack", 1),
    np.take_along_axis: _take_along_axis,
    np.round: _round,
    np.around: _round,
    np.reshape: _reshape,
    np.ravel: lambda a, order="C": _reshape(a, -1, order),
    np.transpose: lambda a, axes=None: _core.transpose(a, axes),
    np.broadcast_to: lambda array, shape, subok=False: _core.broadcast_to(array, shape),
    np.dot: _dot,
    np.squeeze: _squeeze,
    np.expand_dims: _expand_dims,
    np.moveaxis: _moved(np.moveaxis),
    np.swapaxes: _moved(np.swapaxes),
    np.flip: _flip,
    np.copy: lambda a, order="K", subok=False: a.copy(),
    np.zeros_like: _like(arrays.zeros_like),
    np.ones_like: _like(arrays.ones_like),
    np.empty_like: _like(arrays.zeros_like),
}
# What a differentiable function is called here, where its arguments differ too much to translate.
_OURS = {
    np.pad: "pad", np.array_split: "split", np.tensordot: "einsum", np.partition: "topk",
    np.append: "concat", np.dstack: "concat", np.column_stack: "stack",
}  # fmt: skip


def _function(
    self: Tensor, function: Any, kinds: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """What NumPy calls for its other functions."""
    if function in _OF_SHAPES:
        return function(*map(_shaped, args), **{name: _shaped(value) for name, value in kwargs.items()})
    if function in _OF_NUMBERS:
        return _by_numpy(function, args, kwargs)
    translated = _FUNCTIONS.get(function)
    if translated is not None:
        return translated(*args, **kwargs)
    ours = _OURS.get(function)
    raise _refuse(_name(function), ours if ours is not None and hasattr(_core, ours) else None)


def _define() -> None:
    setattr(Tensor, "__array_ufunc__", _ufunc)
    setattr(Tensor, "__array_function__", _function)


_define()
