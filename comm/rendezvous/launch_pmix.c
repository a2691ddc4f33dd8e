/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * launch_pmix.c - PMIx, by which processes talk to the daemon of the launcher that started them
 * (prterun, mpirun of Open MPI, srun --mpi=pmix): who am I, and a few bytes from rank 0 to all.
 *
 * The library is loaded when variables say that there is a daemon. It is initialised once, and
 * finalized when the process ends: libraries and daemons of version 4 forget half of what they know
 * in between. A program that uses MPI has the same library, which counts who has initialised it.
 *
 * Bytes travel with a fence: daemons keep what they have heard of a rank, and one that is asked for
 * a name it does not know yet says so at once, or for ever.
 */
#include "comm/rendezvous/launch.h"

#include "base/fail.h"
#include "base/log.h"
#include "base/setting.h"

#include <dlfcn.h>
#include <pmix.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- The library ----------------------------------------------------------------------------- */

/* clang-format off */
#define PMIX_FUNCTIONS(use) \
    use(PMIx_Init) use(PMIx_Finalize) use(PMIx_Put) use(PMIx_Commit) use(PMIx_Fence) \
    use(PMIx_Get) use(PMIx_Error_string)
/* clang-format on */

#define PMIX_FIELD(name)  __typeof__(&(name)) name;
#define PMIX_WANTED(name) {#name, &pmix.name},

static struct {
    PMIX_FUNCTIONS(PMIX_FIELD)
} pmix;
static const char *missing;
static pmix_status_t status_of_init;
static pmix_proc_t self;
static pid_t owner; /* a child of fork() is nobody to the daemon */

static void leave(void)
{
    if (getpid() == owner)
        pmix.PMIx_Finalize(NULL, 0);
}

static void enter(void)
{
    const struct {
        const char *name;
        void *place;
    } wanted[] = {PMIX_FUNCTIONS(PMIX_WANTED)};
    void *library = dlopen("libpmix.so.2", RTLD_NOW | RTLD_LOCAL);

    if (!library)
        missing = "libpmix.so.2";
    for (size_t i = 0; !missing && i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        void *function = dlsym(library, wanted[i].name);

        if (!function)
            missing = wanted[i].name;
        /* A function pointer from a data pointer: what POSIX asks of dlsym(), not of C. */
        memcpy(wanted[i].place, &function, sizeof(function));
    }
    if (missing)
        return;
    status_of_init = pmix.PMIx_Init(&self, NULL, 0);
    if (status_of_init != PMIX_SUCCESS)
        return;
    owner = getpid();
    atexit(leave);
}

static rondo_result fail_pmix(pmix_status_t status, const char *what)
{
    return rondo_fail(RONDO_ERROR_SYSTEM, "the launcher's PMIx %s: %s", what,
                      pmix.PMIx_Error_string(status));
}

static rondo_result have_pmix(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, enter);
    if (missing)
        return rondo_fail(
            RONDO_ERROR_UNSUPPORTED,
            "PMIX_RANK is set, as launchers do that speak PMIx, and %s was not found: "
            "install libpmix2, or set RONDO_RANK, RONDO_SIZE and RONDO_ADDRESS",
            missing);
    if (status_of_init != PMIX_SUCCESS)
        return fail_pmix(status_of_init, "does not answer");
    return owner == getpid() ? RONDO_OK : launch_refuse_child(owner, (int)self.rank);
}

/* ---- Who am I -------------------------------------------------------------------------------- */

bool launch_has_pmix(void)
{
    return launch_variable("PMIX_RANK") && launch_variable("PMIX_NAMESPACE");
}

/* -1: it is no count. Which of the types a daemon uses for which is its affair. */
static int count_in(const pmix_value_t *value)
{
    switch (value->type) {
    case PMIX_UINT16:
        return value->data.uint16;
    case PMIX_UINT32:
        return value->data.uint32 <= INT32_MAX ? (int)value->data.uint32 : -1;
    case PMIX_INT:
        return value->data.integer;
    default:
        return -1;
    }
}

static bool get_count(const pmix_proc_t *of, const char *key, int *ret_count)
{
    pmix_value_t *value = NULL;

    if (pmix.PMIx_Get(of, key, NULL, 0, &value) != PMIX_SUCCESS || !value)
        return false;
    *ret_count = count_in(value);
    free(value);
    return *ret_count >= 0;
}

/* Without local numbers nothing is lost but the short way to meet. */
static rondo_result read_numbers(struct launch *launch)
{
    pmix_proc_t job = self;

    job.rank = PMIX_RANK_WILDCARD;
    if (!get_count(&job, PMIX_JOB_SIZE, &launch->size) || launch->size < 1)
        return rondo_fail(RONDO_ERROR_SYSTEM,
                          "the launcher's PMIx does not say how many ranks the job has: set "
                          "RONDO_RANK, RONDO_SIZE and RONDO_ADDRESS");
    if (self.rank >= (unsigned)launch->size)
        return rondo_fail(RONDO_ERROR_SYSTEM,
                          "the launcher's PMIx calls this rank %u and the job one of %d ranks",
                          self.rank, launch->size);
    launch->rank = (int)self.rank;
    if (!get_count(&job, PMIX_LOCAL_SIZE, &launch->local_size) ||
        !get_count(&self, PMIX_LOCAL_RANK, &launch->local_rank) ||
        launch->local_size > launch->size || launch->local_rank >= launch->local_size)
        launch->local_rank = launch->local_size = -1;
    return RONDO_OK;
}

rondo_result launch_by_pmix(struct launch *launch, struct launch_job *job)
{
    rondo_result result = have_pmix();

    if (!result)
        result = read_numbers(launch);
    job->one_host = launch->local_size == launch->size;
    snprintf(job->identity, sizeof(job->identity), "%s", launch_variable("PMIX_NAMESPACE"));
    return result;
}

/* ---- From rank 0 to all ---------------------------------------------------------------------- */

static rondo_result tell(const char *key, void *bytes, size_t count)
{
    pmix_value_t value = {.type = PMIX_BYTE_OBJECT};
    pmix_status_t status;

    value.data.bo.bytes = bytes;
    value.data.bo.size = count;
    status = pmix.PMIx_Put(PMIX_GLOBAL, key, &value);
    if (status == PMIX_SUCCESS)
        status = pmix.PMIx_Commit();
    return status == PMIX_SUCCESS ? RONDO_OK : fail_pmix(status, "takes no words for other ranks");
}

/* All ranks of the job. `timeout` in seconds, 0: for ever. */
static rondo_result fence(double timeout)
{
    pmix_info_t how[] = {{.key = PMIX_COLLECT_DATA}, {.key = PMIX_TIMEOUT}};
    pmix_status_t status;

    how[0].value.type = PMIX_BOOL;
    how[0].value.data.flag = true;
    how[1].value.type = PMIX_INT;
    how[1].value.data.integer = timeout < 1 ? 1 : timeout > 1e6 ? 1000000 : (int)timeout;
    status = pmix.PMIx_Fence(NULL, 0, how, timeout > 0 ? 2 : 1);
    return status == PMIX_SUCCESS
               ? RONDO_OK
               : rondo_fail(RONDO_ERROR_TIMEOUT,
                            "not all ranks came to a fence of the launcher's PMIx (%s): do all "
                            "open a communicator, and has every host libpmix2? RONDO_ADDRESS and "
                            "RONDO_SECRET do without PMIx",
                            pmix.PMIx_Error_string(status));
}

static rondo_result hear(const char *key, void *bytes, size_t count)
{
    pmix_proc_t root = self;
    pmix_value_t *value = NULL;
    pmix_status_t status;
    bool whole;

    root.rank = 0;
    status = pmix.PMIx_Get(&root, key, NULL, 0, &value);
    if (status != PMIX_SUCCESS || !value)
        return fail_pmix(status, "does not pass on what rank 0 said");
    whole = value->type == PMIX_BYTE_OBJECT && value->data.bo.size == count;
    if (whole)
        memcpy(bytes, value->data.bo.bytes, count);
    if (value->type == PMIX_BYTE_OBJECT)
        free(value->data.bo.bytes);
    free(value);
    return whole ? RONDO_OK
                 : rondo_fail(RONDO_ERROR_PEER, "rank 0 could not open a place where ranks meet; "
                                                "it says why");
}

rondo_result launch_share(int rank, const char *key, void *bytes, size_t count)
{
    double timeout = 0;
    rondo_result result = setting_read_seconds(SETTING_TIMEOUT, &timeout);

    if (!result)
        result = have_pmix();
    if (!result && rank == 0)
        result = tell(key, bytes, count);
    if (!result)
        result = fence(timeout);
    if (!result && rank > 0)
        result = hear(key, bytes, count);
    return result;
}
