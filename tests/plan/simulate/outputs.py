#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""outputs.py - what `rondo simulate` prints and writes. Usage: outputs.py RONDO; prints TAP."""
import collections
import csv
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
import cases  # noqa: E402  tests/cases.py

RONDO = os.path.abspath(sys.argv[1])


def both_streams(*options, status=0):
    done = subprocess.run([RONDO, "simulate", *options], capture_output=True, text=True, check=False, timeout=100,
                          env=cases.clean_environment())
    assert done.returncode == status, f"status {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout, done.stderr


def simulate(*options, status=0):
    return both_streams(*options, status=status)[status != 0]


def table_csv_and_json_say_the_same():
    options = ["all_reduce", "-n", "12", "-t", "hosts", "-b", "1K:1M", "-a", "ring,tree"]
    table = simulate(*options, "--csv", "out.csv", "--json", "out.json")
    with open("out.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with open("out.json", encoding="utf-8") as file:
        answer = json.load(file)
    assert (answer["collective"], answer["ranks"]) == ("all_reduce", 12), answer
    assert {row["algorithm"] for row in rows} == {"ring", "tree"}
    assert len({row["bytes"] for row in rows}) * 2 == len(rows) > 4
    for row in rows:
        seconds = float(row["seconds"])
        assert seconds > 0 and abs(float(row["algbw_GBps"]) * seconds * 1e9 / int(row["bytes"]) - 1) < 1e-3, row
        assert f"{seconds * 1e6:.2f}" in table, (row, table)
    for size in {row["bytes"] for row in rows}:
        here = [row for row in rows if row["bytes"] == size]
        fastest = min(here, key=lambda row: float(row["seconds"]))
        assert [row["algorithm"] for row in here if row["fastest"] == "1"] == [fastest["algorithm"]], here
    numbers = sorted(float(row["seconds"]) for row in rows)
    told = sorted(result["seconds"] for result in answer["results"])
    assert all(abs(a - b) < 1e-5 * b for a, b in zip(told, numbers)) and len(told) == len(numbers), (told, numbers)


def pictures_are_xml():
    simulate("all_reduce", "-n", "4", "-t", "alpha-beta", "-b", "4K:64K", "-a", "ring", "--whole", "--svg", "out.svg")
    assert xml.etree.ElementTree.parse("out.svg").getroot().tag.endswith("svg")


def slices_of_a_time_line_do_not_overlap():
    for machine, ranks in ("alpha-beta", 4), ("dgx", 16):
        simulate("all_to_all", "-n", str(ranks), "-t", machine, "-b", "1M", "-a", "direct", "--whole",
                 "--chrome", "out.trace.json")
        with open("out.trace.json", encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        threads, messages = collections.defaultdict(list), {}
        for event in events:
            if event["ph"] == "X":
                threads[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
            elif event["ph"] == "b":
                assert messages.setdefault((event["pid"], event["id2"]["local"]), event) is event, event
            elif event["ph"] == "e":
                begun = messages[event["pid"], event["id2"]["local"]]
                assert begun["name"] == event["name"] and begun["ts"] <= event["ts"], (begun, event)
        assert {rank for rank, _ in threads} == set(range(ranks)), threads.keys()
        assert len(messages) == sum(event["ph"] == "e" for event in events) > 0, len(messages)
        for slices in threads.values():
            slices.sort()
            assert slices[0][0] >= 0 and all(begin <= end for begin, end in slices)
            # Readers count in whole nanoseconds.
            assert all(round(end * 1e3) <= round(begin * 1e3) for (_, end), (begin, _) in zip(slices, slices[1:]))


def a_time_line_that_fails_takes_no_row_away_and_is_told():
    said = simulate("all_reduce", "-n", "4", "-b", "1K", "--json", "out.json", "--chrome", "/nonexistent/x", status=1)
    assert "cannot write /nonexistent/x" in said, said
    with open("out.json", encoding="utf-8") as file:
        rows = {row["algorithm"] for row in json.load(file)["results"]}
    plain = simulate("all_reduce", "-n", "4", "-b", "1K")
    assert rows == set(re.findall(r"^(\w+) +1K ", plain, re.MULTILINE)), (rows, plain)


def a_time_line_is_of_the_last_algorithm_that_can_be_simulated():
    """The last one of all needs slots with room for several parts."""
    simulate("all_gather", "-n", "16", "-t", "fat-tree,slot_bytes=4", "-b", "1K", "--csv", "out.csv",
             "--chrome", "out.trace.json")
    with open("out.csv", encoding="utf-8") as file:
        last = list(csv.DictReader(file))[-1]
    with open("out.trace.json", encoding="utf-8") as file:
        ends = [event["ts"] + event.get("dur", 0) for event in json.load(file)["traceEvents"] if "ts" in event]
    assert abs(max(ends) - 1e6 * float(last["seconds"])) < 0.01, (max(ends), last)


def one_rank_stands_for_others_only_as_far_as_plans_were_compared():
    assert "in all 64 plans, so this is exact" in simulate("all_reduce", "-n", "64", "-b", "1K", "-a", "ring")
    assert "as far as compared: " in simulate("all_reduce", "-n", "100000", "-b", "1K", "-a", "ring")


def a_barrier_is_one_row_of_no_bytes():
    simulate("barrier", "-n", "4", "-a", "direct", "--csv", "out.csv")
    with open("out.csv", encoding="utf-8") as file:
        row, = csv.DictReader(file)
    assert [float(row[name]) for name in ("bytes", "algbw_GBps", "busbw_GBps")] == [0, 0, 0], row
    assert float(row["seconds"]) > 0, row
    assert "which a barrier does not have" in simulate("barrier", "-n", "4", "--svg", "out.svg", status=2)


def links_that_are_not_there_are_named():
    small = ["all_reduce", "-n", "16", "-b", "1K", "-a", "ring"]
    tree = ["-t", "dgx,fabric=tree,leaf_hosts=1"]
    for link, more in (("nic-out:99", []), ("uplink:0", []), ("uplink:0/4", tree), ("uplink:2", tree)):
        said = both_streams(*small, *more, "--link", link + "=0")[1]
        assert said.count("\n") == 1 and f"no message passes {link}, so that --link changes nothing" in said, said
    for link, more in (("nic-out:7", []), ("uplink:0", tree), ("uplink:0/3", tree)):
        assert both_streams(*small, *more, "--link", link + "=0.5")[1] == "", link
    assert "no message passes" not in simulate(*small, "--link", "nic-out:7=0", status=1)
    for link in ("nic-out:-5=0", "uplink:0/-1=0", "uplink:-1/0=0"):
        assert f"not '{link}'" in simulate(*small, "--link", link, status=2)


def files_that_hold_no_topology_are_refused():
    for text, words in (("[]", "is no topology"), ("5", "is no topology"), ('{"base": 5}', '"base" is the name of')):
        with open("t.json", "w", encoding="utf-8") as file:
            file.write(text)
        said = simulate("all_reduce", "-n", "4", "-b", "1K", "-t", "t.json", status=2)
        assert words in said, said
    with open("t.json", "w", encoding="utf-8") as file:
        file.write('{"name": "x", "nics": 1}')
    simulate("all_reduce", "-n", "4", "-b", "1K", "-t", "t.json")


def wrong_words_are_refused():
    assert "nosuch" in simulate("all_reduce", "-n", "4", "-t", "nosuch", "-b", "1K", status=2)
    assert "nosuch" in simulate("all_reduce", "-n", "4", "-a", "nosuch", "-b", "1K", status=2)


if __name__ == "__main__":
    sys.exit(cases.run([(name, cases.in_scratch(function)) for name, function in cases.named([
        table_csv_and_json_say_the_same, pictures_are_xml, slices_of_a_time_line_do_not_overlap,
        a_time_line_that_fails_takes_no_row_away_and_is_told,
        a_time_line_is_of_the_last_algorithm_that_can_be_simulated,
        one_rank_stands_for_others_only_as_far_as_plans_were_compared,
        a_barrier_is_one_row_of_no_bytes, links_that_are_not_there_are_named, files_that_hold_no_topology_are_refused,
        wrong_words_are_refused])]))
