/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_wrong.c - a plan that somebody wrote by hand, and mistakes that one makes: each is refused
 * with rank and step, by whoever proves a file and by a communicator that is to run it.
 */
#include "base/fail.h"
#include "collectives/file/file.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COPY   "{\"do\": \"copy\", \"atoms\": 2, " SENDS
#define SENDS  "\"from\": [{\"input\": 0}], \"to\": [{\"slot\": 1}]}"
#define REDUCE "{\"do\": \"reduce\", \"atoms\": 2, \"from\": [{\"input\": 0}, {\"slot\": 1}], "
#define TO     "\"to\": [{\"output\": 0}], \"finish\": true}"
#define SEND \
    "{\"do\": \"combine\", \"atoms\": 2, \"from\": [{\"input\": 0}], \"to\": [{\"slot\": 0}]}"
#define RECEIVE            "{\"do\": \"combine\", \"atoms\": 2, " TAKES TO
#define TAKES              "\"from\": [{\"slot\": 0}, {\"input\": 0}], "
#define EVENT(verb, event) "{\"do\": \"" verb "\", \"event\": \"" event "\", \"peer\": 1},\n"

/* Two ranks tell each other everything. Rank 0's steps are those that get broken. */
static const char right[] =
    "{\"format\": \"rondo plan 1\", \"collective\": \"all_reduce\", \"algorithm\": \"swap\",\n"
    "\"ranks\": 2, \"parts\": 2, \"message_atoms\": 2, \"scratch_blocks\": 1, \"plans\": [\n"
    "{\"rank\": 0, \"programs\": [[\n" EVENT("wait", "credit") COPY ",\n" EVENT("signal", "data")
        EVENT("wait", "data") REDUCE TO
    ",\n"
    "{\"do\": \"signal\", \"event\": \"credit\", \"peer\": 1}]]},\n"
    "{\"rank\": 1, \"programs\": [[\n" SEND ",\n" RECEIVE "]]}]}\n";

struct mistake {
    const char *name;
    const char *find, *replace; /* the first place of that text */
    const char *says[3];
};

static const struct mistake mistakes[] = {
    {"a dropped wait for a message", EVENT("wait", "data"), "", {"rank 0, step 3", "line 7"}},
    {"a dropped wait for a slot", EVENT("wait", "credit"), "", {"rank 0, step 0", "line 4"}},
    {"a message that is never sent", EVENT("signal", "data"), "", {"rank 0, step"}},
    {"a slot that is not given back",
     ",\n{\"do\": \"signal\", \"event\": \"credit\", \"peer\": 1}",
     "",
     {"rank 0, step 4", "open"}},
    {"a swapped chunk",
     COPY,
     "{\"do\": \"copy\", \"from\": [{\"input\": 0, \"first\": 1}], \"to\": [{\"slot\": 1}]},\n"
     "{\"do\": \"copy\", \"from\": [{\"input\": 0}], \"to\": [{\"slot\": 1}]}",
     {"rank 1, step", "line 13"}},
    {"more messages than slots",
     EVENT("wait", "credit") COPY ",\n" EVENT("signal", "data"),
     EVENT("wait", "credit") COPY ",\n" EVENT("signal", "data") EVENT("wait", "credit") COPY
     ",\n" EVENT("signal", "data") EVENT("wait", "credit") COPY ",\n" EVENT("signal", "data"),
     {"rank 0, step"}},
    {"an unknown rank",
     "\"to\": [{\"slot\": 1}]",
     "\"to\": [{\"slot\": 2}]",
     {"rank 0, step 1", "there is no rank 2 among 2", "line 5"}},
    {"a range outside",
     "[{\"input\": 0}], \"to\": [{\"slot\": 1}]",
     "[{\"input\": 0, \"first\": 1}], \"to\": [{\"slot\": 1}]",
     {"rank 0, step 1", "lies outside"}},
    {"a block outside",
     "[{\"input\": 0}], \"to\": [{\"slot\": 1}]",
     "[{\"input\": 65535}], \"to\": [{\"slot\": 1}]",
     {"rank 0, step 1", "lies outside"}},
    {"a race",
     "\"programs\": [[\n",
     "\"programs\": [[{\"do\": \"copy\", \"atoms\": 2, \"from\": [{\"input\": 0}], \"to\": "
     "[{\"output\": 0}]}], [\n",
     {"rank 0, program", "race"}},
    {"a share that counts twice",
     "[{\"input\": 0}, {\"slot\": 1}]",
     "[{\"input\": 0}, {\"input\": 0}, {\"slot\": 1}]",
     {"rank 0, step 4", "twice"}},
    {"a sum without the peer's share",
     "[{\"input\": 0}, {\"slot\": 1}]",
     "[{\"input\": 0}, {\"input\": 0, \"first\": 0}]",
     {"rank 0, step 4"}},
    {"a sum that is never finished",
     ", \"finish\": true",
     "",
     {"rank 0 ends with an unfinished output", "written by rank 0, step 4 in line 8"}},
    {"an input that is written",
     "\"to\": [{\"output\": 0}]",
     "\"to\": [{\"input\": 0}]",
     {"rank 0, step 4", "never written"}},
    {"scratch that nobody wrote",
     "[{\"input\": 0}, {\"slot\": 1}]",
     "[{\"scratch\": 0}, {\"slot\": 1}]",
     {"rank 0, step 4", "nobody has written"}},
    {"a message that is too long", "\"message_atoms\": 2", "\"message_atoms\": 1", {"step 1"}},
    {"a wait at the wrong peer",
     "\"wait\", \"event\": \"data\", \"peer\": 1",
     "\"wait\", \"event\": \"data\", \"peer\": 0",
     {"rank 0, step 3"}},
};

/* The text with something else in one place, to free(). */
static char *change(const char *text, const char *find, const char *replace)
{
    const char *at = strstr(text, find);
    size_t room = strlen(text) + strlen(replace) + 1;
    char *changed = malloc(room);

    cr_assert(at && changed, "'%s' is not in the plan", find);
    snprintf(changed, room, "%.*s%s%s", (int)(at - text), text, replace, at + strlen(find));
    return changed;
}

static rondo_result prove(const char *text, int slots)
{
    struct plan_file *file = NULL;
    struct verify_report report;
    unsigned promises = 0;
    rondo_result result = plan_file_parse("text", text, strlen(text), &file);

    if (!result)
        result = file_prove(file, "text", slots, &report, &promises);
    plan_file_close(file);
    return result;
}

Test(plan_wrong, without_a_mistake_it_is_proved)
{
    cr_assert(!prove(right, 0), "%s", fail_sentence());
}

Test(plan_wrong, every_mistake_is_refused_with_its_step)
{
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        const struct mistake *mistake = &mistakes[i];
        char *text = change(right, mistake->find, mistake->replace);

        cr_assert_eq(prove(text, 0), RONDO_ERROR_INVALID, "%s is proved", mistake->name);
        cr_log_info("%s: %s", mistake->name, fail_sentence());
        for (int s = 0; s < 3 && mistake->says[s]; s++)
            cr_assert(strstr(fail_sentence(), mistake->says[s]), "%s: '%s' should say '%s'",
                      mistake->name, fail_sentence(), mistake->says[s]);
        free(text);
    }
}

Test(plan_wrong, a_rank_without_a_program_is_refused)
{
    char *text = change(right, "[[\n" SEND ",\n" RECEIVE "]]", "[]");

    cr_assert_eq(prove(text, 0), RONDO_ERROR_INVALID);
    cr_assert(strstr(fail_sentence(), "\"programs\" lists 1 to"), "%s", fail_sentence());
    free(text);
}

Test(plan_wrong, ranks_that_wait_for_each_other_are_told_as_a_circle)
{
    char *one = change(
        right, EVENT("wait", "credit") COPY ",\n" EVENT("signal", "data") EVENT("wait", "data"),
        EVENT("wait", "data") EVENT("wait", "credit") COPY ",\n" EVENT("signal", "data"));
    char *both = change(one, SEND ",\n" RECEIVE, RECEIVE ",\n" SEND);

    cr_assert(!prove(one, 0), "one that only waits earlier is right: %s", fail_sentence());
    cr_assert_eq(prove(both, 0), RONDO_ERROR_INVALID);
    cr_assert(strstr(fail_sentence(), "deadlock: rank 0, step 0") &&
                  strstr(fail_sentence(), "line 4") && strstr(fail_sentence(), "that is a circle"),
              "%s", fail_sentence());
    free(one);
    free(both);
}

/* Both ranks send three messages before they take one. */
Test(plan_wrong, more_messages_than_slots_are_a_deadlock_and_right_with_more_slots)
{
    char *text = NULL;
    size_t length;
    FILE *to = open_memstream(&text, &length);

    fputs("{\"format\": \"rondo plan 1\", \"collective\": \"all_reduce\", \"algorithm\": \"a\",\n"
          "\"ranks\": 2, \"parts\": 3, \"message_atoms\": 1, \"plans\": [\n",
          to);
    for (int rank = 0; rank < 2; rank++) {
        fprintf(to, "%s{\"rank\": %d, \"programs\": [[\n", rank ? "," : "", rank);
        for (int i = 0; i < 3; i++)
            fprintf(to,
                    "{\"do\": \"combine\", \"from\": [{\"input\": 0, \"first\": %d}], "
                    "\"to\": [{\"slot\": %d}]},\n",
                    i, 1 - rank);
        for (int i = 0; i < 3; i++)
            fprintf(to,
                    "{\"do\": \"combine\", \"from\": [{\"slot\": %d}, {\"input\": 0, \"first\": "
                    "%d}], \"to\": [{\"output\": 0, \"first\": %d}], \"finish\": true}%s\n",
                    1 - rank, i, i, i < 2 ? "," : "]]}");
    }
    fputs("]}", to);
    cr_assert_eq(fclose(to), 0);
    cr_assert_eq(prove(text, 2), RONDO_ERROR_INVALID);
    cr_assert(strstr(fail_sentence(), "rank 0, step 6 in line 6 (wait for a free slot"), "%s",
              fail_sentence());
    cr_assert(!prove(text, 3), "%s", fail_sentence());
    free(text);
}
