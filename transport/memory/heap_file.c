/* SPDX-License-Identifier: BSD-3-Clause */
/* heap_file.c - see heap_file.h. */
#include "transport/memory/heap_file.h"

#include "base/fail.h"
#include "base/log.h"
#include "base/setting.h"
#include "transport/memory/heap.h"
#include "transport/memory/page.h"
#include "transport/memory/pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    HEAP_LEAST = 2 * PAGE,
    STEP = 64 << 20 /* bytes by which the mapping grows */
};

/*
 * Four times the machine's memory, as this is only address space: what is freed leaves holes. Where
 * address space is limited, a quarter of it is left to the heap.
 */
static size_t usual_bytes(void)
{
    size_t memory = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    size_t bytes = 4 * memory, most = pages_file_most();
    struct rlimit space;

    if (!getrlimit(RLIMIT_AS, &space) && space.rlim_cur / 4 < most)
        most = space.rlim_cur / 4;
    if (bytes <= most)
        return bytes;
    log_info("the shared heap has %zu bytes, by the limits of files or of address space (ulimit "
             "-f, -v)",
             most);
    return most;
}

/* 0: the setting asks for more than a file may have. */
static size_t wanted_bytes(void)
{
    size_t bytes = 0;

    if (setting_read_size(SETTING_HEAP_BYTES, &bytes) || !bytes)
        return usual_bytes() / PAGE * PAGE;
    bytes = (bytes + PAGE - 1) / PAGE * PAGE;
    return bytes > pages_file_most() ? 0 : bytes;
}

static rondo_result size_and_seal(struct heap_file *file)
{
    if (descriptor_identify(file->fd, &file->identity) || fchmod(file->fd, 0600) ||
        ftruncate(file->fd, (off_t)file->bytes))
        return rondo_fail_errno(RONDO_ERROR_MEMORY,
                                "Cannot size the shared heap to %zu bytes; RONDO_HEAP_BYTES sets "
                                "a smaller one",
                                file->bytes);
    /* Else any process of this user could truncate it: SIGBUS in all that have it mapped. */
    if (fcntl(file->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
        return rondo_fail_errno(RONDO_ERROR_SYSTEM, "Cannot seal the shared heap (F_ADD_SEALS)");
    return RONDO_OK;
}

int heap_file_descriptor(const struct heap_file *file)
{
    return descriptor_still_is(file->fd, &file->identity) ? file->fd : -1;
}

rondo_result heap_file_check(const struct heap_file *file)
{
    if (heap_file_descriptor(file) >= 0)
        return RONDO_OK;
    return rondo_fail(RONDO_ERROR_SYSTEM,
                      "The program has closed descriptor %d, which was the shared heap's: leave "
                      "descriptors open that it did not open, or close them before it uses Rondo.",
                      file->fd);
}

void heap_file_close(struct heap_file *file)
{
    if (heap_file_descriptor(file) >= 0)
        close(file->fd);
    file->fd = -1;
}

static rondo_result map(struct heap_file *file)
{
    struct heap_head *head;

    file->base = pages_reserve(file->bytes);
    if (!file->base)
        return rondo_fail_errno(RONDO_ERROR_MEMORY,
                                "Cannot reserve %zu bytes of address space for the shared heap "
                                "(ulimit -v?); RONDO_HEAP_BYTES sets a smaller one",
                                file->bytes);
    if (heap_file_extend(file, PAGE)) {
        munmap(file->base, file->bytes);
        return RONDO_ERROR_MEMORY;
    }
    head = (struct heap_head *)(void *)file->base;
    if (getrandom(head->id, sizeof(head->id), 0) == sizeof(head->id))
        return RONDO_OK;
    rondo_fail_errno(RONDO_ERROR_SYSTEM, "The system gives no random numbers");
    munmap(file->base, file->bytes);
    return RONDO_ERROR_SYSTEM;
}

rondo_result heap_file_extend(struct heap_file *file, size_t bytes)
{
    size_t more;

    if (bytes <= file->mapped)
        return RONDO_OK;
    more = (bytes - file->mapped + STEP - 1) / STEP * STEP;
    if (more > file->bytes - file->mapped)
        more = file->bytes - file->mapped;
    if (!pages_put(file->base + file->mapped, file->fd, file->mapped, more))
        return rondo_fail_errno(RONDO_ERROR_MEMORY, "Cannot map %zu more bytes of the shared heap",
                                more);
    file->mapped += more;
    return RONDO_OK;
}

rondo_result heap_file_open(struct heap_file *ret_file)
{
    struct heap_file file = {.bytes = wanted_bytes()};
    rondo_result result;

    if (file.bytes < HEAP_LEAST)
        return rondo_fail(RONDO_ERROR_MEMORY,
                          "The shared heap does not fit into what a file may have here (ulimit "
                          "-f), or into the address space (ulimit -v): raise that limit, or set a "
                          "smaller RONDO_HEAP_BYTES.");
    file.fd = descriptor_above(memfd_create("rondo-heap", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (file.fd < 0)
        return rondo_fail_errno(RONDO_ERROR_SYSTEM, "Cannot create the shared heap (memfd_create)");
    result = size_and_seal(&file);
    if (!result)
        result = map(&file);
    if (result) {
        close(file.fd);
        return result;
    }
    *ret_file = file;
    return RONDO_OK;
}
