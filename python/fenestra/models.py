"""Ready models, summaries, and models as files."""

from __future__ import annotations

import os
from typing import Any, Mapping, NamedTuple, Optional, Sequence, Union

from . import _core
from .datasets import Preprocessing, names_in, preprocessing_from, preprocessing_text
from .kinds import BatchNorm, Conv, Relu
from .layers import Layer, Sequential, require_model, wrapped
from .passes import is_double, path_text, unknown

_READY = {name: (text, input_shape, output) for name, text, input_shape, output in _core._ready_models()}

__all__ = [
    "LoadedModel",
    "ModelEntry",
    "ModelInfo",
    "Summary",
    "SummaryRow",
    "conv_norm",
    "conv_norm_act",
    "load",
    "load_info",
    "load_model",
    "load_weights",
    "make_model",
    "model_entries",
    "save",
    "save_model",
    "summary",
]

Path = Union[str, "os.PathLike[str]"]


class ModelEntry(NamedTuple):
    """A ready model.

    >>> nn.model_entries()["lenet"].input
    (1, 28, 28)
    """

    text: str  #: one line for people
    input: tuple[int, ...]  #: of one sample that it is made for
    output: str  #: "classes", "mask" or "picture"


def model_entries() -> dict[str, ModelEntry]:
    """The ready models by name.

    >>> sorted(nn.model_entries())[:3]
    ['autoencoder', 'convnext_tiny', 'dilated_1d']
    """
    return {name: ModelEntry(*entry) for name, entry in _READY.items()}


def make_model(
    name: str, *, classes: int = 0, channels: int = 0, width: float = 1.0, dtype: Any = "float32"
) -> Layer:
    """A ready model; its weights are zero until `initialise` draws them or a file gives them.

    Arguments:
        name: see `model_entries`.
        classes: scores that come out; 0: as published.
        channels: of the input; 0: as published.
        width: factor on the number of channels inside.
        dtype: 'float32' or 'float64'.

    >>> nn.parameter_count(nn.make_model("mobilenet_v2"))
    3504872
    """
    if name not in _READY:
        raise ValueError(f"make_model: {unknown('model', name, _READY)}")
    return wrapped(_core._ready_model(name, classes, channels, width, is_double(dtype, name)))


def conv_norm(
    in_: int, out: int, *, kernel: int = 3, stride: int = 1, groups: int = 1, dtype: Any = "float32"
) -> Sequential:
    """Convolution without bias and batch norm, padded to keep the size at stride 1.

    Arguments:
        in_: channels of the input.
        out: channels of the output.
        kernel: extent of the windows, along two axes.
        stride: cells from one window to the next.
        groups: parts of the channels that do not see each other.
        dtype: 'float32' or 'float64'.

    >>> list(nn.conv_norm(1, 4).parameters())
    ['conv.weight', 'norm.weight', 'norm.bias']
    """
    return Sequential(**_conv_norm(in_, out, kernel, stride, groups, dtype))


def conv_norm_act(
    in_: int,
    out: int,
    *,
    kernel: int = 3,
    stride: int = 1,
    groups: int = 1,
    act: Optional[Layer] = None,
    dtype: Any = "float32",
) -> Sequential:
    """The same and an activation.

    Arguments:
        in_: channels of the input.
        out: channels of the output.
        kernel: extent of the windows, along two axes.
        stride: cells from one window to the next.
        groups: parts of the channels that do not see each other.
        act: a rectifier unless given.
        dtype: 'float32' or 'float64'.

    >>> nn.conv_norm_act(1, 4, act=nn.Relu6())
    Sequential(
      conv=Conv(1, 4, kernel=3, padding=1, bias=False),
      norm=BatchNorm(4),
      act=Relu6(),
    )
    """
    parts = _conv_norm(in_, out, kernel, stride, groups, dtype)
    return Sequential(**parts, act=Relu(dtype=dtype) if act is None else act)


def _conv_norm(
    in_: int, out: int, kernel: int, stride: int, groups: int, dtype: Any
) -> dict[str, Layer]:
    conv = Conv(
        in_,
        out,
        kernel=kernel,
        stride=stride,
        padding=(kernel - 1) // 2,
        groups=groups,
        bias=False,
        dtype=dtype,
    )
    return {"conv": conv, "norm": BatchNorm(out, dtype=dtype)}


class SummaryRow(NamedTuple):
    """A layer of a summary.

    >>> nn.summary(nn.Conv(1, 2, kernel=3), (1, 1, 8, 8)).rows[0].output
    (1, 2, 6, 6)
    """

    name: str
    kind: str
    output: tuple[int, ...]
    parameters: int
    multiply_adds: int
    receptive_field: tuple[int, ...]  #: along each spatial axis; empty where it sees everything


class Summary(NamedTuple):
    """What a model is made of; prints as a table.

    >>> nn.summary(nn.Linear(2, 3), (1, 2)).parameters
    9
    """

    input: tuple[int, ...]
    output: tuple[int, ...]
    rows: list[SummaryRow]
    parameters: int
    buffers: int
    multiply_adds: int
    text: str

    def __str__(self) -> str:
        return self.text


def summary(model: Layer, shape: Sequence[int]) -> Summary:
    """The layers of a model with output shapes, parameters, multiply-adds and receptive fields.

    Arguments:
        model: a layer; nothing is computed.
        shape: of the input, (N, C, spatial...).

    >>> nn.summary(nn.lenet(), (1, 1, 28, 28)).parameters
    61706
    """
    found = require_model("summary", model)._layer.summary(shape)
    found["rows"] = [SummaryRow(*row) for row in found["rows"]]
    return Summary(**found)


class ModelInfo(NamedTuple):
    """What a model file says beside the model.

    >>> nn.ModelInfo(name="digits").classes
    []
    """

    name: str = ""
    classes: Sequence[str] = []
    preprocessing: Preprocessing = Preprocessing([], [], [])
    more: Mapping[str, str] = {}


class LoadedModel(NamedTuple):
    """A model from a file, and what the file says about it."""

    model: Layer
    info: ModelInfo


def info_dict(info: ModelInfo) -> dict[str, Any]:
    """What files are told.

    Arguments:
        info: for people and for inference.

    >>> info_dict(nn.ModelInfo("net"))["name"]
    'net'
    """
    if not isinstance(info, ModelInfo) or not isinstance(info.more, Mapping):
        raise TypeError(f"info is {type(info).__name__}\n  fix: nn.ModelInfo(name='...')")
    return {
        "name": str(info.name),
        "classes": names_in("classes", info.classes),
        "preprocessing": preprocessing_text(info.preprocessing),
        "more": {str(key): str(value) for key, value in info.more.items()},
    }


def _info(found: dict[str, Any]) -> ModelInfo:
    preprocessing = preprocessing_from(found["preprocessing"])
    return ModelInfo(found["name"], found["classes"], preprocessing, found["more"])


def save_model(path: Path, model: Layer, info: ModelInfo = ModelInfo()) -> None:
    """Writes a model as one safetensors file, whole or not at all: numbers under their dotted
    names, and what the model is made of.

    Arguments:
        path: the name of the file.
        model: of layers of the library; of others the numbers alone are kept.
        info: classes, preprocessing.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "net.safetensors")
    >>> nn.save_model(path, nn.Linear(2, 3), nn.ModelInfo(classes=["a", "b", "c"]))
    >>> nn.load_model(path)
    LoadedModel(model=Linear(2, 3), info=ModelInfo(name='', classes=['a', 'b', 'c'], preprocessing=Preprocessing(size=[], mean=[], scale=[]), more={}))
    """
    require_model("save_model", model)._layer.save(path_text(path), info_dict(info))


def load_model(path: Path, dtype: Any = "float32") -> LoadedModel:
    """The model that a file describes, with its numbers, and what else the file says.

    Arguments:
        path: what `save_model`, a trainer or the tool wrote.
        dtype: 'float32' or 'float64'.

    >>> nn.load_model("/dev/null")
    Traceback (most recent call last):
    OSError: /dev/null: cannot be read: it is a device, needed a regular file
      fix: the path of a regular file that may be read
    """
    held, found = _core._load_model(path_text(path), is_double(dtype, "load_model"))
    return LoadedModel(wrapped(held), _info(found))


def save(model: Layer, path: Path, **info: Any) -> None:
    """`save_model` with the fields of `ModelInfo` as arguments.

    Arguments:
        model: a layer.
        path: the name of the file.
        info: name, classes, preprocessing, more.

    >>> import os, tempfile
    >>> nn.save(nn.Relu(), os.path.join(tempfile.mkdtemp(), "relu.safetensors"), name="a rectifier")
    """
    for name in info:
        if name not in ModelInfo._fields:
            raise TypeError(f"save: {unknown('argument', name, ModelInfo._fields)}")
    save_model(path, model, ModelInfo(**info))


def load(path: Path, dtype: Any = "float32") -> Layer:
    """The model of `load_model` alone.

    Arguments:
        path: the name of the file.
        dtype: 'float32' or 'float64'.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "net.safetensors")
    >>> nn.save(nn.Linear(2, 3), path)
    >>> nn.load(path, "float64")
    Linear(2, 3)
    """
    return load_model(path, dtype).model


def load_info(path: Path) -> ModelInfo:
    """What a file says about its model, without reading its numbers.

    Arguments:
        path: the name of the file.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "net.safetensors")
    >>> nn.save(nn.Linear(2, 3), path, name="three")
    >>> nn.load_info(path).name
    'three'
    """
    return _info(_core._load_info(path_text(path)))


def load_weights(path: Path, model: Layer) -> ModelInfo:
    """The numbers of a file into a model with the same names and shapes, all or none of them.

    Arguments:
        path: the name of the file.
        model: what is changed.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "net.safetensors")
    >>> nn.save(nn.initialise(nn.Linear(2, 3), 1), path)
    >>> net = nn.Linear(2, 3)
    >>> _ = nn.load_weights(path, net)
    >>> bool((net.parameters()["weight"] != 0).all())
    True
    """
    return _info(require_model("load_weights", model)._layer.load_weights(path_text(path)))
