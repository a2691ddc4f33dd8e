/* SPDX-License-Identifier: BSD-3-Clause */
/* grow.c - rondo_comm_grow() for a job that does not wait long, see grow.h. */
#include "ddp/elastic/grow.h"

#include "base/caller/number.h"
#include "base/caller/times.h"

#include <stdlib.h>

/* The `timeout` setting that holds from then on. */
static double timeout_of(const rondo_config *config)
{
    const char *text = getenv("RONDO_TIMEOUT");

    if (config->timeout >= 0)
        return config->timeout;
    return number_read(text && *text ? text : DEFAULT_TIMEOUT, NULL);
}

rondo_result elastic_grow(rondo_comm *comm, const rondo_unique_id *id, int size, int rank,
                          const rondo_config *config, rondo_comm **ret_grown)
{
    rondo_config hasty = *config;
    rondo_comm *made = NULL;
    rondo_result result;

    hasty.timeout = PATIENCE_GROW;
    result = rondo_comm_grow(comm, id, size, comm ? -1 : rank, &hasty, &made);
    if (result)
        return result;
    rondo_comm_set_timeout(made, timeout_of(config));
    *ret_grown = made;
    return RONDO_OK;
}
