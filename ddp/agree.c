/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agree.c - what ranks must have in common: the model, and what went wrong.
 *
 * A rank with a problem goes on taking part, so that no other rank waits for it in vain; at the end
 * of the step one small all-reduce tells whether any rank had a problem, and that rank's sentence
 * goes to all. The model is compared as text, one line for each tensor: the first line that differs
 * from rank 0's is the message.
 */
#include "ddp/core.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

rondo_result ddp_problem(rondo_ddp *ddp, rondo_result result, const char *format, ...)
{
    char sentence[DDP_SENTENCE];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(sentence, sizeof(sentence), format, arguments);
    va_end(arguments);
    if (!ddp->problem) {
        ddp->problem = result;
        memcpy(ddp->sentence, sentence, sizeof(sentence));
    }
    return ddp_fail(result, "%s", sentence);
}

rondo_result ddp_broken(rondo_ddp *ddp, rondo_result result, const rondo_comm *comm,
                        const char *what)
{
    ddp->broken = true;
    ddp->in_pass = false;
    ddp_fail_call(result, comm, what);
    if (!ddp->config.join && (result == RONDO_ERROR_MISMATCH ||
                              strstr(rondo_ddp_last_error(), "has closed the communicator")))
        ddp_fail(
            result,
            "%s If ranks have different numbers of steps, set config.join, and let those whose "
            "data are used up call rondo_ddp_join().",
            rondo_ddp_last_error());
    return result;
}

/* The culprit's sentence to all. */
static rondo_result tell(rondo_ddp *ddp, int culprit)
{
    struct ddp_news news = {ddp->problem, ""};
    rondo_result result;

    memcpy(news.sentence, ddp->sentence, sizeof(news.sentence));
    result = ddp_spread(&news, culprit, ddp->comm);
    if (result)
        return ddp_broken(ddp, result, ddp->comm, "Asking what went wrong");
    ddp->problem = RONDO_OK;
    ddp->sentence[0] = 0;
    return ddp_fail((rondo_result)news.result, "%s", news.sentence);
}

rondo_result ddp_agree(rondo_ddp *ddp, size_t count)
{
    int32_t *votes = ddp->votes;
    rondo_result result;

    votes[DDP_VOTE_PROBLEM] = ddp->problem ? ddp->size - ddp->rank : 0;
    result = rondo_all_reduce(votes, votes, count, RONDO_INT32, RONDO_MAX, ddp->comm, NULL);
    if (result)
        return ddp_broken(ddp, result, ddp->comm, "Hearing from all ranks");
    return votes[DDP_VOTE_PROBLEM] ? tell(ddp, ddp->size - votes[DDP_VOTE_PROBLEM]) : RONDO_OK;
}

rondo_result ddp_broadcast(rondo_ddp *ddp, const struct ddp_tensor *tensors, int count, int root)
{
    rondo_result result = rondo_group_start(), ended;

    if (result)
        return ddp_broken(ddp, result, NULL, "Broadcasting the model");
    for (int i = 0; i < count && !result; i++)
        result = rondo_broadcast(tensors[i].data, tensors[i].data, tensors[i].count,
                                 tensors[i].type, root, ddp->comm, NULL);
    ended = rondo_group_end();
    if (!result)
        result = ended;
    return result ? ddp_broken(ddp, result, ddp->comm, "Broadcasting the model") : RONDO_OK;
}

/* ---- The model as text ----------------------------------------------------------------------- */

static void write_settings(FILE *file, const rondo_ddp_config *config)
{
    fprintf(file,
            "settings: bucket_bytes %zu, first_bucket_bytes %zu, average %d, accumulation %d, "
            "join %d, compression %d, hook %s, find_unused %d, check_nan %d, broadcast_buffers %d, "
            "rebuild %d, device %s\n",
            config->bucket_bytes, config->first_bucket_bytes, (int)config->average,
            (int)config->accumulation, (int)config->join, (int)config->compression,
            config->hook.start ? "yes" : "no", config->find_unused, config->check_nan,
            config->broadcast_buffers, config->rebuild, config->device.stream ? "yes" : "no");
}

static void write_tensors(FILE *file, const char *kind, const struct ddp_tensor *tensors, int count)
{
    for (int i = 0; i < count; i++) {
        const struct ddp_tensor *t = &tensors[i];

        fprintf(file, "%s %d, '%s' of %zu %s%s\n", kind, i, t->name, t->count,
                rondo_type_name(t->type), t->frozen ? ", frozen" : "");
    }
}

/* NULL: out of memory. To be freed. */
static char *model_text(const rondo_ddp *ddp, size_t *ret_bytes)
{
    char *text = NULL;
    FILE *file = open_memstream(&text, ret_bytes);

    if (!file)
        return NULL;
    write_settings(file, &ddp->config);
    write_tensors(file, "parameter", ddp->parameters, ddp->parameter_count);
    write_tensors(file, "buffer", ddp->buffers, ddp->buffer_count);
    if (fclose(file)) {
        free(text);
        return NULL;
    }
    return text;
}

/* The first line that differs; both end with one that is empty. */
static void compare(rondo_ddp *ddp, const char *mine, const char *theirs)
{
    int here, there;

    for (;;) {
        here = (int)strcspn(mine, "\n");
        there = (int)strcspn(theirs, "\n");
        if (here != there || memcmp(mine, theirs, (size_t)here) != 0)
            break;
        if (!mine[here] || !theirs[there])
            return;
        mine += here + 1;
        theirs += there + 1;
    }
    ddp_problem(ddp, RONDO_ERROR_MISMATCH,
                "Ranks registered different models. Rank %d has %.*s; rank 0 has %.*s. Register "
                "the same tensors in the same order, with the same settings, on every rank.",
                ddp->rank, here ? here : 7, here ? mine : "no more", there ? there : 7,
                there ? theirs : "no more");
}

rondo_result ddp_agree_on_model(rondo_ddp *ddp)
{
    size_t bytes = 0;
    uint64_t length;
    char *mine = model_text(ddp, &bytes), *theirs = NULL;
    rondo_result result;

    if (!mine)
        return ddp_fail(RONDO_ERROR_MEMORY, "Out of memory for a description of the model.");
    length = bytes;
    result = rondo_broadcast(&length, &length, 1, RONDO_UINT64, 0, ddp->comm, NULL);
    theirs = result ? NULL : calloc(1, length + 1);
    if (!result && !theirs)
        result = RONDO_ERROR_MEMORY;
    if (!result)
        result = rondo_broadcast(mine, theirs, length, RONDO_UINT8, 0, ddp->comm, NULL);
    if (result) {
        ddp_fail_call(result, ddp->comm, "Comparing the model with rank 0's");
    } else {
        compare(ddp, mine, theirs);
        result = ddp_agree(ddp, DDP_VOTE_PROBLEM + 1);
    }
    free(mine);
    free(theirs);
    return result;
}
