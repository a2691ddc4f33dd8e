/* SPDX-License-Identifier: BSD-3-Clause */
/* sizes.c - sizes as people write them. */
#include "cli/bench/options.h"

#include "base/setting.h"

#include <stdint.h>
#include <string.h>

/* The size that the first `length` bytes of the text are; half of the address space at most. */
static int parse_size(const char *text, size_t length, size_t *ret_bytes)
{
    char size[32];

    if (length >= sizeof(size))
        return -1;
    memcpy(size, text, length);
    size[length] = 0;
    return setting_parse_size(size, ret_bytes) || *ret_bytes > SIZE_MAX / 2 ? -1 : 0;
}

static int append(struct bench_options *options, size_t bytes)
{
    if (options->size_count == BENCH_SIZES_MAX || bytes == 0)
        return -1;
    options->sizes[options->size_count++] = bytes;
    return 0;
}

static int parse_range(size_t low, const char *text, double factor, struct bench_options *options)
{
    size_t high;

    if (parse_size(text, strlen(text), &high) || high < low || low == 0 || !(factor > 1))
        return -1;
    for (double bytes = (double)low; bytes <= (double)high; bytes *= factor)
        if (append(options, (size_t)bytes))
            return -1;
    return 0;
}

int bench_sizes_parse(const char *text, double factor, struct bench_options *options)
{
    size_t length = strcspn(text, ":,");
    size_t bytes;

    options->size_count = 0;
    if (parse_size(text, length, &bytes))
        return -1;
    if (text[length] == ':')
        return parse_range(bytes, text + length + 1, factor, options);
    while (!append(options, bytes)) {
        text += length;
        if (!*text)
            return 0;
        text++; /* the comma */
        length = strcspn(text, ",");
        if (parse_size(text, length, &bytes))
            return -1;
    }
    return -1;
}
