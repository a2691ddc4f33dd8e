/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * corpus_sums.c - "123+456=9750": sums of two numbers, character by character.
 *
 * The answer is written from the ones upwards, as one adds on paper: then each digit follows from
 * the two above it and a carry, and a small model finds that out within minutes. Only the digits of
 * the answer count for the loss; the numbers before it are random and nobody can foretell them.
 */
#include "train/corpus.h"

#include "train/model/layers.h"

#include <stdlib.h>
#include <string.h>

enum { HELD_OUT_PART = 50, HELD_OUT_MOST = 2000 };

struct sums {
    struct corpus base;
    int digits;
    uint32_t *order; /* all pairs, shuffled; those held out come first */
};

static const struct sums *sums_of(const struct corpus *corpus)
{
    return (const struct sums *)corpus;
}

/* `value` in `digits` digits; a negative `step` writes it to the left, from the last place. */
static void put_digits(const struct corpus *corpus, unsigned value, int digits, int step, int *to)
{
    for (int i = 0; i < digits; i++, value /= 10, to += step)
        *to = corpus_token(corpus, (unsigned char)('0' + value % 10));
}

static void record(const struct corpus *corpus, bool held_out, size_t index, int *ret_tokens,
                   int *ret_targets)
{
    const struct sums *sums = sums_of(corpus);
    uint32_t pair = sums->order[held_out ? index : corpus->held_out + index];
    int digits = sums->digits;
    int numbers = 1;
    int text[64];

    for (int i = 0; i < digits; i++)
        numbers *= 10;
    put_digits(corpus, pair / (unsigned)numbers, digits, -1, &text[digits - 1]);
    text[digits] = corpus_token(corpus, '+');
    put_digits(corpus, pair % (unsigned)numbers, digits, -1, &text[2 * digits]);
    text[2 * digits + 1] = corpus_token(corpus, '=');
    put_digits(corpus, pair / (unsigned)numbers + pair % (unsigned)numbers, digits + 1, 1,
               &text[2 * digits + 2]);
    memcpy(ret_tokens, text, (size_t)corpus->length * sizeof(*text));
    for (int i = 0; i < corpus->length; i++)
        ret_targets[i] = i > 2 * digits ? text[i + 1] : LOSS_IGNORED;
}

static unsigned number_at(const struct corpus *corpus, const int *tokens, int digits, int step)
{
    unsigned value = 0;

    for (int i = 0; i < digits; i++, tokens += step)
        value = 10 * value + (unsigned)(corpus->bytes[*tokens] - '0');
    return value;
}

/* The model could write '+' or '=' into its answer. */
static bool has_only_digits(const struct corpus *corpus, const int *tokens, int count)
{
    bool only = true;

    for (int i = 0; i < count; i++)
        only = only && corpus->bytes[tokens[i]] >= '0' && corpus->bytes[tokens[i]] <= '9';
    return only;
}

static void show(const struct corpus *corpus, const int *tokens, FILE *to)
{
    int digits = sums_of(corpus)->digits;
    const int *answer = tokens + corpus->prompt;
    unsigned a = number_at(corpus, tokens, digits, 1);
    unsigned b = number_at(corpus, tokens + digits + 1, digits, 1);
    unsigned c = number_at(corpus, answer + digits, digits + 1, -1);

    if (!has_only_digits(corpus, answer, digits + 1))
        fprintf(to, "  %u + %u = ?  (no number)\n", a, b);
    else
        fprintf(to, "  %u + %u = %u  (%s)\n", a, b, c, a + b == c ? "right" : "wrong");
}

static void close_sums(struct corpus *corpus)
{
    free(((struct sums *)corpus)->order);
    free(corpus);
}

static const struct corpus_ops ops = {record, show, close_sums};

/* Shuffles in the same order in every run: Fisher and Yates, numbers by a linear congruence. */
static void shuffle(uint32_t *order, uint32_t count)
{
    uint64_t state = 0x2545f4914f6cdd1d;

    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    for (uint32_t left = count; left > 1; left--) {
        uint32_t other, kept;

        state = state * 6364136223846793005u + 1442695040888963407u;
        other = (uint32_t)((state >> 33) % left);
        kept = order[left - 1];
        order[left - 1] = order[other];
        order[other] = kept;
    }
}

struct corpus *corpus_open_sums(int digits)
{
    struct sums *sums = calloc(1, sizeof(*sums));
    uint32_t pairs = 1;

    for (int i = 0; i < 2 * digits; i++)
        pairs *= 10;
    if (sums)
        sums->order = malloc(pairs * sizeof(*sums->order));
    if (!sums || !sums->order) {
        free(sums);
        return NULL;
    }
    shuffle(sums->order, pairs);
    sums->digits = digits;
    sums->base = (struct corpus){.ops = &ops, .name = "sums", .length = 3 * digits + 2};
    sums->base.exact = true;
    sums->base.prompt = 2 * digits + 2;
    sums->base.vocabulary = 12;
    memcpy(sums->base.bytes, "+0123456789=", 12);
    sums->base.held_out = pairs / HELD_OUT_PART;
    if (sums->base.held_out > HELD_OUT_MOST)
        sums->base.held_out = HELD_OUT_MOST;
    sums->base.trained = pairs - sums->base.held_out;
    return &sums->base;
}
