#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""fuzz.py - runs the targets of a build with -Dfuzz=true, two at a time, and says what came of it.

    fuzz.py FOLDER SECONDS [--keep] [--same] [NAME ...]      ./dev fuzz does this, and ./dev test for each target

What a target finds stays in out/fuzz/found, one input per file. Give it to the target of any other build to see
it again, mend the library, and add it to corpus/NAME.hex with a comment: that is its test from then on. --keep adds
the inputs to the corpus that reach more code than what is there. --same begins with the corpus alone and always the
same seed: tests of one commit try the same inputs, and ./dev fuzz is there to find others.
"""
import concurrent.futures
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
OUT = HERE.parent.parent / 'out' / 'fuzz'
FIXED = ['setarch', '-R']  # addresses that a target compares are the same each time; a container may not allow it
MOST, LONGEST = 48, 1024  # inputs that a corpus gets by itself, and bytes of each


def inputs_of(name):
    text = (HERE / 'corpus' / f'{name}.hex').read_text()
    return [bytes.fromhex(line) for line in text.splitlines() if not line.startswith('#')]


def unpack(name, again):
    folder = OUT / (f'{name}.same' if again else name)
    if again:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    for one in inputs_of(name):
        (folder / hashlib.sha1(one).hexdigest()).write_bytes(one)
    return folder


def call(build, name, *arguments, before=()):
    command = [*before, build / 'tests' / 'fuzz' / f'fuzz_{name}', *arguments]
    reports = {'ASAN_OPTIONS': ''}  # to stderr
    return subprocess.run(command, capture_output=True, text=True, errors='replace', env=os.environ | reports)


def run(build, name, seconds, again):
    """Figures of one target: executions, edges of code reached, and whether it found something."""
    folder, found = unpack(name, again), OUT / 'found'
    found.mkdir(exist_ok=True)
    known = sorted(found.glob(f'{name}-*'))  # chance does not find it again, and it is not mended by that
    done = call(build, name, *known) if known else None
    if done is None or done.returncode == 0:
        # The seed says which inputs come next; by default the folder is read again whenever a second has passed.
        same = ['-seed=1', '-reload=0'] if again else []
        fixed = FIXED if again and shutil.which(FIXED[0]) and not subprocess.run([*FIXED, 'true']).returncode else []
        done = call(build, name, folder, *same, f'-max_total_time={seconds}', '-max_len=4096', '-timeout=150',
                    '-rss_limit_mb=3000', '-print_final_stats=1', f'-artifact_prefix={found}/{name}-', before=fixed)
    units = re.findall(r'number_of_executed_units: (\d+)', done.stderr)
    edges = re.findall(r'cov: (\d+)', done.stderr)
    (OUT / f'{name}.log').write_text(done.stderr)
    return name, int(units[-1]) if units else 0, int(edges[-1]) if edges else 0, done.returncode != 0


def keep(build, name):
    """Adds what reaches more code, shortest first; comments and inputs that are there stay."""
    merged = OUT / f'{name}.merged'
    merged.mkdir(exist_ok=True)
    for old in merged.iterdir():
        old.unlink()
    have = inputs_of(name)
    for one in have:
        (merged / hashlib.sha1(one).hexdigest()).write_bytes(one)
    subprocess.run([build / 'tests' / 'fuzz' / f'fuzz_{name}', '-merge=1', merged, OUT / name], capture_output=True)
    new = sorted((file.read_bytes() for file in merged.iterdir()), key=lambda one: (len(one), one))
    new = [one for one in new if one not in have and 0 < len(one) <= LONGEST]
    step = max(1, -(-len(new) // max(1, MOST - len(have))))
    with (HERE / 'corpus' / f'{name}.hex').open('a') as corpus:
        corpus.writelines(one.hex() + '\n' for one in new[::step])


def main():
    words = [word for word in sys.argv[1:] if word not in ('--keep', '--same')]
    if len(words) < 2:
        sys.exit(__doc__)
    build, seconds = pathlib.Path(words[0]).resolve(), int(float(words[1]))
    names = words[2:] or sorted(file.stem for file in (HERE / 'corpus').glob('*.hex'))
    OUT.mkdir(parents=True, exist_ok=True)
    bad = []
    print(f'{"target":<14}{"executions":>12}{"edges":>8}   found')
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for name, units, edges, failed in pool.map(lambda name: run(build, name, seconds, '--same' in sys.argv),
                                                     names):
            found = f'something: out/fuzz/{name}.log' if failed else 'nothing'
            print(f'{name:<14}{units:>12}{edges:>8}   {found}', flush=True)
            if failed:
                print(''.join((OUT / f'{name}.log').read_text().splitlines(keepends=True)[-40:]), flush=True)
            bad += [name] if failed else []
    if '--keep' in sys.argv:
        for name in names:
            keep(build, name)
    sys.exit(f'fuzz: {", ".join(bad)} found something, see out/fuzz' if bad else 0)


if __name__ == '__main__':
    main()
