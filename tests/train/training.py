#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""training.py - `rondo train` as people use it, with small models. Usage: training.py RONDO RONDO_TRAIN; prints TAP.

Does it learn, are runs alike, do 1, 2, 4 and 8 ranks agree, does it go on after kill -9 as if nothing had happened?
"""
import csv
import fcntl
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import xml.dom.minidom

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases  # noqa: E402  tests/cases.py

RONDO, PROGRAM = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
SMALL = ["--digits=2", "--width=32", "--heads=2", "--layers=2", "--samples=0"]
TINY = [*SMALL, "--batch=8", "--steps=20", "--evaluate=10"]


def environment(**more):
    clean = cases.clean_environment()
    return {**clean, "OPENBLAS_NUM_THREADS": "1", **{k: str(v) for k, v in more.items()}}


def train(*options, status=0, **more):
    result = subprocess.run([RONDO, "train", *options], capture_output=True, text=True, timeout=250, check=False,
                            env=environment(**more))
    assert result.returncode == status, f"status {result.returncode}, not {status}\n{result.stdout}{result.stderr}"
    return result.stdout if status == 0 else result.stderr


def content(path):
    with open(path, "rb") as file:
        return file.read()


def rows(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(file))


def course(path):
    """What must not depend on time: step, loss, rate, norm and what is held out."""
    return [[row[name] for name in ("step", "loss", "rate", "norm", "held_out_loss", "held_out_accuracy")]
            for row in rows(path)]


def losses(path):
    return [float(row["loss"]) for row in rows(path)]


def close(left, right, tolerance):
    assert len(left) == len(right) > 0
    worst = max(abs(a - b) for a, b in zip(left, right))
    assert worst <= tolerance, f"losses differ by {worst}"


def accuracy_of(output):
    last = output.strip().splitlines()[-1]
    assert last.startswith("held-out accuracy ") and last.endswith(" %"), output
    return float(last.split()[2])


def learns():
    output = train("-n", "2", *SMALL, "--batch=64", "--steps=900", "--svg=l.svg", "--json=l.json",
                   "--csv=l.csv", "--samples=3")
    assert accuracy_of(output) >= 90, output
    assert output.count(" + ") == 3, output
    assert losses("l.csv")[-1] < 0.3 < 1 < losses("l.csv")[0]
    with open("l.json", encoding="utf-8") as file:
        summary = json.load(file)
    assert summary["ranks"] == 2 and summary["steps"] == 900 and summary["tokens_per_s"] > 0
    assert abs(100 * summary["held_out_accuracy"] - accuracy_of(output)) < 0.1
    if shutil.which("gnuplot"):
        assert xml.dom.minidom.parse("l.svg").documentElement.tagName == "svg"


def same_seed_same_bits():
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        train("-n", "2", *TINY, f"--seed={seed}", f"--checkpoint={name}.ck", f"--csv={name}.csv")
    assert content("a.ck") == content("b.ck") and course("a.csv") == course("b.csv")
    assert content("a.ck") != content("c.ck")


def same_bits_on_any_number_of_ranks():
    for ranks in (1, 2, 4, 8):
        train("-n", str(ranks), *TINY, f"--accumulate={8 // ranks}", "--deterministic", f"--checkpoint=n{ranks}.ck",
              f"--csv=n{ranks}.csv")
    for ranks in (2, 4, 8):
        assert content(f"n{ranks}.ck") == content("n1.ck"), f"{ranks} ranks wrote another checkpoint than 1"
        assert course(f"n{ranks}.csv") == course("n1.csv")


def two_ranks_are_one_with_the_combined_batch():
    train("-n", "1", *TINY, "--accumulate=2", "--csv=one.csv")
    train("-n", "2", *TINY, "--csv=two.csv")
    close(losses("one.csv"), losses("two.csv"), 1e-5)


def every_kind_of_sharding_has_the_same_losses():
    whole, held = {}, {}
    for shard in ("none", "optimizer", "gradients", "full"):
        train("-n", "2", *TINY, "--accumulate=2", f"--shard={shard}", f"--csv={shard}.csv", f"--json={shard}.json")
        close(losses("none.csv"), losses(f"{shard}.csv"), 1e-5)
        with open(f"{shard}.json", encoding="utf-8") as file:
            held[shard] = json.load(file)["memory"]
        whole[shard] = held[shard]["undivided"]
    none, full = held["none"], held["full"]
    assert held["optimizer"]["states"] <= 0.51 * none["states"], held
    assert held["gradients"]["gradients"] <= 0.51 * none["gradients"], held
    assert full["parameters"] <= 0.51 * none["parameters"] and full["states"] <= 0.51 * none["states"], held
    assert min(whole.values()) == max(whole.values()), whole


def gradients_travel_in_sixteen_bits():
    train("-n", "2", *TINY, "--csv=p32.csv", "--json=p32.json")
    for precision in ("float16", "bfloat16"):
        train("-n", "2", *TINY, f"--precision={precision}", "--csv=p16.csv", "--json=p16.json")
        close(losses("p32.csv"), losses("p16.csv"), 1e-2)
        assert losses("p32.csv") != losses("p16.csv")
        with open("p32.json", encoding="utf-8") as wide, open("p16.json", encoding="utf-8") as narrow:
            assert json.load(narrow)["bytes_per_step"] <= 0.51 * json.load(wide)["bytes_per_step"]


def goes_on_after_kill(*more):
    options = ["-n", "2", *SMALL, "--batch=16", "--steps=400", "--evaluate=50", *more]
    train(*options, "--csv=whole.csv", "--checkpoint=whole.ck")
    broken = [*options, "--csv=broken.csv", "--checkpoint=broken.ck", "--every=7", "--resume"]
    kills = 0
    for old in ("broken.csv", "broken.ck"):
        if os.path.exists(old):
            os.unlink(old)
    for _ in range(3):
        with subprocess.Popen([RONDO, "train", *broken], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              env=environment()) as job:
            steps = len(rows("broken.csv")) if os.path.exists("broken.csv") else 0
            enough = steps + random.randint(5, 90)
            while job.poll() is None and (not os.path.exists("broken.csv") or len(rows("broken.csv")) < enough):
                time.sleep(0.002)
            kills += job.poll() is None
            ranks = cases.children_of(job.pid)
            job.kill()  # `rondo run`; the kernel kills its ranks
        while any(cases.state_of(rank) not in ("Z", "gone") for rank in ranks):
            time.sleep(0.002)
    assert kills, "the training was always done before it could be killed"
    output = train(*broken)
    assert course("broken.csv") == course("whole.csv"), "the loss does not go on as if nothing had happened"
    assert content("broken.ck") == content("whole.ck")
    return accuracy_of(output)


def goes_on_after_kill_with_everything_divided():
    goes_on_after_kill("--shard=full")


def other_options_do_not_go_on():
    train("-n", "1", *TINY, "--checkpoint=o.ck")
    before = content("o.ck")
    said = train("-n", "1", *TINY, "--batch=16", "--checkpoint=o.ck", "--resume", status=1)
    assert "written with --batch = 8, this training has 16" in said, said
    said = train("-n", "2", *TINY, "--checkpoint=o.ck", "--resume", status=1)
    assert "micro-batches per step = 1, this training has 2" in said, said
    assert content("o.ck") == before


def other_numbers_of_ranks_go_on():
    """Four ranks train half of it, two the rest; the rate only rises, so that it does not depend on --steps."""
    options = [*TINY, "--deterministic", "--warmup=1000000"]
    train("-n", "1", *options, "--accumulate=4", "--checkpoint=one.ck")
    train("-n", "4", *options, "--checkpoint=many.ck", "--steps=10")
    train("-n", "2", *options, "--accumulate=2", "--checkpoint=many.ck", "--resume")
    assert content("many.ck") == content("one.ck")


def parts_of_the_time(output):
    line = next(line for line in output.splitlines() if line.startswith("time: "))
    return {name: float(share) for name, share in re.findall(r"([a-z ]+) (-?[\d.]+) %", line.split("of which")[1])}


def drain(path):
    """Reads a pipe as a slow disk would: 4 KiB, then a pause."""
    with open(path, "rb", buffering=0) as pipe:
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 4096)
        while pipe.read(4096):
            time.sleep(0.3)


def no_part_of_the_time_is_negative():
    """Rank 0 waits for a disk while rank 1 waits for rank 0, in a step."""
    os.mkfifo("slow.csv")
    reader = threading.Thread(target=drain, args=("slow.csv",))
    reader.start()
    output = train("-n", "2", *SMALL, "--batch=1", "--steps=600", "--csv=slow.csv", "--checkpoint=s.ck", "--every=100")
    reader.join()
    parts = parts_of_the_time(output)
    assert set(parts) == {" computing", " waiting for communication", " evaluating", " saving"}, output
    assert min(parts.values()) >= 0 and abs(sum(parts.values()) - 100) < 0.5, output


def a_training_that_is_done_says_so():
    train("-n", "1", *TINY, "--checkpoint=d.ck")
    again = subprocess.run([RONDO, "train", "-n", "1", *TINY, "--steps=10", "--checkpoint=d.ck", "--resume"],
                           check=False, capture_output=True, text=True, timeout=100, env=environment())
    assert again.returncode == 0 and "that is all of --steps 10" in again.stderr, again
    assert "-" not in again.stdout.replace("held-out", ""), again.stdout


def a_summary_is_written_also_when_no_picture_can_be():
    """Without gnuplot, and without a step."""
    os.mkdir("empty")
    for steps, words, more in ("3", "needs gnuplot", {"PATH": os.path.abspath("empty")}), ("0", "no step was made", {}):
        said = train("-n", "1", *TINY, f"--steps={steps}", "--json=t.json", "--svg=t.svg", status=1, **more)
        assert words in said, said
        with open("t.json", encoding="utf-8") as file:
            assert json.load(file)["steps"] == int(steps)
        os.unlink("t.json")
        assert not os.path.exists("t.svg")


def learns_a_text():
    with open("text", "w", encoding="utf-8") as file:
        file.write("the quick brown fox jumps over the lazy dog. " * 200)
    output = train("-n", "2", "--data=text", "--context=32", "--width=32", "--heads=2", "--batch=16", "--steps=60",
                   "--rate=0.01", "--samples=2")
    assert accuracy_of(output) > 90, output
    assert output.count(" >> ") == 2, output


def wrong_use_is_explained():
    for options, words in ((["--width=30", "--heads=4"], "not a multiple"), (["--resume"], "needs --checkpoint"),
                           (["--shard=optimiser"], "did you mean 'optimizer'? there are none,"),
                           (["--steps=many"], "a whole number"),
                           (["--shard=full", "--precision=float16"], "not divided"),
                           (["--deterministic", "--accumulate=3"], "power of two"), (["word"], "not an option")):
        said = train(*options, status=2)
        assert words in said, said
    assert "No such file" in train("--data=nowhere", status=1)


def a_gradient_that_is_no_number_ends_the_training():
    wild = [*TINY, "--rate=1e30", "--warmup=0"]
    said = train("-n", "2", *wild, status=1)
    assert said.count("Rank 0 has a gradient that is not finite") == 2, said
    assert "not finite in step 2" in train("-n", "2", *wild, "--shard=full", status=1)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def under_torchrun():
    port = free_port()
    ranks = [subprocess.Popen([RONDO, "train", *TINY, "--csv=torch.csv"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True,
                              env=environment(RANK=rank, WORLD_SIZE=2, LOCAL_RANK=rank, LOCAL_WORLD_SIZE=2,
                                              MASTER_ADDR="127.0.0.1", MASTER_PORT=port)) for rank in range(2)]
    outputs = [rank.communicate(timeout=60) for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], outputs
    assert "held-out accuracy" in outputs[0][0] and outputs[1][0] == ""
    train("-n", "2", *TINY, "--csv=own.csv")
    assert course("torch.csv") == course("own.csv")


def under_mpirun():
    if not shutil.which("mpirun.openmpi"):
        return "mpirun.openmpi is not installed"
    result = subprocess.run(["mpirun.openmpi", *cases.openmpi_options(), "-n", "2", RONDO, "train", *TINY],
                            capture_output=True, text=True, timeout=60, env=environment(), check=False)
    assert result.returncode == 0 and result.stdout.count("held-out accuracy") == 1, result.stdout + result.stderr
    return None


def bench_compares_numbers_of_ranks():
    drawn = ["--plot=b.svg"] if shutil.which("gnuplot") else []
    said = subprocess.run([RONDO, "bench", "ddp", "-n", "1,2", "--steps=8", "--rounds=2", "--csv=b.csv",
                           "--json=b.json", *drawn, "--", "--digits=2", "--width=32", "--heads=2", "--batch=8"],
                          check=True, capture_output=True, text=True, timeout=250, env=environment())
    turns = [int(turn) for turn in re.findall(r"round \d of 2: (\d) rank", said.stderr)]
    assert turns == [1, 2, 2, 1], f"what slows down all the time favours some of {turns}"
    one, two = rows("b.csv")
    assert (one["ranks"], two["ranks"], float(one["speed_up"])) == ("1", "2", 1)
    assert float(two["tokens_per_s"]) > 0 and float(two["bytes_per_step"]) > 0 and two["kernel"] == os.uname().release
    with open("b.json", encoding="utf-8") as file:
        report = json.load(file)
    assert not drawn or "waiting for others" in content("b.svg").decode()
    assert [len(world["rounds"]) for world in report["worlds"]] == [2, 2]
    assert bool(report["warnings"]) == ("# warning: " in said.stdout) == (float(two["efficiency"]) > 1.0005), \
        said.stdout


def a_bench_that_is_interrupted_keeps_its_rounds():
    with subprocess.Popen([RONDO, "bench", "ddp", "-n", "1,2", "--steps=8", "--rounds=60", "--csv=early.csv",
                           "--json=early.json", "--", *TINY[:5], "--batch=8"], text=True, bufsize=1,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as bench:
        told = ""
        while "round 2 of 60" not in told:
            told += bench.stderr.read(1)
            assert bench.poll() is None, told
        bench.send_signal(signal.SIGINT)
        table, told = bench.communicate(timeout=60)
    assert bench.returncode == 1 and "rondo bench ddp: ends because of signal 2" in told, told
    assert "the figures are those of 1 of 60 rounds" in told and "# 1 round of 8 steps" in table, told + table
    assert [row["ranks"] for row in rows("early.csv")] == ["1", "2"]
    assert not json.loads(content("early.json"))["complete"]


CASES = (learns, same_seed_same_bits, same_bits_on_any_number_of_ranks, two_ranks_are_one_with_the_combined_batch,
         every_kind_of_sharding_has_the_same_losses, gradients_travel_in_sixteen_bits, goes_on_after_kill,
         goes_on_after_kill_with_everything_divided, other_options_do_not_go_on, other_numbers_of_ranks_go_on,
         no_part_of_the_time_is_negative, a_training_that_is_done_says_so,
         a_summary_is_written_also_when_no_picture_can_be, learns_a_text, wrong_use_is_explained,
         a_gradient_that_is_no_number_ends_the_training, under_torchrun, under_mpirun, bench_compares_numbers_of_ranks,
         a_bench_that_is_interrupted_keeps_its_rounds)


def main():
    os.environ["RONDO_LOG"] = "none"
    return cases.run_in_scratch(CASES)


if __name__ == "__main__":
    random.seed()
    sys.exit(main())
