/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * launch_job.c - what each launcher tells about the job: is it all on this host, and what is its
 * name?
 *
 * The name only has to tell jobs of one user on one host apart; it is no secret.
 */
#include "comm/rendezvous/launch.h"

#include "base/fail.h"
#include "base/log.h"
#include "base/process.h"
#include "base/setting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The values of the variables, those that are set. "" if none is. */
static void identify(struct launch_job *job, const char *const *names)
{
    size_t used = 0;

    for (; *names; names++) {
        const char *value = launch_variable(*names);
        size_t room = sizeof(job->identity) - used;

        if (value && used < sizeof(job->identity))
            used += (size_t)snprintf(job->identity + used, room, "%s=%s;", *names, value);
    }
}

static void all_local_if_counted(const struct launch *launch, struct launch_job *job)
{
    job->one_host = launch->local_size == launch->size;
}

/* The meeting point comes with RONDO_ADDRESS: a name for the job is not needed. */
rondo_result launch_by_rondo(struct launch *launch, struct launch_job *job)
{
    all_local_if_counted(launch, job);
    if (launch->size > 1 && !setting_is_set(SETTING_ADDRESS))
        return rondo_fail(RONDO_ERROR_INVALID,
                          "RONDO_RANK and RONDO_SIZE are set but RONDO_ADDRESS is not: set it to "
                          "HOST:PORT of rank 0, or to unix:NAME on one host, or use `rondo run`");
    return RONDO_OK;
}

/* ---- torchrun ------------------------------------------------------------------------------- */

bool launch_is_loopback(const char *host)
{
    return !strcmp(host, "localhost") || !strcmp(host, "::1") || !strcmp(host, "[::1]") ||
           !strncmp(host, "127.", 4);
}

rondo_result launch_by_torchrun(struct launch *launch, struct launch_job *job)
{
    static const char *const names[] = {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID",
                                        "TORCHELASTIC_RESTART_COUNT", NULL};
    const char *host = launch_variable("MASTER_ADDR");
    int port = 0;

    if (launch->size == 1)
        return RONDO_OK;
    if (!setting_is_set(SETTING_ADDRESS) && (!host || !launch_variable("MASTER_PORT")))
        return rondo_fail(RONDO_ERROR_INVALID,
                          "RANK and WORLD_SIZE are set but %s is not: set it as torchrun does, or "
                          "set RONDO_ADDRESS to HOST:PORT of rank 0",
                          host ? "MASTER_PORT" : "MASTER_ADDR");
    all_local_if_counted(launch, job);
    /* Kubeflow says localhost to rank 0 of several hosts, whose ranks have a secret. */
    if (launch->local_size < 0)
        job->one_host = host && launch_is_loopback(host) && !*setting_read_word(SETTING_SECRET);
    identify(job, names);
    return launch_number("MASTER_PORT", 1, &port);
}

/* ---- MPI ------------------------------------------------------------------------------------ */

rondo_result launch_by_openmpi(struct launch *launch, struct launch_job *job)
{
    static const char *const names[] = {"OMPI_MCA_orte_precondition_transports", "PMIX_NAMESPACE",
                                        "OMPI_MCA_ess_base_jobid", NULL};

    all_local_if_counted(launch, job);
    identify(job, names);
    return RONDO_OK;
}

/*
 * Hydra, MPICH's launcher, gives a job no name; but it has one process on this host that is an
 * ancestor of all its ranks. Wrappers (a shell, numactl) may stand between. If there is no such
 * ancestor (another launcher that speaks PMI) the parent has to do.
 */
rondo_result launch_by_mpich(struct launch *launch, struct launch_job *job)
{
    struct process_look process;
    long first = getppid();

    all_local_if_counted(launch, job);
    for (long pid = first; pid > 1 && process_look((pid_t)pid, &process); pid = process.parent) {
        bool proxy = !strcmp(process.name, "hydra_pmi_proxy");

        if (pid == first || proxy)
            snprintf(job->identity, sizeof(job->identity), "%ld started at %llu", pid,
                     (unsigned long long)process.started);
        if (proxy)
            return RONDO_OK;
    }
    log_info("MPICH's variables are set, but no hydra_pmi_proxy is above this process: ranks meet "
             "by their common parent");
    return RONDO_OK;
}

/* ---- Slurm ---------------------------------------------------------------------------------- */

/* "2(x3),1": 2 tasks on each of 3 nodes, then 1; those of `node`, or -1. */
static int tasks_on_node(const char *text, int node)
{
    while (text && *text) {
        char *end;
        long tasks = strtol(text, &end, 10), nodes = 1;

        if (end == text || tasks < 1 || tasks > 1 << 20)
            return -1;
        if (!strncmp(end, "(x", 2))
            nodes = strtol(end + 2, &end, 10);
        if (nodes < 1 || nodes > 1 << 20)
            return -1;
        if (node < nodes)
            return (int)tasks;
        node -= (int)nodes;
        end += *end == ')';
        text = *end == ',' ? end + 1 : NULL;
    }
    return -1;
}

rondo_result launch_by_slurm(struct launch *launch, struct launch_job *job)
{
    static const char *const names[] = {"SLURM_JOB_ID", "SLURM_STEP_ID", NULL};
    bool has_step = launch_variable("SLURM_STEP_NUM_NODES") != NULL;
    int nodes = 0, node = 0;
    rondo_result result;

    result = launch_number(has_step ? "SLURM_STEP_NUM_NODES" : "SLURM_NNODES", 1, &nodes);
    if (!result)
        result = launch_number("SLURM_NODEID", 0, &node);
    if (result)
        return result;
    job->one_host = nodes == 1;
    launch->local_size = tasks_on_node(
        launch_variable(has_step ? "SLURM_STEP_TASKS_PER_NODE" : "SLURM_TASKS_PER_NODE"), node);
    if (launch->local_size > launch->size || launch->local_rank >= launch->local_size)
        launch->local_size = -1; /* it is about the allocation, not about this step */
    identify(job, names);
    return RONDO_OK;
}
