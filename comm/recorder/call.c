/* SPDX-License-Identifier: BSD-3-Clause */
/* call.c - see call.h. */
#include "comm/recorder/call.h"

#include "base/collective.h"

#include <stdbool.h>
#include <stdio.h>

static const char *op_name(int op)
{
    switch (op) {
    case CALL_OP_ORDERED:
        return "an operation of your own that does not commute";
    case CALL_OP_SCALED:
        return "a pre-multiplied sum";
    default:
        return rondo_op_name(op);
    }
}

static void describe(const struct call_record *record, bool counted, char *text, size_t size)
{
    rondo_collective collective = (rondo_collective)record->collective;
    int used = snprintf(text, size, "%s", rondo_collective_name(collective));

    if (used > 0 && (size_t)used < size && collective != RONDO_BARRIER && counted)
        used +=
            snprintf(text + used, size - (size_t)used, " of %llu %s",
                     (unsigned long long)record->count, rondo_type_name((rondo_type)record->type));
    else if (used > 0 && (size_t)used < size && collective != RONDO_BARRIER)
        used += snprintf(text + used, size - (size_t)used, " of %s",
                         rondo_type_name((rondo_type)record->type));
    if (used > 0 && (size_t)used < size && collective_reduces(collective))
        used += snprintf(text + used, size - (size_t)used, ", %s", op_name(record->op));
    if (used > 0 && (size_t)used < size && collective_has_root(collective))
        snprintf(text + used, size - (size_t)used, ", root %d", record->root);
}

void call_describe(const struct call_record *record, char *text, size_t size)
{
    describe(record, true, text, size);
}

void call_describe_past(const struct call_record *record, char *text, size_t size)
{
    describe(record, false, text, size);
}
