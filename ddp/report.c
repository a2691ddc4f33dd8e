/* SPDX-License-Identifier: BSD-3-Clause */
/* report.c - statistics, and the buckets in words. */
#include "ddp/core.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

rondo_result rondo_ddp_statistics_get(const rondo_ddp *ddp, rondo_ddp_statistics *ret)
{
    if (!ddp || !ret)
        return ddp_fail(RONDO_ERROR_INVALID, "rondo_ddp_statistics_get: no %s.",
                        ddp ? "place for them" : "rondo_ddp");
    *ret = ddp->statistics;
    ret->buckets = ddp->layout.count;
    ret->rebuilt = ddp->rebuilt;
    return RONDO_OK;
}

rondo_result rondo_ddp_statistics_reset(rondo_ddp *ddp)
{
    if (!ddp)
        return ddp_fail(RONDO_ERROR_INVALID, "rondo_ddp_statistics_reset: no rondo_ddp.");
    memset(&ddp->statistics, 0, sizeof(ddp->statistics));
    return RONDO_OK;
}

static size_t bucket_bytes(const struct ddp_bucket *bucket)
{
    return bucket->view.count * rondo_type_size(bucket->view.type);
}

rondo_result rondo_ddp_bucket_statistics_get(const rondo_ddp *ddp, int index,
                                             rondo_ddp_bucket_statistics *ret)
{
    const struct ddp_bucket *bucket;

    if (!ddp || !ret || index < 0 || index >= ddp->layout.count || (ddp->in_pass && ddp->next))
        return ddp_fail(RONDO_ERROR_INVALID, "rondo_ddp_bucket_statistics_get: %s.",
                        !ddp || !ret ? "no rondo_ddp, or no place for them"
                        : ddp->in_pass && ddp->next
                            ? "the exchange is under way; call rondo_ddp_wait() first"
                            : "there is no such bucket");
    bucket = &ddp->layout.buckets[index];
    *ret = (rondo_ddp_bucket_statistics){
        .parameters = bucket->parameter_count,
        .bytes = bucket_bytes(bucket),
        .ready = bucket->ready,
        .started = bucket->started,
        .finished = bucket->finished,
    };
    return RONDO_OK;
}

/* ---- In words -------------------------------------------------------------------------------- */

/* Text that may be longer than its place; `length` counts all of it. */
struct page {
    char *text;
    size_t bytes, length;
};

__attribute__((format(printf, 2, 3))) static void say(struct page *page, const char *format, ...)
{
    size_t left = page->length < page->bytes ? page->bytes - page->length : 0;
    va_list arguments;
    int more;

    va_start(arguments, format);
    more = vsnprintf(left ? page->text + page->length : NULL, left, format, arguments);
    va_end(arguments);
    if (more > 0)
        page->length += (size_t)more;
}

static void describe_bucket(struct page *page, const rondo_ddp *ddp,
                            const struct ddp_bucket *bucket)
{
    enum { NAMES = 4 };

    say(page, "bucket %d: %zu bytes of %s, %d parameter%s:", bucket->view.index,
        bucket_bytes(bucket), rondo_type_name(bucket->view.type), bucket->parameter_count,
        bucket->parameter_count == 1 ? "" : "s");
    for (int i = 0; i < bucket->parameter_count; i++) {
        if (i == NAMES && bucket->parameter_count > NAMES + 1) {
            say(page, " ... '%s'",
                ddp->parameters[bucket->parameters[bucket->parameter_count - 1]].name);
            break;
        }
        say(page, " '%s'", ddp->parameters[bucket->parameters[i]].name);
    }
    if (bucket->finished > 0 && !(ddp->in_pass && ddp->next))
        say(page, "; full at %.3f ms, exchanged from %.3f to %.3f ms", bucket->ready * 1e3,
            bucket->started * 1e3, bucket->finished * 1e3);
    say(page, "\n");
}

size_t rondo_ddp_describe(const rondo_ddp *ddp, char *text, size_t bytes)
{
    struct page page = {text, text ? bytes : 0, 0};

    if (!ddp)
        return 0;
    if (page.bytes)
        text[0] = 0;
    say(&page, "%d parameters, %d of them trained, %d buffers; %d bucket%s, %s\n",
        ddp->parameter_count, ddp->trained, ddp->buffer_count, ddp->layout.count,
        ddp->layout.count == 1 ? "" : "s",
        ddp->rebuilt ? "in the order of the first step's gradients"
                     : "from the last parameter to the first");
    for (int i = 0; i < ddp->layout.count; i++)
        describe_bucket(&page, ddp, &ddp->layout.buckets[i]);
    return page.length;
}
