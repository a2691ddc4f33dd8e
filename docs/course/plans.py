# SPDX-License-Identifier: BSD-3-Clause
"""plans.py - what the exercises of the course are written with: the plans of all ranks, printed as JSON.

    from plans import combine, inp, out, slot, write
    write("broadcast", "pair", 2, lambda rank: [...])

A line of the file has one step, so the line that `rondo verify --plan` names is the step to look at.
"""
import json


def inp(first=0, block=0):
    """Atom `first` of a block of this rank's input."""
    return {"input": block, "first": first}


def out(first=0, block=0):
    """The same of its output."""
    return {"output": block, "first": first}


def slot(peer, channel=0):
    """Among sources the message from `peer`, among targets the one to it."""
    return {"slot": peer, "channel": channel}


def combine(sources, targets, **more):
    """Copies one source, or the sum of several, to all targets. Slots are waited for, announced and given back."""
    return {"do": "combine", "from": sources, "to": targets, **more}


def wait(event, peer, **more):
    """For "data", a message from `peer`, or for "credit", a free slot to it."""
    return {"do": "wait", "event": event, "peer": peer, **more}


def signal(event, peer, **more):
    """Tells `peer` that a message is complete, or gives its slot back."""
    return {"do": "signal", "event": event, "peer": peer, **more}


def copy(sources, targets, **more):
    """Copies, and nothing else: waits and signals are steps of their own."""
    return {"do": "copy", "from": sources, "to": targets, **more}


def write(collective, name, ranks, program_of, parts=1, **more):
    """Prints the plans: program_of(rank) gives its steps, or lists of steps that run side by side."""
    head = {"format": "rondo plan 1", "collective": collective, "algorithm": name, "ranks": ranks, "parts": parts,
            "message_atoms": 1, **more}
    plans = []
    for rank in range(ranks):
        steps = list(program_of(rank))
        programs = [steps] if not steps or isinstance(steps[0], dict) else steps
        lists = ["[\n" + ",\n".join("   " + json.dumps(step) for step in program) + "]" for program in programs]
        plans.append(f'  {{"rank": {rank}, "programs": [' + ", ".join(lists) + "]}")
    print(json.dumps(head)[:-1] + ',\n "plans": [\n' + ",\n".join(plans) + "]}")
