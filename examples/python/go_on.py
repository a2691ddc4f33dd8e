# SPDX-License-Identifier: BSD-3-Clause
"""A rank dies, the others go on without it. rondo run -n 3 python examples/python/go_on.py"""
import os

import numpy
import rondo

comm = rondo.init()
x = numpy.ones(1000)
if comm.rank == 1:
    comm.barrier()
    os._exit(0)  # it ends without a word
comm.barrier()
try:
    comm.all_reduce(x)
except rondo.PeerFailed as error:
    print(f"rank {comm.rank}: {error}")
    _, failed = comm.agree()
    assert failed == (1,)
    with comm.shrink() as left:
        x[:] = 1
        left.all_reduce(x)
        print(f"rank {left.rank} of {left.size}: {x[0]:g}")
comm.close()
