"""Writes the type stubs of the compiled module: the classes from a template, the functions from what
the module says of itself.

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


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    # Instead of the folder of this script, which holds the package's sources only.
    sys.path[0] = sys.argv[1]
    from fenestra import _core

    lines = [line for stub in _core._stubs.values() for line in overloads(stub)]
    template = pathlib.Path(sys.argv[2]).read_text(encoding="utf-8")
    pathlib.Path(sys.argv[3]).write_text(template + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
