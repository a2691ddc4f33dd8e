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
struct trial {
    rondo_collective collective;
    int root;
    size_t count;
    bool in_place;
    unsigned hiding; /* bit 1 << rank */
    const char *algorithm;
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
    comm->settings.reads_across = comm->settings.tries_reads = true;
    comm->world.ops = &ops;
    /* Steps cost nothing and bytes do, so what copies least is chosen: reading. */
    comm->costs.latency = 1e-15;
    comm->costs.copy_bw = comm->costs.direct_bw = comm->costs.reduce_bw = 1e9;
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

/* Do peers read this rank's input? */
static bool is_read(const struct trial *trial, int rank)
{
    return rank == trial->root ||
           (trial->collective != RONDO_BROADCAST && trial->collective != RONDO_SCATTER);
}

static bool gets_output(const struct trial *trial, int rank)
{
    return rank == trial->root || trial->collective != RONDO_GATHER;
}

static void place_buffers(const struct trial *trial, struct rank *rank)
{
    unsigned char **memory = rank->shares ? rank->mapped : rank->plain;
    size_t own = (size_t)rank->comm->rank * trial->count;
    bool joins = trial->collective == RONDO_ALL_GATHER || trial->collective == RONDO_GATHER;

    rank->input = memory[0];
    rank->output = memory[1];
    if (!trial->in_place || !gets_output(trial, rank->comm->rank))
        return;
    rank->output = rank->input + (trial->collective == RONDO_SCATTER ? own : 0);
    rank->input += joins ? own : 0;
}

static void fill(const struct trial *trial, struct rank *rank)
{
    bool blocks = trial->collective == RONDO_SCATTER || trial->collective == RONDO_ALL_TO_ALL;
    size_t bytes = trial->count * (size_t)(blocks ? rank->comm->size : 1);

    memset(rank->plain[1], 0x5a, COUNT * RANKS);
    memset(rank->mapped[1], 0x5a, COUNT * RANKS);
    for (size_t i = 0; i < bytes; i++)
        rank->input[i] = byte_of(rank->calls, rank->comm->rank, i);
}

/* Block `block` of the output is that block of that rank's input. */
static bool has(const struct trial *trial, const struct rank *rank, int block, int from,
                int from_block)
{
    for (size_t i = 0; i < trial->count; i++)
        if (rank->output[(size_t)block * trial->count + i] !=
            byte_of(rank->calls, from, (size_t)from_block * trial->count + i))
            return false;
    return true;
}

static bool is_right(const struct trial *trial, const struct rank *rank)
{
    int self = rank->comm->rank;
    bool right = true;

    switch (trial->collective) {
    case RONDO_BROADCAST:
        return has(trial, rank, 0, trial->root, 0);
    case RONDO_SCATTER:
        return has(trial, rank, 0, trial->root, self);
    default:
        for (int peer = 0; peer < rank->comm->size && gets_output(trial, self); peer++)
            right = right &&
                    has(trial, rank, peer, peer, trial->collective == RONDO_ALL_TO_ALL ? self : 0);
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
static int wanted_reads(const struct trial *trial, const struct rank *rank)
{
    int count = 0;

    for (int peer = 0; peer < rank->comm->size; peer++) {
        bool plain = is_read(trial, peer) && !rank_shares(rank, peer);

        if (plain && trial->hiding & 1u << peer)
            return 0;
        count += plain && peer != rank->comm->rank && gets_output(trial, rank->comm->rank);
    }
    return count;
}

/* Where the call will find what this rank thinks of reading. */
static struct reads *opinion(const struct trial *trial, struct rank *rank)
{
    const struct choice_key key = {.collective = trial->collective,
                                   .type = RONDO_UINT8,
                                   .root = is_rooted(trial->collective) ? trial->root : 0,
                                   .count = trial->count,
                                   .algorithm = trial->algorithm};
    struct choice *choice;

    if (choose(rank->comm, &key, &choice))
        return NULL;
    return choice->plan->address_messages ? &choice->reads : NULL;
}

static void complain(const struct trial *trial, struct rank *rank, const char *what)
{
    snprintf(rank->wrong, sizeof(rank->wrong),
             "%s of %zu, root %d%s, hiding %x, rank %d of %d, call %u: %s",
             rondo_collective_name(trial->collective), trial->count, trial->root,
             trial->in_place ? ", in place" : "", trial->hiding, rank->comm->rank, rank->comm->size,
             rank->calls, what);
}

static rondo_result make_call(const struct trial *trial, struct rank *rank)
{
    const rondo_call call = {.struct_size = sizeof(call),
                             .collective = trial->collective,
                             .type = RONDO_UINT8,
                             .root = trial->root,
                             .input = rank->input,
                             .output = rank->output,
                             .count = trial->count,
                             .comm = rank->comm,
                             .algorithm = trial->algorithm};

    reads = 0;
    if (rondo_collective_call(&call))
        complain(trial, rank, rondo_last_error(rank->comm));
    else if (!is_right(trial, rank))
        complain(trial, rank, "a wrong result");
    reads_of_all_calls += reads;
    return rank->wrong[0] ? RONDO_ERROR_INTERNAL : RONDO_OK;
}

static void begin(const struct trial *trial, struct rank *rank)
{
    rank->calls++;
    rank->shares = rank_shares(rank, rank->comm->rank);
    place_buffers(trial, rank);
    fill(trial, rank);
}

/* ---- Every set of ranks that hide ------------------------------------------------------------ */

static rondo_result hide_or_not(const struct trial *trial, struct rank *rank)
{
    bool hides = trial->hiding >> rank->comm->rank & 1;
    struct reads *reads_here;
    char text[64];

    begin(trial, rank);
    reads_here = opinion(trial, rank);
    if (!reads_here) {
        complain(trial, rank, "its plan does not read");
        return RONDO_ERROR_INTERNAL;
    }
    *reads_here = (struct reads){10, hides ? 2 : 1, hides ? 1 : 2}; /* between two trials */
    if (make_call(trial, rank))
        return RONDO_ERROR_INTERNAL;
    if (reads == wanted_reads(trial, rank))
        return RONDO_OK;
    snprintf(text, sizeof(text), "%d reads, not %d", reads, wanted_reads(trial, rank));
    complain(trial, rank, text);
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
                    const struct trial trial = {.collective = readers[i],
                                                .root = root,
                                                .count = way % 2 ? COUNT : 3,
                                                .in_place = way / 2,
                                                .hiding = set % 2 ? set / 2 : 0,
                                                .algorithm = "zero_copy"};
                    result = hide_or_not(&trial, rank);
                }
    return result;
}

/* ---- Noise ----------------------------------------------------------------------------------- */

static unsigned noise(unsigned a, unsigned b)
{
    return (a * 2654435761u ^ b * 2246822519u) * 3266489917u >> 16;
}

/* What is tried in which call is left to Rondo; all ranks forget now and then, at other times. */
static rondo_result measure_noise(struct rank *rank)
{
    unsigned self = (unsigned)rank->comm->rank;
    rondo_result result = RONDO_OK;

    for (int call = 0; call < rank->noisy_calls && !result; call++) {
        const struct trial trial = {.collective = readers[noise((unsigned)call, 9) % READERS],
                                    .root = call % rank->comm->size,
                                    .count = COUNT};
        struct reads *reads_here;

        begin(&trial, rank);
        reads_here = opinion(&trial, rank);
        if (reads_here) {
            reads_here->across = noise((unsigned)call, self);
            reads_here->staged = noise((unsigned)call, self + RANKS);
            if (noise((unsigned)call, self + 2 * RANKS) % 8 == 0)
                reads_here->attempts = noise((unsigned)call, self + 3 * RANKS);
        }
        result = make_call(&trial, rank);
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
