/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 07_pipeline.c - pipeline parallelism: rank r has layer r of the network. A batch is cut into
 * micro-batches that follow each other. After its first forwards each rank does one forward, one
 * backward (1F1B): no more than `size` micro-batches are under way. Four of them on three ranks:
 *
 *     rank 0   F0 F1 F2       B0 F3 B1    B2    B3
 *     rank 1      F0 F1    B0 F2 B1 F3 B2    B3
 *     rank 2         F0 B0 F1 B1 F2 B2 F3 B3
 *
 * What goes to a neighbour and what comes from it is one group: neither waits for the other.
 * Every rank also computes all layers alone, and its gradients must have the same bits.
 */
#include <rondo/rondo.h>

#include <stdio.h>
#include <string.h>

enum { WIDTH = 16, MICRO_BATCHES = 6, RANKS_MAX = 16, NOBODY = -1 };

/* y = f(W x), where f(s) = s / (1 + |s|) bends as tanh does and needs no -lm. */
struct layer {
    float weights[WIDTH][WIDTH], gradients[WIDTH][WIDTH];
    float inputs[MICRO_BATCHES][WIDTH], outputs[MICRO_BATCHES][WIDTH];
};

static void layer_init(struct layer *layer, int number)
{
    memset(layer, 0, sizeof(*layer));
    for (int i = 0; i < WIDTH; i++)
        for (int j = 0; j < WIDTH; j++)
            layer->weights[i][j] = (float)((100 * number + 17 * i + 5 * j) % 23 - 11) / 44;
}

static void data_of(int micro_batch, float *x)
{
    for (int i = 0; i < WIDTH; i++)
        x[i] = (float)((micro_batch * WIDTH + i) * 7 % 19 - 9) / 9;
}

static float magnitude(float x)
{
    return x < 0 ? -x : x;
}

static void forward(struct layer *layer, int m, const float *x, float *y)
{
    memcpy(layer->inputs[m], x, sizeof(layer->inputs[m]));
    for (int i = 0; i < WIDTH; i++) {
        float sum = 0;

        for (int j = 0; j < WIDTH; j++)
            sum += layer->weights[i][j] * layer->inputs[m][j];
        y[i] = layer->outputs[m][i] = sum / (1 + magnitude(sum));
    }
}

static void backward(struct layer *layer, int m, const float *dy, float *dx)
{
    float sums[WIDTH] = {0};

    for (int i = 0; i < WIDTH; i++) {
        float rest = 1 - magnitude(layer->outputs[m][i]);
        float slope = dy[i] * rest * rest;

        for (int j = 0; j < WIDTH; j++) {
            layer->gradients[i][j] += slope * layer->inputs[m][j];
            sums[j] += slope * layer->weights[i][j];
        }
    }
    memcpy(dx, sums, sizeof(sums));
}

/* ---- The pipeline ---------------------------------------------------------------------------- */

struct pipeline {
    rondo_comm *comm;
    int left, right; /* NOBODY at the ends */
    struct layer layer;
};

/* Send to `to` and receive from `from` at once; either may be NOBODY. */
static rondo_result pass_on(struct pipeline *p, int to, const float *send, int from, float *receive)
{
    rondo_result result = rondo_group_start(), ended;

    if (!result && to != NOBODY)
        result = rondo_send(send, WIDTH, RONDO_FLOAT32, to, p->comm, NULL);
    if (!result && from != NOBODY)
        result = rondo_recv(receive, WIDTH, RONDO_FLOAT32, from, p->comm, NULL);
    ended = rondo_group_end();
    return result ? result : ended;
}

/* Backwards run `ahead` steps behind forwards: what a micro-batch takes to the end and back. */
static rondo_result run(struct pipeline *p, int ahead)
{
    float x[WIDTH], y[WIDTH], dy[WIDTH], dx[WIDTH];
    rondo_result result = pass_on(p, NOBODY, NULL, p->left, x);

    for (int f = 0; f < MICRO_BATCHES + ahead && !result; f++) {
        int b = f - ahead, forwards = f < MICRO_BATCHES, backwards = b >= 0;

        if (forwards && p->left == NOBODY)
            data_of(f, x);
        if (forwards)
            forward(&p->layer, f, x, y);
        result = pass_on(p, forwards ? p->right : NOBODY, y, backwards ? p->right : NOBODY, dy);
        if (result)
            return result;
        if (backwards && p->right == NOBODY)
            memcpy(dy, p->layer.outputs[b], sizeof(dy));
        if (backwards)
            backward(&p->layer, b, dy, dx);
        result = pass_on(p, backwards ? p->left : NOBODY, dx,
                         f + 1 < MICRO_BATCHES ? p->left : NOBODY, x);
    }
    return result;
}

/* ---- The same in one process ----------------------------------------------------------------- */

static struct layer alone[RANKS_MAX];

static void run_alone(int layers)
{
    for (int l = 0; l < layers; l++)
        layer_init(&alone[l], l);
    for (int m = 0; m < MICRO_BATCHES; m++) {
        float x[WIDTH];

        data_of(m, x);
        for (int l = 0; l < layers; l++)
            forward(&alone[l], m, x, x);
        /* The loss is |y|^2 / 2, whose gradient is y. */
        for (int l = layers - 1; l >= 0; l--)
            backward(&alone[l], m, x, x);
    }
}

int main(void)
{
    static struct pipeline p;
    rondo_result result = rondo_comm_open(NULL, &p.comm);
    int rank = result ? 0 : rondo_comm_rank(p.comm), size = result ? 0 : rondo_comm_size(p.comm);
    int same;

    if (result || size > RANKS_MAX) {
        fprintf(stderr, "%s\n", result ? rondo_last_error(NULL) : "too many ranks");
        return 1;
    }
    p.left = rank > 0 ? rank - 1 : NOBODY;
    p.right = rank < size - 1 ? rank + 1 : NOBODY;
    layer_init(&p.layer, rank);
    result = run(&p, size - 1 - rank);
    if (result)
        fprintf(stderr, "%s\n", rondo_last_error(p.comm));
    run_alone(size);
    same = !memcmp(p.layer.gradients, alone[rank].gradients, sizeof(p.layer.gradients));
    if (!result)
        printf("rank %d of %d: layer %d, %d micro-batches, gradients %s\n", rank, size, rank,
               MICRO_BATCHES, same ? "as in one process" : "DIFFER from one process");
    rondo_comm_close(p.comm);
    return result != RONDO_OK || !same;
}
