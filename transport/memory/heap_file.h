/* SPDX-License-Identifier: BSD-3-Clause */
/* heap_file.h - the file that a shared heap is: anonymous, sparse, sealed. Its owner has address
 * space for all of it, and maps as much as was ever in use. */
#ifndef RONDO_TRANSPORT_MEMORY_HEAP_FILE_H
#define RONDO_TRANSPORT_MEMORY_HEAP_FILE_H

#include "base/caller/descriptor.h"
#include "rondo/rondo.h"

struct heap_file {
    int fd;
    struct descriptor_identity identity;
    size_t bytes;
    char *base;
    size_t mapped; /* bytes, from the beginning */
};

/* Open a file of RONDO_HEAP_BYTES with a new identity in a struct heap_head at its beginning. */
rondo_result heap_file_open(struct heap_file *ret_file);
/*
 * The descriptor; -1: the program has closed it, as those do that close all they do not know, and
 * its number may be another file's by now.
 */
int heap_file_descriptor(const struct heap_file *file);
/* RONDO_ERROR_SYSTEM with a sentence if it is lost. */
rondo_result heap_file_check(const struct heap_file *file);
/* Closes the descriptor unless it is lost; the mapping stays. */
void heap_file_close(struct heap_file *file);
/* Maps the first `bytes` at least, of which there are no more than the file has. */
rondo_result heap_file_extend(struct heap_file *file, size_t bytes);

#endif
