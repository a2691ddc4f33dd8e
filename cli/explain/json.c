/* SPDX-License-Identifier: BSD-3-Clause */
/* json.c - `rondo explain --json`: the plans as data, with what each step says and takes. */
#include "cli/explain/subject.h"

#include "plan/file/file.h"

struct json_notes {
    struct plan_notes notes; /* first: the functions get it back */
    const struct subject *subject;
    const struct explain_costs *costs;
    const struct explain_times *times;
};

/* The words of a plan have no quotes and no backslashes, so they need no escapes. */
static void note_step(const struct plan_notes *notes, int rank, uint32_t step, FILE *to)
{
    const struct json_notes *own = (const struct json_notes *)notes;
    const struct plan *plan = own->subject->plans[rank];
    const struct explain_span *span = &own->times->spans[rank][step];
    char text[400];

    plan_describe_step(plan, &plan->steps[step], text, sizeof(text));
    fprintf(to, ", \"start\": %.4g, \"end\": %.4g, \"text\": \"%s\"", span->start, span->end, text);
}

static void note_whole(const struct plan_notes *notes, FILE *to)
{
    const struct json_notes *own = (const struct json_notes *)notes;

    fprintf(to,
            ",\n \"summary\": \"%s\",\n"
            " \"costs\": {\"latency\": %g, \"copy_bw\": %g, \"reduce_bw\": %g, "
            "\"block_bytes\": %.0f",
            own->subject->algorithm->summary, own->costs->latency, own->costs->copy_bw,
            own->costs->reduce_bw, own->costs->bytes);
    if (own->costs->across.group_of)
        fprintf(to, ", \"across\": {\"latency\": %g, \"bandwidth\": %g, \"rails\": %d}",
                own->costs->across.latency, own->costs->across.bandwidth, own->costs->across.rails);
    fprintf(to, "}, \"seconds\": %.4g", own->times->end);
}

rondo_result subject_write_json(const struct subject *subject, const struct explain_costs *costs,
                                FILE *to)
{
    struct explain_costs own = subject_costs(subject, costs);
    struct explain_times times;
    struct json_notes notes = {
        .notes = {note_whole, note_step}, .subject = subject, .costs = &own, .times = &times};
    rondo_result result = explain_times_open(subject->plans, subject->plan_count, &own, &times);

    if (result)
        return result;
    plan_file_write(subject->plans, subject->plan_count, &notes.notes, to);
    explain_times_close(&times);
    return RONDO_OK;
}
