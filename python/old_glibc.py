#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""old_glibc.py - a compiler whose programs also run where glibc is older than here.

    old_glibc.py gcc|g++ ARGUMENT...

What is linked here asks for this machine's versions of glibc's symbols. zig has those of every version: so the compiler
compiles, as everywhere else, and zig links.
"""
import os
import platform
import shutil
import subprocess
import sys

GLIBC = "2.28"
# Neither the compiler's questions about itself nor anything that stops before linking.
NOT_LINKING = {"-c", "-E", "-S", "-M", "-MM", "--version", "-dumpversion", "-v", "-Wl,--version"}
# Flags that zig does not have: folders where programs are tried before they are installed, and how hard to link.
UNKNOWN = ("-Wl,-rpath-link,", "-fuse-ld=", "-Wl,-O")
OTHER = {"-Wl,-Bsymbolic-functions": "-Wl,-Bsymbolic"}


def libraries_of(compiler):
    """The compiler's own libraries, by their paths. zig would take its own, which have other exceptions, see no AVX
    where the compiler asks for it, and have a memcpy() that goes before the many times faster one of glibc.
    """
    names = ["libgcc.a", *(["libstdc++.so", "libgcc_s.so.1"] if compiler == "g++" else [])]
    return [subprocess.run([compiler, f"-print-file-name={name}"], check=True, capture_output=True, text=True)
            .stdout.strip() for name in names]


def main():
    compiler, arguments = sys.argv[1], sys.argv[2:]
    if any(argument in NOT_LINKING or argument.startswith(("-print", "--print")) for argument in arguments):
        command = ["ccache"] if shutil.which("ccache") else []
        command += [compiler, *arguments]
    else:
        command = [sys.executable, "-m", "ziglang", "cc", "-target", f"{platform.machine()}-linux-gnu.{GLIBC}",
                   *(OTHER.get(argument, argument) for argument in arguments if not argument.startswith(UNKNOWN)),
                   *libraries_of(compiler)]
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
