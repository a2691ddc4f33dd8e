/* SPDX-License-Identifier: BSD-3-Clause */
/* 03_streams.c - calls in the background: queue two, work
 * on something else, wait for the first by its event. */
#include <rondo/rondo.h>

#include <stdio.h>

enum { COUNT = 1 << 20 };

static double first[COUNT], second[COUNT];

static rondo_result run(rondo_comm *comm, rondo_stream *stream, rondo_event *first_is_done)
{
    rondo_result result;
    double work = 0;

    /* Both return at once; the stream runs them one after the other. */
    if ((result = rondo_all_reduce(first, first, COUNT, RONDO_FLOAT64, RONDO_SUM, comm, stream)) ||
        (result = rondo_event_record(first_is_done, stream)) ||
        (result = rondo_all_reduce(second, second, COUNT, RONDO_FLOAT64, RONDO_MAX, comm, stream)))
        return result;

    for (int i = 1; rondo_event_query(first_is_done) == RONDO_IN_PROGRESS; i++)
        work += 1.0 / i;

    if ((result = rondo_event_wait(first_is_done)))
        return result;
    printf("rank %d: the first sum is %g\n", rondo_comm_rank(comm), first[COUNT - 1]);
    if ((result = rondo_stream_synchronize(stream)))
        return result;
    printf("rank %d: the second maximum is %g\n", rondo_comm_rank(comm), second[COUNT - 1]);
    return work < 0 ? RONDO_ERROR_INTERNAL : RONDO_OK;
}

int main(void)
{
    rondo_comm *comm = NULL;
    rondo_stream *stream = NULL;
    rondo_event *event = NULL;
    rondo_result result = rondo_comm_open(NULL, &comm);

    for (int i = 0; i < COUNT && !result; i++)
        first[i] = second[i] = rondo_comm_rank(comm) + 1;
    if (!result)
        result = rondo_stream_open(&stream);
    if (!result)
        result = rondo_event_open(&event);
    if (!result)
        result = run(comm, stream, event);
    if (result)
        fprintf(stderr, "%s\n", rondo_last_error(comm));
    rondo_stream_close(stream);
    rondo_event_close(event);
    rondo_comm_close(comm);
    return result != RONDO_OK;
}
