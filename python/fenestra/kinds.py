"""The kinds of layers that the library has, a class for each.

They are made from the library's own list, so that a new kind is here by itself; what people are told
about kinds and fields is written here. The build writes the stubs.
"""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple, Sequence

from . import _core
from .layers import (
    Field,
    Layer,
    bound,
    class_name,
    description_text,
    layer_fields,
    registered,
    signature_of,
)
from .passes import is_double


class KindInfo(NamedTuple):
    """What people are told about a kind, and an example: a call, the input's shape, the output's.

    >>> KINDS["flatten"].call
    'nn.Flatten()'
    """

    text: str
    call: str
    input: tuple[int, ...]
    output: tuple[int, ...]


def _activation(name: str, text: str, arguments: str = "") -> KindInfo:
    return KindInfo(text, f"nn.{class_name(name)}({arguments})", (2, 3), (2, 3))


_PICTURE = (2, 4, 6, 6)
KINDS: dict[str, KindInfo] = {
    "conv": KindInfo("Convolution: x (N, in, spatial...) to (N, out, spatial...).",
                     "nn.Conv(4, 8, kernel=3, padding=1)", _PICTURE, (2, 8, 6, 6)),
    "conv_transpose": KindInfo("Transposed convolution: (N, in, spatial...) to (N, out, larger...).",
                               "nn.ConvTranspose(4, 8, kernel=2, stride=2)", _PICTURE, (2, 8, 12, 12)),
    "linear": KindInfo("x (..., in) to (..., out).", "nn.Linear(3, 5)", (2, 3), (2, 5)),
    "batch_norm": KindInfo("Each channel minus its mean, over its deviation: of the batch in training, of the "
                           "running statistics in inference.", "nn.BatchNorm(4)", _PICTURE, _PICTURE),
    "group_norm": KindInfo("The same for each sample and group of channels.", "nn.GroupNorm(2, 4)", _PICTURE, _PICTURE),
    "instance_norm": KindInfo("The same for each sample and channel.", "nn.InstanceNorm(4)", _PICTURE, _PICTURE),
    "layer_norm": KindInfo("The same over the last axes, which have this shape; or over the channels.",
                           "nn.LayerNorm([6, 6])", _PICTURE, _PICTURE),
    "max_pool": KindInfo("The largest of each window.", "nn.MaxPool(2)", _PICTURE, (2, 4, 3, 3)),
    "avg_pool": KindInfo("The mean of each window.", "nn.AvgPool(2)", _PICTURE, (2, 4, 3, 3)),
    "smooth_max_pool": KindInfo("A smooth maximum of each window: log(sum(exp(beta x)))/beta.",
                                "nn.SmoothMaxPool(2, beta=4.0)", _PICTURE, (2, 4, 3, 3)),
    "lp_pool": KindInfo("The p-norm of each window.", "nn.LpPool(2, p=3.0)", _PICTURE, (2, 4, 3, 3)),
    "adaptive_max_pool": KindInfo("The largest of each bin, as many bins as are asked for.",
                                  "nn.AdaptiveMaxPool(2)", _PICTURE, (2, 4, 2, 2)),
    "adaptive_avg_pool": KindInfo("The mean of each bin, as many bins as are asked for.",
                                  "nn.AdaptiveAvgPool(2)", _PICTURE, (2, 4, 2, 2)),
    "global_max_pool": KindInfo("The largest of each channel.", "nn.GlobalMaxPool()", _PICTURE, (2, 4, 1, 1)),
    "global_avg_pool": KindInfo("The mean of each channel.", "nn.GlobalAvgPool()", _PICTURE, (2, 4, 1, 1)),
    "identity": KindInfo("x as it is.", "nn.Identity()", (2, 3), (2, 3)),
    "flatten": KindInfo("(N, ...) to (N, all the rest).", "nn.Flatten()", _PICTURE, (2, 144)),
    "upsample": KindInfo("The spatial axes enlarged by whole factors.", "nn.Upsample(2)", _PICTURE, (2, 4, 12, 12)),
    "dropout": KindInfo("In training each element is 0 with probability drop, and 1/(1 - drop) times itself "
                        "otherwise.", "nn.Dropout(0.5)", (2, 3), (2, 3)),
    "channel_scale": KindInfo("Each channel times a number that is trained.", "nn.ChannelScale(4)", _PICTURE, _PICTURE),
    "squeeze_excite": KindInfo("x times a gate for each channel, computed from the channels' means.",
                               "nn.SqueezeExcite(4, 2)", _PICTURE, _PICTURE),
    "relu": _activation("relu", "max(x, 0)."),
    "relu6": _activation("relu6", "min(max(x, 0), 6)."),
    "leaky_relu": _activation("leaky_relu", "x above 0, slope x below.", "0.1"),
    "elu": _activation("elu", "x above 0, slope (exp(x) - 1) below."),
    "sigmoid": _activation("sigmoid", "1/(1 + exp(-x))."),
    "hard_sigmoid": _activation("hard_sigmoid", "min(max(x/6 + 1/2, 0), 1)."),
    "tanh": _activation("tanh", "The hyperbolic tangent."),
    "silu": _activation("silu", "x sigmoid(x)."),
    "hard_swish": _activation("hard_swish", "x hard_sigmoid(x)."),
    "gelu": _activation("gelu", "x times the normal distribution's share below x."),
    "mish": _activation("mish", "x tanh(softplus(x))."),
    "softplus": _activation("softplus", "log(1 + exp(x))."),
}  # fmt: skip

#: What a field means; of a kind alone where the key says it.
FIELDS: dict[str, str] = {
    "in": "channels, or numbers, of the input.",
    "out": "channels, or numbers, of the output.",
    "kernel": "extents of the windows; one number is for all spatial axes.",
    "conv.kernel": "extents of the windows; one number is of two axes, [3] of one, [3, 3, 3] of three.",
    "conv_transpose.kernel": "extents of the windows; one number is of two axes, [3] of one.",
    "stride": "cells from one window to the next; of pools the kernel unless given.",
    "padding": "cells added on each side, pairs (low, high) for each axis, or 'same'.",
    "dilation": "cells from one element of a window to the next.",
    "output_padding": "cells that the output has more on the high side.",
    "groups": "parts of the channels that do not see each other.",
    "bias": "whether a number for each output is added.",
    "channels": "how many there are.",
    "layer_norm.channels": "whether it is over the channels, not the last axes.",
    "dropout.channels": "whether whole channels are dropped together.",
    "momentum": "the share of the batch in the running statistics.",
    "epsilon": "added to the variance.",
    "affine": "whether weight and bias are trained.",
    "shape": "extents of the last axes.",
    "ceil_mode": "whether a last window that is not full counts.",
    "pad_cells": "whether padding counts as 'zero' or is passed over, 'ignore'.",
    "count_include_pad": "whether padding counts in means.",
    "divisor_override": "what sums are divided by instead.",
    "beta": "how sharp the maximum is.",
    "normalised": "whether equal values have their own value as smooth maximum.",
    "p": "of the norm.",
    "output_size": "bins along the spatial axes.",
    "factor": "how many times larger, for all spatial axes or for each.",
    "bilinear": "whether it interpolates; else cells are repeated.",
    "align_corners": "whether the corners of both grids meet; with bilinear.",
    "drop": "the probability that an element becomes 0.",
    "begin": "what the numbers are at first.",
    "squeezed": "channels between the two linear layers.",
    "hard": "whether the gate is a hard sigmoid.",
    "slope": "below 0.",
    "dtype": "'float32' or 'float64'.",
}


def _documentation(kind: str, fields: Sequence[Field]) -> str:
    info = KINDS.get(kind)
    names = [(field.name, FIELDS.get(f"{kind}.{field.key}", FIELDS.get(field.key, field.type)))
             for field in fields] + [("dtype", FIELDS["dtype"])]  # fmt: skip
    text = f"{info.text if info else kind}\n\nArguments:\n"
    text += "".join(f"    {name}: {meaning}\n" for name, meaning in names)
    if info:
        text += f"\n>>> {info.call}(fn.ones({info.input}, 'float32')).shape\n{info.output}\n"
    return text


def _made(kind: str) -> type[Layer]:
    """The class of a kind."""
    fields = layer_fields(kind)
    signature = signature_of(fields)
    name = class_name(kind)

    def __init__(self: Layer, *args: Any, **kwargs: Any) -> None:
        said = bound(name, signature, args, kwargs)
        double = is_double(said.pop("dtype", "float32"), name)
        self._layer = _core._build_layer(description_text(name, kind, fields, said), double)

    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    initialiser: Any = __init__
    initialiser.__signature__ = signature.replace(parameters=[own, *signature.parameters.values()])
    members = {"__init__": initialiser, "__doc__": _documentation(kind, fields), "__module__": __name__,
               "__signature__": signature}  # fmt: skip
    return registered(kind, type(name, (Layer,), members))


_MADE = {class_name(kind): kind for kind in _core._layer_kinds()
         if kind not in ("sequential", "residual", "branches")}  # fmt: skip
globals().update({name: _made(kind) for name, kind in _MADE.items()})

__all__ = list(_MADE)
