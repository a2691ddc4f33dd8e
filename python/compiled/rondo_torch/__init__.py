# SPDX-License-Identifier: BSD-3-Clause
"""The compiled backend `rondo` of torch.distributed: rondo.torch takes it where this package is installed.

It is built against one version of torch, whose C++ classes it extends: the local part of this package's version names
it, and another torch is refused before anything is loaded.
"""
from importlib import metadata

import rondo  # loads librondo, which ours is linked with
import torch

BUILT_FOR = metadata.version("rondo-torch").partition("+torch")[2]
if BUILT_FOR != torch.__version__.replace("+", "."):
    raise ImportError(f"rondo-torch is built for torch {BUILT_FOR}, but this is {torch.__version__}: build it again "
                      "(python/compiled/README.md), or remove it")

from . import _backend  # noqa: E402

if _backend.RONDO // 100 != rondo._library.lib.version_number() // 100:
    raise ImportError(f"rondo-torch is built for Rondo {_backend.RONDO}, but librondo is {rondo.__version__}: build it "
                      "again")

create, set_title, PATH = _backend.create, _backend.set_title, _backend.__file__
