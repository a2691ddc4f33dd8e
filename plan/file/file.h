/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file.h - plans as a text of JSON that people and scripts write: docs/plan_format.md.
 *
 * What is read is well formed and nothing more: its numbers have bounds, its steps have operands.
 * Whether it does what the collective is to do, and stays within the buffers, is for the verifier
 * to say, before anybody runs it.
 */
#ifndef RONDO_PLAN_FILE_FILE_H
#define RONDO_PLAN_FILE_FILE_H

#include "plan/plan.h"

#include <stdio.h>

enum {
    PLAN_FILE_NAME = 24,       /* bytes of a plan's name */
    PLAN_FILE_RANKS = 512,     /* the most in a file */
    PLAN_FILE_ATOMS = 1 << 22, /* ranks * (ranks + blocks of scratch) * parts */
    PLAN_FILE_BYTES = 1 << 28,
};

struct plan_file {
    char name[PLAN_FILE_NAME];
    rondo_collective collective;
    int size, root;
    struct plan **plans; /* [rank] */
    uint64_t hash;       /* of the text */
};

/* The text of a file, to free(). */
rondo_result plan_file_load(const char *path, char **ret_text, size_t *ret_length);
/* Reads such a text; `path` is for the sentence, which names line, rank and step of what is wrong:
 * RONDO_ERROR_INVALID. */
rondo_result plan_file_parse(const char *path, const char *text, size_t length,
                             struct plan_file **ret_file);
void plan_file_close(struct plan_file *file); /* accepts NULL */

/* A hash of the text of a file. */
uint64_t plan_file_hash(const char *text, size_t length);

/* Writes more members of the whole or of a step, each with a comma before it. */
struct plan_notes {
    void (*of_whole)(const struct plan_notes *notes, FILE *to);
    void (*of_step)(const struct plan_notes *notes, int rank, uint32_t step, FILE *to);
};
/* Write the plans of all ranks, which plan_file_parse() reads back. `notes` may be NULL. */
void plan_file_write(struct plan *const *plans, int size, const struct plan_notes *notes, FILE *to);

#endif
