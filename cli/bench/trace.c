/* SPDX-License-Identifier: BSD-3-Clause */
/* trace.c - the calls of a file. */
#include "cli/bench/steps.h"

#include "base/setting.h"
#include "bench/pattern.h"
#include "cli/common/nearest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 5 };

/* A place is where a sentence about the file points. */
struct place {
    const char *path;
    int line;
};

static int complain(const struct place *place, const char *sentence, const char *word)
{
    fprintf(stderr, "rondo bench: %s, line %d: %s '%s'\n", place->path, place->line, sentence,
            word ? word : "");
    return -1;
}

static const char *collective_name(int i)
{
    return i < BENCH_COLLECTIVES ? bench_collective_name((enum bench_collective)i) : NULL;
}

static int read_work(const struct place *place, char *const *words, struct bench_line *ret_line)
{
    char *end = NULL;
    double microseconds = words[1] ? strtod(words[1], &end) : -1;

    if (!words[1] || *end || !(microseconds >= 0) || microseconds > 1e9)
        return complain(place, "behind compute are microseconds, not", words[1]);
    *ret_line = (struct bench_line){.collective = -1, .seconds = microseconds * 1e-6};
    return 0;
}

static int read_bytes(const struct place *place, const char *word, struct bench_line *line)
{
    size_t bytes = 0;

    if (!word || strlen(word) >= 32 || setting_parse_size(word, &bytes) || bytes > SIZE_MAX / 2)
        return complain(place, "behind the collective are the bytes of its full vector, not", word);
    line->count = bytes;
    return 0;
}

static int read_call(const struct place *place, char *const *words, struct bench_line *ret_line)
{
    struct bench_line line = {.collective = bench_collective_find(words[0]),
                              .type = words[2] ? pattern_type_find(words[2]) : RONDO_FLOAT32,
                              .op = words[2] && words[3] ? pattern_op_find(words[3]) : RONDO_SUM};
    const char *nearest = nearest_name(words[0], collective_name);
    char *end = NULL;

    if (line.collective < 0 || line.collective >= BENCH_COLLECTIVES) {
        fprintf(stderr, "rondo bench: %s, line %d: there is no collective '%s'%s%s%s\n",
                place->path, place->line, words[0], nearest ? ", did you mean '" : "",
                nearest ? nearest : "", nearest ? "'" : "");
        return -1;
    }
    if (read_bytes(place, words[1], &line))
        return -1;
    if (line.type < 0)
        return complain(place, "there is no type", words[2]);
    if (line.op < 0)
        return complain(place, "there is no operation", words[3]);
    if (!pattern_op_has_type((rondo_op)line.op, (rondo_type)line.type))
        return complain(place, "float types have no operation", words[3]);
    if (words[2] && words[3] && words[4])
        line.root = (int)strtol(words[4], &end, 10);
    if (line.root < 0 || (end && *end))
        return complain(place, "the root is a rank, not", words[4]);
    *ret_line = line;
    return 0;
}

static int read_line(const struct place *place, char *text, struct bench_trace *trace)
{
    char *words[WORDS + 2] = {NULL};
    char *rest = text, *word;
    int count = 0;
    int failed;

    text[strcspn(text, "#\n")] = 0;
    while (count <= WORDS && (word = strtok_r(rest, " \t\r", &rest)))
        words[count++] = word;
    if (count == 0)
        return 0;
    if (count > WORDS)
        return complain(place, "a line has at most five words; one too many is", words[WORDS]);
    if (trace->count == BENCH_LINES_MAX)
        return complain(
            place, "a trace has at most 256 lines of calls and computing; too many:", words[0]);
    failed = !strcmp(words[0], "compute") ? read_work(place, words, &trace->lines[trace->count])
                                          : read_call(place, words, &trace->lines[trace->count]);
    trace->calls += !failed && trace->lines[trace->count].collective >= 0;
    trace->count++;
    return failed;
}

int bench_trace_read(const char *path, struct bench_trace *ret_trace)
{
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    FILE *file = fopen(path, "re");
    struct place place = {.path = path};
    int failed = file ? 0 : -1;
    char *text = NULL;
    size_t room = 0;

    *ret_trace = (struct bench_trace){0};
    snprintf(ret_trace->name, sizeof(ret_trace->name), "%s", name);
    ret_trace->name[strcspn(ret_trace->name, ",\"")] = 0; /* it stands in CSV */
    if (!file)
        fprintf(stderr, "rondo bench: cannot read %s: %s\n", path, strerror(errno));
    while (!failed && getline(&text, &room, file) > 0) {
        place.line++;
        failed = read_line(&place, text, ret_trace);
    }
    if (file)
        fclose(file);
    free(text);
    if (!failed && !ret_trace->calls) {
        fprintf(stderr, "rondo bench: %s has no calls; a line is such as: all_reduce 1M\n", path);
        failed = -1;
    }
    return failed;
}

size_t bench_trace_bytes(const struct bench_trace *trace, int ranks)
{
    size_t bytes = 0;

    for (int i = 0; i < trace->count; i++) {
        const struct bench_line *line = &trace->lines[i];
        enum bench_collective collective = (enum bench_collective)line->collective;
        size_t element;

        if (line->collective < 0)
            continue;
        element = pattern_type_bytes((rondo_type)line->type);
        bytes += bench_bytes(collective, bench_count(collective, line->count, element, ranks),
                             element, ranks);
    }
    return bytes;
}
