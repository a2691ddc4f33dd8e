#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""pairs.py - an all-reduce of four ranks in two exchanges, as a plan: pairs.py > pairs.json

Each rank adds up its input and that of rank ^ 1, then that sum and the one of rank ^ 2, so all have all four.
"""
import json


def steps(rank):
    first, second = {"slot": rank ^ 1}, {"slot": rank ^ 2}
    mine, sum_of_two = {"input": 0}, {"output": 0}

    def in_rank_order(own, other, peer):
        return [own, other] if rank < peer else [other, own]

    return [{"do": "combine", "from": [mine], "to": [first]},
            {"do": "combine", "from": in_rank_order(mine, first, rank ^ 1), "to": [sum_of_two, second]},
            {"do": "combine", "from": in_rank_order(sum_of_two, second, rank ^ 2), "to": [sum_of_two], "finish": True}]


def lines(rank):
    return ",\n".join("   " + json.dumps(step) for step in steps(rank))


print('{"format": "rondo plan 1", "collective": "all_reduce", "algorithm": "pairs", "ranks": 4, "message_atoms": 1,')
print(' "plans": [')
print(",\n".join(f'  {{"rank": {rank}, "programs": [[\n{lines(rank)}]]}}' for rank in range(4)) + "]}")
