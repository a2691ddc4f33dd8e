/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_run_hosts.c - `rondo run --hosts`: RUN is the command, SHOW is show_launch, SSH is
 * fake_ssh.sh. The hosts are this one; tests/net has several.
 */
#include "command.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static const char *said;

static int run_command(const char *command)
{
    int status;

    said = command_output(command, &status);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* The exit status; `said` has what was said on stdout and stderr. */
static int run(const char *arguments)
{
    char command[2048];

    snprintf(command, sizeof(command), RUN " --bind none --ssh " SSH " %s 2>&1", arguments);
    return run_command(command);
}

static void check_says(const char *part)
{
    cr_assert(strstr(said, part), "'%s' is not in '%s'", part, said);
}

Test(run_hosts, ranks_of_all_hosts_meet)
{
    cr_assert_eq(run("--hosts localhost:2,127.0.0.1:1 " SHOW), 0, "%s", said);
    check_says("rank 0 of 3 by rondo run (local 0 of 2): met 0 1 2\n");
    check_says("rank 1 of 3 by rondo run (local 1 of 2): met 0 1 2\n");
    check_says("rank 2 of 3 by rondo run (local 0 of 1): met 0 1 2\n");
}

Test(run_hosts, ranks_are_dealt_out_as_the_list_says)
{
    static const struct {
        const char *options, *local[3];
    } cases[] = {{"-n 5 --hosts a,b", {"0-2/3", "3-4/2", ""}},
                 {"-n 3 --hosts a:2,b:2", {"0-1/2", "2-2/1", ""}},
                 {"--hosts me@a:2,b,[::1]:3", {"0-1/2", "2-2/1", "3-5/3"}},
                 {"-n 1 --hosts a,b,c", {"0-0/1", "", ""}}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char arguments[256];

        snprintf(arguments, sizeof(arguments),
                 "%s sh -c 'test $RONDO_LOCAL_RANK = 0 && echo from $RONDO_RANK-"
                 "$((RONDO_RANK + RONDO_LOCAL_SIZE - 1))/$RONDO_LOCAL_SIZE; true'",
                 cases[i].options);
        cr_assert_eq(run(arguments), 0, "%s: %s", cases[i].options, said);
        for (int host = 0; host < 3; host++)
            if (*cases[i].local[host])
                check_says(cases[i].local[host]);
        cr_assert_eq(command_count(said, "from"), 1 + !!*cases[i].local[1] + !!*cases[i].local[2]);
    }
}

Test(run_hosts, arguments_folder_and_variables_go_along_as_they_are)
{
    setenv("MINE", "two words", 1);
    setenv("OTHER", "stays here", 1);
    setenv("RONDO_SLOTS", "5", 1);
    cr_assert_eq(
        run("--hosts a:1 -x MINE -x 'YOURS=a=b' sh -c 'printf \"%s|\" \"$@\" \"$MINE\" \"$YOURS\" "
            "\"$OTHER\" $RONDO_SLOTS ${#RONDO_SECRET} $(pwd)' x 'a  b' '' \"it's\" '$HOME;'"),
        0, "%s", said);
    check_says("a  b||it's|$HOME;|two words|a=b||5|64|");
    cr_assert_null(strstr(said, "|/|"), "it is in the folder of ssh: %s", said);
}

Test(run_hosts, ranks_are_none_of_the_elastic_job_that_has_started_the_command)
{
    static const char show[] = "--hosts a:1 sh -c 'echo \"|$RONDO_ELASTIC|$RONDO_DOOR|\"'";

    setenv("RONDO_ELASTIC", "1:4", 1);
    setenv("RONDO_DOOR", "/tmp/door", 1);
    cr_assert_eq(run(show), 0, "%s", said);
    check_says("|1:4|/tmp/door|\n");
    setenv("RONDO_RANK", "1", 1); /* now a rank of that job starts it */
    cr_assert_eq(run(show), 0, "%s", said);
    check_says("|||\n");
}

Test(run_hosts, an_order_that_fits_into_no_pipe_is_refused_as_too_long)
{
    cr_assert_eq(run("--hosts a:1 true $(head -c 1045000 /dev/zero | tr '\\0' x | fold -w 100000)"),
                 1, "%s", said);
    check_says("program, arguments and variables are longer than 1040384 bytes");
    cr_assert_eq(run("--hosts a:1 true $(head -c 1000000 /dev/zero | tr '\\0' x | fold -w 100000)"),
                 0, "%s", said);
}

Test(run_hosts, ssh_gets_addresses_without_brackets)
{
    cr_assert_eq(run_command(RUN " --ssh echo --hosts a:1,[fd00::1]:2,me@[fd00::2]:1 true 2>&1"), 0,
                 "%s", said);
    check_says("fd00::1 sh -c ");
    check_says("me@fd00::2 sh -c ");
}

Test(run_hosts, the_secret_is_on_no_command_line)
{
    cr_assert_eq(run("--hosts a:1 sh -c 'tr \"\\0\" \" \" < /proc/$PPID/cmdline; "
                     "grep -sal $RONDO_SECRET /proc/[0-9]*/cmdline; true'"),
                 0, "%s", said);
    check_says("--agent");
    cr_assert_null(strstr(said, "/proc/"), "%s", said);
}

Test(run_hosts, output_is_tagged_with_the_numbers_of_the_job)
{
    cr_assert_eq(run("--hosts a:1,b:2 --tag echo here"), 0, "%s", said);
    for (int rank = 0; rank < 3; rank++) {
        char line[32];

        snprintf(line, sizeof(line), "[%d] here\n", rank);
        check_says(line);
    }
}

Test(run_hosts, the_first_failure_is_named_and_is_the_exit_status)
{
    cr_assert_eq(run("--hosts a:1,b:2 sh -c 'test $RONDO_RANK != 2 || exit 7'"), 7, "%s", said);
    check_says("rondo run: rank 2 (pid ");
    check_says("of 3 ended with status 7");
    check_says("rondo run: host b (pid ");
}

Test(run_hosts, hosts_that_cannot_be_reached_are_named)
{
    cr_assert_eq(run("--hosts a:1,nowhere:1 --grace 0.2 sleep 30"), 255, "%s", said);
    check_says("no route to host nowhere");
    check_says("rondo run: host nowhere (pid ");
    check_says("ending the 1 hosts that still run");
    cr_assert_eq(run_command(RUN " --hosts a:1 --ssh there-is-no-ssh true 2>&1"), 127, "%s", said);
    check_says("cannot start 'there-is-no-ssh': No such file or directory");
    cr_assert_eq(run("--hosts a:1 there-is-no-program"), 127, "%s", said);
    check_says("cannot start 'there-is-no-program': No such file or directory");
}

Test(run_hosts, a_job_that_takes_too_long_is_ended_everywhere)
{
    cr_assert_eq(run("--hosts a,b --timeout 0.5 -n 2 sleep 30"), 124, "%s", said);
    check_says("2 of 2 hosts still run after 0.5 s");
}

/* The ranks write their numbers; afterwards none of them may be there. */
static void check_all_end(const char *kill)
{
    char command[2048];

    snprintf(command, sizeof(command),
             "file=$(mktemp); " RUN " --bind none --ssh " SSH
             " --grace 0.2 --hosts a:2,b:2 sh -c 'echo $$ >> '$file'; exec sleep 300' "
             ">$file.said 2>&1 & run=$!; "
             "for i in $(seq 2000); do test $(wc -l < $file) = 4 && break; sleep 0.05; done; %s; "
             "for i in $(seq 2000); do alive=0; for p in $(cat $file); do "
             "grep -qs '^State:.[^Z]' /proc/$p/status && alive=$((alive + 1)); done; "
             "test $alive = 0 && break; sleep 0.05; done; "
             "echo ranks $(wc -l < $file) alive $alive; rm $file $file.said",
             kill);
    run_command(command);
    check_says("ranks 4 alive 0");
}

Test(run_hosts, no_rank_outlives_the_job)
{
    check_all_end("kill -9 $run");
    check_all_end("kill -TERM $run");
    check_all_end("kill -9 $(head -n 1 $file)"); /* a rank */
}

Test(run_hosts, wrong_usage_is_told)
{
    static const struct {
        const char *arguments, *part;
    } cases[] = {{"--hosts a,b true", "how many ranks? Give -n, or --hosts NAME:RANKS"},
                 {"--hosts a:0 true", "--hosts has 'a:0'"},
                 {"--hosts a:2x true", "--hosts has 'a:2x'"},
                 {"--hosts a:1,,b:1 true", "--hosts has ''"},
                 {"--hosts :2 true", "--hosts has ':2'"},
                 {"--hosts [::1 true", "--hosts has '[::1'"},
                 {"--hosts -oProxyCommand=x:1 true", "--hosts has '-oProxyCommand=x:1'"},
                 {"-n 5 --hosts a:2,b:2 true", "-n 5 is more than --hosts has room for, 4"},
                 {"--hosts a:1", "which program?"},
                 {"-n 1 true", "--ssh and -x are for --hosts"},
                 {"--hosts a:1 -x NO_SUCH_NAME true", "-x NO_SUCH_NAME: there is no such variable"},
                 {"--hosts a:1 -x =1 true", "-x is '=1'"}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cr_assert_eq(run(cases[i].arguments), 2, "'%s': %s", cases[i].arguments, said);
        check_says(cases[i].part);
    }
}

Test(run_hosts, an_agent_takes_nothing_but_an_order)
{
    static const char *const inputs[] = {"true",
                                         "echo hello",
                                         "head -c 5000000 /dev/zero",
                                         "printf 'rondo run 1 %8d\\n' 2000000",
                                         "printf 'rondo run 1 %8d\\n' 100; echo short",
                                         "printf 'rondo run 2 %8d\\n0\\0' 2"};

    for (size_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++) {
        char command[256];

        snprintf(command, sizeof(command), "{ %s; } | " RUN " --agent 2>&1", inputs[i]);
        cr_assert_eq(run_command(command), 2, "%s: %s", inputs[i], said);
        check_says("--agent is for `rondo run --hosts`");
    }
    cr_assert_eq(run_command("printf 'rondo run 1 %8d\\n0\\0' 2 | " RUN " --agent 2>&1"), 2);
    check_says("the order for this host makes no sense");
}
