"""Writes the type stubs of the compiled module: the classes from a template, the functions from what
the module says of itself. Beside it, those of the layers and ready models that the library lists.

Usage: write_stubs.py FOLDER TEMPLATE OUTPUT; FOLDER holds the package.
"""

import pathlib
import re
import sys

FLAG = "return_indices: bool = ..."


def overloads(stub):
    """A function whose flag decides what it returns, once for each of its values."""
    match = re.fullmatch(r"(def .*) -> (\w+) \| (tuple\[.*\]): \.\.\.", stub)
    if not match or FLAG not in stub:
        return [stub]
    head, plain, extended = match.groups()
    forms = [
        (FLAG.replace("bool", "Literal[False]"), plain),
        ("return_indices: Literal[True]", extended),
        ("return_indices: bool", f"{plain} | {extended}"),
    ]
    return [f"@overload\n{head.replace(FLAG, flag)} -> {result}: ..." for flag, result in forms]


# How annotations spell the types of a layer's fields.
TYPES = {
    "flag": "bool",
    "number": "float",
    "whole": "int",
    "optional whole": "int | None",
    "axes": "int | Sequence[int]",
    "padding": "int | Sequence[int] | Sequence[tuple[int, int]] | Literal['same', 'valid']",
    "extents": "int | Sequence[int]",
    "pad cells": "Literal['ignore', 'zero']",
    "word": "str",
}
OPENING = '"""Written by the build from the lists of the library; see python/write_stubs.py."""\n\n'


def layer_stubs(kinds, layers):
    """The classes of kinds.py."""
    text = OPENING + "from typing import Any, Literal, Sequence\n\nimport numpy.typing as npt\n\n"
    text += "from .layers import Layer\n\n"
    for name in kinds.__all__:
        signature = layers.signature_of(layers.layer_fields(kinds._MADE[name]))
        types = {field.name: TYPES[field.type] for field in layers.layer_fields(kinds._MADE[name])}
        types["dtype"] = "npt.DTypeLike"
        words = ["self"]
        for parameter in signature.parameters.values():
            if parameter.kind is parameter.KEYWORD_ONLY and "*" not in words:
                words.append("*")
            is_needed = parameter.default is parameter.empty
            optional = " | None" if parameter.default is None and "None" not in types[parameter.name] else ""
            words.append(f"{parameter.name}: {types[parameter.name]}{optional}{'' if is_needed else ' = ...'}")
        text += f"class {name}(Layer):\n    def __init__({', '.join(words)}) -> None: ...\n\n"
    return text + f"__all__ = {kinds.__all__!r}\n"


def model_stubs(ready):
    """The functions of ready.py."""
    text = OPENING + "import numpy.typing as npt\n\nfrom .layers import Layer\n\n"
    for name in ready.__all__:
        text += (f"def {name}(*, classes: int = ..., channels: int = ..., width: float = ..., "
                 "dtype: npt.DTypeLike = ...) -> Layer: ...\n")  # fmt: skip
    return text + f"\n__all__ = {ready.__all__!r}\n"


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    # Instead of the folder of this script, which holds the package's sources only.
    sys.path[0] = sys.argv[1]
    from fenestra import _core, kinds, layers, ready

    lines = [line for stub in _core._stubs.values() for line in overloads(stub)]
    template = pathlib.Path(sys.argv[2]).read_text(encoding="utf-8")
    output = pathlib.Path(sys.argv[3])
    output.with_name("kinds.pyi").write_text(layer_stubs(kinds, layers), encoding="utf-8")
    output.with_name("ready.pyi").write_text(model_stubs(ready), encoding="utf-8")
    output.write_text(template + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
