#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_net.py - jobs over several hosts, made of network namespaces. Usage: test_net.py NET_RANK [TEST...]; prints TAP.
Without the right to make namespaces everything is skipped, with the reason."""
import os
import re
import subprocess
import sys
import tempfile
import time

from hosts import PATIENCE, Hosts, run_tests

NET_RANK = os.path.abspath(sys.argv[1])
QUIET = {"RONDO_LOG": "none"}
SILENCE_IS_NO_END = {"RONDO_TCP_TIMEOUT": 1000}  # so nothing but the end of a connection tells of a death


def goes(hosts, each, what, **more):
    for text in hosts.run([NET_RANK, *what], each, **{**QUIET, **more}):
        assert text.rstrip().endswith("good"), text


def the_matrix_passes_on_two_hosts():
    with Hosts(2) as hosts:
        goes(hosts, 1, ["matrix", "5"])


def the_matrix_passes_on_four_hosts_with_two_ranks_each():
    with Hosts(4) as hosts:
        goes(hosts, 2, ["matrix", "6"])


def the_matrix_passes_over_ipv6_and_over_three_streams():
    with Hosts(3, ipv6=True) as hosts:
        goes(hosts, 1, ["matrix", "7"], RONDO_TCP_STREAMS=3)


def the_matrix_groups_and_splits_pass_when_all_is_sealed():
    for security, streams in (("authentic", 1), ("secret", 3)):
        with Hosts(3) as hosts:
            goes(hosts, 1, ["matrix", "7", "3"], RONDO_SECURITY=security, RONDO_TCP_STREAMS=streams)
            goes(hosts, 2, ["bodies"], RONDO_SECURITY=security, RONDO_TCP_STREAMS=streams)


def ranks_may_differ_in_how_many_streams_they_want():
    for rank, lines in ((0, 5), (1, 2)):  # rank 0 opens them, in the midst of calls
        wants = f'test "$RONDO_RANK" = {rank} && export RONDO_TCP_STREAMS=4; exec "$0" calls 1048576'
        with Hosts(2) as hosts:
            ranks = in_the_middle_of_calls(hosts, command=["sh", "-c", wants, NET_RANK])
            while len(hosts.output(0, ["ss", "-Htn", "state", "established"]).splitlines()) < lines:
                ended = [r.number for r in ranks if r.process.poll() is not None]
                assert not ended, f"ranks {ended} gave up when rank {rank} wanted 4"
                time.sleep(0.05)


def groups_streams_and_splits_pass_on_three_hosts():
    with Hosts(3) as hosts:
        goes(hosts, 2, ["bodies"])


def a_rank_that_computes_for_longer_than_the_patience_is_not_given_up():
    with Hosts(2) as hosts:
        goes(hosts, 1, ["sleep", "4"], RONDO_TCP_TIMEOUT=2)


def nothing_is_left_of_a_thousand_communicators():
    with Hosts(2) as hosts:
        goes(hosts, 1, ["lives", "1000"])


def a_slow_link_is_only_slow():
    with Hosts(2, rate="200mbit") as hosts:
        goes(hosts, 1, ["bodies"])


# ---- Failures ----------------------------------------------------------------------------------

def says(rank, words):
    """Waits until the rank has said them."""
    while words not in rank.out:
        line = rank.process.stdout.readline()
        assert line, f"rank {rank.number} ended: {rank.out}"
        rank.out += line


def in_the_middle_of_calls(hosts, each=1, size=1 << 20, command=(), **more):
    """Ranks that make calls without end, once all of them do."""
    ranks = hosts.start(command or [NET_RANK, "calls", str(size)], each, **{**QUIET, **more})
    for rank in ranks:
        says(rank, " calls")
    return ranks


def survivors_name(ranks, dead, words):
    """Each of the others ends with an error that has the words, a regular expression."""
    for rank in ranks:
        if rank.number in dead:
            continue
        status = rank.wait(PATIENCE)
        assert status is not None, f"rank {rank.number} was still waiting after {PATIENCE} s"
        assert status == 0, f"rank {rank.number}: status {status}: {rank.out}"
        assert re.search(words, rank.out), f"rank {rank.number}: {rank.out}"


def a_killed_rank_is_named_by_all_others():
    with Hosts(4) as hosts:
        ranks = in_the_middle_of_calls(hosts, 2, **SILENCE_IS_NO_END)
        ranks[5].process.kill()
        survivors_name(ranks, {5}, "[Rr]ank 5")


def a_host_whose_ranks_are_killed_is_named():
    with Hosts(3) as hosts:
        ranks = in_the_middle_of_calls(hosts, 2, 100, **SILENCE_IS_NO_END)
        for number in (2, 3):
            ranks[number].process.kill()
        survivors_name(ranks, {2, 3}, "[Rr]ank [23]")


def a_link_that_goes_down_is_an_error_on_every_rank():
    for size in (100, 1 << 22):
        with Hosts(3) as hosts:
            ranks = in_the_middle_of_calls(hosts, 1, size)
            hosts.link(1, "down")
            survivors_name(ranks, {1}, "[Rr]ank 1")
            survivors_name(ranks, {0, 2}, "rank [02]")


def a_stopped_rank_is_told_from_a_dead_one():
    with Hosts(2) as hosts:
        ranks = in_the_middle_of_calls(hosts, RONDO_TCP_TIMEOUT=1, RONDO_LATE=3, RONDO_LOG="warn")
        ranks[1].process.send_signal(19)
        says(ranks[0], "for rank 1 in all_reduce")
        assert ranks[0].process.poll() is None, ranks[0].out
        ranks[1].process.kill()
        survivors_name(ranks, {1}, "rank 1")


def ranks_that_wait_for_each_other_end_with_the_timeout():
    with Hosts(2) as hosts:
        ranks = hosts.start([NET_RANK, "deaf"], 1, **QUIET, RONDO_TIMEOUT=1.5)
        survivors_name(ranks, {}, r"waited (1\.[5-9]|[2-9]\.\d|\d\d+\.\d) s")


def listeners(hosts, host):
    """Ports on which ranks of a host listen."""
    text = hosts.output(host, ["ss", "-Htln"])
    return {int(line.split()[3].rsplit(":", 1)[1]) for line in text.splitlines()}


def garbage_and_silence_on_the_ports_do_no_harm():
    with Hosts(2) as hosts:
        ranks = in_the_middle_of_calls(hosts, **SILENCE_IS_NO_END)
        script = ("import os, socket, sys, time\n"
                  "held = []\n"
                  "for port in sys.argv[1:]:\n"
                  "    for bytes in (b'', b'GET / HTTP/1.0\\r\\n\\r\\n', os.urandom(64), os.urandom(100000)):\n"
                  "        line = socket.create_connection(('10.77.0.1', int(port)))\n"
                  "        try:\n"
                  "            line.sendall(bytes)\n"
                  "        except OSError:\n"
                  "            pass\n"
                  "        held.append(line)\n"
                  "for line in held:\n"
                  "    try:\n"
                  "        while line.recv(65536):\n"  # until whoever listens has had enough of it
                  "            pass\n"
                  "    except OSError:\n"
                  "        pass\n")
        ports = listeners(hosts, 0)
        assert ports, "nobody listens"
        hosts.output(1, [sys.executable, "-c", script, *map(str, ports)])
        assert all(rank.process.poll() is None for rank in ranks), "a rank ended"
        ranks[1].process.kill()
        survivors_name(ranks, {1}, "rank 1")


def an_interface_that_is_not_there_is_refused_with_those_that_are():
    with Hosts(2) as hosts:
        for rank in hosts.start([NET_RANK, "bodies"], 1, **QUIET, RONDO_INTERFACE="nothing"):
            assert rank.wait(PATIENCE) == 1, rank.out
            assert "net0 10.77.0." in rank.out or "could not take part" in rank.out, rank.out


def an_interface_can_be_chosen_by_name_range_and_exclusion():
    with Hosts(2) as hosts:
        for words in ("net", "10.77.0.0/16", "^lo,^eth"):
            goes(hosts, 1, ["sleep", "0"], RONDO_INTERFACE=words)


def a_job_is_started_by_way_of_something_like_ssh():
    with Hosts(2) as hosts, tempfile.TemporaryDirectory() as folder:
        ssh = os.path.join(folder, "ssh")
        with open(ssh, "w", encoding="ascii") as script:
            script.write('#!/bin/sh\nhost=$((${1##*.} - 1))\nexport RONDO_HOST_ID=$host\n'
                         f'exec ip netns exec {hosts.name("")}$host sh -c "$2"\n')
        os.chmod(ssh, 0o700)
        done = subprocess.run([os.environ["RUN"], "--hosts", "10.77.0.1:2,10.77.0.2:2", "--ssh", ssh, "--tag",
                               NET_RANK, "matrix", "6"], env={**os.environ, **QUIET}, capture_output=True, text=True,
                              timeout=PATIENCE, check=False)
        assert done.returncode == 0, done.stderr
        assert all(f"[{rank}] " in done.stdout for rank in range(4)) and done.stdout.count("good") == 4, done.stdout


TESTS = [
    a_job_is_started_by_way_of_something_like_ssh,
    the_matrix_passes_on_two_hosts,
    the_matrix_passes_on_four_hosts_with_two_ranks_each,
    the_matrix_passes_over_ipv6_and_over_three_streams,
    the_matrix_groups_and_splits_pass_when_all_is_sealed,
    ranks_may_differ_in_how_many_streams_they_want,
    groups_streams_and_splits_pass_on_three_hosts,
    a_slow_link_is_only_slow,
    a_rank_that_computes_for_longer_than_the_patience_is_not_given_up,
    nothing_is_left_of_a_thousand_communicators,
    an_interface_can_be_chosen_by_name_range_and_exclusion,
    an_interface_that_is_not_there_is_refused_with_those_that_are,
    a_killed_rank_is_named_by_all_others,
    a_host_whose_ranks_are_killed_is_named,
    a_stopped_rank_is_told_from_a_dead_one,
    a_link_that_goes_down_is_an_error_on_every_rank,
    ranks_that_wait_for_each_other_end_with_the_timeout,
    garbage_and_silence_on_the_ports_do_no_harm,
]


if __name__ == "__main__":
    sys.exit(run_tests(TESTS, sys.argv[2:]))
