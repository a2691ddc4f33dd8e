/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * checkpoint.h - the file of a checkpoint, as docs/checkpoints.md describes it.
 *
 *     head       8 bytes of magic, version, 0
 *     data       the arrays, one after another, without gaps
 *     table      one entry per array, followed by its name
 *     tail       where the table is, how many entries, digest of head and table, magic
 *
 * Every byte is covered by a digest: data by that of its entry, head and table by that of the tail,
 * and the numbers of the tail by what they must point at. Numbers are little endian.
 */
#ifndef RONDO_DDP_CHECKPOINT_H
#define RONDO_DDP_CHECKPOINT_H

#include "rondo/train.h"

#include <sodium.h>
#include <sys/types.h>

#define CHECKPOINT_MAGIC "RONDOCKP"
#define CHECKPOINT_END   "PKCODNOR"

enum {
    CHECKPOINT_VERSION = 1,
    CHECKPOINT_DIGEST = 32, /* BLAKE2b-256 */
    CHECKPOINT_NAME = 4096, /* a longer name is an error */
    CHECKPOINT_SENTENCE = 640
};

struct checkpoint_head {
    char magic[8];
    uint32_t version, zero;
};

struct checkpoint_entry {
    uint64_t offset, count;
    uint32_t type, name_length; /* the name follows, without a final 0 */
    unsigned char digest[CHECKPOINT_DIGEST];
};

struct checkpoint_tail {
    uint64_t table_offset, entries;
    unsigned char digest[CHECKPOINT_DIGEST]; /* of head, table, table_offset and entries */
    char magic[8];
};
_Static_assert(sizeof(struct checkpoint_head) == 16, "part of the format");
_Static_assert(sizeof(struct checkpoint_entry) == 56, "part of the format");
_Static_assert(sizeof(struct checkpoint_tail) == 56, "part of the format");

/* One array of a file that is being written or read. */
struct checkpoint_array {
    char *name;
    struct checkpoint_entry entry;
};

struct rondo_checkpoint {
    char *path;
    char *part_path; /* being written; NULL when reading, and on other ranks than 0 */
    int file;        /* -1 on other ranks than 0, and when given up */
    mode_t mode;     /* of the file whose place it takes; 0: there is none */
    rondo_comm *comm;
    struct checkpoint_array *arrays;
    size_t count, room;
    uint64_t end; /* where the next array goes */
    /* The first failure, to be told at the next collective call. */
    rondo_result result;
    char sentence[CHECKPOINT_SENTENCE];
};

/* checkpoint.c: what writing and reading share. */
/* A handle, for the public `function`, whose arguments are checked. */
rondo_result checkpoint_make(const char *path, rondo_comm *comm, const char *function,
                             rondo_checkpoint **ret_checkpoint);
/* Append an array; copies the name. */
rondo_result checkpoint_append(rondo_checkpoint *checkpoint, const char *name, size_t name_length,
                               const struct checkpoint_entry *entry);
const struct checkpoint_array *checkpoint_find(const rondo_checkpoint *checkpoint,
                                               const char *name);
int checkpoint_is_writer(const rondo_checkpoint *checkpoint); /* rank 0, or alone */
/* Collective: tell all ranks the result of rank 0, with its sentence. */
rondo_result checkpoint_agree(rondo_checkpoint *checkpoint, rondo_result result);
void checkpoint_digest_table(const rondo_checkpoint *checkpoint, const struct checkpoint_head *head,
                             const struct checkpoint_tail *tail, unsigned char *ret_digest);

#endif
