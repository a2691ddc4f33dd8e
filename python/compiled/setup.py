# SPDX-License-Identifier: BSD-3-Clause
"""Builds rondo-torch against the torch and the rondo-comm of the Python that runs this."""
import importlib.util
import os
import pathlib

import torch
from setuptools import Extension, setup
from torch.utils import cpp_extension

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = os.environ.get("RONDO_INCLUDE", HERE.parent.parent / "include")
SOURCES = ["backend.cc", "messages.cc", "module.cc", "moving.cc", "operators.cc", "reductions.cc", "tensors.cc",
           "work.cc"]
HEADERS = ["backend.h", "messages.h", "tensors.h", "work.h"]


def library():
    """librondo in the installed package; what is loaded at run time is found by its name."""
    package = importlib.util.find_spec("rondo")
    if package is None:
        raise SystemExit("rondo-torch needs rondo-comm: install its wheel first (./dev wheel)")
    return os.path.join(package.submodule_search_locations[0], "librondo.so")


setup(version="0.1.0+torch" + torch.__version__.replace("+", "."), packages=["rondo_torch"],
      install_requires=["rondo-comm", f"torch=={torch.__version__}"],
      ext_modules=[Extension("rondo_torch._backend", SOURCES, depends=HEADERS, language="c++",
                             include_dirs=[str(INCLUDE)], library_dirs=cpp_extension.library_paths(),
                             libraries=["torch_python", "torch_cpu", "torch", "c10"],
                             extra_compile_args=["-std=c++20", "-O2", "-g0", "-fvisibility=hidden",
                                                 *(f"-isystem{path}" for path in cpp_extension.include_paths())],
                             extra_link_args=[library()])])
