# SPDX-License-Identifier: BSD-3-Clause
"""Calls in the background: compute while ranks exchange. rondo run -n 3 python examples/python/background.py"""
import asyncio

import numpy
import rondo


async def main() -> None:
    with rondo.init() as comm, rondo.Stream() as stream:
        gradients = [rondo.empty(100_000) for _ in range(4)]  # in memory that peers map: no staging copy
        events = []
        for layer, gradient in enumerate(gradients):
            gradient[:] = layer + comm.rank  # the backward pass of a layer
            events.append(comm.all_reduce(gradient, op="avg", stream=stream))
        for layer, event in enumerate(events):
            average = await event
            assert numpy.all(average == layer + (comm.size - 1) / 2)
        print(f"rank {comm.rank}: {len(events)} averages")


asyncio.run(main())
