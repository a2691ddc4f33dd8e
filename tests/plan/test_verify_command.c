/* SPDX-License-Identifier: BSD-3-Clause */
/* test_verify_command.c - `rondo verify` and `rondo explain`
 * run as programs: what they print, how they exit. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
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
    assert_ran("verify all_reduce --algo ring -n 3 --break 4 --rank 2", 1,
               "root 0: without rank 2's step 4");
    assert_ran("verify all_reduce --algo ring -n 3 --break 0", 1,
               "rank 0, step 1 (copy"); /* as --steps numbers it */
    assert_ran("verify send --algo direct -n 3 --break 0 --rank 2", 1, "without rank 2's step 0");
    assert_ran("verify all -n 3 --break random --rank 1", 2, "rank 1 of 3 has no steps of send");
}

Test(verify_command, only_a_step_that_is_there_can_be_broken)
{
    struct ran ran;

    run(&ran, "verify all_reduce --algo ring -n 3 --break 999 --rank 1");
    cr_assert_eq(ran.status, 2, "%s", ran.text);
    cr_assert(
        strstr(ran.text, "rank 1's plan of all_reduce by ring on 3 ranks has the steps 0 to "),
        "%s", ran.text);
    cr_assert(!strstr(ran.text, "WRONG"), "the algorithm is right: %s", ran.text);
    assert_ran("verify send --algo direct -n 3 --break 0 --rank 1", 2, "rank 1 of 3 has no steps");
    assert_ran("verify all_reduce --break 1 --rank 2", 2, "there is no rank 2 among 2");
    assert_ran("verify all_reduce --rank 1", 2, "--break STEP");
    assert_ran("verify --plan x --break 1", 2, "out of an algorithm's plan");
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
    assert_ran("verify all -g 2x2 -n 5", 2, "the groups 2x2 are of 4 ranks");
    assert_ran("verify all -n 2:5 -g 2x2", 2, "the groups 2x2 are of 4 ranks");
    assert_ran("verify all_reduce -n 4 -g 2x2 -a hierarchy", 0, "proved for 4 to 4 ranks");
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

/* The costs of the one who runs the tests. */
static void forget_costs(void)
{
    unsetenv("RONDO_COSTS");
}

TestSuite(explain_command, .init = forget_costs);

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

Test(explain_command, the_default_is_what_auto_takes)
{
    assert_ran("explain all_reduce", 0, "all_reduce by zero_copy, 4 ranks");
    assert_ran("explain all_reduce", 0, "where ranks can't reach\neach other's memory direct (");
    assert_ran("explain all_reduce --count 2", 0, "all_reduce by one_shot, 4 ranks");
    assert_ran("explain all_reduce --count 2 --costs 1000,10,10", 0,
               "a message takes 1e+03 us and a rank copies");
    assert_ran("explain all_gather -n 4 --msccl /dev/null", 0, "");
}

Test(explain_command, groups_are_never_ignored_silently)
{
    assert_ran("explain all_reduce -g 4x2", 0, "all_reduce by hierarchy, 8 ranks");
    assert_ran("explain all_reduce -g 4x2 --costs 1,10,10,1,1000", 0,
               "It does not look at the groups 4x2");
    assert_ran("explain all_reduce -g 4x2 --algo direct", 1, "direct does not look at groups");
    assert_ran("explain all_reduce -g 2x2 --compare ring,direct --html -", 2,
               "direct does not look at groups");
    assert_ran("explain all_reduce -g 0,1,0,1 --algo ring", 0, "Groups: 0 2; 1 3.");
    assert_ran("explain all_reduce -n 5 -g 2x2", 1, "are of 4 ranks, there are 5");
    assert_ran("explain all_reduce -g 40x2", 2, "up to 64 are explained");
}

Test(explain_command, elements_are_whole)
{
    assert_ran("explain all_reduce --algo ring --count 3", 0,
               "no rank sends more than 20 bytes, copies more than 24 bytes, or reads more than "
               "24 bytes to reduce");
    assert_ran("explain broadcast --algo binomial", 0,
               "no rank sends more than 96 kB, copies more than 144 kB,");
    assert_ran("explain all_reduce -n 16 --count 1000000 --algo ring", 0,
               "58 messages one after another, 1 us each (--costs), as the vector goes in 2 "
               "segments");
}

Test(explain_command, steps_have_the_numbers_that_break_takes)
{
    struct ran ran;

    run(&ran, "explain all_reduce -n 3 --algo ring --steps 2");
    cr_assert_eq(ran.status, 0, "%s", ran.text);
    cr_assert(strstr(ran.text, "rank 2: 21 steps\n     0  wait for a free slot to rank 0"), "%s",
              ran.text);
    cr_assert(!strstr(ran.text, "rank 1: "), "%s", ran.text);
    run(&ran, "verify all_reduce -n 3 --algo ring --break 20 --rank 2");
    cr_assert(strstr(ran.text, "without rank 2's step 20 (give the slot back"), "%s", ran.text);
    assert_ran("explain --plan x -n 3", 2, "--plan FILE says itself which");
    assert_ran("explain all_reduce -n 3 --algo ring --steps", 0, "rank 1: 21 steps");
    assert_ran("explain all_reduce -n 3 --algo direct --steps", 0, "program 1, beside the others");
    assert_ran("explain send --steps 3", 0, "rank 3: 3 steps");
    assert_ran("explain send --steps 1", 2, "rank 1 takes no part in a send of 4 ranks");
    assert_ran("explain all_reduce --steps 4", 2, "rank 4 takes no part");
    assert_ran("explain all_reduce --steps --svg -", 2, "one of");
}

/* Runs the command that the page of steps ends with, for step 3 of rank 1, and expects it to take
 * out the step that the page shows. */
static void break_as_told(const char *arguments)
{
    char command[512] = "", step[200], taken_out[256], *hole;
    struct ran ran;

    run(&ran, arguments);
    cr_assert(sscanf(strstr(ran.text, "\n     3  "), " 3 %199[^\n]", step) == 1, "%s", ran.text);
    hole = strstr(ran.text, "`rondo ");
    cr_assert(hole && sscanf(hole, "`rondo %400[^`]", command) == 1, "%s", ran.text);
    cr_assert(hole = strstr(command, "STEP --rank RANK"), "%s", command);
    strcpy(hole, "3 --rank 1");
    snprintf(taken_out, sizeof(taken_out), "without rank 1's step 3 (%s): ", step);
    assert_ran(command, 1, taken_out);
}

Test(explain_command, the_command_below_the_steps_breaks_these_plans)
{
    break_as_told("explain all_reduce -n 6 --algo hierarchy --steps 1");
    break_as_told("explain all_reduce -g 2+1+3 --algo hierarchy --steps 1");
    break_as_told("explain all_reduce -g 0,1,0,1 --algo ring --steps 1");
    break_as_told("explain all_reduce -n 10 --algo ring --steps 1");
    break_as_told("explain broadcast -n 5 --root 3 --algo ring --steps 1");
}

Test(explain_command, times_are_predicted_with_their_crossings)
{
    assert_ran("explain all_reduce --predict", 0,
               "Fastest where ranks reach each other's memory: one_shot, from 3.24 kB on zero_copy"
               ".\nWhere they can't: one_shot, from 4.8 kB on direct.");
    assert_ran("explain all_reduce --predict --costs 1,10,1000", 0, "reduces 1e+03 GB/s");
    assert_ran("explain all_reduce --predict -g 4x2", 0, "leaders, from");
    assert_ran("explain all_to_all --predict", 0, "bruck");
    assert_ran("explain barrier --predict", 2, "that has a size");
    assert_ran("explain all_reduce --predict --algo ring", 2, "all algorithms");
    assert_ran("explain all_reduce --plot x.svg", 2, "for --predict");
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

Test(explain_command, a_picture_with_a_long_path_that_cannot_be_written_gets_the_whole_sentence)
{
    char arguments[700], folder[301] = "";

    memset(folder, 'x', sizeof(folder) - 1);
    folder[150] = '/';
    snprintf(arguments, sizeof(arguments), "explain all_reduce --predict --plot /none/%s", folder);
    assert_ran(arguments, 1, ": No such file or directory");
}

Test(explain_command, what_was_measured_stands_beside_what_is_predicted)
{
    static const char rows[] =
        "{\"rows\": [{\"library\": \"rondo\", \"collective\": \"all_reduce\", \"ran\": \"ring\","
        "\"algorithm\": \"auto\", \"ranks\": 2, \"bytes\": 4096, \"median_us\": 3.25},"
        "{\"library\": \"mpich\", \"collective\": \"all_reduce\", \"ranks\": 2,"
        "\"bytes\": 4096, \"median_us\": 7.75}]}";
    char name[32], arguments[160];
    struct ran ran;
    FILE *to;

    name_file(name);
    to = fopen(name, "w");
    fputs(rows, to);
    fclose(to);
    snprintf(arguments, sizeof(arguments), "explain all_reduce -n 2 --predict --measured %s", name);
    run(&ran, arguments);
    cr_assert_eq(ran.status, 0, "%s", ran.text);
    cr_assert(strstr(ran.text, "(   3.25)") && !strstr(ran.text, "7.75"), "%s", ran.text);
    snprintf(arguments, sizeof(arguments), "explain all_reduce -n 3 --predict --measured %s", name);
    assert_ran(arguments, 1, "has no times of all_reduce over 3 ranks");
    unlink(name);
    assert_ran(arguments, 1, "is no result of `rondo bench --json`");
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
    assert_ran(arguments, 0, "all_reduce by ring, 3 ranks");
    snprintf(arguments, sizeof(arguments), "explain --plan %s --steps 0", name);
    assert_ran(arguments, 0, "Take a line out of the file");
    snprintf(arguments, sizeof(arguments), "explain --plan %s --json -", name);
    assert_ran(arguments, 0, "\"algorithm\": \"ring\"");
    unlink(name);
}

Test(explain_command, times_follow_the_costs)
{
    assert_ran("explain all_reduce -n 2 --algo one_shot --count 0 --costs 3,1,1 --json -", 0,
               "\"seconds\": 3e-06");
    assert_ran("explain all_reduce --costs 3,1", 2, "three positive numbers");
    assert_ran("explain all_reduce --costs 3,1,1,4", 2, "three positive numbers");
    assert_ran("explain all_reduce --costs 3,1,-1", 2, "three positive numbers");
    assert_ran("explain all_reduce -n 2 --costs 3,1,1,5,6,2", 0, "where a message takes 3 us");
    setenv("RONDO_COSTS", "7,1,1", 1);
    assert_ran("explain all_reduce -n 2", 0, "where a message takes 7 us");
    assert_ran("explain all_reduce -n 2 --costs 3,1,1", 0, "where a message takes 3 us");
    setenv("RONDO_COSTS", "much", 1);
    assert_ran("explain all_reduce -n 2", 0, "RONDO_COSTS is not used");
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
    assert_ran("explain all_reduce -n 2 --algo zero_copy --svg -", 0, "<circle class=\"flag\"");
    run(&ran, "explain all_reduce -n 2 --algo ring --svg -");
    cr_assert(!strstr(ran.text, "<circle class=\"flag\""), "all of its messages have data");
}

Test(explain_command, a_refusal_leaves_the_file_as_it_was)
{
    char name[] = "/tmp/rondo-explain-XXXXXX", arguments[128], kept[8];
    FILE *file = fdopen(mkstemp(name), "w+");

    cr_assert_not_null(file);
    cr_assert(fputs("before", file) >= 0 && !fflush(file));
    snprintf(arguments, sizeof(arguments), "explain all_reduce -n 16 --svg %s", name);
    assert_ran(arguments, 1, "up to 8 ranks");
    rewind(file);
    cr_assert_eq(fread(kept, 1, sizeof(kept), file), 6);
    fclose(file);
    unlink(name);
    assert_ran("explain all_reduce -n 4 --svg /nonexistent/x", 1, "No such file");
    assert_ran("explain all_reduce -n 4 --svg /dev/full", 1, "No space left");
}

Test(verify_command, a_file_that_is_no_plan_is_refused)
{
    assert_ran("verify --plan /nonexistent", 1, "/nonexistent can't be read");
    assert_ran("verify --plan x all_reduce", 2, "--plan FILE says itself");
    for (const char *const *more = (const char *const[]){"--json x", "--device", "-n 2", "-a ring",
                                                         "-r 0", "-g 2x2", NULL};
         *more; more++) {
        char arguments[64];

        snprintf(arguments, sizeof(arguments), "verify --plan x %s", *more);
        assert_ran(arguments, 2, "--plan FILE says itself");
    }
    assert_ran("explain --plan /nonexistent", 1, "/nonexistent can't be read");
}
