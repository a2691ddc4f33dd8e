/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check.c - are the sums of a team right? Calls on numbers that every rank can work out, before any
 * of a user's is made: all collectives, and every type whose sums are the switch's.
 */
#include "comm/gpu/nvls/nvls.h"

#include "base/clock.h"
#include "base/fail.h"
#include "comm/failure/error.h"
#include "comm/failure/health.h"
#include "cuda/module.h"
#include "kernels/kernels.h"
#include "transport/memory/process.h"

#include <stdlib.h>
#include <string.h>

enum { COUNT = 1003 }; /* elements: the last pack of 16 bytes is not full */

struct nvls_trial {
    rondo_collective collective;
    rondo_type type;
};

static const struct nvls_trial trials[] = {
    {RONDO_ALL_REDUCE, RONDO_FLOAT32},  {RONDO_ALL_REDUCE, RONDO_FLOAT16},
    {RONDO_ALL_REDUCE, RONDO_BFLOAT16}, {RONDO_ALL_REDUCE, RONDO_FLOAT64},
    {RONDO_ALL_REDUCE, RONDO_INT32},    {RONDO_ALL_REDUCE, RONDO_INT64},
    {RONDO_ALL_GATHER, RONDO_INT32},    {RONDO_REDUCE_SCATTER, RONDO_FLOAT32},
};

enum { TRIALS = sizeof(trials) / sizeof(trials[0]) };

struct check {
    struct gpu_plans *plans;
    CUdeviceptr device; /* input, behind it output */
    size_t bytes;       /* of each */
    char *input, *output, *wanted;
    double began;
};

/* ---- Numbers --------------------------------------------------------------------------------- */

/* Small numbers, whose sums over all ranks every type holds as they are. */
static int number_at(size_t element, int rank)
{
    return (int)(element % 5) + rank % 4;
}

static void put_number(rondo_type type, char *at, size_t i, int number)
{
    static const uint16_t halves[] = {0x0000, 0x3c00, 0x4000, 0x4200,
                                      0x4400, 0x4500, 0x4600, 0x4700};
    float real = (float)number;
    uint32_t bits;

    memcpy(&bits, &real, sizeof(bits));
    switch (type) {
    case RONDO_FLOAT32:
        ((float *)(void *)at)[i] = real;
        break;
    case RONDO_FLOAT64:
        ((double *)(void *)at)[i] = number;
        break;
    case RONDO_FLOAT16:
        ((uint16_t *)(void *)at)[i] = halves[number];
        break;
    case RONDO_BFLOAT16:
        ((uint16_t *)(void *)at)[i] = (uint16_t)(bits >> 16);
        break;
    case RONDO_INT64:
        ((int64_t *)(void *)at)[i] = number;
        break;
    default:
        ((int32_t *)(void *)at)[i] = number;
    }
}

static void fill(rondo_type type, char *at, size_t first, size_t count, int rank)
{
    for (size_t i = 0; i < count; i++)
        put_number(type, at, i, number_at(first + i, rank));
}

/* The sum of all ranks' numbers from `first` on, by the host. */
static void add_up(const struct check *check, rondo_type type, size_t first)
{
    const struct kernel_op sum = {.type = type, .function = KERNEL_SUM};
    const void *sources[2] = {check->wanted, check->input};
    void *destination = check->wanted;
    const struct kernel_call call = {.sources = sources,
                                     .destinations = &destination,
                                     .source_count = 2,
                                     .destination_count = 1,
                                     .count = COUNT,
                                     .scaled = -1};

    fill(type, check->wanted, first, COUNT, 0);
    for (int rank = 1; rank < check->plans->comm->size; rank++) {
        fill(type, check->input, first, COUNT, rank);
        kernel_reduce(&sum, &call);
    }
}

/* ---- A call ---------------------------------------------------------------------------------- */

/* Bytes of this rank's input, and of its output. */
static size_t input_bytes(const struct check *check, const struct nvls_trial *trial)
{
    size_t blocks =
        trial->collective == RONDO_REDUCE_SCATTER ? (size_t)check->plans->comm->size : 1;

    return blocks * COUNT * rondo_type_size(trial->type);
}

static size_t output_bytes(const struct check *check, const struct nvls_trial *trial)
{
    size_t blocks = trial->collective == RONDO_ALL_GATHER ? (size_t)check->plans->comm->size : 1;

    return blocks * COUNT * rondo_type_size(trial->type);
}

/* Wait for the stream, and see meanwhile whether the peers live. RONDO_IN_PROGRESS: it took too
 * long, and the kernel was told to end. */
static rondo_result await_stream(const struct check *check)
{
    const struct cuda_driver *cuda = check->plans->gpu->device.driver;
    rondo_comm *comm = check->plans->comm;
    rondo_result result = RONDO_OK;
    CUresult code;

    while ((code = cuda->cuStreamQuery(check->plans->side)) == CUDA_ERROR_NOT_READY) {
        if (!result)
            result = health_adopt(comm);
        for (int rank = 0; rank < comm->size && !result; rank++)
            if (!process_alive(comm->processes[rank]))
                result = comm_break(comm,
                                    rondo_fail(RONDO_ERROR_PEER,
                                               "Rank %d (process %d) has ended while rank %d "
                                               "checked the sums of NVSwitch.",
                                               rank, process_id(comm->processes[rank]), comm->rank),
                                    rank);
        if (!result && clock_seconds() - check->began > PATIENCE_NVLS)
            result = RONDO_IN_PROGRESS;
        if (result)
            cuda_nvls_give_up(check->plans->nvls->team);
        doze_for(DOZE_PEER);
    }
    return result ? result : cuda_result(code, "cuStreamQuery of a check of NVSwitch");
}

static rondo_result run(const struct check *check, const struct nvls_trial *trial)
{
    static const uint16_t no_steps[CUDA_NVLS_RANKS];
    const struct cuda_driver *cuda = check->plans->gpu->device.driver;
    const struct kernel_op sum = {.type = trial->type, .function = KERNEL_SUM};
    const struct cuda_nvls_call call = {.collective = trial->collective,
                                        .op = trial->collective == RONDO_ALL_GATHER ? NULL : &sum,
                                        .count = COUNT,
                                        .element = rondo_type_size(trial->type),
                                        .input = check->device,
                                        .output = check->device + check->bytes,
                                        .blocks = 1,
                                        .fingerprint = (uint32_t)(trial - trials) + 1,
                                        .steps = no_steps,
                                        .rehearsal = true};
    CUstream stream = check->plans->side;
    rondo_result result = cuda_result(
        cuda->cuMemcpyHtoDAsync(check->device, check->input, input_bytes(check, trial), stream),
        "cuMemcpyHtoDAsync");

    if (!result)
        result = cuda_nvls_launch(check->plans->nvls->team, &call, stream);
    if (!result)
        result = await_stream(check);
    if (!result)
        result = cuda_result(cuda->cuMemcpyDtoHAsync(check->output, check->device + check->bytes,
                                                     output_bytes(check, trial), stream),
                             "cuMemcpyDtoHAsync");
    return result ? result : cuda_result(cuda->cuStreamSynchronize(stream), "cuStreamSynchronize");
}

/* *ret_right: is the output what it has to be? */
static rondo_result try_call(const struct check *check, const struct nvls_trial *trial,
                             bool *ret_right)
{
    const rondo_comm *comm = check->plans->comm;
    size_t element = rondo_type_size(trial->type);
    size_t inputs = input_bytes(check, trial) / element;
    bool scatters = trial->collective == RONDO_REDUCE_SCATTER;
    rondo_result result;

    fill(trial->type, check->input, 0, inputs, comm->rank);
    result = run(check, trial);
    if (result)
        return result;
    if (trial->collective == RONDO_ALL_GATHER)
        for (int rank = 0; rank < comm->size; rank++)
            fill(trial->type, check->wanted + (size_t)rank * COUNT * element, 0, COUNT, rank);
    else
        add_up(check, trial->type, scatters ? (size_t)comm->rank * COUNT : 0);
    *ret_right = memcmp(check->output, check->wanted, output_bytes(check, trial)) == 0;
    return RONDO_OK;
}

/* ---- All of them ----------------------------------------------------------------------------- */

/* Other ranks wait in each call, so that all are made whatever they give. */
static rondo_result try_all(struct check *check, rondo_result *ret_outcome)
{
    rondo_result result = RONDO_OK;

    check->began = clock_seconds();
    for (int i = 0; i < TRIALS && !result; i++) {
        bool right = true;

        result = try_call(check, &trials[i], &right);
        if (result == RONDO_IN_PROGRESS) {
            *ret_outcome = rondo_fail(RONDO_ERROR_SYSTEM,
                                      "The check of NVSwitch has not ended on rank %d after %.0f "
                                      "seconds.",
                                      check->plans->comm->rank, PATIENCE_NVLS);
            return RONDO_OK;
        }
        if (!result && !right)
            *ret_outcome =
                rondo_fail(RONDO_ERROR_SYSTEM, "NVSwitch gave rank %d a wrong %s of %s.",
                           check->plans->comm->rank, rondo_collective_name(trials[i].collective),
                           rondo_type_name(trials[i].type));
    }
    return result;
}

rondo_result gpu_nvls_check(struct gpu_plans *plans, rondo_result *ret_outcome)
{
    struct cuda_launcher *launcher = plans->launcher;
    size_t bytes = (size_t)plans->comm->size * COUNT * sizeof(double);
    struct check check = {.plans = plans,
                          .bytes = (bytes + 511) / 512 * 512,
                          .input = calloc(1, bytes),
                          .output = calloc(1, bytes),
                          .wanted = calloc(1, bytes)};
    rondo_result result = cuda_stock_take(&launcher->stock, &launcher->device, CUDA_HOLDING_DEVICE,
                                          2 * check.bytes, &check.device);

    *ret_outcome = RONDO_OK;
    if (!result && (!check.input || !check.output || !check.wanted))
        result = rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a check of NVSwitch.");
    if (!result)
        result = try_all(&check, ret_outcome);
    cuda_stock_return(&launcher->stock, &launcher->device, check.device);
    free(check.input);
    free(check.output);
    free(check.wanted);
    return result ? comm_break(plans->comm, result, plans->comm->rank) : RONDO_OK;
}
