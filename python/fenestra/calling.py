"""Arguments of functions by place and by name, for transforms."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Mapping, Optional, Sequence, Union

Argnums = Union[int, Sequence[int]]
Argnames = Union[str, Sequence[str]]
Key = Union[int, str]


def parameter_names(f: Callable[..., Any]) -> list[str]:
    """What f calls the arguments it takes by position; nothing where that is not known.

    >>> parameter_names(lambda x, w, *, scale=1: x)
    ['x', 'w']
    """
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [parameter.name for parameter in parameters if parameter.kind in kinds]


class Choice:
    """The arguments that a transform is about, as it was told: argnums, argnames or neither."""

    def __init__(
        self,
        transform: str,
        f: Callable[..., Any],
        argnums: Optional[Argnums] = None,
        argnames: Optional[Argnames] = None,
    ) -> None:
        if argnums is not None and argnames is not None:
            raise TypeError(
                f"{transform}: argnums and argnames are both given\n  fix: one of them, for all arguments"
            )
        self._transform = transform
        self._f = f
        self._names: Optional[list[str]] = None
        self._single = (
            isinstance(argnums, int)
            or isinstance(argnames, str)
            or (argnums is None and argnames is None)
        )
        self._by_name = argnames is not None
        if self._by_name:
            self._chosen: Sequence[Any] = self._listed("argnames", argnames, str, "names")
        else:
            self._chosen = self._listed("argnums", 0 if argnums is None else argnums, int, "ints")

    def _listed(self, argument: str, given: Any, kind: type, kinds: str) -> Sequence[Any]:
        several = [given] if isinstance(given, kind) else given
        if isinstance(several, range) and kind is int:
            return several  # of any length: what is too much in it is found in the call
        # No other iterable: it may be empty the second time, or have no end.
        if not isinstance(several, (list, tuple)) or not all(isinstance(i, kind) for i in several):
            raise TypeError(
                f"{self._transform}: {argument} is {type(given).__name__}, needed "
                f"{'an int' if kind is int else 'a name'} or a list of {kinds}\n"
                "  fix: the places or names of the arguments to differentiate by"
            )
        return list(several)

    def keys(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Key]:
        """Where the arguments are in this call: places among args, names among kwargs."""
        if self._by_name:
            return [self._key_of_name(name, args, kwargs) for name in self._chosen]
        return [self._key_of_number(number, args, kwargs) for number in self._chosen]

    def _parameters(self) -> list[str]:
        if self._names is None:
            self._names = parameter_names(self._f)
        return self._names

    def _key_of_name(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Key:
        if name in kwargs:
            return name
        names = self._parameters()
        if name in names and names.index(name) < len(args):
            return names.index(name)
        known = ", ".join([*names[: len(args)], *kwargs]) or "none"
        raise ValueError(
            f"{self._transform}: the function was called without {name}\n"
            f"  fix: pass it, or name one that was given: {known}"
        )

    def _key_of_number(self, number: int, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Key:
        if -len(args) <= number < len(args):
            return number % len(args)
        names = self._parameters() if kwargs else []
        if 0 <= number < len(names) and names[number] in kwargs:
            return names[number]
        raise ValueError(
            f"{self._transform}: argnums = {number}, the function was called with {len(args)} arguments"
            " by position\n"
            + (f"  fix: numbers from 0 to {len(args) - 1}" if args else "  fix: call it with some")
            + (", or argnames" if kwargs else "")
        )

    def packed(self, results: Sequence[Any]) -> Any:
        """One result, a tuple for several numbers, a dict for several names."""
        if self._single:
            return results[0]
        return dict(zip(self._chosen, results)) if self._by_name else tuple(results)


def replaced(
    args: Sequence[Any], kwargs: Mapping[str, Any], keys: Sequence[Key], values: Sequence[Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments with others in some places."""
    by_place, by_name = list(args), dict(kwargs)
    for key, value in zip(keys, values):
        if isinstance(key, int):
            by_place[key] = value
        else:
            by_name[key] = value
    return by_place, by_name


def taken(args: Sequence[Any], kwargs: Mapping[str, Any], keys: Sequence[Key]) -> list[Any]:
    """The arguments in some places."""
    return [args[key] if isinstance(key, int) else kwargs[key] for key in keys]
