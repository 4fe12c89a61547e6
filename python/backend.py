"""What pip calls to build the package (PEP 517): configures and builds with CMake, packs a wheel.

Uses nothing beyond the standard library, CMake and a compiler. `--config-settings build-dir=DIR`
builds in DIR (an existing build is brought up to date), else in build/pip.
"""

import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def _version():
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    return re.search(r"project\(fenestra VERSION ([\d.]+)", text).group(1)


def _metadata():
    summary = "Differentiable sliding-window operators in any dimension, on NumPy arrays"
    return (
        f"Metadata-Version: 2.1\nName: fenestra\nVersion: {_version()}\nSummary: {summary}\n"
        "Requires-Python: >=3.9\nRequires-Dist: numpy\n"
    )


def _tag():
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return f"{python}-{python}-{platform}"


def _build(settings):
    """The folder with the finished package."""
    build = pathlib.Path((settings or {}).get("build-dir", ROOT / "build" / "pip")).resolve()
    if not (build / "CMakeCache.txt").exists():
        options = ["TOOL", "TESTS", "EXAMPLES"]
        subprocess.run(
            ["cmake", "-S", ROOT, "-B", build, "-DCMAKE_BUILD_TYPE=Release", "-DFENESTRA_INSTALL=OFF",
             "-DFENESTRA_BUILD_PYTHON=ON", f"-DPython_EXECUTABLE={sys.executable}",
             *(f"-DFENESTRA_BUILD_{option}=OFF" for option in options)],
            check=True,
        )  # fmt: skip
    jobs = str(os.cpu_count() or 1)
    subprocess.run(
        ["cmake", "--build", build, "--target", "fenestra_python_package", "--parallel", jobs],
        check=True,
    )
    return build / "python" / "fenestra"


def get_requires_for_build_wheel(config_settings=None):
    return []


def get_requires_for_build_sdist(config_settings=None):
    return []


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    info = pathlib.Path(metadata_directory) / f"fenestra-{_version()}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(_metadata(), encoding="utf-8")
    return info.name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    package = _build(config_settings)
    info = f"fenestra-{_version()}.dist-info"
    name = f"fenestra-{_version()}-{_tag()}.whl"
    files = {
        f"fenestra/{path.name}": path.read_bytes()
        for path in sorted(package.iterdir())
        if path.is_file() and path.suffix in (".py", ".pyi", ".so", ".typed")
    }
    files[f"{info}/METADATA"] = _metadata().encode()
    files[f"{info}/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    files[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: fenestra\nRoot-Is-Purelib: false\nTag: {_tag()}\n"
    ).encode()
    record = ""
    for path, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(data)}\n"
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path)
            entry.external_attr = (0o755 if path.endswith(".so") else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
    return name


def build_sdist(sdist_directory, config_settings=None):
    base = f"fenestra-{_version()}"
    name = f"{base}.tar.gz"
    with tarfile.open(pathlib.Path(sdist_directory) / name, "w:gz") as archive:
        for entry in sorted(ROOT.iterdir()):
            if entry.name not in ("build", ".git"):
                archive.add(entry, f"{base}/{entry.name}")
    return name
