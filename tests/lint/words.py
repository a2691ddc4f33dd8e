# SPDX-License-Identifier: BSD-3-Clause
"""words.py - how lint.py judges comments: whole sentences, and no words that ARCHITECTURE's list has done away with."""
import re

# Words that were renamed: (the words, where they are refused, where they are something else, the word to use).
GONE = (
    ("lane lanes", r"^(plan|collectives|transport|comm)/", r"^(transport/link/endpoint|comm/gpu/links)\.", "channel"),
    ("lend lends lent lending loan loans", r"^(plan|transport|comm)/", "", "zero-copy send, zcopy"),
    ("crowd crowded", r"^(comm|collectives)/", r"/share/|/settings\.", "ranks_per_core, oversubscribed"),
    ("board boards", r"^(comm|transport|plan)/", "", "status page"),
    ("caption captions", r"^(comm|transport)/", "", "call header"),
    ("card cards", r"^(comm|transport)/", "", "endpoint, or handle of memory"),
    ("adopted", r"^(comm|transport)/", "", "registered"),
    ("window windows", r"^(plan|collectives|comm)/", "", "segment"),
    ("packet packets shorts", r"^(plan|transport/link|transport/memory)/", "", "LL line"),
    ("mover movers flights mail mails", r"^comm/", "", "proxy, call in flight, mailbox"),
    ("seat seats seated", r"^(comm|plan|collectives|cuda)/", "", "request, membership, position or devcomm"),
    ("visitor visitors seeker guest guests", r"^comm/rendezvous/", "", "client, connector"),
    ("mourn mourned laggard strays resting", r"^comm/", "", "suspect, straggler, unexpected, backoff"),
    ("party parties", r"^(collectives|plan)/", "", "subset"),
)

# A comment that begins so needs the sentence before it: it has no subject, or its subject stands elsewhere.
BEGINS = re.compile(r"\.\.\.|(What|Who|Whom|Whose|Which|Of|As|It|Its|The same|And|But|Or)\b(?!,)")
# A question that is not answered is no contract: "True if ..." says what is returned.
ASKS = re.compile(r"(Is|Are|Was|Were|Has|Have|Does|Did|Do|Can|Could|Would|Will|Must|May|Should)\b[^.;]*\?")
# "Where the sum begins." has no verb of its own; "Where ranks share cores, it does." has.
PLACES = re.compile(r"(Where|When|How|Why)\b[^,?]*?([.;:?]|$)")
WORDS = re.compile(r"[a-z]+|[A-Z]+(?![a-z])|[A-Z][a-z]*")


def comments_above(text):
    """(line, words, what stands below) of each comment that has lines of its own."""
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        begin = re.match(r"\s*/\* ?(.*)$", lines[number])
        if not begin:
            number += 1
            continue
        last = number
        while "*/" not in lines[last] and last + 1 < len(lines):
            last += 1
        body = [begin.group(1)] + [re.sub(r"^\s*\* ?", "", line) for line in lines[number + 1:last + 1]]
        below = lines[last + 1] if last + 1 < len(lines) else ""
        yield number + 1, " ".join(body).replace("*/", "").strip(), below
        number = last + 1


def is_elliptical(words, below):
    if not below.strip() or below.startswith("#include") or below.startswith(" " * 8):
        return False  # a heading, or the middle of a function
    inside = below.startswith(" ") and not re.match(r"\s+[\w\s*]+\(\*\w+\)\(", below)  # but for a contract in a table
    if inside:
        return words.startswith("...")
    return bool(BEGINS.match(words) or ASKS.match(words) or PLACES.match(words))


def check_sentences(path, text, complain):
    for line, words, below in comments_above(text):
        if is_elliptical(words, below):
            complain(path, line, f"\"{words[:40]}\" needs the sentence before it: a comment has a subject and a verb")


def check_gone(path, text, complain):
    rows = [(set(gone.split()), instead) for gone, where, but, instead in GONE
            if re.search(where, path) and not (but and re.search(but, path))]
    for number, line in enumerate(text.splitlines(), 1) if rows else ():
        parts = {part.lower() for part in WORDS.findall(re.sub(r'"(?:\\.|[^"\\])*"', "", line))}
        for gone, instead in rows:
            for word in gone & parts:
                complain(path, number, f"\"{word}\" is not used any more, but {instead}: see ARCHITECTURE's words")
