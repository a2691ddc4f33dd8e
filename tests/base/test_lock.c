/* SPDX-License-Identifier: BSD-3-Clause */
/* test_lock.c - what a thread may hold when it takes a lock; what it may not ends a child process
 * of the test, by an assertion, with a sentence. */
#include "base/lock.h"

#include "base/fork.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static struct lock outer = LOCK_AT(LOCK_COMM_LIST);
static struct lock middle = LOCK_AT(LOCK_TCP_NETWORK);
static struct lock other_middle = LOCK_AT(LOCK_TCP_NETWORK);
static struct lock inner = LOCK_AT(LOCK_HEAP);
static struct lock_shared readers = LOCK_SHARED_AT(LOCK_REGISTERED);
FORK_RENEWS({.lock = &outer}, {.shared = &readers});
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static char said[4096]; /* by the last child */

/* Returns how a child process ended in which `act` was called: the status of waitpid(). */
static int run(void (*act)(void))
{
    int ends[2], status;
    size_t filled = 0;
    ssize_t count;
    pid_t child;

    cr_assert_eq(pipe(ends), 0);
    child = fork();
    cr_assert_geq(child, 0);
    if (!child) {
        const struct rlimit none = {0, 0};

        setrlimit(RLIMIT_CORE, &none);
        alarm(60); /* what is not caught may wait for ever */
        signal(SIGABRT, SIG_DFL);
        setenv("RONDO_LOG", "warn", 1);
        dup2(ends[1], STDERR_FILENO);
        act();
        _exit(0);
    }
    close(ends[1]);
    while ((count = read(ends[0], said + filled, sizeof(said) - 1 - filled)) > 0)
        filled += (size_t)count;
    said[filled] = '\0';
    close(ends[0]);
    cr_assert_eq(waitpid(child, &status, 0), child);
    return status;
}

static void passes(void (*act)(void))
{
    int status = run(act);

    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s", said);
    cr_assert_str_empty(said);
}

/* The sentence names both levels; nothing is checked without assertions. */
static void is_caught(void (*act)(void), const char *held, const char *wanted)
{
#ifdef NDEBUG
    (void)held;
    (void)wanted;
    passes(act);
#else
    int status = run(act);

    cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "status %x: %s", status, said);
    cr_assert(strstr(said, held) && strstr(said, wanted), "%s", said);
#endif
}

static void go_down(void)
{
    for (int i = 0; i < 3; i++) { /* nothing is left behind by the first */
        lock_take(&outer);
        lock_take(&middle);
        lock_take(&inner);
        lock_shared_read(&readers);
        lock_give(&middle); /* in any order */
        lock_shared_give(&readers);
        lock_give(&outer);
        lock_give(&inner);
        lock_shared_write(&readers);
        lock_shared_give(&readers);
    }
}

static void go_up(void)
{
    lock_take(&inner);
    lock_take(&outer);
    lock_give(&outer);
    lock_give(&inner);
}

/* The lock that is in the way is neither the first nor the last one that is held. */
static void go_between(void)
{
    lock_take(&outer);
    lock_take(&inner);
    lock_shared_read(&readers);
    lock_take(&middle);
}

static void take_two_of_a_level(void)
{
    lock_take(&middle);
    lock_take(&other_middle);
}

static void read_twice(void)
{
    lock_shared_read(&readers);
    lock_shared_read(&readers);
}

static void write_above(void)
{
    lock_shared_write(&readers);
    lock_take(&inner);
}

static void try_above(void)
{
    lock_take(&inner);
    if (!lock_try(&outer) || !lock_shared_try(&readers))
        _exit(1);
    lock_shared_give(&readers);
    lock_give(&outer);
    lock_give(&inner);
    lock_take(&outer);
    lock_give(&outer);
}

static void go_up_from_a_tried_one(void)
{
    if (lock_try(&inner))
        lock_take(&outer);
}

static void *try_taken(void *ret_taken)
{
    *(bool *)ret_taken = lock_try(&outer) || lock_shared_try(&readers);
    lock_take(&inner); /* what could not be taken is not held */
    lock_give(&inner);
    return NULL;
}

static void try_in_vain(void)
{
    bool taken = true;
    pthread_t thread;

    lock_take(&outer);
    lock_shared_read(&readers);
    if (pthread_create(&thread, NULL, try_taken, &taken) || pthread_join(thread, NULL) || taken)
        _exit(1);
}

static bool rung;

static void *signal_change(void *unused)
{
    (void)unused;
    lock_take(&middle);
    rung = true;
    pthread_cond_signal(&changed);
    lock_give(&middle);
    return NULL;
}

static void wait_for_change(void)
{
    pthread_t thread;

    lock_take(&outer);
    lock_take(&middle);
    if (pthread_create(&thread, NULL, signal_change, NULL))
        _exit(1);
    while (!rung)
        lock_wait(&middle, &changed);
    lock_take(&inner);
    lock_give(&inner);
    lock_give(&middle);
    lock_give(&outer);
    pthread_join(thread, NULL);
}

static void wait_with_a_lower_one(void)
{
    lock_take(&middle);
    lock_take(&inner);
    rung = true; /* without assertions nobody would ring */
#ifndef NDEBUG
    lock_wait(&middle, &changed);
#endif
}

static void *hold_both(void *unused)
{
    lock_take(&outer);
    lock_shared_read(&readers);
    pause();
    return unused;
}

/* A child of fork() has new locks in place of those that a thread of its parent holds. */
static void renew(void)
{
    pthread_t thread;
    int status;

    fork_home(); /* base/fork.c is in a program that asks for something of it */
    if (pthread_create(&thread, NULL, hold_both, NULL))
        _exit(1);
    while (lock_shared_try(&readers)) {
        lock_shared_give(&readers);
        usleep(1000);
    }
    if (!fork()) {
        alarm(20);
        lock_take(&outer);
        lock_shared_write(&readers);
        lock_shared_give(&readers);
        lock_give(&outer);
        lock_take(&inner);
        _exit(outer.level == LOCK_COMM_LIST && readers.level == LOCK_REGISTERED ? 0 : 1);
    }
    wait(&status);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

Test(lock, locks_are_taken_from_the_first_level_to_the_last)
{
    passes(go_down);
}

Test(lock, a_level_further_up_is_caught)
{
    is_caught(go_up, "HEAP", "COMM_LIST");
    is_caught(go_between, "HEAP", "TCP_NETWORK");
    is_caught(write_above, "REGISTERED", "HEAP");
}

Test(lock, two_locks_of_one_level_are_caught)
{
    is_caught(take_two_of_a_level, "TCP_NETWORK", "TCP_NETWORK");
    is_caught(read_twice, "REGISTERED", "REGISTERED");
}

Test(lock, trying_is_allowed_in_any_order)
{
    passes(try_above);
    passes(try_in_vain);
}

Test(lock, what_was_tried_counts_as_held)
{
    is_caught(go_up_from_a_tried_one, "HEAP", "COMM_LIST");
}

Test(lock, a_condition_lets_others_take_the_lock)
{
    passes(wait_for_change);
}

Test(lock, waiting_for_a_condition_with_a_lower_lock_is_caught)
{
    is_caught(wait_with_a_lower_one, "HEAP", "TCP_NETWORK");
}

#ifndef NDEBUG
static void give_what_is_not_held(void)
{
    lock_take(&outer);
    lock_give(&middle);
}

Test(lock, giving_a_lock_that_is_not_held_is_caught)
{
    is_caught(give_what_is_not_held, "lock is given by the thread that holds it", "");
}
#endif

Test(lock, a_forked_child_has_new_locks_of_the_same_levels)
{
    passes(renew);
}
