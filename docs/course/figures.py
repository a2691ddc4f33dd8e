#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""figures.py - computes the figures of `rondo bench --json` anew from its samples, and says how.

    figures.py FILE [BYTES]      BYTES: only rows of this size

Ends with status 1 if a figure of the file is another one.
"""
import json
import math
import statistics
import sys

GIVEN = ("all_gather", "reduce_scatter", "all_to_all", "gather", "scatter")  # a rank keeps 1/n of these


def busbw_factor(collective, ranks):
    """What a rank moves over its link, in vectors, where links join two ranks each: lesson 4."""
    if collective == "all_reduce":
        return 2 * (ranks - 1) / ranks
    return (ranks - 1) / ranks if collective in GIVEN else 1


def interval(ratios):
    """The k-th least and the k-th largest enclose the true median unless fewer than k are on one side of it, and each
    is there with probability 1/2. k is the largest one that leaves 95 %."""
    n = len(ratios)

    def outside(k):
        return 2 * sum(math.comb(n, i) for i in range(k)) / 2 ** n
    k = max([k for k in range(1, n // 2 + 1) if outside(k) <= 0.05], default=1)
    return sorted(ratios)[k - 1], sorted(ratios)[n - k], 1 - outside(k)


def beside_first(rows):
    """Each row and that of the first library it took turns with, which comes before those of the others."""
    first = None
    for row in rows:
        first = row if row["library"] == rows[0]["library"] else first
        yield row, first


def figures_of(row, first):
    """(name in the file, value, how) of each figure."""
    rounds = sorted(row["rounds_us"])
    middle, quarter = statistics.median(rounds), len(rounds) // 4
    factor = busbw_factor(row["collective"], row["ranks"])
    algbw = row["bytes"] / row["median_us"] / 1e3
    yield "algbw_GBps", algbw, f"{row['bytes']} B / {row['median_us']:.4g} us"
    yield "busbw_GBps", algbw * factor, f"algbw * {factor:.4g}"
    yield "min_us", min(row["fastest_us"]), "the fastest batch of all rounds"
    yield "spread", (rounds[-1 - quarter] - rounds[quarter]) / middle, "(third quartile - first) / median of rounds"
    if row is not first and first["available"]:
        ratios = [theirs / ours for theirs, ours in zip(row["rounds_us"], first["rounds_us"])]
        low, high, confidence = interval(ratios)
        yield "ratio", row["median_us"] / first["median_us"], f"{row['median_us']:.4g} us / {first['median_us']:.4g} us"
        yield "ratio_low", low, "of the ratios of rounds, which took turns: " + " ".join(f"{r:.3g}" for r in ratios)
        yield "ratio_high", high, "likewise"
        yield "ratio_confidence", confidence, "1 - 2 P(B < k), B binomial with n rounds and 1/2"


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        result = json.load(file)
    wanted = sys.argv[2:]
    rows = [(row, first) for row, first in beside_first(result["rows"])
            if row["available"] and (not wanted or str(row["bytes"]) in wanted)]
    wrong = 0
    for row, first in rows:
        print(f"{row['library']}, {row['collective']} of {row['bytes']} bytes over {row['ranks']} ranks")
        for name, value, how in figures_of(row, first):
            right = math.isclose(value, row[name], rel_tol=1e-3, abs_tol=1e-9)
            wrong += not right
            print(f"  {name:17} {value:10.4g}  = {how}" + ("" if right else f"; the file says {row[name]}"))
    print(f"{len(rows)} rows, {wrong} figures are not what the samples give")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
