"""The trainer: a model and all that trains it in one object."""

from __future__ import annotations

import os
import sys
from typing import Any, Callable, NamedTuple, Optional, Sequence, Union

from . import _core
from ._core import Tensor
from .datasets import Batch, Loader
from .layers import Layer, require_model, wrapped
from .models import ModelInfo, info_dict
from .passes import DTYPES, Key, path_text, seed_of
from .training import (
    ConfusionMatrix,
    Loss,
    Optimiser,
    Schedule,
    option_text,
    optimiser_names,
    split_target,
)

__all__ = [
    "Communicator",
    "EpochResult",
    "Evaluation",
    "FitResult",
    "PartTime",
    "StepMemory",
    "StepProfile",
    "StepResult",
    "Trainer",
    "mpi_communicator",
]


class Communicator:
    """Processes that train one model together; see `mpi_communicator`."""

    def __init__(self, held: _core._Communicator) -> None:
        self._held = held

    @property
    def rank(self) -> int:
        """Of this process, from 0."""
        return self._held.rank

    @property
    def size(self) -> int:
        """How many there are."""
        return self._held.size

    def __repr__(self) -> str:
        return f"<Communicator, rank {self.rank} of {self.size}>"


def mpi_communicator() -> Communicator:
    """All processes that mpirun, or another launcher, started together with this one.

    Needs the plugin `fenestra_mpi.so`; FENESTRA_MPI says where it is. MPI ends with the last object
    that holds this one: keep it for as long as the program runs. An exception that nobody catches
    ends the process at once, without MPI's consent, so that the launcher ends the others.

    >>> nn.mpi_communicator()  # doctest: +SKIP
    <Communicator, rank 0 of 4>
    """
    communicator = Communicator(_core._mpi_communicator())
    if communicator.size > 1 and sys.excepthook is not _end_all:
        sys.excepthook = _end_all
    return communicator


def _end_all(kind: Any, value: Any, trace: Any) -> None:
    sys.__excepthook__(kind, value, trace)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


class StepResult(NamedTuple):
    """A step of a trainer."""

    step: int  #: its number, from 0
    loss: float  #: before the step
    samples: int
    labels: int  #: how many were compared
    correct: int  #: of the labels, before the step
    rate: float  #: with which the optimiser moved
    gradient_norm: float  #: before clipping; 0 unless it is clipped by norm
    seconds: float
    traced: bool  #: a program was made for it


class PartTime(NamedTuple):
    """Seconds of a layer in one step."""

    name: str  #: as in the summary; "loss"; its kind where a layer has no name
    forward: float
    backward: Optional[float]  #: None of an eager run, whose backward pass is known as a whole


class StepMemory(NamedTuple):
    """Bytes that a step takes. What an eager one takes of its tape is not counted."""

    parameters: int
    buffers: int
    gradients: int
    optimiser: int  #: what it remembers
    average: int  #: of weights
    batch: int
    activations: Optional[int]  #: what the forward pass leaves for the backward pass
    arena: Optional[int]  #: what a program runs in, these activations among it


class StepProfile(NamedTuple):
    """Where time and memory of a step go."""

    samples: int  #: that were measured; 0: nothing was
    parts: list[PartTime]  #: in the order in which they first run
    forward: float
    backward: float
    memory: StepMemory


class Evaluation(NamedTuple):
    """What a model does on held-out data."""

    loss: float  #: mean over the samples
    samples: int
    confusion: Optional[ConfusionMatrix]  #: where there are labels
    per_cell: bool  #: labels are of cells: segmentation
    seconds: float
    score: float  #: greater is better: accuracy, mean IoU of a segmentation, else -loss


class EpochResult(NamedTuple):
    """An epoch of a trainer."""

    epoch: int  #: its number, from 0
    loss: float  #: mean over the samples, each before its step
    samples: int
    labels: int
    correct: int
    validation: Optional[Evaluation]
    score: float  #: of the validation; -loss without one
    is_best: bool  #: no epoch before had as good a score
    seconds: float


class FitResult(NamedTuple):
    """How a fit ended."""

    end: str  #: "finished", "stopped", "patience" or "diverged"
    epochs: int  #: done in all, by earlier runs too
    best_score: float
    validation: Optional[Evaluation]  #: of the last epoch


def _evaluation(found: Optional[dict[str, Any]]) -> Optional[Evaluation]:
    if found is None:
        return None
    if found["confusion"] is not None:
        found["confusion"] = ConfusionMatrix._of(found["confusion"])
    return Evaluation(**found)


def _epoch(found: dict[str, Any]) -> EpochResult:
    found["validation"] = _evaluation(found["validation"])
    return EpochResult(**found)


def _batch(function: str, batch: Any) -> Batch:
    if isinstance(batch, Batch):
        return batch
    if not isinstance(batch, (tuple, list)) or len(batch) != 2:
        raise TypeError(
            f"{function}: {type(batch).__name__} is no batch\n"
            "  fix: nn.Batch(inputs, labels), or (inputs, labels)"
        )
    return Batch(batch[0], *split_target(batch[1]))


class Trainer:
    """A model and all that trains it: parameters, buffers, optimiser, schedule, cursor, programs.

    The trainer has a copy of the model. It runs compiled, one program for each shape of a batch, or
    eagerly, with the same bits. A checkpoint is one file, which C++ and the tool read and write too;
    a run that is killed at any moment and resumed ends with the bits of one that was not.

    Arguments:
        model: a layer.
        loss: see `Loss`, or a function of scores and labels or targets.
        optimiser: see `Optimiser`.
        schedule: see `Schedule`; `fit` knows how long a run is.
        clip_norm: of all gradients together; 0: not clipped.
        clip_value: of every element of a gradient; 0: not clipped.
        average: decay of the average of weights; 0: none is kept.
        seed: of the masks.
        compiled: False runs eagerly.
        leaf: samples of a leaf, which has its own gradient and statistics; leaves are added so that the
            bits do not depend on how many processes there are. 0: the batch is one piece.
        tile: of the scores, along each spatial axis, e.g. (512, 512): a leaf is then one tile of its
            pictures, and memory is what a tile takes. The loss must be a mean over cells; evaluation
            goes by tiles, too. (): pictures are not cut.
        communicator: the processes that train together; more than one needs a leaf or a tile. All of
            them make the same calls.

    >>> net = nn.initialise(nn.Sequential(nn.Flatten(), nn.Linear(64, 10)), 1)
    >>> trainer = nn.Trainer(net, optimiser="adamw rate=0.05", schedule="one-cycle")
    >>> training = nn.Loader(nn.open_dataset("digits"), batch=64, seed=1)
    >>> held_out = nn.Loader(nn.open_dataset("digits", "test"), batch=179, shuffle=False)
    >>> result = trainer.fit(training, 2, validation=held_out)
    >>> result.end, result.validation.score > 0.85, trainer.steps
    ('finished', True, 52)
    """

    def __init__(
        self,
        model: Layer,
        *,
        loss: Union[str, Loss, Callable[[Any, Any], Any]] = "cross-entropy",
        optimiser: Union[str, Optimiser] = "adamw",
        schedule: Union[str, Schedule] = "constant",
        clip_norm: float = 0.0,
        clip_value: float = 0.0,
        average: float = 0.0,
        seed: Union[int, Key] = 0,
        compiled: bool = True,
        leaf: int = 0,
        tile: Sequence[int] = (),
        communicator: Optional[Communicator] = None,
    ) -> None:
        own = None if isinstance(loss, (str, Loss)) else loss
        if own is not None and not callable(own):
            raise TypeError(
                f"Trainer: loss is {type(loss).__name__}\n  fix: 'cross-entropy', or a function"
            )
        text = optimiser.text if isinstance(optimiser, Optimiser) else optimiser
        self._trainer = _core._Trainer(
            require_model("Trainer", model)._layer,
            own,
            "cross-entropy" if own is not None else Loss(loss).text if isinstance(loss, str) else loss.text,  # type: ignore[union-attr]
            option_text("Optimiser", text, {}, optimiser_names()),
            schedule.text if isinstance(schedule, Schedule) else schedule,
            clip_norm,
            clip_value,
            average,
            seed_of(seed),
            compiled,
            leaf,
            tile,
            None if communicator is None else communicator._held,
        )

    def step(self, batch: Batch) -> StepResult:
        """One step of the optimiser.

        Arguments:
            batch: what a loader gives, or (inputs, labels or targets).
        """
        batch = _batch("step", batch)
        return StepResult(**self._trainer.step(batch.inputs, batch.labels, batch.targets))

    def profile(self, batch: Batch) -> StepProfile:
        """Where time and memory of a step on such a batch go, or of a step of its first leaf.

        The step is run a few times, and nothing is trained. Of tiles only memory is known.

        Arguments:
            batch: what a loader gives, or (inputs, labels or targets).

        >>> net = nn.initialise(nn.Sequential(nn.Flatten(), nn.Linear(64, 10)), 1)
        >>> batch = next(iter(nn.Loader(nn.open_dataset("digits"), batch=64, seed=1)))
        >>> profile = nn.Trainer(net).profile(batch)
        >>> [part.name for part in profile.parts], profile.memory.parameters
        (['1', 'loss'], 2600)
        """
        batch = _batch("profile", batch)
        found = self._trainer.profile(batch.inputs, batch.labels, batch.targets)
        found["parts"] = [PartTime(*part) for part in found["parts"]]
        found["memory"] = StepMemory(**found["memory"])
        return StepProfile(**found)

    def predict(self, x: Any) -> Tensor:
        """What the model says in inference, with averaged weights where an average is kept.

        Arguments:
            x: a batch.
        """
        return self._trainer.predict(x)

    def evaluate(self, loader: Loader) -> Evaluation:
        """Of one epoch of a loader, in inference.

        Arguments:
            loader: from its start.
        """
        found = _evaluation(self._trainer.evaluate(_loader("evaluate", loader)))
        assert found is not None
        return found

    def fit(
        self,
        loader: Loader,
        epochs: int,
        *,
        validation: Optional[Loader] = None,
        patience: int = 0,
        checkpoint: Union[str, os.PathLike[str], None] = None,
        checkpoint_every: int = 0,
        on_step: Optional[Callable[[StepResult], Any]] = None,
        on_epoch: Optional[Callable[[EpochResult], Any]] = None,
    ) -> FitResult:
        """Trains until `epochs` are done in all, from where the cursor is.

        Ctrl-C ends it after a step with a KeyboardInterrupt, and so does whatever a callback raises;
        the checkpoint is written first. A callback that raises StopIteration ends it in peace.

        Arguments:
            loader: what to learn from.
            epochs: in all; a trainer that was resumed does what is left of them.
            validation: evaluated after each epoch.
            patience: epochs without a better score after which it ends; 0: none.
            checkpoint: a file that is saved after each epoch, and where it is stopped.
            checkpoint_every: saved after so many steps, too.
            on_step: called after each step.
            on_epoch: called after each epoch.
        """
        step = None if on_step is None else _checked("on_step", on_step)
        epoch = None if on_epoch is None else _checked("on_epoch", on_epoch)
        found = self._trainer.fit(
            _loader("fit", loader),
            epochs,
            None if validation is None else _loader("fit", validation),
            patience,
            "" if checkpoint is None else path_text(checkpoint),
            checkpoint_every,
            None if step is None else lambda result: step(StepResult(**result)),
            None if epoch is None else lambda result: epoch(_epoch(result)),
        )
        found["validation"] = _evaluation(found["validation"])
        return FitResult(**found)

    def save(self, path: Union[str, os.PathLike[str]]) -> None:
        """Writes a checkpoint; the one that was there becomes PATH.previous.

        Arguments:
            path: the name of the file.
        """
        self._trainer.save(path_text(path))

    def resume(self, path: Union[str, os.PathLike[str]]) -> str:
        """Takes all of a checkpoint, or of PATH.previous where that is damaged; gives the file it took.

        Arguments:
            path: what `save`, `fit` or the tool wrote.
        """
        return self._trainer.resume(path_text(path))

    @property
    def model(self) -> Layer:
        """A copy of the model as it is now; assign a model with the same parameters to change it."""
        return wrapped(self._trainer.model(False))

    @model.setter
    def model(self, model: Layer) -> None:
        self._trainer.set_model(require_model("Trainer", model)._layer)

    def trained(self) -> Layer:
        """A copy with averaged weights where an average is kept: what to deploy."""
        return wrapped(self._trainer.model(True))

    @property
    def metadata(self) -> dict[str, str]:
        """What checkpoints say beside the trainer's own."""
        return self._trainer.metadata()

    def set_info(self, info: ModelInfo) -> None:
        """What checkpoints say about the model: classes, preprocessing.

        Arguments:
            info: as for `save_model`.
        """
        self._trainer.set_info(info_dict(info))

    def set_metadata(self, key: str, value: str) -> None:
        """Says something more in checkpoints.

        Arguments:
            key: a name.
            value: a text.
        """
        self._trainer.set_metadata(key, value)

    @property
    def options(self) -> dict[str, Any]:
        """What it was made with, or what `resume` took."""
        found = self._trainer.state()
        return {name: found[name] for name in found if name not in ("steps", "cursor", "best_score")}

    @property
    def steps(self) -> int:
        """Done so far."""
        return int(self._trainer.state()["steps"])

    @property
    def cursor(self) -> tuple[int, int]:
        """Of the batch that comes next: the epoch, and samples of it that are done."""
        epoch, next = self._trainer.state()["cursor"]
        return epoch, next

    @cursor.setter
    def cursor(self, cursor: tuple[int, int]) -> None:
        self._trainer.set_cursor(*cursor)

    @property
    def best_score(self) -> float:
        """Of the epochs so far; -infinity before the first one."""
        return float(self._trainer.state()["best_score"])

    def __repr__(self) -> str:
        state = self._trainer.state()
        kind = DTYPES[self._trainer.model(False).double]
        return f"<Trainer of {kind}, {state['optimiser'].split()[0]}, after {state['steps']} steps>"


def _loader(function: str, loader: Any) -> _core._Loader:
    if not isinstance(loader, Loader):
        raise TypeError(
            f"{function}: {type(loader).__name__} is no loader\n"
            "  fix: nn.Loader(dataset, batch=32), nn.array_dataset(x, y) for arrays"
        )
    return loader._loader


def _checked(name: str, callback: Any) -> Callable[..., Any]:
    if not callable(callback):
        raise TypeError(f"fit: {name} is {type(callback).__name__}\n  fix: a function of the result")
    result: Callable[..., Any] = callback
    return result
