/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cuda.h - collective calls on GPU memory, in the order of CUDA streams.
 *
 * Every call of rondo.h takes pointers to device, managed and host memory, in any mixture. What
 * decides how it runs is the stream:
 *
 *   a CUDA stream (rondo_stream_open_cuda)  the call is queued on it and returns at once; it begins
 *                                           after what was queued there before, and what is queued
 *                                           there later sees its result. May be captured in a graph
 *   NULL, or a stream of rondo_stream_open  the call runs on the host; device memory is brought
 *                                           there and back, after all work on the legacy default
 *                                           stream
 *
 * All ranks of one call decide alike between the two. A communicator belongs to the device of the
 * CUDA context that is current on the thread that opens it, or to that of the configuration's
 * `cuda_device`; with neither, or where that is -2, it has none and takes host memory only, until
 * its first call on a CUDA stream: then it belongs to the device of that stream, or for a default
 * stream to that of the current context or else of the memory. The CUDA driver is loaded when it is
 * needed; without one everything else works, and these functions say what is missing.
 */
#ifndef RONDO_CUDA_H
#define RONDO_CUDA_H

#include "rondo/rondo.h"

#ifdef __cplusplus
extern "C" {
#endif

/* RONDO_OK if there is a CUDA device to work with, else
 * RONDO_ERROR_UNSUPPORTED and a sentence that says what is missing. */
RONDO_API rondo_result rondo_cuda_check(void);

/*
 * A stream for collective calls over a CUDA stream: a cudaStream_t or CUstream, NULL for the legacy
 * default stream. The CUDA stream stays the caller's and must outlive it. Cheap; several may be
 * over the same one. rondo_stream_synchronize() and the like work as on other streams; a function
 * given to rondo_stream_call() may make no CUDA calls.
 *
 * Over CU_STREAM_PER_THREAD, calls go to the calling thread's own stream; synchronize and query are
 * about that one and about the calls that other threads have made by this rondo_stream.
 *
 * Events of Rondo go between streams over CUDA streams by CUDA's own means. While the CUDA stream
 * is captured they are RONDO_ERROR_UNSUPPORTED: they would happen once, and a graph runs often.
 *
 * Of a launch of a graph it is not known whether its calls ended before the communicator broke. So
 * a stream from which a graph has captured calls reports the error at every synchronize and query
 * from then on, until the communicator is closed; if it had none by then, at the next one.
 */
RONDO_API rondo_result rondo_stream_open_cuda(void *cuda_stream, rondo_stream **ret_stream);

/* Memory on the device of the calling thread's current context
 * (none: of device 0), which ranks of other processes can be given to read. */
RONDO_API rondo_result rondo_cuda_mem_alloc(size_t bytes, void **ret_memory);
RONDO_API rondo_result rondo_cuda_mem_free(void *memory); /* accepts NULL */

/* The number of the device that the communicator belongs to, -1 if to none. */
RONDO_API int rondo_comm_cuda_device(const rondo_comm *comm);

#ifdef __cplusplus
}
#endif
#endif
