#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""like_torchrun.py - starts and restarts ranks as torchrun's elastic agents do, where there is no torch.

Usage: like_torchrun.py [--nodes N] [--ranks N] [--max-restarts N] [--away SECONDS] PROGRAM [ARGUMENTS...]

Nodes are agents, here all on this host, each with as many ranks. When a rank fails, its agent ends the other ranks of
its node, counts a restart, and seeks a new rendezvous; the agents of other nodes notice, and end theirs without
counting. Then all start again with numbers of their own: WORLD_SIZE, RANK and GROUP_RANK may be others,
TORCHELASTIC_RESTART_COUNT is that of each agent, and MASTER_PORT, where the store of the first agent listens, stays.
--away: the node of the rank that failed is missing for that long, so the others begin without it, and once more when it
is back. Each start is said on stderr.
"""
import argparse
import os
import signal
import socket
import subprocess
import sys
import time

PATIENCE = 30  # seconds from SIGTERM to SIGKILL, as there


class Node:
    def __init__(self, restarts):
        self.allowed = self.left = restarts
        self.ranks = []
        self.back_at = 0.0  # it is missing until then

    def start(self, program, world):
        self.ranks = [subprocess.Popen(program, env={**os.environ, **world, **{
            "LOCAL_RANK": str(local), "RANK": str(int(world["GROUP_RANK"]) * int(world["LOCAL_WORLD_SIZE"]) + local),
            "ROLE_RANK": str(int(world["GROUP_RANK"]) * int(world["LOCAL_WORLD_SIZE"]) + local),
            "TORCHELASTIC_RESTART_COUNT": str(self.allowed - self.left)}}, start_new_session=True)
            for local in range(int(world["LOCAL_WORLD_SIZE"]))]

    def failed(self):
        return any(rank.poll() not in (None, 0) for rank in self.ranks)

    def through(self):
        return all(rank.poll() == 0 for rank in self.ranks)

    def stop(self):
        for rank in self.ranks:
            if rank.poll() is None:
                rank.send_signal(signal.SIGTERM)
        until = time.monotonic() + PATIENCE
        for rank in self.ranks:
            try:
                rank.wait(max(0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                rank.kill()
                rank.wait()
        self.ranks = []


def start_all(nodes, ranks, port, program):
    here = [node for node in nodes if time.monotonic() >= node.back_at]
    size = str(len(here) * ranks)
    for number, node in enumerate(here):
        node.start(program, {
            "GROUP_RANK": str(number), "GROUP_WORLD_SIZE": str(len(here)), "LOCAL_WORLD_SIZE": str(ranks),
            "WORLD_SIZE": size, "ROLE_WORLD_SIZE": size, "ROLE_NAME": "default", "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port), "TORCHELASTIC_RUN_ID": f"run-{port}", "TORCHELASTIC_USE_AGENT_STORE": "True",
            "TORCHELASTIC_MAX_RESTARTS": str(node.allowed), "OMP_NUM_THREADS": "1"})
    print(f"like_torchrun: {size} ranks on {len(here)} nodes", file=sys.stderr, flush=True)
    return here


def watch(nodes, here):
    """Until the next start. Returns the exit status, or None."""
    while True:
        missing = [node for node in nodes if node not in here]
        failed = [node for node in here if node.failed()]
        if all(node.through() for node in here):
            return 0
        if failed or any(time.monotonic() >= node.back_at for node in missing):
            for node in here:
                node.stop()
            for node in failed:
                node.left -= 1
                node.back_at = time.monotonic() + asked.away
            return 1 if any(node.left < 0 for node in failed) else None
        time.sleep(0.05)


def main():
    nodes = [Node(asked.max_restarts) for _ in range(asked.nodes)]
    with socket.socket() as store:
        store.bind(("127.0.0.1", 0))
        store.listen()
        status = None
        while status is None:
            if all(time.monotonic() < node.back_at for node in nodes):
                time.sleep(0.05)
                continue
            status = watch(nodes, start_all(nodes, asked.ranks, store.getsockname()[1], asked.program))
    return status


parser = argparse.ArgumentParser()
parser.add_argument("--nodes", type=int, default=1)
parser.add_argument("--ranks", type=int, default=4, help="of each node")
parser.add_argument("--max-restarts", type=int, default=3)
parser.add_argument("--away", type=float, default=0)
parser.add_argument("program", nargs=argparse.REMAINDER)
asked = parser.parse_args()
sys.exit(main())
