/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * open.c - how the ranks' devices become a team with a multicast object.
 *
 *     every rank   can it? SHOWN, or NOT
 *     rank 0       makes the object, shows its file: MADE
 *     every rank   takes the file, joins: JOINED
 *     every rank   when all have joined, binds memory: BOUND
 *     every rank   when all have bound, checks calls on numbers that it knows: RIGHT
 *
 * Each shows how far it is in its arena, and waits for the others. Whoever cannot go on shows NOT,
 * and then all go without: calls have other ways. Wrong sums are such a reason, too: no figure of a
 * switch is known here, so none is believed unseen.
 */
#include "comm/gpu/nvls/nvls.h"

#include "base/caller/descriptor.h"
#include "base/caller/times.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/setting.h"
#include "comm/failure/error.h"
#include "comm/failure/health.h"
#include "cuda/module.h"
#include "transport/memory/process.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { UNKNOWN, SHOWN, MADE, JOINED, BOUND, RIGHT, NOT = UINT16_MAX };

enum { LEAST_DEVICES = 3 }; /* two read each other's memory as quickly */

static bool is_on(void)
{
    return strcmp(setting_read_word(SETTING_NVLS), "on") == 0;
}

/* ---- Can it be? ------------------------------------------------------------------------------ */

/* Why this rank takes no part, NULL: it would. */
static const char *find_obstacle(const struct gpu_plans *plans)
{
    const rondo_comm *comm = plans->comm;

    if (strcmp(setting_read_word(SETTING_NVLS), "off") == 0)
        return "has RONDO_NVLS=off";
    if (comm->settings.deterministic)
        return "wants sums in one order (RONDO_DETERMINISTIC), and a switch has its own";
    if (comm->size < (is_on() ? 2 : LEAST_DEVICES) || comm->size > CUDA_NVLS_RANKS)
        return "is of too small or too large a team";
    if (!plans->devcomms_ready)
        return "has no kernels that wait for those of other ranks";
    if (gpu_is_shared(comm))
        return "is of a team in which ranks share a device";
    return cuda_nvls_obstacle(&plans->gpu->device);
}

/* ---- Together -------------------------------------------------------------------------------- */

static void show(struct gpu_plans *plans, uint32_t state)
{
    /* Release, pairs with the acquire in gpu_await_shown(): what is said beside it is there. */
    atomic_store_explicit(&plans->own->nvls.state, state, memory_order_release);
    gpu_ring(plans);
}

/* Until that rank is so far; what it shows is there to be asked for meanwhile. *ret_not: it goes
 * without. */
static rondo_result await_rank(struct gpu_plans *plans, int rank, uint32_t least, bool *ret_not)
{
    const _Atomic uint32_t *word = &plans->views[rank].arena->nvls.state;
    uint32_t state = UNKNOWN;
    rondo_result result;

    while (plans->fd_server > 0 && atomic_load_explicit(word, memory_order_acquire) < least &&
           process_alive(plans->comm->processes[rank]) && !comm_check(plans->comm)) {
        gpu_fd_server_serve(plans);
        doze_for(DOZE_PEER);
    }
    result = gpu_await_shown(plans, rank, word, least, &state);
    *ret_not |= state == NOT;
    return result;
}

/* This rank is so far, or not (`outcome`, with its sentence), and then it waits for nobody. All are
 * so far, or *ret_not. */
static rondo_result meet(struct gpu_plans *plans, rondo_result outcome, uint32_t state,
                         bool *ret_not)
{
    rondo_result result = RONDO_OK;

    if (outcome)
        log_info("no multicast of NVSwitch: %s", fail_sentence());
    show(plans, outcome ? NOT : state);
    *ret_not = outcome;
    for (int rank = 0; rank < plans->comm->size && !result && !*ret_not; rank++)
        result = await_rank(plans, rank, state, ret_not);
    return result;
}

/* ---- The object ------------------------------------------------------------------------------ */

/* The file of rank 0's object; the order that it is asked by is none of memory: those begin later.
 */
static rondo_result take_file(struct gpu_plans *plans, int *ret_file)
{
    struct gpu_order order = {.pieces = 1};
    int files[GPU_PIECES];
    rondo_result result;

    order.piece[0].file = plans->views[0].arena->nvls.file;
    if (process_is_own(plans->comm->processes[0])) {
        *ret_file = descriptor_above(dup(order.piece[0].file));
        return *ret_file < 0 ? rondo_fail_errno(RONDO_ERROR_SYSTEM, "dup") : RONDO_OK;
    }
    result = gpu_take_files(plans, 0, &order, files);
    *ret_file = result ? -1 : files[0];
    return result;
}

static rondo_result make(struct gpu_plans *plans, int *ret_file)
{
    struct gpu_order *order = &plans->own->order;
    rondo_result result = cuda_nvls_make(plans->nvls->team, ret_file);

    if (result)
        return result;
    plans->own->nvls.file = *ret_file;
    order->pieces = 1;
    order->piece[0].file = *ret_file;
    if (!plans->comm->one_process && gpu_fd_server_open(plans))
        log_info("%s", fail_sentence());
    return RONDO_OK;
}

static rondo_result join(struct gpu_plans *plans)
{
    int file = -1;
    rondo_result result = take_file(plans, &file);

    if (!result)
        result = cuda_nvls_join(plans->nvls->team, file);
    if (file >= 0)
        close(file);
    return result;
}

/* ---- The beginning --------------------------------------------------------------------------- */

static rondo_result make_nvls(struct gpu_plans *plans)
{
    plans->nvls = calloc(1, sizeof(*plans->nvls));
    if (!plans->nvls)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a multicast object.");
    return cuda_nvls_open(plans->devcomm, &plans->nvls->team);
}

/* From the object to its check; *ret_not: some rank cannot, and has said why. */
static rondo_result make_team(struct gpu_plans *plans, bool *ret_not)
{
    int file = -1;
    rondo_result outcome = plans->comm->rank ? RONDO_OK : make(plans, &file);
    rondo_result result;

    if (outcome)
        return meet(plans, outcome, MADE, ret_not);
    if (!plans->comm->rank)
        show(plans, MADE);
    result = await_rank(plans, 0, MADE, ret_not);
    if (!result && !*ret_not)
        result = meet(plans, join(plans), JOINED, ret_not);
    if (file >= 0)
        close(file);
    plans->own->order.pieces = 0;
    if (!result && !*ret_not)
        result = meet(plans, cuda_nvls_bind(plans->nvls->team), BOUND, ret_not);
    if (!result && !*ret_not)
        result = gpu_nvls_check(plans, &outcome);
    if (!result && !*ret_not)
        result = meet(plans, outcome, RIGHT, ret_not);
    return result;
}

/* Blocks that the smallest of all ranks' kernels may have. */
static unsigned find_blocks(const struct gpu_plans *plans)
{
    unsigned blocks = CUDA_NVLS_BLOCKS;

    for (int rank = 0; rank < plans->comm->size; rank++)
        if (plans->views[rank].arena->nvls.blocks < blocks)
            blocks = plans->views[rank].arena->nvls.blocks;
    return blocks;
}

/* True if all ranks have asked for it by RONDO_NVLS=on. */
static bool all_are_on(const struct gpu_plans *plans)
{
    bool on = true;

    for (int rank = 0; rank < plans->comm->size; rank++)
        on &= plans->views[rank].arena->nvls.on;
    return on;
}

static void show_blocks(struct gpu_plans *plans)
{
    unsigned blocks = plans->launcher->kernels[CUDA_KERNEL_nvls].blocks;
    unsigned most = plans->comm->settings.max_blocks;

    plans->own->nvls.on = is_on();
    plans->own->nvls.blocks = most && most < blocks ? most : blocks;
}

static void say_obstacle(const struct gpu_plans *plans, const char *obstacle)
{
    if (is_on())
        log_warn("RONDO_NVLS=on, but no multicast of NVSwitch: device %d %s",
                 plans->gpu->device.number, obstacle);
    else
        log_info("no multicast of NVSwitch: device %d %s", plans->gpu->device.number, obstacle);
}

static rondo_result open_team(struct gpu_plans *plans, bool *ret_not)
{
    const char *obstacle = find_obstacle(plans);
    rondo_result result = setting_check(SETTING_NVLS);

    if (result)
        return result;
    if (obstacle)
        say_obstacle(plans, obstacle);
    show_blocks(plans);
    show(plans, obstacle ? NOT : SHOWN);
    *ret_not = obstacle;
    for (int rank = 0; rank < plans->comm->size && !result; rank++)
        result = await_rank(plans, rank, SHOWN, ret_not);
    if (result || *ret_not)
        return result;
    result = make_nvls(plans);
    return result ? result : make_team(plans, ret_not);
}

rondo_result gpu_nvls_open(struct gpu_plans *plans)
{
    bool none = false;
    rondo_result result = plans->comm->size > 1 ? open_team(plans, &none) : RONDO_OK;

    if (none)
        show(plans, NOT); /* those who wait for this rank may not see whose word it has heard */
    if (result || none || !plans->nvls) {
        gpu_nvls_close(plans);
        return result;
    }
    plans->nvls->blocks = find_blocks(plans);
    plans->nvls->any_order = all_are_on(plans);
    plans->nvls->least_bytes = plans->nvls->any_order ? 0 : plans->short_bytes + 1;
    log_info(
        "all_reduce, all_gather and reduce_scatter of %zu bytes and more go through multicast "
        "of NVSwitch, with up to %u blocks: sums were right when it was checked; %s",
        plans->nvls->least_bytes, plans->nvls->blocks,
        plans->nvls->any_order
            ? "sums of floats are in the order of the switch (RONDO_NVLS=on)"
            : "but sums of floats, whose order would be the switch's (RONDO_NVLS=on allows it)");
    return RONDO_OK;
}
