/* SPDX-License-Identifier: BSD-3-Clause */
/* ledger.c - see ledger.h. */
#include "train/ledger.h"

#include "train/common/say.h"

#include "rondo/train.h"

/* Steele, Lea, Flood: SplitMix64, whose output looks random for numbers that follow each other. */
static uint64_t hash(uint64_t epoch, uint64_t record)
{
    uint64_t x = epoch * 0x9e3779b97f4a7c15u ^ record;

    for (int round = 0; round < 2; round++) {
        x += 0x9e3779b97f4a7c15u;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
        x ^= x >> 31;
    }
    return x;
}

void ledger_add(struct ledger *ledger, const size_t *records, size_t count, uint64_t first,
                uint64_t samples_per_epoch)
{
    for (size_t i = 0; i < count; i++)
        ledger->sum += hash((first + i) / samples_per_epoch, records[i]);
    ledger->count += count;
}

/* The beginning of the order of an epoch that is not over. */
static void add_beginning(struct ledger *ledger, rondo_sampler *sampler, uint64_t epoch,
                          uint64_t left)
{
    size_t records[256], some;

    rondo_sampler_set_epoch(sampler, epoch);
    for (; left > 0; left -= some) {
        some = left < 256 ? (size_t)left : 256;
        some = rondo_sampler_next(sampler, some, records);
        for (size_t i = 0; i < some; i++)
            ledger->sum += hash(epoch, records[i]);
    }
}

rondo_result ledger_expected(uint64_t taken, uint64_t samples_per_epoch, uint64_t seed,
                             struct ledger *ret_ledger)
{
    const rondo_sampler_config config = {.struct_size = sizeof(config),
                                         .samples = (size_t)samples_per_epoch,
                                         .size = 1,
                                         .shuffle = 1,
                                         .seed = seed};
    struct ledger ledger = {.count = taken};
    rondo_sampler *sampler;
    rondo_result result = say_ddp(rondo_sampler_open(&config, &sampler));

    if (result)
        return result;
    for (uint64_t epoch = 0; epoch < taken / samples_per_epoch; epoch++)
        for (uint64_t record = 0; record < samples_per_epoch; record++)
            ledger.sum += hash(epoch, record);
    add_beginning(&ledger, sampler, taken / samples_per_epoch, taken % samples_per_epoch);
    rondo_sampler_close(sampler);
    *ret_ledger = ledger;
    return RONDO_OK;
}
