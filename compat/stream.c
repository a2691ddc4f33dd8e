/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream.c - one stream of Rondo for each CUDA stream that was ever used.
 *
 * Not one per communicator: the calls of a group on one CUDA stream, though of many communicators,
 * are then on one stream of Rondo's and run together, as they must where they wait for each other.
 * They hold nothing of the CUDA stream but its handle, so they stay when it is destroyed and serve
 * the next one with that handle.
 */
#include "compat/compat.h"

#include <stdlib.h>

struct known {
    struct known *next;
    cudaStream_t cuda;
    rondo_stream *stream;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct known *first; /* the one used last */

/* With the lock held. */
static struct known *find(cudaStream_t stream)
{
    struct known **link = &first;
    struct known *found;

    while (*link && (*link)->cuda != stream)
        link = &(*link)->next;
    found = *link;
    if (!found)
        return NULL;
    *link = found->next;
    found->next = first;
    first = found;
    return found;
}

/* With the lock held. */
static rondo_result add(cudaStream_t stream, struct known *known)
{
    rondo_result result = rondo_stream_open_cuda(stream, &known->stream);

    if (result)
        return result;
    known->cuda = stream;
    known->next = first;
    first = known;
    return RONDO_OK;
}

static ncclResult_t open_new(ncclComm_t comm, cudaStream_t stream, rondo_stream **ret_stream)
{
    struct known *fresh = calloc(1, sizeof(*fresh));
    rondo_result result = RONDO_OK;
    struct known *known;

    if (!fresh)
        return compat_fail(comm, ncclSystemError, "Out of memory for one more stream.");
    pthread_mutex_lock(&lock);
    known = find(stream); /* another thread may have been faster */
    if (!known)
        result = add(stream, fresh);
    *ret_stream = known ? known->stream : fresh->stream;
    pthread_mutex_unlock(&lock);
    if (known || result)
        free(fresh);
    return compat_result(comm, result);
}

ncclResult_t compat_stream(ncclComm_t comm, cudaStream_t stream, rondo_stream **ret_stream)
{
    struct known *known;

    *ret_stream = NULL;
    if (comm->device < 0)
        return ncclSuccess;
    pthread_mutex_lock(&lock);
    known = find(stream);
    *ret_stream = known ? known->stream : NULL;
    pthread_mutex_unlock(&lock);
    return known ? ncclSuccess : open_new(comm, stream, ret_stream);
}
