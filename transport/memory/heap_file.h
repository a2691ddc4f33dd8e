/* SPDX-License-Identifier: BSD-3-Clause */
/* heap_file.h - the file that a shared heap is: anonymous, sparse, sealed, mapped. */
#ifndef RONDO_TRANSPORT_MEMORY_HEAP_FILE_H
#define RONDO_TRANSPORT_MEMORY_HEAP_FILE_H

#include "rondo/rondo.h"

struct heap_file {
    int fd;
    size_t bytes;
    char *base;
};

/* Open a file of RONDO_HEAP_BYTES with a new identity in a struct heap_head at its beginning. */
rondo_result heap_file_open(struct heap_file *ret_file);

#endif
