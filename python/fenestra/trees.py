"""Nested lists, tuples and dicts of tensors, taken apart and put together again."""

from __future__ import annotations

from typing import Any, Callable, Iterator

__all__ = ["tree_flatten", "tree_map"]


def tree_flatten(tree: Any) -> list[Any]:
    """The leaves in order: what is no list, tuple, dict or None.

    >>> tree_flatten({"w": 1, "layers": [2, (3, None)]})
    [1, 2, 3]
    """
    if tree is None:
        return []
    if isinstance(tree, dict):
        return [leaf for part in tree.values() for leaf in tree_flatten(part)]
    if isinstance(tree, (list, tuple)):
        return [leaf for part in tree for leaf in tree_flatten(part)]
    return [tree]


def tree_unflatten(like: Any, leaves: Iterator[Any]) -> Any:
    """A tree like another, its leaves taken from an iterator."""
    if like is None:
        return None
    if isinstance(like, dict):
        return type(like)((key, tree_unflatten(part, leaves)) for key, part in like.items())
    if isinstance(like, tuple) and hasattr(like, "_fields"):
        return type(like)(*(tree_unflatten(part, leaves) for part in like))
    if isinstance(like, (list, tuple)):
        return type(like)(tree_unflatten(part, leaves) for part in like)
    return next(leaves)


def tree_map(f: Callable[..., Any], tree: Any, *more: Any) -> Any:
    """f of the leaves in equal places of one or more trees; the result is like the first.

    >>> tree_map(lambda w, g: w - g, {"a": 3, "b": [1]}, {"a": 1, "b": [1]})
    {'a': 2, 'b': [0]}
    """
    lists = [tree_flatten(tree), *(tree_flatten(other) for other in more)]
    for leaves in lists:
        if len(leaves) != len(lists[0]):
            raise ValueError(
                f"tree_map: trees of {len(lists[0])} and of {len(leaves)} leaves\n"
                "  fix: trees of one structure"
            )
    return tree_unflatten(tree, iter([f(*leaves) for leaves in zip(*lists)]))
