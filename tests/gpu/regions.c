/* SPDX-License-Identifier: BSD-3-Clause */
/* regions.c - which memory of a rank is mapped by its peers, and until when. */
#include "bodies.h"
#include "device.h"
#include "mapped.h"

#include "rondo/cuda.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LIVE = 45, ROUNDS = 70 };

static int count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;

    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count;
}

/* ---- Pieces ---------------------------------------------------------------------------------- */

struct two_pieces {
    int32_t *memory;
    size_t bytes; /* of each */
    bool counted; /* how many files are mapped is looked at */
};

/* One mapping for each peer and piece, however many calls there are; none when all is closed. */
static rondo_result map_once(struct gpu_rank *rank, const struct two_pieces *two)
{
    int others = rondo_comm_size(rank->comm) - 1;
    int32_t *memory = two->memory;
    int32_t *across = memory + two->bytes / sizeof(int32_t) - COUNT / 2;
    int before = mapped_files();                           /* with what ranks map at once */
    rondo_result result = rondo_barrier(rank->comm, NULL); /* all have counted */

    if (!result)
        result = mapped_sum(rank, across, 1);
    for (int i = 0; i < 10 && !result; i++)
        result = mapped_sum(rank, i % 2 ? memory + i : across + i, i);
    if (!result)
        result = mapped_expect_all(rank, memory, "the first piece");
    if (!result)
        result = mapped_expect_all(rank, memory + two->bytes / sizeof(int32_t), "the second piece");
    if (!result && two->counted && device_standin_stop() && mapped_files() != before + 2 * others)
        result = world_say(rank->sentence, RONDO_ERROR_INTERNAL, "%d files more than before",
                           mapped_files() - before);
    return result;
}

static rondo_result inner(struct gpu_rank *rank, rondo_result (*body)(struct gpu_rank *, void *),
                          void *argument)
{
    rondo_config config = RONDO_CONFIG_INIT;
    struct gpu_rank within = *rank;
    rondo_result result;

    config.cuda_device = rondo_comm_cuda_device(rank->comm);
    result = rondo_comm_split(rank->comm, 0, rondo_comm_rank(rank->comm), &config, &within.comm);
    if (result)
        return mapped_fail(rank, "split");
    result = body(&within, argument);
    if (!result)
        result = rondo_comm_finalize(within.comm);
    rondo_comm_close(within.comm);
    return result;
}

static size_t granularity(void)
{
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    size_t bytes = 0;

    device_driver()->cuMemGetAllocationGranularity(&bytes, &properties,
                                                   CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    return bytes;
}

static rondo_result map_pieces(struct gpu_rank *rank, void *two)
{
    return map_once(rank, two);
}

static rondo_result shares_pieces(struct gpu_rank *rank)
{
    struct two_pieces two = {.bytes = granularity()};
    int files, descriptors;
    rondo_result result;

    two.memory = pieces_alloc(2 * two.bytes, true);
    result = two.memory ? RONDO_OK : RONDO_ERROR_MEMORY;
    /* The first time there may be more: what communicators hand on to each other. */
    for (int i = 0; i < 3 && !result; i++) {
        files = mapped_files();
        descriptors = count_descriptors();
        two.counted = i > 0;
        result = inner(rank, map_pieces, &two);
        if (!result && i && (mapped_files() != files || count_descriptors() != descriptors))
            result = world_say(rank->sentence, RONDO_ERROR_INTERNAL,
                               "%d files were mapped, %d descriptors open; now %d and %d", files,
                               descriptors, mapped_files(), count_descriptors());
    }
    pieces_free(two.memory);
    return result;
}

rondo_result gpu_shares_pieces(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, shares_pieces);
}

/* Fails if this process may take files of the next rank. */
static rondo_result expect_closed(struct gpu_rank *rank)
{
    int size = rondo_comm_size(rank->comm), next = (rondo_comm_rank(rank->comm) + 1) % size;
    int64_t process = getpid(), processes[WORLD_RANKS];
    int file, taken;

    if (rondo_all_gather(&process, processes, 1, RONDO_INT64, rank->comm, NULL))
        return mapped_fail(rank, "all_gather");
    file = (int)syscall(SYS_pidfd_open, (pid_t)processes[next], 0);
    taken = (int)syscall(SYS_pidfd_getfd, file, 1, 0);
    close(file);
    if (taken < 0)
        return RONDO_OK;
    close(taken);
    return world_say(rank->sentence, RONDO_ERROR_INTERNAL, "the process is still open");
}

static rondo_result asks_for_pieces(struct gpu_rank *rank)
{
    struct two_pieces two = {.bytes = granularity(), .counted = true};
    rondo_result result = RONDO_OK;

    if (!world_hide())
        return world_say(rank->sentence, RONDO_ERROR_SYSTEM, "rights cannot be given up");
    if (rondo_barrier(rank->comm, NULL)) /* all are closed */
        return mapped_fail(rank, "barrier");
    result = expect_closed(rank);
    /* By the communicator that is there: the stand-in cannot open one more among such processes, as
     * its IPC handles are files of theirs. */
    two.memory = pieces_alloc(2 * two.bytes, true);
    if (!result)
        result = two.memory ? map_once(rank, &two) : RONDO_ERROR_MEMORY;
    pieces_free(two.memory);
    return result;
}

rondo_result gpu_asks_for_pieces(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, asks_for_pieces);
}

/* Peers do not get it: it is copied. */
static rondo_result sum_apart(struct gpu_rank *rank, bool shared)
{
    int32_t *memory = pieces_alloc(BYTES, shared);
    rondo_result result = memory ? RONDO_OK : RONDO_ERROR_MEMORY;

    if (!result && rondo_barrier(rank->comm, NULL)) /* all have theirs */
        result = mapped_fail(rank, "barrier");
    for (int i = 0; i < 5 && !result; i++)
        result = mapped_sum(rank, memory, i);
    if (!result)
        result = mapped_expect(rank, memory, 0, "memory that cannot be shared");
    if (!result)
        result = rondo_comm_finalize(rank->comm);
    pieces_free(memory);
    return result;
}

static rondo_result copies_closed(struct gpu_rank *rank)
{
    return sum_apart(rank, false);
}

rondo_result gpu_copies_closed_pieces(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, copies_closed);
}

static rondo_result copies_refused(struct gpu_rank *rank)
{
    return sum_apart(rank, true);
}

rondo_result gpu_copies_refused_pieces(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, copies_refused);
}

/* ---- Slots ----------------------------------------------------------------------------------- */

/* More allocations than there are slots, one after the other: all are shared, few stay mapped. */
static rondo_result recycles(struct gpu_rank *rank)
{
    int others = rondo_comm_size(rank->comm) - 1, before = mapped_files(), after;
    rondo_result result = RONDO_OK;

    for (int i = 0; i < ROUNDS && !result; i++) {
        enum device_memory kind = i % 3 ? MEMORY_DEVICE : MEMORY_PIECES;
        int32_t *memory = device_alloc(kind, BYTES);

        result = memory ? mapped_sum(rank, memory, i) : RONDO_ERROR_MEMORY;
        if (!result)
            result = mapped_sum(rank, memory, -i);
        if (!result)
            result = mapped_expect_all(rank, memory, "a new allocation");
        device_free(kind, memory);
    }
    after = mapped_files();
    /* The watchdog unmaps what was replaced when it finds nothing on its way. */
    for (int looks = 0; looks < 2000 && !result && after > before + others * 4; looks++) {
        usleep(10000);
        after = mapped_files();
    }
    if (!result && after > before + others * 4)
        result = world_say(rank->sentence, RONDO_ERROR_INTERNAL,
                           "%d files of freed memory are mapped", after - before);
    return result ? result : rondo_comm_finalize(rank->comm);
}

rondo_result gpu_recycles_slots(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, recycles);
}

/* More allocations than slots, all alive. Who was not used for long makes room. */
static rondo_result use_all(struct gpu_rank *rank, int32_t **memory)
{
    rondo_result result = RONDO_OK;

    for (int i = 0; i < LIVE && !result; i++)
        result = mapped_sum(rank, memory[i], i);
    if (!result)
        result = mapped_expect_all(rank, memory[0], "the first allocation");
    if (!result)
        result = mapped_expect(rank, memory[LIVE - 1], 0, "the last one, when slots are full");
    for (int i = 0; i < 300 && !result; i++)
        result = mapped_sum(rank, memory[0], i);
    for (int i = LIVE; i-- > 0 && !result;)
        result = mapped_sum(rank, memory[i], i);
    if (!result)
        result = mapped_expect_all(rank, memory[LIVE - 1], "the last one, later");
    return result ? result : rondo_comm_finalize(rank->comm);
}

static rondo_result replaces(struct gpu_rank *rank)
{
    int32_t *memory[LIVE] = {NULL};
    rondo_result result = RONDO_OK;

    for (int i = 0; i < LIVE && !result; i++)
        if (!(memory[i] = device_alloc(MEMORY_DEVICE, BYTES)))
            result = RONDO_ERROR_MEMORY;
    if (!result)
        result = use_all(rank, memory);
    for (int i = 0; i < LIVE; i++)
        device_free(MEMORY_DEVICE, memory[i]);
    return result;
}

rondo_result gpu_replaces_unused(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, replaces);
}

/* Memory is shown to a rank that captures on another stream, in the strictest mode. */
static rondo_result maps_beside_captures(struct gpu_rank *rank)
{
    const struct device_driver *cuda = device_driver();
    int32_t *memory[4] = {NULL};
    CUstream other;
    CUgraph graph;
    rondo_result result = RONDO_OK;

    for (int i = 0; i < 4; i++)
        memory[i] = device_alloc(i % 2 ? MEMORY_PIECES : MEMORY_DEVICE, BYTES);
    if (cuda->cuStreamCreate(&other, CU_STREAM_NON_BLOCKING) ||
        cuda->cuStreamBeginCapture(other, CU_STREAM_CAPTURE_MODE_GLOBAL))
        return mapped_fail(rank, "begin of capture");
    for (int i = 0; i < 4 && !result; i++)
        result = rondo_all_reduce(memory[i], memory[i], COUNT, RONDO_INT32, RONDO_MAX, rank->comm,
                                  rank->stream);
    if (result || cuda->cuStreamEndCapture(other, &graph))
        return mapped_fail(rank, "end of capture");
    cuda->cuGraphDestroy(graph);
    cuda->cuStreamDestroy(other);
    result = rondo_stream_synchronize(rank->stream);
    if (!result)
        result = rondo_comm_finalize(rank->comm);
    for (int i = 0; i < 4; i++)
        device_free(i % 2 ? MEMORY_PIECES : MEMORY_DEVICE, memory[i]);
    return result;
}

rondo_result gpu_maps_beside_captures(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, maps_beside_captures);
}
