/* SPDX-License-Identifier: BSD-3-Clause */
/* test_msccl.c - algorithms of MSCCL: read, proved or refused with their step, and written. */
#include "tests/plan/verify_forms.h"

#include "base/fail.h"
#include "cli/msccl/write.h"
#include "collectives/file/file.h"
#include "plan/msccl/msccl.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static rondo_result prove(const char *text)
{
    struct plan_file *file = NULL;
    struct verify_report report;
    unsigned promises = 0;
    rondo_result result = msccl_parse("text", text, strlen(text), &file);

    if (!result)
        result = file_prove(file, "text", 0, &report, &promises);
    plan_file_close(file);
    return result;
}

static char *pairs(void)
{
    size_t length = 0;
    char *text = NULL, *ended;

    cr_assert(!plan_file_load(PAIRS, &text, &length), "%s", fail_sentence());
    ended = strndup(text, length);
    free(text);
    return ended;
}

Test(msccl, an_algorithm_written_by_hand_is_proved)
{
    char *text = pairs();

    cr_assert(msccl_is_xml(text, strlen(text)));
    cr_assert(!prove(text), "%s", fail_sentence());
    free(text);
}

/* All GPUs send all to all, then add in place: chunks of scratch are other ranks' vectors. */
static char *all_pairs(int ranks)
{
    char *text = NULL;
    size_t length;
    FILE *to = open_memstream(&text, &length);
    const char *step = "<step s='%d' type='%s' srcbuf='%c' srcoff='%d' dstbuf='%c' dstoff='%d' "
                       "cnt='1' depid='%d' deps='%d' hasdep='0'/>\n";

    fprintf(to, "<?xml version='1.0'?>\n<algo name='all pairs' coll='allreduce' ngpus='%d'>\n",
            ranks);
    for (int r = 0; r < ranks; r++) {
        int block = 0, number = 0;

        fprintf(to, "<gpu id='%d' i_chunks='1' o_chunks='0' s_chunks='%d'>\n", r, ranks);
        for (int peer = 0; peer < ranks; peer++) {
            if (peer == r)
                continue;
            fprintf(to, "<tb id='%d' send='%d' recv='%d' chan='0'>\n", block++, peer, peer);
            fprintf(to, step, 0, "s", 'i', 0, 's', r, -1, -1);
            fprintf(to, step, 1, "r", 'i', 0, 's', peer, -1, -1);
            fputs("</tb>\n", to);
        }
        fprintf(to, "<tb id='%d' send='-1' recv='-1' chan='0'>\n", block);
        for (int b = 0; b < block; b++)
            fprintf(to, step, number++, "nop", 'i', 0, 'i', 0, b, 1);
        for (int peer = 0; peer < ranks; peer++)
            if (peer != r)
                fprintf(to, step, number++, "re", 's', peer, 'i', 0, -1, -1);
        fputs("</tb></gpu>\n", to);
    }
    fputs("</algo>\n", to);
    cr_assert_eq(fclose(to), 0);
    return text;
}

/* Each rank adds in another order, and an all_reduce has the same bits everywhere. */
Test(msccl, sums_that_differ_among_gpus_are_refused_and_those_of_two_do_not)
{
    char *two = all_pairs(2), *three = all_pairs(3);

    cr_assert(!prove(two), "%s", fail_sentence());
    cr_assert_eq(prove(three), RONDO_ERROR_INVALID);
    free(two);
    free(three);
}

static void refuse_change(const char *find, const char *replace, const char *says)
{
    char *text = pairs(), *at = strstr(text, find), *changed = NULL;

    cr_assert_not_null(at, "%s", find);
    cr_assert(asprintf(&changed, "%.*s%s%s", (int)(at - text), text, replace, at + strlen(find)) >
              0);
    cr_assert_eq(prove(changed), RONDO_ERROR_INVALID, "%s", replace);
    cr_assert(strstr(fail_sentence(), says), "'%s' should say '%s'", fail_sentence(), says);
    free(changed);
    free(text);
}

Test(msccl, what_is_wrong_is_refused_with_its_place)
{
    refuse_change("coll=\"allreduce\"", "coll=\"allsum\"", "coll is allsum");
    refuse_change("ngpus=\"4\"", "ngpus=\"400\"", "ngpus is 400");
    refuse_change("send=\"1\"", "send=\"9\"", "send is 9");
    refuse_change("send=\"1\"", "send=\"-1\"",
                  "GPU 0, block 0, step 0: the block has no such peer");
    refuse_change("type=\"rrc\"", "type=\"rrx\"", "no step has the type rrx");
    refuse_change("srcoff=\"0\"", "srcoff=\"1\"",
                  "GPU 0, block 0, step 0: its source lies outside");
    refuse_change("srcbuf=\"i\"", "srcbuf=\"o\"", "GPU 0, block 0, step 0: its source");
    refuse_change("depid=\"0\" deps=\"1\"", "depid=\"1\" deps=\"1\"", "step 0: deadlock");
    refuse_change("cnt=\"1\"", "cnt=\"0\"", "the message that comes has another length");
    refuse_change("<gpu id=\"1\"", "<gpu id=\"0\"", "GPU 0 was there before");
    refuse_change("type=\"rrc\"", "type=\"r\"", "rank 0");
    refuse_change("step s=\"1\"", "step s=\"2\"", "step 2 stands where step 1 is due");
    refuse_change("</algo>", "</algo", "has no end");
    refuse_change("<tb ", "</gpu><tb ", "tb is not inside of gpu");
    refuse_change("<step ", "</tb><step ", "step is not inside of tb");
    refuse_change("<algo ", "<>", "an element has no name");
    refuse_change("proto=\"Simple\"", "proto=Simple", "not in quotes");
}

/* True if it could be written. */
static bool go_round(const char *algorithm, rondo_collective collective, int size)
{
    struct forms forms;
    char *text = NULL;
    size_t length;
    rondo_result result;
    FILE *to;

    if (!forms_make(algorithm, collective, size, 0, &forms))
        return false;
    to = open_memstream(&text, &length);
    result = msccl_write(forms.plans, size, to);
    cr_assert_eq(fclose(to), 0);
    if (result) {
        cr_assert_eq(result, RONDO_ERROR_UNSUPPORTED);
        cr_assert(strstr(fail_sentence(), "MSCCL has no "), "%s", fail_sentence());
    } else {
        cr_assert(!prove(text), "%s %s of %d: %s", algorithm, rondo_collective_name(collective),
                  size, fail_sentence());
    }
    free(text);
    forms_close(&forms);
    return !result;
}

Test(msccl, plans_that_are_written_are_read_back_and_proved)
{
    int written = 0;

    for (int i = 0; algorithms[i]; i++)
        for (int c = 0; c < RONDO_SEND; c++)
            for (int size = 1; size <= 8; size++)
                written += go_round(algorithms[i]->name, (rondo_collective)c, size);
    cr_assert_gt(written, 50);
    for (int size = 1; size <= 8; size++)
        cr_assert(go_round("ring", RONDO_ALL_REDUCE, size));
}
