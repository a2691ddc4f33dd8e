/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * linear.c - a linear model learns the same on many ranks as in one process that has all batches:
 * y = W x + b, mean squared error, 20 steps of gradient descent.
 */
#include "bodies.h"

#include <math.h>
#include <string.h>

enum { INPUTS = 9, OUTPUTS = 4, ROWS = 6, STEPS = 20, WEIGHTS = INPUTS * OUTPUTS };

struct linear {
    float w[WEIGHTS], b[OUTPUTS];
    float *dw, *db;
};

static float random_real(uint64_t a, uint64_t b)
{
    return (float)(world_hash(a, b) >> 40) / (float)(1 << 23) - 1;
}

/* Adds the gradients of one row of a batch of `rows`, returns its part of the loss. */
static double row(struct linear *m, int step, int number, int rows)
{
    uint64_t key = (uint64_t)step * 1000 + (uint64_t)number;
    double loss = 0;

    for (int o = 0; o < OUTPUTS; o++) {
        float y = m->b[o], target = 0, error;

        for (int i = 0; i < INPUTS; i++) {
            float x = random_real(key, (uint64_t)i);

            y += m->w[o * INPUTS + i] * x;
            target += (float)(o + i % 3 - 1) * x;
        }
        error = y - target;
        loss += (double)error * error / (rows * OUTPUTS);
        m->db[o] += 2 * error / (float)(rows * OUTPUTS);
        for (int i = 0; i < INPUTS; i++)
            m->dw[o * INPUTS + i] +=
                2 * error / (float)(rows * OUTPUTS) * random_real(key, (uint64_t)i);
    }
    return loss;
}

static void descend(struct linear *m)
{
    for (int i = 0; i < WEIGHTS; i++)
        m->w[i] -= 0.5f * m->dw[i];
    for (int i = 0; i < OUTPUTS; i++)
        m->b[i] -= 0.5f * m->db[i];
}

static void start(struct linear *m, uint64_t seed)
{
    for (int i = 0; i < WEIGHTS; i++)
        m->w[i] = random_real(seed, (uint64_t)i);
    memset(m->b, 0, sizeof(m->b));
}

/* One process with the batches of `ranks` ranks. */
static void learn_alone(int ranks, struct linear *m, double *losses)
{
    float dw[WEIGHTS], db[OUTPUTS];

    start(m, 0);
    m->dw = dw;
    m->db = db;
    for (int step = 0; step < STEPS; step++) {
        memset(dw, 0, sizeof(dw));
        memset(db, 0, sizeof(db));
        losses[step] = 0;
        for (int r = 0; r < ranks * ROWS; r++)
            losses[step] += row(m, step, r, ranks * ROWS);
        descend(m);
    }
    m->dw = m->db = NULL; /* they end here */
}

static rondo_result one_step(rondo_comm *comm, rondo_ddp *ddp, struct linear *m, int step,
                             double *ret_loss)
{
    double loss = 0;
    rondo_result result = rondo_ddp_begin(ddp, 1);

    if (result)
        return result;
    m->dw = rondo_ddp_gradient(ddp, 0);
    m->db = rondo_ddp_gradient(ddp, 1);
    for (int r = 0; r < ROWS; r++)
        loss += row(m, step, rondo_comm_rank(comm) * ROWS + r, ROWS);
    if ((result = rondo_ddp_gradient_ready(ddp, 1)) ||
        (result = rondo_ddp_gradient_ready(ddp, 0)) || (result = rondo_ddp_wait(ddp)))
        return result;
    descend(m);
    result = rondo_all_reduce(&loss, &loss, 1, RONDO_FLOAT64, RONDO_AVG, comm, NULL);
    *ret_loss = loss;
    return result ? result : rondo_ddp_zero_gradients(ddp);
}

static rondo_result compare(const struct linear *mine, const struct linear *alone, char *sentence)
{
    for (int i = 0; i < WEIGHTS; i++)
        if (fabsf(mine->w[i] - alone->w[i]) > 1e-5f)
            return world_say(sentence, RONDO_ERROR_INTERNAL, "weight %d is %.9g, alone %.9g", i,
                             (double)mine->w[i], (double)alone->w[i]);
    return RONDO_OK;
}

rondo_result linear_learns_like_one_process(rondo_comm *comm, void *unused, char *sentence)
{
    struct linear alone, mine;
    double losses[STEPS], loss = 0;
    rondo_ddp_tensor tensors[2] = {{"w", mine.w, NULL, WEIGHTS, RONDO_FLOAT32, 0},
                                   {"b", mine.b, NULL, OUTPUTS, RONDO_FLOAT32, 0}};
    rondo_ddp_model model = {tensors, 2, NULL, 0};
    rondo_ddp *ddp = NULL;
    rondo_result result;

    learn_alone(rondo_comm_size(comm), &alone, losses);
    start(&mine, (uint64_t)rondo_comm_rank(comm)); /* rank 0's weights count */
    result = rondo_ddp_open(comm, &model, NULL, &ddp);
    for (int step = 0; step < STEPS && !result; step++) {
        result = one_step(comm, ddp, &mine, step, &loss);
        if (!result && fabs(loss - losses[step]) > 1e-5 * losses[step] + 1e-7)
            result = world_say(sentence, RONDO_ERROR_INTERNAL,
                               "the loss of step %d is %.9g, in one process %.9g", step, loss,
                               losses[step]);
    }
    if (!result && !(losses[STEPS - 1] < losses[0] / 10))
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "it does not learn: %g after %g",
                           losses[STEPS - 1], losses[0]);
    if (result)
        world_say(sentence, result, "%s", rondo_ddp_last_error());
    else
        result = compare(&mine, &alone, sentence);
    rondo_ddp_close(ddp);
    return result;
}
