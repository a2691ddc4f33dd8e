/* SPDX-License-Identifier: BSD-3-Clause */
/* rehearsal.c - see rehearsal.h. */
#include "tests/cuda/rehearsal.h"

#include "base/collective.h"
#include "base/fail.h"
#include "kernels/table.h"
#include "tests/kernels/reference.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 48, REGIONS = 2 };

static char wrong[512];

bool troupe_open(struct troupe *troupe, int size, const struct cuda_devcomm_shape *shape)
{
    CUdeviceptr inboxes[REHEARSAL_RANKS];
    size_t bytes;

    *troupe = (struct troupe){.size = size, .shape = *shape};
    if (!gpu_open(&troupe->gpu))
        return false;
    troupe->shape.size = size;
    troupe->shape.share = (unsigned)size;
    troupe->shape.regions_each = REGIONS;
    troupe->table = shape->regions_known ? gpu_alloc(&troupe->gpu, 4096) : 0;
    for (int r = 0; r < size; r++) {
        troupe->shape.rank = r;
        if (cuda_devcomm_open(troupe->gpu.launcher, &troupe->shape, &troupe->devcomms[r]) ||
            cuda_result(troupe->gpu.device.driver->cuStreamCreate(&troupe->streams[r],
                                                                  CU_STREAM_NON_BLOCKING),
                        "cuStreamCreate"))
            return false;
        inboxes[r] = cuda_devcomm_inbox(troupe->devcomms[r], &bytes);
    }
    for (int r = 0; r < size; r++)
        if (cuda_devcomm_connect(troupe->devcomms[r], inboxes))
            return false;
    return true;
}

void troupe_close(struct troupe *troupe)
{
    for (int r = 0; r < troupe->size; r++) {
        cuda_devcomm_close(troupe->devcomms[r], false);
        troupe->gpu.device.driver->cuStreamDestroy(troupe->streams[r]);
    }
    if (troupe->table)
        gpu_free(&troupe->gpu, troupe->table);
    gpu_close(&troupe->gpu);
}

/* Memory of one rank: input and output, on the host and on the device at the same distances. */
struct stage {
    size_t bytes, input_at, output_at;
    char *host, *device_copy;
    CUdeviceptr device;
    struct plan *plan;
    struct cuda_program *program;
};

static bool stage_open(struct troupe *troupe, const struct rehearsal *rehearsal, int rank,
                       struct stage *stage)
{
    size_t element = kernel_type_bytes[rehearsal->op.type];
    size_t block = rehearsal->count * element;
    size_t inputs =
        (size_t)plan_input_blocks(rehearsal->collective, troupe->size, rank, rehearsal->root);
    size_t outputs =
        (size_t)plan_output_blocks(rehearsal->collective, troupe->size, rank, rehearsal->root);
    uint64_t random = rehearsal->random * 1000 + (uint64_t)rank;

    stage->input_at = GUARD + (size_t)rank % 3 * element;
    stage->output_at = stage->input_at;
    if (!rehearsal->in_place)
        stage->output_at += inputs * block + GUARD + (size_t)(rank + 1) % 4 * element;
    stage->bytes = stage->output_at + (inputs > outputs ? inputs : outputs) * block + GUARD;
    stage->host = malloc(stage->bytes);
    stage->device_copy = malloc(stage->bytes);
    stage->device = gpu_alloc(&troupe->gpu, stage->bytes);
    if (!stage->host || !stage->device_copy || !stage->device ||
        algorithm_plan(rehearsal->algorithm, rehearsal->collective, troupe->size, rank,
                       rehearsal->root, &stage->plan) ||
        cuda_program_open(troupe->devcomms[rank], stage->plan, &stage->program))
        return false;
    memset(stage->host, 0x5a, stage->bytes);
    reference_fill(rehearsal->op.type, stage->host + stage->input_at, inputs * rehearsal->count,
                   &random);
    return gpu_upload(&troupe->gpu, stage->device, stage->host, stage->bytes);
}

static void stage_close(struct troupe *troupe, struct stage *stage)
{
    cuda_program_close(stage->program);
    plan_close(stage->plan);
    if (stage->device)
        gpu_free(&troupe->gpu, stage->device);
    free(stage->host);
    free(stage->device_copy);
}

static CUdeviceptr changes_at(const struct troupe *troupe)
{
    return troupe->table + (size_t)troupe->size * REGIONS * sizeof(struct cuda_region);
}

static bool announce_in_table(struct troupe *troupe, const struct stage *stages)
{
    struct cuda_region table[REHEARSAL_RANKS * REGIONS] = {{0, 0}};

    for (int r = 0; r < troupe->size; r++)
        table[r * REGIONS + 1] = (struct cuda_region){stages[r].device, stages[r].bytes};
    troupe->changes++;
    return gpu_upload(&troupe->gpu, troupe->table, table,
                      (size_t)troupe->size * REGIONS * sizeof(table[0])) &&
           gpu_upload(&troupe->gpu, changes_at(troupe), &troupe->changes, sizeof(troupe->changes));
}

/* Peers may reach all of a rank's memory: it is region 1. */
static bool announce(struct troupe *troupe, const struct stage *stages)
{
    if (troupe->table)
        return announce_in_table(troupe, stages);
    for (int r = 0; r < troupe->size; r++)
        for (int peer = 0; peer < troupe->size; peer++) {
            const struct cuda_region regions[2] = {{0, 0},
                                                   {stages[peer].device, stages[peer].bytes}};

            if (cuda_devcomm_regions(troupe->devcomms[r], peer, regions, 2))
                return false;
        }
    return true;
}

static bool launch(struct troupe *troupe, const struct rehearsal *rehearsal,
                   const struct stage *stage, int rank)
{
    uint64_t word = (uint64_t)1 << CUDA_WORD_REGION_SHIFT;
    const struct cuda_execute_call call = {
        .op = collective_reduces(rehearsal->collective) ? &rehearsal->op : NULL,
        .count = rehearsal->count,
        .element = kernel_type_bytes[rehearsal->op.type],
        .input = stage->device + stage->input_at,
        .output = stage->device + stage->output_at,
        .own = {word | stage->input_at, word | stage->output_at, CUDA_ADDRESS_WORD,
                CUDA_ADDRESS_WORD},
        .regions = troupe->table,
        .regions_each = REGIONS,
        .changes = troupe->table ? changes_at(troupe) : 0,
        .fingerprint = 1000 + troupe->calls,
        .blocks = rehearsal->blocks};

    return !cuda_execute(troupe->devcomms[rank], stage->program, &call, troupe->streams[rank]);
}

static bool on_device(struct troupe *troupe, const struct rehearsal *rehearsal,
                      struct stage *stages)
{
    const struct cuda_driver *driver = troupe->gpu.device.driver;
    bool good = announce(troupe, stages);

    for (int i = 0; i < (rehearsal->repeat ? rehearsal->repeat : 1) && good; i++, troupe->calls++)
        for (int r = 0; r < troupe->size && good; r++)
            good = launch(troupe, rehearsal, &stages[r], r);
    for (int r = 0; r < troupe->size; r++) {
        struct cuda_look look = {.state = EXEC_BLOCKED};

        if (!good)
            cuda_devcomm_stop(troupe->devcomms[r]);
        good =
            !cuda_result(driver->cuStreamSynchronize(troupe->streams[r]), "cuStreamSynchronize") &&
            good;
        cuda_devcomm_look(troupe->devcomms[r], &look);
        if (good && look.state != EXEC_DONE)
            good = rondo_fail(RONDO_ERROR_INTERNAL, "rank %d ended in state %d at step %u", r,
                              look.state, look.step) == RONDO_OK;
        good = good &&
               gpu_download(&troupe->gpu, stages[r].device_copy, stages[r].device, stages[r].bytes);
    }
    return good;
}

static bool on_host(struct troupe *troupe, const struct rehearsal *rehearsal,
                    const struct stage *stages)
{
    struct plan *plans[REHEARSAL_RANKS];
    char *inputs[REHEARSAL_RANKS], *outputs[REHEARSAL_RANKS];
    bool good = true;

    for (int r = 0; r < troupe->size; r++) {
        plans[r] = stages[r].plan;
        inputs[r] = stages[r].host + stages[r].input_at;
        outputs[r] = stages[r].host + stages[r].output_at;
    }
    for (int i = 0; i < (rehearsal->repeat ? rehearsal->repeat : 1); i++)
        good = good && rehearse_on_host(plans, &troupe->shape, rehearsal, inputs, outputs);
    return good;
}

static const char *describe(const struct troupe *troupe, const struct rehearsal *rehearsal,
                            const char *what, int rank, size_t byte)
{
    snprintf(wrong, sizeof(wrong),
             "%s %s over %d ranks, root %d, %zu of %s, %s%u blocks: %s%s, "
             "rank %d, byte %zu",
             rehearsal->algorithm->name, rondo_collective_name(rehearsal->collective), troupe->size,
             rehearsal->root, rehearsal->count, reference_name(rehearsal->op.type),
             rehearsal->in_place ? "in place, " : "", rehearsal->blocks, what,
             strcmp(what, "it failed: ") == 0 ? fail_sentence() : "", rank, byte);
    return wrong;
}

static const char *compare(const struct troupe *troupe, const struct rehearsal *rehearsal,
                           const struct stage *stages)
{
    for (int r = 0; r < troupe->size; r++)
        for (size_t i = 0; i < stages[r].bytes; i++)
            if (stages[r].host[i] != stages[r].device_copy[i])
                return describe(troupe, rehearsal, "another result than on the host", r,
                                i - stages[r].output_at);
    return NULL;
}

const char *rehearse(struct troupe *troupe, const struct rehearsal *rehearsal)
{
    struct stage stages[REHEARSAL_RANKS] = {{.bytes = 0}};
    const char *complaint = NULL;
    bool good = true;

    for (int r = 0; r < troupe->size; r++)
        good = good && stage_open(troupe, rehearsal, r, &stages[r]);
    if (!good || !on_device(troupe, rehearsal, stages))
        complaint = describe(troupe, rehearsal, "it failed: ", 0, 0);
    else if (!on_host(troupe, rehearsal, stages))
        complaint = describe(troupe, rehearsal, "it did not end on the host", 0, 0);
    else
        complaint = compare(troupe, rehearsal, stages);
    for (int r = 0; r < troupe->size; r++)
        stage_close(troupe, &stages[r]);
    return complaint;
}
