/* SPDX-License-Identifier: BSD-3-Clause */
/* test_circle.c - circles of waits longer than a finding's chain. */
#include <criterion/criterion.h>

#include "comm/recorder/chain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS_MAX = 3 * (CHAIN_MAX + 1) };

static struct sighting all[RANKS_MAX];
static struct sighting *places[RANKS_MAX];

/* Every rank waits for the next one in call 1; `on_host` ranks in a row share a host. */
static struct sightings ring_of(int ranks, int on_host)
{
    for (int rank = 0; rank < ranks; rank++) {
        struct sighting *sighting = &all[rank];
        struct sighting_record *record = &sighting->record;
        int host = rank / on_host;

        memset(sighting, 0, sizeof(*sighting));
        record->identity.rank = rank;
        record->identity.size = ranks;
        record->identity.pid = 100 + rank;
        record->identity.host_id[0] = (unsigned char)(1 + host);
        record->stage = RECORDER_OPEN;
        record->waits[0] = true;
        record->waiting[0] = (struct recorder_waiting){
            .call = 1, .looked = 1, .culprit = -1, .peers_count = 1, .peers = {(rank + 1) % ranks}};
        record->calls_count = 1;
        record->calls[0] = (struct sighting_call){.call = 1, .number = 1, .state = RECORDER_BEGUN};
        sighting->process =
            (struct sighting_process){.life = SIGHTING_ALIVE, .state = 'S', .read = 1};
        snprintf(sighting->where, sizeof(sighting->where), "host %d", host);
        places[rank] = sighting;
    }
    return (struct sightings){.at = places, .count = ranks};
}

static void expect_links(int ranks, int on_host, int links)
{
    struct sightings sightings = ring_of(ranks, on_host);
    struct findings findings = {0};

    findings_make(&sightings, &findings);
    cr_expect(findings.count == links, "%d ranks, %d on a host: %d findings", ranks, on_host,
              findings.count);
    for (int i = 0; i < findings.count; i++)
        cr_expect(findings.at[i].cause == CAUSE_LINK, "%s", findings.at[i].sentence);
    findings_done(&findings);
}

Test(circle, a_link_between_two_hosts_is_named_once_however_many_ranks_they_have)
{
    for (int on_host = 1; on_host <= CHAIN_MAX + 1; on_host++)
        expect_links(2 * on_host, on_host, 1);
}

Test(circle, one_over_three_hosts_is_one_cause)
{
    expect_links(3 * (CHAIN_MAX + 1), CHAIN_MAX + 1, 1);
    expect_links(3 * CHAIN_MAX / 2, CHAIN_MAX / 2, 1);
}
