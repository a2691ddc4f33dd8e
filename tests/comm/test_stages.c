/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_stages.c - every stage of opening a communicator fails, on every rank: all ranks are told
 * so soon, nothing is lost, and the next opening works.
 *
 * The linker leads the library's calls of comm_stage_run() here (-Wl,--wrap), where the stages of
 * each rank are counted: the first is number 0. A way of opening is played with the failure one
 * stage later each time, until no rank gets as far as that.
 */
#include "base/fail.h"
#include "comm/failure/error.h"
#include "comm/open.h"
#include "comm/stage.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    RANKS = 3,
    ABORTS = -1, /* in place of a stage's number: the rank aborts instead of its barrier */
    LEAST = 19,  /* stages that every way of opening has */
    MOST = 40,   /* ... and more than any has */
    LINKING = 9, /* a stage when peers know the endpoint */
    SERVERS = 2, /* of ids: what they leave is freed at the next id */
    KEPT = 16    /* communicators that were closed last stay, for whoever calls with one */
};

#define PATIENCE 60.0 /* seconds, the timeout of all waits: who is told soon never waits for it */

/* ---- The failure ----------------------------------------------------------------------------- */

static struct {
    int rank;   /* -1: nothing fails */
    int number; /* of the stage, or ABORTS */
    bool after; /* what the stage makes is there when it fails, the barrier passed if it aborts */
} fault = {.rank = -1};

static atomic_int reached[RANKS]; /* stages begun, by each rank */
static const char *failed;        /* the stage that did; NULL: none */

rondo_result __real_comm_stage_run(rondo_comm *comm, const struct comm_stage *stage);
rondo_result __wrap_comm_stage_run(rondo_comm *comm, const struct comm_stage *stage);

static rondo_result abort_at_barrier(rondo_comm *comm)
{
    if (fault.after)
        status_end(comm->status, comm->calls + 1);
    rondo_comm_abort(comm);
    return fault.after ? RONDO_OK : comm_check(comm);
}

rondo_result __wrap_comm_stage_run(rondo_comm *comm, const struct comm_stage *stage)
{
    int number = atomic_fetch_add_explicit(&reached[comm->rank], 1, memory_order_relaxed);
    bool fails = comm->rank == fault.rank && number == fault.number;
    rondo_result result = RONDO_OK;

    if (comm->rank == fault.rank && fault.number == ABORTS &&
        strcmp(stage->name, "pass a barrier") == 0)
        return abort_at_barrier(comm);
    if (!fails || fault.after)
        result = __real_comm_stage_run(comm, stage);
    if (!fails || result)
        return result;
    failed = stage->name;
    return rondo_fail(RONDO_ERROR_SYSTEM, "Stage '%s' of rank %d of %d was made to fail.",
                      stage->name, comm->rank, comm->size);
}

static void set_fault(int rank, int number, bool after)
{
    for (int r = 0; r < RANKS; r++)
        atomic_store_explicit(&reached[r], 0, memory_order_relaxed);
    failed = NULL;
    fault.rank = rank;
    fault.number = number;
    fault.after = after;
}

/* ---- What is there --------------------------------------------------------------------------- */

struct possessions {
    int files, threads, blocks;
};

static atomic_int living; /* blocks allocated and not freed */

static void *count(void *memory)
{
    if (memory)
        atomic_fetch_add_explicit(&living, 1, memory_order_relaxed);
    return memory;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t number, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t number, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void __wrap_free(void *memory);

void *__wrap_malloc(size_t size)
{
    return count(__real_malloc(size));
}

void *__wrap_calloc(size_t number, size_t size)
{
    return count(__real_calloc(number, size));
}

void *__wrap_realloc(void *memory, size_t size)
{
    void *moved = __real_realloc(memory, size);

    return memory ? moved : count(moved);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return count(__real_aligned_alloc(alignment, size));
}

void __wrap_free(void *memory)
{
    if (memory)
        atomic_fetch_sub_explicit(&living, 1, memory_order_relaxed);
    __real_free(memory);
}

static int count_entries(const char *folder)
{
    DIR *directory = opendir(folder);
    int count = 0;

    cr_assert(directory != NULL);
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

static struct possessions count_possessions(void)
{
    return (struct possessions){count_entries("/proc/self/fd"), count_entries("/proc/self/task"),
                                atomic_load_explicit(&living, memory_order_relaxed)};
}

/* ---- Ranks ----------------------------------------------------------------------------------- */

struct rank {
    pthread_t thread;
    int size, rank;
    const rondo_unique_id *id; /* NULL: `parent` is split */
    rondo_comm *parent, *comm;
    rondo_result result;
    char sentence[FAIL_SENTENCE_MAX];
};

static const rondo_config impatient = {
    sizeof(rondo_config), -1, NULL, 0, 0, PATIENCE, -1, NULL, 0, 0, 0, -1, -1};

static void *open_one(void *argument)
{
    struct rank *rank = argument;

    fail_clear();
    rank->result =
        rank->id ? rondo_comm_open_id(rank->id, rank->size, rank->rank, &impatient, &rank->comm)
                 : rondo_comm_split(rank->parent, 0, rank->rank, NULL, &rank->comm);
    snprintf(rank->sentence, sizeof(rank->sentence), "%s", fail_sentence());
    return NULL;
}

static void open_threads(struct rank *ranks, int size)
{
    for (int r = 0; r < size; r++)
        cr_assert(pthread_create(&ranks[r].thread, NULL, open_one, &ranks[r]) == 0);
    for (int r = 0; r < size; r++)
        pthread_join(ranks[r].thread, NULL);
}

/* A way of opening: fills in results, sentences and communicators. */
typedef void (*way)(struct rank *ranks, int size);

static void open_together(struct rank *ranks, int size)
{
    rondo_comm *comms[RANKS] = {NULL};
    rondo_result result;

    fail_clear();
    result = rondo_comm_open_all(size, &impatient, comms);
    for (int r = 0; r < size; r++) {
        ranks[r].comm = comms[r];
        ranks[r].result = result;
        snprintf(ranks[r].sentence, sizeof(ranks[r].sentence), "%s", fail_sentence());
    }
}

static void open_by_id(struct rank *ranks, int size)
{
    rondo_unique_id id;

    cr_assert(rondo_unique_id_create(&id) == RONDO_OK, "%s", rondo_last_error(NULL));
    for (int r = 0; r < size; r++)
        ranks[r] = (struct rank){.size = size, .rank = r, .id = &id};
    open_threads(ranks, size);
}

static void open_by_split(struct rank *ranks, int size)
{
    const int rank = fault.rank, number = fault.number;
    rondo_comm *parents[RANKS];

    set_fault(-1, 0, fault.after);
    cr_assert(rondo_comm_open_all(size, &impatient, parents) == RONDO_OK, "%s",
              rondo_last_error(NULL));
    for (int r = 0; r < size; r++)
        ranks[r] = (struct rank){.size = size, .rank = r, .parent = parents[r]};
    set_fault(rank, number, fault.after);
    open_threads(ranks, size);
    for (int r = 0; r < size; r++)
        rondo_comm_close(parents[r]);
}

/* ---- Playing --------------------------------------------------------------------------------- */

static void expect_told(const struct rank *ranks, int size)
{
    char cause[100];

    snprintf(cause, sizeof(cause), "Stage '%s' of rank %d of %d was made to fail.", failed,
             fault.rank, size);
    for (int r = 0; r < size; r++) {
        const struct rank *rank = &ranks[r];

        cr_expect(rank->result != RONDO_OK && rank->comm == NULL,
                  "'%s' failed on rank %d, and rank %d of %d has opened", failed, fault.rank, r,
                  size);
        cr_expect(rank->result != RONDO_ERROR_INTERNAL, "'%s' failed on rank %d, rank %d: %s",
                  failed, fault.rank, r, rank->sentence);
        cr_expect(strlen(rank->sentence) > 20, "'%s' failed on rank %d, rank %d: \"%s\"", failed,
                  fault.rank, r, rank->sentence);
        if (r == fault.rank)
            cr_expect(strstr(rank->sentence, cause), "the first cause is lost: %s", rank->sentence);
    }
}

static void expect_works(way open, int size)
{
    struct rank ranks[RANKS] = {{0}};

    set_fault(-1, 0, false);
    open(ranks, size);
    for (int r = 0; r < size; r++)
        cr_assert(ranks[r].result == RONDO_OK, "rank %d of %d: %s", r, size, ranks[r].sentence);
    for (int r = 0; r < size; r++)
        rondo_comm_close(ranks[r].comm);
}

/* True: the stage exists. */
static bool play_fault(way open, int size, int rank, int number, bool after)
{
    struct rank ranks[RANKS] = {{0}};
    bool met;

    set_fault(rank, number, after);
    open(ranks, size);
    met = failed != NULL;
    /* Who has passed the barrier at the end has opened, whatever happens to others then. */
    if (met && !(after && strcmp(failed, "pass a barrier") == 0))
        expect_told(ranks, size);
    for (int r = 0; r < size; r++) {
        cr_expect(ranks[r].result != RONDO_ERROR_TIMEOUT, "'%s' of rank %d, rank %d: %s",
                  met ? failed : "nothing", rank, r, ranks[r].sentence);
        rondo_comm_close(ranks[r].comm);
    }
    return met;
}

static void nap(void)
{
    nanosleep(&(struct timespec){0, 5 * 1000 * 1000}, NULL);
}

/* A rank that fails when peers know its endpoint keeps its arena, and so the heap, for them. */
static struct possessions settle(way open, int size)
{
    const int threads = count_entries("/proc/self/task");
    struct possessions before;

    play_fault(open, size, 0, LINKING, false);
    for (int i = 0; i < KEPT; i++)
        expect_works(open, size);
    while (count_entries("/proc/self/task") > threads) /* that serve ids end by themselves */
        nap();
    before = count_possessions();
    before.files += open == open_by_id ? SERVERS : 0;
    before.blocks += open == open_by_id ? SERVERS : 0;
    return before;
}

static void expect_nothing_lost(struct possessions before, const char *what)
{
    struct possessions now = count_possessions();

    for (int i = 0; i < 12000 && (now.files > before.files || now.threads > before.threads ||
                                  now.blocks > before.blocks);
         i++) {
        nap();
        now = count_possessions();
    }
    cr_expect(now.files <= before.files, "%s: %d files, before %d", what, now.files, before.files);
    cr_expect(now.threads <= before.threads, "%s: %d threads, before %d", what, now.threads,
              before.threads);
    cr_expect(now.blocks <= before.blocks, "%s: %d blocks, before %d", what, now.blocks,
              before.blocks);
}

static void play(way open, int size, bool after)
{
    const struct possessions before = settle(open, size);
    char what[100];

    for (int rank = 0; rank < size; rank++) {
        int number = 0;

        while (number < MOST && play_fault(open, size, rank, number, after)) {
            snprintf(what, sizeof(what), "'%s' of rank %d of %d", failed, rank, size);
            expect_works(open, size);
            expect_nothing_lost(before, what);
            number++;
        }
        cr_expect(number >= LEAST, "only %d stages can fail", number);
    }
}

static void play_all(way open)
{
    for (int size = 1; size <= RANKS; size++) {
        play(open, size, false);
        play(open, size, true);
    }
}

static void set_costs(void)
{
    setenv("RONDO_COSTS", "1,1,1", 1); /* measuring is a stage all the same, and a short one */
}

TestSuite(stages, .init = set_costs);

Test(stages, fail_when_all_ranks_are_threads)
{
    play_all(open_together);
}

Test(stages, fail_when_ranks_meet_by_an_id)
{
    play_all(open_by_id);
}

Test(stages, fail_when_a_communicator_is_split)
{
    play_all(open_by_split);
}

Test(stages, fail_when_ranks_are_linked_by_tcp)
{
    setenv("RONDO_TRANSPORT", "tcp", 1);
    play(open_by_id, RANKS, false);
    play(open_by_id, RANKS, true);
}

/* Rank 0 aborts in place of the last barrier, or as if it had just passed it. */
static void play_abort(way open, bool passed)
{
    const rondo_result expected = passed ? RONDO_OK : RONDO_ERROR_ABORTED;
    struct rank ranks[RANKS] = {{0}};

    set_fault(0, ABORTS, passed);
    open(ranks, RANKS);
    for (int r = 0; r < RANKS; r++) {
        cr_expect(ranks[r].result == expected, "rank %d: %s", r, ranks[r].sentence);
        cr_expect(!ranks[r].comm == !passed);
        cr_expect(!passed || rondo_barrier(ranks[r].comm, NULL) == RONDO_ERROR_ABORTED);
        rondo_comm_close(ranks[r].comm);
    }
}

Test(stages, leave_a_communicator_to_all_or_nobody_if_one_aborts_it)
{
    play_abort(open_by_split, true);
    play_abort(open_by_split, false);
}

/* Returns where the next memory from the heap would be: further up with each place that is lost. */
static void *next_place(void)
{
    void *memory;

    cr_assert(rondo_mem_alloc(1 << 20, &memory) == RONDO_OK, "%s", rondo_last_error(NULL));
    rondo_mem_free(memory);
    return memory;
}

Test(stages, that_fail_between_ranks_that_know_each_other_keep_no_place_in_the_heap)
{
    void *before = NULL;
    int number = 0;

    while (play_fault(open_together, 2, 0, number, false) && strcmp(failed, "size slots") != 0)
        number++;
    for (int round = 0; round < 20; round++) {
        cr_assert(play_fault(open_together, 2, 0, number + round % 4, false));
        if (!before)
            before = next_place();
    }
    cr_expect(next_place() == before, "places of failed communicators are lost: %p, %p", before,
              next_place());
}

Test(stages, do_not_begin_with_an_endpoint_that_others_have_changed)
{
    struct comm_settings settings;
    struct endpoint endpoint;
    rondo_comm *comm;

    cr_assert(comm_read_settings(&impatient, 1, &settings) == RONDO_OK);
    cr_assert(comm_prepare(1, 0, &settings, &comm) == RONDO_OK, "%s", rondo_last_error(NULL));
    endpoint = comm->endpoints[0];
    endpoint.arena += 4096;
    set_fault(-1, 0, false);
    cr_expect(comm_connect(comm, &endpoint) == RONDO_ERROR_PEER);
    cr_expect(strstr(rondo_last_error(comm), "came back from the others changed"), "%s",
              rondo_last_error(comm));
    cr_expect(atomic_load_explicit(&reached[0], memory_order_relaxed) == 0);
    comm_free(comm);
}
