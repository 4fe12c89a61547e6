"""Nested lists, tuples and dicts of tensors, and networks, taken apart and put together again."""

from __future__ import annotations

from typing import Any, Callable, Iterator

__all__ = ["tree_flatten", "tree_map"]


class TreeNode:
    """A tree that is no list, tuple or dict: a network, whose leaves are its parameters."""

    def tree_leaves(self) -> dict[str, Any]:
        """The leaves by name, those that are differentiated by."""
        raise NotImplementedError

    def tree_rebuilt(self, leaves: list[Any]) -> TreeNode:
        """The same with other leaves."""
        raise NotImplementedError

    def tree_state(self) -> dict[str, Any]:
        """The leaves, and what else changes: all that a program has to be given."""
        raise NotImplementedError

    def tree_restored(self, state: list[Any]) -> TreeNode:
        """The same with another state."""
        raise NotImplementedError

    def tree_structure(self) -> str:
        """Equal for nodes that differ in their state alone."""
        raise NotImplementedError


def tree_flatten(tree: Any) -> list[Any]:
    """The leaves in order: what is no list, tuple, dict or None; of a network its parameters.

    Arguments:
        tree: lists, tuples, dicts and networks in each other, or a leaf.

    >>> tree_flatten({"w": 1, "layers": [2, (3, None)]})
    [1, 2, 3]
    """
    if tree is None:
        return []
    if isinstance(tree, TreeNode):
        return list(tree.tree_leaves().values())
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
    if isinstance(like, TreeNode):
        return like.tree_rebuilt([next(leaves) for _ in like.tree_leaves()])
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
    if isinstance(tree, TreeNode):
        tree = tree.tree_leaves()
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
    if isinstance(like, TreeNode):
        same = isinstance(tree, TreeNode) and like.tree_structure() == tree.tree_structure()
    elif isinstance(like, dict):
        same = isinstance(tree, dict) and like.keys() == tree.keys()
    elif isinstance(like, (list, tuple)):
        same = isinstance(tree, (list, tuple)) and len(like) == len(tree)
    elif like is None:
        same = tree is None
    else:
        same = tree is not None and not isinstance(tree, (dict, list, tuple, TreeNode))
    if not same:
        raise ValueError(
            f"{root} is {_structure(tree)}, needed {_structure(like)}\n  fix: trees of one structure"
        )
    if like is None:
        return []
    if isinstance(like, TreeNode):
        return tree_flatten(tree)
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
    if isinstance(tree, TreeNode):
        return f"a network of {len(tree.tree_leaves())} parameters"
    return "None" if tree is None else "a single value"


def has_node(tree: Any) -> bool:
    """Whether networks are among the parts of a tree.

    Arguments:
        tree: as for tree_flatten.

    >>> has_node({"w": 1})
    False
    """
    if isinstance(tree, dict):
        return any(map(has_node, tree.values()))
    if isinstance(tree, (list, tuple)):
        return any(map(has_node, tree))
    return isinstance(tree, TreeNode)


def opened(tree: Any) -> Any:
    """A tree with dicts of their whole state for its networks.

    Arguments:
        tree: as for tree_flatten.

    >>> opened([1, {"w": 2}])
    [1, {'w': 2}]
    """
    return _replaced(tree, tree, lambda node, _: node.tree_state())


def closed(like: Any, tree: Any) -> Any:
    """The opposite of opened.

    Arguments:
        like: a tree with networks.
        tree: the same with their states, which they are to have.

    >>> closed([1, {"w": 2}], [3, {"w": 4}])
    [3, {'w': 4}]
    """
    return _replaced(like, tree, lambda node, state: node.tree_restored(list(state.values())))


def emptied(tree: Any) -> Any:
    """A tree whose networks hold no numbers.

    Arguments:
        tree: as for tree_flatten.

    >>> emptied([1])
    [1]
    """
    return _replaced(tree, tree, lambda node, _: node.tree_restored([0.0] * len(node.tree_state())))


def _replaced(like: Any, tree: Any, node: Callable[[TreeNode, Any], Any]) -> Any:
    """tree with node(network, part) where like has a network."""
    if isinstance(like, TreeNode):
        return node(like, tree)
    if isinstance(like, dict):
        return type(like)((key, _replaced(part, tree[key], node)) for key, part in like.items())
    if isinstance(like, tuple) and hasattr(like, "_fields"):
        return type(like)(*(_replaced(part, other, node) for part, other in zip(like, tree)))
    if isinstance(like, (list, tuple)):
        return type(like)(_replaced(part, other, node) for part, other in zip(like, tree))
    return tree


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
