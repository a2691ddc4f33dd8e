/* SPDX-License-Identifier: BSD-3-Clause */
/* test_operation.c - handles of operations, and scalars of every type. */
#include "comm/state/comm.h"

#include <criterion/criterion.h>
#include <string.h>

static rondo_comm *comm;

static void open_one(void)
{
    cr_assert(rondo_comm_open_all(1, NULL, &comm) == RONDO_OK, "%s", rondo_last_error(NULL));
}

static void close_one(void)
{
    rondo_comm_close(comm);
}

TestSuite(operation, .init = open_one, .fini = close_one);

static void add_bytes(void *context, const void *in, void *inout, size_t count, rondo_type type)
{
    for (size_t i = 0; i < count * rondo_type_size(type); i++)
        ((unsigned char *)inout)[i] += ((const unsigned char *)in)[i];
}

static rondo_op make(void)
{
    rondo_op op = -1;

    cr_assert(rondo_op_create_user(comm, add_bytes, NULL, 1, &op) == RONDO_OK, "%s",
              rondo_last_error(comm));
    return op;
}

Test(operation, handles_are_never_used_again)
{
    rondo_op last = RONDO_OPS;

    for (int i = 0; i < 1000; i++) {
        rondo_op op = make();
        struct operation operation;

        cr_assert(op > last, "%d after %d", op, last);
        last = op;
        cr_assert(rondo_op_destroy(comm, op) == RONDO_OK);
        cr_assert(operations_resolve(&comm->operations, op, RONDO_INT8, 1, &operation) ==
                  RONDO_ERROR_INVALID);
    }
}

Test(operation, destroying_one_leaves_queued_calls_alone)
{
    rondo_comm *comms[2];
    rondo_stream *stream;
    rondo_op ops[2];
    char values[2] = {3, 4}, ball = 1;

    cr_assert(rondo_comm_open_all(2, NULL, comms) == RONDO_OK, "%s", rondo_last_error(NULL));
    cr_assert(rondo_stream_open(&stream) == RONDO_OK);
    for (int r = 0; r < 2; r++)
        cr_assert(rondo_op_create_user(comms[r], add_bytes, NULL, 1, &ops[r]) == RONDO_OK);
    cr_expect(rondo_recv(&ball, 1, RONDO_INT8, 1, comms[0], stream) == RONDO_OK);
    cr_expect(rondo_all_reduce(&values[0], &values[0], 1, RONDO_INT8, ops[0], comms[0], stream) ==
              RONDO_OK);
    cr_expect(rondo_op_destroy(comms[0], ops[0]) == RONDO_OK, "while the stream waits");
    cr_expect(rondo_send(&ball, 1, RONDO_INT8, 0, comms[1], NULL) == RONDO_OK);
    cr_expect(rondo_all_reduce(&values[1], &values[1], 1, RONDO_INT8, ops[1], comms[1], NULL) ==
              RONDO_OK);
    cr_expect(rondo_stream_synchronize(stream) == RONDO_OK, "%s", rondo_last_error(NULL));
    cr_expect(values[0] == 7 && values[1] == 7);
    rondo_stream_close(stream);
    for (int r = 0; r < 2; r++)
        rondo_comm_close(comms[r]);
}

Test(operation, one_more_than_the_limit_is_refused_until_one_is_destroyed)
{
    rondo_op ops[OPERATIONS_MAX], more = -1;

    for (int i = 0; i < OPERATIONS_MAX; i++)
        ops[i] = make();
    cr_expect(rondo_op_create_user(comm, add_bytes, NULL, 1, &more) == RONDO_ERROR_UNSUPPORTED);
    cr_expect(more == -1);
    cr_expect(strstr(rondo_last_error(comm), "256"), "%s", rondo_last_error(comm));
    cr_expect(rondo_op_destroy(comm, ops[100]) == RONDO_OK);
    cr_expect(rondo_op_destroy(comm, ops[100]) == RONDO_ERROR_INVALID, "twice");
    cr_expect(make() > ops[OPERATIONS_MAX - 1]);
}

Test(operation, what_is_no_handle_is_refused_in_a_sentence)
{
    static const rondo_op wrong[] = {-1, RONDO_OPS, OPERATION_FIRST - 1, OPERATION_FIRST, 1 << 30};
    struct operation operation;

    for (int i = 0; i < 5; i++) {
        cr_expect(operations_resolve(&comm->operations, wrong[i], RONDO_INT32, 2, &operation) ==
                  RONDO_ERROR_INVALID);
        cr_expect(rondo_op_destroy(comm, wrong[i]) == RONDO_ERROR_INVALID);
    }
    cr_expect(rondo_op_destroy(comm, RONDO_SUM) == RONDO_ERROR_INVALID, "a built-in one");
    cr_expect(rondo_op_destroy(NULL, 64) == RONDO_ERROR_INVALID);
    cr_expect(rondo_op_create_user(comm, NULL, NULL, 1, &(rondo_op){0}) == RONDO_ERROR_INVALID);
    cr_expect(rondo_op_create_user(NULL, add_bytes, NULL, 1, &(rondo_op){0}) ==
              RONDO_ERROR_INVALID);
    cr_expect(operations_resolve(&comm->operations, RONDO_BXOR, RONDO_FLOAT32, 2, &operation) ==
              RONDO_ERROR_INVALID);
}

Test(operation, scalars_of_every_integer_type_keep_their_sign)
{
    static const int8_t i8 = -128;
    static const uint8_t u8 = 255;
    static const int16_t i16 = -32768;
    static const uint16_t u16 = 65535;
    static const int32_t i32 = INT32_MIN;
    static const uint32_t u32 = UINT32_MAX;
    static const int64_t i64 = INT64_MIN;
    static const uint64_t u64 = UINT64_MAX;
    static const struct {
        rondo_type type;
        const void *scalar;
        int64_t wanted;
    } cases[] = {
        {RONDO_INT8, &i8, -128},        {RONDO_UINT8, &u8, 255},
        {RONDO_INT16, &i16, -32768},    {RONDO_UINT16, &u16, 65535},
        {RONDO_INT32, &i32, INT32_MIN}, {RONDO_UINT32, &u32, UINT32_MAX},
        {RONDO_INT64, &i64, INT64_MIN}, {RONDO_UINT64, &u64, -1 /* all bits */},
    };

    for (int i = 0; i < 8; i++) {
        struct operation operation;
        rondo_op op;

        cr_assert(rondo_op_create_premul_sum(comm, cases[i].scalar, cases[i].type, &op) ==
                  RONDO_OK);
        cr_assert(operations_resolve(&comm->operations, op, cases[i].type, 1, &operation) ==
                  RONDO_OK);
        cr_expect(operation.kernel.has_scale && operation.kernel.type == cases[i].type);
        cr_expect(operation.kernel.scale.integer == cases[i].wanted, "%s: %lld",
                  rondo_type_name(cases[i].type), (long long)operation.kernel.scale.integer);
        cr_expect(operations_resolve(&comm->operations, op, RONDO_FLOAT64, 1, &operation) ==
                      RONDO_ERROR_INVALID,
                  "another type than it was made for");
    }
}

Test(operation, scalars_of_every_float_type_are_read)
{
    for (int type = 0; type < RONDO_TYPES; type++) {
        unsigned char scalar[8];
        struct operation operation;
        rondo_op op;

        if (type < RONDO_FLOAT16)
            continue;
        kernel_store((rondo_type)type, scalar, -1.5);
        cr_assert(rondo_op_create_premul_sum(comm, scalar, (rondo_type)type, &op) == RONDO_OK);
        cr_assert(operations_resolve(&comm->operations, op, (rondo_type)type, 1, &operation) ==
                  RONDO_OK);
        cr_expect(operation.kernel.scale.real == -1.5, "%s", rondo_type_name((rondo_type)type));
    }
    cr_expect(rondo_op_create_premul_sum(comm, "", (rondo_type)99, &(rondo_op){0}) ==
              RONDO_ERROR_INVALID);
    cr_expect(rondo_op_create_premul_sum(comm, NULL, RONDO_INT8, &(rondo_op){0}) ==
              RONDO_ERROR_INVALID);
}

Test(operation, the_order_of_ranks_matters_for_bits_of_floats_and_users_functions_only)
{
    for (int type = 0; type < RONDO_TYPES; type++)
        for (int op = 0; op < RONDO_OPS; op++) {
            bool rounds = op == RONDO_SUM || op == RONDO_PROD || op == RONDO_AVG;
            struct operation operation;

            if (operations_resolve(&comm->operations, op, (rondo_type)type, 2, &operation))
                continue;
            cr_expect(operation_order_matters(&operation) == (rounds && type >= RONDO_FLOAT16),
                      "%s of %s", rondo_op_name(op), rondo_type_name((rondo_type)type));
            cr_expect(operation.kernel.divisor == (op == RONDO_AVG ? 2 : 0));
        }
    cr_expect(operation_order_matters(&(struct operation){.kernel.function = KERNEL_USER}));
}
