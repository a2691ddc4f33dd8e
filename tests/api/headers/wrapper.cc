/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wrapper.cc - rondo.hpp, compiled as C++11 and newer: who owns what, what is thrown, and that each
 * template passes its arguments on in the right order. Ranks are threads. Prints TAP.
 */
#include <rondo/rondo.h>

/* A program may have functions of these names, which are none of the wrapper's business. */
void check(rondo_result result);
bool is_over(rondo_result result);

#include <rondo/rondo.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <string>
#include <thread>

namespace
{

enum { RANKS = 3 };

/* The end of a case: a condition that does not hold. */
void expect(bool holds, const char *condition, int line)
{
    if (!holds)
        throw std::logic_error("line " + std::to_string(line) + ": " + condition);
}
#define EXPECT(condition) expect((condition), #condition, __LINE__)

using body = std::function<void(rondo::communicator &comm, int rank)>;

/* Runs the body in a thread for each rank; its first exception is the caller's. */
void on_ranks(std::vector<rondo::communicator> &comms, const body &run)
{
    std::vector<std::exception_ptr> thrown(comms.size());
    std::vector<std::thread> threads;

    for (std::size_t r = 0; r < comms.size(); r++)
        threads.emplace_back([&, r] {
            try {
                run(comms[r], static_cast<int>(r));
            } catch (...) {
                thrown[r] = std::current_exception();
                if (comms[r])
                    comms[r].abort();
            }
        });
    for (std::thread &thread : threads)
        thread.join();
    for (std::exception_ptr &one : thrown)
        if (one)
            std::rethrow_exception(one);
}

void on_ranks(const body &run)
{
    std::vector<rondo::communicator> comms = rondo::communicator::open_all(RANKS);

    on_ranks(comms, run);
}

/* The exception that a call throws. */
rondo::error error_of(const std::function<void()> &call)
{
    try {
        call();
    } catch (const rondo::error &error) {
        return error;
    }
    throw std::logic_error("no error was thrown");
}

/* ---- Owners ---- */

template <typename OWNER> void only_moves()
{
    static_assert(!std::is_copy_constructible<OWNER>::value, "an owner was copied");
    static_assert(!std::is_copy_assignable<OWNER>::value, "an owner was copied");
    static_assert(std::is_nothrow_move_constructible<OWNER>::value, "a move may not throw");
    static_assert(std::is_nothrow_move_assignable<OWNER>::value, "a move may not throw");
    static_assert(std::is_nothrow_destructible<OWNER>::value, "a destructor may not throw");
}

void owners_can_be_moved_and_not_copied()
{
    only_moves<rondo::communicator>();
    only_moves<rondo::stream>();
    only_moves<rondo::event>();
    only_moves<rondo::memory<float>>();
    only_moves<rondo::registration>();
    only_moves<rondo::operation>();
    only_moves<rondo::p2p>();
    only_moves<rondo::transfer>();
    only_moves<rondo::request>();

    rondo::communicator first = rondo::communicator::open(), second;
    rondo_comm *handle = first.get();

    EXPECT(first && !second && second.rank() == -1);
    second = std::move(first);
    EXPECT(!first && second.get() == handle && second.size() == 1);
    second.close();
    EXPECT(!second && second.get() == nullptr);

    rondo::memory<int> numbers(1000), moved;

    EXPECT(numbers.size() == 1000 && numbers[999] == 0);
    numbers[7] = 5;
    moved = std::move(numbers);
    EXPECT(moved.size() == 1000 && moved[7] == 5 && numbers.size() == 0 && !numbers.data());
    EXPECT(moved.end() - moved.begin() == 1000 && moved && !numbers);
    moved.close();
    EXPECT(!moved && moved.size() == 0);
}

void what_ends_with_its_communicator_is_ended_once()
{
    on_ranks([](rondo::communicator &comm, int) {
        const std::size_t bytes = 1 << 16;
        void *page = nullptr, *other = nullptr;

        EXPECT(posix_memalign(&page, bytes, bytes) == 0);
        EXPECT(posix_memalign(&other, bytes, bytes) == 0);
        {
            rondo::registration first(comm, page, bytes), second;

            second = std::move(first);
            EXPECT(second && !first);
            first = rondo::registration(comm, other, bytes);
            first = std::move(second); /* ends that of `other`, which can be registered again */
            EXPECT(first && !second);
            second = rondo::registration(comm, other, bytes);
            second.close();
            comm.all_reduce(static_cast<int *>(page), bytes / sizeof(int));
        }
        /* A range can be registered once at a time, so the first is over. */
        rondo::registration again(comm, page, bytes);

        EXPECT(error_of([&] { rondo::registration twice(comm, page, bytes); }).rank() ==
               comm.rank());
        again.close();
        std::free(page);
        std::free(other);
    });
}

/* ---- Types and collectives ---- */

void elements_have_the_types_of_c()
{
    static_assert(rondo::type_of<signed char>::value == RONDO_INT8, "");
    static_assert(rondo::type_of<uint8_t>::value == RONDO_UINT8, "");
    static_assert(rondo::type_of<short>::value == RONDO_INT16, "");
    static_assert(rondo::type_of<uint16_t>::value == RONDO_UINT16, "");
    static_assert(rondo::type_of<int>::value == RONDO_INT32, "");
    static_assert(rondo::type_of<uint32_t>::value == RONDO_UINT32, "");
    static_assert(rondo::type_of<long long>::value == RONDO_INT64, "");
    static_assert(rondo::type_of<int64_t>::value == RONDO_INT64, "");
    static_assert(rondo::type_of<uint64_t>::value == RONDO_UINT64, "");
    static_assert(rondo::type_of<float>::value == RONDO_FLOAT32, "");
    static_assert(rondo::type_of<double>::value == RONDO_FLOAT64, "");
}

void each_collective_gets_its_arguments()
{
    on_ranks([](rondo::communicator &comm, int r) {
        int mine[RANKS] = {10 * r, 10 * r + 1, 10 * r + 2}, all[RANKS], one = -1;

        comm.all_reduce(mine, all, RANKS);
        EXPECT(all[0] == 30 && all[2] == 36);
        comm.all_reduce(mine, all, RANKS, RONDO_MAX);
        EXPECT(all[1] == 21);
        comm.reduce(mine, r == 1 ? &one : nullptr, 1, RONDO_MIN, 1);
        EXPECT(one == (r == 1 ? 0 : -1));
        one = r;
        comm.broadcast(&one, 1, 2);
        EXPECT(one == 2);
        comm.all_gather(mine, all, 1);
        EXPECT(all[0] == 0 && all[1] == 10 && all[2] == 20);
        comm.reduce_scatter(mine, &one, 1);
        EXPECT(one == 30 + 3 * r);
        comm.all_to_all(mine, all, 1);
        EXPECT(all[0] == r && all[2] == 20 + r);
        comm.gather(mine, r == 0 ? all : nullptr, 1, 0);
        EXPECT(r != 0 || all[1] == 10);
        comm.scatter(r == 2 ? mine : nullptr, &one, 1, 2);
        EXPECT(one == 20 + r);
        comm.barrier();
    });
}

void collectives_with_counts_get_theirs()
{
    on_ranks([](rondo::communicator &comm, int r) {
        const std::size_t counts[RANKS] = {2, 0, 1}, ones[RANKS] = {1, 1, 1};
        const std::size_t turned[RANKS] = {2, 1, 0};
        double mine[RANKS] = {r + 0.5, r + 10.5, r + 20.5}, all[RANKS] = {0, 0, 0};

        comm.all_gather_v(mine, all, counts);
        EXPECT(all[0] == 0.5 && all[1] == 10.5 && all[2] == 2.5);
        comm.reduce_scatter_v(mine, counts, nullptr, all);
        EXPECT(r == 1 || all[0] == (r == 0 ? 4.5 : 64.5));
        comm.all_to_all_v(mine, ones, nullptr, all, ones, turned);
        EXPECT(all[2] == 10 * r + 0.5 && all[0] == 10 * r + 2.5);
    });
}

/* Appends the digits of the upper ranks to those of the lower ones: it does not commute. */
void then(void *factor, const void *in, void *inout, std::size_t count, rondo_type)
{
    const int *lower = static_cast<const int *>(in);
    int *upper = static_cast<int *>(inout);

    for (std::size_t i = 0; i < count; i++)
        upper[i] += *static_cast<int *>(factor) * lower[i];
}

void operations_are_of_the_program()
{
    on_ranks([](rondo::communicator &comm, int r) {
        int factor = 10, digit = r + 1;
        rondo::operation digits(comm, then, &factor, false);
        rondo::operation scaled = rondo::operation::premul_sum(comm, 2 * r);

        comm.all_reduce(&digit, 1, digits.get());
        EXPECT(digit == 123);
        digit = 1;
        comm.all_reduce(&digit, 1, scaled.get());
        EXPECT(digit == 6);
    });
}

void streams_and_events_are_those_of_the_call()
{
    on_ranks([](rondo::communicator &comm, int r) {
        rondo::stream queue = rondo::stream::open();
        rondo::event done = rondo::event::open();
        rondo::memory<float> sum(100);

        sum[99] = static_cast<float>(r);
        comm.all_reduce(sum.data(), sum.size(), RONDO_SUM, queue.get());
        done.record(queue.get());
        EXPECT(done.outcome());
        EXPECT(done.query() && sum[99] == 3);
        queue.wait(done);
        queue.synchronize();
        EXPECT(queue.query());
    });
}

/* ---- Errors ---- */

void errors_have_result_rank_and_sentence()
{
    on_ranks([](rondo::communicator &comm, int r) {
        int number = 0;
        rondo::error error = error_of([&] { comm.broadcast(&number, 1, RANKS + 5); });

        EXPECT(error.result() == RONDO_ERROR_INVALID && error.rank() == r);
        EXPECT(std::strlen(error.what()) > 10 &&
               rondo_last_error(nullptr) == std::string(error.what()));
        comm.barrier(); /* nothing had begun */
    });
    rondo::error error = error_of([] { rondo::communicator::open_all(-1); });

    EXPECT(error.result() == RONDO_ERROR_INVALID && error.rank() == -1);
    EXPECT(error_of([] { rondo::memory<double> all(static_cast<std::size_t>(-1) / 4); }).result() ==
           RONDO_ERROR_MEMORY);
}

void ranks_that_are_left_go_on_after_an_exception()
{
    on_ranks([](rondo::communicator &comm, int r) {
        if (r == 1) {
            comm.close();
            return;
        }
        int number = 1;
        rondo::error error = error_of([&] { comm.all_reduce(&number, 1); });

        EXPECT(error.result() == RONDO_ERROR_PEER && error.rank() == r);
        EXPECT(comm.query() == RONDO_ERROR_PEER);
        EXPECT(comm.agree() == std::vector<int>{1} && comm.failed() == std::vector<int>{1});

        rondo::communicator smaller = comm.shrink();

        smaller.all_reduce(&number, 1);
        EXPECT(number == 2 && smaller.size() == 2 && smaller.rank() == r / 2);
    });
}

void an_abort_throws_on_the_ranks_that_wait()
{
    on_ranks([](rondo::communicator &comm, int r) {
        if (r == 0)
            comm.abort();
        else
            EXPECT(error_of([&] { comm.barrier(); }).result() == RONDO_ERROR_ABORTED);
    });
}

/* ---- Communicators, groups, messages ---- */

void communicators_come_of_communicators()
{
    on_ranks([](rondo::communicator &comm, int r) {
        rondo::communicator even = comm.split(r % 2 ? -1 : 0, r), twin = comm.dup();

        EXPECT(static_cast<bool>(even) == (r != 1) && (r == 1 || even.size() == 2));
        EXPECT(twin.rank() == r && twin.size() == RANKS && comm.local_size() == RANKS);
        if (r != 1) {
            rondo::communicator two = comm.open_among({0, 2});

            EXPECT(two.size() == 2 && two.rank() == two.local_rank());
        }
        comm.finalize();
    });
}

void a_group_is_ended_also_by_an_exception()
{
    std::vector<rondo::communicator> comms = rondo::communicator::open_all(RANKS);
    int numbers[RANKS] = {1, 2, 3}, received = 0;

    rondo::group([&] {
        for (int r = 0; r < RANKS; r++)
            comms[static_cast<std::size_t>(r)].all_reduce(&numbers[r], 1);
    });
    EXPECT(numbers[0] == 6 && numbers[2] == 6);
    try {
        rondo::group([&] {
            comms[0].send(&numbers[1], 1, 2);
            comms[2].recv(&received, 1, 0);
            throw std::runtime_error("of the body");
        });
        EXPECT(!"an exception came out of the group");
    } catch (const std::runtime_error &error) {
        EXPECT(std::string(error.what()) == "of the body");
    }
    EXPECT(received == 6 && !rondo_group_is_open());
}

void messages_have_tags_and_requests_end()
{
    on_ranks([](rondo::communicator &comm, int r) {
        rondo::p2p messages = rondo::p2p::open(comm);
        short sent[2] = {static_cast<short>(r), 5}, got[2] = {0, 0};
        rondo::transfer receive = messages.recv(got, 2, (r + 2) % RANKS, 7);
        rondo::transfer send = messages.send(sent, 2, (r + 1) % RANKS, 7);
        rondo_envelope envelope;

        EXPECT(receive.wait(-1, &envelope) && send.wait());
        EXPECT(envelope.tag == 7 && envelope.bytes == sizeof(got) && got[0] == (r + 2) % RANKS);
        EXPECT(!messages.probe(RONDO_ANY_SOURCE, RONDO_ANY_TAG, 0, &envelope));

        int number = 1;
        rondo_call call = rondo_call();
        rondo::request request;

        call.struct_size = sizeof(call);
        call.collective = RONDO_ALL_REDUCE;
        call.type = RONDO_INT32;
        call.input = call.output = &number;
        call.count = 1;
        call.comm = comm.get();
        if (rondo::request::post(call, &request))
            EXPECT(request.wait() && number == RANKS);
        else
            comm.all_reduce(&number, 1);
        EXPECT(number == RANKS);
    });
}

void threads_share_a_communicator()
{
    on_ranks([](rondo::communicator &comm, int) {
        std::vector<std::thread> threads;
        std::vector<int> wrong(2);

        for (int &mine : wrong)
            threads.emplace_back([&] {
                for (int i = 0; i < 100; i++) {
                    long sum = 1;

                    comm.all_reduce(&sum, 1);
                    mine += sum != RANKS;
                }
            });
        for (std::thread &thread : threads)
            thread.join();
        EXPECT(wrong[0] == 0 && wrong[1] == 0);
    });
}

struct test_case {
    const char *name;
    void (*run)();
};

#define CASE(name)  \
    {               \
#name, name \
    }
const test_case cases[] = {
    CASE(owners_can_be_moved_and_not_copied),
    CASE(what_ends_with_its_communicator_is_ended_once),
    CASE(elements_have_the_types_of_c),
    CASE(each_collective_gets_its_arguments),
    CASE(collectives_with_counts_get_theirs),
    CASE(operations_are_of_the_program),
    CASE(streams_and_events_are_those_of_the_call),
    CASE(errors_have_result_rank_and_sentence),
    CASE(ranks_that_are_left_go_on_after_an_exception),
    CASE(an_abort_throws_on_the_ranks_that_wait),
    CASE(communicators_come_of_communicators),
    CASE(a_group_is_ended_also_by_an_exception),
    CASE(messages_have_tags_and_requests_end),
    CASE(threads_share_a_communicator),
};

} // namespace

int main()
{
    int number = 0, failed = 0;

    std::printf("1..%d\n", static_cast<int>(sizeof(cases) / sizeof(*cases)));
    for (const test_case &one : cases) {
        try {
            one.run();
            std::printf("ok %d - %s\n", ++number, one.name);
        } catch (const std::exception &error) {
            std::printf("not ok %d - %s\n# %s\n", ++number, one.name, error.what());
            failed++;
        }
    }
    return failed != 0;
}
