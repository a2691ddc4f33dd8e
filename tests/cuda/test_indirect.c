/* SPDX-License-Identifier: BSD-3-Clause */
/* test_indirect.c - operands whose place is read from a word when the kernel runs. */
#include "base/fail.h"
#include "cuda/copies.h"
#include "cuda/reduce.h"
#include "tests/cuda/gpu.h"

#include <criterion/criterion.h>
#include <string.h>

enum { COUNT = 100, REGIONS = 3, ROOM = 4096 };

/* Three segments of memory, a table of them, and words that the device reads from the host. */
struct scene {
    struct gpu gpu;
    CUdeviceptr memory, table;
    uint64_t *words; /* [0] of the source, [1] of the destination, [2] for the error */
};

static bool scene_open(struct scene *scene)
{
    struct cuda_region regions[REGIONS];
    float values[ROOM / sizeof(float)];
    void *words = NULL;

    if (!gpu_open(&scene->gpu))
        return false;
    scene->memory = gpu_alloc(&scene->gpu, REGIONS * ROOM);
    scene->table = gpu_alloc(&scene->gpu, sizeof(regions));
    if (!scene->memory || !scene->table ||
        cuda_result(scene->gpu.device.driver->cuMemHostAlloc(&words, 64, CU_MEMHOSTALLOC_PORTABLE),
                    "cuMemHostAlloc"))
        return false;
    memset(words, 0, 64);
    scene->words = words;
    for (int i = 0; i < REGIONS; i++) {
        regions[i] = (struct cuda_region){scene->memory + (CUdeviceptr)i * ROOM, ROOM};
        for (size_t j = 0; j < ROOM / sizeof(float); j++)
            values[j] = (float)(1000 * i) + (float)j;
        if (!gpu_upload(&scene->gpu, regions[i].base, values, ROOM))
            return false;
    }
    return gpu_upload(&scene->gpu, scene->table, regions, sizeof(regions));
}

static void scene_close(struct scene *scene)
{
    gpu_free(&scene->gpu, scene->memory);
    gpu_free(&scene->gpu, scene->table);
    scene->gpu.device.driver->cuMemFreeHost(scene->words);
    gpu_close(&scene->gpu);
}

static uint64_t word(unsigned region, uint64_t offset)
{
    return (uint64_t)region << CUDA_WORD_REGION_SHIFT | offset;
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
                                          .regions = scene->table,
                                          .region_count = REGIONS,
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
        {(uint64_t)REGIONS << CUDA_WORD_REGION_SHIFT, (uint64_t)2 << CUDA_WORD_REGION_SHIFT, 1},
        {UINT64_MAX, (uint64_t)2 << CUDA_WORD_REGION_SHIFT, 1},
        {0, (uint64_t)2 << CUDA_WORD_REGION_SHIFT | (ROOM - 4 * COUNT + 1), 3},
        {ROOM - 4 * COUNT - 3, (uint64_t)2 << CUDA_WORD_REGION_SHIFT, 1},
        {CUDA_WORD_OFFSET_MASK, (uint64_t)2 << CUDA_WORD_REGION_SHIFT, 1},
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

/* Copies from segment 0 to segment 2, item i from where the word says; odd lengths and places. */
static bool copy(struct scene *scene, struct cuda_copies_item *items, unsigned count,
                 unsigned char *ret_from, unsigned char *ret_to)
{
    const struct cuda_copies_call call = {.items = items,
                                          .count = count,
                                          .regions = scene->table,
                                          .region_count = REGIONS,
                                          .error = cuda_address(&scene->words[2])};

    scene->words[0] = word(0, 100);
    scene->words[2] = 0;
    return !cuda_copies(scene->gpu.launcher, &call, scene->gpu.stream) &&
           gpu_download(&scene->gpu, ret_from, scene->memory, ROOM) &&
           gpu_download(&scene->gpu, ret_to, scene->memory + 2 * ROOM, ROOM);
}

Test(cuda_indirect, many_copies_are_one_kernel)
{
    struct scene scene = {.words = NULL};
    struct cuda_copies_item items[CUDA_COPIES_MAX];
    unsigned char from[ROOM], before[ROOM], to[ROOM];
    size_t at = 0, ends[CUDA_COPIES_MAX];

    cr_assert(scene_open(&scene), "%s", fail_sentence());
    cr_assert(gpu_download(&scene.gpu, before, scene.memory + 2 * ROOM, ROOM));
    for (unsigned i = 0; i < CUDA_COPIES_MAX; i++) {
        size_t bytes = i % 7 == 3 ? 0 : 1 + i * 5 % 61;

        items[i] = (struct cuda_copies_item){
            .from = {.address = cuda_address(&scene.words[0]), .offset = i, .flags = CUDA_INDIRECT},
            .to = {.address = scene.memory + 2 * ROOM, .offset = at},
            .bytes = bytes};
        at += bytes + 1; /* a byte between them stays as it is */
        ends[i] = at - 1;
    }
    cr_assert(copy(&scene, items, CUDA_COPIES_MAX, from, to), "%s", fail_sentence());
    cr_expect_eq(scene.words[2], 0);
    for (unsigned i = 0; i < CUDA_COPIES_MAX; i++) {
        cr_expect_eq(memcmp(to + items[i].to.offset, from + 100 + i, items[i].bytes), 0, "item %u",
                     i);
        cr_expect_eq(to[ends[i]], before[ends[i]], "behind item %u", i);
    }
    scene_close(&scene);
}

Test(cuda_indirect, a_copy_that_leads_outside_is_not_made_and_named)
{
    struct scene scene = {.words = NULL};
    struct cuda_copies_item items[3];
    unsigned char from[ROOM], before[ROOM], to[ROOM];

    cr_assert(scene_open(&scene), "%s", fail_sentence());
    cr_assert(gpu_download(&scene.gpu, before, scene.memory + 2 * ROOM, ROOM));
    for (unsigned i = 0; i < 3; i++)
        items[i] = (struct cuda_copies_item){.from = {.address = cuda_address(&scene.words[0]),
                                                      .offset = i == 1 ? ROOM - 100 : i,
                                                      .flags = CUDA_INDIRECT},
                                             .to = {.address = scene.memory + 2 * ROOM + i * 16},
                                             .bytes = 13};
    cr_assert(copy(&scene, items, 3, from, to), "%s", fail_sentence());
    cr_expect_eq((unsigned)scene.words[2], CUDA_CALL_BAD_OPERAND + 2);
    cr_expect_eq(memcmp(to + 16, before + 16, 16), 0, "it was made");
    cr_expect_eq(memcmp(to, from + 100, 13), 0);
    cr_expect_eq(memcmp(to + 32, from + 102, 13), 0);
    scene_close(&scene);
}

Test(cuda_indirect, memory_that_was_taken_back_is_not_touched)
{
    struct scene scene = {.words = NULL};
    struct cuda_copies_item item = {.bytes = 13};
    unsigned char from[ROOM], before[ROOM], to[ROOM];

    cr_assert(scene_open(&scene), "%s", fail_sentence());
    cr_assert(gpu_download(&scene.gpu, before, scene.memory + 2 * ROOM, ROOM));
    item.from = (struct cuda_operand){
        .address = cuda_address(&scene.words[0]), .flags = CUDA_INDIRECT, .gate = 24};
    item.to = (struct cuda_operand){.address = scene.memory + 2 * ROOM};
    scene.words[3] = 1;
    cr_assert(copy(&scene, &item, 1, from, to), "%s", fail_sentence());
    cr_expect_eq((unsigned)scene.words[2], CUDA_CALL_BAD_OPERAND);
    cr_expect_eq(memcmp(to, before, 13), 0, "it was made");
    scene.words[3] = 0;
    cr_assert(copy(&scene, &item, 1, from, to), "%s", fail_sentence());
    cr_expect_eq(scene.words[2], 0);
    cr_expect_eq(memcmp(to, from + 100, 13), 0, "it was not made");
    scene_close(&scene);
}

Test(cuda_indirect, copies_of_nothing_and_too_many)
{
    struct scene scene = {.words = NULL};
    static struct cuda_copies_item items[CUDA_COPIES_MAX + 1];
    unsigned char from[ROOM], to[ROOM];

    cr_assert(scene_open(&scene), "%s", fail_sentence());
    cr_expect(copy(&scene, items, 0, from, to));
    cr_expect(copy(&scene, items, 3, from, to), "all of them empty");
    cr_expect_not(copy(&scene, items, CUDA_COPIES_MAX + 1, from, to));
    cr_expect(strstr(fail_sentence(), "57 copies are too many"), "%s", fail_sentence());
    scene_close(&scene);
}
