/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 08_tensor_parallel.c - tensor parallelism: two matrices between ranks, one all-reduce forward and
 * one backward. Rank r has the columns of A and the rows of B of its hidden units:
 *
 *     h = relu(x A)      its part of h needs all of x, and nothing from others
 *     y = h B            its part of h gives a summand of y: all-reduce
 *     backward           dh = dy B', dA, dB stay here; dx = dh A' is a sum over ranks again
 *
 * Numbers are small integers, so that sums are exact in any order: the result must be that of the
 * whole matrices.
 */
#include <rondo/rondo.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 4, WIDTH = 12, HIDDEN = 30 };

/* The hidden units first .. first + count - 1, of HIDDEN. */
struct part {
    int first, count;
    float h[BATCH][HIDDEN], dA[WIDTH][HIDDEN], dB[HIDDEN][WIDTH];
};

static float x[BATCH][WIDTH], A[WIDTH][HIDDEN], B[HIDDEN][WIDTH];

static void make_numbers(void)
{
    for (int n = 0; n < BATCH; n++)
        for (int i = 0; i < WIDTH; i++)
            x[n][i] = (float)((n * 3 + i * 7) % 5 - 2);
    for (int i = 0; i < WIDTH; i++)
        for (int k = 0; k < HIDDEN; k++) {
            A[i][k] = (float)((i * 5 + k * 11) % 7 - 3);
            B[k][i] = (float)((i * 2 + k * 13) % 3 - 1);
        }
}

static void forward(struct part *p, float y[BATCH][WIDTH])
{
    memset(y, 0, sizeof(float) * BATCH * WIDTH);
    for (int n = 0; n < BATCH; n++)
        for (int k = p->first; k < p->first + p->count; k++) {
            float sum = 0;

            for (int i = 0; i < WIDTH; i++)
                sum += x[n][i] * A[i][k];
            p->h[n][k] = sum > 0 ? sum : 0;
            for (int j = 0; j < WIDTH; j++)
                y[n][j] += p->h[n][k] * B[k][j];
        }
}

static void backward(struct part *p, float dy[BATCH][WIDTH], float dx[BATCH][WIDTH])
{
    memset(dx, 0, sizeof(float) * BATCH * WIDTH);
    for (int n = 0; n < BATCH; n++)
        for (int k = p->first; k < p->first + p->count; k++) {
            float dh = 0;

            for (int j = 0; j < WIDTH; j++) {
                dh += dy[n][j] * B[k][j];
                p->dB[k][j] += p->h[n][k] * dy[n][j];
            }
            dh = p->h[n][k] > 0 ? dh : 0;
            for (int i = 0; i < WIDTH; i++) {
                p->dA[i][k] += x[n][i] * dh;
                dx[n][i] += dh * A[i][k];
            }
        }
}

static rondo_result add_up(float values[BATCH][WIDTH], rondo_comm *comm)
{
    return rondo_all_reduce(values, values, (size_t)BATCH * WIDTH, RONDO_FLOAT32, RONDO_SUM, comm,
                            NULL);
}

/* True if the gradients of these hidden units are those of the whole. */
static int same_gradients(const struct part *mine, const struct part *whole)
{
    for (int k = mine->first; k < mine->first + mine->count; k++)
        for (int i = 0; i < WIDTH; i++)
            if (mine->dA[i][k] != whole->dA[i][k] || mine->dB[k][i] != whole->dB[k][i])
                return 0;
    return 1;
}

int main(void)
{
    static struct part mine, whole;
    float y[BATCH][WIDTH], dx[BATCH][WIDTH], whole_y[BATCH][WIDTH], whole_dx[BATCH][WIDTH];
    rondo_comm *comm = NULL;
    rondo_result result = rondo_comm_open(NULL, &comm);
    int rank = result ? 0 : rondo_comm_rank(comm), size = result ? 1 : rondo_comm_size(comm), same;

    make_numbers();
    mine.first = HIDDEN * rank / size;
    mine.count = HIDDEN * (rank + 1) / size - mine.first;
    if (!result) {
        forward(&mine, y);
        result = add_up(y, comm);
    }
    if (!result) { /* the loss is |y|^2 / 2, so dy = y */
        backward(&mine, y, dx);
        result = add_up(dx, comm);
    }
    if (result) {
        fprintf(stderr, "%s\n", rondo_last_error(comm));
        return 1;
    }
    whole.count = HIDDEN;
    forward(&whole, whole_y);
    backward(&whole, whole_y, whole_dx);
    same = !memcmp(y, whole_y, sizeof(y)) && !memcmp(dx, whole_dx, sizeof(dx)) &&
           same_gradients(&mine, &whole);
    printf("rank %d of %d: hidden units %d to %d, y[0][0] = %g, %s\n", rank, size, mine.first,
           mine.first + mine.count - 1, (double)y[0][0],
           same ? "as with whole matrices" : "DIFFERENT from whole matrices");
    rondo_comm_close(comm);
    return !same;
}
