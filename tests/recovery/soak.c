/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * soak.c - ranks as processes, of which some are killed or stopped at random moments, and the loop
 * by which the others go on: work, agree on how it went, shrink, work again (soak_rank.c).
 *
 *     soak [--transport shm|tcp|mixed|verbs|gpu] [--runs N] [--seed FIRST] [--stops PERCENT]
 *          [--ranks MOST] [--faults PER_MILLE] [--cuts PERCENT] [--everywhere]
 *
 * A seed is a run: how many ranks, who fails, in which round and in which function, how long after
 * it began; with --everywhere there are 3 ranks at least, of which at least one fails, and it may
 * do so while it opens, splits or closes a communicator, too. Every rank that is left has to see
 * the same verdicts and members in every round, and the right sums to the end. With faults
 * (faults.c) the system under the sockets is bad, too. A cut rank lives on, but all its connections
 * end at once: it must not hang. soak_judge.c has what is asked of a run. Verbs are for a guest of
 * tests/vm, gpu for the stand-in of CUDA.
 */
#include "soak.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static struct options {
    const char *transport;
    uint64_t runs, seed, stops, ranks, faults, cuts;
    bool everywhere;
} options = {.transport = "shm", .runs = 20, .seed = 1, .stops = 0, .ranks = 8};

static uint64_t draw(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* ---- All of them ----------------------------------------------------------------------------- */

static void make(struct run *run, uint64_t seed)
{
    static const unsigned longest[] = {20, 200, 3000};
    const int fewest = options.everywhere ? 3 : 2;
    const unsigned slowness = strcmp(options.transport, "verbs") == 0 ? 4 : 1; /* of a guest */
    uint64_t state = seed;
    int fails;

    run->transport = options.transport;
    run->everywhere = options.everywhere;
    run->timeout = options.stops ? 3 * slowness : 20 * slowness;
    run->seconds = 60 * slowness;
    run->size = fewest + (int)(draw(&state) % (options.ranks - (uint64_t)fewest + 1));
    fails = draw(&state) % 8 || options.everywhere
                ? 1 + (int)(draw(&state) % (uint64_t)(run->size - 1))
                : 0;
    for (int i = 0; i < fails; i++) {
        struct fate *fate = &run->fates[draw(&state) % (uint64_t)run->size];

        fate->fails = true;
        fate->stops = draw(&state) % 100 < options.stops;
        fate->cuts = options.cuts && draw(&state) % 100 < options.cuts;
        fate->round = i ? (int)(draw(&state) % 3) : 0; /* there is no second one without a first */
        fate->moment = (enum moment)(draw(&state) % (options.everywhere ? MOMENTS : OPENING));
        fate->microseconds = (unsigned)(draw(&state) % longest[draw(&state) % 3]);
    }
    for (int rank = 0; rank < run->size; rank++)
        run->fates[rank].closes_late = draw(&state) % 4 == 0;
    atomic_store_explicit(&run->meetings[0].members, ((uint64_t)1 << run->size) - 1,
                          memory_order_release);
}

static int last_meeting(const struct run *run)
{
    int number = 0;

    while (number + 1 < MEETINGS &&
           atomic_load_explicit(&run->meetings[number + 1].members, memory_order_relaxed))
        number++;
    return number;
}

static void end_process(int process)
{
    if (process) {
        kill(process, SIGKILL);
        waitpid(process, NULL, 0);
    }
}

static void end_meeting(const struct meeting *meeting)
{
    end_process(meeting->host);
    for (int rank = 0; rank < RANKS; rank++)
        end_process(meeting->stand_ins[rank]);
}

/* Comes to the meeting in the place of a rank, with settings by which it cannot take part. */
static int decline(const struct meeting *meeting, uint64_t members, int rank)
{
    rondo_config config = RONDO_CONFIG_INIT;
    rondo_comm *comm;
    int process = fork();

    if (process)
        return process;
    config.algorithm = "none of ours";
    rondo_comm_open_id(&meeting->id, __builtin_popcountll(members), soak_index(members, rank),
                       &config, &comm);
    _exit(0);
}

/*
 * This process does what a launcher does. If a rank has ended on its way to the meeting point, only
 * its launcher can know, and sends somebody in its place, who tells those who wait there. Those
 * whom a meeting has refused meet again, once all that live have left it. If some have opened the
 * communicator, the others have nobody to go on with, which is an error unless they were cut off.
 */
static void call_meeting(struct run *run, const bool *ended, const bool *stopped)
{
    int number = last_meeting(run);
    struct meeting *meeting = &run->meetings[number];
    uint64_t members = atomic_load_explicit(&meeting->members, memory_order_relaxed), refused = 0;
    bool opened = false, away = false;

    for (int rank = 0; rank < run->size; rank++) {
        enum arrival arrival = atomic_load_explicit(&meeting->arrivals[rank], memory_order_acquire);

        if (!(members >> rank & 1) || stopped[rank])
            continue;
        if (ended[rank] && arrival == AWAY && !meeting->stand_ins[rank])
            meeting->stand_ins[rank] = decline(meeting, members, rank);
        if (ended[rank])
            continue;
        away |= arrival == AWAY;
        opened |= arrival == OPEN && !run->fates[rank].cuts;
        refused |= (uint64_t)(arrival == REFUSED) << rank;
    }
    if (refused && !away && number + 1 < MEETINGS)
        atomic_store_explicit(&run->meetings[number + 1].members, opened ? NOBODY : refused,
                              memory_order_release);
}

/* Those that were stopped never end by themselves: they go when all others have. */
static void wait_for(struct run *run, const pid_t *children, int *ret_statuses)
{
    bool ended[RANKS] = {false}, stopped[RANKS] = {false};

    for (int left = run->size; left;) {
        bool only_stopped = true;

        for (int rank = 0; rank < run->size; rank++) {
            int status;

            if (ended[rank] || waitpid(children[rank], &status, WNOHANG | WUNTRACED) <= 0)
                continue;
            stopped[rank] = WIFSTOPPED(status);
            if (stopped[rank])
                continue;
            ret_statuses[rank] = status;
            ended[rank] = true;
            left--;
        }
        for (int rank = 0; rank < run->size; rank++)
            only_stopped &= ended[rank] || stopped[rank];
        for (int rank = 0; rank < run->size && left && only_stopped; rank++)
            if (!ended[rank])
                kill(children[rank], SIGKILL);
        if (run->everywhere)
            call_meeting(run, ended, stopped);
        usleep(1000);
    }
}

/*
 * Each meeting point is in a process of its own: no rank that fails takes it along, and no rank is
 * forked from a process with threads, one of which may hold a lock of the allocator just then.
 */
static int host_meeting(struct run *run, struct meeting *meeting)
{
    int host = fork();

    if (host)
        return host;
    if (rondo_unique_id_create(&meeting->id))
        _exit(1);
    atomic_fetch_add_explicit(&run->ids, 1, memory_order_acq_rel);
    for (;;)
        pause();
}

static void run_ranks(struct run *run, uint64_t seed, pid_t *children, int *ret_statuses)
{
    char faults[64];

    snprintf(faults, sizeof(faults), "%llu:%llu", (unsigned long long)seed,
             (unsigned long long)options.faults);
    setenv("RONDO_FAULTS", faults, 1);
    for (int number = 0; number < MEETINGS; number++)
        run->meetings[number].host = host_meeting(run, &run->meetings[number]);
    for (int rank = 0; rank < run->size; rank++) {
        children[rank] = fork();
        if (!children[rank]) {
            soak_live(run, rank);
            _exit(0);
        }
    }
    wait_for(run, children, ret_statuses);
    for (int number = 0; number < MEETINGS; number++)
        end_meeting(&run->meetings[number]);
}

/* ---- What came of all runs ------------------------------------------------------------------- */

/* Seconds of recoveries, one of each run that had some: of ranks that were only killed, and of
 * others, who are only missed after a while. */
struct times {
    uint64_t count;
    double *seconds;
};

static struct tally {
    uint64_t wrong, strikes[MOMENTS];
    struct times killed, silent;
} tally;

/* A run's. */
static void count_run(const struct run *run)
{
    struct times *times = &tally.killed;
    double longest = 0;

    for (int rank = 0; rank < run->size; rank++) {
        const struct fate *fate = &run->fates[rank];
        const struct said *said = &run->said[rank];

        if (atomic_load_explicit(&fate->struck, memory_order_relaxed) > 0) {
            tally.strikes[fate->moment]++;
            if (fate->stops || fate->cuts)
                times = &tally.silent;
        }
        if (said->done && !fate->cuts && said->recovery > longest)
            longest = said->recovery;
    }
    if (longest > 0)
        times->seconds[times->count++] = longest;
}

static void run_once(uint64_t seed)
{
    struct run *run =
        mmap(NULL, sizeof(*run), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int statuses[RANKS] = {0};
    pid_t pids[RANKS];
    bool good;

    make(run, seed);
    run_ranks(run, seed, pids, statuses);
    good = soak_judge(run, statuses, seed) && soak_files_are_gone(run, pids, seed);
    tally.wrong += !good;
    count_run(run);
    munmap(run, sizeof(*run));
}

static int ascending(const void *a, const void *b)
{
    double one = *(const double *)a, other = *(const double *)b;

    return (one > other) - (one < other);
}

static void read_options(int argc, char **argv)
{
    static const struct option names[] = {{"transport", required_argument, NULL, 't'},
                                          {"runs", required_argument, NULL, 'n'},
                                          {"seed", required_argument, NULL, 's'},
                                          {"stops", required_argument, NULL, 'p'},
                                          {"ranks", required_argument, NULL, 'r'},
                                          {"faults", required_argument, NULL, 'f'},
                                          {"cuts", required_argument, NULL, 'c'},
                                          {"everywhere", no_argument, NULL, 'e'},
                                          {NULL, 0, NULL, 0}};
    int letter;

    while ((letter = getopt_long(argc, argv, "", names, NULL)) != -1) {
        uint64_t value = optarg ? strtoull(optarg, NULL, 10) : 0;

        if (letter == 't')
            options.transport = optarg;
        else if (letter == 'n')
            options.runs = value;
        else if (letter == 's')
            options.seed = value;
        else if (letter == 'p')
            options.stops = value;
        else if (letter == 'f')
            options.faults = value;
        else if (letter == 'c')
            options.cuts = value;
        else if (letter == 'e')
            options.everywhere = true;
        else if (letter == 'r')
            options.ranks = value < 2 ? 2 : value > RANKS ? RANKS : value;
    }
}

static void say_times(struct times *times, const char *of_what)
{
    qsort(times->seconds, times->count, sizeof(*times->seconds), ascending);
    if (times->count)
        printf("%llu recovered %s, in %.1f ms (median), %.1f ms at most\n",
               (unsigned long long)times->count, of_what, 1e3 * times->seconds[times->count / 2],
               1e3 * times->seconds[times->count - 1]);
}

static void say_all(void)
{
    static const char *const names[MOMENTS] = {"calls", "agree", "shrink",
                                               "open",  "split", "close"};

    printf("%llu runs over %s, %llu went wrong\n", (unsigned long long)options.runs,
           options.transport, (unsigned long long)tally.wrong);
    say_times(&tally.killed, "from ranks that were killed");
    say_times(&tally.silent, "from ranks that were stopped or cut off, too");
    printf("struck in");
    for (int moment = 0; moment < MOMENTS; moment++)
        printf(" %s: %llu%s", names[moment], (unsigned long long)tally.strikes[moment],
               moment + 1 < MOMENTS ? "," : "\n");
    if (soak_left_out)
        printf("%lu ranks were left out as they could not talk to one that was cut off\n",
               soak_left_out);
    if (options.faults)
        printf("%lu calls of the system went badly\n", soak_struck);
}

int main(int argc, char **argv)
{
    read_options(argc, argv);
    setenv("RONDO_LOG", "none", 1);
    setenv("RONDO_COSTS", "2,5,5,20,1,1", 1);
    if (strcmp(options.transport, "shm") != 0) {
        setenv("RONDO_INTERFACE", "lo", 1);
        setenv("RONDO_ADDRESS", "127.0.0.1:0", 1);
    }
    if (!soak_files_begin())
        return 1;
    tally.killed.seconds = calloc(options.runs + 1, sizeof(double));
    tally.silent.seconds = calloc(options.runs + 1, sizeof(double));
    for (uint64_t i = 0; i < options.runs; i++)
        run_once(options.seed + i);
    say_all();
    soak_files_end();
    free(tally.killed.seconds);
    free(tally.silent.seconds);
    return tally.wrong || (options.faults && options.runs && !soak_struck);
}
