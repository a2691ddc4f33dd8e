/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stumbles.c - `rondo train` in which an evaluation fails on rank 1 alone, once, though the other
 * ranks have done it: its sum is the first one of doubles when a training goes on that was through.
 *
 * The linker leads the calls of the training here (--wrap).
 */
#include <rondo/rondo.h>

#include <stdbool.h>

rondo_result __real_rondo_all_reduce(const void *from, void *to, size_t count, rondo_type type,
                                     rondo_op op, rondo_comm *comm, rondo_stream *stream);
rondo_result __wrap_rondo_all_reduce(const void *from, void *to, size_t count, rondo_type type,
                                     rondo_op op, rondo_comm *comm, rondo_stream *stream);

rondo_result __wrap_rondo_all_reduce(const void *from, void *to, size_t count, rondo_type type,
                                     rondo_op op, rondo_comm *comm, rondo_stream *stream)
{
    static bool has_stumbled;
    rondo_result result = __real_rondo_all_reduce(from, to, count, type, op, comm, stream);

    if (result || has_stumbled || type != RONDO_FLOAT64 || rondo_comm_rank(comm) != 1)
        return result;
    has_stumbled = true;
    return RONDO_ERROR_SYSTEM;
}
