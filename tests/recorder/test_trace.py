# SPDX-License-Identifier: BSD-3-Clause
"""test_trace.py - jobs that run with RONDO_TRACE, and what `rondo trace` makes of their files. Arguments: the program
whose calls are traced, and the rondo command."""
import collections
import glob
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import cases  # noqa: E402  tests/cases.py

TRACED, RONDO = map(os.path.abspath, sys.argv[1:3])
PATIENCE = 100
ALL_REDUCES, MANY, BYTES = 20, 2000, 4096 * 4
CLOCK = 0.002  # microseconds: times on the line are rounded to nanoseconds
# As base/trace/page.h has them.
MACHINE, TAKEN = 24, 256
HEADER, COMM, NAMES, SUM, EVENT = 320, 16, 1024 * 120, 72, 32


class Job:
    """A job that has run, and its files."""

    def __init__(self, way="calls", ranks=2, fails=False, folder=None, **more):
        self.folder = folder or tempfile.TemporaryDirectory()
        self.file = os.path.join(self.folder.name, "t")
        if "RONDO_PROFILE" in more:
            more["RONDO_PROFILE"] = self.file
        environment = {**cases.clean_environment(), "RONDO_TRACE": self.file, "RONDO_TIMEOUT": "600", **more}
        done = subprocess.run([RONDO, "run", "-n", str(ranks), TRACED, way], env=environment, capture_output=True,
                              text=True, timeout=cases.patience(PATIENCE))
        assert fails or done.returncode == 0, f"status {done.returncode}\n{done.stderr}"
        self.said = done.stderr
        self.measured = collections.defaultdict(list)
        for line in done.stdout.splitlines():
            rank, name, microseconds = line.split()
            self.measured[int(rank)].append((name, float(microseconds)))

    def trace(self, *options, status=0):
        done = subprocess.run([RONDO, "trace", self.file, *options], capture_output=True, text=True,
                              timeout=cases.patience(PATIENCE))
        assert done.returncode == status, f"rondo trace: status {done.returncode}\n{done.stderr}"
        return done.stderr if status else done.stdout

    def sums(self):
        return json.loads(self.trace("--json", "-"))["ranks"]

    def line(self):
        return Line(json.loads(self.trace("--chrome", "-"))["traceEvents"])


class Line:
    """A time line: calls and steps by process."""

    def __init__(self, events):
        self.calls, self.steps, self.names = collections.defaultdict(list), collections.defaultdict(list), {}
        self.spans, self.messages = collections.defaultdict(dict), collections.defaultdict(dict)
        for event in events:
            if event.get("cat") == "message" and event["ph"] == "b":
                self.messages[event["pid"]][event["id2"]["local"]] = event
            elif event.get("cat") == "message":
                begun = self.messages[event["pid"]][event["id2"]["local"]]
                assert event["ph"] == "e" and event["name"] == begun["name"], event
                begun["dur"] = event["ts"] - begun["ts"]
            elif event["ph"] == "b":
                self.spans[event["pid"]][event["id2"]["local"]] = [event["name"], event["args"]["number"], event["ts"]]
            elif event["ph"] == "e":
                self.spans[event["pid"]][event["id2"]["local"]].append(event["ts"])
            elif event["ph"] == "X":
                kind = self.calls if event["cat"] == "call" else self.steps
                kind[event["pid"]].append(event)
            elif event["name"] == "process_name":
                self.names[event["pid"]] = event["args"]["name"]

    def steps_of(self, process, call):
        """Those that end while the call lasts, by program."""
        return [step for step in self.steps[process]
                if call["ts"] - CLOCK <= step["ts"] and end_of(step) <= end_of(call) + CLOCK]


def end_of(event):
    return event["ts"] + event["dur"]


def near(told, known, more):
    """Numbers in JSON have six digits; `more` is what may be lost elsewhere."""
    return abs(told - known) <= 1e-5 * known + more


def planned(algorithm, ranks):
    """The steps of an all_reduce's plans by rank: verbs and peers, in the order of each program."""
    done = subprocess.run([RONDO, "explain", "all_reduce", "-n", str(ranks), "-a", algorithm, "--json", "-"],
                          capture_output=True, text=True, timeout=cases.patience(PATIENCE))
    assert done.returncode == 0, done.stderr
    return [[step for program in plan["programs"] for step in program] for plan in json.loads(done.stdout)["plans"]]


def name_of(step):
    """What the time line calls a step of a plan."""
    words = {("wait", "data"): "wait for rank {peer}", ("wait", "credit"): "wait for room at rank {peer}",
             ("signal", "data"): "send to rank {peer}", ("signal", "credit"): "give back to rank {peer}"}
    return words.get((step["do"], step.get("event")), step["do"]).format(**step)


def check_calls(job, line, ranks):
    assert len(line.calls) == ranks, f"{len(line.calls)} processes"
    for rank in range(ranks):
        calls, measured = line.calls[rank], job.measured[rank]
        assert line.names[rank].startswith(f"rank {rank} (traced, process "), line.names[rank]
        assert [call["name"].split(" ")[0].strip(",") for call in calls] == [name for name, _ in measured], calls
        for call, (name, microseconds) in zip(calls, measured):
            assert call["args"]["ended"], call
            assert call["dur"] <= microseconds + CLOCK, f"{call} took {microseconds} us"


def steps_of_the_plan_are_on_the_time_line_but_for_those_that_take_no_time():
    for ranks in 2, 3, 5:
        job = Job(ranks=ranks, RONDO_ALGORITHM="ring")
        line = job.line()
        check_calls(job, line, ranks)
        for rank, steps in enumerate(planned("ring", ranks)):
            for call in line.calls[rank][:ALL_REDUCES]:
                assert call["name"] == "all_reduce of 4096 float32, sum, ring", call
                traced = line.steps_of(rank, call)
                for step in traced:
                    assert step["name"] == name_of(steps[step["args"]["step"]]), f"rank {rank} of {ranks}: {step}"
                numbers = [step["args"]["step"] for step in traced]
                assert numbers == sorted(set(numbers)), f"rank {rank} of {ranks}: {traced}"
                moves = {number for number, step in enumerate(steps) if step["do"] in ("copy", "reduce")}
                waits = {number for number, step in enumerate(steps) if step["do"] == "wait"}
                assert moves <= set(numbers) <= moves | waits, f"rank {rank} of {ranks}: {traced}"


def steps_follow_each_other_and_say_how_much_they_move():
    line = Job(RONDO_ALGORITHM="ring").line()
    for rank in range(2):
        for call in line.calls[rank][:ALL_REDUCES]:
            steps = line.steps_of(rank, call)
            assert abs(steps[0]["ts"] - call["ts"]) <= CLOCK, (call, steps[0])
            for step, following in zip(steps, steps[1:]):
                assert abs(end_of(step) - following["ts"]) <= CLOCK, (step, following)
            assert end_of(steps[-1]) <= end_of(call) + CLOCK, (call, steps[-1])
            moved = sum(step["args"]["bytes"] for step in steps if step["cat"] == "move")
            assert moved == 3 * BYTES / 2, f"{moved} bytes: half to the peer, half reduced, half taken"


def calls_over_tcp_have_their_steps_too():
    job = Job(ranks=3, RONDO_TRANSPORT="tcp")
    line = job.line()
    check_calls(job, line, 3)
    waits = {step["name"] for steps in line.steps.values() for step in steps if step["cat"] == "wait"}
    assert waits and all(re.fullmatch(r"wait for (room at )?rank [012]", name) for name in waits), waits


def the_report_adds_up_what_is_on_the_time_line():
    job = Job(ranks=3)
    report, line = job.trace(), job.line()
    whole = sum(len(calls) for calls in line.calls.values())
    assert report.startswith(f"3 processes on 1 machine, {whole} calls in "), report
    reduces = [call for calls in line.calls.values() for call in calls if call["name"].startswith("all_reduce")]
    row = next(row.split() for row in report.splitlines() if "all_reduce of 4096 float32, sum" in row
               and "communicator" not in row)
    assert int(row[0]) == len(reduces) == 3 * ALL_REDUCES, row
    seconds = float(row[1]) * {"s": 1, "ms": 1e-3, "us": 1e-6}[row[2]]
    assert abs(seconds - sum(call["dur"] for call in reduces) * 1e-6) <= 0.006 * seconds, row
    last = collections.Counter()
    for number in range(ALL_REDUCES + 2):
        last[max(range(3), key=lambda rank: line.calls[rank][number]["ts"])] += 1
    for rank in range(3):
        assert f"  rank {rank}: {last[rank]} times, " in report, f"{last}\n{report}"


def the_sums_are_those_of_the_calls_on_the_time_line():
    job = Job(ranks=3)
    line = job.line()
    for told in job.sums():
        rank, calls = told["rank"], collections.defaultdict(list)
        for call in line.calls[rank]:
            calls[call["name"]].append(call["dur"])
        assert {call["call"] for call in told["calls"]} == set(calls), told
        for call in told["calls"]:
            times = calls[call["call"]]
            assert call["calls"] == len(times), call
            for seconds, microseconds in ((call["seconds"], sum(times)), (call["shortest"], min(times)),
                                          (call["longest"], max(times))):
                assert near(seconds * 1e6, microseconds, len(times) * CLOCK), (call, times)
        reduce = next(call for call in told["calls"] if call["collective"] == "all_reduce")
        assert (reduce["count"], reduce["type"], reduce["bytes"]) == (4096, "float32", BYTES), reduce
        assert reduce["call"].endswith(", " + reduce["algorithm"]), reduce


def a_profile_has_sums_of_all_calls_and_no_events():
    job = Job("many", RONDO_TRACE="", RONDO_PROFILE="its file", RONDO_ALGORITHM="ring")
    for told in job.sums():
        calls = {call["collective"]: call for call in told["calls"]}
        reduce = calls["all_reduce"]
        assert reduce["calls"] == MANY and calls["broadcast"]["calls"] == calls["barrier"]["calls"] == 1, calls
        (name, expected), *times = job.measured[told["rank"]][:MANY + 1]
        assert name == "estimate" and near(reduce["predicted"] * 1e6, expected, 0.001), (reduce, expected)
        assert {name for name, _ in times} == {"all_reduce"}
        assert reduce["shortest"] * 1e6 <= min(microseconds for _, microseconds in times) + CLOCK, reduce
        assert reduce["shortest"] * MANY <= reduce["seconds"] <= reduce["longest"] * MANY, reduce
        assert reduce["seconds"] * 1e6 <= sum(microseconds for _, microseconds in times), reduce
        assert "predicted" in calls["barrier"] and calls["send" if told["rank"] == 0 else "recv"]["predicted"] is None
    assert job.trace().startswith(f"2 processes on 1 machine, {2 * (MANY + 3)} calls, of which only the sums are known")
    assert os.path.getsize(job.file + ".0") < 1 << 18
    both = Job(RONDO_PROFILE="its file")
    assert both.said.count("RONDO_PROFILE is not used beside RONDO_TRACE") == 2 and both.line().calls, both.said


def sums_are_metrics_of_prometheus():
    job = Job("many")
    metrics, kinds = {}, {}
    for line in job.trace("--prometheus", "-").splitlines():
        if line.startswith("# TYPE "):
            kinds[line.split()[2]] = line.split()[3]
        elif not line.startswith("# HELP "):
            name, labels, value = re.fullmatch(r"(\w+)\{(.*)\} (\S+)", line).groups()
            labels = dict(re.findall(r'(\w+)="([^"]*)"(?:,|$)', labels))
            metrics[name, labels["rank"], labels["collective"]] = float(value)
            assert name in kinds, line
    assert kinds["rondo_calls_total"] == "counter" and kinds["rondo_call_longest_seconds"] == "gauge", kinds
    for told in job.sums():
        for call in told["calls"]:
            at = str(told["rank"]), call["collective"]
            assert metrics[("rondo_calls_total", *at)] == call["calls"], call
            assert metrics[("rondo_call_bytes_total", *at)] == call["calls"] * call["bytes"], call
            assert near(metrics[("rondo_call_seconds_total", *at)], call["seconds"], 1e-9), call
            assert (("rondo_call_predicted_seconds", *at) in metrics) == (call["predicted"] is not None), call


def the_picture_shows_the_share_of_time_in_calls_and_what_was_expected():
    job = Job("many", ranks=3)
    with open(job.file + ".svg", "wb"):
        pass  # what is no trace does not harm
    job.trace("--svg", job.file + ".svg")
    root = xml.etree.ElementTree.parse(job.file + ".svg").getroot()
    line = job.line()
    first = min(call["ts"] for calls in line.calls.values() for call in calls)
    last = max(end_of(call) for calls in line.calls.values() for call in calls)
    parts = collections.defaultdict(list)
    for part in root.iter():
        parts[part.get("class")].append(part)
    lanes = [part for part in parts["outside"] if int(part.get("width")) > 100]
    assert len(lanes) == 3, lanes
    whole = sum(float(lane.get("width")) * float(lane.get("height")) for lane in lanes)
    for kind, seconds in (("waits", sum(call["dur"] for calls in line.calls.values() for call in calls)),
                          ("moves", sum(step["dur"] for steps in line.steps.values() for step in steps
                                        if step["cat"] == "move"))):
        drawn = sum(float(part.get("width")) * float(part.get("height")) for part in parts[kind]
                    if float(part.get("y")) > 60)
        assert abs(drawn / whole - seconds / (3 * (last - first))) < 0.02, (kind, drawn / whole)
    kinds = {call["call"] for told in job.sums() for call in told["calls"]}
    assert len(parts["measured"]) == len(kinds) + 1 and len(parts["predicted"]) == len(kinds) - 2 + 1, kinds


def spans_of_the_program_may_overlap():
    job = Job()
    line, row = job.line(), next(row.split() for row in job.trace().splitlines() if row.endswith("  others"))
    inside = 0
    for rank in range(2):
        calls, (first, second) = line.calls[rank][ALL_REDUCES:], line.spans[rank].values()
        assert first[:2] == ["others", 7] and second[:2] == ["others", 8], (first, second)
        assert line.calls[rank][ALL_REDUCES - 1]["ts"] < first[2] < second[2] < calls[0]["ts"]
        assert end_of(calls[-1]) < first[3] < second[3]
        inside += 2 * sum(call["dur"] for call in calls)
    assert row[0] == "4", row
    together, meanwhile = (float(row[at]) * {"s": 1e6, "ms": 1e3, "us": 1}[row[at + 1]] for at in (1, 7))
    assert abs(meanwhile - inside) <= 0.006 * inside and together > inside, row


def messages_with_tags_last_from_when_they_are_posted():
    for more in {}, {"RONDO_TRANSPORT": "tcp"}:
        job = Job("tags", **more)
        line, report = job.line(), job.trace()
        assert not any(call["name"].split(" ")[0] in ("send", "recv") for calls in line.calls.values()
                       for call in calls), line.calls
        for rank in range(2):
            measured = {name: microseconds for name, microseconds in job.measured[rank] if ":" in name}
            messages = list(line.messages[rank].values())
            complete = [message for message in messages if message["args"]["state"] == "complete"]
            assert len(complete) == len(measured) == 7, (messages, measured)
            for message in complete:
                args = message["args"]
                verb = message["name"].split(" ")[0]
                assert message["name"] == f"{verb} {'to' if verb == 'send' else 'from'} rank {args['peer']}", message
                known = measured.pop(f"{verb}:{args['peer']}:{args['tag']}:{args['bytes']}")
                assert 0 <= message["dur"] <= known + CLOCK, f"{message} took {known} us"
            rest = [(message["name"], message["args"]["tag"], message["args"]["state"])
                    for message in messages if message not in complete]
            known = [(f"receive from rank {1 - rank}", 8, "failed"), (f"receive from rank {rank}", 9, "failed")]
            assert rest == known + [("receive from rank 0", 10, "under way")] * (rank == 0), rest
            assert f"rank {rank} of communicator {messages[0]['args']['communicator']}, " in report, report
        row = next(row for row in report.splitlines() if row.endswith("under way at the end"))
        assert row.split()[:2] == ["3", "10"] and "receive from rank 0; 1 failed; 1 under way" in row, row


def a_profile_has_no_messages_with_tags():
    job = Job("tags", RONDO_TRACE="", RONDO_PROFILE="its file")
    for told in job.sums():
        assert not {call["collective"] for call in told["calls"]} & {"send", "recv"}, told


def a_training_shows_its_phases_and_its_buckets():
    folder = tempfile.TemporaryDirectory()
    file, result = os.path.join(folder.name, "t"), os.path.join(folder.name, "json")
    environment = {**cases.clean_environment(), "RONDO_TRACE": file, "RONDO_TIMEOUT": "600"}
    done = subprocess.run([RONDO, "train", "-n", "2", "--steps", "30", "--samples", "0", "--evaluate", "0", "--json",
                           result], env=environment, capture_output=True, text=True, timeout=cases.patience(PATIENCE))
    assert done.returncode == 0, done.stderr
    done = subprocess.run([RONDO, "trace", file, "--chrome", "-"], capture_output=True, text=True,
                          timeout=cases.patience(PATIENCE))
    line = Line(json.loads(done.stdout)["traceEvents"])
    with open(result, encoding="utf-8") as text:
        told = json.load(text)
    sums = collections.Counter()
    for rank in range(2):
        for name, number, begin, end in line.spans[rank].values():
            assert begin <= end, (name, number, begin, end)
            sums[name] += (end - begin) * 1e-6
            sums[name, "times"] += 1
    assert sums["forward", "times"] == sums["backward", "times"] == sums["update", "times"] == 60, sums
    assert sums["wait for gradients", "times"] == 60 and sums["exchange of a bucket", "times"] % 60 == 0, sums
    phases = sum(sums[name] for name in ("forward", "backward", "update"))
    assert phases < 2 * told["seconds"], f"{sums}, {told['seconds']} s"
    agreement = sums["agreement on a step"]
    hidden = 1 - (sums["wait for gradients"] + agreement) / (sums["exchange of a bucket"] + agreement)
    assert abs(hidden - told["hidden"]) <= 0.01, f"{hidden} hidden by the trace, {told['hidden']} by the training"


def a_small_ring_keeps_the_last_calls():
    job = Job("many", RONDO_TRACE_BYTES="64K")
    report = job.trace()
    assert "events are lost" in report
    assert sum(call["calls"] for told in job.sums() for call in told["calls"]) == 2 * (MANY + 3)
    for calls in job.line().calls.values():
        assert 0 < len(calls) < MANY and calls[-1]["name"].split(" ")[0] in ("send", "recv"), calls


def the_trace_of_a_rank_that_was_killed_is_there():
    job = Job("die", fails=True)
    line = job.line()
    assert len(line.calls[1]) == ALL_REDUCES + 3, line.calls[1]
    assert all(call["args"]["ended"] for call in line.calls[1])
    assert not line.calls[0][-1]["args"]["ended"] and line.calls[0][-1]["name"].startswith("barrier")
    assert "barrier, " in job.trace() and "; 1 did not end" in job.trace()


def put_on_another_machine(file):
    """Its clock is 1000 s ahead there."""
    with open(file, "r+b") as file:
        data = bytearray(file.read())
        machine, = struct.unpack_from("<Q", data, MACHINE)
        struct.pack_into("<Q", data, MACHINE, machine ^ 1)
        at, (taken,) = HEADER + 1024 * (COMM + SUM) + NAMES, struct.unpack_from("<Q", data, TAKEN)
        for event in range(taken):
            when, = struct.unpack_from("<Q", data, at + event * EVENT)
            struct.pack_into("<Q", data, at + event * EVENT, when + 1000 * 10**9)
        file.seek(0)
        file.write(data)


def clocks_of_two_machines_are_put_on_one():
    job = Job(ranks=3)
    before = job.line()
    put_on_another_machine(job.file + ".2")
    report, after = job.trace(), job.line()
    assert "3 processes on 2 machines" in report, report
    words = report.split("to within ")[1].split(".\n")[0].split()
    within = float(words[0]) * {"s": 1e6, "ms": 1e3, "us": 1}[words[1]]
    for old, new in zip(before.calls[2], after.calls[2]):
        assert abs(old["ts"] - new["ts"]) <= 1.01 * within + 1, f"{old['ts']}, then {new['ts']}, within {within} us"
    shortest = min(call["dur"] for call in before.calls[0])
    assert within < 100 * shortest, f"within {within} us, and a call takes {shortest}"




def files_of_an_earlier_job_are_left_out():
    job = Job(ranks=4)
    job = Job(ranks=2, folder=job.folder)
    report = job.trace()
    assert report.startswith("2 processes on 1 machine") and "2 files of earlier jobs are left out" in report, report


def a_child_has_a_file_of_its_own():
    job = Job("child")
    files = sorted(os.path.basename(path) for path in glob.glob(job.file + ".*"))
    assert len(files) == 3 and files[:2] == ["t.0", "t.1"] and files[2].startswith("t.process-"), files


def a_file_that_cannot_be_written_is_a_warning():
    folder = tempfile.TemporaryDirectory()
    job = Job(RONDO_TRACE=os.path.join(folder.name, "none", "t"))
    assert job.said.count("calls are not traced: ") == 2 and "No such file" in job.said, job.said
    assert "is a trace; run the job with RONDO_TRACE=" in job.trace(status=1)


def what_is_no_trace_is_refused():
    job = Job()
    for name in "0", "1":
        with open(f"{job.file}.{name}", "r+b") as file:
            file.write(b"no trace")
    assert "is a trace" in job.trace(status=1)


def nothing_is_written_without_the_setting():
    job = Job(RONDO_TRACE="")
    assert not glob.glob(job.file + "*")


def the_commands_of_the_page_work():
    with open(os.path.join(HERE, "..", "..", "docs", "trace.md"), encoding="utf-8") as page:
        lines = "".join(page.read().split("```\n")[1:4:2])
    with tempfile.TemporaryDirectory() as folder:
        environment = {**cases.clean_environment(), "PATH": os.path.dirname(RONDO) + ":" + os.environ["PATH"]}
        done = subprocess.run(["bash", "-ec", lines.replace("/tmp/", folder + "/").replace("./program", TRACED)],
                              env=environment, capture_output=True, text=True, timeout=cases.patience(PATIENCE))
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("2 processes on 1 machine") == 4, done.stdout
        assert done.stdout.count("rondo_call_seconds_total{") == 4, done.stdout
        with open(os.path.join(folder, "t.json"), encoding="utf-8") as line:
            assert len(Line(json.load(line)["traceEvents"]).calls) == 2


if __name__ == "__main__":
    sys.exit(cases.run(cases.named([
        steps_of_the_plan_are_on_the_time_line_but_for_those_that_take_no_time,
        steps_follow_each_other_and_say_how_much_they_move,
        calls_over_tcp_have_their_steps_too, the_report_adds_up_what_is_on_the_time_line,
        the_sums_are_those_of_the_calls_on_the_time_line, a_profile_has_sums_of_all_calls_and_no_events,
        sums_are_metrics_of_prometheus, the_picture_shows_the_share_of_time_in_calls_and_what_was_expected,
        spans_of_the_program_may_overlap, messages_with_tags_last_from_when_they_are_posted,
        a_profile_has_no_messages_with_tags, a_training_shows_its_phases_and_its_buckets,
        a_small_ring_keeps_the_last_calls, the_trace_of_a_rank_that_was_killed_is_there,
        clocks_of_two_machines_are_put_on_one, files_of_an_earlier_job_are_left_out, a_child_has_a_file_of_its_own,
        a_file_that_cannot_be_written_is_a_warning, what_is_no_trace_is_refused,
        nothing_is_written_without_the_setting, the_commands_of_the_page_work])))
