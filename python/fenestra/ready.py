"""The ready models by name, a function for each; the build writes the stubs."""

from __future__ import annotations

from typing import Any

from .layers import Layer
from .models import make_model, model_entries


def _ready(name: str) -> Any:
    text, input_shape, output = model_entries()[name]

    def model(
        *, classes: int = 0, channels: int = 0, width: float = 1.0, dtype: Any = "float32"
    ) -> Layer:
        return make_model(name, classes=classes, channels=channels, width=width, dtype=dtype)

    model.__module__ = __name__
    model.__name__ = model.__qualname__ = name
    model.__doc__ = (
        f"{text}, made for samples {input_shape}; gives {output}.\n\n"
        "Arguments:\n"
        "    classes: scores that come out; 0: as published.\n"
        "    channels: of the input; 0: as published.\n"
        "    width: factor on the number of channels inside.\n"
        "    dtype: 'float32' or 'float64'.\n\n"
        f">>> nn.parameter_count(nn.{name}(width=0.25)) > 0\nTrue\n"
    )
    return model


globals().update({name: _ready(name) for name in model_entries()})

__all__ = list(model_entries())
