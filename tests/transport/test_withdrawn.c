/* SPDX-License-Identifier: BSD-3-Clause */
/* test_withdrawn.c - memory of the heap that is taken back from peers, which go on storing. A
 * second mapping of the heap stands for a peer's. */
#include "base/fail.h"
#include "transport/memory/heap.h"
#include "transport/memory/page.h"
#include "transport/memory/process.h"
#include "transport/memory/registered.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGES = 6 };

/* ---- A lease that ends when the test says so ------------------------------------------------- */

struct switched {
    struct lease lease; /* first */
    bool over;
    int *closed;
};

static bool is_over(const struct lease *lease)
{
    return ((const struct switched *)(const void *)lease)->over;
}

static void close_switched(struct lease *lease)
{
    ++*((struct switched *)(void *)lease)->closed;
}

static const struct lease_ops switched_ops = {.is_over = is_over, .close = close_switched};

static int closed;

static struct switched switched(void)
{
    closed = 0;
    return (struct switched){.lease = {.ops = &switched_ops}, .closed = &closed};
}

/* ---- The scene ------------------------------------------------------------------------------- */

static struct heap_handle handle;
static char *peer; /* the heap as a peer has it mapped */

static void open_heap(void)
{
    cr_assert(heap_enter(&handle) == RONDO_OK, "%s", fail_sentence());
    peer =
        mmap(NULL, handle.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, handle.fd, 0);
    cr_assert(peer != MAP_FAILED);
}

static void close_heap(void)
{
    munmap(peer, handle.bytes);
    heap_leave();
}

static char *block(size_t bytes)
{
    void *memory = NULL;

    cr_assert(heap_alloc(bytes, &memory) == RONDO_OK, "%s", fail_sentence());
    memset(memory, 7, bytes);
    return memory;
}

static bool is_all(const char *memory, size_t bytes, char value)
{
    for (size_t i = 0; i < bytes; i++)
        if (memory[i] != value)
            return false;
    return true;
}

struct warning {
    int count;
    const char *begin, *end;
    bool emptied;
    const _Atomic uint32_t *rounds; /* of another thread, or NULL */
    uint32_t before;                /* the rounds by then */
};

static void note_warning(void *context, const char *begin, const char *end, bool emptied)
{
    struct warning *warning = context;

    warning->count++;
    warning->begin = begin;
    warning->end = end;
    warning->emptied = emptied;
    if (warning->rounds)
        warning->before = atomic_load_explicit(warning->rounds, memory_order_relaxed);
}

static rondo_result withdraw(const char *memory, size_t bytes, struct lease *lease,
                             struct warning *warning)
{
    warning->count = 0;
    return heap_withdraw(&(struct heap_withdrawal){.memory = memory,
                                                   .bytes = bytes,
                                                   .lease = lease,
                                                   .warn = note_warning,
                                                   .context = warning});
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

Test(withdrawn, memory_keeps_what_it_holds_and_does_not_see_what_peers_store, .init = open_heap,
     .fini = close_heap)
{
    struct switched lease = switched();
    char *memory = block(PAGES * PAGE);
    char *theirs = peer + (memory - heap_base());
    struct warning warning = {.count = 0};
    uint64_t offset;

    theirs[PAGE] = 1;
    cr_expect(memory[PAGE] == 1, "it is shared");
    memory[PAGE] = 7;
    cr_assert(withdraw(memory + PAGE + 100, 2 * PAGE, &lease.lease, &warning) == RONDO_OK);
    cr_expect(warning.count == 1 && warning.begin == memory + PAGE &&
              warning.end == memory + 4 * PAGE && !warning.emptied);
    cr_expect(is_all(memory, PAGES * PAGE, 7));
    memset(theirs + PAGE, 1, 3 * PAGE);
    cr_expect(is_all(memory, PAGES * PAGE, 7), "all of the pages that it touches are private");
    memset(memory + PAGE, 9, 3 * PAGE);
    cr_expect(is_all(theirs + PAGE, 3 * PAGE, 1), "and peers do not see what is stored");
    memory[0] = 5;
    cr_expect(theirs[0] == 5, "the other pages are still shared");
    cr_expect(!heap_find(memory, PAGES * PAGE, &offset) && !heap_find(memory + PAGE, 1, &offset));
    cr_expect(heap_find(memory, PAGE, &offset) && heap_find(memory + 4 * PAGE, PAGE, &offset));
    lease.over = true;
    cr_expect(heap_free(memory) == RONDO_OK);
    cr_expect(closed == 1);
}

Test(withdrawn, ranks_of_our_own_process_are_attached_while_some_memory_is, .init = open_heap,
     .fini = close_heap)
{
    struct switched lease = switched();
    char *memory = block(PAGES * PAGE);
    struct process *process = NULL;
    struct warning warning = {.count = 0};

    cr_assert(withdraw(memory, PAGES * PAGE, &lease.lease, &warning) == RONDO_OK);
    cr_expect(process_attach(&handle, &process) == RONDO_OK, "%s", fail_sentence());
    process_detach(process);
    lease.over = true;
    cr_expect(heap_free(memory) == RONDO_OK);
}

Test(withdrawn, a_place_is_handed_out_again_when_the_lease_is_over_and_is_shared_then,
     .init = open_heap, .fini = close_heap)
{
    struct switched lease = switched();
    char *memory = block(PAGES * PAGE), *theirs = peer + (memory - heap_base()), *other, *again;
    struct warning warning = {.count = 0};
    uint64_t offset;

    cr_assert(withdraw(memory, PAGES * PAGE, &lease.lease, &warning) == RONDO_OK);
    cr_assert(heap_free(memory) == RONDO_OK);
    other = block(PAGES * PAGE);
    cr_expect(other != memory, "a peer may still store there");
    memset(theirs, 1, PAGES * PAGE);
    cr_expect(is_all(other, PAGES * PAGE, 7));
    cr_expect(closed == 0);
    lease.over = true;
    again = block(PAGES * PAGE);
    cr_expect(again == memory && closed == 1);
    cr_expect(heap_find(again, PAGES * PAGE, &offset));
    theirs[5] = 3;
    cr_expect(again[5] == 3, "it is shared as any other");
    cr_expect(heap_free(again) == RONDO_OK && heap_free(other) == RONDO_OK);
}

Test(withdrawn, what_is_withdrawn_twice_loses_nothing_and_waits_for_both_leases, .init = open_heap,
     .fini = close_heap)
{
    struct switched first = switched(), second = switched();
    char *memory = block(PAGES * PAGE), *again;
    struct warning warning = {.count = 0};

    cr_assert(withdraw(memory, 2 * PAGE, &first.lease, &warning) == RONDO_OK);
    memset(memory, 4, PAGES * PAGE);
    cr_assert(withdraw(memory + PAGE, 3 * PAGE, &second.lease, &warning) == RONDO_OK);
    cr_expect(is_all(memory, PAGES * PAGE, 4));
    memset(peer + (memory - heap_base()), 1, 4 * PAGE);
    cr_expect(is_all(memory, PAGES * PAGE, 4));
    cr_assert(heap_free(memory) == RONDO_OK);
    first.over = true;
    again = block(PAGES * PAGE);
    cr_expect(again != memory && closed == 1);
    heap_free(again);
    second.over = true;
    again = block(PAGES * PAGE);
    cr_expect(again == memory && closed == 2);
    heap_free(again);
}

Test(withdrawn, a_lease_that_never_ends_keeps_the_place_for_ever, .init = open_heap,
     .fini = close_heap)
{
    char *memory = block(PAGE), *other;
    struct warning warning = {.count = 0};

    cr_assert(withdraw(memory, PAGE, NULL, &warning) == RONDO_OK);
    cr_expect(heap_free(memory) == RONDO_OK);
    for (int i = 0; i < 10; i++) {
        other = block(PAGE);
        cr_expect(other != memory);
        heap_free(other);
    }
}

Test(withdrawn, this_process_still_knows_its_heap, .init = open_heap, .fini = close_heap)
{
    struct switched lease = switched();
    char *memory = block(PAGE);
    struct warning warning = {.count = 0};
    struct process *process = NULL;

    cr_assert(withdraw(memory, PAGE, &lease.lease, &warning) == RONDO_OK);
    cr_expect(process_attach(&handle, &process) == RONDO_OK, "%s", fail_sentence());
    process_detach(process);
    lease.over = true;
    cr_expect(heap_free(memory) == RONDO_OK);
}

/* ---- Other threads of the owner -------------------------------------------------------------- */

struct busy {
    _Atomic uint32_t *words;
    size_t count, stride;
    atomic_bool stop;
    _Atomic uint32_t rounds;
};

static uint32_t word(const struct busy *busy, size_t index)
{
    return atomic_load_explicit(&busy->words[index * busy->stride], memory_order_relaxed);
}

static void *count_up(void *argument)
{
    struct busy *busy = argument;

    while (!atomic_load_explicit(&busy->stop, memory_order_relaxed)) {
        for (size_t i = 0; i < busy->count; i++)
            atomic_fetch_add_explicit(&busy->words[i * busy->stride], 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&busy->rounds, 1, memory_order_relaxed);
    }
    return NULL;
}

/* Until the thread has gone through its words once more. */
static void await_round(struct busy *busy)
{
    uint32_t rounds = atomic_load_explicit(&busy->rounds, memory_order_relaxed);

    while (atomic_load_explicit(&busy->rounds, memory_order_relaxed) == rounds)
        sched_yield();
}

enum { MEANWHILE = 20 }; /* rounds: a few go by between our looks at them and the withdrawal */

/* Withdraws memory in which a thread counts. True if that thread was on a core meanwhile: on a busy
 * machine that takes a few attempts. */
static bool withdraw_from_counter(char *memory, size_t bytes, size_t words)
{
    struct busy busy = {
        .words = (void *)memory, .count = words, .stride = bytes / words / sizeof(uint32_t)};
    struct switched lease = switched();
    struct warning warning = {.rounds = &busy.rounds};
    pthread_t thread;
    uint32_t after;

    memset(memory, 0, bytes);
    cr_assert(pthread_create(&thread, NULL, count_up, &busy) == 0);
    await_round(&busy);
    cr_expect(withdraw(memory, bytes, &lease.lease, &warning) == RONDO_OK);
    after = atomic_load_explicit(&busy.rounds, memory_order_relaxed);
    atomic_store_explicit(&busy.stop, true, memory_order_relaxed);
    pthread_join(thread, NULL);
    for (size_t i = 0; i < words; i++)
        cr_expect(word(&busy, i) == busy.rounds, "word %zu: %u of %u", i, word(&busy, i),
                  busy.rounds);
    lease.over = true;
    heap_free(memory);
    return after - warning.before > MEANWHILE;
}

Test(withdrawn, what_other_threads_store_meanwhile_is_not_lost, .init = open_heap,
     .fini = close_heap)
{
    enum { WORDS = 64, BYTES = 512 * PAGE };

    while (!withdraw_from_counter(block(BYTES), BYTES, WORDS))
        ;
}

/* ---- Registered memory ----------------------------------------------------------------------- */

/* The range begins and ends so many bytes within its first and its last page. */
static void withdraw_a_registered_range(size_t within)
{
    struct switched lease = switched();
    char *memory = aligned_alloc(PAGE, PAGES * PAGE), *begin = memory + within, *theirs, *other;
    size_t bytes = PAGES * PAGE - 2 * within;
    struct warning warning = {.count = 0};
    uint64_t offset, again;

    memset(memory, 7, PAGES * PAGE);
    cr_assert(heap_register(begin, bytes) == RONDO_OK);
    cr_assert(registered_room(begin, bytes, &offset));
    offset -= within;
    theirs = peer + offset;
    theirs[PAGE + 17] = 2;
    cr_expect(memory[PAGE + 17] == 2);
    memory[PAGE + 17] = 7;
    cr_assert(withdraw(begin + 100, 10, &lease.lease, &warning) == RONDO_OK);
    cr_expect(warning.begin == begin && warning.end == begin + bytes && warning.emptied);
    cr_expect(closed == 1);
    cr_expect(!registered_room(begin, 1, &again), "none of it is registered any more");
    cr_expect(!heap_find(memory + PAGE, 1, &again));
    memset(theirs, 1, PAGES * PAGE);
    cr_expect(is_all(memory, PAGES * PAGE, 7));
    other = block(PAGES * PAGE);
    cr_expect(other != heap_base() + offset, "peers and this process may still store there");
    heap_free(other);
    cr_expect(heap_register(begin, bytes) == RONDO_OK, "it can be registered once more");
    cr_expect(is_all(memory, PAGES * PAGE, 7));
    cr_expect(heap_deregister(begin) == RONDO_OK);
    free(memory);
}

Test(withdrawn, a_registered_range_goes_back_to_private_pages, .init = open_heap,
     .fini = close_heap)
{
    withdraw_a_registered_range(0);
}

Test(withdrawn, so_does_one_that_fills_no_first_and_no_last_page, .init = open_heap,
     .fini = close_heap)
{
    withdraw_a_registered_range(1000);
}

/* ---- Retired places -------------------------------------------------------------------------- */

Test(withdrawn, a_retired_place_is_handed_out_again_when_its_lease_is_over, .init = open_heap,
     .fini = close_heap)
{
    struct switched lease = switched();
    char *memory = block(PAGES * PAGE), *other;

    heap_retire(memory, PAGE, &lease.lease);
    cr_expect(is_all(memory, PAGE, 7) && is_all(memory + PAGE, (PAGES - 1) * PAGE, 0));
    other = block(PAGES * PAGE);
    cr_expect(other != memory);
    heap_free(other);
    lease.over = true;
    other = block(PAGES * PAGE);
    cr_expect(other == memory && closed == 1);
    heap_free(other);
}
