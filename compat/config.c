/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config.c - configurations: what of NCCL's concerns us, and what we give to Rondo.
 *
 * A struct of NCCL's says how long it is. Only fields inside of that length are read, so headers
 * older and newer than ours work. Numbers of CTAs, networks and sharing are taken as the hints that
 * they are: Rondo chooses for itself.
 */
#include "compat/compat.h"

#include <stdlib.h>

/* Does a struct of `size` bytes have this field? */
#define HAS(type, size, field) \
    ((size) >= offsetof(type, field) + sizeof(((const type *)NULL)->field))

ncclResult_t compat_config_blocking(const ncclConfig_t *config, bool inherited, bool *ret_blocking)
{
    int blocking = NCCL_CONFIG_UNDEF_INT;

    if (config && config->magic != NCCL_ABI_CONFIG_MAGIC)
        return compat_fail(NULL, ncclInvalidArgument,
                           "The configuration does not begin as NCCL_CONFIG_INITIALIZER: its magic "
                           "is %#x.",
                           config->magic);
    if (config && HAS(ncclConfig_t, config->size, blocking))
        blocking = config->blocking;
    if (blocking != NCCL_CONFIG_UNDEF_INT && blocking != 0 && blocking != 1)
        return compat_fail(NULL, ncclInvalidArgument,
                           "The configuration says blocking = %d; it may be 0 or 1.", blocking);
    *ret_blocking = blocking == NCCL_CONFIG_UNDEF_INT ? inherited : blocking != 0;
    return ncclSuccess;
}

/* A rank that says nothing is no error to clients of NCCL, who watch over it themselves; one that
 * has died still is. Whoever wants it otherwise sets RONDO_TIMEOUT. */
static double patience(void)
{
    const char *wanted = getenv("RONDO_TIMEOUT");

    return wanted && *wanted ? -1 : 0;
}

rondo_config compat_config_of_calls(int device)
{
    rondo_config config = RONDO_CONFIG_INIT;

    config.timeout = patience();
    config.cuda_device = device;
    return config;
}

/* Few and short messages: it shall take little memory. */
rondo_config compat_config_of_control(void)
{
    rondo_config config = RONDO_CONFIG_INIT;

    config.timeout = patience();
    config.algorithm = "auto";
    config.slot_bytes = 4096;
    config.slots = 2;
    return config;
}

ncclResult_t compat_config_algorithm(ncclComm_t comm, const ncclCollConfig_t *config,
                                     const char **ret_algorithm)
{
    *ret_algorithm = NULL;
    if (!config)
        return ncclSuccess;
    if (config->magic != NCCL_ABI_CONFIG_MAGIC)
        return compat_fail(comm, ncclInvalidArgument,
                           "The options of the call do not begin as NCCL_COLLCONFIG_INITIALIZER: "
                           "their magic is %#x.",
                           config->magic);
    /* Names that both know, such as ring and tree, mean the same; others are Rondo's to refuse. */
    if (HAS(ncclCollConfig_t, config->size, forceAlgSelection) && config->forceAlgSelection &&
        config->algSelection && *config->algSelection)
        *ret_algorithm = config->algSelection;
    return ncclSuccess;
}
