# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel for pip (PEP 517), with CMake and for the Python that runs pip.

The environment variable CMAKE_ARGS has further arguments of CMake. Without a network, pip needs
CMake, a compiler and pybind11 of the system.
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile

import make_wheel

ROOT = pathlib.Path(__file__).resolve().parents[2]
OLDEST_CMAKE = (3, 25)
SWITCHES = (
    "-DCMAKE_BUILD_TYPE=Release",
    "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG",
    "-DOMNIBAL_BUILD_WHEEL=ON",
    "-DOMNIBAL_BUILD_BENCH=OFF",
    "-DOMNIBAL_BUILD_DOCS=OFF",
    "-DOMNIBAL_BUILD_EXAMPLES=OFF",
    "-DOMNIBAL_BUILD_TESTS=OFF",
    "-DOMNIBAL_INSTALL=OFF",
    "-DOMNIBAL_WITH_CUDA=OFF",
    "-DOMNIBAL_WITH_MPI=OFF",
    "-DOMNIBAL_WITH_NCCL=OFF",
    "-DOMNIBAL_WITH_TORCH=OFF",
)


def numbers_in(text):
    """The first two numbers of a text, as a version."""
    return tuple(int(number) for number in re.findall(r"\d+", text)[:2])


def version():
    """The version of the library."""
    header = (ROOT / "include/omnibal/version.hpp").read_text()
    return ".".join(re.findall(r"OMNIBAL_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header))


def has_cmake():
    """True if there is a CMake that is not too old."""
    if not shutil.which("cmake"):
        return False
    printed = subprocess.run(["cmake", "--version"], stdout=subprocess.PIPE, check=True).stdout
    return numbers_in(printed.decode()) >= OLDEST_CMAKE


def pybind11_folder():
    """The folder of a pybind11 that supports this Python, or None."""
    folders = []
    try:
        import pybind11

        folders.append(pybind11.get_include())
    except ImportError:
        pass
    oldest = {12: (2, 11), 13: (2, 13)}.get(sys.version_info[1], (2, 10))
    if sys.version_info >= (3, 14):
        oldest = (3, 0)
    for folder in folders + ["/usr/local/include", "/usr/include"]:
        header = pathlib.Path(folder, "pybind11/detail/common.h")
        if header.exists():
            text = header.read_text()
            found = re.findall(r"#\s*define PYBIND11_VERSION_M(?:AJOR|INOR) (\d+)", text)
            if numbers_in(" ".join(found)) >= oldest:
                return folder
    return None


def check_tools():
    """Says what is missing, and how to get it."""
    missing = []
    if not has_cmake():
        missing.append("CMake %d.%d or later: pip install cmake" % OLDEST_CMAKE)
    compilers = [*shlex.split(os.environ.get("CXX", ""))[:1], "c++", "g++", "clang++"]
    if not any(map(shutil.which, compilers)):
        missing.append("a C++20 compiler, g++ 12 or clang++ 14 or later: apt-get install g++")
    if not pathlib.Path(sysconfig.get_path("include"), "Python.h").exists():
        missing.append("Python.h of %s: apt-get install python3-dev" % sys.executable)
    if pybind11_folder() is None:
        missing.append("pybind11 for this Python: pip install pybind11")
    if missing:
        raise SystemExit("omnibal: the build needs\n" + "\n".join("  " + one for one in missing))


def get_requires_for_build_wheel(config_settings=None):
    """What pip gets for the build: only what the system does not have."""
    needed = [] if has_cmake() else ["cmake>=%d.%d" % OLDEST_CMAKE]
    return needed if pybind11_folder() else needed + ["pybind11"]


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """Writes the metadata, for which nothing is compiled."""
    info = pathlib.Path(metadata_directory, "omnibal-%s.dist-info" % version())
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text(make_wheel.METADATA.format(version=version()))
    (info / "WHEEL").write_text(make_wheel.WHEEL.format(tag=make_wheel.tag()))
    return info.name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Compiles the package in a folder of its own and writes the wheel."""
    check_tools()
    with tempfile.TemporaryDirectory(prefix="omnibal-") as build:
        configure = ["cmake", "-S", str(ROOT), "-B", build, *SWITCHES]
        configure.append("-DOMNIBAL_PYTHON=" + sys.executable)
        configure.append("-DOMNIBAL_PYBIND11_INCLUDE_DIR=" + pybind11_folder())
        configure += shlex.split(os.environ.get("CMAKE_ARGS", ""))
        jobs = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL") or str(os.cpu_count() or 1)
        compile_all = ["cmake", "--build", build, "--target", "omnibal_python_wheel"]
        for command in (configure, compile_all + ["--parallel", jobs]):
            if subprocess.run(command).returncode != 0:
                raise SystemExit("omnibal: this command failed: " + shlex.join(command))
        (wheel,) = pathlib.Path(build, "dist").glob("*.whl")
        shutil.copy(wheel, wheel_directory)
    return wheel.name
