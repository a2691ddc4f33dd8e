#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""two_steps.py - plans of one's own: an all-reduce of 4 ranks in two exchanges, by hand, by a script and as XML, is
proved, drawn and run; wrong variants of it are refused, and the sentence names the step. Prints TAP.

    two_steps.py SOURCE RONDO WORKERS LIBRARIES
"""
import copy
import csv
import functools
import io
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases  # pylint: disable=wrong-import-position

SOURCE, RONDO, WORKERS, LIBRARIES = map(os.path.abspath, sys.argv[1:])
PLANS = os.path.join(SOURCE, "examples", "plans")
STEP = re.compile(r"rank \d, (program \d, )?step \d+[:( ]")


def rondo(*arguments, **settings):
    environment = {**cases.clean_environment(), "RONDO_BENCH_DIR": WORKERS, "LD_LIBRARY_PATH": LIBRARIES, **settings}
    done = subprocess.run([RONDO, *arguments], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, stdin=subprocess.DEVNULL, timeout=cases.patience(60), check=False)
    return done.returncode, done.stdout, done.stderr


def succeed(*arguments, **settings):
    status, printed, errors = rondo(*arguments, **settings)
    assert status == 0, f"{arguments}: status {status}: {errors}"
    return printed


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def read(name):
    with open(os.path.join(PLANS, name), encoding="utf-8") as file:
        return file.read()


def script(folder, name, *arguments):
    """What a script of examples/plans prints, as a file."""
    done = subprocess.run([sys.executable, os.path.join(PLANS, name + ".py"), *arguments], stdout=subprocess.PIPE,
                          text=True, check=True)
    return write(folder, name + "-by-script.json", done.stdout)


# ---- Right: proved, drawn, run --------------------------------------------------------------------------------------

def prove_draw_run(folder, path, name, ranks, rounds):
    assert f"all_reduce by {name} proved for {ranks} ranks" in succeed("verify", "--plan", path)
    assert f"Round {rounds} of {rounds}" in succeed("explain", "--plan", path)
    assert f'"name":"{name}"' in succeed("explain", "--plan", path, "--html", "-")
    assert "</svg>" in succeed("explain", "--plan", path, "--svg", "-")
    table = os.path.join(folder, "bench.csv")
    succeed("bench", "all_reduce", "-n", str(ranks), "--algo", f"file:{path},ring", "--bytes", "4K,12000",
            "--iterations", "5", "--rounds", "2", "--csv", table)
    with open(table, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    ran = [row["algorithm"] for row in rows]
    assert len(ran) == 4 and sum(word.startswith(f"file:{name}.") for word in ran) == 2 and ran.count("ring") == 2, ran
    assert all(row["wrong"] == "0" for row in rows), rows


def ranks_of_a_launcher_read_the_file():
    printed = succeed("run", "-n", "4", RONDO, "bench", "all_reduce", "--algo", f"file:{PLANS}/pairs.json", "--bytes",
                      "4K", "--iterations", "5", "--rounds", "2")
    assert "wrong values: 0 OK" in printed and "algorithm file:pairs." in printed, printed


def a_file_serves_nothing_else():
    for arguments in (["all_reduce", "-n", "3"], ["broadcast", "-n", "4"]):
        status, _, errors = rondo("bench", *arguments, "--algo", "file:" + os.path.join(PLANS, "pairs.json"))
        assert status == 2 and "is a plan of all_reduce over 4 ranks with root 0" in errors, (status, errors)


def what_is_predicted_is_what_explain_says():
    if len(os.sched_getaffinity(0)) < 2:
        return "the model of a run knows that two ranks share a core"
    names, costs = ["ring", "direct", "tree"], "2,8,4"
    table = succeed("explain", "all_reduce", "-n", "2", "--predict", "--costs", costs)
    heads, row = (re.search(rf"^ *{word} (.*)$", table, re.M)[1].split() for word in ("bytes", "8K"))
    said = {name: float(time.strip("*")) for name, time in zip(heads, row)}
    printed = succeed("bench", "all_reduce", "-n", "2", "--algo", ",".join(names), "--bytes", "8K", "--iterations", "5",
                      "--rounds", "1", "--csv", "-", RONDO_COSTS=costs)
    rows = list(csv.DictReader(io.StringIO(printed)))
    assert [row["algorithm"] for row in rows] == names, rows
    for row in rows:
        assert abs(float(row["predicted_us"]) - said[row["algorithm"]]) < 1e-3 * said[row["algorithm"]], (row, said)
        assert f"RONDO_COSTS={costs}" in row["environment"].split(), row
    return None


def a_wrong_file_is_not_measured(folder):
    plan = json.loads(read("pairs.json"))
    del plan["plans"][1]["programs"][0][0]
    path = write(folder, "wrong.json", json.dumps(plan))
    status, printed, errors = rondo("bench", "all_reduce", "-n", "4", "--algo", "file:" + path)
    assert status == 2 and STEP.search(errors) and not printed, (status, printed, errors)


# ---- Wrong: refused, with the step ----------------------------------------------------------------------------------

def parts_of(plan, rank):
    """rank's three steps: the input goes to the first peer; the sum of two is kept and goes on; all four."""
    return plan["plans"][rank]["programs"][0]


def send(peer, **more):
    return {"do": "copy", "from": [{"input": 0}], "to": [{"slot": peer}], **more}


def event(verb, kind, peer):
    return {"do": verb, "event": kind, "peer": peer}


def expand(plan, without):
    """Rank 0's first step in its parts, one of which is left out."""
    steps = [event("wait", "credit", 1), send(1), event("signal", "data", 1)]
    parts_of(plan, 0)[:1] = steps[:without] + steps[without + 1:]


def receive(plan, without):
    """Rank 0's last step in its parts, one of which is left out."""
    add = {"do": "reduce", "from": [{"output": 0}, {"slot": 2}], "to": [{"output": 0}], "finish": True}
    steps = [event("wait", "data", 2), add, event("signal", "credit", 2)]
    parts_of(plan, 0)[2:] = steps[:without] + steps[without + 1:]


def change(plan, rank, step, **members):
    parts_of(plan, rank)[step].update(members)


def no_finish(plan):
    del parts_of(plan, 0)[2]["finish"]


def swap_steps(plan):
    steps = parts_of(plan, 2)
    steps[0], steps[1] = steps[1], steps[0]


def no_scratch(plan):
    parts_of(plan, 1).insert(0, {"do": "copy", "from": [{"input": 0}], "to": [{"scratch": 0}]})


def all_wait(plan):
    """Everybody receives before it sends."""
    for rank in range(4):
        parts_of(plan, rank)[:0] = [event("wait", "data", rank ^ 1)]


WRONG = {
    "a wait for a slot is dropped": lambda p: expand(p, 0),
    "a copy into a slot is dropped": lambda p: expand(p, 1),
    "a signal is dropped": lambda p: expand(p, 2),
    "a wait for a message is dropped": lambda p: receive(p, 0),
    "a reduction is dropped": lambda p: receive(p, 1),
    "a slot is never given back": lambda p: receive(p, 2),
    "a whole step is dropped": lambda p: parts_of(p, 3).pop(0),
    "two steps are swapped": swap_steps,
    "the result is not finished": no_finish,
    "the sum is finished twice": lambda p: change(p, 1, 1, finish=True),
    "a share is counted twice": lambda p: change(p, 0, 2, **{"from": [{"output": 0}, {"output": 0}, {"slot": 2}]}),
    "the share of two ranks is lost": lambda p: change(p, 0, 2, **{"from": [{"input": 0}, {"slot": 2}]}),
    "a message goes to the wrong rank": lambda p: change(p, 0, 0, to=[{"slot": 3}]),
    "a message is copied and not added": lambda p: change(p, 2, 2, **{"from": [{"slot": 0}]}),
    "the sum does not come to the output": lambda p: change(p, 3, 2, to=[{"slot": 0}]),
    "memory that is not there is written": no_scratch,
    "everybody waits": all_wait,
}


def says_where(errors):
    """The step; or, where every step is right and one is missing, the rank that ends without its result."""
    return STEP.search(errors) or re.search(r"rank \d ends", errors)


def refused(folder, mutate):
    right = json.loads(read("pairs.json"))
    plan = copy.deepcopy(right)
    mutate(plan)
    assert plan != right, "this variant is not another plan"
    path = write(folder, "variant.json", json.dumps(plan, indent=1))
    status, printed, errors = rondo("verify", "--plan", path)
    assert status == 1 and not printed, (status, printed, errors)
    assert says_where(errors), errors


def half_of(step, half):
    def cut(places):
        return [place if "slot" in place else {**place, "first": half} for place in places]
    return {**step, "from": cut(step["from"]), "to": cut(step["to"])}


def too_few_slots(folder):
    """Two messages under way at once between each pair: with one slot everybody waits for the other."""
    plan = json.loads(read("pairs.json"))
    plan["parts"] = 2
    for rank in range(4):
        halves = [half_of(step, half) for step in parts_of(plan, rank) for half in (0, 1)]
        plan["plans"][rank]["programs"] = [halves]
    path = write(folder, "halves.json", json.dumps(plan, indent=1))
    assert "proved for 4 ranks" in succeed("verify", "--plan", path, "--slots", "2")
    status, _, errors = rondo("verify", "--plan", path, "--slots", "1")
    assert status == 1 and STEP.search(errors) and "wait for a free slot" in errors, errors


XML = {
    "a word that is no step": ('type="rrc"', 'type="what"', r"line 6: no step has the type what"),
    "a peer that is not there": ('send="1"', 'send="7"', r"line 4: send is 7; it may be -1 to 3"),
    "a chunk that is not there": ('srcoff="0" dstbuf="o"', 'srcoff="5" dstbuf="o"', r"GPU 0, block 0, step 0"),
    "no end": ("</algo>", "", r"line \d+: algo is not closed"),
    "an end too early": ("</tb>", "</gpu>", r"line 7: </gpu> stands where tb is open"),
    "an end of nothing": ("<algo", "</><algo", r"line \d+: </> stands where nothing is open"),
    "a sum that is not added": ('type="rrc" srcbuf="o"', 'type="r" srcbuf="o"', r"rank \d"),
    "a message that nobody takes": ('<step s="1" type="rrc" srcbuf="o" srcoff="0" dstbuf="o" dstoff="0" cnt="1" '
                                    'depid="-1" deps="-1" hasdep="0"/>', "", r"rank \d|gpu \d"),
}


def an_algorithm_of_msccl_is_the_choice_of_a_program():
    """RONDO_ALGORITHM names it; the benchmark asks for no algorithm, so it runs by what the setting says."""
    printed = succeed("bench", "all_reduce", "-n", "4", "--set", f"RONDO_ALGORITHM=file:{PLANS}/pairs.xml", "--bytes",
                      "4K", "--iterations", "5", "--rounds", "2", "--csv", "-")
    rows = list(csv.DictReader(io.StringIO(printed)))
    assert [(row["ran"], row["wrong"]) for row in rows] == [("pairs", "0")], rows


def wrong_xml(folder, before, after, says):
    text = read("pairs.xml")
    assert before in text
    path = write(folder, "variant.xml", text.replace(before, after, 1))
    status, printed, errors = rondo("verify", "--plan", path)
    assert status == 1 and not printed and re.search(says, errors), (status, printed, errors)
    status, printed, errors = rondo("bench", "all_reduce", "-n", "4", "--algo", "file:" + path)
    assert status == 2 and not printed and re.search(says, errors), (status, printed, errors)


def main():
    with tempfile.TemporaryDirectory(dir=cases.scratch_place()) as folder:
        pairs = os.path.join(PLANS, "pairs.json")
        right = [("pairs.json, written by hand", pairs, "pairs", 4, 2),
                 ("pairs.py writes it", script(folder, "pairs"), "pairs", 4, 2),
                 ("pairs.xml, of MSCCL", os.path.join(PLANS, "pairs.xml"), "pairs", 4, 2),
                 ("ring.py writes a ring of 3 ranks", script(folder, "ring", "3"), "ring_py", 3, 4)]
        tests = [(f"{name}: proved, drawn and run", functools.partial(prove_draw_run, folder, *rest))
                 for name, *rest in right]
        tests += cases.named([a_file_serves_nothing_else, an_algorithm_of_msccl_is_the_choice_of_a_program,
                              ranks_of_a_launcher_read_the_file, what_is_predicted_is_what_explain_says])
        tests += [("a wrong file is not measured", functools.partial(a_wrong_file_is_not_measured, folder)),
                  ("too few slots are refused", functools.partial(too_few_slots, folder))]
        tests += [(f"refused: {name}", functools.partial(refused, folder, mutate)) for name, mutate in WRONG.items()]
        tests += [(f"XML is refused: {name}", functools.partial(wrong_xml, folder, *rest))
                  for name, rest in XML.items()]
        return cases.run(tests)


if __name__ == "__main__":
    sys.exit(main())
