/* SPDX-License-Identifier: BSD-3-Clause */
/* test_corpus.c - the data: are the sums right, and is what is held out really held out? */
#include "train/corpus.h"

#include "train/model/layers.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The text of a record: its tokens, and what follows the last one. */
static void text_of(const struct corpus *corpus, bool held_out, size_t index, char *text)
{
    int tokens[128], targets[128];

    corpus->ops->record(corpus, held_out, index, tokens, targets);
    for (int i = 0; i < corpus->length; i++)
        text[i] = (char)corpus->bytes[tokens[i]];
    text[corpus->length] = (char)corpus->bytes[targets[corpus->length - 1]];
    text[corpus->length + 1] = '\0';
}

Test(sums, are_right_with_the_answer_from_the_ones_upwards)
{
    struct corpus *corpus = corpus_open_sums(3);

    cr_assert(eq(sz, corpus->trained + corpus->held_out, 1000000));
    for (size_t i = 0; i < 1000; i++) {
        unsigned a, b, sum = 0;
        char text[64], answer[8];

        text_of(corpus, i % 2, i, text);
        cr_assert(eq(sz, strlen(text), 12));
        cr_assert(eq(int, sscanf(text, "%3u+%3u=%4s", &a, &b, answer), 3));
        for (int digit = 3; digit >= 0; digit--)
            sum = 10 * sum + (unsigned)(answer[digit] - '0');
        cr_assert(eq(uint, sum, a + b), "%s", text);
    }
    corpus_close(corpus);
}

Test(sums, count_the_digits_of_the_answer_only)
{
    struct corpus *corpus = corpus_open_sums(2);
    int tokens[16], targets[16];

    corpus->ops->record(corpus, false, 5, tokens, targets);
    for (int i = 0; i < corpus->length; i++)
        cr_assert(eq(int, targets[i] != LOSS_IGNORED, i + 1 >= corpus->prompt));
    for (int i = corpus->prompt - 1; i + 1 < corpus->length; i++)
        cr_assert(eq(int, targets[i], tokens[i + 1]));
    corpus_close(corpus);
}

Test(sums, occur_once_and_those_held_out_in_no_training)
{
    struct corpus *corpus = corpus_open_sums(2);
    bool seen[100][100] = {{false}};

    for (size_t i = 0; i < corpus->held_out + corpus->trained; i++) {
        bool held_out = i < corpus->held_out;
        char text[64];
        int a, b;

        text_of(corpus, held_out, held_out ? i : i - corpus->held_out, text);
        sscanf(text, "%2d+%2d", &a, &b);
        cr_assert(not(seen[a][b]));
        seen[a][b] = true;
    }
    corpus_close(corpus);
}

Test(sums, are_shown_as_people_write_them)
{
    struct corpus *corpus = corpus_open_sums(2);
    const char *const texts[] = {"12+94=601", "12+94=501", "12+94=5+1"};
    char *shown = NULL;
    size_t size;
    FILE *to = open_memstream(&shown, &size);

    for (int i = 0; i < 3; i++) {
        int tokens[9];

        for (int k = 0; k < 9; k++)
            tokens[k] = corpus_token(corpus, (unsigned char)texts[i][k]);
        corpus->ops->show(corpus, tokens, to);
    }
    fclose(to);
    cr_assert(eq(str, shown,
                 "  12 + 94 = 106  (right)\n  12 + 94 = 105  (wrong)\n  12 + 94 = ?  (no "
                 "number)\n"));
    free(shown);
    corpus_close(corpus);
}

static void write_file(char *path, size_t bytes)
{
    int file = mkstemp(path);

    for (size_t i = 0; i < bytes; i++)
        cr_assert(eq(sz, write(file, &"abcde"[i % 5], 1), 1));
    close(file);
}

Test(text, has_each_byte_after_the_one_before)
{
    char path[] = "/tmp/rondo-test-text-XXXXXX";
    char error[256], text[64];
    struct corpus *corpus;

    write_file(path, 20 * 7 + 3);
    corpus = corpus_open_text(path, 7, error, sizeof(error));
    unlink(path);
    cr_assert(ne(ptr, corpus, NULL), "%s", error);
    cr_assert(eq(int, corpus->vocabulary, 5));
    cr_assert(eq(sz, corpus->trained, 18));
    cr_assert(eq(sz, corpus->held_out, 2));
    text_of(corpus, false, 1, text);
    cr_assert(eq(str, text, "cdeabcde"));
    text_of(corpus, true, 0, text); /* byte 18 * 7 */
    cr_assert(eq(str, text, "bcdeabcd"));
    corpus_close(corpus);
}

Test(text, that_cannot_be_used_is_refused_with_a_sentence)
{
    char path[] = "/tmp/rondo-test-text-XXXXXX";
    char error[256];

    write_file(path, 100);
    cr_assert(eq(ptr, corpus_open_text(path, 64, error, sizeof(error)), NULL));
    cr_assert(ne(ptr, strstr(error, "too short"), NULL), "%s", error);
    unlink(path);
    cr_assert(eq(ptr, corpus_open_text(path, 64, error, sizeof(error)), NULL));
    cr_assert(ne(ptr, strstr(error, "No such file"), NULL), "%s", error);
}
