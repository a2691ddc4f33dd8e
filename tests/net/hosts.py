# SPDX-License-Identifier: BSD-3-Clause
"""hosts.py - hosts that are not there: network namespaces on one bridge, each with an interface of its own, and ranks
that run in them. Everything is gone when the `with` block ends. Needs the right to make namespaces (root)."""
import os
import secrets
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases  # noqa: E402  tests/cases.py

INTERFACE = "net0"
PORT = 4711
PATIENCE = 200  # seconds, on a busy machine


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def why_not():
    """None if namespaces can be made here, else the reason."""
    name = f"rondo-{os.getpid()}-try"
    try:
        ip("netns", "add", name)
        try:
            ip("-n", name, "link", "add", "name", "try0", "type", "veth", "peer", "name", "try1")
            ip("-n", name, "link", "add", "name", "try2", "type", "bridge")
        finally:
            ip("netns", "del", name)
    except (OSError, subprocess.CalledProcessError) as error:
        return "no network namespaces here: " + (getattr(error, "stderr", "") or str(error)).strip()
    return None


class Rank:
    """A process that is one rank of a job."""

    def __init__(self, number, host, process):
        self.number, self.host, self.process = number, host, process
        self.out = ""

    def wait(self, seconds):
        """Its exit status, negative for a signal; None if it is still running after so long."""
        try:
            self.out += self.process.communicate(timeout=seconds)[0]
        except subprocess.TimeoutExpired:
            return None
        return self.process.returncode


class Hosts:
    """`count` hosts 10.77.0.1, 10.77.0.2 ... behind one switch; `rate`: of each interface, as tbf writes it."""

    def __init__(self, count, rate=None, ipv6=False):
        self.count, self.rate, self.ipv6 = count, rate, ipv6
        self.prefix = f"rondo-{os.getpid()}-"
        self.secret = secrets.token_hex(16)
        self.port = PORT
        self.ranks = []

    def name(self, host):
        return f"{self.prefix}{host}"

    def address(self, host):
        return f"fd77::{host + 1}" if self.ipv6 else f"10.77.0.{host + 1}"

    def __enter__(self):
        switch = self.name("switch")
        try:
            ip("netns", "add", switch)
            ip("-n", switch, "link", "add", "name", "switch", "type", "bridge", "forward_delay", "0")
            ip("-n", switch, "link", "set", "switch", "up")
            for host in range(self.count):
                self.add_host(switch, host)
        except BaseException:
            self.__exit__()
            raise
        return self

    def add_host(self, switch, host):
        name = self.name(host)
        ip("netns", "add", name)
        ip("-n", name, "link", "add", INTERFACE, "type", "veth", "peer", "name", f"port{host}", "netns", switch)
        ip("-n", switch, "link", "set", f"port{host}", "master", "switch", "up")
        length = "64" if self.ipv6 else "24"
        ip("-n", name, "address", "add", f"{self.address(host)}/{length}", "dev", INTERFACE,
           *(["nodad"] if self.ipv6 else []))
        ip("-n", name, "link", "set", "lo", "up")
        ip("-n", name, "link", "set", INTERFACE, "up")
        if self.rate:
            subprocess.run(["ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", INTERFACE, "root", "tbf", "rate",
                            self.rate, "burst", "256k", "latency", "20ms"], check=True)

    def __exit__(self, *_):
        for rank in self.ranks:
            if rank.process.poll() is None:
                rank.process.kill()
                rank.process.communicate()
        for host in [*range(self.count), "switch"]:
            subprocess.run(["ip", "netns", "del", self.name(host)], check=False, capture_output=True)

    def inside(self, host):
        return ["ip", "netns", "exec", self.name(host)]

    def output(self, host, command):
        """What a command prints that runs on a host."""
        return subprocess.run([*self.inside(host), *command], check=True, capture_output=True, text=True).stdout

    def link(self, host, state):
        ip("-n", self.name(host), "link", "set", INTERFACE, state)

    def environment(self, host, rank, size, more):
        clean = cases.clean_environment()
        where = f"[{self.address(0)}]:{self.port}" if self.ipv6 else f"{self.address(0)}:{self.port}"
        ours = {"RONDO_RANK": rank, "RONDO_SIZE": size, "RONDO_ADDRESS": where, "RONDO_SECRET": self.secret,
                "RONDO_HOST_ID": f"host {host}"}
        return {**clean, **{k: str(v) for k, v in {**ours, **more}.items()}}

    def start(self, command, each=1, **more):
        """`each` ranks on every host: 0 and 1 on the first, and so on. A job of its own each time."""
        self.port += 1
        size = each * self.count
        self.ranks = []
        for number in range(size):
            host = number // each
            process = subprocess.Popen([*self.inside(host), *command], stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, text=True,
                                       env=self.environment(host, number, size, more))
            self.ranks.append(Rank(number, host, process))
        return self.ranks

    def run(self, command, each=1, seconds=PATIENCE, **more):
        """What the ranks printed, one text per rank; an AssertionError if any failed or took too long."""
        ranks = self.start(command, each, **more)
        until = time.monotonic() + seconds
        for rank in ranks:
            status = rank.wait(max(0.1, until - time.monotonic()))
            if status is None:
                rank.process.send_signal(signal.SIGABRT)
            assert status is not None, f"rank {rank.number} did not end in {seconds} s"
        wrong = [f"rank {r.number}: status {r.process.returncode}: {r.out}" for r in ranks if r.process.returncode]
        assert not wrong, "\n".join(wrong)
        return [rank.out for rank in ranks]


def run_tests(tests, chosen):
    """All of them, or those of the chosen names, as TAP; skipped where there are no namespaces. 1 if any failed."""
    reason = why_not()
    wanted = [test for test in tests if not chosen or test.__name__ in chosen]
    return cases.run([(test.__name__, (lambda: reason) if reason else test) for test in wanted])
