/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * evaluate.c - how well does the model do on records that it never saw?
 *
 * Ranks take turns with chunks of the size of a micro-batch. Each chunk's figures are added into a
 * table of zeros, and the table is summed up from its beginning, so that the result does not depend
 * on who did which. A record is right "as a whole" if the most probable token was right at each
 * place: exactly then the model, writing by itself, would have written the right answer.
 */
#include "train/trainer.h"

#include "train/common/say.h"

#include <stdlib.h>

enum { EVALUATED_MOST = 2000 };

struct figures {
    double loss, counted, right, complete;
};

/* A rank that has no chunk left takes one again, since a pass can be collective. */
static rondo_result chunk(struct trainer *trainer, size_t first, size_t records, bool ours,
                          struct figures *ret_figures)
{
    struct model_batch batch;
    struct loss loss;
    rondo_result result;

    loader_held_out(trainer->loader, first, (int)records, &batch);
    result = trainer->engine->ops->forward(trainer->engine, &batch);
    if (result || !ours)
        return result;
    model_loss(trainer->model, &batch, 1, &loss);
    result = trainer->model->with->finish();
    if (result)
        return result;
    *ret_figures =
        (struct figures){loss.sum, (double)loss.counted, (double)loss.right, (double)loss.complete};
    return RONDO_OK;
}

static struct score score_of(const struct trainer *trainer, const struct figures *table,
                             size_t chunks, size_t records)
{
    struct figures sum = {0};

    for (size_t i = 0; i < chunks; i++) {
        sum.loss += table[i].loss;
        sum.counted += table[i].counted;
        sum.right += table[i].right;
        sum.complete += table[i].complete;
    }
    return (struct score){sum.loss / sum.counted, trainer->corpus->exact
                                                      ? sum.complete / (double)records
                                                      : sum.right / sum.counted};
}

rondo_result evaluate(struct trainer *trainer, struct score *ret_score)
{
    size_t most = trainer->corpus->held_out;
    size_t records = most < EVALUATED_MOST ? most : EVALUATED_MOST;
    size_t batch = (size_t)trainer->options->batch;
    size_t chunks = (records + batch - 1) / batch;
    size_t size = (size_t)trainer->size;
    struct figures *table = calloc(chunks, sizeof(*table));
    rondo_result result = table ? RONDO_OK : say_memory();

    for (size_t i = (size_t)trainer->rank; !result && i < chunks + size - 1 - (chunks - 1) % size;
         i += size) {
        size_t mine = i < chunks ? i : 0;
        size_t left = records - mine * batch;

        result =
            chunk(trainer, mine * batch, left < batch ? left : batch, i < chunks, &table[mine]);
    }
    if (!result)
        result = say_comm(rondo_all_reduce(table, table, chunks * sizeof(*table) / sizeof(double),
                                           RONDO_FLOAT64, RONDO_SUM, trainer->comm, NULL),
                          trainer->comm);
    if (!result)
        *ret_score = score_of(trainer, table, chunks, records);
    free(table);
    return result;
}
