/* SPDX-License-Identifier: BSD-3-Clause */
/* test_stream.c - streams and events at their edges: closed
 * while queued, recorded twice, errors that are kept. */
#include "comm_bodies.h"
#include "rondo/rondo.h"

#include <criterion/criterion.h>
#include <string.h>

Test(stream, an_event_keeps_the_point_that_was_waited_for_when_it_is_recorded_again)
{
    const char *wrong = events_keep_their_point();

    cr_expect(!wrong, "%s", wrong);
}

Test(stream, closing_does_what_is_queued_also_with_events_that_are_closed)
{
    const char *wrong = streams_close_while_queued(20);

    cr_expect(!wrong, "%s", wrong);
}

Test(stream, a_function_of_its_own_may_close_it_and_what_is_behind_it_is_done)
{
    const char *wrong = streams_close_themselves(20);

    cr_expect(!wrong, "%s", wrong);
}

Test(stream, an_event_that_was_never_recorded_has_happened)
{
    rondo_event *event = NULL;
    rondo_stream *stream = NULL;

    cr_assert(rondo_event_open(&event) == RONDO_OK && rondo_stream_open(&stream) == RONDO_OK);
    cr_expect(rondo_event_query(event) == RONDO_OK && rondo_event_wait(event) == RONDO_OK);
    cr_expect(rondo_stream_wait_event(stream, event) == RONDO_OK);
    cr_expect(rondo_stream_synchronize(stream) == RONDO_OK);
    cr_expect(rondo_stream_query(stream) == RONDO_OK);
    rondo_event_close(event);
    rondo_stream_close(stream);
}

Test(stream, the_first_error_is_kept_with_its_sentence_until_it_is_asked_for)
{
    rondo_comm *comms[2];
    rondo_stream *stream = NULL;
    char value = 1;
    rondo_result result;

    cr_assert(rondo_comm_open_all(2, NULL, comms) == RONDO_OK);
    cr_assert(rondo_stream_open(&stream) == RONDO_OK);
    cr_assert(rondo_all_reduce(&value, &value, 1, RONDO_INT8, RONDO_SUM, comms[0], stream) ==
              RONDO_OK);
    cr_expect(rondo_stream_query(stream) == RONDO_IN_PROGRESS, "rank 1 does not call");
    cr_assert(rondo_comm_abort(comms[1]) == RONDO_OK);
    while ((result = rondo_stream_query(stream)) == RONDO_IN_PROGRESS)
        continue;
    cr_expect(result == RONDO_ERROR_ABORTED);
    cr_expect(strstr(rondo_last_error(NULL), "Rank 1 aborted"), "%s", rondo_last_error(NULL));
    cr_expect(rondo_stream_synchronize(stream) == RONDO_ERROR_ABORTED);
    cr_expect(rondo_stream_synchronize(stream) == RONDO_OK, "it was handed out");
    cr_expect(rondo_all_reduce(&value, &value, 1, RONDO_INT8, RONDO_SUM, comms[0], stream) ==
              RONDO_ERROR_ABORTED);
    rondo_stream_close(stream);
    rondo_comm_close(comms[0]);
    rondo_comm_close(comms[1]);
}

Test(stream, missing_streams_and_events_are_refused_in_a_sentence)
{
    rondo_event *event = NULL;
    rondo_stream *stream = NULL;

    cr_assert(rondo_event_open(&event) == RONDO_OK && rondo_stream_open(&stream) == RONDO_OK);
    cr_expect(rondo_stream_synchronize(NULL) == RONDO_ERROR_INVALID);
    cr_expect(rondo_stream_query(NULL) == RONDO_ERROR_INVALID);
    cr_expect(rondo_stream_call(stream, NULL, NULL) == RONDO_ERROR_INVALID);
    cr_expect(rondo_event_query(NULL) == RONDO_ERROR_INVALID);
    cr_expect(rondo_event_wait(NULL) == RONDO_ERROR_INVALID);
    cr_expect(rondo_event_record(NULL, stream) == RONDO_ERROR_INVALID);
    cr_expect(rondo_event_record(event, NULL) == RONDO_ERROR_INVALID);
    cr_expect(rondo_stream_wait_event(NULL, event) == RONDO_ERROR_INVALID);
    cr_expect(rondo_stream_wait_event(stream, NULL) == RONDO_ERROR_INVALID);
    cr_expect(strstr(rondo_last_error(NULL), "rondo_stream_wait_event"));
    rondo_event_close(event);
    rondo_stream_close(stream);
}

/* More than the library keeps of closed communicators, so that some are freed. */
enum { CLOSED = 17 };

Test(stream, a_group_goes_on_when_communicators_are_closed_with_which_it_is_done, .timeout = 60)
{
    rondo_comm *done[CLOSED], *waiting[2];
    rondo_stream *stream = NULL;
    void *memory = NULL;

    cr_assert(rondo_comm_open_all(CLOSED, NULL, done) == RONDO_OK);
    cr_assert(rondo_comm_open_all(2, NULL, waiting) == RONDO_OK);
    cr_assert(rondo_stream_open(&stream) == RONDO_OK && rondo_group_start() == RONDO_OK);
    for (int r = 0; r < CLOSED; r++)
        cr_assert(rondo_barrier(done[r], stream) == RONDO_OK);
    cr_assert(rondo_barrier(waiting[0], stream) == RONDO_OK);
    cr_assert(rondo_group_end() == RONDO_OK, "%s", rondo_last_error(NULL));
    for (int r = 0; r < CLOSED; r++)
        rondo_comm_close(done[r]);
    for (int i = 0; i < 1000; i++) { /* each looks at what is queued, which goes on meanwhile */
        cr_assert(rondo_mem_alloc(1, &memory) == RONDO_OK);
        cr_assert(rondo_mem_free(memory) == RONDO_OK);
    }
    cr_expect(rondo_barrier(waiting[1], NULL) == RONDO_OK, "%s", rondo_last_error(NULL));
    cr_expect(rondo_stream_synchronize(stream) == RONDO_OK, "%s", rondo_last_error(NULL));
    rondo_stream_close(stream);
    rondo_comm_close(waiting[0]);
    rondo_comm_close(waiting[1]);
}
