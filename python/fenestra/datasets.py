"""Datasets, which answer for their samples, and loaders, which make batches of them."""

from __future__ import annotations

import json
from typing import Any, Iterator, Literal, NamedTuple, Optional, Sequence, Union

import numpy as np

from . import _core
from ._core import Tensor
from .passes import DTYPES, Key, is_double, seed_of

__all__ = [
    "Batch",
    "Dataset",
    "Loader",
    "Preprocessing",
    "array_dataset",
    "dataset_kinds",
    "how_to_get",
    "normalisation_of",
    "open_dataset",
    "preprocess",
]


def short(what: str, items: Sequence[Any]) -> Sequence[Any]:
    """A sequence that is none of those without an end.

    Arguments:
        what: its name, for the message.
        items: the sequence.

    >>> short("classes", ["a"])
    ['a']
    """
    if not isinstance(items, (list, tuple, range, np.ndarray)) or len(items) > 2**27:
        raise TypeError(f"{what} is {type(items).__name__}\n  fix: a list, 2^27 long at most")
    return items


def names_in(what: str, items: Sequence[str]) -> list[str]:
    """Names, which are texts.

    Arguments:
        what: what they are of, for the message.
        items: a list of them.

    >>> names_in("classes", ("a", "b"))
    ['a', 'b']
    """
    if not isinstance(items, (list, tuple)) or not all(isinstance(item, str) for item in items):
        raise TypeError(f"{what}: needed a list of texts\n  fix: ['cat', 'dog']")
    return list(items)


class Preprocessing(NamedTuple):
    """What is done to a sample before a network sees it; a model file keeps it.

    >>> nn.Preprocessing(mean=[0.5], scale=[2.0]).mean
    [0.5]
    """

    size: Sequence[int] = ()  #: spatial extents to resize to; empty: as they come
    mean: Sequence[float] = ()  #: for each channel, subtracted
    scale: Sequence[float] = ()  #: for each channel, divided by afterwards


def preprocessing_text(preprocessing: Optional[Preprocessing]) -> str:
    """Preprocessing as files keep it.

    Arguments:
        preprocessing: None for none.

    >>> preprocessing_text(nn.Preprocessing(mean=[0.5]))
    '{"mean": [0.5]}'
    """
    if preprocessing is None:
        return ""
    if not isinstance(preprocessing, Preprocessing):
        raise TypeError(
            f"preprocessing is {type(preprocessing).__name__}\n  fix: nn.Preprocessing(mean=[...])"
        )
    fields = {
        "size": [int(extent) for extent in short("size", preprocessing.size)],
        "mean": [float(value) for value in short("mean", preprocessing.mean)],
        "scale": [float(value) for value in short("scale", preprocessing.scale)],
    }
    return json.dumps({name: values for name, values in fields.items() if values})


def preprocessing_from(text: str) -> Preprocessing:
    """The opposite of preprocessing_text.

    Arguments:
        text: JSON.

    >>> preprocessing_from('{"mean": [0.5]}')
    Preprocessing(size=[], mean=[0.5], scale=[])
    """
    fields = json.loads(text) if text else {}
    return Preprocessing(*(fields.get(name, []) for name in Preprocessing._fields))


class Dataset:
    """Samples by index: `dataset[i]` is (image, label), (image, mask) or (image, target).

    >>> digits = nn.open_dataset("digits", split="test")
    >>> len(digits), digits.sample_shape, digits.task, digits[0][1]
    (179, (1, 8, 8), 'classification', 9)
    """

    _dataset: _core._Dataset

    def __init__(self) -> None:
        raise TypeError("Dataset: opened by name, or made of arrays\n  fix: nn.open_dataset('digits')")

    @staticmethod
    def _of(held: _core._Dataset) -> Dataset:
        result = Dataset.__new__(Dataset)
        result._dataset = held
        return result

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, index: int) -> tuple[Tensor, Any]:
        place = int(index) + (len(self) if index < 0 else 0)
        if not 0 <= place < len(self):
            raise IndexError(f"dataset: no sample {index}\n  fix: below {len(self)}")
        return self._dataset.sample(place)

    def sample_name(self, index: int) -> str:
        """What to call a sample: "sample 17", or its file.

        Arguments:
            index: of the sample.
        """
        return self._dataset.sample_name(index)

    @property
    def name(self) -> str:
        """For people."""
        return self._dataset.name

    @property
    def task(self) -> str:
        """'classification', 'segmentation' or 'reconstruction'."""
        return self._dataset.task

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """(channels, spatial...)"""
        return self._dataset.sample_shape

    @property
    def classes(self) -> list[str]:
        """Their names; empty where there are none."""
        return self._dataset.classes

    def subset(self, which: Sequence[int]) -> Dataset:
        """Some of the samples, in that order.

        Arguments:
            which: their indices.
        """
        return Dataset._of(self._dataset.subset([int(i) for i in short("subset: which", which)]))

    def as_reconstruction(self) -> Dataset:
        """The same samples, each its own target: for autoencoders."""
        return Dataset._of(self._dataset.as_reconstruction())

    def split(self, held_out: float = 0.1, seed: int = 0) -> tuple[Dataset, Dataset]:
        """A part to learn from and a part that is held out, chosen by the seed alone.

        Arguments:
            held_out: its share of the samples.
            seed: the same one, the same parts.
        """
        train, test = self._dataset.split(held_out, seed_of(seed))
        return Dataset._of(train), Dataset._of(test)

    def __repr__(self) -> str:
        return f"<Dataset {self.name}: {len(self)} samples {self.sample_shape}, {self.task}>"


def open_dataset(
    text: str,
    split: Literal["train", "test"] = "train",
    *,
    size: Optional[Sequence[int]] = None,
    channels: int = 0,
    count: int = 0,
    held_out: float = 0.1,
    seed: int = 0,
) -> Dataset:
    """A dataset by name: "digits", "mnist:FOLDER", "folder:PATH", "npz:FILE", "shapes", ...

    Nothing is downloaded; `how_to_get` says where files come from.

    Arguments:
        text: "name" or "name:argument", see `dataset_kinds`.
        split: the part to learn from, or the part that is held out.
        size: spatial extents, for folders and generated data.
        channels: 1 or 3, for folders and shapes.
        count: samples, for generated data.
        held_out: the share that is held out, where a source has no parts of its own.
        seed: of that choice, and of generated data.

    >>> nn.open_dataset("tones", count=20)
    <Dataset tones: 20 samples (1, 256), classification>
    """
    return Dataset._of(
        _core._open_dataset(str(text), str(split), size, channels, count, held_out, seed_of(seed))
    )


def array_dataset(
    x: Any, y: Any = None, *, classes: Sequence[str] = (), name: str = "arrays"
) -> Dataset:
    """Arrays as a dataset, which shares their memory where it is float32.

    Arguments:
        x: (samples, channels, spatial...), floats.
        y: integers, one for each sample or for each cell: classes; floats: targets. Nothing: each
            sample is its own target.
        classes: their names; "0", "1", ... unless given.
        name: for people.

    >>> nn.array_dataset(np.zeros((4, 1, 2, 2)), [0, 1, 0, 1])
    <Dataset arrays: 4 samples (1, 2, 2), classification>
    """
    try:
        samples, goal = np.asarray(x), np.asarray(x if y is None else y)
    except MemoryError:
        raise MemoryError("array_dataset: not enough memory\n  fix: smaller arrays") from None
    if samples.dtype.kind != "f":
        raise TypeError(
            f"array_dataset: x is {samples.dtype}, needed floats\n"
            "  fix: x.astype('float32'), of bytes divided by 255"
        )
    samples = samples.astype(np.float32, copy=False)
    if goal.dtype.kind not in "fiu":
        raise TypeError(f"array_dataset: y is {goal.dtype}, needed integers or floats\n  fix: labels")
    labels = goal.dtype.kind in "iu"
    if not labels:
        goal = goal.astype(np.float32, copy=False)
    return Dataset._of(_core._array_dataset(samples, goal, labels, names_in("classes", classes), name))


def require_dataset(function: str, dataset: Any) -> Dataset:
    """The dataset, where it is one.

    Arguments:
        function: who asks, for the message.
        dataset: a dataset, or anything else.

    >>> len(require_dataset("Loader", nn.open_dataset("digits")))
    1618
    """
    if not isinstance(dataset, Dataset):
        raise TypeError(
            f"{function}: {type(dataset).__name__} is no dataset\n"
            "  fix: nn.open_dataset('digits'), nn.array_dataset(x, y)"
        )
    return dataset


def dataset_kinds() -> dict[str, str]:
    """The names that `open_dataset` knows, and what they are.

    >>> nn.dataset_kinds()["tones"]
    'generated signals of five kinds'
    """
    return {
        f"{name}{f':{argument}' if argument else ''}": what
        for name, argument, what in _core._dataset_kinds()
    }


def how_to_get(name: str) -> str:
    """What to type to have the files of a dataset; empty where it needs none.

    Arguments:
        name: as for open_dataset.

    >>> nn.how_to_get("shapes")
    ''
    """
    return _core._how_to_get(name)


def normalisation_of(dataset: Dataset) -> Preprocessing:
    """The mean and the deviation of every channel.

    Arguments:
        dataset: at most 10,000 of its samples are looked at.

    >>> nn.normalisation_of(nn.array_dataset(np.full((2, 1, 2, 2), 3.0))).mean
    [3]
    """
    return preprocessing_from(require_dataset("normalisation_of", dataset)._dataset.normalisation())


def preprocess(preprocessing: Preprocessing, sample: Any) -> Tensor:
    """A sample as a network is to see it.

    Arguments:
        preprocessing: what a model file or `normalisation_of` says.
        sample: (channels, spatial...), float32.

    >>> nn.preprocess(nn.Preprocessing(mean=[1.0], scale=[2.0]), np.full((1, 1, 2), 5, "float32")).tolist()
    [[[2.0, 2.0]]]
    """
    return _core._preprocess(preprocessing_text(preprocessing), sample)


class Batch(NamedTuple):
    """What a loader gives, and a trainer's step takes.

    >>> nn.Batch(fn.ones((2, 1)), labels=np.array([0, 1])).labels
    array([0, 1])
    """

    inputs: Any  #: (samples, channels, spatial...)
    labels: Any = None  #: integers, for each sample or each cell
    targets: Any = None  #: floats
    which: Any = ()  #: the dataset's index of every sample


class Loader:
    """Batches of a dataset, in an order that is a function of seed and epoch.

    Iterating gives what is left of the epoch; the next loop is the next epoch.

    Arguments:
        dataset: what `open_dataset` or `array_dataset` gives.
        batch: samples in each.
        seed: of order and augmentation.
        shuffle: False for the dataset's order.
        drop_last: leaves out the batch that is not full.
        prefetch: batches made ahead on a thread.
        augmentation: "shift=2,flip=0.5,rotate=10,noise=0.1,crop=24x24,cut_out=4,padding=4".
        preprocessing: resizing and normalisation, see `normalisation_of`.
        dtype: 'float32' or 'float64'.

    >>> loader = nn.Loader(nn.open_dataset("digits"), batch=64, seed=1, augmentation="shift=1")
    >>> len(loader), next(iter(loader)).inputs.shape, loader.cursor
    (26, (64, 1, 8, 8), (0, 64))
    """

    def __init__(
        self,
        dataset: Dataset,
        *,
        batch: int = 32,
        seed: Union[int, Key] = 0,
        shuffle: bool = True,
        drop_last: bool = False,
        prefetch: int = 2,
        augmentation: str = "",
        preprocessing: Optional[Preprocessing] = None,
        dtype: Any = "float32",
    ) -> None:
        self.dataset = require_dataset("Loader", dataset)
        self._double = is_double(dtype, "Loader")
        self._loader = _core._Loader(
            dataset._dataset,
            batch,
            seed_of(seed),
            shuffle,
            drop_last,
            prefetch,
            str(augmentation),
            preprocessing_text(preprocessing),
            self._double,
        )

    def __iter__(self) -> Iterator[Batch]:
        while (found := self._loader.next()) is not None:
            yield Batch(*found)

    def __len__(self) -> int:
        """Batches of an epoch."""
        return self._loader.batches_per_epoch

    @property
    def cursor(self) -> tuple[int, int]:
        """The epoch, and how many of its samples were handed out."""
        return self._loader.cursor

    def seek(self, epoch: int, next: int = 0) -> None:
        """Goes on there.

        Arguments:
            epoch: from 0.
            next: how many of its samples were handed out.
        """
        self._loader.seek(epoch, next)

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """(channels, spatial...) of the inputs."""
        return self._loader.sample_shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the inputs."""
        return np.dtype(DTYPES[self._double])

    def __repr__(self) -> str:
        return f"<Loader of {self.dataset.name}: {len(self)} batches, at {self.cursor}>"
