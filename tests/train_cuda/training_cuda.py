#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""training_cuda.py - `rondo train --memory cuda` beside the same on the host. Usage: training_cuda.py RONDO; TAP.

Runs where libcuda.so.1 and libcublas.so.13 are those of the stand-in, or a GPU's.
"""
import csv
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases  # noqa: E402  tests/cases.py

RONDO = os.path.abspath(sys.argv[1])
TINY = ["--digits=2", "--width=32", "--heads=2", "--layers=2", "--batch=8", "--steps=20", "--evaluate=10"]
ROUNDING = 1e-5  # relative


def train(*options, status=0, **environment):
    result = subprocess.run([RONDO, "train", *options], capture_output=True, text=True, timeout=250, check=False,
                            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", **environment})
    assert result.returncode == status, f"status {result.returncode}, not {status}\n{result.stdout}{result.stderr}"
    return result.stdout if status == 0 else result.stderr


def course(path):
    with open(path, encoding="utf-8") as file:
        return [[float(row[name]) for name in ("loss", "norm", "held_out_loss") if row[name]]
                for row in csv.DictReader(file)]


def content(path):
    with open(path, "rb") as file:
        return file.read()


def alike(left, right):
    here, there = course(left), course(right)
    assert len(here) == len(there) > 0
    worst = max(abs(a - b) / abs(a) for x, y in zip(here, there) for a, b in zip(x, y))
    assert worst <= ROUNDING, f"{left} and {right} differ by {worst}"


def losses_are_those_of_the_host(ranks, *options):
    train(f"-n{ranks}", *TINY, *options, "--samples=0", "--csv=host.csv")
    train(f"-n{ranks}", *TINY, *options, "--samples=0", "--memory=cuda", "--csv=cuda.csv", "--json=cuda.json")
    alike("host.csv", "cuda.csv")
    with open("cuda.json", encoding="utf-8") as file:
        summary = json.load(file)
    assert summary["computes_on"] == "cuda" and summary["ranks"] == ranks
    assert summary["bytes_per_step"] >= 4 * summary["parameters"]
    assert 0 <= summary["hidden"] <= 1, summary


def one_rank_has_the_losses_of_the_host():
    losses_are_those_of_the_host(1)


def two_ranks_have_the_losses_of_the_host():
    losses_are_those_of_the_host(2)


def four_ranks_have_the_losses_of_the_host():
    losses_are_those_of_the_host(4, "--bucket-bytes=20000")


def passes_of_a_step_add_up():
    losses_are_those_of_the_host(2, "--accumulate=3", "--clip=0", "--steps=8")


def ranks_share_a_gpu():
    train("-n2", *TINY, "--samples=0", "--csv=host.csv")
    train("-n2", *TINY, "--samples=0", "--memory=cuda", "--csv=cuda.csv", CUDA_VISIBLE_DEVICES="0")
    alike("host.csv", "cuda.csv")


def the_same_seed_gives_the_same_bits():
    for name in "ab":
        train("-n2", *TINY, "--memory=cuda", "--samples=0", f"--csv={name}.csv", f"--checkpoint={name}.ck")
    assert content("a.ck") == content("b.ck") and course("a.csv") == course("b.csv")


def a_checkpoint_goes_from_one_kind_of_memory_to_the_other():
    options = ["-n2", *TINY, "--warmup=1000000", "--samples=0"]
    train(*options, "--csv=whole.csv")
    for first, second in (("host", "cuda"), ("cuda", "host")):
        train(*options, f"--memory={first}", "--steps=10", "--checkpoint=part.ck", "--csv=part.csv")
        train(*options, f"--memory={second}", "--resume", "--checkpoint=part.ck", "--csv=part.csv")
        alike("whole.csv", "part.csv")


def the_same_texts_are_written():
    options = [*TINY, "--rate=0.02", "--samples=3"]
    texts = [train(*options, *more).splitlines()[:3] for more in ([], ["--memory=cuda"])]
    assert texts[0] == texts[1] and all(" + " in text for text in texts[0]), texts


def a_gradient_that_is_no_number_ends_the_training():
    said = train("-n2", *TINY, "--memory=cuda", "--rate=1e30", "--warmup=0", status=1)
    assert "the gradient is not finite in step 2" in said, said


def what_does_not_go_together_is_refused_in_a_sentence():
    for option, words in (("--shard=full", "leave out --shard full"), ("--precision=float16", "--precision float32"),
                          ("--deterministic", "leave out --deterministic")):
        said = train("--memory=cuda", option, status=2)
        assert words in said.splitlines()[0], said
    assert "there is no --memory 'disk'; there are host, cuda" in train("--memory=disk", status=2)


def what_is_missing_is_said_once():
    with tempfile.TemporaryDirectory() as folder:
        for names, words in ((("libcublas.so.12", "libcublas.so.13"), "needs cuBLAS"),
                             (("libcuda.so.1",), "needs NVIDIA's driver")):
            for name in names:  # no library, but the first file of that name
                with open(os.path.join(folder, name), "w", encoding="utf-8"):
                    pass
            path = folder + ":" + os.environ.get("LD_LIBRARY_PATH", "")
            said = train("-n2", *TINY, "--memory=cuda", status=1, LD_LIBRARY_PATH=path)
            assert len(said.splitlines()) == 1 and words in said, said


def kernels_for_the_library_alone_are_named():
    image = os.environ["OTHER_KERNELS"]
    said = train("-n2", *TINY, "--memory=cuda", status=1, RONDO_CUDA_IMAGE=image)
    if os.environ["OWN_KERNELS"] == "0":
        assert f"{image} (RONDO_CUDA_IMAGE) has no kernels of rondo train" in said, said
    else:  # it takes its own, which are for a GPU and not for the stand-in
        assert "cuModuleLoadData, of the kernels, failed: the image of kernels is not valid" in said, said


CASES = (one_rank_has_the_losses_of_the_host, two_ranks_have_the_losses_of_the_host,
         four_ranks_have_the_losses_of_the_host, passes_of_a_step_add_up, ranks_share_a_gpu,
         the_same_seed_gives_the_same_bits, a_checkpoint_goes_from_one_kind_of_memory_to_the_other,
         the_same_texts_are_written, a_gradient_that_is_no_number_ends_the_training,
         what_does_not_go_together_is_refused_in_a_sentence, what_is_missing_is_said_once,
         kernels_for_the_library_alone_are_named)


def main():
    os.environ["RONDO_LOG"] = "none"
    return cases.run_in_scratch(CASES)


if __name__ == "__main__":
    sys.exit(main())
