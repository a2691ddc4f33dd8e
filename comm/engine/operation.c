/* SPDX-License-Identifier: BSD-3-Clause */
/* operation.c - from an operation's handle to what kernels do. */
#include "comm/state/operation.h"

#include "base/cancel.h"
#include "base/fail.h"
#include "comm/failure/error.h"
#include "comm/state/comm.h"

#include <string.h>

static const enum kernel_function functions[RONDO_OPS] = {
    [RONDO_SUM] = KERNEL_SUM, [RONDO_PROD] = KERNEL_PROD, [RONDO_MIN] = KERNEL_MIN,
    [RONDO_MAX] = KERNEL_MAX, [RONDO_AVG] = KERNEL_SUM,   [RONDO_BAND] = KERNEL_BAND,
    [RONDO_BOR] = KERNEL_BOR, [RONDO_BXOR] = KERNEL_BXOR,
};

void operations_init(struct operations *operations)
{
    memset(operations, 0, sizeof(*operations));
    lock_init(&operations->lock, LOCK_OPERATIONS);
    operations->next = OPERATION_FIRST;
}

void operations_done(struct operations *operations)
{
    lock_done(&operations->lock);
}

static bool is_float(rondo_type type)
{
    return (type >= RONDO_FLOAT16 && type <= RONDO_FLOAT64) || type >= RONDO_FLOAT8_E4M3;
}

/* The place of a handle; 0 finds a free one. NULL: there is none. */
static struct operation *find(struct operations *operations, rondo_op handle)
{
    for (int i = 0; i < OPERATIONS_MAX; i++)
        if (operations->made[i].handle == handle)
            return &operations->made[i];
    return NULL;
}

static rondo_result find_made(struct operations *operations, rondo_op op, rondo_type type,
                              struct operation *ret_operation)
{
    struct operation operation = {0};
    const struct operation *made;

    lock_take(&operations->lock);
    made = op >= OPERATION_FIRST ? find(operations, op) : NULL;
    if (made)
        operation = *made;
    lock_give(&operations->lock);
    if (!made)
        return rondo_fail(RONDO_ERROR_INVALID,
                          "There is no operation %d on this communicator; it was not made or is "
                          "destroyed.",
                          op);
    if (operation.type != RONDO_TYPES && operation.type != type)
        return rondo_fail(RONDO_ERROR_INVALID,
                          "The pre-multiplied sum was made for %s, but the call is of %s.",
                          rondo_type_name(operation.type), rondo_type_name(type));
    *ret_operation = operation;
    return RONDO_OK;
}

bool operation_scale_average(struct operation *operation)
{
    struct kernel_op *op = &operation->kernel;

    if (op->divisor <= 1 || (op->type != RONDO_FLOAT16 && op->type != RONDO_FLOAT8_E4M3 &&
                             op->type != RONDO_FLOAT8_E5M2))
        return false;
    op->has_scale = true;
    for (op->restore = 1; op->restore < (float)op->divisor;)
        op->restore *= 2;
    op->scale.real = 1 / (double)op->restore;
    return true;
}

bool operation_is_plain(rondo_op op, rondo_type type)
{
    return (unsigned)op < RONDO_OPS && kernel_can(type, functions[op]);
}

rondo_result operations_resolve(struct operations *operations, rondo_op op, rondo_type type,
                                int size, struct operation *ret_operation)
{
    struct operation operation = {.commutative = true, .type = RONDO_TYPES};
    rondo_result result = RONDO_OK;

    if ((unsigned)op < RONDO_OPS) {
        operation.kernel.function = functions[op];
        operation.kernel.divisor = op == RONDO_AVG ? (unsigned)size : 0;
        if (!kernel_can(type, operation.kernel.function))
            return rondo_fail(RONDO_ERROR_INVALID, "The operation %s is not defined on %s.",
                              rondo_op_name(op), rondo_type_name(type));
    } else {
        result = find_made(operations, op, type, &operation);
    }
    if (result)
        return result;
    operation.kernel.type = type;
    *ret_operation = operation;
    return RONDO_OK;
}

bool operation_order_matters(const struct operation *operation)
{
    switch (operation->kernel.function) {
    case KERNEL_USER:
        return true;
    case KERNEL_SUM:
    case KERNEL_PROD:
        return is_float(operation->kernel.type);
    default:
        return false;
    }
}

static rondo_result add(rondo_comm *comm, const struct operation *operation, rondo_op *ret_op)
{
    struct operations *operations = &comm->operations;
    struct operation *place;
    rondo_op handle;

    if (fork_is_foreign(comm->home))
        return comm_refuse(comm, "rondo_op_create");
    lock_take(&operations->lock);
    place = find(operations, 0);
    handle = operations->next;
    if (place) {
        *place = *operation;
        place->handle = handle;
        operations->next++;
    }
    lock_give(&operations->lock);
    if (!place)
        return comm_note_error(
            comm, rondo_fail(RONDO_ERROR_UNSUPPORTED,
                             "A communicator holds at most %d operations; destroy some.",
                             OPERATIONS_MAX));
    *ret_op = handle;
    return RONDO_OK;
}

/* Integers of any width, widened with their sign. */
static void read_integer(rondo_type type, const void *scalar, struct kernel_op *op)
{
    unsigned bits = 64 - 8 * (unsigned)rondo_type_size(type);
    uint64_t value = 0;

    memcpy(&value, scalar, rondo_type_size(type)); /* little endian */
    op->scale.natural = value;
    if (type == RONDO_INT8 || type == RONDO_INT16 || type == RONDO_INT32)
        op->scale.integer = (int64_t)(value << bits) >> bits;
}

rondo_result rondo_op_create_premul_sum(rondo_comm *comm, const void *scalar, rondo_type type,
                                        rondo_op *ret_op)
{
    CANCEL_LATER();
    struct operation operation = {.own = CALL_OP_SCALED, .commutative = true, .type = type};

    if (!comm || !scalar || !ret_op || !rondo_type_size(type))
        return rondo_fail(RONDO_ERROR_INVALID,
                          "rondo_op_create_premul_sum: needs a communicator, a scalar, a type and "
                          "a place for the operation.");
    operation.kernel.function = KERNEL_SUM;
    operation.kernel.has_scale = true;
    if (is_float(type))
        operation.kernel.scale.real = kernel_load(type, scalar);
    else
        read_integer(type, scalar, &operation.kernel);
    return add(comm, &operation, ret_op);
}

rondo_result rondo_op_create_user(rondo_comm *comm, rondo_op_function function, void *context,
                                  int commutative, rondo_op *ret_op)
{
    CANCEL_LATER();
    struct operation operation = {.commutative = commutative != 0, .type = RONDO_TYPES};

    if (!comm || !function || !ret_op)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_op_create_user: needs a communicator, a "
                                               "function and a place for the operation.");
    operation.own = commutative ? CALL_OP_COMMUTES : CALL_OP_ORDERED;
    operation.kernel.function = KERNEL_USER;
    operation.kernel.user = function;
    operation.kernel.context = context;
    return add(comm, &operation, ret_op);
}

rondo_result rondo_op_destroy(rondo_comm *comm, rondo_op op)
{
    CANCEL_LATER();
    struct operation *made;

    if (!comm)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_op_destroy: the communicator is NULL.");
    if (fork_is_foreign(comm->home))
        return comm_refuse(comm, "rondo_op_destroy");
    lock_take(&comm->operations.lock);
    made = op >= OPERATION_FIRST ? find(&comm->operations, op) : NULL;
    if (made)
        made->handle = 0;
    lock_give(&comm->operations.lock);
    if (!made)
        return comm_note_error(comm, rondo_fail(RONDO_ERROR_INVALID,
                                                "rondo_op_destroy: there is no operation %d on "
                                                "this communicator.",
                                                op));
    return RONDO_OK;
}
