/* SPDX-License-Identifier: BSD-3-Clause */
/* bodies.h - what ranks do in the tests of this folder; each is a world_body (tests/world.h). */
#ifndef RONDO_TESTS_GPU_BODIES_H
#define RONDO_TESTS_GPU_BODIES_H

#include "../world.h"

/*
 * To be called before graphs of ranks that are threads on one device are launched. What a rank
 * launches behind a call, in the same graph, waits for the call, and so for the graph of its peer,
 * which the peer's thread launches. Were that queued in the same hardware channel, behind it, it
 * would never begin, on a GPU neither: such a program has to set CUDA_DEVICE_MAX_CONNECTIONS, and
 * so do these tests.
 */
void gpu_gives_graphs_channels(void);
/* Runs it on two devices, with these channels, as what a test does not hold must not be queued
 * behind what it does. NULL: all ranks passed; else what they said. */
const char *gpu_ranks_fail(world_body body, int size, bool processes, bool host);
/* Ranks that are threads and all on one device launch no graphs in tests: these have branches, and
 * no number of channels is enough, as no driver says which channels branches get. */
bool gpu_threads_launch_graphs(int size);

/* How ranks are spread over devices, and which calls they make; the argument of a body. */
struct gpu_scene {
    int devices; /* rank r is on device r modulo this, or what the machine has if that is less */
    bool host;   /* calls go by way of the host */
    int cases;   /* of the matrix; or elements of a call */
    int collectives;     /* so many of them, in their order */
    bool pieces;         /* ... all on memory of virtual memory management */
    int victim;          /* the rank that is killed, or whose driver refuses; -1: all */
    const char *hold;    /* of the victim: CUDA_STANDIN_HOLD */
    const char *hold_at; /* the barrier, as CUDA_STANDIN_HOLD_AT */
    const char *failing; /* the driver's calls that fail there, as CUDA_STANDIN_FAIL; or NULL */
    int *passed; /* shared: [rank] 1 if it passed, where the world cannot end well; or NULL */
};

/*
 * Ranks with devices: open a communicator of them inside of another, run `body` with it, a stream
 * over a CUDA stream of its own, close.
 */
struct gpu_rank {
    rondo_comm *comm, *outer;
    void *cuda_stream;
    rondo_stream *stream;
    const struct gpu_scene *scene;
    char *sentence;
};
typedef rondo_result (*gpu_body)(struct gpu_rank *rank);
rondo_result gpu_rank_run(rondo_comm *comm, const struct gpu_scene *scene, char *sentence,
                          gpu_body body);
/* The late rank comes back when those threads, one of each other rank, are in the wait of what they
 * do next, the others at once. It fails if one of the threads has ended instead. */
rondo_result gpu_come_late(struct gpu_rank *rank, bool late, pid_t thread);

/* matrix.c: calls of all collectives on all kinds of memory, every byte of them checked. */
rondo_result gpu_matrix(rondo_comm *comm, void *scene, char *sentence);

/* calls.c */
rondo_result gpu_orders_streams(rondo_comm *comm, void *scene, char *sentence);
rondo_result gpu_replays_graphs(rondo_comm *comm, void *scene, char *sentence);
rondo_result gpu_moves_beside_captures(rondo_comm *comm, void *scene, char *sentence);
rondo_result gpu_exchanges_messages(rondo_comm *comm, void *scene, char *sentence);
rondo_result gpu_blocks_on_device_memory(rondo_comm *comm, void *scene, char *sentence);
rondo_result gpu_tolerates_long_counts(rondo_comm *comm, void *scene, char *sentence);

/* branches.c */
rondo_result gpu_forks_graphs(rondo_comm *comm, void *scene, char *sentence);
rondo_result gpu_mixes_graphs(rondo_comm *comm, void *scene, char *sentence);
rondo_result gpu_shares_handles(rondo_comm *comm, void *scene, char *sentence);

/* same_bits.c */
rondo_result gpu_keeps_bits(rondo_comm *comm, void *scene, char *sentence);

/* regions.c */
rondo_result gpu_shares_pieces(rondo_comm *comm, void *scene, char *sentence);
rondo_result gpu_asks_for_pieces(rondo_comm *comm, void *scene, char *sentence);
rondo_result gpu_copies_closed_pieces(rondo_comm *comm, void *scene, char *sentence);
rondo_result gpu_copies_refused_pieces(rondo_comm *comm, void *scene, char *sentence);
rondo_result gpu_recycles_slots(rondo_comm *comm, void *scene, char *sentence);
rondo_result gpu_replaces_unused(rondo_comm *comm, void *scene, char *sentence);
rondo_result gpu_maps_beside_captures(rondo_comm *comm, void *scene, char *sentence);

/* contexts.c */
rondo_result gpu_waits_without_context(rondo_comm *comm, void *scene, char *sentence);
rondo_result gpu_waits_from_other_device(rondo_comm *comm, void *scene, char *sentence);
rondo_result gpu_finds_devices(rondo_comm *comm, void *scene, char *sentence);

/* refusals.c */
rondo_result gpu_goes_without_handles(rondo_comm *comm, void *scene, char *sentence);

/* frees_behind.c */
rondo_result gpu_frees_behind_calls(rondo_comm *comm, void *scene, char *sentence);
rondo_result gpu_frees_behind_long_calls(rondo_comm *comm, void *scene, char *sentence);
rondo_result gpu_frees_behind_many_messages(rondo_comm *comm, void *scene, char *sentence);

/* leavings.c */
rondo_result gpu_leaves_with_a_held_peer(rondo_comm *comm, void *scene, char *sentence);
rondo_result gpu_leaves_with_a_peer_at_work(rondo_comm *comm, void *scene, char *sentence);
rondo_result gpu_leaves_with_a_stopped_peer(rondo_comm *comm, void *scene, char *sentence);

/* failures.c */
rondo_result gpu_aborts_in_flight(rondo_comm *comm, void *scene, char *sentence);
rondo_result gpu_streams_tell_of_cut_calls(rondo_comm *comm, void *scene, char *sentence);
rondo_result gpu_streams_keep_ended_calls(rondo_comm *comm, void *scene, char *sentence);
rondo_result gpu_ends_calls_on_host_memory(rondo_comm *comm, void *scene, char *sentence);
rondo_result gpu_finds_mismatches(rondo_comm *comm, void *scene, char *sentence);
rondo_result gpu_misses_a_closed_rank(rondo_comm *comm, void *scene, char *sentence);
rondo_result gpu_survives_a_death(rondo_comm *comm, void *scene, char *sentence);
rondo_result gpu_aborts_graphs(rondo_comm *comm, void *scene, char *sentence);
rondo_result gpu_graphs_survive_a_death(rondo_comm *comm, void *scene, char *sentence);

/* groups.c. All ranks in the calling thread, in groups; on one stream or on one each. */
rondo_result gpu_runs_in_one_thread(int size, bool one_stream, char *sentence);

#endif
