#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""ring.py - an all-reduce in a ring, as a plan for any number of ranks above 1: ring.py RANKS > ring.json

The vector is cut into a chunk for each rank. On the first lap each chunk collects the shares of all ranks; on the
second lap the finished chunks go round to everybody.
"""
import json
import sys

n = int(sys.argv[1])


def steps(rank):
    left, right = {"slot": (rank - 1) % n}, {"slot": (rank + 1) % n}

    def share(chunk):
        return {"input": 0, "first": chunk % n}

    def place(chunk):
        return {"output": 0, "first": chunk % n}

    yield {"do": "combine", "from": [share(rank)], "to": [right]}
    for s in range(1, n - 1):
        yield {"do": "combine", "from": [left, share(rank - s)], "to": [right]}
    yield {"do": "combine", "from": [left, share(rank + 1)], "to": [place(rank + 1), right], "finish": True}
    for s in range(n - 2):
        yield {"do": "combine", "from": [left], "to": [place(rank - s), right]}
    yield {"do": "combine", "from": [left], "to": [place(rank + 2)]}


plans = [{"rank": rank, "programs": [list(steps(rank))]} for rank in range(n)]
print(json.dumps({"format": "rondo plan 1", "collective": "all_reduce", "algorithm": "ring_py", "ranks": n, "parts": n,
                  "message_atoms": 1, "plans": plans}, indent=1))
