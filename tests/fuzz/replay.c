/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replay.c - main() of a target without libFuzzer: it runs the inputs of a corpus, then inputs that
 * are made of them by seeded damage, for some seconds. Any compiler builds it, so every build of
 * the tests, also the one with sanitizers, has it.
 *
 *     fuzz_NAME [--seconds S] [--seed N] [--unpack FOLDER] CORPUS.hex | FILE ...
 *
 * A corpus is a text: an input per line, two hexadecimal digits per byte; # begins a comment. Other
 * files are one input each: what libFuzzer has left when it found something.
 */
#include "tests/fuzz/fuzz.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 4096, LONGEST = 16384 };

static struct input {
    uint8_t *bytes;
    size_t count;
} inputs[MOST];
static int count;

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void add(const uint8_t *bytes, size_t length)
{
    fuzz_expect(count < MOST, "the corpus has at most 4096 inputs");
    /* A byte more than there is: an empty input has an address, too. */
    inputs[count].bytes = malloc(length + 1);
    fuzz_expect(inputs[count].bytes, "there is memory for the corpus");
    memcpy(inputs[count].bytes, bytes, length);
    inputs[count++].count = length;
}

static void add_line(const char *line)
{
    static uint8_t bytes[1 << 20];
    size_t length = 0;
    unsigned byte;

    for (; isxdigit((unsigned char)line[0]) && isxdigit((unsigned char)line[1]); line += 2) {
        sscanf(line, "%2x", &byte);
        bytes[length++] = (uint8_t)byte;
    }
    fuzz_expect(!*line || isspace((unsigned char)*line) || *line == '#',
                "a line of a corpus is hexadecimal digits");
    add(bytes, length);
}

static void read_corpus(const char *path)
{
    static char line[2 << 20];
    static uint8_t bytes[1 << 20];
    size_t length = strlen(path);
    FILE *file = fopen(path, "re");

    fuzz_expect(file, "the corpus can be read");
    if (length > 4 && strcmp(path + length - 4, ".hex") == 0) {
        while (fgets(line, sizeof(line), file))
            if (*line != '#')
                add_line(line);
    } else {
        length = fread(bytes, 1, sizeof(bytes), file);
        add(bytes, length);
    }
    fclose(file);
}

/* One file per input, for libFuzzer. */
static void unpack(const char *folder)
{
    char path[4096];

    for (int i = 0; i < count; i++) {
        FILE *file;

        snprintf(path, sizeof(path), "%s/%04d", folder, i);
        file = fopen(path, "we");
        fuzz_expect(file && fwrite(inputs[i].bytes, 1, inputs[i].count, file) == inputs[i].count &&
                        !fclose(file),
                    "the corpus can be unpacked there");
    }
}

/* ---- Damage ---------------------------------------------------------------------------------- */

static uint64_t state;

static size_t draw(size_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return below ? (size_t)(state >> 11) % below : 0;
}

static size_t insert(uint8_t *bytes, size_t length, const uint8_t *from, size_t some)
{
    size_t at = draw(length + 1);

    if (length + some > LONGEST)
        return length;
    memmove(bytes + at + some, bytes + at, length - at);
    memcpy(bytes + at, from, some);
    return length + some;
}

static size_t damage(uint8_t *bytes, size_t length)
{
    static const uint8_t edges[] = {0, 1, 0x7f, 0x80, 0xff, ',', '-', '9', '\n', '='};
    const struct input *other = &inputs[draw((size_t)count)];
    size_t at = draw(length), some = draw(length - at) + 1;

    switch (draw(7)) {
    case 0:
        if (length)
            bytes[at] ^= (uint8_t)(1u << draw(8));
        return length;
    case 1:
        if (length)
            bytes[at] = edges[draw(sizeof(edges))];
        return length;
    case 2:
        if (length)
            bytes[at] = (uint8_t)draw(256);
        return length;
    case 3: /* without a part of it */
        if (length < some)
            return length;
        memmove(bytes + at, bytes + at + some, length - at - some);
        return length - some;
    case 4: { /* a part of another one */
        size_t from = draw(other->count);

        return insert(bytes, length, other->bytes + from, draw(other->count - from + 1));
    }
    case 5: { /* a part of it twice */
        uint8_t part[64];
        size_t most = length - at < sizeof(part) ? length - at : sizeof(part);

        memcpy(part, bytes + at, most);
        return insert(bytes, length, part, most);
    }
    default:
        return insert(bytes, length, &edges[draw(sizeof(edges))], 1);
    }
}

static long damage_for(double seconds)
{
    static uint8_t bytes[LONGEST];
    double until = now() + seconds;
    long runs = 0;

    for (; seconds > 0 && now() < until; runs++) {
        const struct input *input = &inputs[draw((size_t)count)];
        size_t length = input->count < LONGEST ? input->count : LONGEST;
        uint8_t *exact;

        memcpy(bytes, input->bytes, length);
        for (size_t times = 1 + draw(6); times; times--)
            length = damage(bytes, length);
        exact = malloc(length ? length : 1); /* so that reading on is an error */
        fuzz_expect(exact, "there is memory for an input");
        memcpy(exact, bytes, length);
        LLVMFuzzerTestOneInput(exact, length);
        free(exact);
    }
    return runs;
}

int main(int argc, char **argv)
{
    const char *folder = NULL;
    double seconds = 0;
    long runs;

    state = 1;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc)
            seconds = atof(argv[++i]);
        else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            state = strtoull(argv[++i], NULL, 10) * 2 + 1;
        else if (strcmp(argv[i], "--unpack") == 0 && i + 1 < argc)
            folder = argv[++i];
        else
            read_corpus(argv[i]);
    }
    fuzz_expect(count > 0, "there are inputs: name a corpus");
    if (folder) {
        unpack(folder);
        return 0;
    }
    for (int i = 0; i < count; i++)
        LLVMFuzzerTestOneInput(inputs[i].bytes, inputs[i].count);
    runs = damage_for(seconds);
    printf("%d inputs of the corpus, %ld damaged ones\n", count, runs);
    for (int i = 0; i < count; i++)
        free(inputs[i].bytes);
    return 0;
}
