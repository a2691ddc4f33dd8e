/* SPDX-License-Identifier: BSD-3-Clause */
/* test_closed.c - what becomes of a posted call whose communicator is closed by another thread. */
#include "comm/engine/post.h"
#include "comm/engine/run.h"

#include <criterion/criterion.h>
#include <string.h>

/* The thread that ends a posted call, as who frees its memory does, passes the turn on before it
 * tells the caller: another thread may come in between, and close. */
Test(post, its_error_is_told_when_its_communicator_is_closed)
{
    int32_t value = 1;
    rondo_comm *comms[2];
    rondo_call call = {.struct_size = sizeof(call),
                       .collective = RONDO_ALL_REDUCE,
                       .type = RONDO_INT32,
                       .op = RONDO_SUM,
                       .input = &value,
                       .output = &value,
                       .count = 1};
    rondo_request *request = NULL;

    cr_assert_eq(rondo_comm_open_all(2, NULL, comms), RONDO_OK);
    call.comm = comms[0];
    cr_assert_eq(rondo_collective_post(&call, &request), RONDO_OK);
    cr_assert(request && post_take(comms[0]) == request);
    cr_assert_eq(rondo_comm_abort(comms[0]), RONDO_OK);
    cr_expect_eq(run_batches(&request->batch, 1), RONDO_ERROR_ABORTED);
    rondo_comm_close(comms[0]);
    post_give(request);
    cr_expect_eq(rondo_request_wait(request, -1), RONDO_ERROR_ABORTED);
    cr_expect(strstr(rondo_last_error(NULL), "Rank 0 aborted"), "%s", rondo_last_error(NULL));
    rondo_request_close(request);
    rondo_comm_close(comms[1]);
}
