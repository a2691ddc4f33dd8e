/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_run_elastic.c - `rondo run --elastic`: RUN is the command, FAILS the program of fails.c.
 *
 * No rank waits for a while: it waits until the command has said something, or until a process is
 * gone. So it does not matter how slow the machine is.
 */
#include "../comm/command.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* For ranks. HERE is a folder of the test's own. */
#define UNTIL(condition) "until " condition "; do sleep 0.01; done; "
#define SAYS(text)       "grep -q \"" text "\" $HERE/said"
/* A process is gone, too, that has ended and that its parent has not waited for yet (Z). */
#define GONE(file) \
    "test -s $HERE/" file " && ! grep -qs \"^State:.[^Z]\" /proc/$(cat $HERE/" file ")/status"

static const char *said;

/* The command, a list of the shell's, and its ranks write into a file, where ranks see what was
 * said; then it is `said`. */
static int run_list(const char *list)
{
    char here[] = "/tmp/rondo-elastic-XXXXXX", command[2048];
    int status;

    cr_assert(mkdtemp(here));
    setenv("HERE", here, 1);
    signal(SIGINT, SIG_DFL); /* a script that starts tests in its background has it ignored */
    snprintf(command, sizeof(command),
             "{ %s; } > $HERE/said 2>&1; status=$?; cat $HERE/said; rm -r $HERE; exit $status",
             list);
    said = command_output(command, &status);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static int run(const char *arguments)
{
    char list[2048];

    snprintf(list, sizeof(list), RUN " %s", arguments);
    return run_list(list);
}

static void check_says(const char *part)
{
    cr_assert(strstr(said, part), "'%s' is not in '%s'", part, said);
}

Test(run_elastic, the_others_go_on_while_enough_are_left)
{
    cr_assert_eq(run("-n 3 --bind none --elastic 2:3 --grace 0 "
                     "sh -c 'test $RONDO_RANK != 1 || kill -9 $$; " UNTIL(
                         SAYS("goes on with the 2")) "echo through'"),
                 0, "%s", said);
    cr_assert_eq(command_count(said, "through\n"), 2, "%s", said);
    check_says("rank 1 (pid ");
    check_says("was killed by signal 9 (Killed); the job goes on with the 2 that are left\n");
    check_says("1 rank was lost, 0 came; 2 ended well\n");
}

Test(run_elastic, the_rank_that_leaves_too_few_decides_the_status)
{
    cr_assert_eq(
        run("-n 3 --bind none --elastic 2:3 --grace 0 "
            "sh -c 'test $RONDO_RANK != 1 || exit 5; "
            "test $RONDO_RANK = 0 || sleep 600; " UNTIL(SAYS("goes on with the 2")) "exit 7'"),
        7, "%s", said);
    check_says("ended with status 7; 1 of the job are left, --elastic wants 2 at least\n");
    check_says("ending the 1 ranks that still run");
}

Test(run_elastic, ranks_that_are_through_count_as_left)
{
    cr_assert_eq(run("-n 3 --bind none --elastic 2:3 "
                     "sh -c 'echo $$ > $HERE/$RONDO_RANK; test $RONDO_RANK = 2 || exit 0; " UNTIL(
                         GONE("0")) UNTIL(GONE("1")) "exit 1'"),
                 0, "%s", said);
    check_says("ended with status 1; the job goes on with the 2 that are left");
}

Test(run_elastic, a_newcomer_takes_the_place_of_a_rank_that_failed)
{
    cr_assert_eq(run("-n 2 --bind none --tag --elastic 1:2 --max-restarts 1 "
                     "sh -c 'test $RONDO_RANK$RONDO_JOIN != 1 || "
                     "exit 3; test -d \"$RONDO_DOOR\" && "
                     "echo join=$RONDO_JOIN $RONDO_ELASTIC; " UNTIL(SAYS("join=1")) "'"),
                 0, "%s", said);
    check_says("a newcomer takes its place (restart 1 of 1)\n");
    check_says("[1] join=1 1:2\n");
    check_says("[0] join= 1:2\n");
    check_says("1 rank was lost, 1 came; 2 ended well\n");
}

Test(run_elastic, there_are_no_more_restarts_than_allowed)
{
    cr_assert_eq(run("-n 2 --bind none --elastic 1:2 --max-restarts 2 "
                     "sh -c 'test $RONDO_RANK = 0 || exit 3; " UNTIL(
                         "test `grep -c \"status 3\" $HERE/said` = 3") "'"),
                 0, "%s", said);
    cr_assert_eq(command_count(said, "ended with status 3"), 3, "%s", said);
    check_says("(restart 2 of 2)");
    cr_assert_eq(command_count(said, "takes its place"), 2, "%s", said);
}

Test(run_elastic, newcomers_that_nobody_let_in_do_not_keep_a_job_going)
{
    cr_assert_eq(run("-n 2 --bind none --grace 0 --elastic 1:2 --max-restarts 2 " FAILS), 7, "%s",
                 said);
    check_says("ended with status 7; 0 of the job are left, --elastic wants 1 at least\n");
    cr_assert_leq(command_count(said, "takes its place"), 1, "%s", said);
}

/* No founder waits for one that has ended, whether that was before it came, or while it waits. */
Test(run_elastic, a_job_that_has_not_begun_ends_with_a_founder)
{
    cr_assert_eq(run("-n 2 --bind none --grace 0 --elastic 1:2 --max-restarts 2 "
                     "sh -c 'test $RONDO_RANK = 1 || exec " FAILS
                     "; " UNTIL("test -e $RONDO_DOOR/members") "exit 3'"),
                 3, "%s", said);
    check_says("ended with status 3; the job has not begun, which takes all its ranks\n");
    cr_assert(!strstr(said, "takes its place"), "%s", said);
}

Test(run_elastic, founders_that_come_when_one_has_ended_do_not_wait_for_it)
{
    cr_assert_eq(run("-n 2 --bind none --grace 0 --elastic 1:2 "
                     "sh -c 'test $RONDO_RANK = 0 || exit 3; " UNTIL(
                         SAYS("goes on with the 1")) "exec " FAILS "'"),
                 7, "%s", said);
    check_says("a rank has ended before the job began, which takes all of them");
}

/* The one that came stays until the other has asked for one too many. */
Test(run_elastic, one_more_comes_when_asked_for_and_not_too_many)
{
    cr_assert_eq(run("-n 1 --bind none --elastic 1:2 "
                     "sh -c 'test -n \"$RONDO_JOIN\" || { " RUN
                     " --join $PPID; echo status $?; " RUN
                     " --join $PPID; echo status $?; }; " UNTIL(SAYS("status 1")) "echo through'"),
                 0, "%s", said);
    check_says("place 1 (pid ");
    check_says("comes to the job, as one of 2 ranks\n");
    check_says("status 0\n");
    check_says("the job has 2 ranks, and --elastic 1:2 lets in no more\n");
    check_says("status 1\n");
    cr_assert_eq(command_count(said, "through\n"), 2, "%s", said);
}

Test(run_elastic, who_wants_to_join_nothing_is_told_so)
{
    cr_assert_eq(run("--join 1"), 1, "%s", said);
    check_says("there is no `rondo run --elastic` with process id 1 here");
}

/* The abstract name at which `rondo run` of that process id listens. It lasts as long as a process
 * has the socket, over exec, too. */
static bool hold_name(int pid)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int length = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "rondo-run-%d", pid);
    int held = socket(AF_UNIX, SOCK_SEQPACKET, 0);

    return held >= 0 &&
           !bind(held, (const struct sockaddr *)&name,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1) + (socklen_t)length);
}

/* A container with ids of its own and the network of its host may find the name taken. */
Test(run_elastic, a_job_whose_name_is_taken_runs_without_joins)
{
    FILE *file = tmpfile();
    char text[4096] = "";
    int status = 0;
    pid_t pid;

    cr_assert_not_null(file);
    pid = fork();
    if (pid == 0) {
        dup2(fileno(file), STDOUT_FILENO);
        dup2(fileno(file), STDERR_FILENO);
        if (hold_name(getpid()))
            execl(RUN, RUN, "-n", "2", "--bind", "none", "--elastic", "1:2", "echo", "through",
                  NULL);
        _exit(100);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    rewind(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    said = text;
    cr_assert_eq(status, 0, "%s", said);
    check_says("nobody can --join, there is no socket: Address already in use\n");
    check_says("rondo run: 2 ranks, which may become 1 to 2\n");
    cr_assert_eq(command_count(said, "through\n"), 2, "%s", said);
}

Test(run_elastic, nothing_is_left_behind)
{
    char *door;

    cr_assert_eq(run("-n 1 --bind none --elastic 1:2 "
                     "sh -c 'touch \"$RONDO_DOOR\"/knock.x && echo \"door=$RONDO_DOOR\"'"),
                 0, "%s", said);
    door = strstr(said, "door=");
    cr_assert(door && strstr(door, "/rondo-run-"), "%s", said);
    door = strtok(door + strlen("door="), "\n");
    cr_expect(access(door, F_OK) != 0, "%s is still there", door);
}

Test(run_elastic, a_signal_ends_all)
{
    cr_assert_eq(run("-n 2 --bind none --grace 0.2 --elastic 1:2 --max-restarts 9 "
                     "sh -c 'test $RONDO_RANK = 0 || kill -INT $PPID; "
                     "sleep 600'"),
                 130, "%s", said);
    cr_assert(!strstr(said, "goes on"), "%s", said);
}

/* SIGHUP is read before the end of rank 1, so the job would be ending when that is noticed. */
Test(run_elastic, a_signal_that_was_ignored_at_the_start_changes_nothing)
{
    cr_assert_eq(run_list("trap \"\" HUP INT QUIT TERM USR1 USR2; " RUN
                          " -n 2 --bind none --grace 0 --elastic 1:2 "
                          "sh -c 'test $RONDO_RANK = 0 || { for i in HUP HUP INT QUIT TERM "
                          "USR1 USR2; do kill -$i $PPID; done; exit 3; }; " UNTIL(
                              SAYS("goes on with the 1")) "echo through'"),
                 0, "%s", said);
    check_says("through\n");
}

Test(run_elastic, nobody_comes_to_a_job_that_a_signal_ends)
{
    cr_assert_eq(run("-n 1 --bind none --elastic 1:2 "
                     "sh -c 'trap \"touch $HERE/interrupted\" INT; kill -INT $PPID; " UNTIL(
                         "test -e $HERE/interrupted") RUN " --join $PPID; echo status $?; exit 3'"),
                 3, "%s", said);
    check_says("the job is ending\n");
    check_says("status 1\n");
}

Test(run_elastic, what_a_lost_rank_has_started_ends_with_it)
{
    cr_assert_eq(run("-n 2 --bind none --elastic 1:2 "
                     "sh -c 'test $RONDO_RANK = 1 || { " UNTIL(
                         GONE("child")) "echo through; exit; }; "
                                        "sleep 600 & echo $! > $HERE/child; kill -9 $$'"),
                 0, "%s", said);
    check_says("through\n");
}

Test(run_elastic, a_job_within_a_rank_has_no_door_of_its_own)
{
    cr_assert_eq(run("-n 1 --bind none --elastic 1:2 " RUN " -n 1 --bind none "
                     "sh -c 'echo door=$RONDO_DOOR limits=$RONDO_ELASTIC.'"),
                 0, "%s", said);
    check_says("door= limits=.\n");
}

Test(run_elastic, wrong_usage_is_explained)
{
    static const char *const wrong[][2] = {
        {"--elastic 3:2 true", "--elastic is '3:2': accepted is MIN:MAX"},
        {"--elastic 0:2 true", "--elastic is '0:2'"},
        {"--elastic 2 true", "--elastic is '2'"},
        {"-n 5 --elastic 2:4 true", "-n 5 is not within --elastic 2:4"},
        {"-n 2 --max-restarts 1 true", "--max-restarts is for --elastic"},
        {"--hosts a:2 --elastic 1:2 true", "--elastic is for ranks of this host"},
        {"--join 7 true", "--join takes the program of the job"},
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        cr_assert_eq(run(wrong[i][0]), 2, "%s: %s", wrong[i][0], said);
        check_says(wrong[i][1]);
    }
}
