#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_command.py - `python -m rondo`, and the script of a wheel: which program becomes of them. Prints TAP."""
import os
import shutil
import subprocess
import sys
import tempfile

import rondo
import world
from world import cases


def the_module_is_the_command():
    environment = {**os.environ, "PATH": os.path.dirname(os.environ["TESTED_RONDO"]) + ":" + os.environ["PATH"]}
    said = subprocess.run([sys.executable, "-m", "rondo", "run", "-n", "2", sys.executable, "-c",
                           "import rondo; c = rondo.init(); c.barrier(); print(c.size)"],
                          env=environment, capture_output=True, text=True, timeout=world.PATIENCE, check=False)
    assert said.returncode == 0 and said.stdout.split() == ["2", "2"], said.stdout + said.stderr


def what_a_wheel_has_not_is_run_by_an_installed_rondo():
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(os.path.dirname(rondo.__file__), os.path.join(folder, "rondo"))
        # The script of a wheel comes first on PATH, as in an active virtual environment.
        for name, text in (("rondo/rondo-command", "echo wheel $1"), ("venv/rondo", "# rondo.__main__"),
                           ("bin/rondo", "echo installed $1")):
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"#!/bin/sh\n{text}\n")
            os.chmod(path, 0o755)

        def said(word, *programs):
            path = os.pathsep.join(os.path.join(folder, name) for name in programs)
            done = subprocess.run([sys.executable, "-m", "rondo", word], capture_output=True, text=True, check=False,
                                  env={**os.environ, "PYTHONPATH": folder, "PATH": path}, timeout=world.PATIENCE)
            return done.stdout + done.stderr

        assert said("run", "venv", "bin") == "wheel run\n"
        assert said("train", "venv", "bin") == "installed train\n" and said("bench", "bin") == "installed bench\n"
        assert "are not in the wheel" in said("bench", "venv"), said("bench", "venv")


def torch_env_names_libraries_of_a_wheel_and_nothing_else():
    def said(*words, **more):
        return subprocess.run([sys.executable, "-m", "rondo", "torch-env", *words], env={**os.environ, **more},
                              capture_output=True, text=True, timeout=world.PATIENCE, check=False)
    refused = said("nccl")  # that of a wheel has no CUDA
    assert refused.returncode and "unknown word 'nccl'" in refused.stderr and "toolkit" in refused.stderr, refused
    with tempfile.TemporaryDirectory() as folder:
        package = os.path.join(folder, "rondo")
        shutil.copytree(os.path.dirname(rondo.__file__), package, ignore=shutil.ignore_patterns("*.so"))
        missing = said(PYTHONPATH=folder)
        assert missing.returncode and "librondo.so is missing" in missing.stderr, missing
        libraries = [os.path.join(package, name) for name in ("librondo.so", "librondo-heap.so")]
        for library in libraries:  # the package loads the first one
            os.symlink(os.path.join(os.environ["LD_LIBRARY_PATH"].split(":")[0], "librondo.so"), library)
        line = said(PYTHONPATH=folder, LD_PRELOAD="").stdout
        assert line == f"export LD_PRELOAD='{':'.join(libraries)}'\n", line
        line = said("heap", PYTHONPATH=folder, LD_PRELOAD="libother.so.1").stdout  # the loader only warns of it
        assert line == f"export LD_PRELOAD='{':'.join(libraries)}:libother.so.1'\n", line


if __name__ == "__main__":
    sys.exit(cases.run(cases.named([
        the_module_is_the_command, what_a_wheel_has_not_is_run_by_an_installed_rondo,
        torch_env_names_libraries_of_a_wheel_and_nothing_else])))
