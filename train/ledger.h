/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ledger.h - was each sample of each epoch counted once?
 *
 * With --elastic all epochs are one stream: a step takes the next samples of it, whoever is there
 * to take them, and if it does not count the next attempt takes the same ones. The ledger is the
 * proof: the rank that computes with a sample adds the hash of epoch and record, and all ranks
 * add up what steps have that count. At the end the sum has to be that of all samples up to
 * there, each once.
 */
#ifndef RONDO_TRAIN_LEDGER_H
#define RONDO_TRAIN_LEDGER_H

#include "rondo/rondo.h"

#include <stddef.h>
#include <stdint.h>

struct ledger {
    uint64_t count, sum; /* of samples, and of their hashes, modulo 2^64 */
};

/* `count` records that were taken from the stream, from its sample number `first` on. */
void ledger_add(struct ledger *ledger, const size_t *records, size_t count, uint64_t first,
                uint64_t samples_per_epoch);
/* The ledger of the first `taken` samples of the stream, each once. */
rondo_result ledger_expected(uint64_t taken, uint64_t samples_per_epoch, uint64_t seed,
                             struct ledger *ret_ledger);

#endif
