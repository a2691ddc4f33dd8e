/* SPDX-License-Identifier: BSD-3-Clause */
/* test_shown.c - pages that peers read: only their owner writes them, whatever another process of
 * the same user tries. */
#include "base/fail.h"
#include "child.h"
#include "transport/memory/process.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A child is told this about its parent, or the test about a child. */
struct owner {
    struct heap_handle handle;
    uint64_t offset;
    char *page;
    atomic_int word;
};

static struct owner *begin(void)
{
    struct owner *owner = child_share(sizeof(*owner));
    void *page = NULL;

    cr_assert(heap_enter(&owner->handle) == RONDO_OK, "%s", fail_sentence());
    cr_assert(shown_take(&page, &owner->offset) == RONDO_OK, "%s", fail_sentence());
    owner->page = page;
    strcpy(owner->page, "shown");
    return owner;
}

static void end(struct owner *owner)
{
    shown_give(owner->page);
    heap_leave();
}

/* Another process of the same user, which has mapped what its parent shows. */
static char *map_parent(const struct owner *owner)
{
    struct process *process = NULL;
    struct heap_handle own;

    if (heap_enter(&own) || process_attach(&owner->handle, &process))
        return NULL;
    return process_shown(process, owner->offset, SHOWN_PAGE);
}

static int read_it(void *argument)
{
    const char *page = map_parent(argument);

    return page && strcmp(page, "shown") == 0 ? 0 : 1;
}

static int write_it(void *argument)
{
    char *page = map_parent(argument);

    signal(SIGSEGV, SIG_DFL); /* a sanitizer would make a report of it */
    if (page)
        page[0] = 'x';
    return 1;
}

/* Opens the owner's descriptor once more, in our process. */
static int open_again(int fd, int how)
{
    char name[64];

    snprintf(name, sizeof(name), "/proc/%d/fd/%d", (int)getppid(), fd);
    return open(name, how | O_CLOEXEC);
}

static int force_it(void *argument)
{
    const struct owner *owner = argument;
    char *page = map_parent(owner);
    int fd = open_again(owner->handle.shown.fd, O_RDWR);

    if (!page || fd < 0)
        return 1;
    if (!mprotect(page, SHOWN_PAGE, PROT_READ | PROT_WRITE))
        return 2;
    if (mmap(NULL, SHOWN_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)owner->offset) !=
        MAP_FAILED)
        return 3;
    if (pwrite(fd, "x", 1, (off_t)owner->offset) >= 0)
        return 4;
    if (!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)owner->offset,
                   SHOWN_PAGE))
        return 5;
    return ftruncate(fd, 0) && errno == EPERM ? 0 : 6;
}

Test(shown, what_a_process_shows_others_read)
{
    struct owner *owner = begin();

    cr_expect(child_run(read_it, owner) == 0);
    end(owner);
}

Test(shown, who_maps_it_cannot_write_it)
{
    struct owner *owner = begin();

    cr_expect(child_run(write_it, owner) == 128 + SIGSEGV);
    cr_expect(strcmp(owner->page, "shown") == 0);
    end(owner);
}

Test(shown, nor_can_another_process_of_the_same_user_by_force)
{
    struct owner *owner = begin();

    cr_expect(child_run(force_it, owner) == 0);
    cr_expect(strcmp(owner->page, "shown") == 0);
    end(owner);
}

Test(shown, a_page_is_zero_again_when_it_is_given_out_again)
{
    struct owner *owner = begin();
    uint64_t offset = 1;
    void *again = NULL;

    shown_give(owner->page);
    cr_assert(shown_take(&again, &offset) == RONDO_OK);
    cr_expect(again == owner->page && offset == owner->offset, "the same place");
    cr_expect(*(const char *)again == '\0');
    end(owner);
    cr_expect(shown_base() == NULL, "it goes with its last use");
}

/* A child that leaves its heap and enters it again, while a block keeps the heap open. */
struct returner {
    struct owner owner;
    atomic_int entered, may_return;
};

static int leave_and_return(void *argument)
{
    struct returner *self = argument;
    struct owner *owner = &self->owner;
    void *block = NULL, *page = NULL;

    if (heap_enter(&owner->handle) || heap_alloc(1, &block) || shown_take(&page, &owner->offset))
        return 1;
    strcpy(page, "first");
    atomic_store_explicit(&self->entered, 1, memory_order_release);
    while (!atomic_load_explicit(&self->may_return, memory_order_acquire))
        sched_yield();
    shown_give(page);
    heap_leave();
    if (heap_enter(&owner->handle) || shown_take(&page, &owner->offset))
        return 2;
    strcpy(page, "second");
    atomic_store_explicit(&self->entered, 2, memory_order_release);
    for (;;)
        pause();
}

static const char *attach_and_read(struct returner *returner, int times, struct process **process)
{
    while (atomic_load_explicit(&returner->entered, memory_order_acquire) < times)
        sched_yield();
    cr_assert(process_attach(&returner->owner.handle, process) == RONDO_OK, "%s", fail_sentence());
    return process_shown(*process, returner->owner.offset, SHOWN_PAGE);
}

Test(shown, who_still_holds_a_process_sees_what_it_shows_after_it_left_and_came_again)
{
    struct returner *returner = child_share(sizeof(*returner));
    struct process *before = NULL, *after = NULL;
    pid_t child = child_start(leave_and_return, returner);

    cr_expect_str_eq(attach_and_read(returner, 1, &before), "first");
    atomic_store_explicit(&returner->may_return, 1, memory_order_release);
    cr_expect_str_eq(attach_and_read(returner, 2, &after), "second");
    process_detach(before);
    process_detach(after);
    kill(child, SIGKILL);
    child_wait(child);
}

Test(shown, places_outside_of_it_are_nowhere)
{
    struct owner *owner = begin();
    struct process *process = NULL;

    cr_assert(process_attach(&owner->handle, &process) == RONDO_OK);
    cr_expect(process_shown(process, owner->offset, SHOWN_PAGE) == owner->page);
    cr_expect(process_shown(process, SHOWN_BYTES - 1, 2) == NULL);
    cr_expect(process_shown(process, UINT64_MAX, 1) == NULL);
    process_detach(process);
    end(owner);
}

/* ---- The heap, which peers do write ---------------------------------------------------------- */

static int cut_short(void *argument)
{
    const struct owner *owner = argument;
    int fd = open_again(owner->handle.fd, O_RDWR);

    if (fd < 0)
        return 1;
    if (!ftruncate(fd, SHOWN_PAGE) || errno != EPERM)
        return 2;
    if (!ftruncate(fd, (off_t)owner->handle.bytes * 2) || errno != EPERM)
        return 3;
    return fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) && errno == EPERM ? 0 : 4;
}

Test(shown, a_heap_cannot_be_cut_short_by_another_process_of_the_same_user)
{
    struct owner *owner = begin();

    cr_expect(child_run(cut_short, owner) == 0);
    end(owner);
}

/* A process whose files look right but for the seals. */
static int pretend(void *argument)
{
    struct owner *owner = argument;
    int heap = memfd_create("heap", MFD_CLOEXEC | MFD_ALLOW_SEALING),
        shown = memfd_create("shown", MFD_CLOEXEC);

    memset(owner->handle.id, 7, sizeof(owner->handle.id));
    owner->handle.pid = getpid();
    owner->handle.bytes = SHOWN_BYTES;
    if (ftruncate(heap, SHOWN_BYTES) || ftruncate(shown, SHOWN_BYTES) ||
        pwrite(heap, owner->handle.id, sizeof(owner->handle.id), 0) != sizeof(owner->handle.id))
        return 1;
    if (owner->handle.fd < 0) /* wanted: the heap is sealed, what it shows is not */
        fcntl(heap, F_ADD_SEALS, F_SEAL_SHRINK);
    owner->handle.fd = heap;
    owner->handle.shown = (struct shown_handle){.fd = shown, .bytes = SHOWN_BYTES};
    atomic_store_explicit(&owner->word, 1, memory_order_release);
    for (;;)
        pause();
}

Test(shown, files_that_could_be_cut_short_are_not_mapped)
{
    for (int sealed = 0; sealed < 2; sealed++) {
        struct owner *owner = child_share(sizeof(*owner));
        struct process *process = NULL;
        int before = child_descriptors();
        pid_t child;

        owner->handle.fd = -sealed;
        child = child_start(pretend, owner);
        while (!atomic_load_explicit(&owner->word, memory_order_acquire))
            sched_yield();
        cr_expect(process_attach(&owner->handle, &process) == RONDO_ERROR_PEER);
        cr_expect(strstr(fail_sentence(), "not sealed"), "'%s'", fail_sentence());
        cr_expect(child_descriptors() == before);
        kill(child, SIGKILL);
        child_wait(child);
    }
}
