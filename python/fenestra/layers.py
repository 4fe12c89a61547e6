"""Layers: thin objects over those of the library, which are told the same under the same names.

The classes of its kinds are in kinds.py; here is what they share, and layers made of layers.
"""

from __future__ import annotations

import inspect
import json
import operator
import reprlib
from types import SimpleNamespace
from typing import Any, Callable, Iterable, Mapping, NamedTuple, Optional, Sequence, Union

import numpy as np

from . import _core
from ._core import Tensor
from .passes import DTYPES, Key, Pass, dict_of, is_double, seed_of, unknown
from .trees import TreeNode

__all__ = [
    "Branches",
    "Function",
    "Layer",
    "Residual",
    "Sequential",
    "apply",
    "apply_updates",
    "build_layer",
    "initialise",
    "layer_kinds",
    "parameter_count",
]

class Layer(TreeNode):
    """Any layer or model. Weights are zero until `initialise` draws them or a file gives them.

    A model is a tree of its parameters: `fn.value_and_grad(loss)(model, x, y)` gives a model of
    gradients, `fn.tree_map` works on models, and `fn.compile` takes them as arguments.

    >>> net = nn.initialise(nn.Sequential(nn.Linear(2, 3), nn.Relu()), 1)
    >>> net(fn.ones((4, 2), "float32")).shape
    (4, 3)
    >>> loss = lambda net, x: fn.mean(net(x) ** 2)
    >>> value, gradients = fn.value_and_grad(loss)(net, fn.ones((4, 2), "float32"))
    >>> {name: bar.shape for name, bar in gradients.parameters().items()}
    {'0.weight': (3, 2), '0.bias': (3,)}
    """

    _layer: _core._Layer

    def __init__(self) -> None:
        raise TypeError("Layer: made by its kinds\n  fix: nn.Conv(...), nn.Sequential(...), ...")

    def __call__(self, x: Any, pass_: Optional[Pass] = None) -> Tensor:
        """What the model says about x, in inference unless a pass says otherwise.

        Arguments:
            x: a batch, (samples, channels, spatial...).
            pass_: `Pass.training(key)` or `Pass.inference()`.
        """
        if pass_ is not None and not isinstance(pass_, Pass):
            raise TypeError(
                f"{type(self).__name__}: pass_ is {type(pass_).__name__}\n"
                "  fix: nn.Pass.training(key), or nothing for inference"
            )
        held = _core._Pass(None) if pass_ is None else pass_._pass
        return self._layer.call(x, held)

    @property
    def kind(self) -> str:
        """What files call it: 'conv', 'sequential'."""
        return self._layer.kind

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of parameters, inputs and outputs: float32 or float64."""
        return np.dtype(DTYPES[self._layer.double])

    def parameters(self) -> dict[str, Tensor]:
        """What is trained, by dotted name, in a stable order."""
        return {name: value for name, trained, value in self._layer.slots() if trained}

    def buffers(self) -> dict[str, Tensor]:
        """State that training changes and nobody differentiates: running statistics."""
        return {name: value for name, trained, value in self._layer.slots() if not trained}

    def update(self, values: Mapping[str, Any]) -> None:
        """Takes other numbers, all of them or, where one does not fit, none.

        Arguments:
            values: arrays by the names of parameters and buffers, as many of them as you like.
        """
        values = dict_of("update", values, "{'weight': array}")
        names = [name for name, _, _ in self._layer.slots()]
        for name in values:
            if name not in names:
                raise ValueError(f"update: {unknown('parameter or buffer', name, names)}")
        self._layer.set_values(values)

    def describe(self) -> Any:
        """What it is made of: dicts, lists, texts and numbers, which `build_layer` takes."""
        text = self._layer.describe()
        if text is None:
            raise ValueError(
                "describe: a function of the program has no description\n"
                "  fix: layers of the library only"
            )
        return json.loads(text)

    def copy(self) -> Layer:
        """Another one with the same numbers."""
        return wrapped(self._layer.with_values([], False))

    def __copy__(self) -> Layer:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Layer:
        return self.copy()

    def __reduce__(self) -> Any:
        state = [np.asarray(value) for value in self.tree_state().values()]
        return _unpickled, (json.dumps(self.describe()), self._layer.double, state)

    def __repr__(self) -> str:
        text = self._layer.describe()
        return f"<{type(self).__name__}>" if text is None else _shown(json.loads(text), "")

    def tree_leaves(self) -> dict[str, Any]:
        return self.parameters()

    def tree_rebuilt(self, leaves: list[Any]) -> Layer:
        return wrapped(self._layer.with_values(leaves, False))

    def tree_state(self) -> dict[str, Any]:
        return {name: value for name, _, value in self._layer.slots()}

    def tree_restored(self, state: list[Any]) -> Layer:
        return wrapped(self._layer.with_values(state, True))

    def tree_structure(self) -> str:
        return f"{self.dtype} {self._layer.structure}"


_classes: dict[str, type[Layer]] = {}


def registered(kind: str, made: type[Layer]) -> type[Layer]:
    """Makes a class the one of a kind.

    Arguments:
        kind: as files call it.
        made: the class.

    >>> registered("relu", nn.Relu).__name__
    'Relu'
    """
    _classes[kind] = made
    return made


def wrapped(held: _core._Layer) -> Layer:
    """The Python object of a layer of the library.

    Arguments:
        held: the layer.

    >>> type(wrapped(nn.Relu()._layer)).__name__
    'Relu'
    """
    kind = _classes.get(held.kind, Layer)
    result = kind.__new__(kind)
    result._layer = held
    return result


def _unpickled(text: str, double: bool, state: list[Any]) -> Layer:
    return wrapped(_core._build_layer(text, double).with_values(state, True))


# --- The kinds of the library ---------------------------------------------------------------------


class Field(NamedTuple):
    """What the layers of a kind are told.

    >>> [field.name for field in layer_fields("linear")]
    ['in_', 'out', 'bias']
    """

    name: str  #: in Python
    key: str  #: in descriptions
    type: str  #: in the library's words
    needed: bool
    default: Any


def layer_fields(kind: str) -> list[Field]:
    """The fields of a kind of layer, in the order of its constructor.

    Arguments:
        kind: as files call it.

    >>> layer_fields("dropout")[0].name
    'drop'
    """
    return [
        Field(
            f"{name}_" if name in ("in",) else name,
            name,
            kind_of,
            needed,
            None if default is None else json.loads(default),
        )
        for name, kind_of, needed, default in _core._layer_fields(kind)
    ]


def signature_of(fields: Sequence[Field]) -> inspect.Signature:
    """How a layer with these fields is made: what must be said, or the first field, by position.

    Arguments:
        fields: those of its kind.

    >>> print(signature_of(layer_fields("linear")))
    (in_, out, *, bias=True, dtype='float32')
    """
    by_place = max(1, sum(field.needed for field in fields))
    parameters = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD
            if i < by_place
            else inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.needed else field.default,
        )
        for i, field in enumerate(fields)
    ]
    dtype = inspect.Parameter("dtype", inspect.Parameter.KEYWORD_ONLY, default="float32")
    return inspect.Signature([*parameters, dtype])


def _whole(value: Any) -> int:
    if isinstance(value, (bool, np.bool_)):
        raise TypeError
    return operator.index(value)


def _items(value: Any) -> Optional[list[Any]]:
    """The elements of a sequence that an axis each can have; None of what is no sequence."""
    if not isinstance(value, (list, tuple, np.ndarray)) or np.ndim(value) == 0:
        return None
    if len(value) > 16:
        raise TypeError
    return list(value)


def _axes(value: Any) -> Any:
    items = _items(value)
    return _whole(value) if items is None else [_whole(item) for item in items]


def _padding(value: Any) -> Any:
    if isinstance(value, str):
        if value not in ("same", "valid"):
            raise TypeError
        return "same" if value == "same" else 0
    items = _items(value)
    return _whole(value) if items is None else [_axes(item) for item in items]


def _flag(value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError
    return bool(value)


def _number(value: Any) -> float:
    if isinstance(value, (str, bool)):
        raise TypeError
    return float(value)


def _word(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _extents(value: Any) -> list[int]:
    axes = _axes(value)
    return axes if isinstance(axes, list) else [axes]


_CONVERSIONS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "flag": (_flag, "True or False"),
    "number": (_number, "a number"),
    "whole": (_whole, "an int"),
    "optional whole": (_whole, "an int or None"),
    "axes": (_axes, "an int, or one for each spatial axis"),
    "padding": (_padding, "an int, one for each axis, (low, high) for each axis, 'same' or 'valid'"),
    "extents": (_extents, "a list of ints"),
    "pad cells": (_word, "'ignore' or 'zero'"),
    "word": (_word, "a text"),
}


def _brief(value: Any) -> str:
    """A value for a message, or its type where it may be long or raise."""
    if type(value) in (bool, int, float, str):
        return reprlib.repr(value).encode("ascii", "backslashreplace").decode()
    return type(value).__name__


def description_text(owner: str, kind: str, fields: Sequence[Field], said: Mapping[str, Any]) -> str:
    """The description of a layer, as text.

    Arguments:
        owner: the class, for messages.
        kind: as files call it.
        fields: those of the kind.
        said: the arguments by name; None is not said.

    >>> description_text("Linear", "linear", layer_fields("linear"), {"in_": 2, "out": 3})
    '{"layer": "linear", "in": 2, "out": 3}'
    """
    description: dict[str, Any] = {"layer": kind}
    for field in fields:
        value = said.get(field.name)
        if value is None:
            continue
        convert, needed = _CONVERSIONS[field.type]
        try:
            description[field.key] = convert(value)
        except (TypeError, ValueError):
            raise TypeError(
                f"{owner}: {field.name} is {_brief(value)}, needed {needed}\n  fix: {field.name}="
                f"{'...' if field.default is None else repr(field.default)}"
            ) from None
    return json.dumps(description)


def bound(
    owner: str, signature: inspect.Signature, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments of a call by name; those that nothing takes are refused with the nearest name.

    Arguments:
        owner: what is called, for the message.
        signature: what it takes.
        args: arguments by place.
        kwargs: arguments by name.

    >>> bound("Linear", signature_of(layer_fields("linear")), [2], {"out": 3})
    {'in_': 2, 'out': 3}
    """
    for name in kwargs:
        if name not in signature.parameters:
            raise TypeError(f"{owner}: {unknown('argument', name, signature.parameters)}")
    try:
        return dict(signature.bind(*args, **kwargs).arguments)
    except TypeError as error:
        raise TypeError(f"{owner}: {error}\n  fix: {owner}{signature}") from None


def class_name(kind: str) -> str:
    """What the class of a kind is called.

    Arguments:
        kind: as files call it.

    >>> class_name("conv_transpose")
    'ConvTranspose'
    """
    return "".join(word.capitalize() for word in kind.split("_"))


# --- Layers made of layers ------------------------------------------------------------------------


def _part(owner: str, part: Any, dtype: str) -> Layer:
    """A layer; a function becomes one."""
    if isinstance(part, Layer):
        return part
    if callable(part) and not isinstance(part, type):
        return Function(part, dtype=dtype)
    fix = f"{part.__name__}(...)" if isinstance(part, type) else "nn.Conv(...), nn.Relu(), a function"
    raise TypeError(f"{owner}: {_brief(part)} is no layer\n  fix: {fix}")


def _parts(owner: str, layers: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """(name, layer) of all, and whether they are of float64."""
    both = [(str(i), layer) for i, layer in enumerate(layers)] + list(named.items())
    given = [layer for _, layer in both if isinstance(layer, Layer)]
    dtype = given[0].dtype.name if given else "float32"
    return [(name, _part(owner, layer, dtype)._layer) for name, layer in both], dtype == "float64"


class Sequential(Layer):
    """One layer after the other, named by their numbers or by the names of the arguments.

    Functions may be among them; a model file then keeps the numbers alone.

    Arguments:
        layers: layers and functions of one tensor.
        named: the same, with names.

    >>> net = nn.Sequential(nn.Linear(2, 3), fn.relu, head=nn.Linear(3, 1))
    >>> list(net.parameters())
    ['0.weight', '0.bias', 'head.weight', 'head.bias']
    """

    def __init__(self, *layers: Any, **named: Any) -> None:
        if len(layers) == 1 and isinstance(layers[0], (list, tuple)):
            layers = tuple(layers[0])
        self._layer = _core._sequential(*_parts("Sequential", layers, named))


class Residual(Layer):
    """body(x) + x, or after(body(x) + projection(x)).

    Arguments:
        body: a layer.
        projection: what the short cut does; nothing where not given.
        after: what is done to the sum.

    >>> nn.Residual(nn.Conv(4, 4, kernel=3, padding=1), after=nn.Relu())(fn.ones((1, 4, 5, 5), "float32")).shape
    (1, 4, 5, 5)
    """

    def __init__(self, body: Any, *, projection: Any = None, after: Any = None) -> None:
        first = _part("Residual", body, "float32")
        others = [
            None if part is None else _part("Residual", part, first.dtype.name)._layer
            for part in (projection, after)
        ]
        self._layer = _core._residual(first._layer, *others)


class Branches(Layer):
    """Every branch on the same x, the results one after the other along the channels.

    Arguments:
        branches: layers.

    >>> nn.Branches(nn.Conv(4, 3), nn.Identity())(fn.ones((1, 4, 5, 5), "float32")).shape
    (1, 7, 5, 5)
    """

    def __init__(self, *branches: Any) -> None:
        if len(branches) == 1 and isinstance(branches[0], (list, tuple)):
            branches = tuple(branches[0])
        self._layer = _core._branches(*_parts("Branches", branches, {}))


class Function(Layer):
    """A function of the program as a layer, with the parameters and layers that it uses.

    Without parts it is called as f(x), else as f(parts, x, pass_), with the parts as attributes. It
    trains like any other layer; a model file keeps its numbers, and `load_weights` reads them.

    Arguments:
        f: made of functions of fenestra.
        dtype: 'float32' or 'float64'.
        parts: arrays, which are trained, and layers, by name.

    >>> def scaled(parts, x, pass_):
    ...     return parts.linear(x, pass_) * parts.scale
    >>> net = nn.Function(scaled, linear=nn.Linear(2, 3), scale=np.ones(3))
    >>> list(net.parameters()), net(fn.ones((1, 2), "float32")).shape
    (['linear.weight', 'linear.bias', 'scale'], (1, 3))
    """

    def __init__(self, f: Callable[..., Any], *, dtype: Any = "float32", **parts: Any) -> None:
        if not callable(f):
            raise TypeError(f"Function: {_brief(f)} is no function\n  fix: Function(f, weight=...)")
        double = is_double(dtype, "Function")

        def call(given: list[tuple[str, Any]], x: Tensor, held: _core._Pass) -> Any:
            if not given:
                return f(x)
            names = {n: wrapped(p) if isinstance(p, _core._Layer) else p for n, p in given}
            return f(SimpleNamespace(**names), x, Pass._of(held))

        held: list[tuple[str, Any]] = []
        for name, part in parts.items():
            if isinstance(part, Layer):
                held.append((name, part._layer))
            else:
                held.append((name, _core.asarray(np.array(part, DTYPES[double]))))
        self._layer = _core._function(call, held, double)


def _shown(description: Any, indent: str) -> str:
    """A layer as Python would write it, what it is made of on lines of its own."""
    kind = description["layer"]
    deeper = indent + "  "
    if kind in ("sequential", "branches"):
        parts = description["layers"]
        names = description.get("names")
        lines = "".join(
            f"\n{deeper}{f'{names[i]}=' if names else ''}{_shown(part, deeper)},"
            for i, part in enumerate(parts)
        )
        return f"{class_name(kind)}({lines}\n{indent})" if parts else f"{class_name(kind)}()"
    if kind == "residual":
        lines = "".join(
            f"\n{deeper}{'' if name == 'body' else f'{name}='}{_shown(description[name], deeper)},"
            for name in ("body", "projection", "after")
            if name in description
        )
        return f"Residual({lines}\n{indent})"
    said = [
        f"{'' if field.needed else f'{field.name}='}{description[field.key]!r}"
        for field in layer_fields(kind)
        if field.key in description
    ]
    return f"{class_name(kind)}({', '.join(said)})"


_classes.update(sequential=Sequential, residual=Residual, branches=Branches, function=Function)


# --- Functions of layers --------------------------------------------------------------------------


def layer_kinds() -> list[str]:
    """All kinds of layers that files know.

    >>> "conv" in nn.layer_kinds()
    True
    """
    return _core._layer_kinds()


def build_layer(description: Any, dtype: Any = "float32") -> Layer:
    """The layer that a description says.

    Arguments:
        description: what `Layer.describe` gives, or its JSON text.
        dtype: 'float32' or 'float64'.

    >>> nn.build_layer({"layer": "conv", "in": 3, "out": 16, "kernel": 3})
    Conv(3, 16, kernel=3)
    """
    if not isinstance(description, (str, dict)):
        raise TypeError(
            f"build_layer: {type(description).__name__} is no description\n"
            "  fix: {'layer': 'relu'}, what Layer.describe gives"
        )
    text = description if isinstance(description, str) else json.dumps(description)
    return wrapped(_core._build_layer(text, is_double(dtype, "build_layer")))


def require_model(function: str, model: Any) -> Layer:
    """The model, where it is one.

    Arguments:
        function: who asks, for the message.
        model: a layer, or anything else.

    >>> require_model("summary", nn.Relu())
    Relu()
    """
    if not isinstance(model, Layer):
        raise TypeError(
            f"{function}: {type(model).__name__} is no model\n  fix: a layer, nn.Sequential(...)"
        )
    return model


def initialise(model: Layer, key: Union[int, Key]) -> Layer:
    """Draws every parameter that says how it begins, and gives the model back; buffers stay.

    Arguments:
        model: what is changed.
        key: the same one gives the same weights on every machine.

    >>> a, b = (nn.initialise(nn.Linear(2, 2), nn.Key(1)) for _ in range(2))
    >>> bool((a.parameters()["weight"] == b.parameters()["weight"]).all())
    True
    """
    require_model("initialise", model)._layer.initialise(seed_of(key))
    return model


def apply(model: Layer, parameters: Mapping[str, Any], x: Any, pass_: Optional[Pass] = None) -> Tensor:
    """What the model would say with other parameters; it does not change.

    Arguments:
        model: a layer.
        parameters: tensors by name; the others are the model's own.
        x: a batch.
        pass_: as for the call of a layer.

    >>> net = nn.Linear(2, 1)
    >>> nn.apply(net, {"bias": fn.tensor([3.], "float32")}, fn.ones((1, 2), "float32")).item()
    3.0
    """
    own = require_model("apply", model).tree_state()
    if not isinstance(parameters, Mapping):
        raise TypeError(f"apply: {type(parameters).__name__} is no dict\n  fix: {{'weight': array}}")
    for name in parameters:
        if name not in own:
            raise ValueError(f"apply: {unknown('parameter', name, own)}")
    return model.tree_restored([parameters.get(name, own[name]) for name in own])(x, pass_)


def apply_updates(model: Layer, pass_: Pass) -> None:
    """Writes what a pass found into the buffers of the model.

    Arguments:
        model: what the pass was given to, or what that was a copy of.
        pass_: after the call.

    >>> net, training = nn.BatchNorm(1), nn.Pass.training(1)
    >>> _ = net(fn.ones((4, 1), "float32"), training)
    >>> nn.apply_updates(net, training)
    """
    if not isinstance(pass_, Pass):
        raise TypeError(f"apply_updates: {type(pass_).__name__} is no pass\n  fix: nn.Pass")
    require_model("apply_updates", model)._layer.apply_updates(pass_._pass)


def parameter_count(model: Layer) -> int:
    """How many numbers a model trains.

    Arguments:
        model: a layer.

    >>> nn.parameter_count(nn.Linear(2, 3))
    9
    """
    return sum(value.size for value in require_model("parameter_count", model).parameters().values())
