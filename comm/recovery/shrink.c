/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shrink.c - a communicator of the ranks that are left.
 *
 * Agree on who has failed; open one among the others; agree on whether all of them have it. If a
 * rank failed meanwhile, what was opened is closed, and it is done again without that rank. All
 * ranks decide from verdicts alone, so they do the same; and as each turn has a rank less, it ends.
 */
#include "comm/recovery/recovery.h"

#include "base/cancel.h"
#include "base/fail.h"
#include "comm/failure/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One attempt: for whom, and what this rank has of it. */
struct attempt {
    uint64_t failed[VOTE_SET]; /* those of the parent that are left out */
    rondo_comm *made;
    rondo_result result;
    char sentence[FAIL_SENTENCE_MAX];
};

rondo_config recovery_config(const rondo_comm *comm)
{
    const struct comm_settings *settings = &comm->settings;
    rondo_config config = RONDO_CONFIG_INIT;

    config.deterministic = settings->deterministic;
    config.uniform = settings->uniform;
    config.algorithm = settings->algorithm;
    config.slot_bytes = settings->fitted ? 0 : settings->slot_bytes;
    config.slots = settings->slots;
    config.timeout = comm_timeout(comm);
    config.cuda_device = settings->cuda_device;
    if (strcmp(settings->between, settings->transport) != 0)
        config.network = settings->between;
    config.traffic_class = settings->traffic_class;
    config.min_blocks = (int)settings->min_blocks;
    config.max_blocks = (int)settings->max_blocks;
    config.copy_engines = settings->copy_engines;
    return config;
}

static void try_once(rondo_comm *parent, const rondo_config *config, struct attempt *attempt)
{
    int *ranks = calloc((size_t)parent->size, sizeof(*ranks));
    int count = 0;

    for (int rank = 0; ranks && rank < parent->size; rank++)
        if (!set_has(attempt->failed, rank))
            ranks[count++] = rank;
    if (ranks)
        attempt->result = rondo_comm_open_among(parent, ranks, count, config, &attempt->made);
    else
        attempt->result =
            rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for %d ranks.", parent->size);
    snprintf(attempt->sentence, sizeof(attempt->sentence), "%s", fail_sentence());
    free(ranks);
}

/* No rank has failed since, and yet some have no communicator: more attempts would be no better. */
static rondo_result give_up(const rondo_comm *parent, const struct attempt *attempt)
{
    if (attempt->result)
        return rondo_fail(attempt->result, "%s", attempt->sentence);
    return rondo_fail(RONDO_ERROR_PEER,
                      "rondo_comm_shrink: rank %d had the new communicator, but another rank could "
                      "not open it: look at what that one said.",
                      parent->rank);
}

static rondo_result shrink(rondo_comm *parent, const rondo_config *config, rondo_comm **ret_comm)
{
    struct attempt attempt = {.made = NULL};
    bool tried = false;

    for (;;) {
        struct verdict verdict;
        rondo_result result =
            recovery_agree(parent, PURPOSE_SHRINK, attempt.made != NULL, &verdict);
        bool same =
            !result && tried && memcmp(verdict.failed, attempt.failed, sizeof(attempt.failed)) == 0;

        if (same && verdict.flags) {
            *ret_comm = attempt.made;
            return RONDO_OK;
        }
        rondo_comm_close(attempt.made);
        attempt.made = NULL;
        if (result || same)
            return result ? result : give_up(parent, &attempt);
        memcpy(attempt.failed, verdict.failed, sizeof(attempt.failed));
        try_once(parent, config, &attempt);
        tried = true;
    }
}

rondo_result rondo_comm_shrink(rondo_comm *comm, const rondo_config *config, rondo_comm **ret_comm)
{
    CANCEL_LATER();
    rondo_result result = recovery_check(comm, "rondo_comm_shrink");
    rondo_config own;

    if (!result && !ret_comm)
        result = rondo_fail(RONDO_ERROR_INVALID,
                            "rondo_comm_shrink: no place for the new communicator.");
    if (result)
        return comm ? comm_note_error(comm, result) : result;
    own = config ? *config : recovery_config(comm);
    return comm_note_error(comm, shrink(comm, &own, ret_comm));
}
