# SPDX-License-Identifier: BSD-3-Clause
"""`python -m rondo run -n 4 python program.py`: the `rondo` command, of the wheel or of the machine.

`rondo torch-env` is here, as only the wheel knows where its libraries are: lines for a shell, to be evaluated before
torchrun is started.
"""
import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ENVIRONMENT = """usage: eval "$(rondo torch-env [heap])"

heap  large tensors on the CPU are in memory that peers map: librondo-heap.so serves malloc()
Without a word it is heap. The wheel's libnccl.so.2 knows no GPU memory, so it is nothing for torch's backend nccl:
preload that of a Rondo which was built with the CUDA toolkit, LD_PRELOAD=$(pkg-config --variable=nccl rondo)."""


def is_of_wheel(path: str) -> bool:
    with open(path, "rb") as file:
        return b"rondo.__main__" in file.read(4096)


def installed() -> str:
    """The first `rondo` on PATH that is no script of a wheel; "" if there is none."""
    for folder in os.get_exec_path():
        path = shutil.which("rondo", path=folder)
        if path and not (os.access(path, os.R_OK) and is_of_wheel(path)):  # a script can be read, or it cannot run
            return path
    return ""


def command(word: str) -> str:
    """Where the `rondo` command is that has this word: in the wheel, else on PATH."""
    inside = os.path.join(HERE, "rondo-command")
    in_wheel = os.path.exists(inside)
    if in_wheel and word not in ("bench", "train"):
        return inside
    found = installed()
    if not found and in_wheel:
        sys.exit(f"rondo {word}: its programs are not in the wheel, and no other rondo is on PATH: install Rondo")
    if not found:
        sys.exit("rondo: the command is neither in this package nor on PATH: install the wheel of rondo-comm, or Rondo")
    return found


def torch_environment(words: list) -> str:
    """The line that makes a shell's programs load libraries of the wheel first; before others that it names already."""
    unknown = [word for word in words if word != "heap"]
    if unknown:
        sys.exit(ENVIRONMENT if unknown[0] in ("-h", "--help") else f"rondo torch-env: unknown word {unknown[0]!r}\n\n"
                 f"{ENVIRONMENT}")
    # The first one is what the second one needs.
    paths = [os.path.join(HERE, name) for name in ("librondo.so", "librondo-heap.so")]
    missing = [path for path in paths if not os.path.exists(path)]
    if missing:
        sys.exit(f"rondo torch-env: {missing[0]} is missing: only an installed wheel has these libraries (./dev wheel)")
    before = [path for path in os.environ.get("LD_PRELOAD", "").split(":") if path and path not in paths]
    return f"export LD_PRELOAD='{':'.join(paths + before)}'"


def main() -> None:
    """Become the command."""
    if sys.argv[1:2] == ["torch-env"]:
        print(torch_environment(sys.argv[2:]))
        return
    path = command(sys.argv[1] if sys.argv[1:] else "")
    os.execv(path, ["rondo"] + sys.argv[1:])


if __name__ == "__main__":
    main()
