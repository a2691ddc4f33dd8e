/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 05_user_operation.c - an operation of one's own: maps x -> a * x + b, one after the other, in
 * rank order. It does not commute, so it is created with commutative = 0, and ranks are combined
 * from 0 upwards.
 */
#include <rondo/check.h>

#include <stdint.h>
#include <stdio.h>

/* A map in one element: a in the upper half, b in the lower. */
static uint64_t map(uint32_t a, uint32_t b)
{
    return (uint64_t)a << 32 | b;
}

/* `in` holds the lower ranks, so it is applied first: inout(in(x)). */
static void then(void *context, const void *in, void *inout, size_t count, rondo_type type)
{
    const uint64_t *first = in;
    uint64_t *second = inout;

    (void)context, (void)type;
    for (size_t i = 0; i < count; i++) {
        uint32_t a = (uint32_t)(second[i] >> 32), b = (uint32_t)second[i];

        second[i] = map(a * (uint32_t)(first[i] >> 32), a * (uint32_t)first[i] + b);
    }
}

int main(void)
{
    rondo_comm *comm;
    rondo_op op;
    uint64_t mine, all;

    RONDO_CHECK(rondo_comm_open(NULL, &comm));
    RONDO_CHECK(rondo_op_create_user(comm, then, NULL, 0, &op));
    mine = map(2, (uint32_t)rondo_comm_rank(comm)); /* x -> 2x + rank */
    RONDO_CHECK(rondo_all_reduce(&mine, &all, 1, RONDO_UINT64, op, comm, NULL));
    printf("rank %d of %d: x -> %ux + %u\n", rondo_comm_rank(comm), rondo_comm_size(comm),
           (unsigned)(all >> 32), (unsigned)all);
    rondo_comm_close(comm);
    return 0;
}
