"""Documentation and types: every example runs, every stub is what the module says, mypy agrees."""

import doctest
import inspect
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

import fenestra as fn
from fenestra import _core, arrays, calling, checking, compiling, nhwc, nn, transforms, trees
from fenestra import datasets, kinds, layers, models, onnx, passes, ready, trainer, training

PACKAGE = pathlib.Path(fn.__file__).parent
# What an interpreter needs to load a module that a sanitizer watches; nothing otherwise.
SANITIZER = {name: os.environ[name] for name in ("LD_PRELOAD", "ASAN_OPTIONS", "PYTHONMALLOC") if name in os.environ}
ROOT = pathlib.Path(__file__).resolve().parents[2]
FUNCTIONS = {name: getattr(_core, name) for name in _core._stubs}
NETWORKS = (datasets, kinds, layers, models, onnx, passes, ready, trainer, training)
OTHERS = {
    f"{module.__name__}.{name}": member
    for module in (arrays, calling, checking, compiling, nhwc, transforms, trees, *NETWORKS)
    for name, member in vars(module).items()
    if not name.startswith("_") and getattr(member, "__module__", None) == module.__name__
}
CLASS = {f"Tensor.{name}": getattr(fn.Tensor, name) for name in ("numpy", "detach", "astype", "copy", "item", "tolist")}
PLAIN = {name: getattr(fn, name) for name in ("asarray", "load_npy", "save_npy", "threads", "set_threads")}
EVERYTHING = {**FUNCTIONS, **OTHERS, **CLASS, **PLAIN, "fenestra": fn, "fenestra.nn": nn, "fenestra.onnx": onnx, "Tensor": fn.Tensor}


@pytest.mark.parametrize("name", EVERYTHING)
def test_the_examples_of_docstrings_run(name):
    names = {**vars(trees), **vars(calling), "fn": fn, "np": np, "nn": nn}
    for module in NETWORKS:
        names.update((name, member) for name, member in vars(module).items() if name not in names)
    test = doctest.DocTestParser().get_doctest(EVERYTHING[name].__doc__ or "", names, name, None, 0)
    runner = doctest.DocTestRunner(verbose=False)
    report = []
    runner.run(test, out=report.append)
    assert runner.failures == 0, "".join(report)


@pytest.mark.parametrize("page", ["README.md", "docs/python.md", "docs/guide/from-pytorch.md", "docs/guide/from-jax.md"])
def test_the_python_blocks_of_pages_run(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert blocks
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, page, None, 0)
    runner = doctest.DocTestRunner(verbose=False)
    report = []
    runner.run(test, out=report.append)
    assert runner.failures == 0, "".join(report)


def test_every_operator_of_the_list_has_a_signature():
    lines = (ROOT / "fenestra" / "ops" / "operators.txt").read_text(encoding="utf-8").splitlines()
    names = [name for name in (re.split("[#:@]", line)[0].strip() for line in lines) if name]
    assert names
    assert not [n for n in names if not (ROOT / "fenestra" / "ops" / n / "signature.hpp").exists()]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_says_its_arguments_its_shapes_and_an_example(name):
    doc = FUNCTIONS[name].__doc__
    assert "Shapes: " in doc and f"fn.{name}(" in doc and max(map(len, doc.splitlines())) <= 100
    parameters = list(inspect.signature(FUNCTIONS[name]).parameters)
    assert parameters and all(f"{parameter}: " in _core._stubs[name] for parameter in parameters)
    assert described(doc) == parameters or sorted(described(doc)) == sorted(parameters)


def described(doc):
    """The arguments that a docstring says something of."""
    section = doc.split("Arguments:\n", 1)[-1].split("\n\n", 1)[0] if "Arguments:\n" in doc else ""
    indent = len(section) - len(section.lstrip())
    lines = [line[indent:] for line in section.splitlines() if line[indent : indent + 1].strip()]
    return [re.match(r"(\w+)( \(or \w+\))?: \S", line).group(1) for line in lines]


PUBLIC = {name: member for name, member in {**OTHERS, **PLAIN}.items()
          if not inspect.isclass(member) and "calling" not in name}


@pytest.mark.parametrize("name", PUBLIC)
def test_every_other_function_says_its_arguments_and_an_example(name):
    doc = inspect.getdoc(PUBLIC[name])
    assert ">>> " in doc
    if name in PLAIN:  # pybind11 says the arguments in the first line
        inside = doc.split("\n")[0]
        parameters = re.findall(r"(\w+): ", inside)
    else:
        parameters = list(inspect.signature(PUBLIC[name]).parameters)
    assert described(doc) == parameters


@pytest.mark.parametrize("name", OTHERS)
def test_every_public_function_has_a_docstring(name):
    assert EVERYTHING[name].__doc__


@pytest.mark.skipif(shutil.which("mypy") is None, reason="mypy is not installed")
@pytest.mark.parametrize("what", ["package", "example", "wrong"])
def test_mypy_accepts_package_and_example_and_finds_mistakes(what, tmp_path):
    files = {"package": [str(PACKAGE)],
             "example": [str(pathlib.Path(__file__).parent / "typed_example.py")],
             "wrong": [str(tmp_path / "wrong.py")]}[what]
    if what == "wrong":
        (tmp_path / "wrong.py").write_text(
            "import fenestra as fn\n"
            "fn.conv2d([1.0], [1.0], stride='two')\n"
            "fn.grad(3)\n"
            "y: fn.Tensor = fn.max_pool2d([1.0], 2, return_indices=True)\n"
            "fn.nn.Conv(3, 4, kernal=3)\n"
            "fn.nn.Conv(3, 4, bias='no')\n"
            "fn.nn.lenet(depth=3)\n")
    result = subprocess.run(
        [shutil.which("mypy"), "--strict", "--cache-dir", str(tmp_path / "cache"), "--python-executable",
         sys.executable, *files],
        capture_output=True, text=True, env={"MYPYPATH": str(PACKAGE.parent), "PATH": "/usr/bin:/bin"},
        cwd=tmp_path)
    if what == "wrong":
        assert result.stdout.count("error:") == 6, result.stdout
    else:
        assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.skipif(shutil.which("mypy") is None, reason="mypy is not installed")
def test_the_stubs_are_what_the_module_is(tmp_path):
    # Types that only stubs have; and pybind11's classes have a metaclass and constructors of theirs.
    allowed = r"fenestra\._core\.((Bool|Int)Array|(Integer|Tensor)Like|SupportsDLPack|Tensor|_Tape|_Trace|(Indices|_Program|_[A-Z][A-Za-z]*)(\..*)?)"
    (tmp_path / "allowed").write_text(allowed + "\n")
    result = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "fenestra._core", "--concise", "--allowlist",
         str(tmp_path / "allowed")],
        capture_output=True, text=True, cwd=tmp_path,
        env={"MYPYPATH": str(PACKAGE.parent), "PYTHONPATH": str(PACKAGE.parent), "PATH": "/usr/bin:/bin"} | SANITIZER)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_stubs_name_what_the_module_has():
    stub = (PACKAGE / "_core.pyi").read_text()
    for line in _core._stubs.values():
        assert line.split("(")[0] + "(" in stub
    public = {name for name in vars(_core) if not name.startswith("_")}
    missing = {name for name in public if f"def {name}(" not in stub and f"class {name}" not in stub}
    assert not missing
    members = {name for name in vars(fn.Tensor) if not name.startswith("_")}
    assert not {name for name in members if f"def {name}(" not in stub}
    assert (PACKAGE / "py.typed").exists()
