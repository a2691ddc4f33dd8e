# SPDX-License-Identifier: BSD-3-Clause
"""test_ps.py - jobs of ranks that hang: `rondo ps` names the rank and the cause each time, on one host and on two, and
so do the line in the log of each rank that waits and `rondo run` when it ends a job. Arguments: the program that hangs,
and the rondo command."""
import json
import os
import re
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
RANKS, CULPRIT, PATIENCE = 8, 5, 100
QUIET = {"RONDO_LOG": "none", "RONDO_TIMEOUT": "600", "RONDO_TCP_TIMEOUT": "600"}


class Job:
    """8 ranks on this machine, and the folder of their records."""

    def __init__(self, way, culprit=CULPRIT, ranks=RANKS, **more):
        self.folder, self.scratch = tempfile.TemporaryDirectory(), tempfile.TemporaryDirectory()
        self.way, self.culprit, self.size, self.more = way, culprit, ranks, more
        self.environment = {**cases.clean_environment(), **QUIET, "RONDO_RECORDER_DIR": self.folder.name,
                            "RONDO_SIZE": str(ranks), "RONDO_ADDRESS": f"unix:rondo-ps-{secrets.token_hex(8)}",
                            "RONDO_SECRET": secrets.token_hex(16), **more}
        self.ranks = []

    def __enter__(self):
        go = os.path.join(self.scratch.name, "go")
        for rank in range(self.size):
            self.ranks.append(subprocess.Popen([HANG, self.way, str(self.culprit)], stdout=subprocess.PIPE,
                                               stderr=subprocess.PIPE, text=True, start_new_session=True,
                                               env={**self.environment, "RONDO_RANK": str(rank), "HANG_GO": go}))
        try:
            for number, rank in enumerate(self.ranks):
                line = rank.stdout.readline()
                assert line == "ready\n", f"rank {number} said {line!r}"
            open(go, "w", encoding="utf-8").close()
            return self
        except BaseException:
            self.__exit__()
            raise

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
        self.scratch.cleanup()

    def ps(self, *options):
        run = subprocess.run([RONDO, "ps", *options], capture_output=True, text=True, env=self.environment,
                             timeout=PATIENCE)
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


# ---- The line in the log of a wait that lasts ------------------------------------------------------------------------

CALL = "all_reduce of 64 float32, sum"
COMM = r"communicator [0-9a-f]+ of %d ranks \(world ranks 0-%d\)"
TWO, THREE = COMM % (2, 1), COMM % (3, 2)
MANY = "send of 2097152 float32 to rank"
PROCESS = r"Rank %d \(process PID on \S+\) "
LINES = {  # way: ranks, culprit, and what rank 0 says, with the culprit's process as PID
    "compute": (3, 1, [rf"for rank 1 in {CALL}, call \d+ of {THREE}\. {PROCESS % 1}computes outside of Rondo; its last "
                       rf"call is {CALL}\.",
                       r"Rank 2 is in the same call and waits for rank 1\. Rank 0 is at step .* lane \d"]),
    "stopped": (2, 1, [rf"for rank 1 in .*{PROCESS % 1}is stopped \(SIGSTOP or a debugger\).*`kill -CONT PID` lets it "
                       r"go on\."]),
    "send": (2, 1, [rf"for rank 1 in {MANY} 1, {TWO}\. Rank [01] is in {MANY} [01], rank [01] is in {MANY} [01]: they "
                    r"wait for each other\. A call group \(rondo_group_start\(\)\) makes such calls at once\."]),
    "message": (2, 1, [r"for rank 1 in recv of 64 float32 from rank 1,", f"(?i:rank 1 is in {CALL})",
                       r"All ranks have to make such calls in the same order\."]),
    "chain": (3, 2, [rf"for rank 2 in recv of 64 float32 from rank 1, .*{PROCESS % 2}computes outside of Rondo;.* Rank "
                     r"1 is in recv of 64 float32 from rank 2 and waits for rank 2\."]),
    "deadlock": (2, 1, [rf"for rank 1 in {CALL}.*Calls of {TWO} and of {TWO} were made in different orders, and wait "
                        "for each other: every rank has to make the calls of all its communicators in the same order.* "
                        rf"Rank 1 is in a call of another communicator, {CALL} of {TWO}\."]),
    "lock": (2, 1, [rf"{PROCESS % 1}sleeps outside of Rondo in futex.*`rondo ps --stack`"]),
}


def seconds_of_call(line):
    """How long the rank has waited in a call; None: it waits while it opens the communicator, at the meeting point or
    in an agreement, or the line says something else."""
    waited = re.search(r"warn: Rank \d has waited (\d+\.\d) s", line)
    return float(waited[1]) if waited and " in agreement " not in line else None


LASTS = cases.patience(4)  # seconds: no call before the last takes so long


def line_of(log, *parts):
    """The first line of a rank's log that has all that. Any number may come before it, of calls that took a while on a
    busy machine; but the wait in the last call, whose line comes again and again, has to be the one that is meant."""
    said = []
    while not (said and all(re.search(part, said[-1]) for part in parts)):
        assert not said or (seconds_of_call(said[-1]) or 0) < LASTS, f"{parts} are not in: {''.join(said)}"
        said.append(log.readline())
        assert said[-1], f"{parts} are not in: {''.join(said)}"
    return said[-1]


def tells(way):
    def case():
        ranks, culprit, parts = LINES[way]
        with Job(way, culprit, ranks, RONDO_LATE="0.05", RONDO_LOG="warn", RONDO_ALGORITHM="ring") as job:
            pid = str(job.ranks[culprit].pid)
            line = line_of(job.ranks[0].stderr, r"^rondo\[0\] warn: Rank 0 has waited \d+\.\d s ",
                           *(part.replace("PID", pid) for part in parts))
            print("#", line.rstrip())
    return f"a wait that lasts is told in one line, {way}", case


def without_records_the_line_says_what_the_rank_has_shown():
    with Job("compute", 1, 2, RONDO_LATE="0.05", RONDO_LOG="warn", RONDO_RECORDER="0") as job:
        line = line_of(job.ranks[0].stderr, r" has waited .* for rank 1 in .*Rank 1 has not made this call\.")
        print("#", line.rstrip())


def without_records_ranks_that_both_send_are_told_so():
    with Job("send", 1, 2, RONDO_LATE="0.05", RONDO_LOG="warn", RONDO_RECORDER="0") as job:
        line = line_of(job.ranks[0].stderr, rf"for rank 1 in {MANY} 1,.*Ranks wait for each other in a circle: a call "
                                            r"group \(rondo_group_start\(\)\)")
        print("#", line.rstrip())


def the_line_comes_again_after_ten_times_as_long_alone():
    with Job("compute", 1, 2, RONDO_LATE=str(cases.patience(0.05)), RONDO_LOG="warn",
             RONDO_TIMEOUT=str(cases.patience(3))) as job:
        assert "has waited" in job.ranks[0].stdout.readline()
        os.killpg(job.ranks[0].pid, signal.SIGKILL)
        lines = [line for line in job.ranks[0].stderr.read().splitlines() if seconds_of_call(line) is not None]
        assert len(lines) == 2, lines


def the_error_of_a_timeout_is_the_same_text():
    with Job("compute", 1, 2, RONDO_LATE="0.05", RONDO_LOG="warn", RONDO_TIMEOUT=str(cases.patience(2))) as job:
        said = job.ranks[0].stdout.readline()
        line = line_of(job.ranks[0].stderr, "computes outside")
    numbers = re.compile(r"\d+\.\d s")
    assert numbers.sub("", said.replace(" RONDO_TIMEOUT sets how long to wait.", "")) == \
        numbers.sub("", line.replace("rondo[0] warn: ", "")), (said, line)


def run_of(job, *options):
    """`rondo run` of two ranks, the second of which computes; its stderr comes through a pipe."""
    return subprocess.Popen([RONDO, "run", "-n", "2", "--bind", "none", *options, HANG, "compute", "1"],
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                            env={**job.environment, "RONDO_LATE": "0.2", "RONDO_LOG": "warn"})


TOLD = r"^rondo run: Rank 0 has waited .* for rank 1 in .*Rank 1 \(process \d+ on \S+\) computes outside of Rondo"


def ends_with_waits(number):
    def case():
        job = Job("compute", ranks=0)
        with run_of(job) as run:
            line_of(run.stderr, f"warn: Rank 0 has waited .* in {CALL}")
            run.send_signal(number)
            print("#", line_of(run.stderr, TOLD).rstrip())
            run.stderr.read()
        job.folder.cleanup()
        assert run.returncode == 128 + number, run.returncode
    return f"`rondo run` says what ranks wait for when it gets {number.name}", case


def a_time_limit_of_rondo_run_says_what_ranks_wait_for():
    job, limit, said = Job("compute", ranks=0), 2, ""
    while not re.search(TOLD, said, re.M):  # ranks may need longer to get there
        assert limit < 100, said
        with run_of(job, "--timeout", str(limit)) as run:
            said = run.stderr.read()
        assert run.returncode == 124, run.returncode
        limit *= 2
    job.folder.cleanup()


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
    with Job("absent", ranks=3, culprit=1, RONDO_TIMEOUT=str(cases.patience(1)), RONDO_LOG="warn") as job:
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
        run = subprocess.run([RONDO, "ps"], capture_output=True, text=True, env=job.environment, timeout=PATIENCE)
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


def a_silent_host_costs_the_others_nothing_and_alone_it_is_no_answer():
    """A stand-in for ssh, behind which only host `fast` ever ends."""
    with tempfile.TemporaryDirectory() as scratch:
        ssh = os.path.join(scratch, "ssh")
        with open(ssh, "w", encoding="utf-8") as script:
            script.write('#!/bin/sh\n[ $1 = fast ] && exec sh -c "$2"\nexec sleep 1000\n')
        os.chmod(ssh, 0o755)

        def ask(listed, seconds):
            return subprocess.run([RONDO, "ps", "--hosts", listed, "--ssh", ssh, "--timeout", seconds], text=True,
                                  capture_output=True, timeout=PATIENCE + float(seconds),
                                  env={**cases.clean_environment(), "RONDO_RECORDER_DIR": scratch + "/none"})
        run = ask("slow,fast", str(cases.patience(5)))
        assert run.returncode == 0 and "No rank of this user has a record here." in run.stdout, run
        assert "host slow gave no answer" in run.stderr and "fast" not in run.stderr, run
        run = ask("slow", "0.1")
        assert run.returncode == 1 and "host slow gave no answer" in run.stderr and not run.stdout, run


def a_list_of_hosts_without_a_name_is_refused():
    for listed in (",", ""):
        run = subprocess.run([RONDO, "ps", "--hosts", listed], capture_output=True, text=True, timeout=PATIENCE,
                             env=cases.clean_environment())
        assert run.returncode == 2 and f"--hosts '{listed}' names no host" in run.stderr and not run.stdout, run


# ---- Two hosts -------------------------------------------------------------------------------------------------------

class TwoHosts:
    """4 ranks on each of two hosts, and `rondo ps --hosts` with a stand-in for ssh."""

    def __init__(self, way, **more):
        self.way, self.more = way, more

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
        go = os.path.join(self.scratch.name, "go")
        self.ranks = self.hosts.start(command, RANKS // 2, **{**QUIET, **self.more, "HANG_GO": go})
        for rank in self.ranks:
            said = []
            while "ready\n" not in said:  # its log comes the same way, with a reminder where others come late
                said.append(rank.process.stdout.readline())
                assert said[-1], f"rank {rank.number} said {said}"
        open(go, "w", encoding="utf-8").close()

    def __exit__(self, *_):
        self.hosts.__exit__()
        self.scratch.cleanup()

    def ps(self, *options):
        run = subprocess.run([RONDO, "ps", "--hosts", "0,1", "--ssh", self.ssh, *options], capture_output=True,
                             text=True, env=cases.clean_environment(), timeout=PATIENCE)
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


def the_line_names_a_rank_of_another_host():
    why = hosts.why_not()
    if why:
        return why
    with TwoHosts("compute", RONDO_LATE="0.3", RONDO_LOG="warn") as job:
        line = line_of(job.ranks[0].process.stdout,  # it waits for that rank, or for one that does
                       rf"for rank {CULPRIT} in {CALL},.*Rank {CULPRIT} has .*(, and rank 4 waits for it as well\.|"
                       r"\. It does not wait in this communicator)")
        print("#", line.rstrip())
    return None


def names_a_cut_link(algorithm):
    def case():
        why = hosts.why_not()
        if why:
            return why
        with TwoHosts("link", RONDO_ALGORITHM=algorithm) as job:
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
    return f"a link that is cut is named once, {algorithm}", case


# A script that starts tests in its background has it ignored, and so would `rondo run`.
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(cases.run([names(way) for way in WAYS] + [tells(way) for way in LINES] +
                   [ends_with_waits(number) for number in (signal.SIGINT, signal.SIGTERM)] + cases.named([
    without_records_the_line_says_what_the_rank_has_shown,
    without_records_ranks_that_both_send_are_told_so,
    the_line_comes_again_after_ten_times_as_long_alone,
    the_error_of_a_timeout_is_the_same_text,
    a_time_limit_of_rondo_run_says_what_ranks_wait_for,
    a_job_is_chosen_by_process_program_and_communicator,
    the_rank_that_comes_late_is_named,
    the_stack_of_the_culprit_is_shown,
    a_signal_makes_a_process_write_the_table_if_the_setting_says_so,
    a_call_that_waits_for_too_long_writes_the_table_once,
    records_go_with_a_close_and_stay_after_a_crash_until_they_are_cleaned,
    records_are_only_their_owner_s_and_a_folder_of_others_is_refused,
    bytes_that_are_no_record_are_passed_over,
    a_silent_host_costs_the_others_nothing_and_alone_it_is_no_answer,
    a_list_of_hosts_without_a_name_is_refused,
]) + [names_on_two_hosts(way) for way in WAYS] + cases.named([
    the_line_names_a_rank_of_another_host,
]) + [names_a_cut_link("ring"), names_a_cut_link("doubling")]))
