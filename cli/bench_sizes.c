/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_sizes.c - sizes as people write them. */
#include "cli/bench_options.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Like bench_size_parse(), up to one of `ends` or the end of the text. */
static int size_until(const char *text, const char *ends, const char **ret_end, size_t *ret_bytes)
{
    static const char units[] = "KMGT";
    unsigned long long number;
    const char *unit;
    char *end;
    int shift = 0;

    if (!isdigit((unsigned char)*text))
        return -1;
    number = strtoull(text, &end, 10);
    unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    if (unit) {
        shift = 10 * (int)(unit - units + 1);
        end++;
    }
    if ((*end && !strchr(ends, *end)) || number > SIZE_MAX >> 1 >> shift)
        return -1;
    *ret_end = end;
    *ret_bytes = (size_t)number << shift;
    return 0;
}

int bench_size_parse(const char *text, size_t *ret_bytes)
{
    const char *end;

    return size_until(text, "", &end, ret_bytes);
}

static int append(struct bench_options *options, size_t bytes)
{
    if (options->size_count == BENCH_SIZES_MAX || bytes == 0)
        return -1;
    options->sizes[options->size_count++] = bytes;
    return 0;
}

static int parse_range(const char *low_end, size_t low, double factor,
                       struct bench_options *options)
{
    size_t high;

    if (bench_size_parse(low_end + 1, &high) || high < low || low == 0 || !(factor > 1))
        return -1;
    for (double bytes = (double)low; bytes <= (double)high; bytes *= factor)
        if (append(options, (size_t)bytes))
            return -1;
    return 0;
}

int bench_sizes_parse(const char *text, double factor, struct bench_options *options)
{
    const char *end;
    size_t bytes;

    options->size_count = 0;
    if (size_until(text, ":,", &end, &bytes))
        return -1;
    if (*end == ':')
        return parse_range(end, bytes, factor, options);
    while (!append(options, bytes)) {
        if (!*end)
            return 0;
        if (size_until(end + 1, ",", &end, &bytes))
            return -1;
    }
    return -1;
}
