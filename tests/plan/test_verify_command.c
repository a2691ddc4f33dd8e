/* SPDX-License-Identifier: BSD-3-Clause */
/* test_verify_command.c - `rondo verify` and `rondo explain`
 * run as programs: what they print, how they exit. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct ran {
    int status;
    char text[65536]; /* stdout, and stderr behind it */
};

/* TEST_PROGRAM is the path of verify_command_main. */
static void run(struct ran *ret_ran, const char *arguments)
{
    char command[1024];
    size_t length;
    FILE *from;
    int status;

    snprintf(command, sizeof(command), "LC_ALL=C '%s' %s 2>&1", TEST_PROGRAM, arguments);
    from = popen(command, "r");
    cr_assert_not_null(from);
    length = fread(ret_ran->text, 1, sizeof(ret_ran->text) - 1, from);
    ret_ran->text[length] = 0;
    status = pclose(from);
    cr_assert(WIFEXITED(status));
    ret_ran->status = WEXITSTATUS(status);
}

static void assert_ran(const char *arguments, int status, const char *says)
{
    struct ran ran;

    run(&ran, arguments);
    cr_assert_eq(ran.status, status, "%s: status %d, %s", arguments, ran.status, ran.text);
    cr_assert(strstr(ran.text, says), "%s: '%s' should say '%s'", arguments, ran.text, says);
}

Test(verify_command, everything_is_proved)
{
    assert_ran("verify all --ranks 1:5", 0, "algorithms x collectives proved for 1 to 5 ranks");
    assert_ran("verify all --ranks 3 --root all --slots 3", 0, "proved for 3 to 3 ranks");
}

Test(verify_command, plans_of_devices_are_proved_by_their_rules)
{
    struct ran ran;
    const char *operations;

    run(&ran, "verify all --device --ranks 1:8");
    cr_assert_eq(ran.status, 0, "%s", ran.text);
    cr_assert(strstr(ran.text, "proved for 1 to 8 ranks on GPUs"), "%s", ran.text);
    operations = strstr(ran.text, "operations of a stream:");
    cr_assert(operations, "%s", ran.text);
    for (const char *const *form = (const char *const[]){"ring                all_reduce",
                                                         "tree                all_reduce",
                                                         "tree                broadcast",
                                                         "zero_copy           all_gather", NULL};
         *form; form++)
        cr_assert(strstr(ran.text, *form) && strstr(ran.text, *form) < operations, "%s: %s", *form,
                  ran.text);
    cr_assert(strstr(operations, "zero_copy           all_reduce"), "%s", ran.text);
    cr_assert(strstr(operations, "hierarchy_zero_copy all_reduce"), "%s", ran.text);
    cr_assert(!strstr(operations, "ring "), "a mailbox has no room for data: %s", ran.text);
    cr_assert(!strstr(ran.text, "send"), "%s", ran.text);
    assert_ran("verify all_reduce --device --algo ring -n 3 --break 4", 1, "WRONG");
}

Test(verify_command, one_algorithm_and_collective_can_be_named)
{
    assert_ran("verify all_reduce --algo ring -n 4", 0, "1 of 1 algorithms x collectives proved");
}

Test(verify_command, a_broken_plan_is_refused_with_its_step)
{
    assert_ran("verify all_reduce --algo ring -n 3 --break 4", 1,
               "WRONG   with 3 ranks, root 0: without rank 0's step 4");
    assert_ran("verify all -n 3 --break random --seed 7", 1, "WRONG");
    assert_ran("verify all_reduce --algo ring -n 3 --break 999", 1, "no such step");
}

Test(verify_command, results_are_kept_as_json)
{
    char name[] = "/tmp/rondo-verify-XXXXXX", arguments[128];
    int file = mkstemp(name);
    json_t *json, *results;

    cr_assert_geq(file, 0);
    close(file);
    snprintf(arguments, sizeof(arguments), "verify all_gather -n 2:3 --json %s", name);
    assert_ran(arguments, 0, "proved");
    json = json_load_file(name, 0, NULL);
    unlink(name);
    results = json_object_get(json, "results");
    cr_assert_gt(json_array_size(results), 0);
    for (size_t i = 0; i < json_array_size(results); i++) {
        json_t *result = json_array_get(results, i);

        cr_assert(json_is_true(json_object_get(result, "proved")));
        cr_assert_str_eq(json_string_value(json_object_get(result, "collective")), "all_gather");
        cr_assert_gt(json_integer_value(json_object_get(result, "steps")), 0);
    }
    json_decref(json);
}

Test(verify_command, wrong_usage_exits_with_2)
{
    assert_ran("verify", 2, "which collective?");
    assert_ran("verify all --ranks 5:2", 2, "from 5 down to 2");
    assert_ran("verify all --ranks none", 2, "accepted is a whole number");
    assert_ran("verify reduce --ranks 2:4 --root 4", 2, "there is no rank 4 among 4");
    assert_ran("verify some_reduce", 2, "there is no collective 'some_reduce'");
    assert_ran("verify all --algo magic", 2, "there is no algorithm 'magic'");
    assert_ran("verify all_to_all --algo ring", 2, "has no such collective");
    assert_ran("explain", 2, "which collective?");
    assert_ran("explain all_reduce -n 4 --root 4", 2, "there is no rank 4 among 4");
    assert_ran("explain all_to_all --algo ring", 2, "ring has no all_to_all");
    assert_ran("explain all_reduce -n many", 2, "accepted is a whole number");
}

Test(verify_command, help_is_given)
{
    assert_ran("verify --help", 0, "Usage: rondo verify");
    assert_ran("explain --help", 0, "Usage: rondo explain");
}

Test(explain_command, a_page_has_the_summary_the_cost_and_the_rounds)
{
    struct ran ran;

    run(&ran, "explain all_reduce -n 3 --algo ring --count 3000000");
    cr_assert_eq(ran.status, 0);
    cr_assert(strstr(ran.text, "all_reduce by ring, 3 ranks"));
    cr_assert(strstr(ran.text, "2(n-1)/n"));
    cr_assert(strstr(ran.text, "a count of 3000000 float32 (12 MB)"));
    cr_assert(strstr(ran.text, "The plan below has 4 rounds and 12 messages"));
    cr_assert(strstr(ran.text, "Round 4 of 4"));
    cr_assert(!strstr(ran.text, "\033"), "no colours when it is not a terminal");
}

Test(explain_command, a_root_can_be_chosen)
{
    assert_ran("explain broadcast -n 3 --root 2 --algo ring", 0, "rank 2 -> rank 0   r2");
}

Test(explain_command, the_list_names_algorithms_and_their_collectives)
{
    assert_ran("explain --list", 0, "ring");
    assert_ran("explain --list", 0, "all_reduce, ");
}

/* A name in /tmp that is not in use, to unlink(). */
static void name_file(char name[32])
{
    int file;

    snprintf(name, 32, "/tmp/rondo-explain-XXXXXX");
    file = mkstemp(name);
    cr_assert(file >= 0);
    close(file);
}

Test(explain_command, a_plan_goes_to_a_file_and_comes_back)
{
    char name[32], arguments[160];
    json_t *json;

    name_file(name);
    snprintf(arguments, sizeof(arguments), "explain all_reduce -n 3 --algo ring --json %s", name);
    assert_ran(arguments, 0, "");
    json = json_load_file(name, 0, NULL);
    cr_assert_str_eq(json_string_value(json_object_get(json, "format")), "rondo plan 1");
    cr_assert_eq(json_array_size(json_object_get(json, "plans")), 3);
    cr_assert_gt(json_real_value(json_object_get(json, "seconds")), 0);
    json_decref(json);
    snprintf(arguments, sizeof(arguments), "verify --plan %s", name);
    assert_ran(arguments, 0, "all_reduce by ring proved for 3 ranks, root 0");
    assert_ran(arguments, 0, "4 rounds, 12 messages; a rank sends at most 1.333 blocks");
    snprintf(arguments, sizeof(arguments), "explain --plan %s", name);
    assert_ran(arguments, 0, "Round 4 of 4");
    snprintf(arguments, sizeof(arguments), "explain --plan %s --json -", name);
    assert_ran(arguments, 0, "\"algorithm\": \"ring\"");
    unlink(name);
}

Test(explain_command, times_follow_the_costs)
{
    assert_ran("explain all_reduce -n 2 --algo one_shot --count 0 --costs 3,1,1 --json -", 0,
               "\"seconds\": 3e-06");
    assert_ran("explain all_reduce --costs 3,1", 2, "three positive numbers");
}

Test(explain_command, a_page_has_the_data_and_asks_no_network)
{
    char name[32], arguments[160];
    struct ran ran;

    name_file(name);
    snprintf(arguments, sizeof(arguments), "explain all_reduce --compare ring,direct --html %s",
             name);
    assert_ran(arguments, 0, "");
    snprintf(arguments, sizeof(arguments), "explain all_reduce --compare ring,direct --html -");
    run(&ran, arguments);
    cr_assert_eq(ran.status, 0);
    cr_assert(strstr(ran.text, "\"name\":\"ring\"") && strstr(ran.text, "\"name\":\"direct\""));
    cr_assert(strstr(ran.text, "</html>") && !strstr(ran.text, "https://"));
    unlink(name);
    assert_ran("explain all_reduce --compare ring,magic --html -", 2, "not 'magic'");
    assert_ran("explain all_reduce --compare ring,tree", 2, "--html FILE");
}

Test(explain_command, a_page_says_what_breaks)
{
    struct ran ran;

    run(&ran, "explain all_reduce -n 2 --algo one_shot --html - | grep -A 40 '\"breaks\"'");
    cr_assert(strstr(ran.text, "that it did not wait for"), "%s", ran.text);
    assert_ran("explain barrier -n 3 --html -", 0, "</html>");
    run(&ran, "explain all_reduce -n 9 --algo ring --html - | grep '\"breaks\"'");
    cr_assert(strstr(ran.text, "\"breaks\":[]"), "%s", ran.text);
}

Test(explain_command, a_picture_moves_or_is_one_round)
{
    struct ran ran;

    run(&ran, "explain all_reduce -n 3 --algo ring --svg -");
    cr_assert(strstr(ran.text, "<animateTransform") && strstr(ran.text, "</svg>"));
    run(&ran, "explain all_reduce -n 3 --algo ring --svg - --round 4");
    cr_assert(strstr(ran.text, "after round 4 of 4") && !strstr(ran.text, "<animate"));
    assert_ran("explain all_reduce -n 9 --svg -", 1, "up to 8 ranks");
    assert_ran("explain all_reduce -n 3 --svg - --round 77", 1, "no round 77");
    assert_ran("explain all_reduce -n 3 --round 1", 2, "--svg FILE");
    assert_ran("explain all_reduce -n 3 --svg - --html -", 2, "one of");
    assert_ran("explain barrier -n 2 --svg -", 0, "</svg>");
    assert_ran("explain send -n 2 --svg -", 0, "</svg>");
    assert_ran("explain all_gather -n 1 --svg -", 0, "</svg>");
}

Test(verify_command, a_file_that_is_no_plan_is_refused)
{
    assert_ran("verify --plan /nonexistent", 1, "/nonexistent can't be read");
    assert_ran("verify --plan x all_reduce", 2, "--plan FILE says itself");
    assert_ran("explain --plan /nonexistent", 1, "/nonexistent can't be read");
}
