/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_scarce.c - every allocation, mapping and thread fails once: the answer is a sentence, and
 * nothing is lost.
 *
 * The linker leads the library's calls of malloc() and the like here (-Wl,--wrap), where they are
 * counted. A scene is played again and again, each time the next allocation fails, until it plays
 * to the end without meeting its failure.
 */
#include "base/fail.h"
#include "rondo/rondo.h"
#include "transport/memory/process.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

static atomic_int left = -1; /* allocations until one fails; negative: none does */
static atomic_int living;    /* allocated and not freed */
static atomic_int attached;  /* uses of processes that were not given back */

static bool fails(void)
{
    return atomic_load_explicit(&left, memory_order_acquire) >= 0 &&
           atomic_fetch_sub_explicit(&left, 1, memory_order_relaxed) == 0;
}

static void *count(void *memory)
{
    if (memory)
        atomic_fetch_add_explicit(&living, 1, memory_order_relaxed);
    return memory;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void __real_free(void *memory);
void *__real_mmap64(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*body)(void *), void *argument);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t number, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void __wrap_free(void *memory);
void *__wrap_mmap64(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*body)(void *), void *argument);
rondo_result __real_process_attach(const struct heap_handle *handle, struct process **ret_process);
void __real_process_hold(struct process *process);
void __real_process_detach(struct process *process);
rondo_result __real_process_map(struct process *process, uint64_t offset, size_t bytes,
                                char **ret_memory);
rondo_result __wrap_process_attach(const struct heap_handle *handle, struct process **ret_process);
void __wrap_process_hold(struct process *process);
void __wrap_process_detach(struct process *process);
rondo_result __wrap_process_map(struct process *process, uint64_t offset, size_t bytes,
                                char **ret_memory);

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : count(__real_malloc(size));
}

void *__wrap_calloc(size_t number, size_t size)
{
    return fails() ? NULL : count(__real_calloc(number, size));
}

void *__wrap_realloc(void *memory, size_t size)
{
    void *moved = fails() ? NULL : __real_realloc(memory, size);

    return memory ? moved : count(moved);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return fails() ? NULL : count(__real_aligned_alloc(alignment, size));
}

void __wrap_free(void *memory)
{
    if (memory)
        atomic_fetch_sub_explicit(&living, 1, memory_order_relaxed);
    __real_free(memory);
}

void *__wrap_mmap64(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    return fails() ? MAP_FAILED : __real_mmap64(at, bytes, protection, flags, fd, offset);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*body)(void *), void *argument)
{
    return fails() ? 11 /* EAGAIN */ : __real_pthread_create(thread, attributes, body, argument);
}

rondo_result __wrap_process_attach(const struct heap_handle *handle, struct process **ret_process)
{
    rondo_result result = __real_process_attach(handle, ret_process);

    atomic_fetch_add_explicit(&attached, !result, memory_order_relaxed);
    return result;
}

void __wrap_process_hold(struct process *process)
{
    atomic_fetch_add_explicit(&attached, 1, memory_order_relaxed);
    __real_process_hold(process);
}

void __wrap_process_detach(struct process *process)
{
    atomic_fetch_sub_explicit(&attached, process != NULL, memory_order_relaxed);
    __real_process_detach(process);
}

/* The memory of another process, which these ranks are not, would be mapped here. */
rondo_result __wrap_process_map(struct process *process, uint64_t offset, size_t bytes,
                                char **ret_memory)
{
    return fails() ? rondo_fail(RONDO_ERROR_MEMORY, "Cannot map the memory of a process.")
                   : __real_process_map(process, offset, bytes, ret_memory);
}

/* ---- Playing scenes ------------------------------------------------------------------------- */

/* Two ranks of this process; `inject` is called where failures begin to count. */
typedef void (*scene)(int allowed);

enum {
    MOST = 2000,
    KEPT = 16,  /* communicators that were closed last stay, for whoever calls with one */
    RETIRED = 2 /* a broken communicator keeps the heap open: its list of spans */
};

static char refusals; /* how many times the present scene met its failure */
static const rondo_config impatient = {
    sizeof(rondo_config), -1, NULL, 0, 0, 20.0, -1, NULL, 0, 0, 0, -1, -1};

/*
 * An attempt that may have failed is right, or an error with a sentence that is not about silence.
 */
static void expect_sentence(rondo_result result, const char *sentence, int allowed)
{
    if (!result)
        return;
    refusals = 1;
    cr_expect(result != RONDO_ERROR_TIMEOUT && result != RONDO_ERROR_INTERNAL &&
                  result != RONDO_IN_PROGRESS,
              "failure %d: %s", allowed, sentence);
    cr_expect(strlen(sentence) > 20, "failure %d: \"%s\"", allowed, sentence);
}

static void play(scene what)
{
    int before, uses, met = 0;

    for (int i = 0; i < KEPT; i++)
        what(MOST); /* warm up: what is allocated once for ever */
    before = atomic_load_explicit(&living, memory_order_acquire);
    uses = atomic_load_explicit(&attached, memory_order_relaxed);
    for (int allowed = 0; allowed < MOST; allowed++) {
        refusals = 0;
        what(allowed);
        met += refusals;
        cr_assert(atomic_load_explicit(&living, memory_order_acquire) <= before + RETIRED,
                  "failure %d: %d are lost", allowed,
                  atomic_load_explicit(&living, memory_order_acquire) - before);
        if (atomic_load_explicit(&left, memory_order_acquire) >= 0)
            break; /* it was not reached any more */
    }
    cr_expect(atomic_load_explicit(&left, memory_order_acquire) >= 0, "it never played to the end");
    atomic_store_explicit(&left, -1, memory_order_release);
    cr_expect(atomic_load_explicit(&attached, memory_order_relaxed) <= uses,
              "%d uses of processes, before %d",
              atomic_load_explicit(&attached, memory_order_relaxed), uses);
    cr_expect(met > 3, "only %d failures were felt", met);
}

static void open_two(rondo_comm *comms[2])
{
    atomic_store_explicit(&left, -1, memory_order_release);
    cr_assert(rondo_comm_open_all(2, &impatient, comms) == RONDO_OK, "%s", rondo_last_error(NULL));
}

static void close_two(rondo_comm *comms[2])
{
    rondo_comm_close(comms[0]);
    rondo_comm_close(comms[1]);
}

/* ---- Scenes --------------------------------------------------------------------------------- */

static void open_and_add(int allowed)
{
    rondo_comm *comms[3] = {NULL};
    rondo_result result;

    fail_clear();
    atomic_store_explicit(&left, allowed, memory_order_release);
    result = rondo_comm_open_all(3, &impatient, comms);
    expect_sentence(result, rondo_last_error(NULL), allowed);
    cr_expect(!result == (comms[0] != NULL), "outputs are written on success only");
    for (int r = 0; r < 3; r++)
        rondo_comm_close(comms[r]);
}

Test(scarce, opening_ranks_as_threads)
{
    play(open_and_add);
}

struct splitter {
    rondo_comm *comm, *part;
    rondo_result result;
    char sentence[FAIL_SENTENCE_MAX];
};

static void *split(void *argument)
{
    struct splitter *splitter = argument;

    splitter->result = rondo_comm_split(splitter->comm, 0, 0, NULL, &splitter->part);
    if (!splitter->result)
        splitter->result = rondo_comm_finalize(splitter->part);
    strcpy(splitter->sentence, fail_sentence());
    return NULL;
}

static void split_two(int allowed)
{
    struct splitter splitters[2] = {{0}};
    rondo_comm *comms[2];
    pthread_t thread;

    open_two(comms);
    splitters[0].comm = comms[0];
    splitters[1].comm = comms[1];
    cr_assert(__real_pthread_create(&thread, NULL, split, &splitters[1]) == 0);
    atomic_store_explicit(&left, allowed, memory_order_release);
    split(&splitters[0]);
    pthread_join(thread, NULL);
    for (int r = 0; r < 2; r++) {
        expect_sentence(splitters[r].result, splitters[r].sentence, allowed);
        rondo_comm_close(splitters[r].part);
    }
    close_two(comms);
}

Test(scarce, splitting)
{
    play(split_two);
}

static rondo_result exchange_in_group(rondo_comm *comms[2], rondo_stream *stream)
{
    static float from[2][50000], to[2][50000];
    rondo_result result = rondo_group_start(), end;

    for (int r = 0; r < 2 && !result; r++)
        result = rondo_all_reduce(from[r], to[r], 50000, RONDO_FLOAT32, RONDO_AVG, comms[r],
                                  r ? NULL : stream);
    for (int i = 0; i < 20 && !result; i++)
        result = rondo_broadcast(from[i % 2], from[i % 2], 10, RONDO_FLOAT32, 1, comms[i % 2],
                                 i % 2 ? NULL : stream);
    end = rondo_group_end();
    return result ? result : end;
}

static void run_group(int allowed)
{
    rondo_comm *comms[2];
    rondo_result result;

    open_two(comms);
    atomic_store_explicit(&left, allowed, memory_order_release);
    result = exchange_in_group(comms, NULL);
    expect_sentence(result, rondo_last_error(NULL), allowed);
    close_two(comms);
}

Test(scarce, groups)
{
    play(run_group);
}

/* Streams and events; a call that could not be queued ends
 * the scene by an abort, as a program would. */
static void run_streams(int allowed)
{
    rondo_comm *comms[2];
    rondo_stream *stream = NULL;
    rondo_event *event = NULL;
    rondo_result result;

    open_two(comms);
    atomic_store_explicit(&left, allowed, memory_order_release);
    result = rondo_stream_open(&stream);
    if (!result)
        result = rondo_event_open(&event);
    if (!result)
        result = rondo_barrier(comms[0], stream);
    if (!result)
        result = rondo_event_record(event, stream);
    if (!result)
        result = rondo_stream_wait_event(stream, event);
    if (!result)
        result = rondo_barrier(comms[1], NULL);
    expect_sentence(result, rondo_last_error(NULL), allowed);
    if (result)
        rondo_comm_abort(comms[1]);
    else
        result = rondo_stream_synchronize(stream);
    expect_sentence(result, rondo_last_error(NULL), allowed);
    rondo_stream_close(stream);
    rondo_event_close(event);
    close_two(comms);
}

Test(scarce, streams_and_events)
{
    play(run_streams);
}

static void run_memory(int allowed)
{
    char *private =
        __real_mmap64(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    rondo_registration *registration = NULL;
    rondo_comm *comms[2];
    void *memory = NULL;
    rondo_result result;

    open_two(comms);
    private[5000] = 'p';
    atomic_store_explicit(&left, allowed, memory_order_release);
    for (int i = 0; i < 20; i++) { /* the list of spans grows */
        result = rondo_mem_alloc(1, &memory);
        expect_sentence(result, rondo_last_error(NULL), allowed);
        if (!result && i % 2)
            cr_expect(rondo_mem_free(memory) == RONDO_OK);
    }
    result = rondo_comm_register(comms[0], private, 8192, &registration);
    expect_sentence(result, rondo_last_error(NULL), allowed);
    if (!result) {
        result = rondo_comm_deregister(comms[0], registration);
        expect_sentence(result, rondo_last_error(NULL), allowed);
    }
    cr_expect(private[5000] == 'p', "contents survive whatever fails");
    close_two(comms);
    munmap(private, 8192);
}

Test(scarce, memory_and_registrations)
{
    play(run_memory);
}
