/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reads_bodies.c - ranks that disagree about reading across processes.
 *
 * Ranks are threads here that are told to take each other for processes: a plain address is not
 * mapped, and a read is a copy that is counted. What a rank thinks of reading is written into its
 * choice before each call.
 */
#include "reads_bodies.h"

#include "comm/engine/choose.h"
#include "comm/engine/reach.h"
#include "comm/engine/threads.h"
#include "comm/state/address.h"
#include "comm/state/comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 4, COUNT = 1000, SENTENCE = 256 };

/* Those of which the plan reads, and no sums. */
static const rondo_collective readers[] = {RONDO_BROADCAST, RONDO_ALL_GATHER, RONDO_ALL_TO_ALL,
                                           RONDO_GATHER, RONDO_SCATTER};
enum { READERS = sizeof(readers) / sizeof(readers[0]) };

struct rank {
    rondo_comm *comm;
    int noisy_calls; /* 0: all sets of ranks that hide */
    unsigned calls;
    bool shares; /* its buffers are mapped, so it has nothing to hide */
    unsigned char *plain[2], *mapped[2];
    unsigned char *input, *output; /* of the present call */
    char wrong[SENTENCE];
};

/* One call, the same on all ranks. */
struct round {
    rondo_collective collective;
    int root;
    size_t count;
    bool in_place;
    unsigned hiding; /* bit 1 << rank */
};

/* ---- Ranks that seem to be processes --------------------------------------------------------- */

static _Thread_local int reads, reads_of_all_calls;

static void resolve(struct exec_world *world, int peer, const struct link_addresses *said,
                    const size_t bytes[2], struct exec_peer *ret_peer)
{
    comm_world_ops.resolve(world, peer, said, bytes, ret_peer);
    if (ret_peer->remote_input)
        ret_peer->input = NULL;
    if (said->output_kind == ADDRESS_PLAIN)
        ret_peer->output = NULL;
}

static rondo_result read_plain(struct exec_world *world, int peer, void *to, uint64_t from,
                               size_t bytes)
{
    (void)world;
    (void)peer;
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    reads++;
    return RONDO_OK;
}

static const struct exec_world_ops ops = {.resolve = resolve, .read = read_plain};

static void play_process(rondo_comm *comm)
{
    comm->one_process = false;
    comm->tuning.reads_across = comm->tuning.tries_reads = true;
    comm->world.ops = &ops;
    /* Steps cost nothing and bytes do, so what copies least is chosen: reading. */
    comm->tuning.costs.latency = 1e-15;
    comm->tuning.costs.copy_bw = comm->tuning.costs.direct_bw = comm->tuning.costs.reduce_bw = 1e9;
    memset(comm->choices.slots, 0, sizeof(comm->choices.slots));
}

/* ---- Data ------------------------------------------------------------------------------------ */

static unsigned char byte_of(unsigned call, int rank, size_t at)
{
    return (unsigned char)(call * 31 + (unsigned)rank * 97 + at * 7 + at / 256);
}

static bool is_rooted(rondo_collective collective)
{
    return collective != RONDO_ALL_GATHER && collective != RONDO_ALL_TO_ALL;
}

/* True if peers read this rank's input. */
static bool is_read(const struct round *round, int rank)
{
    return rank == round->root ||
           (round->collective != RONDO_BROADCAST && round->collective != RONDO_SCATTER);
}

static bool gets_output(const struct round *round, int rank)
{
    return rank == round->root || round->collective != RONDO_GATHER;
}

static void place_buffers(const struct round *round, struct rank *rank)
{
    unsigned char **memory = rank->shares ? rank->mapped : rank->plain;
    size_t own = (size_t)rank->comm->rank * round->count;
    bool joins = round->collective == RONDO_ALL_GATHER || round->collective == RONDO_GATHER;

    rank->input = memory[0];
    rank->output = memory[1];
    if (!round->in_place || !gets_output(round, rank->comm->rank))
        return;
    rank->output = rank->input + (round->collective == RONDO_SCATTER ? own : 0);
    rank->input += joins ? own : 0;
}

static void fill(const struct round *round, struct rank *rank)
{
    bool blocks = round->collective == RONDO_SCATTER || round->collective == RONDO_ALL_TO_ALL;
    size_t bytes = round->count * (size_t)(blocks ? rank->comm->size : 1);

    memset(rank->plain[1], 0x5a, COUNT * RANKS);
    memset(rank->mapped[1], 0x5a, COUNT * RANKS);
    for (size_t i = 0; i < bytes; i++)
        rank->input[i] = byte_of(rank->calls, rank->comm->rank, i);
}

/* Block `block` of the output is that block of that rank's input. */
static bool has(const struct round *round, const struct rank *rank, int block, int from,
                int from_block)
{
    for (size_t i = 0; i < round->count; i++)
        if (rank->output[(size_t)block * round->count + i] !=
            byte_of(rank->calls, from, (size_t)from_block * round->count + i))
            return false;
    return true;
}

static bool is_right(const struct round *round, const struct rank *rank)
{
    int self = rank->comm->rank;
    bool right = true;

    switch (round->collective) {
    case RONDO_BROADCAST:
        return has(round, rank, 0, round->root, 0);
    case RONDO_SCATTER:
        return has(round, rank, 0, round->root, self);
    default:
        for (int peer = 0; peer < rank->comm->size && gets_output(round, self); peer++)
            right = right &&
                    has(round, rank, peer, peer, round->collective == RONDO_ALL_TO_ALL ? self : 0);
        return right;
    }
}

/* ---- One call -------------------------------------------------------------------------------- */

/* The last rank's memory may be mapped; all know. */
static bool rank_shares(const struct rank *rank, int other)
{
    return rank->calls / 2 % 2 && other == rank->comm->size - 1;
}

/* From how many peers this rank has to read, if nobody hides; from none, if one does. */
static int wanted_reads(const struct round *round, const struct rank *rank)
{
    int count = 0;

    for (int peer = 0; peer < rank->comm->size; peer++) {
        bool plain = is_read(round, peer) && !rank_shares(rank, peer);

        if (plain && round->hiding & 1u << peer)
            return 0;
        count += plain && peer != rank->comm->rank && gets_output(round, rank->comm->rank);
    }
    return count;
}

/* Returns the place where the call will find what this rank thinks of reading. */
static struct trial *opinion(const struct round *round, struct rank *rank)
{
    const struct choice_key key = {.collective = round->collective,
                                   .type = RONDO_UINT8,
                                   .root = is_rooted(round->collective) ? round->root : 0,
                                   .count = round->count};
    struct choice *choice;

    if (choose(rank->comm, &key, &choice))
        return NULL;
    return choice->plan->address_messages ? &choice->reads : NULL;
}

static void complain(const struct round *round, struct rank *rank, const char *what)
{
    snprintf(rank->wrong, sizeof(rank->wrong),
             "%s of %zu, root %d%s, hiding %x, rank %d of %d, call %u: %s",
             rondo_collective_name(round->collective), round->count, round->root,
             round->in_place ? ", in place" : "", round->hiding, rank->comm->rank, rank->comm->size,
             rank->calls, what);
}

static rondo_result make_call(const struct round *round, struct rank *rank)
{
    const rondo_call call = {.struct_size = sizeof(call),
                             .collective = round->collective,
                             .type = RONDO_UINT8,
                             .root = round->root,
                             .input = rank->input,
                             .output = rank->output,
                             .count = round->count,
                             .comm = rank->comm};

    reads = 0;
    if (rondo_collective_call(&call))
        complain(round, rank, rondo_last_error(rank->comm));
    else if (!is_right(round, rank))
        complain(round, rank, "a wrong result");
    reads_of_all_calls += reads;
    return rank->wrong[0] ? RONDO_ERROR_INTERNAL : RONDO_OK;
}

static void begin(const struct round *round, struct rank *rank)
{
    rank->calls++;
    rank->shares = rank_shares(rank, rank->comm->rank);
    place_buffers(round, rank);
    fill(round, rank);
}

/* ---- Every set of ranks that hide ------------------------------------------------------------ */

static rondo_result hide_or_not(const struct round *round, struct rank *rank)
{
    bool hides = round->hiding >> rank->comm->rank & 1;
    struct trial *reads_here;
    char text[64];

    begin(round, rank);
    reads_here = opinion(round, rank);
    if (!reads_here) {
        complain(round, rank, "its plan does not read");
        return RONDO_ERROR_INTERNAL;
    }
    reads_here->trying = false; /* between two trials */
    reads_here->until = 10;
    reads_here->now = hides ? READS_STAGED : READS_ACROSS;
    if (make_call(round, rank))
        return RONDO_ERROR_INTERNAL;
    if (reads == wanted_reads(round, rank))
        return RONDO_OK;
    snprintf(text, sizeof(text), "%d reads, not %d", reads, wanted_reads(round, rank));
    complain(round, rank, text);
    return RONDO_ERROR_INTERNAL;
}

static rondo_result hide_in_all_sets(struct rank *rank)
{
    int size = rank->comm->size;
    rondo_result result = RONDO_OK;

    for (int i = 0; i < READERS; i++)
        for (int root = 0; root < (is_rooted(readers[i]) ? size : 1); root++)
            for (int way = 0; way < (readers[i] == RONDO_ALL_TO_ALL ? 2 : 4); way++)
                /* Each set is followed by the empty one: what is left over would be met there. */
                for (unsigned set = 0; set < 2u << size && !result; set++) {
                    const struct round round = {.collective = readers[i],
                                                .root = root,
                                                .count = way % 2 ? COUNT : 3,
                                                .in_place = way / 2,
                                                .hiding = set % 2 ? set / 2 : 0};
                    result = hide_or_not(&round, rank);
                }
    return result;
}

/* ---- Noise ----------------------------------------------------------------------------------- */

static unsigned noise(unsigned a, unsigned b)
{
    return (a * 2654435761u ^ b * 2246822519u) * 3266489917u >> 16;
}

/* Rondo decides what is tried in which call; all ranks forget now and then, at other times. */
static rondo_result measure_noise(struct rank *rank)
{
    unsigned self = (unsigned)rank->comm->rank;
    rondo_result result = RONDO_OK;

    for (int call = 0; call < rank->noisy_calls && !result; call++) {
        const struct round round = {.collective = readers[noise((unsigned)call, 9) % READERS],
                                    .root = call % rank->comm->size,
                                    .count = COUNT};
        struct trial *reads_here;

        begin(&round, rank);
        reads_here = opinion(&round, rank);
        if (reads_here) {
            reads_here->times[READS_ACROSS] = noise((unsigned)call, self);
            reads_here->times[READS_STAGED] = noise((unsigned)call, self + RANKS);
            if (noise((unsigned)call, self + 2 * RANKS) % 8 == 0) {
                reads_here->trying = noise((unsigned)call, self + 5 * RANKS) % 2;
                reads_here->until = 1 + noise((unsigned)call, self + 3 * RANKS) % 4;
                reads_here->now = noise((unsigned)call, self + 4 * RANKS) % 2;
            }
        }
        result = make_call(&round, rank);
    }
    if (!result && self == 1 && !reads_of_all_calls) {
        snprintf(rank->wrong, sizeof(rank->wrong), "nothing was read in any call");
        result = RONDO_ERROR_INTERNAL;
    }
    return result;
}

/* ---- Ranks ----------------------------------------------------------------------------------- */

static rondo_result allocate(struct rank *rank)
{
    for (int i = 0; i < 2; i++) {
        void *memory = NULL;

        rank->plain[i] = malloc(COUNT * RANKS);
        if (!rank->plain[i] || rondo_mem_alloc(COUNT * RANKS, &memory))
            return RONDO_ERROR_MEMORY;
        rank->mapped[i] = memory;
    }
    return RONDO_OK;
}

static rondo_result run_rank(void *argument)
{
    struct rank *rank = argument;

    reads_of_all_calls = 0;
    play_process(rank->comm);
    return rank->noisy_calls ? measure_noise(rank) : hide_in_all_sets(rank);
}

static const char *run(int size, int noisy_calls)
{
    static char wrong[SENTENCE];
    rondo_config config = RONDO_CONFIG_INIT;
    struct rank ranks[RANKS] = {{0}};
    void *arguments[RANKS];
    rondo_comm *comms[RANKS];
    rondo_result result;

    wrong[0] = 0;
    config.timeout = 10; /* ranks that wait for each other say so */
    config.algorithm = noisy_calls ? NULL : "zero_copy";
    if (rondo_comm_open_all(size, &config, comms))
        return rondo_last_error(NULL);
    result = RONDO_OK;
    for (int r = 0; r < size; r++) {
        ranks[r].comm = comms[r];
        ranks[r].noisy_calls = noisy_calls;
        arguments[r] = &ranks[r];
        result = result ? result : allocate(&ranks[r]);
    }
    if (!result)
        result = threads_run(run_rank, arguments, size);
    for (int r = 0; r < size; r++) {
        if (!wrong[0])
            memcpy(wrong, ranks[r].wrong, sizeof(wrong));
        rondo_comm_close(comms[r]);
        for (int i = 0; i < 2; i++) {
            free(ranks[r].plain[i]);
            rondo_mem_free(ranks[r].mapped[i]);
        }
    }
    return wrong[0] ? wrong : result ? "no memory" : NULL;
}

const char *ranks_may_hide_in_any_set(int size)
{
    return run(size, 0);
}

const char *ranks_may_measure_anything(int size, int calls)
{
    return run(size, calls);
}
