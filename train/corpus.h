/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * corpus.h - what is learned: records of `length` tokens with what follows each of them.
 *
 * Some records are held out: training never sees them, they show what was learned. Which ones is
 * the same in every run. A token is a byte of the text, numbered in the order of the alphabet of
 * those that occur.
 */
#ifndef RONDO_TRAIN_CORPUS_H
#define RONDO_TRAIN_CORPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct corpus {
    const struct corpus_ops *ops;
    const char *name;         /* for people */
    int length;               /* tokens of a record */
    int vocabulary;           /* kinds of tokens */
    unsigned char bytes[256]; /* the byte of each token */
    size_t trained, held_out; /* how many records */
    bool exact;               /* a record is right only if all that counts in it is */
    int prompt;               /* tokens of a record that are given when the model writes the rest */
    double temperature;       /* of writing; 0: the most probable token */
};

struct corpus_ops {
    /* Record `index` of those held out, or of the others: `length` tokens and targets. */
    void (*record)(const struct corpus *corpus, bool held_out, size_t index, int *ret_tokens,
                   int *ret_targets);
    /* A line that shows what the model wrote: `length` + 1 tokens, of which `prompt` were given. */
    void (*show)(const struct corpus *corpus, const int *tokens, FILE *to);
    void (*close)(struct corpus *corpus);
};

/* Sums of two numbers of `digits` digits. NULL: out of memory. */
struct corpus *corpus_open_sums(int digits);
/* The bytes of a file; the last tenth is held out. NULL if it cannot be used; `ret_error`
 * says why. */
struct corpus *corpus_open_text(const char *path, int length, char *ret_error, size_t room);
void corpus_close(struct corpus *corpus); /* accepts NULL */

int corpus_token(const struct corpus *corpus, unsigned char byte); /* -1: none */

#endif
