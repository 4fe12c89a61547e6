"""Derivatives of Python functions of tensors, and the tape they are made of.

A transform calls the function with tensors that remember more than their numbers: variables of a
tape, values with tangents, or all samples of a batch at once. Each takes a level of its own, so
transforms nest in any order. Arguments may be nested lists, tuples and dicts of tensors and arrays.
"""

from __future__ import annotations

import functools
from types import TracebackType
from typing import Any, Callable, Mapping, Optional, Sequence

import numpy as np

from . import _core
from ._core import Indices, Tensor
from .calling import Argnames, Argnums, Choice, Key, replaced, taken
from .trees import flatten_like, tree_flatten, tree_map, tree_unflatten

__all__ = [
    "Gradients",
    "Tape",
    "custom_vjp",
    "grad",
    "hessian",
    "hvp",
    "jacfwd",
    "jacrev",
    "jvp",
    "no_grad",
    "per_sample_grad",
    "value_and_grad",
    "vjp",
    "vmap",
]


class _TapeCall:
    """A function's arguments, some of them as variables of a new tape."""

    def __init__(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], chosen: Sequence[Key]
    ) -> None:
        self.tape = _core._Tape()
        self.like = [tree_map(self.tape.parameter, tree) for tree in taken(args, kwargs, chosen)]
        self.leaves: list[Tensor] = tree_flatten(self.like)
        self.args, self.kwargs = replaced(args, kwargs, chosen, self.like)

    def call(self, f: Callable[..., Any]) -> Any:
        return f(*self.args, **self.kwargs)

    def pull(self, outputs: Sequence[Any], bars: Sequence[Any], retain: bool) -> list[Any]:
        """One tree of gradients for each chosen argument."""
        found = iter(self.tape.gradients(outputs, bars, self.leaves, retain))
        return [tree_unflatten(tree, found) for tree in self.like]

    def values(self, tree: Any) -> Any:
        """The results one level further in."""
        return tree_map(self.tape.value, tree)


def vjp(f: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Any, Callable[[Any], Any]]:
    """f(*args, **kwargs), and the function that pulls a cotangent of it back to args.

    The pullback may be called often. With one argument it returns one gradient, else a tuple.

    Arguments:
        f: a function of tensors, or of lists, tuples and dicts of them.
        args: what it is called with and differentiated by.
        kwargs: handed on to f, not differentiated by.

    >>> y, pullback = fn.vjp(lambda x: x * x, fn.tensor([1., 2.]))
    >>> pullback(fn.tensor([1., 10.]))
    Tensor([ 2., 40.], dtype=float64)
    """
    call = _TapeCall(args, kwargs, range(len(args)))
    y = call.call(f)
    outputs = tree_flatten(y)

    def pullback(y_bar: Any) -> Any:
        grads = call.pull(outputs, flatten_like(y, y_bar, "pullback: y_bar"), True)
        return grads[0] if len(grads) == 1 else tuple(grads)

    return call.values(y), pullback


def value_and_grad(
    f: Callable[..., Any],
    argnums: Optional[Argnums] = None,
    has_aux: bool = False,
    argnames: Optional[Argnames] = None,
) -> Callable[..., Any]:
    """A function that returns f's value, a single element, and its gradients.

    It takes the arguments of f, by position and by name, and gives all of them to f.

    Arguments:
        f: a function of tensors, or of lists, tuples and dicts of them.
        argnums: the places of the arguments to differentiate by, the first unless said: a number
            gives one gradient, several a tuple.
        has_aux: True where f returns a pair, of which the first is differentiated and the second
            passed on.
        argnames: the names of the arguments to differentiate by, instead of argnums: a name gives
            one gradient, several a dict.

    >>> fn.value_and_grad(lambda x: fn.sum(x * x))(fn.tensor([1., 2.]))
    (Tensor(5., dtype=float64), Tensor([2., 4.], dtype=float64))
    >>> f = lambda x, *, scale: (fn.sum(scale * x), x.shape)
    >>> fn.value_and_grad(f, has_aux=True, argnames="scale")(fn.tensor([1., 2.]), scale=3.)
    ((Tensor(9., dtype=float64), (2,)), Tensor(3., dtype=float64))
    """
    choice = Choice("grad", f, argnums, argnames)

    @functools.wraps(f)
    def function(*args: Any, **kwargs: Any) -> Any:
        call = _TapeCall(args, kwargs, choice.keys(args, kwargs))
        result = call.call(f)
        y, aux = result if has_aux else (result, None)
        y = _core.asarray(y)
        if y.size != 1:
            raise ValueError(
                f"grad: the function returned {y.shape}, needed a single element\n"
                "  fix: sum or mean of it, or vjp with a cotangent"
            )
        grads = choice.packed(call.pull([y], [None], False))
        value = call.values(y)
        return ((value, call.values(aux)), grads) if has_aux else (value, grads)

    return function


def grad(
    f: Callable[..., Any],
    argnums: Optional[Argnums] = None,
    argnames: Optional[Argnames] = None,
    has_aux: bool = False,
) -> Callable[..., Any]:
    """The gradient of f, which returns a single element, as a function.

    It takes the arguments of f, by position and by name, and gives all of them to f.

    Arguments:
        f: a function of tensors, or of lists, tuples and dicts of them.
        argnums: the places of the arguments to differentiate by, the first unless said: a number
            gives one gradient, several a tuple.
        argnames: the names of the arguments to differentiate by, instead of argnums: a name gives
            one gradient, several a dict.
        has_aux: True where f returns a pair, of which the first is differentiated and the second
            passed on: the result is (gradient, second).

    >>> fn.grad(lambda x: x ** 3)(fn.tensor(2.))
    Tensor(12., dtype=float64)
    >>> fn.grad(fn.grad(lambda x: x ** 3))(fn.tensor(2.))
    Tensor(12., dtype=float64)
    >>> fn.grad(lambda x, power: x ** power, argnames=["x"])(2., power=3)
    {'x': Tensor(12., dtype=float64)}
    >>> fn.grad(lambda x: (x * x, "seen"), has_aux=True)(fn.tensor(3.))
    (Tensor(6., dtype=float64), 'seen')
    """
    differentiated = value_and_grad(f, argnums, has_aux, argnames)

    @functools.wraps(f)
    def function(*args: Any, **kwargs: Any) -> Any:
        value, gradients = differentiated(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return function


def jvp(
    f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], **kwargs: Any
) -> tuple[Any, Any]:
    """f(*primals, **kwargs), and its derivative as the primals move along the tangents.

    Arguments:
        f: a function of tensors, or of lists, tuples and dicts of them.
        primals: its arguments by position, in a tuple.
        tangents: a direction for each of them, of the same shapes.
        kwargs: handed on to f; they do not move.

    >>> fn.jvp(lambda x: x * x, (fn.tensor(3.),), (fn.tensor(1.),))
    (Tensor(9., dtype=float64), Tensor(6., dtype=float64))
    """
    primals, tangents = _arguments("primals", primals), _arguments("tangents", tangents)
    level = _core._new_level()
    return _jvp_on(level, functools.partial(f, **kwargs), primals, tangents)


def _arguments(name: str, arguments: Sequence[Any]) -> list[Any]:
    if not isinstance(arguments, (tuple, list)):
        raise TypeError(
            f"{name}: {type(arguments).__name__}, needed a tuple with one entry for each argument\n"
            f"  fix: ({name[:-1]},)"
        )
    return list(arguments)


def _jvp_on(
    level: int, f: Callable[..., Any], primals: list[Any], tangents: list[Any]
) -> tuple[Any, Any]:
    jets = tree_map(functools.partial(_core._make_jet, level), primals, tangents)
    y = f(*jets)
    pairs = [_core._split_jet(level, leaf) for leaf in tree_flatten(y)]
    return (
        tree_unflatten(y, iter([primal for primal, _ in pairs])),
        tree_unflatten(y, iter([tangent for _, tangent in pairs])),
    )


def hvp(
    f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], **kwargs: Any
) -> Any:
    """The Hessian of f at the primals times the tangents: forward over reverse.

    With one argument it returns one tensor (or tree), else a tuple.

    Arguments:
        f: a function that returns a single element.
        primals: its arguments by position, in a tuple.
        tangents: a direction for each of them, of the same shapes.
        kwargs: handed on to f, not differentiated by.

    >>> fn.hvp(lambda x: fn.sum(x ** 3), (fn.tensor([1., 2.]),), (fn.tensor([1., 1.]),))
    Tensor([ 6., 12.], dtype=float64)
    """
    count = len(_arguments("primals", primals))
    gradient = grad(f, 0 if count == 1 else range(count))
    return jvp(gradient, primals, tangents, **kwargs)[1]


def _units(like: Tensor) -> Tensor:
    """All unit tensors of a shape, along a new first axis."""
    size = like.size
    return _core.asarray(np.eye(size, dtype=like.dtype).reshape(size, *like.shape))


def jacrev(
    f: Callable[..., Any],
    argnums: Optional[Argnums] = None,
    argnames: Optional[Argnames] = None,
) -> Callable[..., Any]:
    """The Jacobian of f, y.shape + x.shape, by pulling all unit cotangents back at once.

    Arguments:
        f: a function that returns a tensor.
        argnums: the places of the arguments to differentiate by, as for grad.
        argnames: their names, instead of argnums, as for grad.

    >>> fn.jacrev(lambda x: x * x)(fn.tensor([1., 2.]))
    Tensor([[2., 0.],
            [0., 4.]], dtype=float64)
    """

    choice = Choice("jacrev", f, argnums, argnames)

    @functools.wraps(f)
    def function(*args: Any, **kwargs: Any) -> Any:
        call = _TapeCall(args, kwargs, choice.keys(args, kwargs))
        y = _core.asarray(call.call(f))
        level = _core._new_level()
        if y.size == 0:
            rows = tree_map(lambda x: _empty_jacobian(y, x), call.like)
        else:
            units = _core._make_batch(level, _units(y))
            rows = tree_map(
                lambda x_bar: _core.reshape(
                    _core._unbatch(level, x_bar, y.size), y.shape + x_bar.shape
                ),
                call.pull([y], [units], False),
            )
        return choice.packed(rows)

    return function


def _empty_jacobian(y: Tensor, x: Tensor) -> Tensor:
    return _core.asarray(np.zeros(y.shape + x.shape, y.dtype))


def jacfwd(
    f: Callable[..., Any],
    argnums: Optional[Argnums] = None,
    argnames: Optional[Argnames] = None,
) -> Callable[..., Any]:
    """The Jacobian of f, y.shape + x.shape, by moving along all unit tangents at once.

    Arguments:
        f: a function that returns a tensor.
        argnums: the places of the arguments to differentiate by, as for grad.
        argnames: their names, instead of argnums, as for grad.

    >>> fn.jacfwd(lambda x: x * x)(fn.tensor([1., 2.]))
    Tensor([[2., 0.],
            [0., 4.]], dtype=float64)
    """

    choice = Choice("jacfwd", f, argnums, argnames)

    @functools.wraps(f)
    def function(*args: Any, **kwargs: Any) -> Any:
        def columns(key: Key, tree: Any, leaves: list[Any], leaf: int) -> Tensor:
            def of_leaf(x: Any) -> Any:
                moved = [x if i == leaf else other for i, other in enumerate(leaves)]
                by_place, by_name = replaced(args, kwargs, [key], [tree_unflatten(tree, iter(moved))])
                return f(*by_place, **by_name)

            x = _core.asarray(leaves[leaf])
            if x.size == 0:
                return _empty_jacobian(_core.asarray(of_leaf(x)), x)
            level, items = _core._new_level(), _core._new_level()
            units = _core._make_batch(items, _units(x))
            y, y_dot = _jvp_on(level, of_leaf, [x], [units])
            stacked = _core._unbatch(items, y_dot, x.size)
            transposed = _core.transpose(_core.reshape(stacked, (x.size, y.size)))
            return _core.reshape(transposed, y.shape + x.shape)

        def jacobian(key: Key, tree: Any) -> Any:
            leaves = tree_flatten(tree)
            found = iter([columns(key, tree, leaves, i) for i in range(len(leaves))])
            return tree_unflatten(tree, found)

        keys = choice.keys(args, kwargs)
        return choice.packed([jacobian(key, tree) for key, tree in zip(keys, taken(args, kwargs, keys))])

    return function


def hessian(
    f: Callable[..., Any], argnums: Optional[int] = None, argnames: Optional[str] = None
) -> Callable[..., Any]:
    """The second derivatives of f, which returns a single element, by one argument: forward over reverse.

    Arguments:
        f: a function that returns a single element.
        argnums: the place of the argument to differentiate by, the first unless said.
        argnames: its name, instead of argnums.

    >>> fn.hessian(lambda x: fn.sum(x ** 3))(fn.tensor([1., 2.]))
    Tensor([[ 6.,  0.],
            [ 0., 12.]], dtype=float64)
    >>> fn.hessian(lambda x, y: x * y * y, argnames="y")(2., y=3.)
    Tensor(4., dtype=float64)
    """
    if not isinstance(argnums, (int, type(None))) or not isinstance(argnames, (str, type(None))):
        raise TypeError(
            "hessian: argnums or argnames names several arguments\n"
            "  fix: one; jacfwd(grad(f, i), j) is the part by arguments i and j"
        )
    return jacfwd(grad(f, argnums, argnames), argnums, argnames)


def custom_vjp(
    f: Callable[..., Any], forward: Callable[..., Any], backward: Callable[..., Any]
) -> Callable[..., Any]:
    """f with a pullback of its own.

    f computes where nobody differentiates. Where somebody does, forward takes the same arguments and
    returns f's result and residuals (anything), and backward takes the residuals and the cotangent
    of the result, and returns one cotangent for each argument: a tuple, or one alone for a single
    argument. An argument that has no tensors gets None. backward is made of functions of this module,
    so it is differentiated in its turn: in grad of grad, in forward mode, under vmap and in programs.
    f returns one tensor.

    Arguments:
        f: what is computed.
        forward: f's result and what backward needs.
        backward: of what forward kept and the cotangent of the result, the cotangents of the
            arguments.

    >>> step = fn.custom_vjp(fn.round, lambda x: (fn.round(x), None), lambda _, y_bar: y_bar)
    >>> fn.value_and_grad(lambda x: step(x) * x)(fn.tensor(1.75))
    (Tensor(3.5, dtype=float64), Tensor(3.75, dtype=float64))
    """

    @functools.wraps(f)
    def function(*args: Any) -> Any:
        flat = tree_flatten(args)
        if not any(isinstance(leaf, Tensor) and leaf.is_tracked for leaf in flat):
            return f(*args)
        places = [i for i, leaf in enumerate(flat) if _is_float(leaf)]

        def rebuilt(tensors: Sequence[Any]) -> Any:
            leaves = list(flat)
            for i, tensor in zip(places, tensors):
                leaves[i] = tensor
            return tree_unflatten(args, iter(leaves))

        def run_forward(tensors: Sequence[Any]) -> tuple[Any, Any]:
            both = forward(*rebuilt(tensors))
            if not isinstance(both, tuple) or len(both) != 2 or not isinstance(both[0], Tensor):
                raise TypeError(
                    "custom_vjp: forward returned no pair of a tensor and residuals\n"
                    "  fix: return y, residuals"
                )
            return both[0], both[1]

        def run_backward(residuals: Any, y_bar: Any) -> list[Any]:
            bars = backward(residuals, y_bar)
            if len(args) == 1 and not (isinstance(bars, tuple) and len(bars) == 1):
                bars = (bars,)
            if not isinstance(bars, (tuple, list)) or len(bars) != len(args):
                raise ValueError(
                    f"custom_vjp: backward returned {_described(bars)}, the function has "
                    f"{len(args)} arguments\n  fix: a tuple with one cotangent for each"
                )
            found: list[Any] = []
            for number, (arg, bar) in enumerate(zip(args, bars)):
                if any(_is_float(leaf) for leaf in tree_flatten(arg)):
                    leaves = flatten_like(arg, bar, f"custom_vjp: cotangent {number}")
                    found += [b for b, leaf in zip(leaves, tree_flatten(arg)) if _is_float(leaf)]
            return found

        return _core._custom_vjp([flat[i] for i in places], run_forward, run_backward)

    return function


def _is_float(leaf: Any) -> bool:
    """Whether a leaf can have a derivative."""
    if isinstance(leaf, (Tensor, Indices)):
        return isinstance(leaf, Tensor)
    return hasattr(leaf, "dtype") and np.asarray(leaf).dtype in (np.float32, np.float64)


def _is_integer(leaf: Any) -> bool:
    if isinstance(leaf, (Indices, Tensor)):
        return isinstance(leaf, Indices)
    return np.asarray(leaf).dtype.kind in "iu"


def _items(arguments: list[tuple[Any, int]]) -> int:
    """How many items arguments have along their axes."""
    counts = set()
    for tree, axis in arguments:
        for leaf in tree_flatten(tree):
            shape = _shape(leaf)
            if shape:
                if not -len(shape) <= axis < len(shape):
                    raise ValueError(
                        f"vmap: in_axes names axis {axis} of an argument {shape}\n"
                        f"  fix: an axis from {-len(shape)} to {len(shape) - 1}, or None"
                    )
                counts.add(shape[axis])
    if len(counts) != 1 or 0 in counts:
        raise ValueError(
            f"vmap: first extents {sorted(counts)}, needed one number of items, at least 1\n"
            "  fix: equal extents on the mapped axes of all arguments"
        )
    return int(counts.pop())


def _moved(leaf: Any, source: int, target: int) -> Any:
    """A tensor with an axis at another place."""
    rank = leaf.ndim
    if not (-rank <= source < rank and -rank <= target < rank):
        raise ValueError(
            f"vmap: out_axes = {target} for a result {leaf.shape[1:]} of each item\n"
            f"  fix: an axis from {-rank} to {rank - 1}"
        )
    order = [i for i in range(rank) if i != source % rank]
    order.insert(target % rank, source % rank)
    return leaf if order == list(range(rank)) else _core.transpose(leaf, order)


def _shape(leaf: Any) -> tuple[int, ...]:
    """Of an array or tensor of any library; anything else is one value for all items."""
    if isinstance(leaf, Tensor) or not hasattr(leaf, "__array__"):
        return tuple(getattr(leaf, "shape", ()))
    return np.shape(leaf)


def _batched(level: int, axis: int, leaf: Any) -> Any:
    if not _shape(leaf):
        return leaf
    if not _is_integer(leaf):
        return _core._make_batch(level, _moved(_core.asarray(leaf), axis, 0))
    if axis != 0:
        if isinstance(leaf, Indices):
            raise ValueError(
                "vmap: integers of a program or of another vmap are mapped along axis 0\n"
                "  fix: in_axes 0 for them"
            )
        leaf = np.moveaxis(np.asarray(leaf), axis, 0)
    return _core._make_batch_indices(level, leaf)


def vmap(f: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """f on every item of its arguments at once, results stacked along a new axis.

    Arguments:
        f: a function of one item.
        in_axes: along which axis arguments are cut, None for those that are the same for all items:
            one for all arguments by position, or a tuple with one for each. Arguments by name are
            cut along their first axis, numbers among them are the same for all items.
        out_axes: where the axis of items stands in the results: one for all, or a tuple with one for
            each part of the result.

    >>> fn.vmap(lambda x, w: fn.sum(x * w), in_axes=(0, None))(fn.ones((2, 3)), fn.tensor([1., 2., 3.]))
    Tensor([6., 6.], dtype=float64)
    >>> fn.vmap(lambda x: 2 * x, in_axes=1, out_axes=1)(fn.ones((2, 3))).shape
    (2, 3)
    """

    @functools.wraps(f)
    def function(*args: Any, **kwargs: Any) -> Any:
        axes = list(in_axes) if isinstance(in_axes, (tuple, list)) else [in_axes] * len(args)
        if len(axes) != len(args) or not all(axis is None or _is_axis(axis) for axis in axes):
            raise ValueError(
                f"vmap: in_axes = {in_axes} for {len(args)} arguments\n"
                "  fix: an axis or None, for all arguments or for each"
            )
        count = _items(
            [(arg, axis) for arg, axis in zip(args, axes) if axis is not None]
            + [(arg, 0) for arg in kwargs.values()]
        )
        level = _core._new_level()
        y = f(
            *(
                arg if axis is None else tree_map(functools.partial(_batched, level, axis), arg)
                for arg, axis in zip(args, axes)
            ),
            **{
                name: tree_map(functools.partial(_batched, level, 0), arg)
                for name, arg in kwargs.items()
            },
        )

        def stacked(tree: Any, axis: Any) -> Any:
            if not _is_axis(axis):
                raise ValueError(
                    f"vmap: out_axes = {out_axes}\n  fix: an axis, for all results or for each part"
                )
            return tree_map(lambda leaf: _moved(_core._unbatch(level, leaf, count), 0, axis), tree)

        if not isinstance(out_axes, (tuple, list)):
            return stacked(y, out_axes)
        if not isinstance(y, (tuple, list)) or len(y) != len(out_axes):
            raise ValueError(
                f"vmap: out_axes = {out_axes} for a result that is {_described(y)}\n"
                "  fix: as many as the result has parts, or one for all"
            )
        return type(y)(stacked(part, axis) for part, axis in zip(y, out_axes))

    return function


def _is_axis(axis: Any) -> bool:
    return isinstance(axis, (int, np.integer)) and not isinstance(axis, bool)


def per_sample_grad(
    f: Callable[..., Any],
    argnums: Optional[Argnums] = None,
    argnames: Optional[Argnames] = None,
) -> Callable[..., Any]:
    """The gradients of f for every sample, along a new first axis: vmap over grad.

    Arguments:
        f: a function of parameters and one sample, which returns a single element.
        argnums: the places of the parameters, the first argument unless said; they are the same
            for all samples. All other arguments, by position and by name, are cut along their
            first axis; numbers among them are the same for all samples.
        argnames: the names of the parameters, instead of argnums.

    >>> loss = lambda w, x: fn.sum(w * x) ** 2
    >>> fn.per_sample_grad(loss)(fn.tensor([1., 1.]), fn.tensor([[1., 0.], [1., 2.]]))
    Tensor([[ 2.,  0.],
            [ 6., 12.]], dtype=float64)
    """
    choice = Choice("per_sample_grad", f, argnums, argnames)
    differentiated = grad(f, argnums, argnames)

    @functools.wraps(f)
    def function(*args: Any, **kwargs: Any) -> Any:
        keys = choice.keys(args, kwargs)
        axes = tuple(None if i in keys else 0 for i in range(len(args)))
        parameters = {key: kwargs[key] for key in keys if isinstance(key, str)}
        samples = {name: arg for name, arg in kwargs.items() if name not in parameters}
        # The order of the arguments by name stays that of the call.
        sample_grad = lambda *by_place, **by_name: differentiated(  # noqa: E731
            *by_place, **{name: by_name.get(name, parameters.get(name)) for name in kwargs}
        )
        return vmap(sample_grad, axes)(*args, **samples)

    return function


def _described(y: Any) -> str:
    return f"the tensor {y.shape}" if isinstance(y, Tensor) else f"a {type(y).__name__}"


class Gradients:
    """What a backward sweep found: ``gradients[parameter]``."""

    def __init__(self, variables: Sequence[Tensor], found: Sequence[Tensor]) -> None:
        self._found = {id(variable): (variable, bar) for variable, bar in zip(variables, found)}

    def __getitem__(self, variable: Tensor) -> Tensor:
        if id(variable) not in self._found:
            raise ValueError(
                f"gradients: none was kept for {_described(variable)}\n"
                "  fix: make it a parameter, or name it in wrt"
            )
        return self._found[id(variable)][1]


class Tape:
    """Records what is computed from its parameters, for those who prefer it to functions.

    >>> tape = fn.Tape()
    >>> w = tape.parameter([1., 2.])
    >>> loss = fn.sum(w * w)
    >>> tape.backward(loss)[w]
    Tensor([2., 4.], dtype=float64)
    """

    def __init__(self) -> None:
        self._tape = _core._Tape()
        self._parameters: list[Tensor] = []

    def parameter(self, value: Any) -> Tensor:
        """A tensor that receives a gradient.

        Arguments:
            value: its numbers, a tensor or an array.
        """
        variable = self._tape.parameter(value)
        self._parameters.append(variable)
        return variable

    def backward(
        self,
        y: Tensor,
        cotangent: Any = None,
        *,
        wrt: Optional[Sequence[Tensor]] = None,
        retain: bool = False,
    ) -> Gradients:
        """The gradients of y (of <cotangent, y>) by the parameters, or by the tensors in wrt.

        Arguments:
            y: a tensor that was computed from the parameters.
            cotangent: of the shape of y; ones unless given.
            wrt: the tensors to differentiate by, all parameters unless given.
            retain: True keeps what the tape saved, for another sweep.
        """
        if not self._tape.owns(y):
            raise ValueError(
                f"backward: {_described(y)} depends on no parameter of this tape\n"
                "  fix: compute it from tape.parameter(...), outside no_grad"
            )
        if not isinstance(wrt, (list, tuple, type(None))):
            raise TypeError(
                f"backward: wrt is {type(wrt).__name__}, needed a list of tensors\n"
                "  fix: [tensor], or leave it out for all parameters"
            )
        variables = self._parameters if wrt is None else list(wrt)
        return Gradients(variables, self._tape.gradients([y], [cotangent], variables, retain))

    def reset(self) -> None:
        """Forgets everything; tensors made before are stale."""
        self._tape.reset()
        self._parameters.clear()

    def __len__(self) -> int:
        return len(self._tape)


class no_grad:
    """While it is open, operators in this thread compute values and record nothing.

    >>> def f(x):
    ...     with fn.no_grad():
    ...         scale = x * x
    ...     return x * scale
    >>> fn.grad(f)(fn.tensor(3.))
    Tensor(9., dtype=float64)
    """

    def __enter__(self) -> "no_grad":
        _core._enter_no_grad()
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        _core._exit_no_grad()
