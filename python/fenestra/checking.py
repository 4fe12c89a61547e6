"""gradcheck: a function's gradients against difference quotients, element by element."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Callable

import numpy as np

from .arrays import tensor
from .transforms import value_and_grad
from .trees import tree_flatten, tree_map, tree_unflatten

__all__ = ["GradcheckReport", "gradcheck"]


@dataclasses.dataclass
class GradcheckReport:
    """The worst element of a comparison; ``bool(report)`` says whether all agree.

    >>> report = fn.gradcheck(lambda x: x * x, 3.0)
    >>> report.ok, report.checked, report.analytic
    (True, 1, 6.0)
    """

    ok: bool = True
    checked: int = 0
    argument: int = 0  #: counted over all tensors of the arguments
    element: int = 0
    analytic: float = 0.0
    numeric: float = 0.0
    allowed: float = 0.0  #: the difference that truncation and rounding explain

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        return (
            f"gradients {'agree' if self.ok else 'differ'} on {self.checked} elements; worst: "
            f"argument {self.argument}, element {self.element}: analytic {self.analytic!r}, "
            f"numeric {self.numeric!r}, explained {self.allowed!r}"
        )


def gradcheck(f: Callable[..., Any], *args: Any, **kwargs: Any) -> GradcheckReport:
    """Checks the gradient of f (a single element) by every element of its arguments, in float64.

    What a difference quotient cannot know is bounded by what two step sizes say: halving the step
    quarters its truncation error, so their difference estimates it, and the rounding of f adds
    u*|f|/h.

    Arguments:
        f: a function that returns a single element.
        args: where to check it; every element of them is moved.
        kwargs: handed on to f as they are.

    >>> bool(fn.gradcheck(lambda x: fn.sum(fn.exp(x)), np.array([0.5, -1.0])))
    True
    """
    point = tree_map(lambda x: np.array(x, dtype=np.float64), list(args))
    value, grads = value_and_grad(f, range(len(args)))(*tree_map(tensor, point), **kwargs)
    leaves = [np.array(leaf) for leaf in tree_flatten(point)]
    analytic = [np.asarray(bar) for bar in tree_flatten(grads)]
    unit = float(np.finfo(np.float64).eps) / 2

    def evaluate(argument: int, element: int, x: float) -> float:
        moved = [leaf.copy() for leaf in leaves]
        moved[argument].flat[element] = x
        return float(f(*tree_unflatten(point, iter(map(tensor, moved))), **kwargs))

    report = GradcheckReport()
    worst = -math.inf
    for a, leaf in enumerate(leaves):
        for i in range(leaf.size):
            x = float(leaf.flat[i])
            # The step that balances truncation (h^2) and rounding (u/h).
            h = math.pow(3 * unit, 1 / 3) * max(1.0, abs(x))

            def slope(step: float) -> float:
                above, below = x + step, x - step
                return (evaluate(a, i, above) - evaluate(a, i, below)) / (above - below)

            coarse, fine = slope(2 * h), slope(h)
            # A function of m operations is taken to be off by sqrt(m) roundings: 64 covers
            # networks of thousands.
            allowed = abs(coarse - fine) + 64 * unit * max(abs(value.item()), 1.0) / h
            exact = float(analytic[a].flat[i])
            difference = abs(exact - fine)
            excess = math.inf if math.isnan(difference) else difference - allowed
            report.checked += 1
            report.ok = report.ok and difference <= allowed
            if excess > worst:
                worst = excess
                report.argument, report.element = a, i
                report.analytic, report.numeric, report.allowed = exact, fine, allowed
    return report
