/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_api.c - plays sequences of calls, by ranks that are threads of one process.
 *
 *     fuzz_api [FIRST [RUNS]]     seeds FIRST to FIRST + RUNS - 1; 1 and 100 if nothing is said
 *
 * The ranks of a seed run in a child, so that what it breaks, or where it waits for ever, is
 * known. Of a seed that fails, steps are left out one after the other as long as it still fails:
 * what is left is printed. Status 1 if one has failed.
 */
#include "tests/api/sequences/sequence.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS = 60, CHILD_RUNS = 50 }; /* for a sequence; sequences of one child */

struct progress {
    _Atomic uint64_t seed; /* that is being played */
    char summary[2 * WORLD_SENTENCE];
};

static bool play(struct sequence sequence, struct progress *progress)
{
    static struct world_report report;

    alarm((unsigned)world_patience(SECONDS));
    if (!world_run_threads(sequence_size(&sequence), sequence_play, &sequence, &report))
        return true;
    snprintf(progress->summary, sizeof(progress->summary), "%s", report.summary);
    return false;
}

/* Plays `runs` seeds in a child. Returns its status as of waitpid(). */
static int play_in_child(struct sequence sequence, int runs, struct progress *progress)
{
    int status = 0;
    pid_t child;

    fflush(NULL);
    progress->summary[0] = '\0';
    child = fork();
    if (!child) {
        for (int i = 0; i < runs; i++, sequence.seed++) {
            atomic_store_explicit(&progress->seed, sequence.seed, memory_order_relaxed);
            if (!play(sequence, progress))
                exit(1);
        }
        exit(0);
    }
    waitpid(child, &status, 0);
    return status;
}

static void say_status(const char *what, int status, const struct progress *progress)
{
    printf("seed %llu %s: ",
           (unsigned long long)atomic_load_explicit(&progress->seed, memory_order_relaxed), what);
    if (WIFSIGNALED(status))
        printf("signal %d (%s)\n", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        printf("%s\n", progress->summary[0] ? progress->summary : "see above");
    fflush(stdout);
}

/* Leave out whatever is not needed for the failure, and show the rest. */
static void shrink(uint64_t seed, struct progress *progress)
{
    struct sequence sequence = {.seed = seed};
    int status;

    for (int i = 0; i < SEQUENCE_STEPS; i++) {
        sequence.left_out |= UINT64_C(1) << i;
        if (!play_in_child(sequence, 1, progress))
            sequence.left_out &= ~(UINT64_C(1) << i);
    }
    sequence.trace = 1;
    fprintf(stderr, "seed %llu, %d ranks, what is left of it:\n", (unsigned long long)seed,
            sequence_size(&sequence));
    status = play_in_child(sequence, 1, progress);
    say_status(status ? "shrunk fails" : "shrunk does not always fail", status, progress);
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    int runs = argc > 2 ? atoi(argv[2]) : 100, failed = 0;
    struct progress *progress = world_share(sizeof(*progress));

    for (int done = 0; done < runs;) {
        int some = runs - done < CHILD_RUNS ? runs - done : CHILD_RUNS;
        int status =
            play_in_child((struct sequence){.seed = seed + (uint64_t)done}, some, progress);
        uint64_t last = atomic_load_explicit(&progress->seed, memory_order_relaxed);

        if (!status) {
            done += some;
            continue;
        }
        failed++;
        say_status("fails", status, progress);
        shrink(last, progress);
        done = (int)(last - seed) + 1;
    }
    printf("%d sequences of %d steps, %d failed\n", runs, SEQUENCE_STEPS, failed);
    world_unshare(progress, sizeof(*progress));
    return failed != 0;
}
