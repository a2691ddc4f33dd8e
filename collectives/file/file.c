/* SPDX-License-Identifier: BSD-3-Clause */
/* file.c - from a file to an algorithm: read, prove, add to the list. */
#include "collectives/file/file.h"

#include "base/collective.h"
#include "base/fail.h"
#include "plan/msccl/msccl.h"

#include <stdio.h>
#include <stdlib.h>

/* An algorithm and what it is made of, which live as long as the process. */
struct file_form {
    struct algorithm algorithm;
    struct given given;
    char name[PLAN_FILE_NAME + 24];
    struct plan_file *file;
};

rondo_result file_read(const char *path, struct plan_file **ret_file)
{
    size_t length = 0;
    char *text;
    rondo_result result = plan_file_load(path, &text, &length);

    if (!result && msccl_is_xml(text, length))
        result = msccl_parse(path, text, length, ret_file);
    else if (!result)
        result = plan_file_parse(path, text, length, ret_file);
    free(text);
    return result;
}

static bool works_in_place(rondo_collective collective)
{
    return collective != RONDO_ALL_TO_ALL && collective < RONDO_BARRIER;
}

static unsigned promises_of(const struct plan_file *file, const struct verify_report *report)
{
    unsigned promises = report->peer_memory ? PROMISE_PEER_MEMORY : 0;

    if (works_in_place(file->collective))
        promises |= PROMISE_IN_PLACE;
    if (!collective_reduces(file->collective))
        return promises;
    return promises | (report->balanced ? PROMISE_BALANCED : 0) |
           (report->rank_order ? PROMISE_RANK_ORDER : 0) |
           (report->one_round ? PROMISE_ONE_ROUND : 0);
}

rondo_result file_prove(const struct plan_file *file, const char *path, int slots,
                        struct verify_report *ret_report, unsigned *ret_promises)
{
    for (int in_place = 0; in_place <= works_in_place(file->collective); in_place++) {
        struct verify_options how = {.slots = slots, .in_place = in_place};
        rondo_result result = verify_plans(file->plans, file->size, &how, ret_report);

        if (result == RONDO_ERROR_MEMORY)
            return result;
        if (result)
            return rondo_fail(RONDO_ERROR_INVALID, "The plan in %s is wrong%s: %s.", path,
                              in_place ? " where input and output are in one place, as they may be"
                                       : "",
                              ret_report->failure);
    }
    *ret_promises = promises_of(file, ret_report);
    return RONDO_OK;
}

/* Writes the plan as it is given. */
static void write_given(struct plan *plan)
{
    const struct plan *given = plan->given;

    plan->algorithm = given->algorithm; /* the name in the file */
    plan_shape(plan, given->parts, given->message_atoms, given->scratch_blocks);
    for (int p = 0; p < given->programs; p++) {
        if (p)
            plan_next_program(plan);
        for (uint32_t s = given->program[p].begin; s < given->program[p].end; s++) {
            const struct plan_step *step = &given->steps[s];
            bool moves = step->verb == PLAN_COPY || step->verb == PLAN_REDUCE;

            plan_append(plan, step, moves ? plan_sources(given, step) : NULL);
        }
    }
}

static void file_form_close(struct file_form *form)
{
    plan_file_close(form->file);
    free(form);
}

static rondo_result make(struct plan_file *file, unsigned promises,
                         const struct algorithm **ret_algorithm)
{
    struct file_form *form = calloc(1, sizeof(*form));

    if (!form) {
        plan_file_close(file);
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for the plans of a file.");
    }
    form->file = file;
    form->given = (struct given){file->plans, file->size, file->root};
    snprintf(form->name, sizeof(form->name), "file:%s.%016llx", file->name,
             (unsigned long long)file->hash);
    form->algorithm = (struct algorithm){
        .name = form->name, .summary = "Plans that were read from a file.", .given = &form->given};
    form->algorithm.forms[file->collective] =
        (struct form){.write = write_given, .promises = promises};
    *ret_algorithm = algorithm_find(form->name);
    if (!*ret_algorithm)
        *ret_algorithm = algorithm_add(&form->algorithm);
    if (*ret_algorithm != &form->algorithm)
        file_form_close(form); /* the same was read before */
    return *ret_algorithm ? RONDO_OK
                          : rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for an algorithm.");
}

rondo_result file_algorithm_of(struct plan_file *file, const char *path,
                               const struct algorithm **ret_algorithm)
{
    struct verify_report report;
    unsigned promises;
    rondo_result result = file_prove(file, path, 0, &report, &promises);

    if (!result)
        return make(file, promises, ret_algorithm);
    plan_file_close(file);
    return result;
}

rondo_result file_algorithm(const char *path, const struct algorithm **ret_algorithm)
{
    struct plan_file *file = NULL;
    rondo_result result = file_read(path, &file);

    return result ? result : file_algorithm_of(file, path, ret_algorithm);
}
