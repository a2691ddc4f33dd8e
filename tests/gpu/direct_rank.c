/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * direct_rank.c - one rank of a job whose GPU buffers go over RDMA, for guests with soft-RoCE
 * (tests/vm): its adapter is that of the kernel, but for what the first argument says of memory of
 * a device; the second is what it does. Prints a line that begins with "rank"; ends with 0 if all
 * was right.
 *
 *     plain    nothing: it knows no dmabuf, and peer memory as far as memory is that of the process
 *     dmabuf   it knows dmabuf: what lies behind the file is mapped, and registered at the address
 *              that was asked for
 *     astray   the same, but it gets other memory, so bytes get lost
 *     window   the same as dmabuf, but it has room for 1 MiB of a device only
 *     refused  it knows dmabuf, but gives none
 *
 *     matrix CASES | messages | graphs | abort | calls
 */
#include "bodies.h"
#include "device.h"

#include "transport/verbs/calls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MAPPINGS = 256, WINDOW = 1 << 20 };

static const struct verbs_calls *real;
static struct verbs_calls own;
static const char *kind;
static struct {
    struct ibv_mr *mr;
    void *memory;
    size_t bytes;
} mappings[MAPPINGS];

static struct ibv_mr *reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t bytes, uint64_t iova,
                                    int fd, int access)
{
    int at = 0, flags = MAP_SHARED;
    struct ibv_mr *mr;
    char *memory;

    errno = EBADF;
    if (fd < 0)
        return NULL;
    errno = ENOMEM;
    while (at < MAPPINGS && mappings[at].mr)
        at++;
    if (at == MAPPINGS || !strcmp(kind, "refused") || (!strcmp(kind, "window") && bytes > WINDOW))
        return NULL;
    if (!strcmp(kind, "astray"))
        flags = MAP_PRIVATE;
    memory = mmap(NULL, offset + bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (memory == MAP_FAILED)
        return NULL;
    mr = real->reg_mr_iova2(pd, memory + offset, bytes, iova, (unsigned)access);
    if (!mr) {
        munmap(memory, offset + bytes);
        return NULL;
    }
    mappings[at].mr = mr;
    mappings[at].memory = memory;
    mappings[at].bytes = offset + bytes;
    return mr;
}

static int dereg_mr(struct ibv_mr *mr)
{
    int at = 0, error = real->dereg_mr(mr);

    while (at < MAPPINGS && mappings[at].mr != mr)
        at++;
    if (at < MAPPINGS) {
        munmap(mappings[at].memory, mappings[at].bytes);
        mappings[at].mr = NULL;
    }
    return error;
}

static rondo_result use_adapter(void)
{
    rondo_result result = verbs_load(&real);

    if (result)
        return result;
    own = *real;
    own.reg_dmabuf_mr = strcmp(kind, "plain") ? reg_dmabuf_mr : NULL;
    own.dereg_mr = dereg_mr;
    verbs_load_instead(&own);
    return RONDO_OK;
}

/* ---- What it does ---------------------------------------------------------------------------- */

enum { COUNT = 1 << 20, CALLS_MOST = 100000 };

/* Long calls, until one fails. */
static rondo_result call_for_ever(struct gpu_rank *rank)
{
    float *memory = device_alloc(MEMORY_DEVICE, COUNT * sizeof(*memory));
    rondo_result result = memory ? RONDO_OK : RONDO_ERROR_MEMORY;

    for (int call = 0; call < CALLS_MOST && !result; call++) {
        result = rondo_all_reduce(memory, memory, COUNT, RONDO_FLOAT32, RONDO_MAX, rank->comm,
                                  rank->stream);
        if (!result)
            result = rondo_stream_synchronize(rank->stream);
        if (call == 3) {
            printf("rank %d calls\n", rondo_comm_rank(rank->comm));
            fflush(stdout);
        }
    }
    printf("rank %d: after calls: %s\n", rondo_comm_rank(rank->comm), rondo_last_error(rank->comm));
    return result;
}

static rondo_result calls(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, call_for_ever);
}

static world_body find_body(const char *what)
{
    static const struct {
        const char *name;
        world_body body;
    } bodies[] = {{"matrix", gpu_matrix},
                  {"messages", gpu_exchanges_messages},
                  {"graphs", gpu_replays_graphs},
                  {"abort", gpu_aborts_in_flight},
                  {"calls", calls}};

    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
        if (!strcmp(bodies[i].name, what))
            return bodies[i].body;
    return NULL;
}

int main(int argc, char **argv)
{
    static char sentence[WORLD_SENTENCE];
    struct gpu_scene scene = {.devices = 1, .cases = argc > 3 ? atoi(argv[3]) : 40};
    world_body body = argc > 2 ? find_body(argv[2]) : NULL;
    rondo_comm *comm = NULL;
    rondo_result result;

    kind = argc > 1 ? argv[1] : "";
    if (!body)
        return 2;
    result = use_adapter();
    if (!result)
        result = rondo_comm_open(NULL, &comm);
    if (result) {
        printf("rank ?: %s\n", rondo_last_error(NULL));
        return 1;
    }
    result = body(comm, &scene, sentence);
    printf("rank %d of %d: %s: %s\n", rondo_comm_rank(comm), rondo_comm_size(comm), argv[2],
           result ? sentence : "good");
    rondo_comm_close(comm);
    return result != RONDO_OK;
}
