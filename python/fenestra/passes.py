"""Keys of random numbers, passes of models, and words for messages about networks."""

from __future__ import annotations

import difflib
import operator
import os
from typing import Any, Callable, Iterable, Mapping, Optional, Union

import numpy as np

from . import _core
from ._core import Tensor

__all__ = ["Key", "Pass"]

DTYPES = ("float32", "float64")


def is_double(dtype: Any, function: str) -> bool:
    """Whether a dtype is float64; what is neither that nor float32 is refused.

    Arguments:
        dtype: what NumPy takes for one.
        function: who asks, for the message.

    >>> is_double("float64", "Conv")
    True
    """
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = repr(dtype)
    if name not in DTYPES:
        raise TypeError(f"{function}: dtype = {name}\n  fix: 'float32' or 'float64'")
    return name == "float64"


def unknown(what: str, name: str, names: Iterable[str]) -> str:
    """A message about a name that nothing has, with the nearest one that something has.

    Arguments:
        what: "model", for instance.
        name: the name.
        names: those that there are.

    >>> print(unknown("model", "lenett", ["lenet", "unet"]))
    there is no model 'lenett'
      fix: 'lenet'? There are lenet, unet
    """
    listed = list(names)
    near = difflib.get_close_matches(str(name), listed, 1)
    guess = f"{near[0]!r}? " if near else ""
    return f"there is no {what} {name!r}\n  fix: {guess}There are {', '.join(listed) or 'none'}"


def dict_of(function: str, values: Mapping[str, Any], example: str) -> dict[str, Any]:
    """A copy of a mapping; whatever else could be iterated over is refused at once.

    Arguments:
        function: who asks, for the message.
        values: by their names.
        example: what would do.

    >>> dict_of("update", {"weight": 1.0}, "{'weight': array}")
    {'weight': 1.0}
    """
    if not isinstance(values, Mapping):
        raise TypeError(f"{function}: {type(values).__name__} is no dict\n  fix: {example}")
    return dict(values)


class Key:
    """Random numbers by position: the same key gives the same numbers on every machine.

    >>> nn.Key(1).fold("weights") == nn.Key(1).fold("weights"), nn.Key(1) == nn.Key(1).fold(0)
    (True, False)
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed_of(seed)

    def fold(self, part: Union[int, str]) -> Key:
        """A key of its own for one use: a step, an epoch, a layer.

        Arguments:
            part: a number or a name.
        """
        if not isinstance(part, str):
            part = seed_of(part)
        return Key(_core._fold_key(self.seed, part))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and self.seed == other.seed

    def __hash__(self) -> int:
        return hash(self.seed)

    def __repr__(self) -> str:
        return f"Key({self.seed})"


def seed_of(key: Union[int, Key]) -> int:
    """The number of a key or a seed.

    Arguments:
        key: a Key, or a whole number from 0 to 2^64 - 1.

    >>> seed_of(nn.Key(3)), seed_of(4)
    (3, 4)
    """
    if isinstance(key, Key):
        return key.seed
    if isinstance(key, bool):
        raise TypeError(f"key: got {key}\n  fix: nn.Key(seed), or a whole number")
    try:
        seed = operator.index(key)
    except TypeError:
        raise TypeError(
            f"key: got {type(key).__name__}\n  fix: nn.Key(seed), or a whole number"
        ) from None
    if not 0 <= seed < 2**64:
        raise ValueError(f"key: seed = {seed}\n  fix: from 0 to 2^64 - 1")
    return seed


class Pass:
    """One run of a model: training or inference, the masks, and what buffers become.

    Nothing in the model changes before `apply_updates`. A pass belongs to one call of a model.

    >>> norm = nn.BatchNorm(1)
    >>> training = nn.Pass.training(nn.Key(0))
    >>> norm(fn.tensor([[1.], [3.]], "float32"), training).tolist()
    [[-0.9999949932098389], [0.9999949932098389]]
    >>> nn.apply_updates(norm, training)
    >>> norm.buffers()["running_mean"].tolist()
    [0.20000000298023224]
    """

    def __init__(self, key: Optional[Union[int, Key]] = None) -> None:
        self._pass = _core._Pass(None if key is None else seed_of(key))

    @staticmethod
    def inference() -> Pass:
        """Running statistics, and no masks."""
        return Pass()

    @staticmethod
    def training(key: Union[int, Key]) -> Pass:
        """Statistics of the batch, and masks.

        Arguments:
            key: what masks are drawn from; one for each step.
        """
        return Pass(seed_of(key))

    @staticmethod
    def _of(held: _core._Pass) -> Pass:
        result = Pass.__new__(Pass)
        result._pass = held
        return result

    @property
    def is_training(self) -> bool:
        """Whether the model is trained."""
        return self._pass.is_training

    def observe(self, observer: Callable[[str, str, Tensor, Tensor], Any]) -> None:
        """Watches every layer that is called with this pass, containers included.

        Arguments:
            observer: called with the dotted name, the kind, the input and the output.
        """
        self._pass.observe(observer)

    def __repr__(self) -> str:
        return f"<Pass of {'training' if self.is_training else 'inference'}>"


def path_text(path: Union[str, os.PathLike[str]]) -> str:
    """A path as text; anything else is refused.

    Arguments:
        path: the name of a file.

    >>> path_text("a.safetensors")
    'a.safetensors'
    """
    return os.fsdecode(os.fspath(path))
