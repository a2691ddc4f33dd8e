/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * copy.c - memcpy, and for huge copies stores that go past the cache: the destination is not read
 * first, and what the other ranks have in the shared cache stays there.
 */
#include "kernels/table.h"

#include <string.h>

enum {
    STREAM_FROM = 8 << 20, /* bytes */
    LINE = 64,
    UNIT = 128, /* of kernel_table.stream */
};

void kernel_stream(void *to, const void *from, size_t bytes)
{
    const struct kernel_table *table = kernel_table();
    size_t head = -(uintptr_t)to % LINE;
    size_t body;

    if (table->stream == NULL || bytes < head + UNIT) {
        if (bytes > 0)
            memcpy(to, from, bytes);
        return;
    }
    body = (bytes - head) / UNIT * UNIT;
    memcpy(to, from, head);
    table->stream((char *)to + head, (const char *)from + head, body);
    memcpy((char *)to + head + body, (const char *)from + head + body, bytes - head - body);
}

void kernel_stream_end(void)
{
#if defined(__SSE__)
    __builtin_ia32_sfence();
#endif
}

/* Not inlined, so that short copies save no registers for it. */
__attribute__((noinline)) static void copy_huge(void *to, const void *from, size_t bytes)
{
    kernel_stream(to, from, bytes);
    kernel_stream_end();
}

void kernel_copy(void *to, const void *from, size_t bytes)
{
    if (bytes >= STREAM_FROM)
        copy_huge(to, from, bytes);
    else if (bytes > 0)
        memcpy(to, from, bytes);
}
