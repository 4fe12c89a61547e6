"""Nested lists, tuples and dicts of tensors, taken apart and put together again."""

from __future__ import annotations

from typing import Any, Callable, Iterator

__all__ = ["tree_flatten", "tree_map"]


def tree_flatten(tree: Any) -> list[Any]:
    """The leaves in order: what is no list, tuple, dict or None.

    Arguments:
        tree: lists, tuples and dicts in each other, or a leaf.

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
    """A tree like another, its leaves taken from an iterator.

    Arguments:
        like: the other tree.
        leaves: an iterator, in the order of tree_flatten.

    >>> tree_unflatten({"w": 1, "b": [2]}, iter([3, 4]))
    {'w': 3, 'b': [4]}
    """
    if like is None:
        return None
    if isinstance(like, dict):
        return type(like)((key, tree_unflatten(part, leaves)) for key, part in like.items())
    if isinstance(like, tuple) and hasattr(like, "_fields"):
        return type(like)(*(tree_unflatten(part, leaves) for part in like))
    if isinstance(like, (list, tuple)):
        return type(like)(tree_unflatten(part, leaves) for part in like)
    return next(leaves)


def _parts(tree: Any) -> list[tuple[Any, Any]]:
    """Keys and parts of what is no leaf."""
    return list(tree.items() if isinstance(tree, dict) else enumerate(tree))


def tree_names(tree: Any, root: str) -> list[str]:
    """How Python would write each leaf of a tree that is called root.

    Arguments:
        tree: as for tree_flatten.
        root: the name of the whole.

    >>> tree_names({"w": 1, "layers": [2, (3, None)]}, "p")
    ["p['w']", "p['layers'][0]", "p['layers'][1][0]"]
    """
    if tree is None:
        return []
    if not isinstance(tree, (dict, list, tuple)):
        return [root]
    return [name for key, part in _parts(tree) for name in tree_names(part, f"{root}[{key!r}]")]


def flatten_like(like: Any, tree: Any, root: str) -> list[Any]:
    """The leaves of a tree called root in the order of another, which has the same structure.

    Arguments:
        like: the other tree.
        tree: the tree to take apart.
        root: its name, for messages.

    >>> flatten_like({"a": 0, "b": [0]}, {"b": (1,), "a": 2}, "p")
    [2, 1]
    """
    if isinstance(like, dict):
        same = isinstance(tree, dict) and like.keys() == tree.keys()
    elif isinstance(like, (list, tuple)):
        same = isinstance(tree, (list, tuple)) and len(like) == len(tree)
    elif like is None:
        same = tree is None
    else:
        same = tree is not None and not isinstance(tree, (dict, list, tuple))
    if not same:
        raise ValueError(
            f"{root} is {_structure(tree)}, needed {_structure(like)}\n  fix: trees of one structure"
        )
    if like is None:
        return []
    if not isinstance(like, (dict, list, tuple)):
        return [tree]
    return [
        leaf
        for key, part in _parts(like)
        for leaf in flatten_like(part, tree[key], f"{root}[{key!r}]")
    ]


def _structure(tree: Any) -> str:
    if isinstance(tree, dict):
        return f"a dict of {', '.join(map(repr, tree)) or 'nothing'}"
    if isinstance(tree, (list, tuple)):
        return f"a {type(tree).__name__} of {len(tree)}"
    return "None" if tree is None else "a single value"


def tree_map(f: Callable[..., Any], tree: Any, *more: Any) -> Any:
    """f of the leaves in equal places of one or more trees; the result is like the first.

    Arguments:
        f: a function of as many leaves as there are trees.
        tree: the first tree.
        more: others of the same structure.

    >>> tree_map(lambda w, g: w - g, {"a": 3, "b": [1]}, {"b": [1], "a": 1})
    {'a': 2, 'b': [0]}
    """
    lists = [tree_flatten(tree)]
    lists += [flatten_like(tree, other, f"tree_map: tree {i + 2}") for i, other in enumerate(more)]
    return tree_unflatten(tree, iter([f(*leaves) for leaves in zip(*lists)]))
