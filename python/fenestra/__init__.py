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

# Star imports hand everything on, to type checkers too: the operators from the library's list, the
# rest from the __all__ of each module.
from . import dispatching as _dispatching
from . import nhwc as nhwc
from . import nn as nn
from . import onnx as onnx
from ._core import *
from ._core import __version__ as __version__
from .arrays import *
from .checking import *
from .compiling import *
from .transforms import *
from .trees import *
