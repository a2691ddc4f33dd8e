/* SPDX-License-Identifier: BSD-3-Clause */
/* test_run.c - `rondo run`: RUN is the command, SHOW is show_launch. */
#include "command.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

static const char *said;

/* The exit status; `said` has what was said on stdout and stderr. */
static int run(const char *arguments)
{
    char command[2048];
    int status;

    snprintf(command, sizeof(command), RUN " %s 2>&1", arguments);
    said = command_output(command, &status);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void check_says(const char *part)
{
    cr_assert(strstr(said, part), "'%s' is not in '%s'", part, said);
}

Test(run, its_ranks_meet)
{
    cr_assert_eq(run("-n 3 --bind none " SHOW), 0, "%s", said);
    cr_assert_eq(command_count(said, "of 3 by rondo run"), 3, "%s", said);
    cr_assert_eq(command_count(said, "met 0 1 2\n"), 3, "%s", said);
}

Test(run, sixty_four_ranks_meet)
{
    cr_assert_eq(run("-n 64 --bind none " SHOW), 0, "%s", said);
    cr_assert_eq(command_count(said, "of 64 by rondo run"), 64, "%s", said);
}

Test(run, ranks_get_their_arguments_and_variables_as_they_are)
{
    cr_assert_eq(run("-n 1 sh -c 'printf \"%s|\" \"$@\"' x -n 7 --tag -- 'a b' ''"), 0);
    check_says("-n|7|--tag|--|a b||");
    cr_assert_eq(run("-n 2 --bind none -- sh -c 'echo $RONDO_RANK/$RONDO_SIZE "
                     "$RONDO_LOCAL_RANK/$RONDO_LOCAL_SIZE $RONDO_BIND ${#RONDO_SECRET}'"),
                 0);
    check_says("0/2 0/2 none 64\n");
    check_says("1/2 1/2 none 64\n");
}

Test(run, every_job_has_its_own_secret_and_address)
{
    static char first[65536];

    cr_assert_eq(run("-n 2 --bind none sh -c 'echo $RONDO_ADDRESS $RONDO_SECRET' | uniq"), 0);
    cr_assert_eq(command_count(said, "\n"), 1, "one for all its ranks: %s", said);
    strcpy(first, said);
    cr_assert_eq(run("-n 1 sh -c 'echo $RONDO_ADDRESS $RONDO_SECRET'"), 0);
    cr_assert_eq(strlen(first), strlen(said));
    cr_assert_str_neq(first, said);
}

Test(run, tag_marks_every_line)
{
    cr_assert_eq(run("-n 2 --bind none --tag sh -c 'echo a; echo b >&2; printf c'"), 0);
    for (int rank = 0; rank < 2; rank++) {
        for (const char *c = "abc"; *c; c++) {
            char line[32];

            snprintf(line, sizeof(line), "[%d] %c\n", rank, *c);
            check_says(line);
        }
    }
    cr_assert_eq(command_count(said, "\n"), 6, "%s", said);
}

Test(run, long_tagged_output_arrives_whole)
{
    cr_assert_eq(run("-n 2 --bind none --tag seq 3000 | sort | uniq | wc -l"), 0);
    check_says("6000");
    cr_assert_eq(
        run("-n 1 --tag sh -c 'head -c 150000 /dev/zero | tr \"\\0\" x' | tr -d '[0] \\n' | wc -c"),
        0);
    check_says("150000");
}

/* A command that does not end is killed, as its rank is then. */
#define ENDLESS "timeout -s KILL 60 " RUN " -n 1 --tag"

/* The shell that reads the output is slower than the rank, so that there is always more of it. */
static void run_endless(const char *arguments)
{
    char command[2048];
    int status;

    snprintf(command, sizeof(command),
             "file=$(mktemp); { " ENDLESS " %s 2> $file; echo status $? >> $file; } | "
             "while read -r line; do :; done; cat $file; rm $file",
             arguments);
    said = command_output(command, &status);
}

Test(run, tagged_output_without_end_is_ended)
{
    run_endless("--timeout 0.3 yes");
    check_says("1 of 1 ranks still run after 0.3 s");
    check_says("status 124");
    run_endless("sh -c 'yes & exit 0'");
    check_says("status 0");
}

/* Whoever reads the output does so when the job has been ended. */
Test(run, a_job_whose_output_nobody_reads_is_ended)
{
    int status;

    said = command_output("file=$(mktemp); { " ENDLESS
                          " --timeout 0.3 yes 2> $file; echo status $? >> $file; } | { "
                          "for i in $(seq 1000); do grep -q 'still run' $file && break; "
                          "sleep 0.05; done; echo round $i; cat > /dev/null; }; cat $file; "
                          "rm $file",
                          &status);
    check_says("status 124");
    cr_assert_null(strstr(said, "round 1000\n"), "%s", said);
}

/* Nobody reads the output, so its lines wait. What goes to the file of errors, where the rank has
 * not ended its line, does not wait for them, and is not lost to the signal that ends all. */
Test(run, last_lines_that_can_go_out_do_before_a_signal_ends_the_rest)
{
    int status;

    said = command_output(
        "file=$(mktemp); { " RUN " -n 1 --tag sh -c 'yes | head -c 70000; printf words >&2; "
        "sleep 300 & echo $! > '$file'.left; exit 0' 2> $file & echo $! > $file.run; wait $!; "
        "echo status $? >> $file; } | { for i in $(seq 1000); do grep -q words $file && break; "
        "sleep 0.05; done; kill -TERM $(cat $file.run); cat > /dev/null; }; cat $file; "
        "kill $(cat $file.left); rm $file $file.*",
        &status);
    check_says("[0] words\n");
    check_says("status 143");
}

Test(run, input_goes_to_rank_zero)
{
    cr_assert_eq(run("-n 2 --bind none --tag cat < /proc/self/comm"), 0);
    cr_assert_eq(command_count(said, "[0] "), 1, "%s", said);
    cr_assert_eq(command_count(said, "[1] "), 0, "%s", said);
}

Test(run, the_first_failure_is_named_and_is_the_exit_status)
{
    cr_assert_eq(run("-n 3 --bind none sh -c 'test $RONDO_RANK != 1 || exit 7'"), 7);
    check_says("rondo run: rank 1 (pid ");
    check_says("ended with status 7");
    cr_assert_null(strstr(said, "ending the"), "%s", said);
}

Test(run, a_signal_that_kills_a_rank_is_named)
{
    cr_assert_eq(run("-n 3 --bind none --grace 0.1 sh -c 'test $RONDO_RANK != 2 || kill -9 $$; "
                     "exec sleep 30'"),
                 128 + 9);
    check_says("rondo run: rank 2 (pid ");
    check_says("was killed by signal 9 (Killed)");
    check_says("ending the 2 ranks that still run");
}

/* Nobody else has the end of the pipe that is written to when the command has ended. */
Test(run, what_a_failed_rank_has_started_ends_with_it)
{
    struct pollfd ended = {0};
    int alive[2];

    cr_assert_eq(pipe(alive), 0);
    cr_assert_eq(run("-n 2 --bind none --grace 0 sh -c 'test $RONDO_RANK = 1 || exec sleep 60; "
                     "sleep 600 > /dev/null 2>&1 & kill -9 $$'"),
                 128 + 9, "%s", said);
    close(alive[1]);
    ended.fd = alive[0];
    cr_assert_eq(poll(&ended, 1, 20000), 1, "its child runs on: %s", said);
    cr_assert(ended.revents & POLLHUP);
}

/* Rank 1 ends with 3; the others run `then` when it is gone, so that this has been noticed. */
static int run_after_rank_1(int size, const char *then)
{
    char arguments[512], file[] = "/tmp/run.XXXXXX";
    int status;

    close(mkstemp(file));
    snprintf(arguments, sizeof(arguments),
             "-n %d --bind none --grace 100 sh -c '"
             "test $RONDO_RANK = 1 && { echo $$ > %s; exit 3; }; "
             "until test -s %s && ! kill -0 $(cat %s) 2>/dev/null; do sleep 0.01; done; %s'",
             size, file, file, file, then);
    status = run(arguments);
    unlink(file);
    return status;
}

/* Peers of a killed rank can notice, and end, before the kernel has taken it down. */
Test(run, who_was_killed_outweighs_who_gave_up_before)
{
    cr_assert_eq(run_after_rank_1(3, "test $RONDO_RANK = 2 && kill -9 $$; exit 4"), 128 + 9);
    check_says("ended with status 3");
    check_says("rondo run: rank 2 (pid ");
}

Test(run, the_others_have_time_to_end_by_themselves)
{
    cr_assert_eq(run_after_rank_1(2, "echo I end by myself; exit 4"), 3);
    check_says("I end by myself");
    cr_assert_null(strstr(said, "ending the"), "%s", said);
}

Test(run, ranks_that_ignore_sigterm_are_killed)
{
    cr_assert_eq(run("-n 2 --bind none --grace 0.1 sh -c 'test $RONDO_RANK = 1 && exit 3; "
                     "trap \"\" TERM; while :; do sleep 0.1; done'"),
                 3);
    check_says("ending the 1 ranks");
}

Test(run, a_job_that_takes_too_long_is_ended)
{
    cr_assert_eq(run("-n 2 --bind none --timeout 0.3 sleep 30"), 124);
    check_says("2 of 2 ranks still run after 0.3 s");
}

Test(run, a_program_that_is_not_there_is_127)
{
    cr_assert_eq(run("-n 2 --bind none there-is-no-such-program"), 127);
    check_says("rondo run: cannot start 'there-is-no-such-program': No such file or directory");
    cr_assert_eq(run("-n 2 --bind none /etc/passwd"), 126);
    check_says("Permission denied");
}

Test(run, wrong_usage_is_told)
{
    static const struct {
        const char *arguments, *part;
    } cases[] = {{"", "which program?"},
                 {"true", "how many ranks? For four: -n 4"},
                 {"-n 0 true", "-n is '0'"},
                 {"-n -1 true", "-n is '-1'"},
                 {"-n 4x true", "-n is '4x'"},
                 {"-n 99999999999999999999 true", "accepted is a whole number from 1 to 4096"},
                 {"-n 2 --bind socket true", "accepted are core and none"},
                 {"-n 2 --grace soon true", "--grace is 'soon'"},
                 {"-n 2 --timeout -1 true", "--timeout is '-1'"},
                 {"-n 2 --nonsense true", "nonsense"}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cr_assert_eq(run(cases[i].arguments), 2, "'%s': %s", cases[i].arguments, said);
        check_says(cases[i].part);
    }
    cr_assert_eq(run("--help"), 0);
    check_says("Usage: rondo run [OPTION...] PROGRAM");
    setenv("RONDO_BIND", "socket", 1);
    cr_assert_eq(run("-n 1 true"), 2);
}

static int usable_cpus(void)
{
    int status;

    return atoi(command_output("nproc", &status));
}

Test(run, each_rank_has_a_core_of_its_own)
{
    if (usable_cpus() < 2 || run("-n 2 true") || strstr(said, "share"))
        cr_skip_test("there is only one core");
    cr_assert_eq(run("-n 2 sh -c 'grep Cpus_allowed_list /proc/self/status' | sort -u | wc -l"), 0);
    check_says("2\n");
    cr_assert_eq(
        run("-n 2 --bind none sh -c 'grep Cpus_allowed_list /proc/self/status' | sort -u | wc -l"),
        0);
    check_says("1\n");
}

Test(run, more_ranks_than_cores_are_warned_of_once_and_not_bound)
{
    int cpus = usable_cpus();
    char text[256];

    snprintf(text, sizeof(text), "-n %d sh -c 'echo cpus $(nproc)'", cpus + 1);
    cr_assert_eq(run(text), 0);
    cr_assert_eq(command_count(said, "they are not bound"), 1, "%s", said);
    snprintf(text, sizeof(text), "cpus %d\n", cpus);
    cr_assert_eq(command_count(said, text), cpus + 1, "%s", said);
}

/* Shell: wait until $file has as many lines as there are ranks, so that their traps are set. */
#define WAIT_FOR_2 "for i in $(seq 2000); do test $(wc -l < $file) = 2 && break; sleep 0.05; done; "

Test(run, sigterm_is_passed_on)
{
    int status;

    said = command_output("file=$(mktemp); " RUN
                          " -n 2 --bind none sh -c 'trap \"echo got it; exit 5\" TERM; "
                          "echo ready >> '$file'; while :; do sleep 0.05; done' 2>&1 & " WAIT_FOR_2
                          "kill -TERM $!; wait $!; echo status $?; rm $file",
                          &status);
    cr_assert_eq(command_count(said, "got it"), 2, "%s", said);
    check_says("status 5");
    said = command_output(
        "file=$(mktemp); " RUN
        " -n 2 --bind none sh -c 'echo ready >> '$file'; exec sleep 300' 2>&1 & " WAIT_FOR_2
        "kill -TERM $!; wait $!; echo status $?; rm $file",
        &status);
    check_says("status 143");
}

Test(run, the_second_signal_kills)
{
    int status;

    said = command_output(
        "file=$(mktemp); " RUN " -n 2 --bind none sh -c 'trap \"\" TERM; echo ready >> '$file'; "
        "while :; do sleep 0.05; done' 2>&1 & " WAIT_FOR_2
        "while kill -TERM $! 2>/dev/null; do sleep 0.2; done; wait $!; echo status $?; rm $file",
        &status);
    check_says("the second signal, killing 2 ranks");
    check_says("status 137");
}

/* The ranks write their numbers; afterwards none of them may be there. */
Test(run, when_it_is_killed_its_ranks_die_too)
{
    int status;

    said = command_output(
        "file=$(mktemp); " RUN
        " -n 3 --bind none sh -c 'echo $$ >> '$file'; exec sleep 300' 2>/dev/null & "
        "run=$!; "
        "for i in $(seq 1000); do test $(wc -l < $file) = 3 && break; sleep 0.1; done; "
        "kill -9 $run; for i in $(seq 1000); do alive=0; for p in $(cat $file); do "
        "grep -qs '^State:.[^Z]' /proc/$p/status && alive=$((alive + 1)); done; "
        "test $alive = 0 && break; sleep 0.1; done; "
        "echo ranks $(wc -l < $file) alive $alive; rm $file",
        &status);
    check_says("ranks 3 alive 0");
}

Test(run, leaves_no_process_behind)
{
    int status;

    said = command_output(
        "file=$(mktemp); " RUN " -n 3 --bind none --grace 0.1 sh -c 'echo $$ >> '$file'; "
        "test $RONDO_RANK != 1 || exit 9; sleep 30; true' 2>/dev/null; echo status $?; alive=0; "
        "for p in $(cat $file); do test -e /proc/$p && alive=$((alive + 1)); done; "
        "echo ranks $(wc -l < $file) alive $alive; rm $file",
        &status);
    check_says("status 9");
    check_says("alive 0");
}
