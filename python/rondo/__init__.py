# SPDX-License-Identifier: BSD-3-Clause
"""rondo - collective communication between ranks, for arrays of Python.

    import numpy, rondo
    comm = rondo.init()                        # started by: rondo run -n 4 python program.py
    x = numpy.full(1000, comm.rank, "float32")
    comm.all_reduce(x)                         # every rank has the sum

docs/python.md is the guide, rondo.Communicator has the calls, include/rondo/rondo.h the contract of each.
"""
from ._abi import Collective, Op, Result, Type
from ._library import lib as _lib
from .communicator import Communicator, init, join, join_running, open_all, unique_id
from .errors import (Aborted, Error, InternalError, InvalidArgument, Mismatch, OutOfMemory, PeerFailed, SystemRefused,
                     Timeout, Unauthenticated, Unsupported)
from .groups import Group, group
from .memory import Registration, empty
from .operations import Operation
from .p2p import ANY_SOURCE, ANY_TAG, P2P, Envelope, Transfer
from .streams import Event, Stream
from .tracing import span

__version__ = _lib.version().decode()

__all__ = ["ANY_SOURCE", "ANY_TAG", "Aborted", "Collective", "Communicator", "Envelope", "Error", "Event", "Group",
           "InternalError", "InvalidArgument", "Mismatch", "Op", "Operation", "OutOfMemory", "P2P", "PeerFailed",
           "Registration", "Result", "Stream", "SystemRefused", "Timeout", "Transfer", "Type", "Unauthenticated",
           "Unsupported", "empty", "group", "init", "join", "join_running", "open_all", "span",
           "unique_id"]
