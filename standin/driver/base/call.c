/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * call.c - the door of the driver: initialised or not, the lock, and failures on request.
 *
 * CUDA_STANDIN_FAIL="cuMemAlloc:2,cuIpcOpenMemHandle:1=217" makes the second cuMemAlloc() and the
 * first cuIpcOpenMemHandle() of the process fail, by default with CUDA_ERROR_UNKNOWN;
 * "cuIpcOpenMemHandle:1+=217" the first and all that follow.
 */
#include "standin/driver/base/call.h"

#include "standin/driver/base/devices.h"
#include "standin/driver/base/guard.h"
#include "standin/driver/base/hold.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FAILURES = 16, NAME_SIZE = 64 };

struct failure {
    char name[NAME_SIZE];
    unsigned long calls_left; /* this many calls until it fails; 0: it has failed */
    bool stays;               /* ... and so do all calls after it */
    CUresult result;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t memory_locks[DEVICE_LIMIT];
static bool frees_lock; /* written before the driver is initialised */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct failure failures[FAILURES]; /* under the lock */
static atomic_bool any_failure;
static atomic_bool initialised;
static atomic_bool forked; /* the parent used the driver: this child can't */
static atomic_uint_fast64_t last_unique;
static _Thread_local bool in_host_function;

void call_lock(void)
{
    pthread_mutex_lock(&lock);
}

void call_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

void call_wait(pthread_cond_t *condition)
{
    pthread_cond_wait(condition, &lock);
}

void call_lock_memory(CUdevice device)
{
    if (frees_lock)
        pthread_mutex_lock(&memory_locks[device]);
}

void call_unlock_memory(CUdevice device)
{
    if (frees_lock)
        pthread_mutex_unlock(&memory_locks[device]);
}

void call_in_host_function(bool inside)
{
    in_host_function = inside;
    guard_allow(!inside);
}

uint64_t call_unique(void)
{
    return atomic_fetch_add_explicit(&last_unique, 1, memory_order_relaxed) + 1;
}

uint64_t call_setting(const char *name, uint64_t otherwise)
{
    char variable[NAME_SIZE];
    snprintf(variable, sizeof variable, "CUDA_STANDIN_%s", name);
    const char *text = getenv(variable);
    return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

static void read_failures(void)
{
    const char *text = getenv("CUDA_STANDIN_FAIL");
    for (size_t used = 0; text && *text && used < FAILURES; used++) {
        struct failure *failure = &failures[used];
        unsigned long code = CUDA_ERROR_UNKNOWN;
        failure->calls_left = 1;
        const char *end = text + strcspn(text, ",");
        const char *more = memchr(text, '+', (size_t)(end - text));
        const char *equals = memchr(text, '=', (size_t)(end - text));
        if (sscanf(text, "%63[A-Za-z0-9]:%lu", failure->name, &failure->calls_left) < 1)
            break;
        if (equals)
            code = strtoul(equals + 1, NULL, 10);
        failure->stays = more;
        failure->result = (CUresult)code;
        atomic_store_explicit(&any_failure, true, memory_order_relaxed);
        text = end + (*end == ',');
    }
}

static void in_child(void)
{
    /* The lock may have been held by a thread that does not exist here; nobody asks for it any
     * more. */
    if (atomic_load_explicit(&initialised, memory_order_relaxed))
        atomic_store_explicit(&forked, true, memory_order_relaxed);
}

static void initialise(void)
{
    read_failures();
    frees_lock = call_setting("FREE_LOCKS", 1) != 0;
    for (int i = 0; i < DEVICE_LIMIT; i++)
        pthread_mutex_init(&memory_locks[i], NULL);
    pthread_atfork(NULL, NULL, in_child);
    guard_init();
    device_init();
    /* Release, pairs with the acquire in call_enter(). */
    atomic_store_explicit(&initialised, true, memory_order_release);
}

/* __func__ may end in _v2 and the like: that counts as the plain name. */
static bool is_named(const char *function, const char *name)
{
    size_t length = strlen(name);
    return strncmp(function, name, length) == 0 &&
           (!function[length] || strncmp(function + length, "_v", 2) == 0);
}

static CUresult wanted_failure(const char *function)
{
    CUresult result = CUDA_SUCCESS;
    if (!atomic_load_explicit(&any_failure, memory_order_relaxed))
        return result;
    call_lock();
    for (size_t i = 0; i < FAILURES; i++) {
        struct failure *failure = &failures[i];
        if (!failure->calls_left || !is_named(function, failure->name))
            continue;
        if (--failure->calls_left == 0)
            result = failure->result;
        failure->calls_left += result && failure->stays;
    }
    call_unlock();
    return result;
}

CUresult call_enter(const char *function)
{
    if (!atomic_load_explicit(&initialised, memory_order_acquire) ||
        atomic_load_explicit(&forked, memory_order_relaxed))
        return CUDA_ERROR_NOT_INITIALIZED;
    if (in_host_function)
        return CUDA_ERROR_NOT_PERMITTED;
    return wanted_failure(function);
}

CUresult cuInit(unsigned int flags)
{
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (atomic_load_explicit(&forked, memory_order_relaxed))
        return CUDA_ERROR_NOT_INITIALIZED;
    pthread_once(&once, initialise);
    CUresult result = wanted_failure(__func__);
    if (result)
        return result;
    return device_count() ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

CUresult cuDriverGetVersion(int *version)
{
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
}
