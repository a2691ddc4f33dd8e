# SPDX-License-Identifier: BSD-3-Clause
"""test_ps.py - jobs of 8 ranks that hang in nine ways: `rondo ps` names the rank and the cause each time, on one host
and on two. Arguments: the program that hangs, and the rondo command."""
import json
import os
import secrets
import signal
import stat
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "net")]
import cases  # noqa: E402  tests/cases.py
import hosts  # noqa: E402  tests/net/hosts.py

HANG, RONDO = sys.argv[1:3]
RANKS, CULPRIT, PATIENCE = 8, 5, 30
QUIET = {"RONDO_LOG": "none", "RONDO_TIMEOUT": "600", "RONDO_TCP_TIMEOUT": "600"}


class Job:
    """8 ranks on this machine, and the folder of their records."""

    def __init__(self, way, culprit=CULPRIT, ranks=RANKS, **more):
        self.folder = tempfile.TemporaryDirectory()
        self.way, self.culprit, self.size, self.more = way, culprit, ranks, more
        self.environment = {**cases.clean_environment(), **QUIET, "RONDO_RECORDER_DIR": self.folder.name,
                            "RONDO_SIZE": str(ranks), "RONDO_ADDRESS": f"unix:rondo-ps-{secrets.token_hex(8)}",
                            "RONDO_SECRET": secrets.token_hex(16), **more}
        self.ranks = []

    def __enter__(self):
        for rank in range(self.size):
            self.ranks.append(subprocess.Popen([HANG, self.way, str(self.culprit)], stdout=subprocess.PIPE,
                                               stderr=subprocess.PIPE, text=True, start_new_session=True,
                                               env={**self.environment, "RONDO_RANK": str(rank)}))
        for number, rank in enumerate(self.ranks):
            line = rank.stdout.readline()
            assert line == "ready\n", f"rank {number} said {line!r}"
        return self

    def __exit__(self, *_):
        for rank in self.ranks:
            try:
                os.killpg(rank.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            rank.wait()
            rank.stdout.close()
            rank.stderr.close()
        self.folder.cleanup()

    def ps(self, *options):
        run = subprocess.run([RONDO, "ps", *options], capture_output=True, text=True, env=self.environment, timeout=30)
        assert run.returncode == 0, run.stderr
        return run.stdout


def all_causes(answer):
    return [cause for comm in json.loads(answer)["communicators"] for cause in comm["causes"]]


def finds(ps, wanted, rank):
    """Asks until the answer is the wanted one; returns the seconds that the last question took."""
    until = time.monotonic() + PATIENCE
    while True:
        began = time.monotonic()
        found = all_causes(ps("--json"))
        took = time.monotonic() - began
        if [(cause["cause"], cause["rank"]) for cause in found] == [(wanted, rank)]:
            print(f"# {took:.2f} s: {found[0]['cause']}: {found[0]['sentence']}")
            return found[0]
        assert time.monotonic() < until, f"wanted {wanted} of rank {rank}, found {json.dumps(found, indent=1)}\n{ps()}"
        time.sleep(0.1)


WAYS = {"absent": "never called", "root": "other call", "count": "other call", "dead": "dead", "stopped": "stopped",
        "disk": "slow", "deadlock": "deadlock", "lock": "held by lock"}


def names(way):
    def case():
        with Job(way) as job:
            finds(job.ps, WAYS[way], -1 if way == "deadlock" else CULPRIT)
            assert f"cause: {WAYS[way]}" in job.ps(), job.ps()
    return f"a job that hangs, {way}, has its culprit and cause named", case


def a_job_is_chosen_by_process_program_and_communicator():
    with Job("absent", ranks=2, culprit=1) as job, Job("absent", ranks=2, culprit=1,
                                                       RONDO_RECORDER_DIR=job.folder.name) as other:
        finds(lambda *options: job.ps(str(job.ranks[0].pid), *options), "never called", 1)
        assert str(other.ranks[0].pid) in job.ps() and str(other.ranks[0].pid) not in job.ps(str(job.ranks[0].pid))
        number = json.loads(job.ps("--json", str(other.ranks[1].pid)))["communicators"][0]["communicator"]
        assert str(other.ranks[0].pid) in job.ps(number) and str(job.ranks[0].pid) not in job.ps(number)
        assert "No rank of 'nobody'" in job.ps("nobody")


def the_rank_that_comes_late_is_named():
    with Job("late", ranks=3, culprit=1) as job:
        for rank in job.ranks:
            assert rank.stdout.readline() == "ended\n"
        late = json.loads(job.ps("--json"))["communicators"][0]["late"]
        assert [one["rank"] for one in late][0] == 1 and late[0]["last"] > 0, late  # so may others be
        assert late[0]["mean_seconds"] > 1e-3, late
        lines = job.ps("--late").splitlines()
        assert lines[2].split()[0] == "1", lines


def the_stack_of_the_culprit_is_shown():
    with Job("absent", ranks=2, culprit=1) as job:
        finds(job.ps, "never called", 1)
        text = job.ps("--stack")
        assert f"stack of process {job.ranks[1].pid}, rank 1:" in text, text
        assert "pause" in text or "says nothing" in text or "cannot be run" in text, text


def a_signal_makes_a_process_write_the_table_if_the_setting_says_so():
    with Job("absent", ranks=2, culprit=1, RONDO_RECORDER_SIGNAL="usr1") as job:
        finds(job.ps, "never called", 1)
        job.ranks[0].send_signal(signal.SIGUSR1)
        text = ""
        while "cause: never called" not in text:
            line = job.ranks[0].stderr.readline()
            assert line, text
            text += line


def a_call_that_waits_for_too_long_writes_the_table_once():
    with Job("absent", ranks=3, culprit=1, RONDO_TIMEOUT="1", RONDO_LOG="warn") as job:
        for number in (0, 2):
            assert "waited" in job.ranks[number].stdout.readline()
        for rank in job.ranks:
            os.killpg(rank.pid, signal.SIGKILL)
        said = [rank.stderr.read() for rank in job.ranks]
        assert sum(text.count("rondo: a call has failed") for text in said) == 1, said
        assert any("cause: never called" in text for text in said), said


def records_go_with_a_close_and_stay_after_a_crash_until_they_are_cleaned():
    with Job("dead", ranks=2, culprit=1) as job:
        finds(job.ps, "dead", 1)
        assert len(os.listdir(job.folder.name)) == 2
        job.ps("--clean")
        assert len(os.listdir(job.folder.name)) == 1
    with Job("absent", ranks=2, culprit=1, RONDO_RECORDER="0") as job:
        assert not os.listdir(job.folder.name) and "No rank of this user" in job.ps()


def records_are_only_their_owner_s_and_a_folder_of_others_is_refused():
    with Job("absent", ranks=2, culprit=1) as job:
        for name in os.listdir(job.folder.name):
            assert stat.S_IMODE(os.stat(os.path.join(job.folder.name, name)).st_mode) == 0o600
        os.chmod(job.folder.name, 0o777)
        run = subprocess.run([RONDO, "ps"], capture_output=True, text=True, env=job.environment, timeout=30)
        assert run.returncode == 1 and "belongs to somebody else" in run.stderr, run


def bytes_that_are_no_record_are_passed_over():
    with Job("absent", ranks=2, culprit=1) as job:
        finds(job.ps, "never called", 1)
        names_there = sorted(os.listdir(job.folder.name))
        with open(os.path.join(job.folder.name, names_there[0]), "rb") as file:
            good = file.read()
        wrong = {"1.1.rec": b"", "1.2.rec": os.urandom(12288), "1.3.rec": good[:5000],
                 "1.4.rec": good[:8] + b"\xff" * (len(good) - 8)}
        for name, content in wrong.items():
            with open(os.path.join(job.folder.name, name), "wb") as file:
                file.write(content)
        os.symlink("/etc/passwd", os.path.join(job.folder.name, "1.5.rec"))
        os.mkfifo(os.path.join(job.folder.name, "1.6.rec"))
        finds(job.ps, "never called", 1)


# ---- Two hosts -------------------------------------------------------------------------------------------------------

class TwoHosts:
    """4 ranks on each of two hosts, and `rondo ps --hosts` with a stand-in for ssh."""

    def __init__(self, way):
        self.way = way

    def __enter__(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.hosts = hosts.Hosts(2).__enter__()
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self):
        self.ssh = os.path.join(self.scratch.name, "ssh")
        with open(self.ssh, "w", encoding="utf-8") as script:
            script.write(f'#!/bin/sh\nexport RONDO_RECORDER_DIR={self.scratch.name}/$1\n'
                         f'exec ip netns exec {self.hosts.prefix}$1 sh -c "$2"\n')
        os.chmod(self.ssh, 0o755)
        command = ["sh", "-c", f'export RONDO_RECORDER_DIR={self.scratch.name}/$((RONDO_RANK / 4)); '
                               f'exec {HANG} {self.way} {CULPRIT}']
        for rank in self.hosts.start(command, RANKS // 2, **QUIET):
            line = rank.process.stdout.readline()
            assert line == "ready\n", f"rank {rank.number} said {line!r}"

    def __exit__(self, *_):
        self.hosts.__exit__()
        self.scratch.cleanup()

    def ps(self, *options):
        run = subprocess.run([RONDO, "ps", "--hosts", "0,1", "--ssh", self.ssh, *options], capture_output=True,
                             text=True, env=cases.clean_environment(), timeout=30)
        assert run.returncode == 0, run.stderr
        return run.stdout


def names_on_two_hosts(way):
    def case():
        why = hosts.why_not()
        if why:
            return why
        with TwoHosts(way) as job:
            finds(job.ps, WAYS[way], -1 if way == "deadlock" else CULPRIT)
        return None
    return f"a job over two hosts that hangs, {way}, has its culprit and cause named", case


def a_link_that_is_cut_is_named():
    why = hosts.why_not()
    if why:
        return why
    with TwoHosts("link") as job:
        job.hosts.link(1, "down")
        until = time.monotonic() + PATIENCE
        while True:
            found = all_causes(job.ps("--json"))
            if [cause["cause"] for cause in found] == ["link cut"]:
                break
            assert time.monotonic() < until, f"{json.dumps(found, indent=1)}\n{job.ps()}"
            time.sleep(0.1)
        print(f"# {found[0]['sentence']}")
    return None


sys.exit(cases.run([names(way) for way in WAYS] + cases.named([
    a_job_is_chosen_by_process_program_and_communicator,
    the_rank_that_comes_late_is_named,
    the_stack_of_the_culprit_is_shown,
    a_signal_makes_a_process_write_the_table_if_the_setting_says_so,
    a_call_that_waits_for_too_long_writes_the_table_once,
    records_go_with_a_close_and_stay_after_a_crash_until_they_are_cleaned,
    records_are_only_their_owner_s_and_a_folder_of_others_is_refused,
    bytes_that_are_no_record_are_passed_over,
]) + [names_on_two_hosts(way) for way in WAYS] + cases.named([a_link_that_is_cut_is_named])))
