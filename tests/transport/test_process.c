/* SPDX-License-Identifier: BSD-3-Clause */
/* test_process.c - other processes and their heaps: the right one, a wrong, a dead, a lying one. */
#include "base/fail.h"
#include "child.h"
#include "transport/memory/process.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096 };

/* A child that shows its heap and waits to be ended. */
struct neighbour {
    struct heap_handle handle;
    uint64_t offset;  /* of a page that begins with "neighbour" */
    uint64_t address; /* of private memory with the same text */
    int spare;        /* a descriptor of something else */
    atomic_int ready; /* 1: shown, 2: could not */
    pid_t pid;
};

static int be_neighbour(void *argument)
{
    static char text[PAGE] = "neighbour";
    struct neighbour *self = argument;
    void *memory = NULL;

    if (heap_enter(&self->handle) || heap_alloc(PAGE, &memory)) {
        atomic_store_explicit(&self->ready, 2, memory_order_release);
        return 1;
    }
    memcpy(memory, text, sizeof(text));
    self->offset = (uint64_t)((char *)memory - heap_base());
    self->address = (uint64_t)(uintptr_t)text;
    self->spare = open("/dev/null", O_RDWR);
    atomic_store_explicit(&self->ready, 1, memory_order_release);
    for (;;)
        pause();
}

static struct neighbour *meet(void)
{
    struct neighbour *neighbour = child_share(sizeof(*neighbour));

    neighbour->pid = child_start(be_neighbour, neighbour);
    while (!atomic_load_explicit(&neighbour->ready, memory_order_acquire))
        sched_yield();
    cr_assert(atomic_load_explicit(&neighbour->ready, memory_order_acquire) == 1);
    return neighbour;
}

/* NULL: it is refused. */
static char *map(struct process *process, uint64_t offset, size_t bytes)
{
    char *memory = NULL;

    return process_map(process, offset, bytes, &memory) ? NULL : memory;
}

static void part(struct neighbour *neighbour)
{
    kill(neighbour->pid, SIGKILL);
    child_wait(neighbour->pid);
}

Test(process, attached_twice_is_mapped_once)
{
    struct neighbour *neighbour = meet();
    struct process *one = NULL, *other = NULL;
    int before = child_descriptors();

    cr_assert(process_attach(&neighbour->handle, &one) == RONDO_OK, "%s", fail_sentence());
    cr_assert(process_attach(&neighbour->handle, &other) == RONDO_OK);
    cr_expect(one == other);
    cr_expect(child_descriptors() == before + 1, "one to watch it");
    cr_expect(!process_is_own(one) && process_id(one) == neighbour->pid && process_alive(one));
    cr_expect(strcmp(map(one, neighbour->offset, PAGE), "neighbour") == 0);
    process_detach(one);
    cr_expect(strcmp(map(other, neighbour->offset, PAGE), "neighbour") == 0);
    process_detach(other);
    process_detach(NULL);
    cr_expect(child_descriptors() == before);
    part(neighbour);
}

Test(process, memory_behind_what_is_mapped_is_mapped_and_the_rest_stays)
{
    struct neighbour *neighbour = meet();
    struct process *process = NULL;
    char *first, *last;

    cr_assert(process_attach(&neighbour->handle, &process) == RONDO_OK);
    first = map(process, neighbour->offset, PAGE);
    last = map(process, neighbour->handle.bytes - PAGE, PAGE);
    cr_assert(first && last);
    cr_expect(map(process, neighbour->handle.bytes - PAGE, PAGE) == last, "once");
    cr_expect(strcmp(first, "neighbour") == 0);
    strcpy(first, "changed");
    cr_expect(strcmp(map(process, neighbour->offset, PAGE), "changed") == 0);
    process_detach(process);
    part(neighbour);
}

Test(process, our_own_is_its_heap_without_a_second_mapping)
{
    struct heap_handle handle;
    struct process *process = NULL;
    int before;

    cr_assert(heap_enter(&handle) == RONDO_OK);
    before = child_descriptors();
    cr_assert(process_attach(&handle, &process) == RONDO_OK);
    cr_expect(process_is_own(process) && process_alive(process));
    cr_expect(map(process, PAGE, 1) == heap_base() + PAGE);
    cr_expect(child_descriptors() == before);
    process_detach(process);
    heap_leave();
}

Test(process, its_end_is_noticed_and_what_it_wrote_stays_readable)
{
    struct neighbour *neighbour = meet();
    struct process *process = NULL;
    char text[16];

    cr_assert(process_attach(&neighbour->handle, &process) == RONDO_OK);
    cr_assert(map(process, neighbour->offset, PAGE));
    part(neighbour);
    cr_expect(!process_alive(process));
    cr_expect_null(map(process, neighbour->handle.bytes - PAGE, PAGE), "not mapped before");
    cr_expect(strstr(fail_sentence(), "has ended"), "%s", fail_sentence());
    cr_expect(strcmp(map(process, neighbour->offset, PAGE), "neighbour") == 0);
    cr_expect(!process_readable(process, neighbour->address));
    cr_expect(process_read(process, text, neighbour->address, sizeof(text)) == RONDO_ERROR_PEER);
    process_detach(process);
    process = NULL;
    cr_expect(process_attach(&neighbour->handle, &process) == RONDO_ERROR_PEER, "it has ended");
    cr_expect(process == NULL && strlen(fail_sentence()) > 10);
}

Test(process, memory_is_read_across_if_it_is_there)
{
    struct neighbour *neighbour = meet();
    struct process *process = NULL;
    char text[16] = "";

    cr_assert(process_attach(&neighbour->handle, &process) == RONDO_OK);
    cr_expect(process_readable(process, neighbour->address));
    cr_expect(process_read(process, text, neighbour->address, sizeof(text)) == RONDO_OK, "%s",
              fail_sentence());
    cr_expect(strcmp(text, "neighbour") == 0);
    cr_expect(process_read(process, text, 0, 0) == RONDO_OK, "nothing can be read anywhere");
    cr_expect(!process_readable(process, 8));
    cr_expect(process_read(process, text, 8, sizeof(text)) == RONDO_ERROR_SYSTEM);
    cr_expect(strstr(fail_sentence(), "RONDO_CMA"), "%s", fail_sentence());
    process_detach(process);
    part(neighbour);
}

Test(process, ranges_outside_of_its_heap_are_nowhere_also_when_sums_overflow)
{
    struct neighbour *neighbour = meet();
    struct process *process = NULL;
    uint64_t bytes = neighbour->handle.bytes;

    cr_assert(process_attach(&neighbour->handle, &process) == RONDO_OK);
    cr_expect(map(process, 0, bytes) != NULL);
    cr_expect(map(process, bytes, 0) != NULL, "nothing, at the end");
    cr_expect(map(process, 1, bytes) == NULL);
    cr_expect(map(process, bytes, 1) == NULL);
    cr_expect(map(process, bytes + 1, 0) == NULL);
    cr_expect(map(process, UINT64_MAX, 1) == NULL);
    cr_expect(map(process, UINT64_MAX - 9, 20) == NULL);
    cr_expect(map(process, PAGE, SIZE_MAX) == NULL);
    process_detach(process);
    part(neighbour);
}

/* ---- Older kernels, and filters of containers ------------------------------------------------ */

static bool forbid_pidfd(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(filter) / sizeof(*filter), filter};

    return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
           !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* The neighbour is no child of this process, so nobody may wait for it here. */
static int watch_by_proc(void *argument)
{
    struct neighbour *neighbour = argument;
    struct process *process = NULL;
    struct rlimit limit, few;

    if (!forbid_pidfd())
        return 77;
    if (process_attach(&neighbour->handle, &process) || !process_alive(process))
        return 1;
    getrlimit(RLIMIT_NOFILE, &limit);
    few = (struct rlimit){3, limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &few) || !process_alive(process))
        return 2; /* that /proc can't be read is no death */
    setrlimit(RLIMIT_NOFILE, &limit);
    kill(neighbour->pid, SIGKILL);
    while (process_alive(process))
        sched_yield();
    return process_has_ended(&neighbour->handle) ? 0 : 3;
}

Test(process, where_pidfd_open_is_refused_its_end_is_noticed_by_proc)
{
    struct neighbour *neighbour = meet();
    int status = child_run(watch_by_proc, neighbour);

    if (status == 77)
        cr_skip_test("system calls cannot be forbidden here");
    cr_expect(status == 0, "%d", status);
    child_wait(neighbour->pid);
}

/* ---- Lies ------------------------------------------------------------------------------------ */

static void expect_refused(struct heap_handle handle, rondo_result wanted, const char *what)
{
    struct process *process = NULL;
    int before = child_descriptors();
    rondo_result result;

    fail_clear();
    result = process_attach(&handle, &process);
    cr_expect(result == wanted, "%s: %s: %s", what, rondo_result_string(result), fail_sentence());
    cr_expect(process == NULL, "%s", what);
    cr_expect(strlen(fail_sentence()) > 20, "%s", what);
    cr_expect(child_descriptors() == before, "%s: something stays open", what);
}

Test(process, endpoints_that_lie_are_refused_in_a_sentence)
{
    struct neighbour *neighbour = meet();
    struct heap_handle handle = neighbour->handle;

    handle.id[15] ^= 1;
    expect_refused(handle, RONDO_ERROR_PEER, "another identity");
    handle = neighbour->handle;
    handle.bytes += PAGE;
    expect_refused(handle, RONDO_ERROR_PEER, "more bytes than there are");
    handle.bytes = 8;
    expect_refused(handle, RONDO_ERROR_PEER, "less bytes");
    handle.bytes = 0;
    expect_refused(handle, RONDO_ERROR_PEER, "no bytes");
    handle = neighbour->handle;
    handle.fd = neighbour->spare;
    expect_refused(handle, RONDO_ERROR_PEER, "not a heap");
    handle.bytes = 0;
    expect_refused(handle, RONDO_ERROR_PEER, "not a heap, and empty");
    handle = neighbour->handle;
    handle.fd = 999;
    expect_refused(handle, RONDO_ERROR_SYSTEM, "no such descriptor");
    handle = neighbour->handle;
    handle.pid = -1;
    expect_refused(handle, RONDO_ERROR_SYSTEM, "no such process");
    part(neighbour);
}

Test(process, endpoints_that_lie_about_our_own_process_are_refused)
{
    struct heap_handle own, handle;
    struct process *process = NULL;

    cr_assert(heap_enter(&own) == RONDO_OK);
    handle = own;
    handle.id[0] ^= 1;
    expect_refused(handle, RONDO_ERROR_PEER, "another identity");
    handle = own;
    handle.bytes = UINT64_MAX;
    expect_refused(handle, RONDO_ERROR_PEER, "more bytes than there are");
    cr_expect(process_attach(&own, &process) == RONDO_OK);
    process_detach(process);
    heap_leave();
    expect_refused(own, RONDO_ERROR_PEER, "a heap that is closed");
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static int map_without_address_space(void *argument)
{
    struct rlimit limit = {(rlim_t)1 << 33, (rlim_t)1 << 33};
    struct process *process = NULL;
    const struct neighbour *neighbour = argument;
    char *memory = NULL;

    if (setrlimit(RLIMIT_AS, &limit) || process_attach(&neighbour->handle, &process))
        return 1;
    if (strcmp(map(process, neighbour->offset, PAGE), "neighbour") != 0)
        return 2;
    if (process_map(process, 0, neighbour->handle.bytes, &memory) != RONDO_ERROR_MEMORY || memory)
        return 3;
    if (!strstr(fail_sentence(), "ulimit -v"))
        return 4;
    return strcmp(map(process, neighbour->offset, PAGE), "neighbour") != 0;
}

Test(process, of_a_heap_larger_than_our_address_space_a_part_is_mapped)
{
    struct neighbour *neighbour;
    int status;

    setenv("RONDO_HEAP_BYTES", "1T", 1);
    neighbour = meet();
    status = child_run(map_without_address_space, neighbour);
    cr_expect(status == 0, "%d", status);
    part(neighbour);
}
#endif

/* ---- Forks ----------------------------------------------------------------------------------- */

static int attach_the_parent(void *argument)
{
    const struct heap_handle *parents = argument;
    struct heap_handle handle;
    struct process *process = NULL, *own = NULL;

    if (heap_enter(&handle) || process_attach(parents, &process))
        return 1;
    if (process_is_own(process) || process_id(process) != getppid())
        return 2; /* plain memory of the parent would be taken for the child's */
    if (process_attach(&handle, &own) || !process_is_own(own) || own == process)
        return 3;
    process_detach(own);
    process_detach(process);
    heap_leave();
    return 0;
}

Test(process, a_forked_child_does_not_take_its_parent_for_itself)
{
    struct heap_handle handle;
    struct process *process = NULL;

    cr_assert(heap_enter(&handle) == RONDO_OK);
    cr_assert(process_attach(&handle, &process) == RONDO_OK);
    cr_expect(child_run(attach_the_parent, &handle) == 0);
    process_detach(process);
    heap_leave();
}
