/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * error.c - results and sentences.
 *
 * NCCL keeps one last error for the whole process, and clients ask for it from other threads than
 * the one that failed, mostly without naming a communicator. So there is one for the process, and
 * one per communicator that is found first when it is named.
 */
#include "compat/compat.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char last[SENTENCE_MAX]; /* of the process */
static ncclComm_t all;          /* clients also name some that were destroyed */

/* A child of a process may find it taken by a thread that it does not have. */
static void renew_lock(void)
{
    pthread_mutex_init(&lock, NULL);
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, renew_lock);
}

void compat_error_begin(ncclComm_t comm)
{
    pthread_mutex_lock(&lock);
    comm->next = all;
    all = comm;
    pthread_mutex_unlock(&lock);
}

void compat_error_end(ncclComm_t comm)
{
    ncclComm_t *link = &all;

    pthread_mutex_lock(&lock);
    while (*link != comm)
        link = &(*link)->next;
    *link = comm->next;
    pthread_mutex_unlock(&lock);
}

/* A communicator that has a name is called by it. */
static void remember(ncclComm_t comm, const char *sentence)
{
    const char *name = comm ? comm->wishes.name : "";
    const char *colon = name[0] ? ": " : "";
    const int most =
        SENTENCE_MAX - (int)sizeof(comm->wishes.name) - 2; /* beside the longest name */

    pthread_mutex_lock(&lock);
    snprintf(last, sizeof(last), "%s%s%.*s", name, colon, most, sentence);
    pthread_mutex_unlock(&lock);
    if (!comm)
        return;
    pthread_mutex_lock(&comm->lock);
    snprintf(comm->error, sizeof(comm->error), "%s%s%.*s", name, colon, most, sentence);
    pthread_mutex_unlock(&comm->lock);
}

ncclResult_t compat_fail(ncclComm_t comm, ncclResult_t result, const char *format, ...)
{
    char sentence[SENTENCE_MAX];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(sentence, sizeof(sentence), format, arguments);
    va_end(arguments);
    remember(comm, sentence);
    return result;
}

ncclResult_t compat_translate(rondo_result result)
{
    static const ncclResult_t results[RONDO_RESULTS] = {
        [RONDO_OK] = ncclSuccess,
        [RONDO_IN_PROGRESS] = ncclInProgress,
        [RONDO_ERROR_INVALID] = ncclInvalidArgument,
        [RONDO_ERROR_MISMATCH] = ncclInvalidUsage,
        [RONDO_ERROR_PEER] = ncclRemoteError,
        [RONDO_ERROR_TIMEOUT] = ncclRemoteError,
        [RONDO_ERROR_ABORTED] = ncclRemoteError,
        [RONDO_ERROR_MEMORY] = ncclSystemError,
        [RONDO_ERROR_SYSTEM] = ncclSystemError,
        [RONDO_ERROR_AUTH] = ncclRemoteError,
        [RONDO_ERROR_UNSUPPORTED] = ncclInvalidUsage,
        [RONDO_ERROR_INTERNAL] = ncclInternalError,
    };

    return (unsigned)result < RONDO_RESULTS ? results[result] : ncclInternalError;
}

ncclResult_t compat_result(ncclComm_t comm, rondo_result result)
{
    if (result > RONDO_IN_PROGRESS)
        remember(comm, rondo_last_error(NULL));
    return compat_translate(result);
}

NCCL_API(const char *, ncclGetLastError, ncclComm_t comm)
{
    static _Thread_local char copy[SENTENCE_MAX];
    ncclComm_t named;

    copy[0] = '\0';
    pthread_mutex_lock(&lock);
    for (named = all; named && named != comm;)
        named = named->next;
    if (named) {
        pthread_mutex_lock(&named->lock);
        memcpy(copy, named->error, sizeof(copy));
        pthread_mutex_unlock(&named->lock);
    }
    if (!copy[0])
        memcpy(copy, last, sizeof(copy));
    pthread_mutex_unlock(&lock);
    return copy;
}

NCCL_API(const char *, ncclGetErrorString, ncclResult_t result)
{
    static const char *const names[ncclNumResults] = {
        [ncclSuccess] = "no error",
        [ncclUnhandledCudaError] = "a CUDA call failed; ncclGetLastError() says which",
        [ncclSystemError] = "the system refused something; ncclGetLastError() says what",
        [ncclInternalError] = "internal error; ncclGetLastError() says where",
        [ncclInvalidArgument] = "an argument is wrong; ncclGetLastError() says which",
        [ncclInvalidUsage] = "wrong usage; ncclGetLastError() says what",
        [ncclRemoteError] = "a peer failed, or is gone; ncclGetLastError() says which",
        [ncclInProgress] = "in progress",
    };

    return (unsigned)result < ncclNumResults ? names[result] : "there is no such result";
}

NCCL_API(ncclResult_t, ncclGetVersion, int *version)
{
    if (!version)
        return compat_fail(NULL, ncclInvalidArgument, "ncclGetVersion: no place for the version.");
    *version = NCCL_ABI_VERSION;
    return ncclSuccess;
}

/* NCCL reads the environment of its log again here; Rondo has another log, which reads its own. */
NCCL_API(void, ncclResetDebugInit, void)
{
}

/* NCCL exports this function by mistake, under this one name. */
__attribute__((visibility("default"))) void ncclResetDebugInitInternal(void);
void ncclResetDebugInitInternal(void)
{
}
