/* SPDX-License-Identifier: BSD-3-Clause */
/* fail.c - the last sentence of each thread, see fail.h. */
#include "ddp/fail.h"

#include <rondo/bindings.h>
#include <stdarg.h>
#include <stdio.h>

static _Thread_local char last[DDP_SENTENCE];

rondo_result ddp_fail(rondo_result result, const char *format, ...)
{
    char sentence[DDP_SENTENCE]; /* the last sentence may be among the arguments */
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(sentence, sizeof(sentence), format, arguments);
    va_end(arguments);
    snprintf(last, sizeof(last), "%s", sentence);
    return result;
}

rondo_result ddp_check_call(const void *handle, const char *function)
{
    if (!handle)
        return ddp_fail(RONDO_ERROR_INVALID, "%s: the handle is NULL.", function);
    if (rondo_group_is_open())
        return ddp_fail(RONDO_ERROR_INVALID,
                        "%s: not inside of a group; it needs the results of its calls at once.",
                        function);
    return RONDO_OK;
}

rondo_result ddp_fail_call(rondo_result result, const rondo_comm *comm, const char *what)
{
    return ddp_fail(result, "%s: %s", what, rondo_last_error(comm));
}

rondo_result ddp_spread(struct ddp_news *news, int culprit, rondo_comm *comm)
{
    rondo_result result =
        rondo_broadcast(news, news, sizeof(*news), RONDO_UINT8, culprit, comm, NULL);

    news->sentence[DDP_SENTENCE - 1] = 0;
    if (news->result <= RONDO_OK || news->result >= RONDO_RESULTS)
        news->result = RONDO_ERROR_INTERNAL;
    return result;
}

const char *rondo_ddp_last_error(void)
{
    return last;
}
