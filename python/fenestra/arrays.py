"""Making tensors, and the methods of Tensor that are functions of the module too."""

from __future__ import annotations

from typing import Any, Callable, Sequence, Union

import numpy as np

from . import _core
from ._core import Tensor

__all__ = ["full", "ones", "ones_like", "tensor", "zeros", "zeros_like"]

ShapeLike = Union[int, Sequence[int]]


def tensor(data: Any, dtype: Any = None) -> Tensor:
    """A tensor with memory of its own; numbers and lists become float64 unless dtype says else.

    Arguments:
        data: numbers, nested lists of them, an array or a tensor.
        dtype: "float32" or "float64"; that of the data unless given.

    >>> fn.tensor([1, 2, 3])
    Tensor([1., 2., 3.], dtype=float64)
    >>> fn.tensor(0.5, dtype="float32")
    Tensor(0.5, dtype=float32)
    """
    wanted = None if dtype is None else _dtype("tensor", dtype)
    try:
        array = np.array(data, dtype=wanted)
    except MemoryError as error:
        raise MemoryError(f"tensor: {error or 'not enough memory for the data'}") from None
    if array.dtype.kind in "iub" and not hasattr(data, "dtype"):
        array = array.astype(np.float64)
    return _core.asarray(array)


def _dtype(function: str, dtype: Any) -> Any:
    try:
        found = np.dtype(dtype)
    except (TypeError, ValueError):
        found = None
    if found not in (np.float32, np.float64):
        raise TypeError(
            f"{function}: dtype is {type(dtype).__name__ if found is None else found}, "
            "needed 'float32' or 'float64'"
        )
    return found


def _number(function: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{function}: value is {type(value).__name__}, needed a number") from None


def zeros(shape: ShapeLike, dtype: Any = np.float64) -> Tensor:
    """Zeros.

    Arguments:
        shape: the extents, or the only one.
        dtype: "float32" or "float64".

    >>> fn.zeros(2)
    Tensor([0., 0.], dtype=float64)
    """
    return _core.asarray(np.zeros(_core._shape(shape, "zeros"), _dtype("zeros", dtype)))


def ones(shape: ShapeLike, dtype: Any = np.float64) -> Tensor:
    """Ones.

    Arguments:
        shape: the extents, or the only one.
        dtype: "float32" or "float64".

    >>> fn.ones((1, 2), dtype="float32")
    Tensor([[1., 1.]], dtype=float32)
    """
    return _core.asarray(np.ones(_core._shape(shape, "ones"), _dtype("ones", dtype)))


def full(shape: ShapeLike, value: float, dtype: Any = np.float64) -> Tensor:
    """One number everywhere.

    Arguments:
        shape: the extents, or the only one.
        value: the number.
        dtype: "float32" or "float64".

    >>> fn.full(2, 7)
    Tensor([7., 7.], dtype=float64)
    """
    return _core.asarray(np.full(_core._shape(shape, "full"), _number("full", value), _dtype("full", dtype)))


def zeros_like(like: Any) -> Tensor:
    """Zeros of the shape and the type of another tensor.

    Arguments:
        like: the other tensor, or an array.

    >>> fn.zeros_like(np.ones(2, dtype="float32"))
    Tensor([0., 0.], dtype=float32)
    """
    like = _core.asarray(like)
    return zeros(like.shape, like.dtype)


def ones_like(like: Any) -> Tensor:
    """Ones of the shape and the type of another tensor.

    Arguments:
        like: the other tensor, or an array.

    >>> fn.ones_like(np.zeros(2))
    Tensor([1., 1.], dtype=float64)
    """
    like = _core.asarray(like)
    return ones(like.shape, like.dtype)


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    method.__name__ = function.__name__
    method.__doc__ = f"fenestra.{function.__name__} of this tensor."
    return method


def _reshape(self: Tensor, *shape: Any) -> Tensor:
    """fenestra.reshape of this tensor; the extents may be given one by one."""
    return _core.reshape(self, shape[0] if len(shape) == 1 else shape)


def _transpose(self: Tensor, *axes: Any) -> Tensor:
    """fenestra.transpose of this tensor; the axes may be given one by one."""
    return _core.transpose(self, axes[0] if len(axes) == 1 else axes or None)


def _iterate(self: Tensor) -> Any:
    if self.ndim == 0:
        raise TypeError("iteration: a tensor of rank 0 has no elements")
    return (self[i] for i in range(len(self)))


def _reversed(self: Tensor) -> Any:
    return (self[i] for i in reversed(range(len(self))))


def _format(self: Tensor, spec: str) -> str:
    """The number of a tensor of one element, as a float is formatted: f"{loss:.3f}"."""
    if not spec and self.ndim != 0:
        return repr(self)
    if self.size != 1:
        raise TypeError(
            f"format: the tensor {self.shape} is not a single element, and {spec!r} is for numbers\n"
            "  fix: index it, or a mean or sum of it"
        )
    try:
        number = self.item()
    except TypeError:
        if spec:
            raise
        return repr(self)  # under vmap or compile: there is no number
    return format(number, spec)


def _round(self: Tensor, digits: Any = None) -> Any:
    """round(loss, 3): the number of a tensor of one element, as a float is rounded."""
    return round(self.item(), digits)


def _divmod(self: Tensor, other: Any) -> Any:
    return self // other, self % other


def _rdivmod(self: Tensor, other: Any) -> Any:
    return other // self, other % self


def _reduce(self: Tensor) -> Any:
    """Pickling and copying go through arrays."""
    return Tensor, (np.array(self),)


def _define_methods() -> None:
    for name in (
        *("sum", "mean", "max", "min", "clip", "var", "std", "argmax", "argmin", "cumsum"),
        *("flatten", "squeeze", "unsqueeze", "split", "take"),
    ):
        setattr(Tensor, name, _method(getattr(_core, name)))
    members = {
        "reshape": _reshape,
        "transpose": _transpose,
        "__iter__": _iterate,
        "__reversed__": _reversed,
        "__format__": _format,
        "__reduce__": _reduce,
        "__round__": _round,
        "__divmod__": _divmod,
        "__rdivmod__": _rdivmod,
    }
    for name, member in members.items():
        setattr(Tensor, name, member)
    setattr(Tensor, "T", property(_core.transpose, doc="The axes reversed."))


_define_methods()
