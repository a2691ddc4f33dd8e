/* SPDX-License-Identifier: BSD-3-Clause */
/* device.c - memory and streams of the CUDA driver for the clients, or of the host. */
#include "client.h"

#include "../patience.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef unsigned long long pointer;

/* The driver's functions by their names in the library; 0 is success. */
static struct {
    int (*cuInit)(unsigned flags);
    int (*cuDevicePrimaryCtxRetain)(void **context, int device);
    int (*cuCtxSetCurrent)(void *context);
    int (*cuStreamCreate)(cudaStream_t *stream, unsigned flags);
    int (*cuStreamDestroy)(cudaStream_t stream);
    int (*cuStreamSynchronize)(cudaStream_t stream);
    int (*cuMemAlloc)(pointer *memory, size_t bytes);
    int (*cuMemcpyHtoD)(pointer to, const void *from, size_t bytes);
    int (*cuMemcpyDtoH)(void *to, pointer from, size_t bytes);
    int (*cuStreamBeginCapture)(cudaStream_t stream, int mode);
    int (*cuStreamEndCapture)(cudaStream_t stream, void **graph);
    int (*cuGraphInstantiate)(void **executable, void *graph, unsigned long long flags);
    int (*cuGraphLaunch)(void *executable, cudaStream_t stream);
    int (*cuGraphExecDestroy)(void *executable);
    int (*cuGraphDestroy)(void *graph);
} cuda;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool spins; /* the driver does while it waits; the stand-in sleeps */

static void check(int error, const char *call)
{
    if (!error)
        return;
    fprintf(stderr, "client: %s gave CUDA error %d\n", call, error);
    _exit(1);
}

static void find(void *driver, const char *name, void *function)
{
    *(void **)function = dlsym(driver, name);
    check(*(void **)function ? 0 : 500, name);
}

static void load(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);

    check(driver ? 0 : 3, "dlopen of libcuda.so.1");
    find(driver, "cuInit", &cuda.cuInit);
    find(driver, "cuDevicePrimaryCtxRetain", &cuda.cuDevicePrimaryCtxRetain);
    find(driver, "cuCtxSetCurrent", &cuda.cuCtxSetCurrent);
    find(driver, "cuStreamCreate", &cuda.cuStreamCreate);
    find(driver, "cuStreamDestroy_v2", &cuda.cuStreamDestroy);
    find(driver, "cuStreamSynchronize", &cuda.cuStreamSynchronize);
    find(driver, "cuMemAlloc_v2", &cuda.cuMemAlloc);
    find(driver, "cuMemcpyHtoD_v2", &cuda.cuMemcpyHtoD);
    find(driver, "cuMemcpyDtoH_v2", &cuda.cuMemcpyDtoH);
    find(driver, "cuStreamBeginCapture_v2", &cuda.cuStreamBeginCapture);
    find(driver, "cuStreamEndCapture", &cuda.cuStreamEndCapture);
    find(driver, "cuGraphInstantiateWithFlags", &cuda.cuGraphInstantiate);
    find(driver, "cuGraphLaunch", &cuda.cuGraphLaunch);
    find(driver, "cuGraphExecDestroy", &cuda.cuGraphExecDestroy);
    find(driver, "cuGraphDestroy", &cuda.cuGraphDestroy);
    spins = !dlsym(driver, "cuStandinStop");
    check(cuda.cuInit(0), "cuInit");
}

bool client_on_device(void)
{
    const char *memory = getenv("CLIENT_MEMORY");

    return memory && strcmp(memory, "device") == 0;
}

bool client_await_wait(pid_t thread)
{
    return client_on_device() && spins ? world_await_sleep_or_spin(thread)
                                       : world_await_sleep(thread);
}

cudaStream_t client_open_stream(void)
{
    const unsigned non_blocking = 1;
    cudaStream_t stream = NULL;
    void *context;

    if (!client_on_device())
        return NULL;
    pthread_once(&once, load);
    check(cuda.cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    check(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent");
    check(cuda.cuStreamCreate(&stream, non_blocking), "cuStreamCreate");
    return stream;
}

void client_close_stream(cudaStream_t stream)
{
    if (stream)
        check(cuda.cuStreamDestroy(stream), "cuStreamDestroy");
}

/*
 * Freeing device memory waits for all work on the device, also for that of other ranks which wait
 * for this one. So clients keep what they have for the next allocation, as frameworks do.
 */
static struct block {
    struct block *next;
    void *memory;
    size_t bytes;
    bool taken;
} * blocks;
static pthread_mutex_t blocks_lock = PTHREAD_MUTEX_INITIALIZER;

static struct block *add_block(size_t bytes)
{
    struct block *block = calloc(1, sizeof(*block));
    pointer memory;

    check(cuda.cuMemAlloc(&memory, bytes), "cuMemAlloc");
    *block = (struct block){.next = blocks, .memory = (void *)(uintptr_t)memory, .bytes = bytes};
    blocks = block;
    return block;
}

void *client_alloc(size_t bytes)
{
    size_t wanted = 512;
    struct block *block;

    if (!client_on_device())
        return calloc(bytes ? bytes : 1, 1);
    while (wanted < bytes)
        wanted *= 2;
    pthread_mutex_lock(&blocks_lock);
    block = blocks;
    while (block && (block->taken || block->bytes != wanted))
        block = block->next;
    if (!block)
        block = add_block(wanted);
    block->taken = true;
    pthread_mutex_unlock(&blocks_lock);
    return block->memory;
}

void client_free(void *memory)
{
    if (!client_on_device()) {
        free(memory);
        return;
    }
    pthread_mutex_lock(&blocks_lock);
    for (struct block *block = blocks; block; block = block->next)
        if (block->memory == memory)
            block->taken = false;
    pthread_mutex_unlock(&blocks_lock);
}

void client_write(void *to, const void *from, size_t bytes)
{
    if (!client_on_device()) {
        memcpy(to, from, bytes);
    } else if (bytes) {
        check(cuda.cuMemcpyHtoD((pointer)(uintptr_t)to, from, bytes), "cuMemcpyHtoD");
        /* The copy may not be over yet, and no stream of the clients waits for it. */
        check(cuda.cuStreamSynchronize(NULL), "cuStreamSynchronize");
    }
}

void client_read(void *to, const void *from, size_t bytes)
{
    if (!client_on_device())
        memcpy(to, from, bytes);
    else if (bytes)
        check(cuda.cuMemcpyDtoH(to, (pointer)(uintptr_t)from, bytes), "cuMemcpyDtoH");
}

bool client_wait(cudaStream_t stream)
{
    return !client_on_device() || cuda.cuStreamSynchronize(stream) == 0;
}

bool client_replay(struct client *client, client_body enqueue, int times)
{
    const int thread_local_mode = 1;
    void *graph = NULL;
    void *executable = NULL;
    bool fine;

    check(cuda.cuStreamBeginCapture(client->stream, thread_local_mode), "cuStreamBeginCapture");
    fine = enqueue(client);
    check(cuda.cuStreamEndCapture(client->stream, &graph), "cuStreamEndCapture");
    if (!fine)
        return false;
    check(cuda.cuGraphInstantiate(&executable, graph, 0), "cuGraphInstantiate");
    for (int i = 0; i < times; i++)
        check(cuda.cuGraphLaunch(executable, client->stream), "cuGraphLaunch");
    fine = client_wait(client->stream);
    check(cuda.cuGraphExecDestroy(executable), "cuGraphExecDestroy");
    check(cuda.cuGraphDestroy(graph), "cuGraphDestroy");
    return fine || client_say(client, "the stream of the graph failed");
}
