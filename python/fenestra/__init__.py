"""Differentiable sliding-window operators on NumPy arrays.

Operators take tensors, arrays and anything with ``__dlpack__``, in float32 or float64, and return
tensors; ``grad`` and its relatives differentiate Python functions of them, in any order and depth.

>>> x = np.arange(16.0).reshape(1, 1, 4, 4)
>>> w = np.ones((1, 1, 3, 3))
>>> fn.conv2d(x, w)
Tensor([[[[45., 54.],
          [81., 90.]]]], dtype=float64)
>>> fn.grad(lambda w: fn.sum(fn.relu(fn.conv2d(x, w))))(w).shape
(1, 1, 3, 3)
"""

from . import nhwc
from ._core import *  # noqa: F403  every operator, from the library's list
from ._core import Indices, Tensor, __version__, asarray
from .arrays import full, ones, ones_like, tensor, zeros, zeros_like
from .checking import GradcheckReport, gradcheck
from .transforms import (
    Gradients,
    Tape,
    grad,
    hvp,
    jacfwd,
    jacrev,
    jvp,
    no_grad,
    per_sample_grad,
    value_and_grad,
    vjp,
    vmap,
)
from .trees import tree_flatten, tree_map
