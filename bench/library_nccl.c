/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * library_nccl.c - NCCL as the benchmark sees it, or whatever has its interface: the library is
 * loaded at run time, so that nothing has to be there when Rondo is built.
 *
 * Ranks learn the id by a file in the meeting place, or from each other, if they are threads. What
 * NCCL has no call for before version 2.28 is made of sends and receives in a group.
 */
#include "bench/library.h"

#include "bench/device.h"
#include "bench/pattern.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    NONE = -1,
    SHARING_VERSION = 23000, /* from here on, NCCL can be told to let ranks share a GPU */
    SPARE_BYTES = 256,
    ID_TRIES = 6000, /* of 10 ms */
    WORDS = 256
};

/* ---- The interface --------------------------------------------------------------------------- */

struct nccl_id {
    char bytes[128];
};
typedef struct ncclComm *nccl_comm;

static struct {
    int (*GetVersion)(int *version);
    int (*GetUniqueId)(struct nccl_id *id);
    int (*CommInitRank)(nccl_comm *comm, int size, struct nccl_id id, int rank);
    int (*CommDestroy)(nccl_comm comm);
    const char *(*GetErrorString)(int code);
    const char *(*GetLastError)(nccl_comm comm);
    int (*AllReduce)(const void *, void *, size_t, int type, int op, nccl_comm, void *stream);
    int (*Reduce)(const void *, void *, size_t, int type, int op, int root, nccl_comm, void *);
    int (*Broadcast)(const void *, void *, size_t, int type, int root, nccl_comm, void *);
    int (*AllGather)(const void *, void *, size_t, int type, nccl_comm, void *);
    int (*ReduceScatter)(const void *, void *, size_t, int type, int op, nccl_comm, void *);
    int (*Send)(const void *, size_t, int type, int peer, nccl_comm, void *);
    int (*Recv)(void *, size_t, int type, int peer, nccl_comm, void *);
    int (*GroupStart)(void);
    int (*GroupEnd)(void);
} nccl;

static int version_number;
static char path[WORDS];          /* of the library */
static char open_sentence[WORDS]; /* what stands in the way of a communicator, for all ranks */
static struct nccl_id thread_id;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

struct state {
    nccl_comm comm;
    struct device *device;
    int rank, size;
    void *spare;
    char refusal[WORDS]; /* why this library does not do what is asked for; "": it does */
    char error[2 * WORDS];
};

#define FIND(name)               \
    {                            \
        "nccl" #name, &nccl.name \
    }

static int find_functions(void *library)
{
    static const struct {
        const char *name;
        void *place;
    } wanted[] = {FIND(GetVersion), FIND(GetUniqueId),    FIND(CommInitRank),  FIND(CommDestroy),
                  FIND(AllReduce),  FIND(GetErrorString), FIND(GetLastError),  FIND(Reduce),
                  FIND(Broadcast),  FIND(AllGather),      FIND(ReduceScatter), FIND(Send),
                  FIND(Recv),       FIND(GroupStart),     FIND(GroupEnd)};

    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        void *function = dlsym(library, wanted[i].name);
        Dl_info info;

        if (!function) {
            snprintf(open_sentence, sizeof(open_sentence), "%.180s has no %s: is it too old?", path,
                     wanted[i].name);
            return -1;
        }
        if (i == 0 && dladdr(function, &info) && info.dli_fname)
            snprintf(path, sizeof(path), "%s", info.dli_fname);
        memcpy(wanted[i].place, &function, sizeof(function));
    }
    return nccl.GetVersion(&version_number);
}

/* By the first rank of a process; 0, or -1 and `open_sentence`. */
static int load(const struct bench_place *place)
{
    static bool tried;
    const char *name = place->file ? place->file : "libnccl.so.2";
    void *library;

    if (tried)
        return *open_sentence ? -1 : 0;
    tried = true;
    if (place->size > device_count(place->device))
        setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 0);
    snprintf(path, sizeof(path), "%s", name);
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(open_sentence, sizeof(open_sentence),
                 "NCCL cannot be loaded (%.180s): install it, or name its file with --nccl",
                 dlerror());
        return -1;
    }
    if (find_functions(library) && !*open_sentence)
        snprintf(open_sentence, sizeof(open_sentence), "%.200s does not tell its version", path);
    return *open_sentence ? -1 : 0;
}

static void version(char *text, size_t room)
{
    snprintf(text, room, "NCCL %d.%d.%d (%s)", version_number / 10000, version_number / 100 % 100,
             version_number % 100, path);
}

/* ---- Joining --------------------------------------------------------------------------------- */

static int make_id(struct nccl_id *id)
{
    int code = nccl.GetUniqueId(id);

    if (code)
        snprintf(open_sentence, sizeof(open_sentence), "ncclGetUniqueId: %s",
                 nccl.GetErrorString(code));
    return code;
}

/* The threads' id is made by whoever comes first. */
static int get_thread_id(struct nccl_id *ret_id)
{
    static bool made;
    int code = made ? 0 : make_id(&thread_id);

    made = made || !code;
    *ret_id = thread_id;
    return code;
}

static int write_id(const char *name, const struct nccl_id *id)
{
    char draft[WORDS];
    FILE *file;
    bool good;

    snprintf(draft, sizeof(draft), "%.200s.draft", name);
    file = fopen(draft, "wxe");
    good = file && fwrite(id, sizeof(*id), 1, file) == 1;
    if (file && fclose(file))
        good = false;
    return good && !rename(draft, name) ? 0 : -1;
}

static int read_id(const char *name, struct nccl_id *ret_id)
{
    for (int tries = 0; tries < ID_TRIES; tries++) {
        FILE *file = fopen(name, "re");
        bool good = file && fread(ret_id, sizeof(*ret_id), 1, file) == 1;

        if (file)
            fclose(file);
        if (good)
            return 0;
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    return -1;
}

/* With the mutex held, by threads. */
static int get_id(const struct bench_place *place, struct nccl_id *ret_id)
{
    char name[WORDS];

    if (place->threads)
        return get_thread_id(ret_id);
    snprintf(name, sizeof(name), "%.200s/nccl-id", place->meeting);
    if (place->rank == 0 && make_id(ret_id))
        return -1;
    if (place->rank == 0 ? write_id(name, ret_id) : read_id(name, ret_id)) {
        snprintf(open_sentence, sizeof(open_sentence), "NCCL's id did not come by way of %.180s",
                 name);
        return -1;
    }
    return 0;
}

static void nccl_close(void *memory)
{
    struct state *state = memory;

    if (state && state->comm)
        nccl.CommDestroy(state->comm);
    if (state && state->spare)
        device_free(state->device, state->spare);
    free(state);
}

static int join(struct state *state, const struct nccl_id *id)
{
    int code = nccl.CommInitRank(&state->comm, state->size, *id, state->rank);

    if (code) {
        pthread_mutex_lock(&mutex);
        snprintf(open_sentence, sizeof(open_sentence), "ncclCommInitRank: %s; %.160s",
                 nccl.GetErrorString(code), nccl.GetLastError(NULL));
        pthread_mutex_unlock(&mutex);
        state->comm = NULL;
    }
    return code;
}

/* Others with this interface may take such ranks whatever version they tell, so it is tried. */
static bool explain_refusal(struct state *state)
{
    int devices = device_count(state->device);

    if (version_number >= SHARING_VERSION || state->size <= devices)
        return false;
    snprintf(state->refusal, sizeof(state->refusal),
             "NCCL %d.%d refuses ranks that share a GPU (here %d ranks, %d GPU%s); from 2.30 on it "
             "can be told to take them",
             version_number / 10000, version_number / 100 % 100, state->size, devices,
             devices == 1 ? "" : "s");
    return true;
}

static void *nccl_open(struct bench_place *place)
{
    struct state *state = calloc(1, sizeof(*state));
    struct nccl_id id = {{0}};
    int failed;

    if (!state)
        return NULL;
    *state = (struct state){.device = place->device, .rank = place->rank, .size = place->size};
    pthread_mutex_lock(&mutex);
    failed = load(place);
    if (!failed)
        failed = get_id(place, &id);
    pthread_mutex_unlock(&mutex);
    if (!failed)
        state->spare = device_alloc(place->device, SPARE_BYTES);
    if (!failed && (!state->spare || (join(state, &id) && !explain_refusal(state))))
        failed = -1;
    if (!failed)
        return state;
    nccl_close(state);
    return NULL;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static int type_of(rondo_type type)
{
    static const int types[RONDO_TYPES] = {
        [RONDO_INT8] = 0,         [RONDO_UINT8] = 1,        [RONDO_INT16] = NONE,
        [RONDO_UINT16] = NONE,    [RONDO_INT32] = 2,        [RONDO_UINT32] = 3,
        [RONDO_INT64] = 4,        [RONDO_UINT64] = 5,       [RONDO_FLOAT16] = 6,
        [RONDO_FLOAT32] = 7,      [RONDO_FLOAT64] = 8,      [RONDO_BFLOAT16] = 9,
        [RONDO_FLOAT8_E4M3] = 10, [RONDO_FLOAT8_E5M2] = 11,
    };

    return types[type];
}

static int op_of(rondo_op op)
{
    static const int ops[RONDO_OPS] = {
        [RONDO_SUM] = 0, [RONDO_PROD] = 1,    [RONDO_MAX] = 2,    [RONDO_MIN] = 3,
        [RONDO_AVG] = 4, [RONDO_BAND] = NONE, [RONDO_BOR] = NONE, [RONDO_BXOR] = NONE,
    };

    return ops[op];
}

static const char *nccl_lacks(void *memory, const struct bench_call *call)
{
    const struct state *state = memory;
    bool reduces = bench_collective_reduces(call->collective);

    if (*state->refusal)
        return state->refusal;
    if (call->collective >= BENCH_COLLECTIVES)
        return "only collectives and sendrecv are asked of NCCL here";
    if (type_of(call->type) == NONE)
        return "NCCL has no such element type";
    if (reduces && op_of(call->op) == NONE)
        return "NCCL has no such operation";
    if (call->collective == BENCH_BARRIER && call->queued)
        return "NCCL has no barrier";
    if (call->in_place && call->collective == BENCH_ALL_TO_ALL)
        return "NCCL cannot do this in place";
    return NULL;
}

/* Buffers in blocks: what goes to each peer, and what comes from each. */
struct exchange {
    const unsigned char *input;
    unsigned char *output;
    size_t count, block; /* elements, bytes */
    int type;
    void *stream;
};

static int send_block(const struct state *state, const struct exchange *e, int block, int peer)
{
    return nccl.Send(e->input + (size_t)block * e->block, e->count, e->type, peer, state->comm,
                     e->stream);
}

static int receive_block(const struct state *state, const struct exchange *e, int block, int peer)
{
    return nccl.Recv(e->output + (size_t)block * e->block, e->count, e->type, peer, state->comm,
                     e->stream);
}

static bool sends_to(const struct bench_call *call, int rank, int peer)
{
    return call->collective == BENCH_ALL_TO_ALL ||
           (call->collective == BENCH_GATHER ? peer : rank) == call->root;
}

/* In place, the root has its own block already. */
static int exchange_blocks(const struct state *state, const struct bench_call *call,
                           const struct exchange *e)
{
    bool gathers = call->collective == BENCH_GATHER;
    bool scatters = call->collective == BENCH_SCATTER;
    int code = 0;

    for (int peer = 0; peer < state->size && !code; peer++) {
        if (call->in_place && peer == state->rank)
            continue;
        if (sends_to(call, state->rank, peer))
            code = send_block(state, e, gathers ? 0 : peer, peer);
        if (!code && sends_to(call, peer, state->rank))
            code = receive_block(state, e, scatters ? 0 : peer, peer);
    }
    return code;
}

static int exchange(const struct state *state, const struct bench_call *call,
                    const struct exchange *e)
{
    int right = (state->rank + 1) % state->size;
    int left = (state->rank + state->size - 1) % state->size;
    int code = nccl.GroupStart();
    int ended;

    if (!code && call->collective == BENCH_SENDRECV)
        code = send_block(state, e, 0, right);
    if (!code && call->collective == BENCH_SENDRECV)
        code = receive_block(state, e, 0, left);
    else if (!code)
        code = exchange_blocks(state, call, e);
    ended = nccl.GroupEnd();
    return code ? code : ended;
}

static int queue(const struct state *state, const struct bench_call *call, const void *input,
                 void *output)
{
    void *stream = device_stream(state->device);
    size_t count = call->count;
    int type = type_of(call->type);
    int op = op_of(call->op);
    const struct exchange e = {input, output, count, count * pattern_type_bytes(call->type),
                               type,  stream};

    switch (call->collective) {
    case BENCH_ALL_REDUCE:
        return nccl.AllReduce(input, output, count, type, op, state->comm, stream);
    case BENCH_REDUCE:
        return nccl.Reduce(input, output, count, type, op, call->root, state->comm, stream);
    case BENCH_BROADCAST:
        return nccl.Broadcast(input, output, count, type, call->root, state->comm, stream);
    case BENCH_ALL_GATHER:
        return nccl.AllGather(input, output, count, type, state->comm, stream);
    case BENCH_REDUCE_SCATTER:
        return nccl.ReduceScatter(input, output, count, type, op, state->comm, stream);
    case BENCH_BARRIER: /* that all ranks have come: a sum of one byte */
        return nccl.AllReduce(state->spare, state->spare, 1, type, 0, state->comm, stream);
    default:
        return exchange(state, call, &e);
    }
}

static int nccl_run(void *memory, const struct bench_call *call, const void *input, void *output)
{
    struct state *state = memory;
    int code = queue(state, call, input, output);

    if (code) {
        snprintf(state->error, sizeof(state->error), "%s; %.400s", nccl.GetErrorString(code),
                 nccl.GetLastError(state->comm));
        return -1;
    }
    return call->queued ? 0 : device_wait(state->device);
}

static const char *nccl_error(void *memory)
{
    const struct state *state = memory;

    if (!state)
        return *open_sentence ? open_sentence : "there is no memory";
    return *state->error ? state->error : device_error(state->device);
}

const struct bench_library bench_the_library = {
    .open = nccl_open,
    .close = nccl_close,
    .lacks = nccl_lacks,
    .run = nccl_run,
    .error = nccl_error,
    .version = version,
};
