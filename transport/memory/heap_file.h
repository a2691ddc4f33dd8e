/* SPDX-License-Identifier: BSD-3-Clause */
/* heap_file.h - the file that a shared heap is: anonymous, sparse, sealed. Its owner has address
 * space for all of it, and maps as much as was ever in use. */
#ifndef RONDO_TRANSPORT_MEMORY_HEAP_FILE_H
#define RONDO_TRANSPORT_MEMORY_HEAP_FILE_H

#include "rondo/rondo.h"

struct heap_file {
    int fd;
    size_t bytes;
    char *base;
    size_t mapped; /* bytes, from the beginning */
};

/* Open a file of RONDO_HEAP_BYTES with a new identity in a struct heap_head at its beginning. */
rondo_result heap_file_open(struct heap_file *ret_file);
/* Maps the first `bytes` at least, of which there are no more than the file has. */
rondo_result heap_file_extend(struct heap_file *file, size_t bytes);

#endif
