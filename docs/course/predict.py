#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""predict.py - what the cost model says of a collective on this machine, beside what it takes.

    predict.py COLLECTIVE RANKS ALGORITHM,... BYTES,...      such as: predict.py all_reduce 2 ring,tree 8,64K,1M

An algorithm that ends in .json is a plan of yours. The three numbers of the model are those that the library itself
measures when a communicator opens; `rondo explain --costs` computes the time of each step with them.
"""
import csv
import io
import json
import os
import re
import subprocess
import sys

COSTS = re.compile(r"latency ([\d.]+) us, ([\d.]+) GB/s through slots.* ([\d.]+) GB/s reduced")
SHARED_OUT = ("all_gather", "reduce_scatter", "all_to_all", "gather", "scatter")  # bytes / ranks are a block


def measure(collective, ranks, algorithm, sizes):
    """Medians in microseconds by size, and the three numbers of the model."""
    command = ["rondo", "bench", collective, "-n", ranks, "-b", sizes, "--seconds", "0.1", "--csv", "-"]
    environment = {**os.environ, "RONDO_LOG": "info"}
    if algorithm.endswith(".json"):
        environment["RONDO_ALGORITHM"] = "file:" + algorithm
    else:
        command += ["--algo", algorithm]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    costs = COSTS.search(done.stderr)
    if done.returncode or not costs:
        sys.exit(done.stderr)
    return {int(row["bytes"]): float(row["median_us"]) for row in csv.DictReader(io.StringIO(done.stdout))
            if row["library"] == "rondo"}, costs.groups()


def predict(collective, ranks, algorithm, size, costs):
    count = size // 4 // (int(ranks) if collective in SHARED_OUT else 1)
    what = ["--plan", algorithm] if algorithm.endswith(".json") else [collective, "-n", ranks, "--algo", algorithm]
    command = ["rondo", "explain", *what, "--count", str(count), "--costs", ",".join(costs), "--json", "-"]
    return 1e6 * json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["seconds"]


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    collective, ranks, algorithms, sizes = sys.argv[1:]
    runs = {algorithm: measure(collective, ranks, algorithm, sizes) for algorithm in algorithms.split(",")}
    costs = min((costs for _, costs in runs.values()), key=lambda three: float(three[0]))  # the calmest opening
    print("A message takes {} us, copying {} GB/s, adding {} GB/s on this machine.".format(*costs))
    for algorithm, (measured, _) in runs.items():
        print(f"{algorithm}\n      bytes   predicted   measured")
        for size, took in measured.items():  # what ranks can share out, which may be a few bytes less than asked for
            print(f"{size:11} {predict(collective, ranks, algorithm, size, costs):8.2f} us {took:7.2f} us")
    if int(ranks) > len(os.sched_getaffinity(0)):
        print("There are more ranks than cores: they take turns, which the model does not know of.")


if __name__ == "__main__":
    main()
