/* SPDX-License-Identifier: BSD-3-Clause */
/* test_indirect.c - operands whose place is read from a word when the kernel runs. */
#include "base/fail.h"
#include "cuda/reduce.h"
#include "tests/cuda/gpu.h"

#include <criterion/criterion.h>
#include <string.h>

enum { COUNT = 100, SEGMENTS = 3, ROOM = 4096 };

/* Three segments of memory, a table of them, and words that the device reads from the host. */
struct scene {
    struct gpu gpu;
    CUdeviceptr memory, table;
    uint64_t *words; /* [0] of the source, [1] of the destination, [2] for the error */
};

static bool scene_open(struct scene *scene)
{
    struct cuda_segment segments[SEGMENTS];
    float values[ROOM / sizeof(float)];
    void *words = NULL;

    if (!gpu_open(&scene->gpu))
        return false;
    scene->memory = gpu_alloc(&scene->gpu, SEGMENTS * ROOM);
    scene->table = gpu_alloc(&scene->gpu, sizeof(segments));
    if (!scene->memory || !scene->table ||
        cuda_result(scene->gpu.device.driver->cuMemHostAlloc(&words, 64, CU_MEMHOSTALLOC_PORTABLE),
                    "cuMemHostAlloc"))
        return false;
    memset(words, 0, 64);
    scene->words = words;
    for (int i = 0; i < SEGMENTS; i++) {
        segments[i] = (struct cuda_segment){scene->memory + (CUdeviceptr)i * ROOM, ROOM};
        for (size_t j = 0; j < ROOM / sizeof(float); j++)
            values[j] = (float)(1000 * i) + (float)j;
        if (!gpu_upload(&scene->gpu, segments[i].base, values, ROOM))
            return false;
    }
    return gpu_upload(&scene->gpu, scene->table, segments, sizeof(segments));
}

static void scene_close(struct scene *scene)
{
    gpu_free(&scene->gpu, scene->memory);
    gpu_free(&scene->gpu, scene->table);
    scene->gpu.device.driver->cuMemFreeHost(scene->words);
    gpu_close(&scene->gpu);
}

static uint64_t word(unsigned segment, uint64_t offset)
{
    return (uint64_t)segment << CUDA_WORD_SEGMENT_SHIFT | offset;
}

/* Segment 2's memory = source + segment 1's memory at byte 8, with the source and the destination
 * as the words say. What is in the destination then comes back. */
static bool add(struct scene *scene, uint64_t from, uint64_t to, float *ret_result)
{
    const struct kernel_op sum = {.type = RONDO_FLOAT32, .function = KERNEL_SUM};
    const struct cuda_operand sources[] = {
        {.address = cuda_address(&scene->words[0]), .offset = 4, .flags = CUDA_INDIRECT},
        {.address = scene->memory + ROOM, .offset = 8}};
    const struct cuda_operand destination = {
        .address = cuda_address(&scene->words[1]), .offset = 0, .flags = CUDA_INDIRECT};
    const struct cuda_reduce_call call = {.sources = sources,
                                          .destinations = &destination,
                                          .source_count = 2,
                                          .destination_count = 1,
                                          .count = COUNT,
                                          .scaled = -1,
                                          .segments = scene->table,
                                          .segment_count = SEGMENTS,
                                          .error = cuda_address(&scene->words[2])};

    scene->words[0] = from;
    scene->words[1] = to;
    scene->words[2] = 0;
    return !cuda_reduce(scene->gpu.launcher, &sum, &call, scene->gpu.stream) &&
           gpu_download(&scene->gpu, ret_result, scene->memory + 2 * ROOM, ROOM);
}

Test(cuda_indirect, the_kernel_reads_where_its_operands_are)
{
    struct scene scene = {.words = NULL};
    float result[ROOM / sizeof(float)];

    cr_assert(scene_open(&scene), "%s", fail_sentence());
    cr_assert(add(&scene, word(0, 16), word(2, 400), result), "%s", fail_sentence());
    cr_expect_eq(scene.words[2], 0);
    for (int i = 0; i < COUNT; i++)
        cr_expect_eq(result[100 + i], 5 + (float)i + 1002 + (float)i);
    cr_expect_eq(result[99], 2099);
    cr_expect_eq(result[100 + COUNT], 2100 + COUNT);
    scene_close(&scene);
}

Test(cuda_indirect, words_that_lead_outside_are_an_error_and_nothing_is_touched)
{
    static const struct {
        uint64_t from, to;
        unsigned error;
    } wrong[] = {
        {(uint64_t)SEGMENTS << CUDA_WORD_SEGMENT_SHIFT, (uint64_t)2 << CUDA_WORD_SEGMENT_SHIFT, 1},
        {UINT64_MAX, (uint64_t)2 << CUDA_WORD_SEGMENT_SHIFT, 1},
        {0, (uint64_t)2 << CUDA_WORD_SEGMENT_SHIFT | (ROOM - 4 * COUNT + 1), 3},
        {ROOM - 4 * COUNT - 3, (uint64_t)2 << CUDA_WORD_SEGMENT_SHIFT, 1},
        {CUDA_WORD_OFFSET_MASK, (uint64_t)2 << CUDA_WORD_SEGMENT_SHIFT, 1},
    };
    struct scene scene = {.words = NULL};
    float result[ROOM / sizeof(float)];

    cr_assert(scene_open(&scene), "%s", fail_sentence());
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        cr_assert(add(&scene, wrong[i].from, wrong[i].to, result), "%s", fail_sentence());
        cr_expect_eq((unsigned)scene.words[2], wrong[i].error, "case %zu: error %u", i,
                     (unsigned)scene.words[2]);
        for (size_t j = 0; j < ROOM / sizeof(float); j++)
            cr_assert_eq(result[j], 2000 + (float)j, "case %zu touched element %zu", i, j);
    }
    cr_assert(add(&scene, word(0, ROOM - 4 * COUNT - 4), word(2, ROOM - 4 * COUNT), result));
    cr_expect_eq(scene.words[2], 0, "what just fits was refused");
    scene_close(&scene);
}
