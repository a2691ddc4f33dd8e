/* SPDX-License-Identifier: BSD-3-Clause */
/* world.c - starts ranks as threads or processes, see world.h. */
#include "world.h"

#include <linux/capability.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS = 300 }; /* until the alarm: a guard, not a measure */

/* All ranks of a running world see this; shared memory, also between processes. */
struct stage {
    rondo_unique_id id;
    _Atomic int id_state; /* 0: not yet, 1: there, 2: failed */
    struct world_report report;
    _Atomic pid_t callers[WORLD_RANKS]; /* threads that are about to wait; 0: not yet */
};

static struct stage *played; /* of the world that runs, NULL: none does */

struct rank {
    const struct world *world;
    struct stage *stage;
    rondo_comm *comm;
    world_body body;
    void *argument;
    int number;
};

bool world_hide(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct rights[_LINUX_CAPABILITY_U32S_3];
    const unsigned right = 1u << CAP_SYS_PTRACE;

    if (syscall(SYS_capget, &header, rights))
        return false;
    rights[0].effective &= ~right;
    rights[0].permitted &= ~right;
    return !syscall(SYS_capset, &header, rights) && !prctl(PR_SET_DUMPABLE, 0);
}

void *world_share(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED) {
        perror("world: shared memory");
        exit(1);
    }
    return memory;
}

void world_unshare(void *memory, size_t bytes)
{
    munmap(memory, bytes);
}

void world_will_wait(int rank)
{
    /* Relaxed: only the number matters. */
    atomic_store_explicit(&played->callers[rank], gettid(), memory_order_relaxed);
}

bool world_await_rank(int rank)
{
    return world_await_told(&played->callers[rank]);
}

rondo_result world_say(char *sentence, rondo_result result, const char *format, ...)
{
    va_list arguments;

    if (!sentence[0]) {
        va_start(arguments, format);
        vsnprintf(sentence, WORLD_SENTENCE, format, arguments);
        va_end(arguments);
    }
    return result;
}

static void alarm_rang(int number)
{
    static const char text[] = "world: the ranks did not end in time\n";
    ssize_t written = write(STDERR_FILENO, text, sizeof(text) - 1);

    (void)written;
    signal(number, SIG_DFL);
    raise(number);
}

static void run_body(struct rank *rank)
{
    struct world_report *report = &rank->stage->report;
    char *sentence = report->sentences[rank->number];
    rondo_result result = rank->body(rank->comm, rank->argument, sentence);

    if (result)
        world_say(sentence, result, "%s", rondo_last_error(rank->comm));
    else if ((result = rondo_comm_finalize(rank->comm)))
        world_say(sentence, result, "finalize: %s", rondo_last_error(rank->comm));
    report->results[rank->number] = result;
    rondo_comm_close(rank->comm);
}

static void fail_everywhere(struct world_report *report, int size, rondo_result result,
                            const char *sentence)
{
    for (int r = 0; r < size; r++) {
        report->results[r] = result;
        world_say(report->sentences[r], result, "%s", sentence);
    }
}

/* ---- Threads --------------------------------------------------------------------------------- */

static void *thread_main(void *argument)
{
    run_body(argument);
    return NULL;
}

static void run_threads(const struct world *world, struct stage *stage, world_body body,
                        void *argument)
{
    rondo_comm *comms[WORLD_RANKS];
    struct rank ranks[WORLD_RANKS];
    pthread_t threads[WORLD_RANKS];
    rondo_result result = rondo_comm_open_all(world->size, world->config, comms);

    if (result) {
        fail_everywhere(&stage->report, world->size, result, rondo_last_error(NULL));
        return;
    }
    for (int r = 0; r < world->size; r++) {
        ranks[r] = (struct rank){world, stage, comms[r], body, argument, r};
        if (pthread_create(&threads[r], NULL, thread_main, &ranks[r])) {
            perror("world: thread");
            exit(1);
        }
    }
    for (int r = 0; r < world->size; r++)
        pthread_join(threads[r], NULL);
}

/* ---- Processes ------------------------------------------------------------------------------- */

/* Rank 0 makes the id, the others take it from the stage. */
static rondo_result meet(struct rank *rank)
{
    struct stage *stage = rank->stage;
    int state;

    if (rank->number == 0) {
        rondo_result result = rondo_unique_id_create(&stage->id);

        /* Release, pairs with the acquire below: who sees the state sees the id. */
        atomic_store_explicit(&stage->id_state, result ? 2 : 1, memory_order_release);
        if (result)
            return result;
    }
    while (!(state = atomic_load_explicit(&stage->id_state, memory_order_acquire)))
        usleep(200);
    if (state == 2)
        return RONDO_ERROR_SYSTEM;
    return rondo_comm_open_id(&stage->id, rank->world->size, rank->number, rank->world->config,
                              &rank->comm);
}

static void process_main(struct rank *rank)
{
    struct world_report *report = &rank->stage->report;
    rondo_result result;

    alarm(SECONDS);
    result = meet(rank);
    if (result) {
        report->results[rank->number] = result;
        world_say(report->sentences[rank->number], result, "open: %s", rondo_last_error(NULL));
    } else {
        run_body(rank);
    }
}

static void run_processes(const struct world *world, struct stage *stage, world_body body,
                          void *argument)
{
    pid_t children[WORLD_RANKS];

    fflush(NULL);
    for (int r = 0; r < world->size; r++) {
        struct rank rank = {world, stage, NULL, body, argument, r};

        stage->report.results[r] = RONDO_ERROR_INTERNAL; /* until it says something else */
        children[r] = fork();
        if (children[r] < 0) {
            perror("world: fork");
            exit(1);
        }
        if (!children[r]) {
            process_main(&rank);
            exit(0); /* not _exit(): sanitizers and coverage have their say */
        }
    }
    for (int r = 0; r < world->size; r++) {
        char *sentence = stage->report.sentences[r];
        int status = 0;

        waitpid(children[r], &status, 0);
        if (WIFSIGNALED(status)) {
            stage->report.signals[r] = WTERMSIG(status);
            stage->report.results[r] = RONDO_ERROR_INTERNAL;
            world_say(sentence, RONDO_OK, "ended by signal %d", WTERMSIG(status));
        } else if (WEXITSTATUS(status)) {
            stage->report.results[r] = RONDO_ERROR_INTERNAL;
            world_say(sentence, RONDO_OK, "ended with status %d", WEXITSTATUS(status));
        }
    }
}

/* ---- Both ------------------------------------------------------------------------------------ */

static int summarize(struct world_report *report, int size)
{
    int failed = 0;
    size_t used = 0;

    for (int r = 0; r < size; r++) {
        if (!report->results[r])
            continue;
        failed++;
        if (used < sizeof(report->summary))
            used += (size_t)snprintf(report->summary + used, sizeof(report->summary) - used,
                                     "rank %d of %d: %s: %s; ", r, size,
                                     rondo_result_string(report->results[r]), report->sentences[r]);
    }
    return failed;
}

int world_run(const struct world *world, world_body body, void *argument,
              struct world_report *ret_report)
{
    struct stage *stage = played = world_share(sizeof(*stage));
    int failed;

    setenv("RONDO_TIMEOUT", "200", 0); /* ends before the alarm, and says who waited for whom */
    signal(SIGALRM, alarm_rang);
    if (world->processes) {
        run_processes(world, stage, body, argument);
    } else {
        alarm(SECONDS);
        run_threads(world, stage, body, argument);
        alarm(0);
    }
    failed = summarize(&stage->report, world->size);
    *ret_report = stage->report;
    world_unshare(stage, sizeof(*stage));
    return failed;
}

int world_run_threads(int size, world_body body, void *argument, struct world_report *ret_report)
{
    struct world world = {.size = size};

    return world_run(&world, body, argument, ret_report);
}

int world_run_processes(int size, world_body body, void *argument, struct world_report *ret_report)
{
    struct world world = {.size = size, .processes = true};

    return world_run(&world, body, argument, ret_report);
}
