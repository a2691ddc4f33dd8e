/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nvls.cu - all_reduce, all_gather and reduce_scatter through multicast memory, each in one kernel.
 *
 *     all_reduce       input -> own | meet | sums of this rank's share -> all | meet | -> output
 *     all_gather       input -> own, own share -> all | meet | own -> output
 *     reduce_scatter   input -> own | meet | sums of this rank's share -> own -> output
 *
 * A block goes through its part of the data piece by piece, in the two halves of its memory by
 * turns. Who fills a half again has met the others in the piece between, and they had done with the
 * half before they came there. A reduce_scatter ends with a meeting more: when a launch has ended,
 * nobody touches its rank's memory any more.
 */
#include "cuda/kernels/copy.h"
#include "cuda/kernels/execution.h"
#include "cuda/kernels/multimem.h"
#include "cuda/kernels/nvls.h"

#if !defined(__CUDACC__) || !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

enum { NVLS_AHEAD = 4 };

/* The place of a block of the kernel in the call. */
struct nvls {
    const struct cuda_nvls_argument *argument;
    uint32_t meetings, pieces;
    uint64_t begin, end;  /* packs of each of the user's blocks that this block moves */
    uint64_t each;        /* packs of a piece, of each rank's block */
    uint64_t at, packs;   /* the piece at hand */
    uint64_t half;        /* where it is in the team's memory, from the beginning of that */
};

LANE_FUNCTION uint64_t nvls_least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- Meetings -------------------------------------------------------------------------------- */

LANE_FUNCTION uint64_t nvls_flag(uint64_t memory, uint32_t rank)
{
    return memory + ((uint64_t)blockIdx.x * CUDA_NVLS_RANKS + rank) * sizeof(uint64_t);
}

/* From time to time: tell the host whom this block waits for; should it go on? */
LANE_CALLED bool nvls_look_up(const struct cuda_nvls_argument &argument, uint32_t rank)
{
    struct cuda_status *status = reinterpret_cast<struct cuda_status *>(argument.status);
    const struct cuda_halt *halt = reinterpret_cast<const struct cuda_halt *>(argument.halt);

    lane_store_relaxed(&status->blamed, rank);
    lane_store_release(&status->step, (uint32_t)argument.steps[rank]);
    return !lane_load_acquire(&halt->stop);
}

/* Another call has come to the meeting: said as executor.cu does, and later launches end. */
LANE_CALLED void nvls_mismatch(const struct cuda_nvls_argument &argument, uint32_t rank,
                               uint32_t foreign)
{
    struct cuda_halt *halt = reinterpret_cast<struct cuda_halt *>(argument.halt);

    lane_store_relaxed(&halt->program, 0u);
    lane_store_relaxed(&halt->failed.step, (uint32_t)argument.steps[rank]);
    lane_store_relaxed(&halt->failed.blamed, rank);
    lane_store_relaxed(&halt->failed.foreign, foreign);
    lane_store_release(&halt->failed.state, (uint32_t)EXEC_MISMATCH);
    lane_store_release(&halt->stop, 1u);
}

/* Numbers wrap: a later one is ahead by less than half of them. Who is ahead has met this block's
 * call already, and has compared. */
LANE_FUNCTION bool nvls_await(const struct nvls &here, uint32_t rank)
{
    const struct cuda_nvls_argument &argument = *here.argument;
    const uint64_t *flag = reinterpret_cast<const uint64_t *>(nvls_flag(argument.own, rank));
    uint64_t looked = lane_clock(), value;

    while ((int32_t)((uint32_t)((value = lane_load_acquire(flag)) >> 32) - here.meetings) < 0) {
        __nanosleep(LOOK_FLAGS_NS);
        if (lane_clock() - looked > LOOK_STOP_NS) {
            if (!nvls_look_up(argument, rank))
                return false;
            looked = lane_clock();
        }
    }
    if ((uint32_t)(value >> 32) != here.meetings || (uint32_t)value == argument.fingerprint)
        return true;
    nvls_mismatch(argument, rank, (uint32_t)value);
    return false;
}

/* All ranks' blocks of this number come here before any goes on, and see what the others wrote.
 * False: the call is over. */
LANE_CALLED bool nvls_meet(struct nvls &here)
{
    const struct cuda_nvls_argument &argument = *here.argument;
    int good = true;

    here.meetings++;
    multimem_fence();
    __syncthreads();
    if (threadIdx.x == 0) {
        lane_fence();
        multimem_fence();
        multimem_release(nvls_flag(argument.all, argument.rank),
                         (uint64_t)here.meetings << 32 | argument.fingerprint);
    }
    for (uint32_t rank = threadIdx.x; rank < argument.size; rank += blockDim.x)
        good &= nvls_await(here, rank);
    good = __syncthreads_and(good);
    multimem_fence();
    return good;
}

/* ---- Moving ---------------------------------------------------------------------------------- */

/* The part of the piece in block `index` of the team's half; of the user's buffer. */
LANE_FUNCTION uint64_t nvls_slice(const struct nvls &here, uint32_t index)
{
    return here.half + index * here.each * WIDE_BYTES;
}

LANE_FUNCTION uint64_t nvls_user(const struct nvls &here, uint64_t buffer, uint32_t index)
{
    return buffer + index * here.argument->bytes + here.at * WIDE_BYTES;
}

/* The last pack of a block may be shorter. */
LANE_CALLED void nvls_copy(const struct nvls &here, uint64_t from, uint64_t to)
{
    uint64_t operands[2] = {from, to};
    const struct work work = {operands, 1, 1, {}};
    uint64_t left = here.argument->bytes - here.at * WIDE_BYTES;

    if (from != to)
        copy_all(work, nvls_least(here.packs * WIDE_BYTES, left), threadIdx.x, blockDim.x);
}

/* ---- The share of a rank --------------------------------------------------------------------- */

/* Packs that this rank adds up: where they are in the team's memory, and who gets the sums. */
struct nvls_share {
    uint64_t from, begin, end;
    bool to_all;
};

template <class Kind>
LANE_FUNCTION void nvls_finish(const struct cuda_arithmetic &arithmetic, struct multimem_pack *pack)
{
    wide_pack<typename Kind::bits> values, result = {};

    for (int i = 0; i < 4; i++)
        values.words[i] = pack->words[i];
    for (int i = 0; i < wide_pack<typename Kind::bits>::ELEMENTS; i++)
        result.put(i, Kind::close(Kind::divide(Kind::open(values.get(i)), arithmetic.divisor,
                                               arithmetic.is_signed)));
    for (int i = 0; i < 4; i++)
        pack->words[i] = result.words[i];
}

LANE_FUNCTION void nvls_put(const struct nvls &here, const struct nvls_share &share, uint64_t at,
                            const struct multimem_pack &pack)
{
    const struct cuda_nvls_argument &argument = *here.argument;
    wide_pack<uint32_t> own;

    if (share.to_all) {
        multimem_store(argument.all + share.from + at * WIDE_BYTES, pack);
        return;
    }
    for (int i = 0; i < 4; i++)
        own.words[i] = pack.words[i];
    own.store(argument.own + share.from, at * 4, span());
}

template <class Kind, int FUNCTION>
LANE_CALLED void nvls_reduce_as(const struct nvls &here, const struct nvls_share &share)
{
    const struct cuda_nvls_argument &argument = *here.argument;
    const struct cuda_arithmetic arithmetic = argument.arithmetic;
    uint64_t from = argument.all + share.from;

#pragma unroll 1
    for (uint64_t first = share.begin + threadIdx.x; first < share.end;
         first += NVLS_AHEAD * (uint64_t)blockDim.x) {
        struct multimem_pack packs[NVLS_AHEAD];

#pragma unroll
        for (int i = 0; i < NVLS_AHEAD; i++)
            if (first + i * (uint64_t)blockDim.x < share.end)
                multimem_load<Kind, FUNCTION>::get(
                    from + (first + i * (uint64_t)blockDim.x) * WIDE_BYTES, arithmetic.is_signed,
                    &packs[i]);
#pragma unroll
        for (int i = 0; i < NVLS_AHEAD; i++) {
            if (first + i * (uint64_t)blockDim.x >= share.end)
                continue;
            if (arithmetic.divisor > 1)
                nvls_finish<Kind>(arithmetic, &packs[i]);
            nvls_put(here, share, first + i * (uint64_t)blockDim.x, packs[i]);
        }
    }
}

template <class Kind>
LANE_FUNCTION void nvls_reduce_integers(const struct nvls &here, const struct nvls_share &share)
{
    switch (here.argument->arithmetic.function) {
    case KERNEL_SUM:
        nvls_reduce_as<Kind, KERNEL_SUM>(here, share);
        break;
    case KERNEL_MIN:
        nvls_reduce_as<Kind, KERNEL_MIN>(here, share);
        break;
    default:
        nvls_reduce_as<Kind, KERNEL_MAX>(here, share);
    }
}

/* Bits have no kind: the host says that they are of 32 each. */
LANE_FUNCTION void nvls_reduce_words(const struct nvls &here, const struct nvls_share &share)
{
    switch (here.argument->arithmetic.function) {
    case KERNEL_BAND:
        nvls_reduce_as<int32_kind, KERNEL_BAND>(here, share);
        break;
    case KERNEL_BOR:
        nvls_reduce_as<int32_kind, KERNEL_BOR>(here, share);
        break;
    case KERNEL_BXOR:
        nvls_reduce_as<int32_kind, KERNEL_BXOR>(here, share);
        break;
    default:
        nvls_reduce_integers<int32_kind>(here, share);
    }
}

LANE_FUNCTION void nvls_reduce(const struct nvls &here, const struct nvls_share &share)
{
    switch (here.argument->kind) {
    case CUDA_KIND_FLOAT16:
        nvls_reduce_as<float16_kind, KERNEL_SUM>(here, share);
        break;
    case CUDA_KIND_BFLOAT16:
        nvls_reduce_as<bfloat16_kind, KERNEL_SUM>(here, share);
        break;
    case CUDA_KIND_FLOAT32:
        nvls_reduce_as<float32_kind, KERNEL_SUM>(here, share);
        break;
    case CUDA_KIND_FLOAT64:
        nvls_reduce_as<float64_kind, KERNEL_SUM>(here, share);
        break;
    case CUDA_KIND_INT64:
        nvls_reduce_integers<int64_kind>(here, share);
        break;
    default:
        nvls_reduce_words(here, share);
    }
}

/* ---- Pieces ---------------------------------------------------------------------------------- */

LANE_CALLED bool nvls_all_reduce(struct nvls &here)
{
    const struct cuda_nvls_argument &argument = *here.argument;
    uint64_t own = argument.own + nvls_slice(here, 0);
    const struct nvls_share share = {nvls_slice(here, 0),
                                     here.packs * argument.rank / argument.size,
                                     here.packs * (argument.rank + 1) / argument.size, true};

    nvls_copy(here, nvls_user(here, argument.input, 0), own);
    if (!nvls_meet(here))
        return false;
    nvls_reduce(here, share);
    if (!nvls_meet(here))
        return false;
    nvls_copy(here, own, nvls_user(here, argument.output, 0));
    return true;
}

LANE_CALLED bool nvls_all_gather(struct nvls &here)
{
    const struct cuda_nvls_argument &argument = *here.argument;
    uint64_t slice = nvls_slice(here, argument.rank);

    nvls_copy(here, nvls_user(here, argument.input, 0), argument.own + slice);
    multimem_fence();
    __syncthreads();
    for (uint64_t at = threadIdx.x; at < here.packs; at += blockDim.x) {
        wide_pack<uint32_t> own;
        struct multimem_pack pack;

        own.load(argument.own + slice, at * 4, span());
        for (int i = 0; i < 4; i++)
            pack.words[i] = own.words[i];
        multimem_store(argument.all + slice + at * WIDE_BYTES, pack);
    }
    if (!nvls_meet(here))
        return false;
    for (uint32_t rank = 0; rank < argument.size; rank++)
        nvls_copy(here, argument.own + nvls_slice(here, rank),
                  nvls_user(here, argument.output, rank));
    return true;
}

LANE_CALLED bool nvls_reduce_scatter(struct nvls &here)
{
    const struct cuda_nvls_argument &argument = *here.argument;
    const struct nvls_share share = {nvls_slice(here, argument.rank), 0, here.packs, false};

    for (uint32_t rank = 0; rank < argument.size; rank++)
        nvls_copy(here, nvls_user(here, argument.input, rank),
                  argument.own + nvls_slice(here, rank));
    if (!nvls_meet(here))
        return false;
    nvls_reduce(here, share);
    __syncthreads();
    nvls_copy(here, argument.own + share.from, nvls_user(here, argument.output, 0));
    return true;
}

LANE_FUNCTION bool nvls_piece(struct nvls &here)
{
    switch (here.argument->verb) {
    case CUDA_NVLS_ALL_REDUCE:
        return nvls_all_reduce(here);
    case CUDA_NVLS_ALL_GATHER:
        return nvls_all_gather(here);
    default:
        return nvls_reduce_scatter(here);
    }
}

/* ---- The launch ------------------------------------------------------------------------------ */

LANE_FUNCTION struct nvls nvls_open(const struct cuda_nvls_argument &argument)
{
    const struct cuda_nvls_block *block =
        reinterpret_cast<const struct cuda_nvls_block *>(argument.blocks) + blockIdx.x;
    uint64_t packs = (argument.bytes + WIDE_BYTES - 1) / WIDE_BYTES;
    uint64_t slices = argument.verb == CUDA_NVLS_ALL_REDUCE ? 1 : argument.size;
    struct nvls here = {};

    here.argument = &argument;
    here.meetings = block->meetings;
    here.pieces = block->pieces;
    here.begin = packs * blockIdx.x / gridDim.x;
    here.end = packs * (blockIdx.x + 1) / gridDim.x;
    here.each = CUDA_NVLS_HALF / WIDE_BYTES / slices;
    return here;
}

/* The last block of the launch says that all have ended. */
LANE_FUNCTION void nvls_close(const struct nvls &here)
{
    const struct cuda_nvls_argument &argument = *here.argument;
    struct cuda_nvls_block *block =
        reinterpret_cast<struct cuda_nvls_block *>(argument.blocks) + blockIdx.x;
    struct cuda_status *status = reinterpret_cast<struct cuda_status *>(argument.status);
    uint32_t *ended = reinterpret_cast<uint32_t *>(argument.ended);

    block->meetings = here.meetings;
    block->pieces = here.pieces;
    lane_fence();
    if (atomicAdd(ended, 1u) + 1 != gridDim.x)
        return;
    lane_store_relaxed(ended, 0u);
    lane_store_release(&status->state, (uint32_t)EXEC_DONE);
}

LANE_FUNCTION void nvls_run(const struct cuda_nvls_argument &argument)
{
    struct nvls here = nvls_open(argument);
    bool good = true;

    if (threadIdx.x == 0)
        lane_store_release(&reinterpret_cast<struct cuda_status *>(argument.status)->state,
                           (uint32_t)EXEC_BLOCKED);
    for (here.at = here.begin; here.at < here.end && good; here.at += here.packs) {
        here.packs = nvls_least(here.each, here.end - here.at);
        here.half =
            CUDA_NVLS_FLAGS + (2 * (uint64_t)blockIdx.x + here.pieces++ % 2) * CUDA_NVLS_HALF;
        good = nvls_piece(here);
    }
    if (good && argument.verb == CUDA_NVLS_REDUCE_SCATTER && here.begin < here.end)
        nvls_meet(here);
    __syncthreads();
    if (threadIdx.x == 0)
        nvls_close(here);
}

#else

/* Devices before sm_90 have no such instructions, and no launcher starts this there. */
LANE_FUNCTION void nvls_run(const struct cuda_nvls_argument &argument)
{
    (void)argument;
}

#endif

CUDA_KERNEL(rondo_nvls, struct cuda_nvls_argument, argument)
{
    nvls_run(argument);
}
