/* SPDX-License-Identifier: BSD-3-Clause */
/* names.c - the words for results, types, operations and collectives. */
#include "rondo/rondo.h"

#define TEXT(x)                      #x
#define VERSION(major, minor, patch) TEXT(major) "." TEXT(minor) "." TEXT(patch)

static const struct {
    const char *name;
    size_t bytes;
} types[RONDO_TYPES] = {
    [RONDO_INT8] = {"int8", 1},
    [RONDO_UINT8] = {"uint8", 1},
    [RONDO_INT16] = {"int16", 2},
    [RONDO_UINT16] = {"uint16", 2},
    [RONDO_INT32] = {"int32", 4},
    [RONDO_UINT32] = {"uint32", 4},
    [RONDO_INT64] = {"int64", 8},
    [RONDO_UINT64] = {"uint64", 8},
    [RONDO_FLOAT16] = {"float16", 2},
    [RONDO_BFLOAT16] = {"bfloat16", 2},
    [RONDO_FLOAT32] = {"float32", 4},
    [RONDO_FLOAT64] = {"float64", 8},
    [RONDO_FLOAT8_E4M3] = {"float8_e4m3", 1},
    [RONDO_FLOAT8_E5M2] = {"float8_e5m2", 1},
};

static const char *const operations[RONDO_OPS] = {
    [RONDO_SUM] = "sum", [RONDO_PROD] = "prod", [RONDO_MIN] = "min", [RONDO_MAX] = "max",
    [RONDO_AVG] = "avg", [RONDO_BAND] = "band", [RONDO_BOR] = "bor", [RONDO_BXOR] = "bxor",
};

static const char *const collectives[RONDO_COLLECTIVES] = {
    [RONDO_ALL_REDUCE] = "all_reduce",
    [RONDO_REDUCE] = "reduce",
    [RONDO_BROADCAST] = "broadcast",
    [RONDO_ALL_GATHER] = "all_gather",
    [RONDO_REDUCE_SCATTER] = "reduce_scatter",
    [RONDO_ALL_TO_ALL] = "all_to_all",
    [RONDO_GATHER] = "gather",
    [RONDO_SCATTER] = "scatter",
    [RONDO_BARRIER] = "barrier",
    [RONDO_SEND] = "send",
    [RONDO_RECV] = "recv",
};

static const char *const results[RONDO_RESULTS] = {
    [RONDO_OK] = "no error",
    [RONDO_IN_PROGRESS] = "still in progress",
    [RONDO_ERROR_INVALID] = "an argument is wrong",
    [RONDO_ERROR_MISMATCH] = "ranks called different things",
    [RONDO_ERROR_PEER] = "a peer is gone",
    [RONDO_ERROR_TIMEOUT] = "a peer was silent for too long",
    [RONDO_ERROR_ABORTED] = "the communicator was aborted",
    [RONDO_ERROR_MEMORY] = "out of memory",
    [RONDO_ERROR_SYSTEM] = "the operating system refused",
    [RONDO_ERROR_AUTH] =
        "the other side does not know the job's secret, or bytes were changed on the way",
    [RONDO_ERROR_UNSUPPORTED] = "cannot be done here",
    [RONDO_ERROR_INTERNAL] = "internal error of Rondo",
};

size_t rondo_type_size(rondo_type type)
{
    return (unsigned)type < RONDO_TYPES ? types[type].bytes : 0;
}

const char *rondo_type_name(rondo_type type)
{
    return (unsigned)type < RONDO_TYPES ? types[type].name : "unknown type";
}

const char *rondo_op_name(rondo_op op)
{
    if (op >= RONDO_OPS)
        return "an operation of your own";
    return op >= 0 ? operations[op] : "unknown operation";
}

const char *rondo_collective_name(rondo_collective collective)
{
    return (unsigned)collective < RONDO_COLLECTIVES ? collectives[collective]
                                                    : "unknown collective";
}

const char *rondo_result_string(rondo_result result)
{
    return (unsigned)result < RONDO_RESULTS ? results[result] : "unknown result";
}

int rondo_version_number(void)
{
    return RONDO_VERSION;
}

const char *rondo_version(void)
{
    return VERSION(RONDO_VERSION_MAJOR, RONDO_VERSION_MINOR, RONDO_VERSION_PATCH);
}
