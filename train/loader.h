/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loader.h - the micro-batches of this rank.
 *
 * The samplers divide the data among the micro-batches of a step, not among ranks: micro-batch m of
 * M gets the same records whoever computes it. Rank r of n has numbers r * M/n to (r+1) * M/n - 1.
 */
#ifndef RONDO_TRAIN_LOADER_H
#define RONDO_TRAIN_LOADER_H

#include "train/corpus.h"
#include "train/ledger.h"
#include "train/model/model.h"
#include "train/options.h"

#include "rondo/train.h"

struct loader;

rondo_result loader_open(const struct train_options *options, const struct corpus *corpus,
                         rondo_comm *comm, struct loader **ret_loader);
void loader_close(struct loader *loader); /* accepts NULL */

/* The next micro-batch number `pass` of this rank; valid until the next call. */
void loader_next(struct loader *loader, int pass, struct model_batch *ret_batch);
/* With --elastic: the micro-batch that begins with this sample of the stream of all epochs; it goes
 * into the ledger, which may be NULL. */
void loader_at(struct loader *loader, uint64_t first, struct model_batch *ret_batch,
               struct ledger *ledger);
/* `count` held-out records from `first` on; valid until the next call. */
void loader_held_out(struct loader *loader, size_t first, int count, struct model_batch *ret_batch);

/* The position is the same on every rank, and for any number of them. */
rondo_sampler_position loader_tell(const struct loader *loader);
rondo_result loader_seek(struct loader *loader, rondo_sampler_position position);

#endif
