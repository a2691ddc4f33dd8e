/* SPDX-License-Identifier: BSD-3-Clause */
/* arithmetic_host.c - the layers as they are, on memory of the host. */
#include "train/model/arithmetic.h"

#include <stdlib.h>

enum { ALIGNMENT = 64 };

static void *alloc(size_t bytes)
{
    size_t rounded = (bytes / ALIGNMENT + 1) * ALIGNMENT;
    void *memory = aligned_alloc(ALIGNMENT, rounded);

    return memory ? memset(memory, 0, rounded) : NULL;
}

static void clear(void *memory, size_t bytes)
{
    memset(memory, 0, bytes);
}

static void write_memory(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

static rondo_result read_memory(void *ret_to, const void *from, size_t bytes)
{
    memcpy(ret_to, from, bytes);
    return RONDO_OK;
}

static rondo_result finish(void)
{
    return RONDO_OK;
}

const struct arithmetic arithmetic_host = {
    .alloc = alloc,
    .release = free,
    .clear = clear,
    .write = write_memory,
    .read = read_memory,
    .finish = finish,
    .embedding_forward = embedding_forward,
    .embedding_backward = embedding_backward,
    .linear_forward = linear_forward,
    .linear_backward = linear_backward,
    .norm_forward = norm_forward,
    .norm_backward = norm_backward,
    .attention_forward = attention_forward,
    .attention_backward = attention_backward,
    .gelu_forward = gelu_forward,
    .gelu_backward = gelu_backward,
    .loss_of = loss_of,
};
