# SPDX-License-Identifier: BSD-3-Clause
"""The first program: every rank has the sum of all. rondo run -n 3 python examples/python/all_reduce.py"""
import numpy
import rondo

with rondo.init() as comm:
    x = numpy.array([1, 2], "float32")
    comm.all_reduce(x)
    print(f"rank {comm.rank} of {comm.size}: {x[0]:g} {x[1]:g}")
