/* SPDX-License-Identifier: BSD-3-Clause */
/* test_execute_ends.c - teams of blocks, and what ends a kernel before its plan does. */
#include "base/fail.h"
#include "cuda/devcomm.h"
#include "tests/cuda/rehearsal.h"

#include <criterion/criterion.h>
#include <string.h>
#include <time.h>

static const struct cuda_devcomm_shape plain = {
    .slots = 4, .slot_bytes = 256 << 10, .regions_known = 2};

Test(cuda_execute_ends, teams_of_blocks_give_what_one_block_gives)
{
    static const char *const names[] = {"ring", "direct", "zero_copy", "halving"};
    struct troupe troupe;
    const char *complaint = NULL;

    cr_assert(troupe_open(&troupe, 2, &plain), "%s", fail_sentence());
    for (int i = 0; i < 16 && !complaint; i++) {
        struct rehearsal rehearsal = {
            .algorithm = algorithm_find(names[i % 4]),
            .collective = RONDO_ALL_REDUCE,
            .op = {.type = i < 8 ? RONDO_FLOAT32 : RONDO_BFLOAT16, .function = KERNEL_SUM},
            .count = 100003 + (size_t)i,
            .blocks = i / 4 % 2 ? 3 : 1,
            .repeat = 2,
            .random = (uint64_t)i};

        complaint = rehearse(&troupe, &rehearsal);
    }
    troupe_close(&troupe);
    cr_assert(!complaint, "%s", complaint);
}

/* Has memory for the teams of two ranks lie in the stock as a communicator may have left it. */
static bool leave_memory(struct gpu *gpu)
{
    struct cuda_team teams[PLAN_PROGRAMS_MAX];
    CUdeviceptr memory[2];
    bool good = true;

    memset(teams, 0xff, sizeof(teams));
    for (int r = 0; r < 2 && good; r++)
        good = !cuda_stock_take(&gpu->launcher->stock, &gpu->device, CUDA_HOLDING_DEVICE,
                                sizeof(teams), &memory[r]) &&
               gpu_upload(gpu, memory[r], teams, sizeof(teams));
    for (int r = 0; r < 2 && good; r++)
        cuda_stock_return(&gpu->launcher->stock, &gpu->device, memory[r]);
    return good;
}

Test(cuda_execute_ends, teams_begin_in_memory_that_others_have_used)
{
    const struct rehearsal rehearsal = {.algorithm = algorithm_find("ring"),
                                        .collective = RONDO_ALL_REDUCE,
                                        .op = {.type = RONDO_FLOAT32, .function = KERNEL_SUM},
                                        .count = 100003,
                                        .blocks = 3};
    struct gpu gpu;
    struct troupe troupe;
    const char *complaint;

    cr_assert(gpu_open(&gpu) && leave_memory(&gpu), "%s", fail_sentence());
    cr_assert(troupe_open(&troupe, 2, &plain), "%s", fail_sentence());
    complaint = rehearse(&troupe, &rehearsal);
    troupe_close(&troupe);
    gpu_close(&gpu);
    cr_assert(!complaint, "%s", complaint);
}

/* A call of two ranks, which one rank or both begin. */
struct duet {
    struct troupe troupe;
    struct cuda_program *programs[2];
    CUdeviceptr memory;
    struct cuda_execute_call call;
};

static bool duet_open_for(struct duet *duet, const char *algorithm, rondo_collective collective)
{
    static const struct kernel_op sum = {.type = RONDO_FLOAT32, .function = KERNEL_SUM};
    bool good = troupe_open(&duet->troupe, 2, &plain);

    for (int r = 0; r < 2 && good; r++) {
        struct plan *plan;

        good = !algorithm_plan(algorithm_find(algorithm), collective, 2, r, 0, &plan) &&
               !cuda_program_open(duet->troupe.devcomms[r], plan, &duet->programs[r]);
        plan_close(plan);
    }
    duet->memory = gpu_alloc(&duet->troupe.gpu, 16384);
    duet->call = (struct cuda_execute_call){.op = &sum,
                                            .count = 1000,
                                            .element = 4,
                                            .input = duet->memory,
                                            .output = duet->memory + 4096,
                                            .fingerprint = 5};
    return good && duet->memory;
}

static bool duet_open(struct duet *duet)
{
    return duet_open_for(duet, "ring", RONDO_ALL_REDUCE);
}

static void duet_close(struct duet *duet)
{
    for (int r = 0; r < 2; r++)
        cuda_program_close(duet->programs[r]);
    gpu_free(&duet->troupe.gpu, duet->memory);
    troupe_close(&duet->troupe);
}

static rondo_result begin(struct duet *duet, int rank)
{
    return cuda_execute(duet->troupe.devcomms[rank], duet->programs[rank], &duet->call,
                        duet->troupe.streams[rank]);
}

static struct cuda_look end(struct duet *duet, int rank)
{
    struct cuda_look look = {.state = EXEC_MOVED};

    if (!duet->troupe.gpu.device.driver->cuStreamSynchronize(duet->troupe.streams[rank]))
        cuda_devcomm_look(duet->troupe.devcomms[rank], &look);
    return look;
}

/* Until the kernel has said where it is. */
static struct cuda_look look_when_stuck(struct duet *duet, int rank)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    struct cuda_look look = {.state = EXEC_DONE};

    for (int i = 0; i < 20000 && (look.state != EXEC_BLOCKED || !look.step); i++) {
        nanosleep(&moment, NULL);
        cuda_devcomm_look(duet->troupe.devcomms[rank], &look);
    }
    return look;
}

Test(cuda_execute_ends, a_kernel_whose_peer_does_not_come_says_so_and_can_be_stopped)
{
    struct duet duet;
    struct cuda_look look;

    cr_assert(duet_open(&duet), "%s", fail_sentence());
    cr_assert_eq(begin(&duet, 1), RONDO_OK, "%s", fail_sentence());
    look = look_when_stuck(&duet, 1);
    cr_expect_eq(look.state, EXEC_BLOCKED);
    cr_expect_gt(look.step, 0);
    cr_expect_eq(look.blamed, 0);
    cuda_devcomm_stop(duet.troupe.devcomms[1]);
    look = end(&duet, 1);
    cr_expect_eq(look.state, EXEC_FAILED, "state %d", look.state);
    duet_close(&duet);
}

/* A call with one program has been queued behind one that has two and runs. */
Test(cuda_execute_ends, all_programs_of_the_kernel_that_runs_are_seen)
{
    struct duet duet;
    struct cuda_status *second;
    struct cuda_look looks[2];

    cr_assert(duet_open(&duet), "%s", fail_sentence());
    for (int r = 0; r < 2; r++)
        cr_assert_eq(begin(&duet, r), RONDO_OK, "%s", fail_sentence());
    for (int r = 0; r < 2; r++) {
        looks[r] = end(&duet, r);
        cr_expect_eq(looks[r].state, EXEC_DONE, "rank %d: state %d", r, looks[r].state);
    }
    second = &duet.troupe.devcomms[0]->host->status[1];
    second->step = 3;
    second->blamed = 1;
    second->state = EXEC_BLOCKED;
    cuda_devcomm_look(duet.troupe.devcomms[0], &looks[0]);
    cr_expect_eq(looks[0].state, EXEC_BLOCKED);
    cr_expect_eq(looks[0].program, 1);
    cr_expect_eq(looks[0].step, 3);
    second->state = EXEC_DONE;
    duet_close(&duet);
}

Test(cuda_execute_ends, calls_that_differ_are_told_apart)
{
    struct duet duet;
    struct cuda_look looks[2];

    cr_assert(duet_open(&duet), "%s", fail_sentence());
    cr_assert_eq(begin(&duet, 0), RONDO_OK, "%s", fail_sentence());
    duet.call.fingerprint = 6;
    cr_assert_eq(begin(&duet, 1), RONDO_OK, "%s", fail_sentence());
    for (int r = 0; r < 2; r++)
        looks[r] = end(&duet, r);
    for (int r = 0; r < 2; r++) {
        cr_expect_eq(looks[r].state, EXEC_MISMATCH, "rank %d: state %d", r, looks[r].state);
        cr_expect_eq(looks[r].blamed, 1 - r);
        cr_expect_eq(looks[r].foreign, r ? 5u : 6u);
    }
    duet_close(&duet);
}

Test(cuda_execute_ends, messages_of_another_form_are_of_another_call)
{
    struct duet duet;
    struct cuda_look looks[2];

    cr_assert(duet_open(&duet), "%s", fail_sentence());
    duet.call.count = 4000; /* too long for words */
    duet.call.output = duet.call.input;
    duet.call.blocks = 1;
    cr_assert_eq(begin(&duet, 0), RONDO_OK, "%s", fail_sentence());
    duet.call.count = 10;
    duet.call.fingerprint = 6;
    cr_assert_eq(begin(&duet, 1), RONDO_OK, "%s", fail_sentence());
    for (int r = 0; r < 2; r++)
        looks[r] = end(&duet, r);
    for (int r = 0; r < 2; r++)
        cr_expect_eq(looks[r].state, EXEC_MISMATCH, "rank %d: state %d", r, looks[r].state);
    duet_close(&duet);
}

Test(cuda_execute_ends, what_does_not_fit_on_the_device_together_is_refused)
{
    struct duet duet;

    cr_assert(duet_open(&duet), "%s", fail_sentence());
    duet.call.blocks = 1000000;
    cr_expect_eq(begin(&duet, 0), RONDO_ERROR_UNSUPPORTED);
    duet.call.blocks = 0;
    cr_expect_eq(begin(&duet, 0), RONDO_OK, "%s", fail_sentence());
    cr_expect_eq(begin(&duet, 1), RONDO_OK, "%s", fail_sentence());
    cr_expect_eq(end(&duet, 0).state, EXEC_DONE);
    cr_expect_eq(end(&duet, 1).state, EXEC_DONE);
    duet_close(&duet);
}

/* Tell both ranks how much of the duet's memory, their region 1, there is. */
static bool show(struct duet *duet, uint64_t bytes)
{
    const struct cuda_region region = {duet->memory, bytes};
    const struct cuda_region table[4] = {{0, 0}, region, {0, 0}, region};

    return gpu_upload(&duet->troupe.gpu, duet->call.regions, table, sizeof(table));
}

static enum exec_state run_both(struct duet *duet)
{
    enum exec_state first;

    duet->call.fingerprint++;
    if (begin(duet, 0) || begin(duet, 1))
        return EXEC_FAILED;
    first = end(duet, 0).state;
    return end(duet, 1).state == first ? first : EXEC_FAILED;
}

Test(cuda_execute_ends, regions_are_looked_up_once_until_something_changes)
{
    const uint64_t word = (uint64_t)1 << CUDA_WORD_REGION_SHIFT;
    uint32_t changes = 0;
    struct duet duet;

    cr_assert(duet_open_for(&duet, "zero_copy", RONDO_ALL_REDUCE), "%s", fail_sentence());
    duet.call.own =
        (struct link_addresses){word, word | 4096, CUDA_ADDRESS_WORD, CUDA_ADDRESS_WORD};
    duet.call.regions = duet.memory + 8192;
    duet.call.regions_each = 2;
    duet.call.changes = duet.memory + 12288;
    cr_assert(gpu_upload(&duet.troupe.gpu, duet.call.changes, &changes, sizeof(changes)));
    cr_assert(show(&duet, 8192));
    cr_expect_eq(run_both(&duet), EXEC_DONE);
    cr_assert(show(&duet, 0));
    cr_expect_eq(run_both(&duet), EXEC_DONE, "it was looked up again");
    changes++;
    cr_assert(gpu_upload(&duet.troupe.gpu, duet.call.changes, &changes, sizeof(changes)));
    cr_expect_eq(run_both(&duet), EXEC_FALLBACK, "it was not looked up again");
    duet_close(&duet);
}
