/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * program.c - a program that knows nothing of librondo-heap.so: test_heap.py runs it with that
 * preloaded. `program rank` is a rank of a job; the others need none. Says what is wrong, status 1.
 */
#include "rondo/rondo.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LARGE = 1 << 20, THREADS = 4, ROUNDS = 300 };

#define EXPECT(that)                                                       \
    do {                                                                   \
        if (!(that)) {                                                     \
            fprintf(stderr, "line %d: %s\n", __LINE__, #that);             \
            atomic_fetch_add_explicit(&failures, 1, memory_order_relaxed); \
        }                                                                  \
    } while (0)

static atomic_int failures;

/* Peers map this address, says the kernel: it is of the heap's file. */
static bool is_mapped(const void *memory)
{
    FILE *file = fopen("/proc/self/maps", "re");
    bool found = false;
    char line[512];

    while (file && !found && fgets(line, sizeof(line), file)) {
        unsigned long long begin, end;

        if (sscanf(line, "%llx-%llx", &begin, &end) == 2)
            found = (uintptr_t)memory >= begin && (uintptr_t)memory < end && strstr(line, "memfd:");
    }
    if (file)
        fclose(file);
    return found;
}

static bool all_are(const unsigned char *memory, size_t bytes, int value)
{
    for (size_t i = 0; i < bytes; i++)
        if (memory[i] != value)
            return false;
    return true;
}

static void blocks(void)
{
    unsigned char *small = malloc(100), *large = malloc(LARGE), *zeroed = calloc(3, LARGE), *other;
    void *aligned = NULL;
    size_t many;

    EXPECT(!is_mapped(small));
    EXPECT(is_mapped(large) && is_mapped(zeroed));
    EXPECT(malloc_usable_size(large) >= LARGE && malloc_usable_size(small) >= 100);
    EXPECT(all_are(zeroed, 3 * LARGE, 0));
    memset(small, 7, 100);
    small = realloc(small, LARGE);
    EXPECT(is_mapped(small) && all_are(small, 100, 7));
    memset(small, 8, LARGE);
    small = realloc(small, 3 * LARGE);
    EXPECT(is_mapped(small) && all_are(small, LARGE, 8));
    small = realloc(small, 50);
    EXPECT(!is_mapped(small) && all_are(small, 50, 8));
    EXPECT(posix_memalign(&aligned, 4096, LARGE) == 0 && is_mapped(aligned));
    EXPECT(posix_memalign(&aligned, 3, LARGE) != 0);
    other = aligned_alloc(1 << 21, LARGE);
    EXPECT(other && (uintptr_t)other % (1 << 21) == 0 && !is_mapped(other));
    free(other);
    free(aligned);
    other = aligned_alloc(4096, 4096);
    EXPECT(other && !is_mapped(other));
    free(other);
    free(small);
    free(large);
    free(zeroed);
    free(NULL);
    EXPECT(realloc(malloc(LARGE), 0) == NULL);
    zeroed = calloc(1, LARGE);
    EXPECT(all_are(zeroed, LARGE, 0));
    free(zeroed);
    many = (size_t)strtoull("9223372036854775808", NULL, 10); /* the compiler must not see it */
    EXPECT(!calloc(many, 4) && !malloc(many));
}

/* Grown by one element each time, as most programs grow arrays. */
static void growth(void)
{
    enum { FIRST = 60000, LAST = 200000, STEP = 8 };
    unsigned char *array = malloc(FIRST);
    int wrong = 0;

    memset(array, 1, FIRST);
    for (size_t bytes = FIRST; bytes < LAST; bytes += STEP) {
        array = realloc(array, bytes + STEP);
        memset(array + bytes, (int)(bytes / STEP % 251), STEP);
    }
    for (size_t bytes = FIRST; bytes < LAST; bytes += STEP)
        wrong += !all_are(array + bytes, STEP, (int)(bytes / STEP % 251));
    EXPECT(all_are(array, FIRST, 1) && wrong == 0);
    array = realloc(array, malloc_usable_size(array) - 1);
    memset(array, 2, malloc_usable_size(array));
    array = realloc(array, 2 * LAST);
    EXPECT(all_are(array, LAST, 2));
    free(array);
}

/* A program that closes all descriptors, and opens files of its own, keeps them as they are. */
static void descriptors(void)
{
    unsigned char *memory = malloc(LARGE), *other, *again, *held;
    FILE *file = tmpfile();
    int number = fcntl(fileno(file), F_DUPFD, 100), last = (int)sysconf(_SC_OPEN_MAX) - 1;
    unsigned char wanted[4096], got[4096];
    int lost = 0;

    memset(wanted, 5, sizeof(wanted));
    for (int i = 0; i < LARGE / 4096; i++)
        EXPECT(write(number, wanted, sizeof(wanted)) == sizeof(wanted));
    held = malloc(LARGE);
    memset(memory, 1, LARGE);
    for (int i = 3; i <= last; i++)
        EXPECT(dup2(number, i) == i);
    free(memory);
    again = malloc(LARGE); /* of glibc */
    other = malloc(200 * LARGE);
    EXPECT(again && other && !is_mapped(again) && !is_mapped(other));
    memset(again, 2, LARGE);
    memset(other, 3, LARGE);
    memset(held, 4, LARGE);
    free(again);
    free(other);
    free(held);
    for (int i = 3; i <= last; i++)
        lost += fcntl(i, F_GETFD) < 0;
    EXPECT(lost == 0);
    for (int i = 0; i < LARGE / 4096; i++)
        EXPECT(pread(number, got, sizeof(got), (off_t)i * 4096) == sizeof(got) &&
               memcmp(got, wanted, sizeof(got)) == 0);
}

static void *churn(void *argument)
{
    unsigned char *held[8] = {NULL};
    unsigned state = (unsigned)(uintptr_t)argument;

    for (int i = 0; i < ROUNDS; i++) {
        size_t bytes = (size_t)(state = state * 1103515245 + 12345) % (4 * 64 * 1024) + 1;
        unsigned char **place = &held[i % 8];

        if (*place)
            EXPECT((*place)[0] == (unsigned char)(i - 8));
        if (i % 3) {
            free(*place);
            *place = malloc(bytes);
        } else {
            *place = realloc(*place, bytes);
        }
        memset(*place, i, bytes < 200 ? bytes : 200);
    }
    for (int i = 0; i < 8; i++)
        free(held[i]);
    return NULL;
}

static void threads(void)
{
    pthread_t list[THREADS];

    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&list[i], NULL, churn, (void *)(i + 1)))
            atomic_fetch_add_explicit(&failures, 1, memory_order_relaxed);
    for (int i = 0; i < THREADS; i++)
        pthread_join(list[i], NULL);
}

static unsigned char *written; /* by a handler of fork() in the child; NULL: nothing is */

static void allocate(void)
{
    free(malloc(LARGE));
}

static void write_in_child(void)
{
    if (written)
        memset(written, 2, LARGE);
    allocate();
}

/* A program's handlers may use its memory. These are registered before any constructor runs, so a
 * library that registered its own in a constructor would come second in the child. */
static void register_handlers(void)
{
    if (pthread_atfork(allocate, allocate, write_in_child))
        atomic_fetch_add_explicit(&failures, 1, memory_order_relaxed);
}
__attribute__((section(".preinit_array"),
               used)) static void (*const first)(void) = register_handlers;

static atomic_bool over;

static void *allocate_always(void *unused)
{
    while (!atomic_load_explicit(&over, memory_order_relaxed))
        allocate();
    return unused;
}

/* A handler of the child writes into memory of the child, and never waits for a lock that another
 * thread of the parent has. */
static void handlers(void)
{
    enum { CHILDREN = 100 };
    unsigned char *memory = malloc(LARGE);
    pthread_t thread;
    int status = 0;

    memset(memory, 1, LARGE);
    written = memory;
    EXPECT(pthread_create(&thread, NULL, allocate_always, NULL) == 0);
    for (int i = 0; i < CHILDREN && !status; i++) {
        pid_t pid = fork();

        if (pid == 0)
            _exit(!all_are(memory, LARGE, 2));
        waitpid(pid, &status, 0);
        status |= !all_are(memory, LARGE, 1);
    }
    atomic_store_explicit(&over, true, memory_order_relaxed);
    pthread_join(thread, NULL);
    EXPECT(status == 0);
    free(memory);
}

/* A child has memory of its own, as after any fork(). */
static void children(void)
{
    unsigned char *memory = malloc(LARGE), *more;
    int status = -1;
    pid_t pid;

    memset(memory, 1, LARGE);
    pid = fork();
    if (pid == 0) {
        EXPECT(all_are(memory, LARGE, 1) && !is_mapped(memory));
        memset(memory, 2, LARGE);
        memory = realloc(memory, 2 * LARGE);
        EXPECT(all_are(memory, LARGE, 2));
        more = malloc(LARGE);
        memset(more, 3, LARGE);
        free(more);
        free(memory);
        _exit(atomic_load_explicit(&failures, memory_order_relaxed) != 0);
    }
    waitpid(pid, &status, 0);
    EXPECT(status == 0);
    EXPECT(all_are(memory, LARGE, 1) && is_mapped(memory));
    free(memory);
}

/* Forks where the parent may not have more of a resource. Returns the status of the child, which
 * expects the block to be its own and writes over it. */
static int write_in_poor_child(unsigned char *memory, size_t bytes, int resource, rlim_t most)
{
    struct rlimit usual, poor;
    int status = -1;
    pid_t pid;

    EXPECT(getrlimit(resource, &usual) == 0);
    poor = (struct rlimit){.rlim_cur = most, .rlim_max = usual.rlim_max};
    EXPECT(setrlimit(resource, &poor) == 0);
    pid = fork();
    if (pid == 0) {
        memset(memory, 2, bytes);
        _exit(!all_are(memory, bytes, 2) || is_mapped(memory));
    }
    EXPECT(setrlimit(resource, &usual) == 0);
    waitpid(pid, &status, 0);
    EXPECT(all_are(memory, bytes, 1) && is_mapped(memory));
    return status;
}

/* A child copies within the address space that it has; if it has no memory for a copy, it ends
 * rather than write into the memory of its parent. */
static void poor_children(void)
{
    enum { BYTES = 16 * LARGE };
    unsigned char *memory = malloc(BYTES);
    FILE *file = fopen("/proc/self/statm", "re");
    unsigned long pages = 0;
    int status;

    memset(memory, 1, BYTES);
    EXPECT(file && fscanf(file, "%lu", &pages) == 1);
    fclose(file);
    EXPECT(write_in_poor_child(memory, BYTES, RLIMIT_AS, pages * 4096 + LARGE) == 0);
    status = write_in_poor_child(memory, BYTES, RLIMIT_DATA, 4096);
    EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    free(memory);
}

/* With a small RONDO_HEAP_BYTES: what does not fit comes from glibc, and errors of the caller's are
 * as they were. */
static void exhaustion(void)
{
    unsigned char *list[64];
    char sentence[1024];
    int mapped = 0;

    EXPECT(rondo_mem_alloc(1, NULL) == RONDO_ERROR_INVALID);
    snprintf(sentence, sizeof(sentence), "%s", rondo_last_error(NULL));
    for (int i = 0; i < 64; i++) {
        list[i] = malloc(4 * LARGE);
        EXPECT(list[i]);
        memset(list[i], i, 4 * LARGE);
        mapped += is_mapped(list[i]);
    }
    EXPECT(mapped > 0 && mapped < 64);
    EXPECT(!strcmp(rondo_last_error(NULL), sentence) && *sentence);
    errno = EDOM;
    for (int i = 0; i < 64; i++) {
        EXPECT(all_are(list[i], 4 * LARGE, i));
        free(list[i]);
    }
    EXPECT(errno == EDOM);
}

/* A rank whose buffers are malloc()'s. */
static void rank(void)
{
    float *input = malloc(LARGE * sizeof(float)), *output = malloc(LARGE * sizeof(float));
    rondo_comm *comm;
    int wrong = 0;

    if (rondo_comm_open(NULL, &comm)) {
        fprintf(stderr, "%s\n", rondo_last_error(NULL));
        atomic_fetch_add_explicit(&failures, 1, memory_order_relaxed);
        return;
    }
    EXPECT(is_mapped(input) && is_mapped(output));
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < LARGE; i++)
            input[i] = (float)(i % 100 + round);
        EXPECT(!rondo_all_reduce(input, output, LARGE, RONDO_FLOAT32, RONDO_SUM, comm, NULL));
        for (int i = 0; i < LARGE; i++)
            wrong += output[i] != (float)(rondo_comm_size(comm) * (i % 100 + round));
        input = realloc(input, (LARGE + 1000 * (round + 1)) * sizeof(float));
    }
    EXPECT(wrong == 0);
    free(input);
    free(output);
    rondo_comm_close(comm);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } parts[] = {
        {"blocks", blocks},     {"growth", growth},         {"descriptors", descriptors},
        {"threads", threads},   {"children", children},     {"poor_children", poor_children},
        {"handlers", handlers}, {"exhaustion", exhaustion}, {"rank", rank}};

    for (size_t i = 0; argc == 2 && i < sizeof(parts) / sizeof(parts[0]); i++)
        if (!strcmp(argv[1], parts[i].name)) {
            parts[i].run();
            return atomic_load_explicit(&failures, memory_order_relaxed) != 0;
        }
    return 2;
}
