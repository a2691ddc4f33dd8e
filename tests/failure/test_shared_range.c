/* SPDX-License-Identifier: BSD-3-Clause */
/* test_shared_range.c - a registered range that calls of several communicators use, and that goes
 * back to its owner: one of them closes, or a call of it fails. */
#include "base/fail.h"
#include "comm/failure/leave.h"
#include "tests/world.h"
#include "transport/memory/heap.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 2, TAKEN = 1 << 20, HANGS = 60 /* seconds */ };

/* ---- Calls that are in progress, as far as others can see ------------------------------------ */

static rondo_comm *pair[RANKS], *alone;
static char *range;

static void open_all(void)
{
    rondo_config config = RONDO_CONFIG_INIT;

    config.timeout = HANGS / 2;
    range = mmap(NULL, TAKEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert(rondo_comm_open_all(RANKS, &config, pair) == RONDO_OK &&
                  rondo_comm_open_all(1, NULL, &alone) == RONDO_OK,
              "%s", rondo_last_error(NULL));
    alarm(HANGS);
}

static void close_all(void)
{
    for (int r = 0; r < RANKS; r++)
        rondo_comm_close(pair[r]);
    rondo_comm_close(alone);
    munmap(range, TAKEN);
}

TestSuite(shared_range, .init = open_all, .fini = close_all);

static void register_on(rondo_comm *comm)
{
    rondo_registration *registration;

    cr_assert(rondo_comm_register(comm, range, TAKEN, &registration) == RONDO_OK, "%s",
              rondo_last_error(comm));
}

static void begin_to_show(rondo_comm *comm)
{
    turn_take(&comm->turn);
    exposure_open(comm->exposures, NULL, 0, range, TAKEN);
}

static void end_to_show(rondo_comm *comm)
{
    exposure_close(comm->exposures);
    turn_pass(&comm->turn);
}

static bool is_registered(void)
{
    uint64_t offset;

    return heap_find(range, TAKEN, &offset);
}

Test(shared_range, who_closes_a_broken_communicator_does_not_wait_for_calls_of_others_for_ever)
{
    register_on(alone);
    begin_to_show(pair[0]);
    rondo_comm_abort(alone);
    rondo_comm_close(alone);
    alone = NULL;
    cr_expect(!is_registered());
    cr_expect(rondo_comm_query(pair[0]) == RONDO_ERROR_PEER, "peers would read zeros");
    cr_expect(strstr(rondo_last_error(pair[0]), "a registered range"), "%s",
              rondo_last_error(pair[0]));
    end_to_show(pair[0]);
}

Test(shared_range, who_closes_does_not_wait_for_calls_that_came_later)
{
    register_on(alone);
    begin_to_show(pair[0]);
    exposure_tell(pair[0]->exposures, false, true); /* they find it private */
    rondo_comm_close(alone);
    alone = NULL;
    cr_expect(!is_registered());
    cr_expect(rondo_comm_query(pair[0]) == RONDO_OK);
    end_to_show(pair[0]);
}

/* ---- Calls of others that are still to come -------------------------------------------------- */

static rondo_result sum_range(int rank, rondo_stream *stream)
{
    static int32_t of_rank_1;
    int32_t *sum = rank ? &of_rank_1 : (int32_t *)(void *)range;

    *sum = 1 + rank;
    return rondo_all_reduce(sum, sum, 1, RONDO_INT32, RONDO_SUM, pair[rank], stream);
}

Test(shared_range, a_communicator_stays_open_while_a_group_uses_what_it_registered)
{
    register_on(alone);
    cr_assert(rondo_group_start() == RONDO_OK);
    cr_assert(sum_range(0, NULL) == RONDO_OK && sum_range(1, NULL) == RONDO_OK);
    rondo_comm_close(alone);
    cr_expect(rondo_group_end() == RONDO_ERROR_INVALID);
    cr_expect(strstr(rondo_last_error(NULL), "is registered with the communicator"), "%s",
              rondo_last_error(NULL));
    cr_assert(rondo_comm_query(alone) == RONDO_OK && is_registered());
    rondo_comm_close(alone);
    alone = NULL;
    cr_expect(!is_registered());
}

static void close_alone(void *may_close)
{
    while (!atomic_load_explicit((atomic_bool *)may_close, memory_order_acquire))
        sched_yield();
    rondo_comm_close(alone);
    alone = NULL;
}

Test(shared_range, what_can_not_go_back_to_its_owner_is_told_to_nobody_any_more)
{
    rondo_stream *stream = NULL;
    atomic_bool may_close = false;

    register_on(alone);
    cr_assert(rondo_stream_open(&stream) == RONDO_OK);
    cr_assert(rondo_stream_call(stream, close_alone, &may_close) == RONDO_OK);
    cr_assert(sum_range(0, stream) == RONDO_OK);
    atomic_store_explicit(&may_close, true, memory_order_release);
    cr_expect(sum_range(1, NULL) == RONDO_OK, "%s", rondo_last_error(NULL));
    cr_expect(rondo_stream_synchronize(stream) == RONDO_OK, "%s", rondo_last_error(NULL));
    cr_expect_eq(*(int32_t *)(void *)range, 3);
    cr_expect(!alone && !is_registered(), "other memory may come to lie there");
    rondo_stream_close(stream);
}

/* ---- What else closes ------------------------------------------------------------------------ */

/* Takes back from peers, and closes, what it registered. */
static bool close_in_child(void)
{
    rondo_registration *registration;
    rondo_comm *own;

    alarm(HANGS);
    if (rondo_comm_open_all(1, NULL, &own))
        return false;
    leave_warn(own, range, range + TAKEN, true);
    if (rondo_comm_register(own, range, TAKEN, &registration))
        return false;
    rondo_comm_close(own);
    return !is_registered();
}

Test(shared_range, a_forked_child_neither_waits_for_calls_of_its_parent_nor_breaks_them)
{
    int status = -1;
    pid_t child;

    begin_to_show(pair[0]);
    child = fork();
    if (!child)
        _exit(close_in_child() ? 0 : 1);
    cr_expect(waitpid(child, &status, 0) == child && status == 0, "status %d", status);
    end_to_show(pair[0]);
    cr_expect(!leave_hears(pair[1]), "the child rings its peers' alarms, which are shared");
}

static void *close_first(void *argument)
{
    (void)argument;
    rondo_comm_close(pair[0]);
    pair[0] = NULL;
    return NULL;
}

Test(shared_range, peers_hear_of_a_rank_that_closes_while_it_waits)
{
    pthread_t thread;
    char *begin;
    size_t bytes;

    register_on(pair[0]);
    begin_to_show(alone);
    cr_assert(pthread_create(&thread, NULL, close_first, NULL) == 0);
    cr_expect(rondo_barrier(pair[1], NULL) == RONDO_ERROR_PEER, "%s", rondo_last_error(pair[1]));
    cr_expect(heap_block(range, &begin, &bytes), "it waits for the call that shows it");
    end_to_show(alone);
    pthread_join(thread, NULL);
    cr_expect(!is_registered());
}

Test(shared_range, who_waits_as_it_closes_rings_no_alarm_that_peers_have_given_back)
{
    rondo_comm *closing = pair[0];
    pthread_t thread;
    void *block = NULL;
    uint64_t *words;

    register_on(pair[0]);
    begin_to_show(alone);
    cr_assert(pthread_create(&thread, NULL, close_first, NULL) == 0);
    while (atomic_load_explicit(&closing->status->closed, memory_order_acquire) == STATUS_OPEN)
        sched_yield();
    rondo_comm_close(pair[1]);
    pair[1] = NULL;
    cr_assert(rondo_mem_alloc(TAKEN, &block) == RONDO_OK);
    leave_ring(closing); /* as rondo_comm_abort() does */
    words = block;
    for (size_t i = 0; i < TAKEN / sizeof(*words); i++)
        cr_assert(!words[i], "word %zu is written", i);
    end_to_show(alone);
    pthread_join(thread, NULL);
    rondo_mem_free(block);
}

struct closing {
    pthread_t thread;
    _Atomic pid_t number; /* of the thread, which is about to close */
    bool begins;
};

static void *tell_and_close(void *argument)
{
    struct closing *closing = argument;

    atomic_store_explicit(&closing->number, gettid(), memory_order_relaxed);
    return close_first(NULL);
}

/* The list is locked, as leave_warn() has it when it breaks a communicator. */
static bool close_meanwhile(rondo_comm *comm, void *context)
{
    struct closing *closing = context;

    if (comm != pair[0])
        return false;
    cr_assert(pthread_create(&closing->thread, NULL, tell_and_close, closing) == 0);
    world_await_told(&closing->number);
    closing->begins =
        atomic_load_explicit(&comm->status->closed, memory_order_relaxed) != STATUS_OPEN;
    return true;
}

Test(shared_range, a_communicator_that_is_being_broken_is_not_taken_apart)
{
    struct closing closing = {0};

    cr_expect(leave_any(close_meanwhile, &closing));
    pthread_join(closing.thread, NULL);
    cr_expect(!closing.begins);
}

struct dropping {
    rondo_registration *registration;
    pthread_t thread;
    _Atomic pid_t number; /* of the thread, which is about to deregister */
    bool waits;
    rondo_result result;
};

static void *deregister_in_thread(void *argument)
{
    struct dropping *dropping = argument;

    atomic_store_explicit(&dropping->number, gettid(), memory_order_relaxed);
    dropping->result = rondo_comm_deregister(alone, dropping->registration);
    return NULL;
}

/* The range is registered no more, and its pages are still shared. */
static void deregister_meanwhile(void *context, const char *begin, const char *end, bool emptied)
{
    struct dropping *dropping = context;

    leave_warn(NULL, begin, end, emptied);
    cr_assert(pthread_create(&dropping->thread, NULL, deregister_in_thread, dropping) == 0);
    dropping->waits = world_await_told(&dropping->number);
}

Test(shared_range, who_deregisters_waits_for_a_failed_call_that_takes_the_range_back)
{
    struct dropping dropping = {0};

    cr_assert(rondo_comm_register(alone, range, TAKEN, &dropping.registration) == RONDO_OK);
    cr_expect(
        heap_withdraw(&(struct heap_withdrawal){
            .memory = range, .bytes = TAKEN, .warn = deregister_meanwhile, .context = &dropping}) ==
        RONDO_OK);
    pthread_join(dropping.thread, NULL);
    cr_expect(dropping.waits, "else the caller frees memory that is about to be mapped anew");
    cr_expect(dropping.result == RONDO_OK, "%s", rondo_last_error(alone));
}

/* ---- Ranks that are processes ---------------------------------------------------------------- */

static rondo_result gather(rondo_comm *comm, void *input, void *output)
{
    const rondo_call call = {sizeof(call), RONDO_ALL_GATHER, RONDO_UINT8, RONDO_SUM, 0,
                             input,        output,           TAKEN,       comm,      NULL,
                             "zero_copy"};

    return rondo_collective_call(&call);
}

struct gathering {
    rondo_comm *comm;
    char *input, *output;
    _Atomic pid_t number; /* of the thread, which is about to call */
    rondo_result result;
};

static void *gather_in_thread(void *argument)
{
    struct gathering *gathering = argument;

    atomic_store_explicit(&gathering->number, gettid(), memory_order_relaxed);
    gathering->result = gather(gathering->comm, gathering->input, gathering->output);
    return NULL;
}

/* Takes the input back while the other rank, which comes later, has been told where it is. */
static rondo_result show_and_take_back(struct gathering *gathering, char *sentence)
{
    rondo_registration *registration = NULL;
    pthread_t thread;
    rondo_result result =
        rondo_comm_register(gathering->comm, gathering->input, TAKEN, &registration);

    if (result || pthread_create(&thread, NULL, gather_in_thread, gathering))
        return world_say(sentence, RONDO_ERROR_SYSTEM, "%s", rondo_last_error(gathering->comm));
    world_await_told(&gathering->number);
    if (exposed_touches(&gathering->comm->exposures->read, gathering->input, gathering->output))
        result = heap_withdraw(&(struct heap_withdrawal){
            .memory = gathering->input, .bytes = TAKEN, .warn = leave_warn});
    else
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "it waits, and shows nothing");
    world_will_wait(0);
    pthread_join(thread, NULL);
    return result ? result : gathering->result;
}

/* Rank 0 does that with its input, in a call to which the other one comes later. */
static rondo_result gather_while(rondo_result (*act)(struct gathering *, char *sentence),
                                 rondo_comm *comm, char *sentence)
{
    char *memory =
        mmap(NULL, 3 * TAKEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct gathering gathering = {.comm = comm, .input = memory, .output = memory + TAKEN};
    rondo_result result;

    memset(gathering.input, 7, TAKEN);
    if (rondo_comm_rank(comm) == 0) {
        result = act(&gathering, sentence);
        world_will_wait(0); /* the other one comes, whatever happened here */
    } else {
        world_await_rank(0);
        result = gather(comm, gathering.input, gathering.output);
    }
    for (int i = 0; i < 2 * TAKEN && !result; i++)
        if (gathering.output[i] != 7)
            result = world_say(sentence, RONDO_ERROR_INTERNAL, "RONDO_OK, and byte %d is %d", i,
                               gathering.output[i]);
    munmap(memory, 3 * TAKEN);
    return result;
}

static rondo_result gather_what_is_taken_back(rondo_comm *comm, void *argument, char *sentence)
{
    (void)argument;
    return gather_while(show_and_take_back, comm, sentence);
}

static rondo_result close_what_registered(struct gathering *gathering, char *sentence)
{
    rondo_registration *registration = NULL;
    rondo_comm *other = NULL;
    pthread_t thread;
    uint64_t offset;
    rondo_result result = rondo_comm_open_all(1, NULL, &other);

    if (!result)
        result = rondo_comm_register(other, gathering->input, TAKEN, &registration);
    if (result || pthread_create(&thread, NULL, gather_in_thread, gathering))
        return world_say(sentence, RONDO_ERROR_SYSTEM, "%s", rondo_last_error(other));
    world_await_told(&gathering->number);
    if (!exposed_touches(&gathering->comm->exposures->read, gathering->input, gathering->output))
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "it waits, and shows nothing");
    world_will_wait(0); /* for the call of the thread, which ends when the other rank has come */
    rondo_comm_close(other);
    if (heap_find(gathering->input, TAKEN, &offset))
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "it is registered yet");
    pthread_join(thread, NULL);
    return result ? result : gathering->result;
}

static rondo_result gather_what_is_let_go(rondo_comm *comm, void *argument, char *sentence)
{
    (void)argument;
    return gather_while(close_what_registered, comm, sentence);
}

Test(shared_range_apart,
     who_closes_waits_for_calls_of_other_communicators_that_show_what_it_registered)
{
    static struct world_report report;
    struct world world = {.size = 2, .processes = true};

    world_run(&world, gather_what_is_let_go, NULL, &report);
    for (int rank = 0; rank < 2; rank++)
        cr_expect_eq(report.results[rank], RONDO_OK, "%s", report.sentences[rank]);
}

Test(shared_range_apart, an_input_that_is_taken_back_is_not_read_as_zeros)
{
    static struct world_report report;
    struct world world = {.size = 2, .processes = true};

    world_run(&world, gather_what_is_taken_back, NULL, &report);
    for (int rank = 0; rank < 2; rank++)
        cr_expect_eq(report.results[rank], RONDO_ERROR_PEER, "%s", report.sentences[rank]);
}
