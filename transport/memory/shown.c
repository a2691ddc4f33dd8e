/* SPDX-License-Identifier: BSD-3-Clause */
/* shown.c - the file of shown pages, and which of them are in use (see shown.h). */
#include "transport/memory/shown.h"

#include "base/caller/descriptor.h"
#include "base/fail.h"
#include "base/fork.h"
#include "base/lock.h"
#include "base/log.h"
#include "transport/memory/pages.h"
#include "transport/memory/spans.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

static struct {
    struct lock lock;
    char *base; /* NULL: closed */
    int fd;
    struct descriptor_identity identity;
    pid_t pid; /* whose file this is: a forked child opens its own */
    unsigned users;
    struct spans spans;
} shown = {.lock = LOCK_AT(LOCK_SHOWN), .fd = -1};
FORK_RENEWS({.lock = &shown.lock});

char *shown_base(void)
{
    char *base;

    lock_take(&shown.lock);
    base = shown.base;
    lock_give(&shown.lock);
    return base;
}

/* Kernels before 5.1 let whoever may open the file write it, too; peers map it for reading only. */
static int seal(int fd)
{
    const int size = F_SEAL_SHRINK | F_SEAL_GROW;

    if (!fcntl(fd, F_ADD_SEALS, size | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL))
        return 0;
    log_info("the kernel cannot seal what this process shows against writing: %s", strerror(errno));
    return fcntl(fd, F_ADD_SEALS, size | F_SEAL_SEAL);
}

static rondo_result open_file(void)
{
    bool fits = SHOWN_BYTES <= pages_file_most();
    int fd = descriptor_above(memfd_create("rondo-shown", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    void *base = MAP_FAILED;
    rondo_result result;

    if (!fits)
        errno = EFBIG;
    if (fits && fd >= 0 && !descriptor_identify(fd, &shown.identity) && !fchmod(fd, 0600) &&
        !ftruncate(fd, (off_t)SHOWN_BYTES))
        base = mmap(NULL, SHOWN_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (base == MAP_FAILED || seal(fd)) {
        result = rondo_fail_errno(RONDO_ERROR_SYSTEM,
                                  "Cannot make memory that is shown to peers (memfd_create, %zu "
                                  "bytes of address space; ulimit -f, -v)",
                                  SHOWN_BYTES);
        if (base != MAP_FAILED)
            munmap(base, SHOWN_BYTES);
        if (fd >= 0)
            close(fd);
        return result;
    }
    pages_hide(base, SHOWN_BYTES);
    shown.base = base;
    shown.fd = fd;
    shown.pid = getpid();
    shown.users = 0;
    shown.spans = (struct spans){.pages = SHOWN_PAGES};
    return RONDO_OK;
}

/* With the lock held: open, and not what a fork() left us of the parent's. */
static bool is_ours(void)
{
    return shown.base && shown.pid == getpid();
}

/* The mapping of a parent stays in its forked child, whose copies of communicators point there. */
static void close_file(void)
{
    if (is_ours())
        munmap(shown.base, SHOWN_BYTES);
    if (descriptor_still_is(shown.fd, &shown.identity)) /* or it is the program's by now */
        close(shown.fd);
    spans_done(&shown.spans);
    shown.base = NULL;
    shown.fd = -1;
}

/* With the lock held: the file of this process is open. */
static rondo_result ensure_open(void)
{
    if (is_ours())
        return RONDO_OK;
    if (shown.base)
        close_file();
    return open_file();
}

static void close_if_unused(void)
{
    if (is_ours() && !shown.users && !shown.spans.count)
        close_file();
}

rondo_result shown_enter(struct shown_handle *ret_handle)
{
    rondo_result result;

    lock_take(&shown.lock);
    result = ensure_open();
    if (!result) {
        shown.users++;
        *ret_handle = (struct shown_handle){.fd = shown.fd, .bytes = SHOWN_BYTES};
    }
    lock_give(&shown.lock);
    return result;
}

void shown_leave(void)
{
    lock_take(&shown.lock);
    if (is_ours() && shown.users)
        shown.users--;
    close_if_unused();
    lock_give(&shown.lock);
}

rondo_result shown_take(void **ret_page, uint64_t *ret_offset)
{
    size_t page = SHOWN_PAGES;

    lock_take(&shown.lock);
    if (is_ours())
        page = spans_take(&shown.spans, 1);
    if (page < SHOWN_PAGES) {
        *ret_offset = (uint64_t)page * SHOWN_PAGE;
        *ret_page = shown.base + *ret_offset;
    }
    lock_give(&shown.lock);
    if (page < SHOWN_PAGES)
        return RONDO_OK;
    return rondo_fail(RONDO_ERROR_MEMORY,
                      "This process has %d communicators, open or broken: there is no room to show "
                      "the state of one more.",
                      SHOWN_PAGES);
}

/* The seals forbid to give the page back to the system. Peers may be looking at it. Release, pairs
 * with the acquire loads of those who read the first word: what was done before is seen. */
static void clear(void *page)
{
    _Atomic uint64_t *words = page;

    for (size_t i = 0; i < SHOWN_PAGE / sizeof(*words); i++)
        atomic_store_explicit(&words[i], 0, memory_order_release);
}

void shown_give(void *page)
{
    lock_take(&shown.lock);
    if (is_ours() && (char *)page >= shown.base && (char *)page < shown.base + SHOWN_BYTES) {
        clear(page);
        spans_give(&shown.spans, (size_t)((char *)page - shown.base) / SHOWN_PAGE);
    }
    close_if_unused();
    lock_give(&shown.lock);
}
