/* SPDX-License-Identifier: BSD-3-Clause */
/* mapped.c - see mapped.h. */
#include "base/mapped.h"

#include "base/caller/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE /* of Linux 5.14, and of headers as new */
#define MADV_POPULATE_WRITE 23
#endif

enum { AT_ONCE = 64 << 20 }; /* bytes that are made ready for stores */

void *mapped_create(int folder, const char *name, mode_t mode, size_t bytes)
{
    void *page = MAP_FAILED;
    int file = descriptor_above(openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    int error;

    if (file < 0)
        return NULL;
    error = posix_fallocate(file, 0, (off_t)bytes);
    if (!error)
        page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
    error = error ? error : errno;
    close(file);
    if (page != MAP_FAILED) {
        /* Else the first store into each page is a fault, which takes as long as a small call: so
         * it is on older kernels, and behind what a disk takes at once. */
        madvise(page, bytes < AT_ONCE ? bytes : AT_ONCE, MADV_POPULATE_WRITE);
        return page;
    }
    unlinkat(folder, name, 0);
    errno = error;
    return NULL;
}
