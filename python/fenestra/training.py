"""The parts of training, for loops of one's own: optimisers, schedules, losses, metrics."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from . import _core
from ._core import Indices, Tensor
from .datasets import names_in
from .passes import dict_of, unknown
from .trees import TreeNode, flatten_like, tree_flatten, tree_names, tree_unflatten

__all__ = [
    "ConfusionMatrix",
    "Loss",
    "Optimiser",
    "Schedule",
    "clip_by_norm",
    "clip_by_value",
    "global_norm",
    "loss_names",
    "optimiser_names",
    "predicted_classes",
    "top_k_correct",
]


def option_text(what: str, text: str, options: Mapping[str, Any], names: Sequence[str]) -> str:
    """A name and options as one text, as the library reads it.

    Arguments:
        what: "Optimiser", for messages.
        text: the name, and perhaps options.
        options: others, by name.
        names: those that there are.

    >>> option_text("Loss", "huber", {"delta": 2}, ["huber"])
    'huber delta=2'
    """
    if not isinstance(text, str):
        raise TypeError(f"{what}: {type(text).__name__} is no text\n  fix: {what}('{names[0]}')")
    name = text.split()[0] if text.split() else ""
    if name not in names:
        raise ValueError(f"{what}: {unknown(what.lower(), name, names)}")
    said = [f"{key}={int(value) if isinstance(value, bool) else value!r}" for key, value in options.items()]
    return " ".join([text, *said])


def optimiser_names() -> list[str]:
    """What `Optimiser` knows.

    >>> nn.optimiser_names()
    ['sgd', 'adam', 'adamw', 'rmsprop', 'lion', 'lamb']
    """
    return _core._optimiser_names()


def loss_names() -> list[str]:
    """What `Loss` knows.

    >>> "huber" in nn.loss_names()
    True
    """
    return _core._loss_names()


def _is_double(leaves: Sequence[Any]) -> bool:
    return bool(leaves) and getattr(leaves[0], "dtype", np.dtype(np.float64)) == np.float64


class Optimiser:
    """An optimiser by name, with its state, for parameters in any tree: a model, dicts, lists.

    Arguments:
        text: a name, and perhaps options: "sgd rate=0.1 momentum=0.9".
        options: rate, momentum, nesterov, beta1, beta2, epsilon, smoothing, centred, weight_decay.

    >>> optimiser = nn.Optimiser("sgd", rate=0.5)
    >>> parameters = {"w": np.array([1., 2.])}
    >>> gradients = fn.grad(lambda p: fn.sum(p["w"] ** 2))(parameters)
    >>> optimiser.update(parameters, gradients)
    {'w': Tensor([0., 0.], dtype=float64)}
    """

    def __init__(self, text: str = "adamw", **options: Any) -> None:
        self._optimiser = _core._Optimiser(option_text("Optimiser", text, options, optimiser_names()))

    @property
    def text(self) -> str:
        """The name and all options."""
        return self._optimiser.text

    @property
    def rate(self) -> float:
        """How far a step goes; schedules change it."""
        return self._optimiser.rate

    @rate.setter
    def rate(self, rate: float) -> None:
        self._optimiser.set_rate(rate)

    def update(self, parameters: Any, gradients: Any) -> Any:
        """The parameters after one step; the state goes on with them.

        Arguments:
            parameters: a tree of arrays, in one order from step to step.
            gradients: a tree of the same structure.
        """
        leaves = tree_flatten(parameters)
        bars = flatten_like(parameters, gradients, "update: gradients")
        moved = self._optimiser.update(leaves, bars, _is_double(leaves))
        return tree_unflatten(parameters, iter(moved))

    def state(self, parameters: Any) -> dict[str, Any]:
        """What it remembers, as arrays by name.

        Arguments:
            parameters: the tree that it moves, for the names.
        """
        return self._optimiser.state(_names(parameters))

    def set_state(self, parameters: Any, state: Mapping[str, Any]) -> None:
        """Goes on from there.

        Arguments:
            parameters: the tree that it moves.
            state: what `state` gave.
        """
        given = dict_of("set_state", state, "what state(parameters) gave")
        leaves = tree_flatten(parameters)
        shapes = [_core.asarray(leaf).shape for leaf in leaves]
        self._optimiser.set_state(_names(parameters), shapes, given, _is_double(leaves))

    def __repr__(self) -> str:
        return f"Optimiser({self.text!r})"


def _names(parameters: Any) -> list[str]:
    if isinstance(parameters, TreeNode):
        return list(parameters.tree_leaves())
    return tree_names(parameters, "")


class Schedule:
    """A factor of the learning rate for each step, counted from 0.

    Arguments:
        text: "constant", "step every=10epochs factor=0.1", "cosine warmup=100", "linear",
            "one-cycle".

    >>> schedule = nn.Schedule("cosine warmup=1epochs").of_run(steps=100, steps_per_epoch=10)
    >>> schedule.text, schedule(9) < schedule(10), schedule(100)
    ('cosine warmup=10 steps=100 least=0', True, 0.0)
    """

    def __init__(self, text: str = "constant") -> None:
        self._schedule = _core._Schedule(text)

    @property
    def text(self) -> str:
        """What it was made of."""
        return self._schedule.text

    @property
    def is_resolved(self) -> bool:
        """Whether every span is known in steps."""
        return self._schedule.is_resolved

    def of_run(self, steps: int, steps_per_epoch: int) -> Schedule:
        """The same with all spans in steps.

        Arguments:
            steps: of the whole run.
            steps_per_epoch: batches of the loader.
        """
        result = Schedule.__new__(Schedule)
        result._schedule = self._schedule.of_run(steps, steps_per_epoch)
        return result

    def __call__(self, step: int) -> float:
        return self._schedule.at(step)

    def __repr__(self) -> str:
        return f"Schedule({self.text!r})"


def split_target(target: Any) -> tuple[Any, Any]:
    """(labels, values), one of them None.

    Arguments:
        target: integers, or floats.

    >>> split_target([1, 2])
    ([1, 2], None)
    """
    if target is None or isinstance(target, Tensor):
        return None, target
    if isinstance(target, Indices):
        return target, None
    try:
        is_labels = np.asarray(target).dtype.kind in "iu"
    except MemoryError:
        raise MemoryError("loss: not enough memory for the target\n  fix: an array") from None
    return (target, None) if is_labels else (None, target)


class Loss:
    """A loss by name, a mean over the batch; every derivative, `vmap` and `compile` work on it.

    Arguments:
        text: "cross-entropy smoothing=0.1", "bce", "mse", "l1", "huber delta=1", "dice",
            "focal gamma=2".
        options: the same by name.

    >>> nn.Loss("huber", delta=1)(fn.tensor([[0., 3.]]), fn.tensor([[0., 0.]])).item()
    1.25
    >>> nn.Loss("cross-entropy")(fn.zeros((1, 2)), [0])
    Tensor(0.69314718, dtype=float64)
    """

    def __init__(self, text: str = "cross-entropy", **options: Any) -> None:
        self.text: str = _core._loss_text(option_text("Loss", text, options, loss_names()))

    def __call__(self, x: Any, target: Any) -> Tensor:
        """The loss of scores.

        Arguments:
            x: (samples, classes, ...), or of the shape of the targets.
            target: integers, labels; or floats.
        """
        return _core._loss(self.text, x, *split_target(target))

    def __repr__(self) -> str:
        return f"Loss({self.text!r})"


def _clipped(gradients: Any, limit: float, by: str) -> tuple[Any, float]:
    leaves = tree_flatten(gradients)
    found, norm = _core._clipped(leaves, limit, by, _is_double(leaves))
    return tree_unflatten(gradients, iter(found)), norm


def clip_by_norm(gradients: Any, limit: float) -> tuple[Any, float]:
    """All gradients scaled together where their norm is greater than a limit, and the norm they had.

    Arguments:
        gradients: a tree.
        limit: greater than 0.

    >>> nn.clip_by_norm({"w": np.array([3., 4.])}, 1.0)
    ({'w': Tensor([0.6, 0.8], dtype=float64)}, 5.0)
    """
    return _clipped(gradients, limit, "norm")


def clip_by_value(gradients: Any, limit: float) -> Any:
    """Every element of the gradients into [-limit, limit].

    Arguments:
        gradients: a tree.
        limit: greater than 0.

    >>> nn.clip_by_value([np.array([3., -0.5])], 1.0)
    [Tensor([ 1. , -0.5], dtype=float64)]
    """
    return _clipped(gradients, limit, "value")[0]


def global_norm(gradients: Any) -> float:
    """The root of the sum of the squares of all elements.

    Arguments:
        gradients: a tree.

    >>> nn.global_norm([np.array([3.]), np.array([4.])])
    5.0
    """
    return _clipped(gradients, 1.0, "nothing")[1]


# --- Metrics --------------------------------------------------------------------------------------


def predicted_classes(scores: Any) -> npt.NDArray[np.int64]:
    """The class with the largest score, for each sample or cell.

    Arguments:
        scores: (samples, classes, ...).

    >>> nn.predicted_classes(fn.tensor([[0.1, 0.9], [0.7, 0.3]]))
    array([1, 0])
    """
    return _core._predicted_classes(scores)


def top_k_correct(scores: Any, labels: Any, k: int) -> int:
    """How many labels are among the k largest scores.

    Arguments:
        scores: (samples, classes, ...).
        labels: (samples, ...).
        k: from 1.

    >>> nn.top_k_correct(fn.tensor([[0.1, 0.2, 0.7]]), [1], 2)
    1
    """
    return _core._top_k_correct(scores, labels, k)


class ConfusionMatrix:
    """How often each class was taken for each.

    Arguments:
        classes: how many there are.

    >>> matrix = nn.ConfusionMatrix(2)
    >>> matrix.add(fn.tensor([[0.1, 0.9], [0.7, 0.3], [0.6, 0.4]]), [1, 0, 1])
    >>> matrix.counts, matrix.accuracy
    (array([[1, 0],
           [1, 1]]), 0.6666666666666666)
    """

    def __init__(self, classes: int) -> None:
        self._matrix = _core._ConfusionMatrix(classes)

    @staticmethod
    def _of(held: _core._ConfusionMatrix) -> ConfusionMatrix:
        result = ConfusionMatrix.__new__(ConfusionMatrix)
        result._matrix = held
        return result

    def add(self, scores: Any, labels: Any) -> None:
        """Counts a batch.

        Arguments:
            scores: (samples, classes, ...).
            labels: (samples, ...).
        """
        self._matrix.add(scores, labels)

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """(label, predicted)"""
        return self._matrix.counts()

    @property
    def total(self) -> int:
        """How many were counted."""
        return self._matrix.total()

    @property
    def correct(self) -> int:
        """How many of them were right."""
        return self._matrix.correct()

    @property
    def accuracy(self) -> float:
        """From 0 to 1."""
        return self._matrix.accuracy()

    @property
    def iou(self) -> list[float]:
        """Of each class, what is both of the label and predicted over what is either."""
        return self._matrix.iou()

    @property
    def mean_iou(self) -> float:
        """The mean over the classes that occur."""
        return self._matrix.mean_iou()

    def text(self, classes: Sequence[str] = ()) -> str:
        """A table.

        Arguments:
            classes: their names.
        """
        return self._matrix.text(names_in("classes", classes))

    def __str__(self) -> str:
        return self.text()
