#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""bench_net.py - `rondo bench` over hosts that are network namespaces, beside what iperf3 gets out of the same links.
Usage: bench_net.py RONDO HOSTS RANKS_PER_HOST [RATE|-] [options of rondo bench ...]
RATE limits every interface, as tbf writes it (10gbit). `--algo ring,hierarchy` compares algorithms: they run in turns,
three times, and medians and ratios are printed; `--security none,authentic,secret` likewise.
`./dev bench-net` builds, and runs this."""
import csv
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from hosts import INTERFACE, Hosts, why_not

ENTER = """#!/bin/sh
host=$1
shift
exec ip netns exec {prefix}$host unshare --uts sh -c 'hostname "$0" && exec "$@"' "host$host" "$@"
"""


def iperf3(hosts, both_ways):
    """GB/s from host 0 to host 1, of each direction if both are busy; None if it is not installed."""
    if not shutil.which("iperf3"):
        return None
    server = subprocess.Popen([*hosts.inside(1), "iperf3", "-s", "-1"], stdout=subprocess.DEVNULL)
    while ":5201 " not in hosts.output(1, ["ss", "-Htln"]):
        time.sleep(0.05)
    command = [*hosts.inside(0), "iperf3", "-c", hosts.address(1), "-t", "2", "-J"]
    out = subprocess.run(command + (["--bidir"] if both_ways else []), check=True, capture_output=True, text=True)
    server.wait()
    end = json.loads(out.stdout)["end"]
    rates = [end["sum_received"]["bits_per_second"]]
    if both_ways:
        rates.append(end["sum_received_bidir_reverse"]["bits_per_second"])
    return min(rates) / 8e9


def in_turns(command, kind, names, folder, rounds=3):
    """Runs of `rondo bench` with one algorithm or kind of security each; times of the first relative to them."""
    table = os.path.join(folder, "csv")
    times = {}
    for name in names * rounds:
        how = ["--algo", name] if kind == "--algo" else []
        variables = {**os.environ, "RONDO_SECURITY": name} if kind == "--security" else None
        subprocess.run([*command, *how, "--csv", table], check=True, stdout=subprocess.DEVNULL, env=variables)
        with open(table, encoding="utf-8") as file:
            for row in csv.DictReader(file):
                times.setdefault(int(row["bytes"]), {}).setdefault(name, []).append(float(row["median_us"]))
    print(f"# us, medians of {rounds} runs in turns; {names[0]} / others, of medians and of the quickest")
    for size, of in sorted(times.items()):
        middle = {name: statistics.median(of[name]) for name in names}
        ratios = [f"{middle[names[0]] / middle[name]:.2f} {min(of[names[0]]) / min(of[name]):.2f}"
                  for name in names[1:]]
        print(f"{size:>10}", *(f"{name} {middle[name]:.0f}" for name in names), "|", *ratios, flush=True)
    return 0


def main():
    rondo, count, each = os.path.abspath(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    rate = sys.argv[4] if len(sys.argv) > 4 and sys.argv[4] != "-" else None
    options = sys.argv[5:] or ["--bytes", "1K:64M", "--factor", "4", "--vs", "openmpi,gloo"]
    kind, names = "", []
    for each_kind in ("--algo", "--security"):
        if each_kind in options and (each_kind == "--security" or "," in options[options.index(each_kind) + 1]):
            at = options.index(each_kind)
            kind, names = each_kind, options[at + 1].split(",")
            del options[at:at + 2]
    reason = why_not()
    if reason:
        print(f"bench_net: {reason}", file=sys.stderr)
        return 1
    with Hosts(count, rate) as hosts, tempfile.TemporaryDirectory() as folder:
        enter = os.path.join(folder, "enter")
        with open(enter, "w", encoding="utf-8") as file:
            file.write(ENTER.format(prefix=hosts.prefix))
        os.chmod(enter, 0o700)
        for both_ways in () if names else (False, True):
            got = iperf3(hosts, both_ways)
            if got is not None:
                print(f"# iperf3 {'both ways at once, each' if both_ways else 'one way'}: {got:.3f} GB/s", flush=True)
        command = [rondo, "bench", "all_reduce", "-n", str(count * each), "--hosts", str(count), "--enter", enter,
                   "--meet", f"{hosts.address(0)}:{hosts.port}", "--interface", INTERFACE, *options]
        if names:
            return in_turns(command, kind, names, folder)
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
