/* SPDX-License-Identifier: BSD-3-Clause */
/* launch_pmix_absent.c - instead of launch_pmix.c where the headers of PMIx were missing. */
#include "comm/rendezvous/launch.h"

#include "base/fail.h"

static rondo_result refuse(void)
{
    return rondo_fail(RONDO_ERROR_UNSUPPORTED,
                      "this Rondo was built without PMIx (libpmix-dev): set RONDO_RANK, RONDO_SIZE "
                      "and RONDO_ADDRESS");
}

bool launch_has_pmix(void)
{
    return launch_variable("PMIX_RANK") && launch_variable("PMIX_NAMESPACE");
}

rondo_result launch_by_pmix(struct launch *launch, struct launch_job *job)
{
    return refuse();
}

rondo_result launch_share(int rank, const char *key, void *bytes, size_t count)
{
    return refuse();
}
