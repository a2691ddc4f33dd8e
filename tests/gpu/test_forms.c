/* SPDX-License-Identifier: BSD-3-Clause */
/* test_forms.c - calls on CUDA streams by algorithms that somebody named, which send their data in
 * messages: each is one kernel, and right. */
#include "bodies.h"
#include "device.h"

#include "rondo/bindings.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct world_report report;
static char said[1 << 18]; /* by the ranks' logs */

static int run(int size, bool processes, world_body body, struct gpu_scene scene)
{
    struct world world = {.size = size, .processes = processes};
    FILE *log = tmpfile();
    int before = dup(STDERR_FILENO), failed;

    setenv("RONDO_LOG", "info", 1);
    dup2(fileno(log), STDERR_FILENO);
    failed = world_run(&world, body, &scene, &report);
    dup2(before, STDERR_FILENO);
    close(before);
    rewind(log);
    said[fread(said, 1, sizeof(said) - 1, log)] = 0;
    fclose(log);
    return failed;
}

static void expect_kernel(const char *algorithm, const char *collective, int size)
{
    char words[160];

    snprintf(words, sizeof(words), "%s over %d ranks on the device: %s, by one kernel", collective,
             size, algorithm);
    cr_expect(strstr(said, words), "nobody said: %s", words);
}

/* Every collective, with counts of 0, 1, odd ones and some that are longer than all slots, in place
 * and not; what the algorithm has no form of is left to others. */
static void expect_right(const char *algorithm, int size, bool processes, int devices)
{
    const char *const forms[] = {"all_reduce", "reduce", "broadcast", "all_gather",
                                 "reduce_scatter"};
    int failed;

    setenv("RONDO_ALGORITHM", algorithm, 1);
    failed = run(size, processes, gpu_matrix, (struct gpu_scene){.devices = devices, .cases = 120});
    cr_assert(failed == 0, "%s over %d ranks: %s", algorithm, size, report.summary);
    if (!strstr(said, "run as one kernel each") && processes)
        return; /* they share the only device */
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
        expect_kernel(algorithm, forms[i], size);
    cr_expect(!strstr(said, "on the device: zero_copy, by operations"), "%s", said);
}

ParameterizedTestParameters(gpu_forms, calls_by_ring_and_tree_are_one_kernel_and_right)
{
    static int sizes[] = {1, 2, 3, 4, 5, 6, 7, 8};

    return cr_make_param_array(int, sizes, sizeof(sizes) / sizeof(sizes[0]));
}

ParameterizedTest(int *size, gpu_forms, calls_by_ring_and_tree_are_one_kernel_and_right)
{
    expect_right("ring", *size, false, *size);
    expect_right("tree", *size, false, *size);
}

Test(gpu_forms, ranks_that_are_processes_map_slots_of_their_peers)
{
    expect_right("ring", 2, true, 2);
    expect_right("tree", 2, true, 2);
}

/* ---- Pre-multiplied sums --------------------------------------------------------------------- */

enum { SCALED = 40001 };

/* Each rank adds its share, i, times its scalar, rank + 1. */
static rondo_result add_scaled(struct gpu_rank *rank, rondo_op op, int32_t *memory, int32_t *host)
{
    int size = rondo_comm_size(rank->comm);
    int32_t factor = size * (size + 1) / 2;
    rondo_result result;

    for (int32_t i = 0; i < SCALED; i++)
        host[i] = i;
    if (!device_copy(memory, host, SCALED * sizeof(*host)))
        return world_say(rank->sentence, RONDO_ERROR_SYSTEM, "cannot begin");
    result = rondo_all_reduce(memory, memory, SCALED, RONDO_INT32, op, rank->comm, rank->stream);
    if (!result)
        result = rondo_stream_synchronize(rank->stream);
    if (result || !device_copy(host, memory, SCALED * sizeof(*host)))
        return world_say(rank->sentence, result, "%s", rondo_last_error(rank->comm));
    for (int32_t i = 0; i < SCALED && !result; i++)
        if (host[i] != i * factor)
            result = world_say(rank->sentence, RONDO_ERROR_INTERNAL, "element %d is %d, not %d", i,
                               host[i], i * factor);
    return result;
}

/* Freeing device memory waits for all work on the device, and so for the peers: at the end. */
static rondo_result scale(struct gpu_rank *rank)
{
    static const enum device_memory kinds[] = {MEMORY_DEVICE, MEMORY_PLAIN};
    int32_t scalar = rondo_comm_rank(rank->comm) + 1, *host = calloc(SCALED, sizeof(*host));
    int32_t *memory[2];
    rondo_op op;
    rondo_result result = rondo_op_create_premul_sum(rank->comm, &scalar, RONDO_INT32, &op);

    for (int i = 0; i < 2; i++) {
        memory[i] = device_alloc(kinds[i], SCALED * sizeof(*host));
        if (!memory[i] || !host)
            result = RONDO_ERROR_MEMORY;
    }
    for (int i = 0; i < 2 && !result; i++)
        result = add_scaled(rank, op, memory[i], host);
    if (!result)
        result = rondo_comm_finalize(rank->comm);
    for (int i = 0; i < 2; i++)
        device_free(kinds[i], memory[i]);
    free(host);
    return result;
}

static rondo_result scale_ranks(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, scale);
}

Test(gpu_forms, inputs_are_scaled_once_on_their_way)
{
    int failed;

    setenv("RONDO_ALGORITHM", "ring", 1);
    failed = run(3, false, scale_ranks, (struct gpu_scene){.devices = 1});
    cr_assert(failed == 0, "%s", report.summary);
    expect_kernel("ring", "all_reduce", 3);
}

/* ---- What ran -------------------------------------------------------------------------------- */

static rondo_result ask(struct gpu_rank *rank, void *memory, rondo_stream *stream, const char *name)
{
    const rondo_call call = {sizeof(call), RONDO_ALL_REDUCE, RONDO_INT32, RONDO_SUM,  0,
                             memory,       memory,           1000,        rank->comm, stream,
                             name};
    rondo_result result = rondo_collective_call(&call);

    if (!result && stream)
        result = rondo_stream_synchronize(stream);
    if (result)
        return world_say(rank->sentence, result, "%s", rondo_last_error(rank->comm));
    if (strcmp(rondo_comm_last_algorithm(rank->comm), name) != 0)
        return world_say(rank->sentence, RONDO_ERROR_INTERNAL, "%s, not %s",
                         rondo_comm_last_algorithm(rank->comm), name);
    return RONDO_OK;
}

/* A message by way of the host: it is no collective. */
static rondo_result exchange(struct gpu_rank *rank, void *memory)
{
    const int peer = 1 - rondo_comm_rank(rank->comm);
    rondo_result result = rondo_group_start();

    if (!result)
        result = rondo_send(memory, 10, RONDO_INT32, peer, rank->comm, NULL);
    if (!result)
        result = rondo_recv((int32_t *)memory + 10, 10, RONDO_INT32, peer, rank->comm, NULL);
    if (!result)
        result = rondo_group_end();
    return result ? world_say(rank->sentence, result, "%s", rondo_last_error(rank->comm))
                  : RONDO_OK;
}

/* Calls on the device and on the host in turns. */
static rondo_result ask_in_turns(struct gpu_rank *rank)
{
    void *device = device_alloc(MEMORY_DEVICE, 1000 * sizeof(int32_t));
    void *plain = calloc(1000, sizeof(int32_t));
    rondo_result result = device && plain ? RONDO_OK : RONDO_ERROR_MEMORY;

    for (int i = 0; i < 2 && !result; i++) {
        result = ask(rank, device, rank->stream, "ring");
        if (!result)
            result = ask(rank, plain, NULL, "tree");
        if (!result)
            result = ask(rank, device, rank->stream, "tree");
        if (!result)
            result = exchange(rank, plain);
        if (!result && strcmp(rondo_comm_last_algorithm(rank->comm), "tree") != 0)
            result = world_say(rank->sentence, RONDO_ERROR_INTERNAL, "a message changed it to %s",
                               rondo_comm_last_algorithm(rank->comm));
        if (!result)
            result = ask(rank, plain, NULL, "ring");
    }
    if (!result)
        result = rondo_comm_finalize(rank->comm);
    device_free(MEMORY_DEVICE, device);
    free(plain);
    return result;
}

static rondo_result ask_ranks(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, ask_in_turns);
}

Test(gpu_forms, a_communicator_tells_which_algorithm_ran)
{
    int failed = run(2, false, ask_ranks, (struct gpu_scene){.devices = 2});

    cr_assert(failed == 0, "%s", report.summary);
    expect_kernel("ring", "all_reduce", 2);
    expect_kernel("tree", "all_reduce", 2);
}

/* ---- Where there are no kernels -------------------------------------------------------------- */

/* The host moves the data if processes share a device, as none of them may wait on it. */
Test(gpu_forms, processes_that_share_a_device_go_by_way_of_the_host)
{
    int failed;

    setenv("RONDO_ALGORITHM", "ring", 1);
    failed = run(3, true, gpu_matrix, (struct gpu_scene){.devices = 1, .cases = 60});
    cr_assert(failed == 0, "%s", report.summary);
    cr_expect(!strstr(said, "by one kernel"), "%s", said);
}
