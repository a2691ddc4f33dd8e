/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fork.c - a child of a rank: what it may do, what it is refused, and that its parent and the
 * other ranks notice nothing of it, as with the data loaders of PyTorch. */
#include "../world.h"
#include "rondo/bindings.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 3, COUNT = 300, CALLS = 100, PATIENCE = 100 /* seconds of a child */ };

struct inherited {
    rondo_comm *comm;
    rondo_stream *stream;
    rondo_event *event;
    void *memory;
    bool bare; /* a system call without the handlers of fork() */
};

/* A child's exit status tells what it has seen go wrong. */
enum { CHILD_FINE, NOT_REFUSED, NO_SENTENCE, OWN_FAILED, MEMORY_FAILED };

static rondo_result sum_up(rondo_comm *comm, char *sentence)
{
    float in[COUNT], out[COUNT];
    int size = rondo_comm_size(comm), expected = size * (size + 1) / 2;
    rondo_result result = RONDO_OK;

    for (int i = 0; i < COUNT; i++)
        in[i] = (float)(rondo_comm_rank(comm) + 1);
    for (int call = 0; call < CALLS && !result; call++) {
        result = rondo_all_reduce(in, out, COUNT, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
        for (int i = 0; i < COUNT && !result; i++)
            if (out[i] != (float)expected)
                return world_say(sentence, RONDO_ERROR_INTERNAL, "call %d: %g is not %d", call,
                                 (double)out[i], expected);
    }
    return result ? world_say(sentence, result, "%s", rondo_last_error(comm)) : RONDO_OK;
}

static bool is_refused(rondo_result result, const rondo_comm *comm)
{
    return result == RONDO_ERROR_INVALID && strstr(rondo_last_error(comm), "forked");
}

static bool calls_are_refused(const struct inherited *from)
{
    float in[8] = {1}, out[8];
    rondo_comm *comm = from->comm, *made;
    rondo_op op;
    rondo_registration *registration;
    rondo_result results[] = {
        rondo_all_reduce(in, out, 8, RONDO_FLOAT32, RONDO_SUM, comm, NULL),
        rondo_all_reduce(in, out, 8, RONDO_FLOAT32, RONDO_SUM, comm, from->stream),
        rondo_send(in, 8, RONDO_FLOAT32, 0, comm, NULL),
        rondo_comm_split(comm, 0, 0, NULL, &made),
        rondo_comm_finalize(comm),
        rondo_comm_query(comm),
        rondo_comm_abort(comm),
        rondo_comm_register(comm, from->memory, 4096, &registration),
        rondo_op_create_premul_sum(comm, in, RONDO_FLOAT32, &op),
        rondo_stream_synchronize(from->stream),
        rondo_stream_query(from->stream),
        rondo_event_record(from->event, from->stream),
        rondo_event_wait(from->event),
    };

    for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++)
        if (!is_refused(results[i], comm))
            return false;
    return true;
}

static bool group_is_refused(const struct inherited *from)
{
    float in[8] = {1}, out[8];

    rondo_group_start();
    rondo_all_reduce(in, out, 8, RONDO_FLOAT32, RONDO_SUM, from->comm, NULL);
    return is_refused(rondo_group_end(), from->comm);
}

static bool own_memory_works(const struct inherited *from)
{
    char *own = NULL;

    if (!rondo_mem_free(from->memory) || rondo_mem_alloc(5000, (void **)&own))
        return false;
    memset(own, 1, 5000);
    return rondo_mem_free(own) == RONDO_OK && rondo_mem_free(from->memory) != RONDO_OK;
}

static bool own_communicators_work(void)
{
    rondo_comm *own[2];
    rondo_stream *stream;
    char sentence[WORLD_SENTENCE] = "";
    bool right;

    if (rondo_comm_open_all(1, NULL, own))
        return false;
    right = rondo_stream_open(&stream) == RONDO_OK;
    right = right && sum_up(own[0], sentence) == RONDO_OK;
    right = right && rondo_barrier(own[0], stream) == RONDO_OK;
    right = right && rondo_stream_synchronize(stream) == RONDO_OK;
    rondo_stream_close(stream);
    rondo_comm_close(own[0]);
    return right;
}

/* All that a child may do, and may not. */
static int be_child(const struct inherited *from)
{
    alarm(PATIENCE);
    if (!calls_are_refused(from))
        return NOT_REFUSED;
    if (!group_is_refused(from))
        return NO_SENTENCE;
    if (!from->bare && !own_memory_works(from))
        return MEMORY_FAILED;
    if (!from->bare && !own_communicators_work())
        return OWN_FAILED;
    rondo_event_close(from->event);
    rondo_stream_close(from->stream);
    rondo_comm_close(from->comm);
    return CHILD_FINE;
}

static rondo_result raise_child(const struct inherited *from, char *sentence)
{
    pid_t child = from->bare ? (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL) : fork();
    int status = 0;

    if (child == 0) {
        int found = be_child(from);

        if (from->bare) /* the C library knows nothing of this child */
            _exit(found);
        exit(found); /* with all handlers and destructors */
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return world_say(sentence, RONDO_ERROR_SYSTEM, "no child");
    if (status)
        return world_say(sentence, RONDO_ERROR_INTERNAL, "the child ended with status %x", status);
    return RONDO_OK;
}

static rondo_result open_all(struct inherited *from, rondo_comm *comm)
{
    from->comm = comm;
    if (rondo_stream_open(&from->stream) || rondo_event_open(&from->event) ||
        rondo_mem_alloc(10000, &from->memory))
        return RONDO_ERROR_SYSTEM;
    memset(from->memory, 7, 10000);
    return rondo_barrier(comm, from->stream);
}

static rondo_result close_all(const struct inherited *from, char *sentence)
{
    rondo_result result = rondo_stream_synchronize(from->stream);

    for (int i = 0; i < 10000; i++)
        if (((const char *)from->memory)[i] != 7)
            return world_say(sentence, RONDO_ERROR_INTERNAL, "memory has changed at byte %d", i);
    rondo_stream_close(from->stream);
    rondo_event_close(from->event);
    rondo_mem_free(from->memory);
    return result;
}

static rondo_result rank_with_child(rondo_comm *comm, void *argument, char *sentence)
{
    struct inherited from = *(const struct inherited *)argument;
    rondo_result result = open_all(&from, comm);

    if (!result)
        result = sum_up(comm, sentence);
    if (!result)
        result = raise_child(&from, sentence);
    if (!result)
        result = sum_up(comm, sentence);
    return result ? result : close_all(&from, sentence);
}

static void expect_nobody_notices(bool bare)
{
    struct inherited from = {.bare = bare};
    struct world_report report;

    cr_expect(world_run_processes(RANKS, rank_with_child, &from, &report) == 0, "%s",
              report.summary);
}

Test(fork, a_child_is_refused_and_nobody_else_notices)
{
    expect_nobody_notices(false);
}

Test(fork, a_child_of_a_bare_system_call_is_refused_too)
{
    expect_nobody_notices(true);
}

/* ---- While another thread calls -------------------------------------------------------------- */

struct busy {
    struct inherited from;
    atomic_int *children;  /* that have ended, shared */
    _Atomic pid_t waiting; /* the thread that is about to wait in its call */
    rondo_result result;
    char *sentence;
};

static void *call_meanwhile(void *argument)
{
    struct busy *busy = argument;

    atomic_store_explicit(&busy->waiting, gettid(), memory_order_relaxed);
    busy->result = sum_up(busy->from.comm, busy->sentence);
    return NULL;
}

/* Rank 0 forks while a thread of its own waits in a call, as the others come after the child. */
static rondo_result fork_during_a_call(rondo_comm *comm, void *argument, char *sentence)
{
    struct busy busy = *(const struct busy *)argument;
    rondo_result result = open_all(&busy.from, comm);
    pthread_t thread;

    busy.sentence = sentence;
    if (!result)
        result = rondo_stream_synchronize(busy.from.stream);
    if (result)
        return result;
    if (rondo_comm_rank(comm) == 0) {
        if (pthread_create(&thread, NULL, call_meanwhile, &busy))
            return RONDO_ERROR_SYSTEM;
        world_await_told(&busy.waiting);
        result = raise_child(&busy.from, sentence);
        atomic_store_explicit(busy.children, 1, memory_order_release);
        pthread_join(thread, NULL);
        result = result ? result : busy.result;
    } else {
        while (!atomic_load_explicit(busy.children, memory_order_acquire))
            usleep(1000);
        result = sum_up(comm, sentence);
    }
    return result ? result : close_all(&busy.from, sentence);
}

Test(fork, a_child_born_during_a_call_of_another_thread_neither_hangs_nor_harms)
{
    struct busy busy = {.children = world_share(sizeof(atomic_int))};
    struct world_report report;

    cr_expect(world_run_processes(RANKS, fork_during_a_call, &busy, &report) == 0, "%s",
              report.summary);
    world_unshare(busy.children, sizeof(atomic_int));
}

/* This thread has all locks in turn that opening and closing take. */
static void *open_and_close(void *argument)
{
    const atomic_bool *over = argument;
    rondo_comm *comm;

    while (!atomic_load_explicit(over, memory_order_relaxed))
        if (!rondo_comm_open_all(1, NULL, &comm))
            rondo_comm_close(comm);
    return NULL;
}

Test(fork, children_born_while_another_thread_opens_and_closes_have_their_own)
{
    enum { CHILDREN = 500 };
    atomic_bool over = false;
    pthread_t thread;
    int status = 0;

#ifdef __SANITIZE_ADDRESS__
    cr_skip_test("a child may find locks of the sanitizer's memory taken");
#endif
    cr_assert(pthread_create(&thread, NULL, open_and_close, &over) == 0);
    for (int i = 0; i < CHILDREN && !status; i++) {
        pid_t child = fork();

        if (child == 0) {
            alarm(PATIENCE);
            _exit(own_communicators_work() ? CHILD_FINE : OWN_FAILED);
        }
        cr_assert(waitpid(child, &status, 0) == child);
        cr_expect(status == 0, "child %d ended with status %x", i, (unsigned)status);
    }
    atomic_store_explicit(&over, true, memory_order_relaxed);
    pthread_join(thread, NULL);
}

/* ---- The parent dies ------------------------------------------------------------------------- */

struct orphan {
    _Atomic pid_t pid;
    atomic_bool over; /* it has lived as long as a child may */
};

/* Rank 1 is killed, and its child lives on. */
static rondo_result die_before_child(rondo_comm *comm, void *argument, char *sentence)
{
    struct orphan *orphan = *(struct orphan **)argument;
    rondo_result result = sum_up(comm, sentence);

    if (!result && rondo_comm_rank(comm) == 1) {
        pid_t pid = fork();

        if (pid == 0) {
            sleep(PATIENCE);
            atomic_store_explicit(&orphan->over, true, memory_order_relaxed);
            _exit(0);
        }
        atomic_store_explicit(&orphan->pid, pid, memory_order_relaxed);
        raise(SIGKILL);
    }
    return result ? result : sum_up(comm, sentence);
}

Test(fork, a_child_closes_what_an_open_group_of_its_parent_needs)
{
    int32_t value = 1, sum = 0;
    rondo_comm *comm = NULL;
    rondo_stream *stream = NULL;
    int status = 0;
    pid_t child;

    cr_assert(rondo_comm_open_all(1, NULL, &comm) == RONDO_OK);
    cr_assert(rondo_stream_open(&stream) == RONDO_OK);
    cr_assert(rondo_group_start() == RONDO_OK);
    cr_expect_not(rondo_group_needs(comm, stream));
    cr_assert(rondo_all_reduce(&value, &sum, 1, RONDO_INT32, RONDO_SUM, comm, stream) == RONDO_OK);
    cr_expect(rondo_group_needs(comm, NULL) && rondo_group_needs(NULL, stream));
    cr_expect_not(rondo_group_needs(NULL, NULL));
    child = fork();
    if (!child)
        _exit(rondo_group_needs(comm, NULL) || rondo_group_needs(NULL, stream));
    cr_expect(waitpid(child, &status, 0) == child && status == 0);
    cr_expect(rondo_group_end() == RONDO_OK && rondo_stream_synchronize(stream) == RONDO_OK);
    rondo_stream_close(stream);
    rondo_comm_close(comm);
}

Test(fork, a_child_that_lives_on_does_not_hide_the_death_of_its_parent)
{
    struct orphan *orphan = world_share(sizeof(*orphan));
    struct world_report report;

    cr_expect(world_run_processes(RANKS, die_before_child, &orphan, &report) == RANKS);
    cr_expect(!atomic_load_explicit(&orphan->over, memory_order_relaxed), "the others waited");
    for (int rank = 0; rank < RANKS; rank++)
        if (rank != 1)
            cr_expect(report.results[rank] == RONDO_ERROR_PEER, "%s", report.summary);
    cr_assert(orphan->pid > 0);
    kill(orphan->pid, SIGKILL);
    world_unshare(orphan, sizeof(*orphan));
}
