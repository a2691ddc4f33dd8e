/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * traced.c - two ranks whose calls on CUDA streams are traced (RONDO_TRACE). Each prints the time
 * in microseconds from before it queued a call until it had waited for its stream:
 *
 *     alone   calls on an idle stream, one after the other
 *     held    a call behind a wait of its stream, which lasts at least HELD
 *     late    a call to which rank 1 comes at least LATE later
 *     pair    two messages in a group, one each way
 *     other   a call on another stream
 *
 * At the end rank 0 ends while its stream waits before one call, with another one behind it.
 */
#include "../device.h"

#include "rondo/bindings.h"
#include "rondo/check.h"
#include "rondo/cuda.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { COUNT = 4096, TIMES = 20, HELD = 60000, LATE = 50000 /* microseconds */ };

static const struct device_driver *cuda;
static rondo_comm *comm;
static int rank;
static CUstream streams[2];
static rondo_stream *wrapped[2];
static float *input, *output;
static uint32_t *flag; /* what a stream waits for */

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static void need(int failed, const char *what)
{
    if (!failed)
        return;
    fprintf(stderr, "rank %d: %s\n", rank, what);
    _exit(1);
}

static void all_reduce(int stream)
{
    RONDO_CHECK(
        rondo_all_reduce(input, output, COUNT, RONDO_FLOAT32, RONDO_SUM, comm, wrapped[stream]));
}

static void finish(const char *name, int stream, double began)
{
    RONDO_CHECK(rondo_stream_synchronize(wrapped[stream]));
    printf("%d %s %.3f\n", rank, name, now() - began);
}

static void hold(void)
{
    CUdeviceptr address;

    *flag = 0;
    need(cuda->cuMemHostGetDevicePointer(&address, flag, 0), "no address of the flag");
    need(cuda->cuStreamWaitValue32(streams[0], address, 1, CU_STREAM_WAIT_VALUE_EQ), "no wait");
}

static void alone(void)
{
    for (int i = 0; i < TIMES; i++) {
        double began;

        RONDO_CHECK(rondo_barrier(comm, NULL));
        began = now();
        all_reduce(0);
        finish("alone", 0, began);
    }
}

static void held(void)
{
    double began = now();

    hold();
    all_reduce(0);
    usleep(HELD);
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
    finish("held", 0, began);
}

static void late(void)
{
    double began;

    RONDO_CHECK(rondo_barrier(comm, NULL));
    if (rank == 1)
        usleep(LATE);
    began = now();
    all_reduce(0);
    finish("late", 0, began);
}

static void pair(void)
{
    double began = now();

    RONDO_CHECK(rondo_group_start());
    RONDO_CHECK(rondo_send(input, COUNT, RONDO_FLOAT32, 1 - rank, comm, wrapped[0]));
    RONDO_CHECK(rondo_recv(output, COUNT, RONDO_FLOAT32, 1 - rank, comm, wrapped[0]));
    RONDO_CHECK(rondo_group_end());
    finish("pair", 0, began);
}

static void other(void)
{
    double began = now();

    all_reduce(1);
    finish("other", 1, began);
}

static void open_all(void)
{
    rondo_config config = RONDO_CONFIG_INIT;
    int number = strcmp(getenv("RONDO_RANK"), "1") || device_count() < 2 ? 0 : 1;

    cuda = device_driver();
    need(!cuda || !device_use(number), "no device");
    config.cuda_device = number;
    RONDO_CHECK(rondo_comm_open(&config, &comm));
    rank = rondo_comm_rank(comm);
    for (int i = 0; i < 2; i++) {
        need(cuda->cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING), "no stream");
        RONDO_CHECK(rondo_stream_open_cuda(streams[i], &wrapped[i]));
    }
    input = device_alloc(MEMORY_DEVICE, COUNT * sizeof(float));
    output = device_alloc(MEMORY_DEVICE, COUNT * sizeof(float));
    flag = device_alloc(MEMORY_PINNED, sizeof(*flag));
    need(!input || !output || !flag, "no memory");
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0); /* so that lines of two ranks do not mix */
    open_all();
    alone();
    held();
    late();
    pair();
    other();
    usleep(4 * LATE); /* until all of that is in the trace */
    RONDO_CHECK(rondo_barrier(comm, NULL));
    if (rank == 0) {
        rondo_trace_begin("the end", 0);
        hold();
        all_reduce(0);
        all_reduce(0);
        usleep(LATE);
        rondo_trace_end("the end", 0);
    }
    _exit(0);
}
