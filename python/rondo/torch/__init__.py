# SPDX-License-Identifier: BSD-3-Clause
"""The backend `rondo` of torch.distributed, for tensors on the CPU: init_process_group("rondo") is all.

torch finds it by the entry point torch.distributed.backends of the installed wheel, without an import. Without
the wheel (PYTHONPATH), call rondo.torch.register(). It is Python alone, for torch from 2.15 on, where torch lets
backends be written in Python. Where the package rondo-torch is installed and fits, that is taken, which is compiled for
one version of torch: it costs less per call. TORCH_RONDO=python or compiled says which one.
"""
from __future__ import annotations

import logging
import os
from datetime import timedelta
from typing import Any, Callable

OLDEST = (2, 15)


def compiled_package() -> Any:
    """The package rondo-torch; None if it is not installed, does not fit or is not wanted."""
    wanted = os.environ.get("TORCH_RONDO", "")
    if wanted not in ("", "python", "compiled"):
        raise ValueError(f"TORCH_RONDO is {wanted!r}; it may be python or compiled.")
    if wanted == "python":
        return None
    try:
        import rondo_torch
        return rondo_torch
    except ModuleNotFoundError as error:
        if wanted == "compiled" or error.name != "rondo_torch":
            raise
    except ImportError as error:
        if wanted == "compiled":
            raise
        logging.getLogger(__name__).warning("rondo: %s. The backend in Python is used.", error)
    return None


def _creator() -> Callable[[Any], Any]:
    """What makes a process group's backend of c10d's DistributedBackendOptions."""
    compiled = compiled_package()
    if compiled is None:
        from .backend import create
        return create
    from .meeting import name_of

    def create_compiled(options: Any, _backend_options: Any = None) -> Any:
        timeout = options.timeout if isinstance(options.timeout, timedelta) else timedelta(seconds=options.timeout)
        store, rank, size = options.store, options.group_rank, options.group_size
        return compiled.create(store, rank, size, timeout,
                               name_of(store, "world", rank, size, timeout.total_seconds(), "C++"))
    return create_compiled


def kind() -> str:
    """Which of both process groups get: "compiled" or "python"."""
    return "python" if compiled_package() is None else "compiled"


def register() -> None:
    """Tell torch.distributed of the backend. A second time does nothing."""
    import torch
    import torch.distributed as dist

    if not dist.is_available() or "RONDO" in dist.Backend._plugins:
        return
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if version < OLDEST and compiled_package() is None:
        raise ImportError(f"The backend rondo needs torch {OLDEST[0]}.{OLDEST[1]} or later, this is "
                          f"{torch.__version__}: only from there on can backends be written in Python.")
    dist.Backend.register_backend("rondo", _creator(), extended_api=True, devices=["cpu"])


def __getattr__(name: str) -> Any:
    """rondo.torch.ddp_hook, when it is asked for: what is registered has to be there without torch.ops.rondo."""
    if name == "ddp_hook":
        from .hooks import ddp_hook
        return ddp_hook
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
