"""ONNX: models of other tools, run, differentiated, trained on and written back.

>>> import os, tempfile
>>> path = os.path.join(tempfile.mkdtemp(), "net.onnx")
>>> fn.onnx.export_model(path, nn.initialise(nn.lenet(), 1), (1, 28, 28))
>>> net = fn.onnx.load(path)
>>> net(fn.zeros((2, 1, 28, 28), "float32")).shape
(2, 10)
"""

from __future__ import annotations

import fnmatch
from typing import Any, Literal, Mapping, NamedTuple, Optional, Sequence, Union

import numpy as np

from . import _core
from ._core import Tensor
from .layers import Layer, registered, require_model, wrapped
from .models import ModelInfo, Path, info_dict
from .passes import Key, Pass, dict_of, is_double, path_text, seed_of, unknown

__all__ = ["Network", "ValueInfo", "export_model", "load", "problems"]


class ValueInfo(NamedTuple):
    """An input or output of a model, as its file says.

    >>> fn.onnx.ValueInfo("x", "float32", ("N", 3, None, None)).shape[1]
    3
    """

    name: str
    dtype: str
    #: A number, a name or, where nothing is said, None for each axis; None where the rank is open.
    shape: Optional[tuple[Union[int, str, None], ...]]


class Network(Layer):
    """A model of an ONNX file. It is a layer: a tree of its weights in `grad`, `vmap` and `compile`,
    and what `nn.Trainer` takes. Weights have the names of the file; statistics of batch norm and
    weights that are frozen are buffers.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "net.onnx")
    >>> fn.onnx.export_model(path, nn.initialise(nn.Linear(2, 3), 1), (2,))
    >>> net = fn.onnx.load(path)
    >>> gradients = fn.grad(lambda net, x: fn.mean(net(x) ** 2))(net, fn.ones((4, 2), "float32"))
    >>> {name: bar.shape for name, bar in gradients.parameters().items()}
    {'weight': (3, 2), 'bias': (3,)}
    """

    def __init__(self) -> None:
        raise TypeError("Network: made of a file\n  fix: onnx.load('net.onnx')")

    def __call__(self, x: Any, pass_: Optional[Pass] = None) -> Tensor:
        """The first output for the only input.

        Arguments:
            x: a tensor or an array.
            pass_: `nn.Pass.training(key)`, or nothing for inference.
        """
        inputs = self.inputs
        if len(inputs) != 1:
            names = ", ".join(f"{info.name!r}: ..." for info in inputs)
            raise ValueError(f"Network: {self.file} has {len(inputs)} inputs\n  fix: run({{{names}}})")
        return super().__call__(x, pass_)

    def run(self, inputs: Mapping[str, Any], pass_: Optional[Pass] = None) -> dict[str, Any]:
        """All outputs by name: tensors, or arrays where a model gives integers or truth values.

        Arguments:
            inputs: tensors and arrays by the names of inputs.
            pass_: `nn.Pass.training(key)`, or nothing for inference.
        """
        if not isinstance(inputs, Mapping):
            raise TypeError(f"run: {type(inputs).__name__} is no dict\n  fix: {{'x': array}}")
        if pass_ is not None and not isinstance(pass_, Pass):
            raise TypeError(f"run: pass_ is {type(pass_).__name__}\n  fix: nn.Pass.training(key)")
        known = {info.name: info for info in self.inputs}
        given = {}
        for name, value in inputs.items():
            is_truth = name in known and known[name].dtype == "bool"
            given[str(name)] = np.asarray(value).astype(np.int64) if is_truth else value
        held = _core._Pass(None) if pass_ is None else pass_._pass
        return _core._onnx_run(self._layer, given, held)

    @property
    def file(self) -> str:
        """Where it was read from."""
        return str(_core._onnx_about(self._layer)["file"])

    @property
    def inputs(self) -> list[ValueInfo]:
        """What must be given."""
        return [ValueInfo(*info) for info in _core._onnx_about(self._layer)["inputs"]]

    @property
    def outputs(self) -> list[ValueInfo]:
        """What comes out."""
        return [ValueInfo(*info) for info in _core._onnx_about(self._layer)["outputs"]]

    @property
    def opset(self) -> int:
        """The version of the standard's operators that the file is of."""
        return int(_core._onnx_about(self._layer)["opset"])

    @property
    def metadata(self) -> dict[str, str]:
        """What the file says beside the model."""
        return dict(_core._onnx_about(self._layer)["metadata"])

    @property
    def scores_value(self) -> str:
        """The value before a closing softmax, which losses bring themselves; `load` takes it among
        `outputs`. The name of the output where there is none."""
        return _core._onnx_scores_value(self._layer)

    def set_trained(self, pattern: str, trained: bool) -> list[str]:
        """Freezes weights, or thaws them, and says which; frozen ones are not differentiated by.

        Arguments:
            pattern: a name, or several as a shell writes them: 'features.*'.
            trained: False freezes.
        """
        if not isinstance(pattern, str):
            raise TypeError(f"set_trained: {type(pattern).__name__} is no text\n  fix: 'features.*'")
        statistics = set(_core._onnx_statistics(self._layer))
        names = [name for name, _, _ in self._layer.slots() if name not in statistics]
        # A name may have brackets of its own.
        found = [n for n in names if n == pattern] or fnmatch.filter(names, pattern)
        if not found:
            raise ValueError(f"set_trained: {unknown('weight', pattern, names)}")
        self._layer = _core._onnx_with_trained(self._layer, found, bool(trained))
        return found

    def check(self, shapes: Mapping[str, Sequence[int]] = {}) -> list[str]:
        """What would go wrong with inputs of these shapes, a line each; nothing is computed.

        Arguments:
            shapes: by the names of inputs; the others have the extents of the file.
        """
        return _core._onnx_check(self._layer, dict_of("check", shapes, "{'x': (1, 3, 8, 8)}"))

    def cut_off(self) -> list[str]:
        """Weights from which no derivative reaches an output, and the node that stops it."""
        return _core._onnx_cut_off(self._layer)

    def save(self, path: Path, metadata: Mapping[str, str] = {}) -> None:
        """Writes the file that was read with the weights as they are now, whole or not at all: all
        else, and weights that did not change, stay to the byte.

        Arguments:
            path: the name of the file.
            metadata: added, or instead of what the file says under the same key.
        """
        _core._onnx_save(self._layer, path_text(path), dict_of("save", metadata, "{'author': 'me'}"))

    def __reduce__(self) -> Any:
        about = _core._onnx_about(self._layer)
        frozen = [name for name, trained, _ in self._layer.slots() if not trained]
        state = [np.asarray(value) for value in self.tree_state().values()]
        choices = (self._layer.double, about["batch_norm"], about["chosen"], about["budget"])
        return _unpickled, (_core._onnx_bytes(self._layer), about["file"], choices, frozen, state)

    def __repr__(self) -> str:
        said = [f"{info.name}{'' if info.shape is None else _shape_text(info.shape)}"
                for info in (*self.inputs, *self.outputs)]  # fmt: skip
        count = len(self.inputs)
        return f"<Network {self.file}: {', '.join(said[:count])} -> {', '.join(said[count:])}>"


registered("onnx", Network)


def _shape_text(shape: Sequence[Union[int, str, None]]) -> str:
    return f"({', '.join('?' if extent is None else str(extent) for extent in shape)})"


def _network(held: _core._Layer) -> Network:
    result = wrapped(held)
    assert isinstance(result, Network)
    return result


def _unpickled(
    file: bytes, name: str, choices: tuple[bool, bool, list[str], int], frozen: list[str], state: list[Any]
) -> Network:
    held = _core._onnx_from_bytes(file, name, _core._OnnxChoices(*choices))
    # In the order of the file, which does not depend on what is trained.
    return _network(_core._onnx_with_trained(held, frozen, False).with_values(state, True))


def load(
    path: Path,
    *,
    dtype: Any = "float32",
    outputs: Sequence[str] = (),
    batch_norm: Literal["frozen", "batch"] = "frozen",
    classes: Optional[int] = None,
    cut: Optional[str] = None,
    sample: Optional[Sequence[int]] = None,
    seed: Union[int, Key] = 0,
    budget: int = 4 << 30,
) -> Network:
    """The model of an ONNX file. All that keeps it from running is said at once, a line each.

    Arguments:
        path: the name of the file.
        dtype: 'float32' or 'float64', what is computed in; other widths of the file are converted.
        outputs: values to give instead of the model's outputs.
        batch_norm: what it does in training passes: 'frozen', as in inference, or 'batch'.
        classes: replaces the last layer with weights by one for so many classes.
        cut: with classes: the value after which a new head begins.
        sample: with cut: the shape of one sample, (channels, spatial...).
        seed: of the new weights.
        budget: bytes that one result of an operator may have.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "net.onnx")
    >>> fn.onnx.export_model(path, nn.lenet(), (1, 28, 28))
    >>> fn.onnx.load(path, classes=3).outputs
    [ValueInfo(name='output', dtype='float32', shape=('N', 3))]
    """
    if batch_norm not in ("frozen", "batch"):
        raise ValueError(f"load: batch_norm = {batch_norm!r}\n  fix: 'frozen' or 'batch'")
    names = []
    # A text would give its letters, a view of memory nothing that can be looked at.
    for name in [None] if isinstance(outputs, (str, memoryview)) else outputs:
        if not isinstance(name, str):
            raise TypeError("load: outputs are names\n  fix: outputs=['scores']")
        names.append(name)
    if classes is not None and (isinstance(classes, bool) or not isinstance(classes, int)):
        raise TypeError(f"load: classes is {type(classes).__name__}, needed an int\n  fix: classes=10")
    if cut is not None and (classes is None or sample is None):
        raise ValueError("load: cut without classes or sample\n  fix: all of cut, classes and sample")
    if isinstance(budget, bool) or not isinstance(budget, int):
        raise TypeError(f"load: budget is {type(budget).__name__}, needed an int\n  fix: budget=4 << 30")
    if not 0 <= budget < 2**64:
        raise ValueError(f"load: budget = {budget:#x}\n  fix: from 0 to 2^64 - 1")
    choices = _core._OnnxChoices(is_double(dtype, "load"), batch_norm == "batch", names, budget)
    return _network(_core._onnx_load(path_text(path), choices, classes, cut, sample, seed_of(seed)))


def problems(path: Path) -> list[str]:
    """What keeps the model of a file from running, whatever its inputs are, a line each.

    Arguments:
        path: the name of the file.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "net.onnx")
    >>> fn.onnx.export_model(path, nn.lenet(), (1, 28, 28))
    >>> fn.onnx.problems(path)
    []
    """
    return _core._onnx_problems(path_text(path))


def export_model(
    path: Path, model: Layer, sample: Sequence[int], info: ModelInfo = ModelInfo()
) -> None:
    """Writes a network of the library's layers as ONNX, opset 17, whole or not at all.

    Arguments:
        path: the name of the file.
        model: layers of the library; of a `Network` the file is written by its `save`.
        sample: the shape of one sample, (channels, spatial...); the batch stays open.
        info: classes and preparation, which become metadata.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "net.onnx")
    >>> fn.onnx.export_model(path, nn.Linear(2, 3), (2,), nn.ModelInfo(classes=["a", "b", "c"]))
    >>> fn.onnx.load(path).inputs
    [ValueInfo(name='input', dtype='float32', shape=('N', 2))]
    """
    if isinstance(model, Network):
        raise TypeError("export_model: the network is of an ONNX file already\n  fix: net.save(path)")
    held = require_model("export_model", model)._layer
    _core._onnx_export(held, path_text(path), sample, info_dict(info))
