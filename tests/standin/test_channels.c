/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_channels.c - streams that share a hardware channel, and what waits in it.
 */
#include "tests/standin/case.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

/* The struct of example.cu. */
struct meeting {
    CUdeviceptr arrived, result;
};

enum { STREAMS = 3 };

static CUstream streams[STREAMS];

static void begin(const char *connections)
{
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", connections, 1);
    check_begin(check, 0);
    for (int i = 0; i < STREAMS; i++)
        streams[i] = check_stream(check);
}

/*
 * True if all that is in the stream is done soon. An operation that waits in a channel is not,
 * however long one waits: a busy machine can make this say yes where it should say no, but not the
 * other way round.
 */
static bool ends_soon(CUstream stream)
{
    for (int i = 0; i < 50 && cuStreamQuery(stream) == CUDA_ERROR_NOT_READY; i++)
        usleep(1000);
    return cuStreamQuery(stream) == CUDA_SUCCESS;
}

static void wait_for_word(const unsigned *word, CUstream stream)
{
    CHECK_OK(cuStreamWaitValue32(stream, check_address(word), 1, CU_STREAM_WAIT_VALUE_GEQ));
}

static void end(void)
{
    for (int i = 0; i < STREAMS; i++)
        CHECK_OK(cuStreamSynchronize(streams[i]));
    check_end(check, 0);
}

CASE(channels, one_channel_makes_streams_wait_for_each_other)
{
    begin("1");
    unsigned *word = check_word(check);
    CUdeviceptr memory = check_memory(check, 4);
    wait_for_word(word, streams[0]);
    CHECK_OK(cuMemsetD32Async(memory, 5, 1, streams[1]));
    CHECK(!ends_soon(streams[1]));
    check_release(word, 1);
    end();
}

CASE(channels, as_many_streams_as_channels_do_not_wait_for_each_other)
{
    begin("4"); /* the legacy stream has the first */
    unsigned *word = check_word(check);
    CUdeviceptr memory = check_memory(check, 4);
    wait_for_word(word, streams[0]);
    CHECK_OK(cuMemsetD32Async(memory, 5, 1, streams[1]));
    CHECK_OK(cuStreamSynchronize(streams[1]));
    CUstream fourth = check_stream(check), fifth = check_stream(check);
    CHECK_OK(cuMemsetD32Async(memory, 5, 1, fifth)); /* that of streams[0] again */
    CHECK_OK(cuMemsetD32Async(memory, 5, 1, fourth));
    CHECK_OK(cuStreamSynchronize(fourth));
    CHECK(!ends_soon(fifth));
    check_release(word, 1);
    CHECK_OK(cuStreamSynchronize(fifth));
    end();
}

CASE(channels, streams_of_another_priority_have_their_own)
{
    begin("1");
    unsigned *word = check_word(check);
    CUdeviceptr memory = check_memory(check, 4);
    CUstream urgent = NULL;
    CHECK_OK(cuStreamCreateWithPriority(&urgent, CU_STREAM_NON_BLOCKING, -5));
    wait_for_word(word, streams[0]);
    CHECK_OK(cuMemsetD32Async(memory, 5, 1, urgent));
    CHECK_OK(cuStreamSynchronize(urgent));
    check_release(word, 1);
    end();
}

/* Queues kernels of a block each; the first one's comes to 0, and waits for one that comes next. */
static void meet(unsigned *word, CUdeviceptr memory, const CUstream *in, int count)
{
    CUfunction kernel = check_kernel(check, check_module(check), "example_meet");
    struct meeting job = {check_address(word), memory};
    void *parameters[] = {&job};
    check_release(word, 0U - 1);
    for (int i = 0; i < count; i++)
        CHECK_OK(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, in[i], parameters, NULL));
}

CASE(channels, kernels_of_streams_that_share_a_channel_run_side_by_side)
{
    begin("1");
    meet(check_word(check), check_memory(check, 64), streams, STREAMS);
    end();
}

/* The second kernel of a stream is not ready before the first has ended. */
CASE(channels, second_kernel_of_a_stream_holds_up_those_behind_it)
{
    begin("1");
    unsigned *word = check_word(check);
    CUdeviceptr memory = check_memory(check, 64);
    meet(word, memory, (CUstream[]){streams[0], streams[0]}, 2);
    CHECK_OK(cuMemsetD32Async(memory + 32, 5, 1, streams[1]));
    CHECK(!ends_soon(streams[1]));
    check_release(word, 1);
    end();
}

static void set_word(void *word)
{
    check_release(word, 1);
}

CASE(channels, function_of_the_host_and_event_are_waited_for_in_the_channel)
{
    begin("1");
    unsigned *word = check_word(check), *other = check_word(check);
    CUevent event = NULL;
    CHECK_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    wait_for_word(word, streams[0]);
    CHECK_OK(cuEventRecord(event, streams[0]));
    CHECK_OK(cuStreamWaitEvent(streams[1], event, 0));
    CHECK_OK(cuLaunchHostFunc(streams[2], set_word, other));
    CHECK(!ends_soon(streams[2]) && !*other);
    check_release(word, 1);
    CHECK_OK(cuStreamSynchronize(streams[2]));
    CHECK(*other == 1);
    end();
}

/* Two branches: the one that was captured first waits for a word that the second one writes. */
static CUgraphExec branches(const unsigned *word)
{
    CUevent fork = NULL, join = NULL;
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    CHECK_OK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    CHECK_OK(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
    CHECK_OK(cuStreamBeginCapture(streams[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    CHECK_OK(cuEventRecord(fork, streams[0]));
    CHECK_OK(cuStreamWaitEvent(streams[1], fork, 0));
    wait_for_word(word, streams[0]);
    CHECK_OK(cuStreamWriteValue32(streams[1], check_address(word), 1, 0));
    CHECK_OK(cuEventRecord(join, streams[1]));
    CHECK_OK(cuStreamWaitEvent(streams[0], join, 0));
    CHECK_OK(cuStreamEndCapture(streams[0], &graph));
    CHECK_OK(cuGraphInstantiate(&exec, graph, 0));
    return exec;
}

CASE(channels, branches_of_a_graph_have_channels)
{
    begin("2");
    unsigned *word = check_word(check);
    CUgraphExec exec = branches(word);
    for (int i = 0; i < 3; i++) {
        check_release(word, 0);
        CHECK_OK(cuGraphLaunch(exec, streams[i]));
        CHECK_OK(cuStreamSynchronize(streams[i]));
    }
    end();
}

CASE(channels, branches_of_a_graph_share_the_only_channel)
{
    begin("1");
    unsigned *word = check_word(check);
    CUgraphExec exec = branches(word);
    CHECK_OK(cuGraphLaunch(exec, streams[2]));
    CHECK(!ends_soon(streams[2]));
    check_release(word, 1);
    end();
}

CASE(channels, streams_have_none_on_request)
{
    setenv("CUDA_STANDIN_CHANNELS", "0", 1);
    begin("1");
    unsigned *word = check_word(check);
    CUgraphExec exec = branches(word);
    CHECK_OK(cuGraphLaunch(exec, streams[2]));
    CHECK_OK(cuStreamSynchronize(streams[2]));
    end();
}
