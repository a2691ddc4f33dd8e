/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * collectives.h - collectives whose counts differ from rank to rank.
 *
 * What rondo.h says of calls holds for these: memory, streams of the host and CUDA streams, groups,
 * errors. They are put together out of calls of rondo.h, which are what `rondo ps` shows of them:
 *
 *   all_to_all_v      a send to each rank and a receive from each, all side by side
 *   all_gather_v      a broadcast of each rank's block, one after another
 *   reduce_scatter_v  a reduce of each rank's block to that rank, one after another
 *
 * Counts and displacements are in elements. An array has an element for each rank, may differ from
 * call to call, and belongs to the caller again when the function returns, also with a stream.
 * Displacements tell where blocks begin; NULL: one behind the other, in the order of the ranks.
 * Blocks of an output must not overlap each other. Counts may be 0, of all ranks as well.
 *
 * What cannot be right on this rank alone is RONDO_ERROR_INVALID, and nothing has started. Ranks
 * that differ in a count get RONDO_ERROR_MISMATCH, whose sentence names the two ranks and what each
 * called.
 */
#ifndef RONDO_COLLECTIVES_H
#define RONDO_COLLECTIVES_H

#include "rondo/rondo.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Collectives with counts: a block of another length for each rank ------------------------ */

/*
 * Rank r gets the block of send_counts[r] elements at input + send_displacements[r]; what rank r
 * sends to this one, which is recv_counts[r] elements, comes to output + recv_displacements[r].
 * Input and output must not overlap. A `uniform` communicator does not agree on its result, as on
 * none of a send or receive.
 */
RONDO_API rondo_result rondo_all_to_all_v(const void *input, const size_t *send_counts,
                                          const size_t *send_displacements, void *output,
                                          const size_t *recv_counts,
                                          const size_t *recv_displacements, rondo_type type,
                                          rondo_comm *comm, rondo_stream *stream);

/*
 * The block of counts[r] elements at output + displacements[r] becomes the input of rank r, which
 * is as long. Counts are the same on every rank; displacements may differ. In place: input = block
 * [my rank] of the output.
 */
RONDO_API rondo_result rondo_all_gather_v(const void *input, void *output, const size_t *counts,
                                          const size_t *displacements, rondo_type type,
                                          rondo_comm *comm, rondo_stream *stream);

/*
 * Output, of counts[my rank] elements, becomes the op over ranks of their blocks [my rank], which
 * are at input + displacements[my rank]. Counts are the same on every rank; displacements may
 * differ. In place: output = block [my rank] of the input.
 */
RONDO_API rondo_result rondo_reduce_scatter_v(const void *input, const size_t *counts,
                                              const size_t *displacements, void *output,
                                              rondo_type type, rondo_op op, rondo_comm *comm,
                                              rondo_stream *stream);

#ifdef __cplusplus
}
#endif
#endif
