#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""errors.py - the page of all error sentences, docs/errors.md, out of the source and docs/errors.causes.

    errors.py > docs/errors.md        after a sentence was added or changed
    errors.py --check docs/errors.md  is it up to date? (a test)

Sentences are the formats of rondo_fail() and its kin. docs/errors.causes says of each room and result what the
cause is and what to do; a sentence that needs a cause of its own has a line there, too, that begins as it does.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROOMS = ['base', 'topology', 'kernels', 'transport', 'plan', 'collectives', 'cuda', 'comm', 'ddp']
CALL = re.compile(r'\b(rondo_fail|rondo_fail_errno|ddp_fail|decide|heard)\(((?:roster|me),\s*)?\s*'
                  r'(RONDO_ERROR_[A-Z]+)\s*,\s*')
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
FORMAT = re.compile(r'%[-+ #0]*[0-9*]*(?:\.[0-9*]+)?(?:hh|h|ll|l|z|j|t)?([a-zA-Z%])')
NAMES = {'s': '…', 'd': 'N', 'u': 'N', 'i': 'N', 'x': 'N', 'p': 'ADDRESS', 'g': 'N', 'f': 'N', 'c': '…', 'm': 'WHY'}


def literal(text, at):
    """The string literals from `at` on, as one."""
    parts = []
    while True:
        at += len(text[at:]) - len(text[at:].lstrip())
        found = STRING.match(text, at)
        if not found:
            break
        parts.append(found.group(1))
        at = found.end()
    return ''.join(parts).replace('\\"', '"').replace('\\n', ' ')


def in_words(form):
    return FORMAT.sub(lambda one: '%' if one.group(1) == '%' else NAMES.get(one.group(1), '…'), form)


def sentences():
    """(room, result, sentence, file) of all; what only passes another sentence on is none."""
    for room in ROOMS:
        for file in sorted((ROOT / room).rglob('*.c')):
            text = file.read_text()
            for call in CALL.finditer(text):
                sentence = in_words(literal(text, call.end())).strip()
                if len(sentence) > 4:
                    folder = file.relative_to(ROOT).parent.as_posix()
                    end = ': WHY' if call.group(1) == 'rondo_fail_errno' else ''
                    yield folder, call.group(3), sentence + end, file.relative_to(ROOT).as_posix()


def causes():
    """The lines 'KEY | cause | what to do', by key."""
    table = {}
    for line in (ROOT / 'docs' / 'errors.causes').read_text().splitlines():
        if line and not line.startswith('#'):
            parts = [part.strip() for part in line.split(' | ')]
            if len(parts) != 3:
                sys.exit(f'docs/errors.causes: a line is KEY | cause | what to do, not "{line}"')
            table[parts[0]] = parts[1:]
    return table


def cause_of(table, used, folder, result, sentence):
    keys = sorted((key for key in table if sentence.startswith(key)), key=len, reverse=True)
    while not keys and folder:
        keys = [key for key in [f'{folder} {result}'] if key in table]
        folder = folder.rpartition('/')[0]
    if not keys and result in table:
        keys = [result]
    if not keys:
        return None
    used.add(keys[0])
    return table[keys[0]]


def page():
    table, used, missing = causes(), set(), []
    lines = [(ROOT / 'docs' / 'errors.head.md').read_text().rstrip(), '']
    groups = {}
    for folder, result, sentence, file in sentences():
        found = cause_of(table, used, folder, result, sentence)
        if not found:
            missing.append(f'{folder} {result}: "{sentence}"')
            continue
        groups.setdefault(folder, {}).setdefault((result, *found), []).append((sentence, file))
    for folder, parts in groups.items():
        lines += [f'## {folder}/', '']
        for (result, cause, remedy), found in parts.items():
            lines += [f'**`{result}`** {cause} *What to do:* {remedy}', '']
            lines += [f'- {escape(sentence)} (`{file.rpartition("/")[2]}`)' for sentence, file in found]
            lines.append('')
    unused = sorted(set(table) - used)
    if missing or unused:
        sys.exit('docs/errors.causes has nothing about\n  ' + '\n  '.join(missing) if missing else
                 'docs/errors.causes speaks of what no sentence is about: ' + ', '.join(unused))
    return '\n'.join(lines).rstrip() + '\n'


def escape(sentence):
    return re.sub(r'([*_<|])', r'\\\1', sentence).replace('`', "'")


def main():
    text = page()
    if len(sys.argv) == 3 and sys.argv[1] == '--check':
        if pathlib.Path(sys.argv[2]).read_text() != text:
            sys.exit('docs/errors.md is not up to date: python3 docs/errors.py > docs/errors.md')
    else:
        sys.stdout.write(text)


if __name__ == '__main__':
    main()
