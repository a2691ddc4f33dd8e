#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""make_abi.py - public headers as Python: enums, structs and prototypes for ctypes.

    make_abi.py            writes rondo/_abi.py, after a header has changed
    make_abi.py --check    is it up to date? (a test)

The headers are plain C with one declaration per function, so regular expressions read it; what they do not know is an
error here, and never a wrong prototype.
"""
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
HEADERS = [HERE.parent / "include" / "rondo" / name for name in ("rondo.h", "collectives.h", "p2p.h", "bindings.h")]
OUTPUT = HERE / "rondo" / "_abi.py"

HEAD = '''# SPDX-License-Identifier: BSD-3-Clause
"""What headers in include/rondo declare, for ctypes. Made by python/make_abi.py: change a header, then run that."""
from ctypes import (CFUNCTYPE, Structure, c_char_p, c_double, c_int, c_size_t, c_ubyte, c_uint, c_uint64,
                    c_void_p)
from enum import IntEnum
'''

# How C's types are passed. Pointers to objects of ours, to buffers and to places for results are addresses.
PLAIN = {"int": "c_int", "unsigned": "c_uint", "size_t": "c_size_t", "double": "c_double",
         "uint64_t": "c_uint64", "void": "None", "rondo_result": "c_int", "rondo_type": "c_int", "rondo_op": "c_int",
         "rondo_collective": "c_int", "unsigned char": "c_ubyte"}
# Python's names of enums; members lose the prefix.
ENUMS = {"rondo_result": "Result", "rondo_type": "Type", "rondo_collective": "Collective", "RONDO_OPS": "Op"}
COLUMNS = 120
COUNTERS = re.compile(r"RONDO_[A-Z]+S$")
CONSTANTS = re.compile(r"(\s*\w+\s*=\s*-\d+\s*,?)+")


def without_comments(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S)


def members_of(body):
    """(name without RONDO_, value) of an enum; the last one, which only counts the others, is left out."""
    value = 0
    members = []
    for part in filter(None, (part.strip() for part in body.split(","))):
        name, _, given = (word.strip() for word in part.partition("="))
        value = int(given, 0) if given else value
        members.append((name, value))
        value += 1
    assert COUNTERS.match(members[-1][0]), f"the last member of an enum says how many there are, not {members[-1]}"
    return members[-1][0], [(name.removeprefix("RONDO_"), number) for name, number in members[:-1]]


def enums(text):
    for name, body in re.findall(r"enum\s*(\w*)\s*\{(.*?)\}", text, re.S):
        if CONSTANTS.fullmatch(body):
            continue
        counter, members = members_of(body)
        title = ENUMS[name or counter]
        yield f"\n\nclass {title}(IntEnum):\n" + "".join(f"    {member} = {value}\n" for member, value in members)


def constants(text):
    """Members of enums that are numbers with a meaning of their own, all of them written out: RONDO_ANY_TAG = -1."""
    for body in re.findall(r"enum\s*\{(.*?)\}", text, re.S):
        if CONSTANTS.fullmatch(body):
            yield from (f"{name} = {value}\n" for name, value in re.findall(r"RONDO_(\w+)\s*=\s*(-?\d+)", body))


def config_init(text):
    """The fields of RONDO_CONFIG_INIT behind struct_size, which mean "not set"."""
    fields = re.search(r"RONDO_CONFIG_INIT\s*\\\s*\{(.*?)\}", text, re.S).group(1).replace("\\", " ").split(",")
    values = ["None" if field.strip() == "NULL" else str(float(field) if "." in field else int(field))
              for field in fields[1:]]
    return f"CONFIG_INIT = ({', '.join(values)})\n"


def passed_as(declaration, functions):
    """The ctypes type of `const void *input` or `size_t count`."""
    if re.match(r"\w+$", declaration) is None:
        declaration = re.sub(r"(\*|\s)\w+$", r"\1", declaration)  # without the name
    plain = " ".join(declaration.replace("const", " ").split())
    if plain == "char *":
        return "c_char_p"
    if "*" in plain:
        return "c_void_p"
    return functions.get(plain) or PLAIN[plain]


def title_of(name):
    return "".join(word.capitalize() for word in name.removeprefix("rondo_").split("_"))


def callbacks(text):
    """Types of functions that callers give us: C's name -> (Python's name, its line)."""
    found = {}
    for result, name, parameters in re.findall(r"typedef\s+(\w+)\s*\(\*(\w+)\)\(([^)]*)\);", text):
        types = [PLAIN[result]] + [passed_as(one.strip(), {}) for one in parameters.split(",")]
        found[name] = title_of(name), f"{title_of(name)} = CFUNCTYPE({', '.join(types)})\n"
    return found


def structs(text, functions):
    for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\} \w+;", text, re.S):
        fields = []
        for field in filter(None, (field.strip() for field in body.split(";"))):
            field_name, length = re.search(r"(\w+)(?:\[(\d+)\])?$", field).groups()
            kind = passed_as(re.sub(r"\[\d+\]$", "", field), functions)
            fields.append(f'("{field_name}", {kind}{f" * {length}" if length else ""})')
        yield f"\n\nclass {title_of(name)}(Structure):\n    _fields_ = [\n        " + \
            ",\n        ".join(fields) + ",\n    ]\n"


def prototypes(text, functions):
    for result, name, parameters in re.findall(r"RONDO_API\s+([\w\s]+?[\s*]+)(rondo_\w+)\s*\(([^;]*)\)\s*;", text):
        given = [] if parameters.strip() == "void" else [one.strip() for one in parameters.split(",")]
        types = "".join(passed_as(" ".join(one.split()), functions) + ", " for one in given)
        line = f'    "{name}": ({passed_as(result.strip() + " x", functions)}, ({types.rstrip() if types else ""})),\n'
        if len(line) > COLUMNS:
            start, rest = line[:COLUMNS].rsplit(" ", 1)[0], line[len(line[:COLUMNS].rsplit(" ", 1)[0]) + 1:]
            line = f"{start}\n{' ' * (line.index('(c_', 20) + 1)}{rest}"
        yield line


def make():
    header = "".join(path.read_text(encoding="utf-8") for path in HEADERS)
    text = without_comments(header)
    known = callbacks(text)
    functions = {name: title for name, (title, _) in known.items()}
    declared = len(re.findall(r"^RONDO_API", header, re.M))
    lines = list(prototypes(text, functions))
    assert len(lines) == declared, f"{declared} functions are declared, {len(lines)} were understood"
    version = re.search(r"VERSION_MAJOR (\d+).*VERSION_MINOR (\d+).*VERSION_PATCH (\d+)", header, re.S)
    return "".join([HEAD, f"\nHEADER_VERSION = ({', '.join(version.groups())})\n", *constants(text), config_init(text),
                    *enums(text), "\n\n",
                    *(line for _, line in known.values()), *structs(text, functions),
                    "\n\n# Function: (result, arguments).\nPROTOTYPES = {\n", *lines, "}\n"])


def main():
    made = make()
    if sys.argv[1:] != ["--check"]:
        OUTPUT.write_text(made, encoding="utf-8")
        return 0
    if OUTPUT.read_text(encoding="utf-8") == made:
        return 0
    print(f"{OUTPUT} does not fit the headers: run python/make_abi.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
