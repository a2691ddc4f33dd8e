// SPDX-License-Identifier: BSD-3-Clause
//
// library_gloo.cc - Gloo as the benchmark sees it, over TCP on the loopback interface, which is how
// it runs on one host. The only C++ of the project, because Gloo has no C interface.
//
// Elements are moved as unsigned integers of their size; only reductions know the type.
#include "bench/library.h"
#include "bench/pattern.h"

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <vector>

namespace
{

using ReduceFunction = void (*)(void *, const void *, const void *, size_t);

struct State {
    std::shared_ptr<gloo::Context> context;
    std::string sentence;
};

std::string open_sentence;

// nullptr for operations that Gloo does not have.
template <typename T> ReduceFunction function_of(rondo_op op)
{
    switch (op) {
    case RONDO_SUM:
        return gloo::sum<T>;
    case RONDO_PROD:
        return gloo::product<T>;
    case RONDO_MIN:
        return gloo::min<T>;
    case RONDO_MAX:
        return gloo::max<T>;
    default:
        return nullptr;
    }
}

ReduceFunction function_of(rondo_type type, rondo_op op)
{
    switch (type) {
    case RONDO_INT8:
        return function_of<int8_t>(op);
    case RONDO_UINT8:
        return function_of<uint8_t>(op);
    case RONDO_INT16:
        return function_of<int16_t>(op);
    case RONDO_UINT16:
        return function_of<uint16_t>(op);
    case RONDO_INT32:
        return function_of<int32_t>(op);
    case RONDO_UINT32:
        return function_of<uint32_t>(op);
    case RONDO_INT64:
        return function_of<int64_t>(op);
    case RONDO_UINT64:
        return function_of<uint64_t>(op);
    case RONDO_FLOAT16:
        return function_of<gloo::float16>(op);
    case RONDO_FLOAT32:
        return function_of<float>(op);
    case RONDO_FLOAT64:
        return function_of<double>(op);
    default:
        return nullptr;
    }
}

std::shared_ptr<gloo::transport::Device> device_of(const char *interface)
{
    gloo::transport::tcp::attr attributes;

    if (!interface)
        return gloo::transport::tcp::CreateDevice("localhost");
    attributes.iface = interface;
    return gloo::transport::tcp::CreateDevice(attributes);
}

void *open(bench_place *place)
{
    try {
        auto state = std::make_unique<State>();
        auto context = std::make_shared<gloo::rendezvous::Context>(place->rank, place->size);
        auto device = device_of(place->interface);
        gloo::rendezvous::FileStore store(place->meeting);

        if (place->timeout > 0)
            context->setTimeout(std::chrono::milliseconds((long)(place->timeout * 1000)));
        context->connectFullMesh(store, device);
        state->context = context;
        return state.release();
    } catch (const std::exception &problem) {
        open_sentence = problem.what();
        return nullptr;
    }
}

void close(void *memory)
{
    delete static_cast<State *>(memory);
}

const char *lacks(void *, const bench_call *call)
{
    if (call->collective > BENCH_LATENCY)
        return "only collectives, sendrecv and latency are asked of Gloo here";
    if (call->collective == BENCH_REDUCE_SCATTER)
        return "Gloo has no reduce_scatter on buffers of the caller";
    if (bench_collective_reduces(call->collective) && !function_of(call->type, call->op))
        return "Gloo has no such operation on this element type";
    if (call->in_place && (call->collective == BENCH_ALL_TO_ALL ||
                           call->collective == BENCH_GATHER || call->collective == BENCH_SCATTER))
        return "Gloo cannot do this in place";
    return nullptr;
}

// Calls `work` with a pointer to unsigned integers of the size of the call's elements.
template <typename F> void with_elements(const bench_call *call, const void *data, F work)
{
    void *elements = const_cast<void *>(data);

    switch (pattern_type_bytes(call->type)) {
    case 1:
        return work(static_cast<uint8_t *>(elements));
    case 2:
        return work(static_cast<uint16_t *>(elements));
    case 4:
        return work(static_cast<uint32_t *>(elements));
    default:
        return work(static_cast<uint64_t *>(elements));
    }
}

template <typename T>
void set_input(T &options, const bench_call *call, const void *input, size_t count)
{
    with_elements(call, input, [&](auto *elements) { options.setInput(elements, count); });
}

template <typename T>
void set_output(T &options, const bench_call *call, void *output, size_t count)
{
    with_elements(call, output, [&](auto *elements) { options.setOutput(elements, count); });
}

// Of collectives with one input and one output. In place, Gloo wants the output only.
template <typename T>
T options_of(State *state, const bench_call *call, const void *input, void *output)
{
    T options(state->context);

    if (!call->in_place)
        set_input(options, call, input, bench_input_elements(call, state->context->size));
    set_output(options, call, output, bench_output_elements(call, state->context->size));
    return options;
}

template <typename T> void set_reduction(T &options, const bench_call *call)
{
    options.setReduceFunction(function_of(call->type, call->op));
}

void broadcast(State *state, const bench_call *call, const void *input, void *output)
{
    gloo::BroadcastOptions options(state->context);

    if (!call->in_place && state->context->rank == call->root)
        set_input(options, call, input, call->count);
    set_output(options, call, output, call->count);
    options.setRoot(call->root);
    gloo::broadcast(options);
}

void gather(State *state, const bench_call *call, const void *input, void *output)
{
    gloo::GatherOptions options(state->context);

    set_input(options, call, input, call->count);
    if (state->context->rank == call->root)
        set_output(options, call, output, call->count * state->context->size);
    options.setRoot(call->root);
    gloo::gather(options);
}

void scatter(State *state, const bench_call *call, const void *input, void *output)
{
    gloo::ScatterOptions options(state->context);

    if (state->context->rank == call->root)
        with_elements(call, input, [&](auto *elements) {
            std::vector<decltype(elements)> blocks;

            for (int rank = 0; rank < state->context->size; rank++)
                blocks.push_back(elements + call->count * rank);
            options.setInputs(blocks, call->count);
        });
    set_output(options, call, output, call->count);
    options.setRoot(call->root);
    gloo::scatter(options);
}

void sendrecv(State *state, const bench_call *call, const void *input, void *output)
{
    const int rank = state->context->rank;
    const int size = state->context->size;
    const uint64_t slot = gloo::Slot::build(0x7f, 0);
    const size_t bytes = call->count * pattern_type_bytes(call->type);

    if (size == 1) {
        memcpy(output, input, bytes);
        return;
    }
    auto in = state->context->createUnboundBuffer(const_cast<void *>(input), bytes);
    auto out = state->context->createUnboundBuffer(output, bytes);
    out->recv((rank + size - 1) % size, slot);
    in->send((rank + 1) % size, slot);
    out->waitRecv();
    in->waitSend();
}

// A message goes from the lower rank of a pair to the other, and one comes back.
void ping_pong(State *state, const bench_call *call, const void *input, void *output)
{
    const int rank = state->context->rank;
    const int partner = bench_partner(rank, state->context->size);
    const uint64_t slot = gloo::Slot::build(0x7e, 0);
    const size_t bytes = call->count * pattern_type_bytes(call->type);

    if (partner < 0)
        return;
    auto in = state->context->createUnboundBuffer(const_cast<void *>(input), bytes);
    auto out = state->context->createUnboundBuffer(output, bytes);
    out->recv(partner, slot);
    if (rank > partner)
        out->waitRecv();
    in->send(partner, slot);
    if (rank < partner)
        out->waitRecv();
    in->waitSend();
}

void dispatch(State *state, const bench_call *call, const void *input, void *output)
{
    switch (call->collective) {
    case BENCH_ALL_REDUCE: {
        auto options = options_of<gloo::AllreduceOptions>(state, call, input, output);
        set_reduction(options, call);
        return gloo::allreduce(options);
    }
    case BENCH_REDUCE: {
        auto options = options_of<gloo::ReduceOptions>(state, call, input, output);
        set_reduction(options, call);
        options.setRoot(call->root);
        return gloo::reduce(options);
    }
    case BENCH_ALL_GATHER: {
        auto options = options_of<gloo::AllgatherOptions>(state, call, input, output);
        return gloo::allgather(options);
    }
    case BENCH_ALL_TO_ALL: {
        auto options = options_of<gloo::AlltoallOptions>(state, call, input, output);
        return gloo::alltoall(options);
    }
    case BENCH_BROADCAST:
        return broadcast(state, call, input, output);
    case BENCH_GATHER:
        return gather(state, call, input, output);
    case BENCH_SCATTER:
        return scatter(state, call, input, output);
    case BENCH_SENDRECV:
        return sendrecv(state, call, input, output);
    case BENCH_LATENCY:
        return ping_pong(state, call, input, output);
    default: {
        gloo::BarrierOptions options(state->context);
        return gloo::barrier(options);
    }
    }
}

int run(void *memory, const bench_call *call, const void *input, void *output)
{
    State *state = static_cast<State *>(memory);

    try {
        dispatch(state, call, input, output);
        return 0;
    } catch (const std::exception &problem) {
        state->sentence = problem.what();
        return -1;
    }
}

const char *error(void *memory)
{
    return (memory ? static_cast<State *>(memory)->sentence : open_sentence).c_str();
}

void version(char *text, size_t room)
{
    snprintf(text, room, "Gloo (TCP on the loopback interface)");
}

} // namespace

extern "C" const bench_library bench_the_library = {open,    close,   lacks,   nullptr, nullptr,
                                                    run,     error,   nullptr, version, nullptr,
                                                    nullptr, nullptr, nullptr};
