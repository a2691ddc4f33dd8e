/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 11_wrapper.cc - C++: what is opened closes itself, an error is an exception, and the type of a
 * call is that of its pointers. The sums of two halves are on their way at once, on two streams.
 */
#include <rondo/rondo.hpp>

#include <cstdio>
#include <numeric>

static void run()
{
    rondo::communicator comm = rondo::communicator::open();
    rondo::communicator twin = comm.dup(); /* calls of two communicators have no order */
    rondo::memory<double> values(1 << 16); /* peers read it where it is */
    rondo::stream first = rondo::stream::open(), second = rondo::stream::open();
    const std::size_t half = values.size() / 2;

    std::iota(values.begin(), values.end(), comm.rank());
    comm.all_reduce(values.data(), half, RONDO_SUM, first.get());
    twin.all_reduce(values.data() + half, half, RONDO_MAX, second.get());
    first.synchronize();
    second.synchronize();
    std::printf("rank %d of %d: the first sum is %g, the last maximum %g\n", comm.rank(),
                comm.size(), values[0], values[values.size() - 1]);
}

int main()
{
    try {
        run();
    } catch (const rondo::error &error) {
        std::fprintf(stderr, "rank %d: %s\n", error.rank(), error.what());
        return 1;
    }
    return 0;
}
