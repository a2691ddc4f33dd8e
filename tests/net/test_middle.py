#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_middle.py - jobs on two hosts with somebody in the middle who changes what they tell each other: results are
right, or the call is an error. Usage: test_middle.py NET_RANK [TEST...]; prints TAP."""
import os
import random
import sys
import time

from hosts import cases, run_tests
from middle import Middle

NET_RANK = os.path.abspath(sys.argv[1])
THREES = b"\x00\x00\x40\x40" * 4  # what ranks sum up
HUNDRED = b"\x00\x00\xc8\x42"
SETTINGS = {"RONDO_LOG": "none", "RONDO_TRANSPORT": "tcp", "RONDO_TIMEOUT": cases.patience(6),
            "RONDO_TCP_TIMEOUT": cases.patience(1)}
GOOD, ERROR, WRONG = 0, 1, 3
SECONDS = 250


class Counter:
    def __init__(self):
        self.times = 0


def ends(middle, command, **more):
    """What becomes of ranks that run while the middle carries: statuses and texts, by rank."""
    middle.port = 4711  # the next is the one that the middle listens at
    ranks = middle.start(command, 1, **SETTINGS, **more)
    until = time.monotonic() + SECONDS
    while any(rank.process.poll() is None for rank in ranks) and time.monotonic() < until:
        middle.carry(0.02)
    hung = [rank.number for rank in ranks if rank.process.poll() is None]
    assert not hung, f"ranks {hung} did not end in {SECONDS} s"
    return [rank.wait(1) for rank in ranks], [rank.out for rank in ranks]


def honest(way, came):
    return came


def threes_become_a_hundred(counter):
    def meddle(_, came):
        at = came.find(THREES)
        if at < 0:
            return came
        counter.times += 1
        return came[:at] + HUNDRED + came[at + 4:]
    return meddle


def a_change_at(number, back, offset, change):
    """`change` gets the bytes of one way of a connection from `offset` on, as they come."""
    def meddle(way, came):
        at = offset - way.carried
        if way.number != number or way.back != back or not 0 <= at < len(came):
            return came
        return change(came, at)
    return meddle


def a_bit_flips(came, at):
    return came[:at] + bytes([came[at] ^ 1 << at % 8]) + came[at + 1:]


CHANGES = [a_bit_flips, a_bit_flips, lambda came, at: came[:at] + came[at + 1:],
           lambda came, at: came[:at] + came[at - 9 if at > 9 else 0:], lambda came, at: None]


def an_honest_middle_does_no_harm():
    for security in ("none", "authentic", "secret"):
        with Middle(honest) as middle:
            statuses, texts = ends(middle, [NET_RANK, "sums", "6"], RONDO_SECURITY=security)
            assert statuses == [GOOD, GOOD] and middle.connections >= 3, (security, texts, middle.connections)


def payload_that_is_changed_is_an_error_of_both_ranks():
    counter = Counter()
    with Middle(threes_become_a_hundred(counter)) as middle:
        statuses, texts = ends(middle, [NET_RANK, "sums", "6"], RONDO_SECURITY="authentic")
    assert counter.times, "nothing was changed"
    assert statuses == [ERROR, ERROR], texts
    for text in texts:
        assert "is not what it sent" in text and "10.77.0." in text, text
        assert "It came in all_reduce of 100000 float32, sum (call 1)." in text, text  # as the user counts


def payload_that_is_changed_is_believed_without_security():
    """What RONDO_SECURITY=none means; and that the test above can fail."""
    counter = Counter()
    with Middle(threes_become_a_hundred(counter)) as middle:
        statuses, texts = ends(middle, [NET_RANK, "sums", "6"], RONDO_SECURITY="none")
    assert counter.times and WRONG in statuses, texts


def a_secret_payload_is_not_seen():
    for security, sees in (("authentic", True), ("secret", False)):
        counter = Counter()

        def look(_, came, counter=counter):
            counter.times += THREES in came
            return came
        with Middle(look) as middle:
            statuses, texts = ends(middle, [NET_RANK, "sums", "6"], RONDO_SECURITY=security)
        assert statuses == [GOOD, GOOD], texts
        assert (counter.times > 0) == sees, f"{security}: seen in {counter.times} places"


def any_change_anywhere_is_an_error_or_does_no_harm():
    """The first connections are: to the meeting point, control, data."""
    draw = random.Random(5)
    outcomes = []
    for turn in range(14):
        number, back = turn % 3, draw.random() < 0.5
        offset = int(10 ** draw.uniform(0, 2.8 if number < 2 else 5))
        meddle = a_change_at(number, back, offset, draw.choice(CHANGES))
        with Middle(meddle) as middle:
            statuses, texts = ends(middle, [NET_RANK, "sums", "6"], RONDO_SECURITY=("authentic", "secret")[turn % 2])
        assert all(status in (GOOD, ERROR) for status in statuses), (turn, number, back, offset, statuses, texts)
        outcomes += statuses
    assert ERROR in outcomes, outcomes


def ranks_that_want_different_security_say_both():
    wants = 'test "$RONDO_RANK" = 1 && export RONDO_SECURITY=secret; exec "$0" sums 6'
    with Middle(honest) as middle:
        statuses, texts = ends(middle, ["sh", "-c", wants, NET_RANK], RONDO_SECURITY="authentic")
    assert statuses == [ERROR, ERROR], texts
    for text in texts:
        assert "RONDO_SECURITY=secret" in text and "RONDO_SECURITY=authentic" in text, text


def rdma_alone_and_security_exclude_each_other():
    with Middle(honest) as middle:
        statuses, texts = ends(middle, ["env", "RONDO_TRANSPORT=verbs", NET_RANK, "sums", "1"], RONDO_SECURITY="secret")
    assert statuses == [ERROR, ERROR], texts
    assert any("exclude each other" in text for text in texts), texts


TESTS = [
    an_honest_middle_does_no_harm,
    payload_that_is_changed_is_an_error_of_both_ranks,
    payload_that_is_changed_is_believed_without_security,
    a_secret_payload_is_not_seen,
    any_change_anywhere_is_an_error_or_does_no_harm,
    ranks_that_want_different_security_say_both,
    rdma_alone_and_security_exclude_each_other,
]


if __name__ == "__main__":
    sys.exit(run_tests(TESTS, sys.argv[2:]))
