/* SPDX-License-Identifier: BSD-3-Clause */
/* 03_streams.c - calls in the background: queue two, work
 * on something else, wait for the first by its event. */
#include <rondo/check.h>

#include <stdio.h>

enum { COUNT = 1 << 20 };

static double first[COUNT], second[COUNT];

static double run(rondo_comm *comm, rondo_stream *stream, rondo_event *first_is_done)
{
    double work = 0;

    /* Both return at once; the stream runs them one after the other. */
    RONDO_CHECK(rondo_all_reduce(first, first, COUNT, RONDO_FLOAT64, RONDO_SUM, comm, stream));
    RONDO_CHECK(rondo_event_record(first_is_done, stream));
    RONDO_CHECK(rondo_all_reduce(second, second, COUNT, RONDO_FLOAT64, RONDO_MAX, comm, stream));

    for (int i = 1; rondo_event_query(first_is_done) == RONDO_IN_PROGRESS; i++)
        work += 1.0 / i;

    RONDO_CHECK(rondo_event_wait(first_is_done));
    printf("rank %d: the first sum is %g\n", rondo_comm_rank(comm), first[COUNT - 1]);
    RONDO_CHECK(rondo_stream_synchronize(stream));
    printf("rank %d: the second maximum is %g\n", rondo_comm_rank(comm), second[COUNT - 1]);
    return work;
}

int main(void)
{
    rondo_comm *comm;
    rondo_stream *stream;
    rondo_event *event;
    double work;

    RONDO_CHECK(rondo_comm_open(NULL, &comm));
    RONDO_CHECK(rondo_stream_open(&stream));
    RONDO_CHECK(rondo_event_open(&event));
    for (int i = 0; i < COUNT; i++)
        first[i] = second[i] = rondo_comm_rank(comm) + 1;
    work = run(comm, stream, event);
    rondo_stream_close(stream);
    rondo_event_close(event);
    rondo_comm_close(comm);
    return work < 0;
}
