/* SPDX-License-Identifier: BSD-3-Clause */
/* stream.c - what all kinds of streams have in common: the checks of what they are given. */
#include "comm/engine/stream.h"
#include "comm/engine/call.h"

#include "base/cancel.h"
#include "base/fail.h"
#include "base/fork.h"

void rondo_stream_close(rondo_stream *stream)
{
    CANCEL_LATER();

    if (stream && fork_is_foreign(stream->home))
        fork_keep(stream); /* its thread is the parent's */
    else if (stream && !group_holds(NULL, stream, "rondo_stream_close", "stream"))
        stream->ops->close(stream);
}

rondo_result rondo_stream_synchronize(rondo_stream *stream)
{
    CANCEL_LATER();

    if (!stream)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_stream_synchronize: the stream is NULL.");
    if (fork_is_foreign(stream->home))
        return fork_refuse("rondo_stream_synchronize", "stream");
    return stream->ops->synchronize(stream);
}

rondo_result rondo_stream_query(rondo_stream *stream)
{
    CANCEL_LATER();

    if (!stream)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_stream_query: the stream is NULL.");
    if (fork_is_foreign(stream->home))
        return fork_refuse("rondo_stream_query", "stream");
    return stream->ops->query(stream);
}

rondo_result rondo_stream_call(rondo_stream *stream, rondo_stream_function function, void *context)
{
    CANCEL_LATER();

    if (!stream || !function)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_stream_call: needs a stream and a function.");
    if (fork_is_foreign(stream->home))
        return fork_refuse("rondo_stream_call", "stream");
    return stream->ops->call(stream, function, context);
}
