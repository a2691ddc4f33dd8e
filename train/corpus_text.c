/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * corpus_text.c - a text file, byte by byte.
 *
 * Record i is `length` bytes from i * length on, and each byte's successor is its target. The last
 * tenth of the records is held out.
 */
#include "train/corpus.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { HELD_OUT_PART = 10, LEAST_RECORDS = 2 * HELD_OUT_PART, SHOWN = 400 };

struct text {
    struct corpus base;
    unsigned char *bytes;
    int token_of[256];
};

static const struct text *text_of(const struct corpus *corpus)
{
    return (const struct text *)corpus;
}

static void record(const struct corpus *corpus, bool held_out, size_t index, int *ret_tokens,
                   int *ret_targets)
{
    const struct text *text = text_of(corpus);
    size_t first = (held_out ? corpus->trained + index : index) * (size_t)corpus->length;

    for (size_t i = 0; i < (size_t)corpus->length; i++) {
        ret_tokens[i] = text->token_of[text->bytes[first + i]];
        ret_targets[i] = text->token_of[text->bytes[first + i + 1]];
    }
}

/* Bytes that are no printable ASCII are replaced: they would make a mess of a terminal. */
static void show(const struct corpus *corpus, const int *tokens, FILE *to)
{
    fprintf(to, "  ");
    for (int i = 0; i <= corpus->length && i < SHOWN; i++) {
        unsigned char byte = corpus->bytes[tokens[i]];

        if (i == corpus->prompt)
            fprintf(to, " >> ");
        fputc(byte >= ' ' && byte < 127 ? byte : ' ', to);
    }
    fputc('\n', to);
}

static void close_text(struct corpus *corpus)
{
    free(((struct text *)corpus)->bytes);
    free(corpus);
}

static const struct corpus_ops ops = {record, show, close_text};

/* The whole file; NULL with errno. */
static unsigned char *read_file(const char *path, size_t *ret_size)
{
    FILE *file = fopen(path, "re");
    unsigned char *bytes = NULL;
    size_t size = 0;
    size_t room = 0;
    size_t got = 1;

    while (file && got > 0) {
        if (size == room) {
            unsigned char *larger = realloc(bytes, room += 1 << 20);

            if (!larger)
                break;
            bytes = larger;
        }
        got = fread(bytes + size, 1, room - size, file);
        size += got;
    }
    if (!file || got > 0 || ferror(file)) {
        free(bytes);
        bytes = NULL;
    }
    if (file)
        fclose(file);
    *ret_size = size;
    return bytes;
}

/* Number the bytes that occur. */
static void make_alphabet(struct text *text, size_t size)
{
    bool occurs[256] = {false};

    for (size_t i = 0; i < size; i++)
        occurs[text->bytes[i]] = true;
    for (int byte = 0; byte < 256; byte++)
        if (occurs[byte]) {
            text->token_of[byte] = text->base.vocabulary;
            text->base.bytes[text->base.vocabulary++] = (unsigned char)byte;
        }
}

struct corpus *corpus_open_text(const char *path, int length, char *ret_error, size_t room)
{
    struct text *text = calloc(1, sizeof(*text));
    size_t size = 0;
    size_t records;

    if (text)
        text->bytes = read_file(path, &size);
    if (!text || !text->bytes) {
        snprintf(ret_error, room, "cannot read %s: %s", path, strerror(errno));
        free(text);
        return NULL;
    }
    records = size ? (size - 1) / (size_t)length : 0;
    if (records < LEAST_RECORDS) {
        snprintf(ret_error, room, "%s is too short: %d bytes are needed for sequences of %d", path,
                 LEAST_RECORDS * length + 1, length);
        close_text(&text->base);
        return NULL;
    }
    text->base.ops = &ops;
    text->base.name = "text";
    text->base.length = length;
    text->base.prompt = length / 2;
    text->base.temperature = 0.8;
    text->base.held_out = records / HELD_OUT_PART;
    text->base.trained = records - text->base.held_out;
    make_alphabet(text, size);
    return &text->base;
}
