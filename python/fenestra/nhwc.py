"""Two-dimensional operators in the names, defaults and layouts of NHWC libraries such as Nabla.

Activations are (N, H, W, C), filters (kH, kW, C_in, C_out), those of transposed convolutions
(kH, kW, C_out, C_in). Padding is an int, (height, width) or (top, bottom, left, right).
"""

from __future__ import annotations

from typing import Any, Optional, Sequence, Union

import numpy as np

from . import _core
from ._core import Tensor

Pair = Union[int, Sequence[int]]


def _padding(name: str, padding: Pair) -> Any:
    if not isinstance(padding, (list, tuple, np.ndarray)) or np.ndim(padding) == 0:
        return padding
    if len(padding) == 2:
        return padding
    if len(padding) == 4:
        top, bottom, left, right = padding
        return [(top, bottom), (left, right)]
    raise ValueError(
        f"{name}: padding = {padding}\n"
        "  fix: an int, (height, width) or (top, bottom, left, right)"
    )


def _require(name: str, argument: str, got: Any, only: str) -> None:
    if got is not None and got != only:
        raise ValueError(f"{name}: {argument} = {got!r}\n  fix: {only!r}, the only one here")


def conv2d(
    x: Any,
    filter: Any,
    *,
    stride: Pair = (1, 1),
    dilation: Pair = (1, 1),
    padding: Pair = (0, 0, 0, 0),
    groups: int = 1,
    bias: Optional[Any] = None,
    input_layout: Any = None,
    filter_layout: Any = None,
) -> Tensor:
    """Convolution: x (N, H, W, C_in), filter (kH, kW, C_in/groups, C_out), bias (C_out).

    Arguments:
        x: the images.
        filter: the filters.
        stride: cells from one window to the next, one for both axes or (height, width).
        dilation: cells from one tap to the next, likewise.
        padding: an int, (height, width) or (top, bottom, left, right).
        groups: parts of equal size into which the channels fall.
        bias: one number for each output channel, or None.
        input_layout: "NHWC" or None; there is no other.
        filter_layout: "HWIO" or None; there is no other.

    >>> x = np.arange(9.0).reshape(1, 3, 3, 1)
    >>> fn.nhwc.conv2d(x, np.ones((2, 2, 1, 1)), padding=(0, 0, 1, 0)).shape
    (1, 2, 3, 1)
    """
    _require("nhwc.conv2d", "input_layout", input_layout, "NHWC")
    _require("nhwc.conv2d", "filter_layout", filter_layout, "HWIO")
    return _core.conv2d(
        x,
        filter,
        bias,
        stride=stride,
        padding=_padding("nhwc.conv2d", padding),
        dilation=dilation,
        groups=groups,
        layout="channels_last",
    )


def conv2d_transpose(
    x: Any,
    filter: Any,
    *,
    stride: Pair = (1, 1),
    dilation: Pair = (1, 1),
    padding: Pair = (0, 0, 0, 0),
    output_paddings: Pair = (0, 0),
    bias: Optional[Any] = None,
    input_layout: Any = None,
    filter_layout: Any = None,
) -> Tensor:
    """Transposed convolution: x (N, H, W, C_in), filter (kH, kW, C_out, C_in), bias (C_out).

    Arguments:
        x: the images.
        filter: the filters.
        stride: cells of the result from one input cell to the next.
        dilation: cells from one tap to the next, likewise.
        padding: cells cropped from the result: an int, (height, width) or (top, bottom, left, right).
        output_paddings: rows and columns added at the bottom and on the right.
        bias: one number for each output channel, or None.
        input_layout: "NHWC" or None; there is no other.
        filter_layout: "HWOI" or None; there is no other.

    >>> x = np.arange(4.0).reshape(1, 2, 2, 1)
    >>> fn.nhwc.conv2d_transpose(x, np.ones((2, 2, 3, 1)), stride=2).shape
    (1, 4, 4, 3)
    """
    _require("nhwc.conv2d_transpose", "input_layout", input_layout, "NHWC")
    _require("nhwc.conv2d_transpose", "filter_layout", filter_layout, "HWOI")
    return _core.conv_transpose2d(
        x,
        filter,
        bias,
        stride=stride,
        padding=_padding("nhwc.conv2d_transpose", padding),
        output_padding=output_paddings,
        dilation=dilation,
        layout="channels_last",
    )


def avg_pool2d(
    x: Any,
    *,
    kernel_size: Pair,
    stride: Optional[Pair] = None,
    padding: Pair = 0,
    dilation: Pair = (1, 1),
) -> Tensor:
    """The mean of each window of x (N, H, W, C), padded zeros counted.

    Arguments:
        x: the images.
        kernel_size: the extents of a window, one for both axes or (height, width).
        stride: cells from one window to the next; the kernel's size unless given.
        padding: an int, (height, width) or (top, bottom, left, right).
        dilation: cells from one cell of a window to the next.

    >>> fn.nhwc.avg_pool2d(np.ones((1, 4, 4, 2)), kernel_size=2).shape
    (1, 2, 2, 2)
    """
    return _core.avg_pool2d(
        x,
        kernel_size,
        stride,
        _padding("nhwc.avg_pool2d", padding),
        dilation=dilation,
        layout="channels_last",
    )


def max_pool2d(
    x: Any,
    *,
    kernel_size: Pair,
    stride: Optional[Pair] = None,
    padding: Pair = 0,
    dilation: Pair = (1, 1),
) -> Tensor:
    """The maximum of each window of x (N, H, W, C), padded cells being zeros.

    Arguments:
        x: the images.
        kernel_size: the extents of a window, one for both axes or (height, width).
        stride: cells from one window to the next; the kernel's size unless given.
        padding: an int, (height, width) or (top, bottom, left, right).
        dilation: cells from one cell of a window to the next.

    >>> fn.nhwc.max_pool2d(-np.ones((1, 2, 2, 1)), kernel_size=2, padding=1)[0, :, :, 0]
    Tensor([[0., 0.],
            [0., 0.]], dtype=float64)
    """
    pooled = _core.max_pool2d(
        x,
        kernel_size,
        stride,
        _padding("nhwc.max_pool2d", padding),
        dilation,
        pad_cells="zero",
        layout="channels_last",
    )
    assert isinstance(pooled, Tensor)
    return pooled
