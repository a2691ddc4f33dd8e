/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * launch.c - rank and size of this process, from the variables of whoever started it.
 *
 * The table is in order of precedence: what is more special goes first, so that `rondo run` inside
 * an allocation, or mpirun inside Slurm, is what counts. A launcher is there when both its rank
 * and its size are set. One without the other is an error, unless another launcher has both: a
 * lone RANK may be anybody's variable.
 */
#include "comm/rendezvous/launch.h"

#include "comm/rendezvous/wire.h"

#include "base/fail.h"
#include "base/log.h"
#include "base/setting.h"

#include <stdlib.h>
#include <string.h>

struct launcher {
    const char *name, *rank, *size, *local_rank, *local_size;
    launch_describe *describe;
};

static const struct launcher launchers[] = {
    {"rondo run", "RONDO_RANK", "RONDO_SIZE", "RONDO_LOCAL_RANK", "RONDO_LOCAL_SIZE",
     launch_by_rondo},
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", launch_by_torchrun},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", launch_by_openmpi},
    {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", launch_by_mpich},
    {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", NULL, launch_by_slurm},
    {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", NULL, launch_by_slurm},
};

/* Any launcher that speaks PMIx, of those that set no variable for the size. */
static const struct launcher by_pmix = {"PMIx", NULL, NULL, NULL, NULL, launch_by_pmix};

enum { LAUNCHERS = sizeof(launchers) / sizeof(launchers[0]) };

const char *launch_variable(const char *name)
{
    const char *value = name ? getenv(name) : NULL;

    if (!value || !*value)
        return NULL;
    /* In our own table -1 is how one writes "not set". */
    return !strncmp(name, "RONDO_", 6) && !strcmp(value, "-1") ? NULL : value;
}

rondo_result launch_number(const char *name, int least, int *ret_value)
{
    const char *text = launch_variable(name);
    size_t digits = text ? strspn(text, "0123456789") : 0;
    long value;

    if (!text)
        return RONDO_OK;
    value = strtol(text, NULL, 10);
    if (!digits || text[digits] || value < least || value > WIRE_RANKS_MAX)
        return rondo_fail(RONDO_ERROR_INVALID,
                          "%s is '%s': accepted is a whole number from %d to %d", name, text, least,
                          WIRE_RANKS_MAX);
    *ret_value = (int)value;
    return RONDO_OK;
}

/* Slurm sets its variables in a batch script, too, which is one process and no step of many; and
 * srun sets those of PMI for its own tasks. */
static bool is_here(const struct launcher *launcher)
{
    bool step = launch_variable("SLURM_STEP_ID") != NULL;

    if (!launch_variable(launcher->rank) || !launch_variable(launcher->size))
        return false;
    if (launcher->describe == launch_by_slurm)
        return step;
    if (launcher->describe == launch_by_mpich)
        return !step || !launch_variable("SLURM_PROCID") || launch_variable("MPI_LOCALNRANKS");
    return true;
}

static rondo_result half_set(const struct launcher *launcher)
{
    bool rank = launch_variable(launcher->rank) != NULL;

    return rondo_fail(RONDO_ERROR_INVALID,
                      "%s is set but %s is not: set both, or unset both to run "
                      "as a single rank",
                      rank ? launcher->rank : launcher->size,
                      rank ? launcher->size : launcher->rank);
}

/* The launcher of this process; NULL: none. */
static rondo_result find(const struct launcher **ret_launcher)
{
    const struct launcher *half = NULL;

    *ret_launcher = NULL;
    for (int i = LAUNCHERS - 1; i >= 0; i--) {
        const struct launcher *launcher = &launchers[i];

        if (is_here(launcher))
            *ret_launcher = launcher;
        else if (launcher->describe != launch_by_slurm &&
                 !launch_variable(launcher->rank) != !launch_variable(launcher->size))
            half = launcher;
    }
    if (!*ret_launcher && launch_has_pmix())
        *ret_launcher = &by_pmix;
    if (half && (half == &launchers[0] || !*ret_launcher))
        return half_set(half);
    return RONDO_OK;
}

static rondo_result check_below(const char *name, int value, const char *limit_name, int limit)
{
    if (value < limit)
        return RONDO_OK;
    return rondo_fail(RONDO_ERROR_INVALID, "%s is %d but %s is %d: ranks go from 0 to %d", name,
                      value, limit_name, limit, limit - 1);
}

static rondo_result read_numbers(const struct launcher *launcher, struct launch *launch)
{
    rondo_result result = launch_number(launcher->size, 1, &launch->size);

    if (!result)
        result = launch_number(launcher->rank, 0, &launch->rank);
    if (!result)
        result = check_below(launcher->rank, launch->rank, launcher->size, launch->size);
    if (!result)
        result = launch_number(launcher->local_rank, 0, &launch->local_rank);
    if (!result)
        result = launch_number(launcher->local_size, 1, &launch->local_size);
    if (result || launch->local_size < 0)
        return result;
    if (launch->local_size > launch->size)
        return rondo_fail(RONDO_ERROR_INVALID,
                          "%s is %d but %s is %d: a host cannot have more ranks "
                          "than the job",
                          launcher->local_size, launch->local_size, launcher->size, launch->size);
    return check_below(launcher->local_rank, launch->local_rank, launcher->local_size,
                       launch->local_size);
}

static void fill_local(struct launch *launch, const struct launch_job *job)
{
    if (job->one_host || launch->size == 1) {
        launch->local_size = launch->size;
        if (launch->local_rank < 0)
            launch->local_rank = launch->rank;
    }
}

rondo_result launch_read(struct launch *ret_launch)
{
    struct launch launch = {.launcher = "none", .size = 1, .local_rank = -1, .local_size = -1};
    struct launch_job job = {false, ""};
    const struct launcher *launcher;
    rondo_result result = find(&launcher);

    if (!result && launcher) {
        launch.launcher = launcher->name;
        result = read_numbers(launcher, &launch);
    }
    if (!result && launcher)
        result = launcher->describe(&launch, &job);
    if (!result) {
        fill_local(&launch, &job);
        if (launch.size > 1)
            result = launch_place(&launch, &job);
    }
    if (result)
        return result;
    log_set_rank(launch.rank);
    log_alike("rank %d of %d, started by: %s; ranks meet at %s", launch.rank, launch.size,
              launch.launcher, launch.size > 1 ? launch.place.address : "no place, there is one");
    *ret_launch = launch;
    return RONDO_OK;
}
