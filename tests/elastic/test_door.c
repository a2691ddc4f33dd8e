/* SPDX-License-Identifier: BSD-3-Clause */
/* test_door.c - who is let in, who waits and who is sent away at the door of a job. */
#include "ddp/elastic/door.h"

#include "comm/rendezvous/socket.h"
#include "rondo/bindings.h"
#include "rondo/elastic.h"
#include "tests/patience.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH = 64, SECONDS = 60, ERROR = 100 };

static char folder[PATH];

static void make_folder(void)
{
    snprintf(folder, sizeof(folder), "/tmp/rondo-door-XXXXXX");
    cr_assert(mkdtemp(folder));
}

static void remove_folder(void)
{
    char command[PATH + 16];

    snprintf(command, sizeof(command), "rm -r %s", folder);
    cr_expect_eq(system(command), 0);
}

static void put(const char *name)
{
    char path[4 * PATH];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    close(open(path, O_WRONLY | O_CREAT, 0600));
}

static bool there_is(const char *name)
{
    char path[4 * PATH];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

/* A child that knocks; ends with what came of it. */
static pid_t knock(void)
{
    pid_t pid = fork();
    struct door_invitation invitation;
    struct door *door;

    if (pid)
        return pid;
    alarm(SECONDS);
    if (door_open(folder, &door))
        _exit(ERROR);
    _exit(ERROR + (int)door_knock(door, false, &invitation));
}

/* A child that is a member until `leave` has something to read. */
static pid_t be_member(int leave, int is_there)
{
    pid_t pid = fork();
    struct door *door;
    char byte = 0;

    if (pid)
        return pid;
    alarm(SECONDS);
    if (door_open(folder, &door) || door_enter(door) || write(is_there, &byte, 1) != 1)
        _exit(ERROR);
    _exit(read(leave, &byte, 1) == 1 ? 0 : ERROR);
}

static void wait_for_name(struct door *door, char (*ret_names)[DOOR_NAME])
{
    for (int i = 0; i < SECONDS * 1000 && !door_look(door, ret_names, 1); i++)
        usleep(1000);
}

static int end_of(pid_t pid)
{
    int status = 0;

    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void check_end(pid_t pid, int wanted)
{
    int end = end_of(pid);

    cr_expect_eq(end, wanted, "it ended with %d, not %d", end, wanted);
}

TestSuite(door, .init = make_folder, .fini = remove_folder, .timeout = SECONDS);

Test(door, a_job_is_over_when_a_member_said_so_and_no_member_is_left)
{
    int leave[2], is_there[2];
    char byte = 0;
    struct door *door;
    pid_t member, newcomer;

    cr_assert(!pipe(leave) && !pipe(is_there) && !door_open(folder, &door));
    member = be_member(leave[0], is_there[1]);
    cr_assert_eq(read(is_there[0], &byte, 1), 1);
    door_say_over(door);
    newcomer = knock();
    /* It sleeps between two looks alone. */
    cr_expect(world_await_sleep(newcomer), "it left though a member is there");
    cr_assert_eq(write(leave[1], &byte, 1), 1);
    check_end(member, 0);
    check_end(newcomer, ERROR + RONDO_ERROR_ABORTED);
    door_close(door);
}

Test(door, who_is_not_invited_after_all_still_knocks)
{
    struct door_invitation invitation = {.size = 2, .rank = 1};
    char names[1][DOOR_NAME] = {""}, again[1][DOOR_NAME], path[3 * PATH];
    struct door *door;
    pid_t newcomer;

    cr_assert(!door_open(folder, &door));
    newcomer = knock();
    wait_for_name(door, names);
    snprintf(path, sizeof(path), "%s/invitation.%s", folder, names[0]);
    cr_assert_eq(mkdir(path, 0700), 0); /* where no file can be named so */
    cr_expect_neq(door_invite(door, names[0], &invitation), RONDO_OK);
    cr_expect_eq(door_look(door, again, 1), 1, "its knock is gone");
    snprintf(path, sizeof(path), "unfinished.%s", names[0]);
    cr_expect(!there_is(path));
    snprintf(path, sizeof(path), "%s/invitation.%s", folder, names[0]);
    rmdir(path);
    cr_expect_eq(door_invite(door, names[0], &invitation), RONDO_OK);
    check_end(newcomer, ERROR + RONDO_OK);
    cr_expect_eq(door_look(door, again, 1), 0);
    door_close(door);
}

Test(door, a_child_of_fork_does_not_speak_for_the_job)
{
    struct door *door;
    pid_t child;

    cr_assert(!door_open(folder, &door));
    child = fork();
    if (!child) {
        door_say_over(door);
        _exit(0);
    }
    check_end(child, 0);
    cr_expect(!there_is("over"));
    door_say_over(door);
    cr_expect(there_is("over"));
    door_close(door);
}

/* ---- Jobs ------------------------------------------------------------------------------------ */

static void set_number(const char *name, int value)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", value);
    setenv(name, text, 1);
}

/* Rank `rank` of 2 founders; 2: a newcomer. Ends with 0, or where it went wrong. */
static pid_t start(int rank, int (*live)(rondo_elastic *job, int rank))
{
    pid_t pid = fork();
    char address[2 * PATH], algorithm[] = "ring";
    rondo_config config = RONDO_CONFIG_INIT;
    rondo_elastic *job;
    int status;

    if (pid)
        return pid;
    config.algorithm = algorithm;
    alarm(SECONDS);
    snprintf(address, sizeof(address), "unix:%s", folder + 1);
    setenv("RONDO_ADDRESS", address, 1);
    setenv("RONDO_SECRET", "0123456789abcdef0123456789abcdef", 1);
    setenv("RONDO_DOOR", folder, 1);
    setenv("RONDO_ELASTIC", "1:4", 1);
    if (rank == 2) {
        setenv("RONDO_JOIN", "1", 1);
    } else {
        set_number("RONDO_RANK", rank);
        set_number("RONDO_SIZE", 2);
    }
    if (rondo_elastic_open(NULL, &config, &job)) {
        fprintf(stderr, "# %d: %s\n", rank, rondo_ddp_last_error());
        _exit(1);
    }
    strcpy(algorithm, "gone"); /* the name was this program's, for as long as the call took */
    status = live(job, rank);
    rondo_elastic_close(job);
    _exit(status);
}

/* Rank 1 ends well after the first piece of work; rank 0 goes on, until a newcomer is there. */
static int leave_or_stay(rondo_elastic *job, int rank)
{
    rondo_elastic_outcome outcome = {0};

    if (rondo_elastic_agree(job, 1, &outcome) || !outcome.counts)
        return 2;
    while (rank == 0 && !outcome.joined) {
        if (rondo_elastic_agree(job, 1, &outcome))
            return 3;
        usleep(1000);
    }
    if (rank != 1 && rondo_elastic_agree(job, 1, &outcome))
        return 4;
    return 0;
}

Test(door, one_rank_leaves_and_a_newcomer_comes_to_the_job_that_goes_on)
{
    pid_t ranks[2] = {start(0, leave_or_stay), start(1, leave_or_stay)}, newcomer;

    check_end(ranks[1], 0);
    cr_expect(there_is("over"), "rank 1 has not said so, so there is nothing to see here");
    newcomer = start(2, leave_or_stay);
    check_end(newcomer, 0);
    check_end(ranks[0], 0);
}

/* All work fails; the newcomer comes after the second time. */
static int fail(rondo_elastic *job, int rank)
{
    rondo_elastic_outcome outcome = {0};
    char names[1][DOOR_NAME];
    struct door *door;

    if (rank != 2 && rondo_elastic_agree(job, 0, &outcome))
        return 2;
    if (rank == 0) {
        put("failed");
        if (door_open(folder, &door))
            return 3;
        wait_for_name(door, names);
    }
    if (rank != 2 && (rondo_elastic_agree(job, 0, &outcome) || outcome.joined != 1))
        return 4;
    return rondo_elastic_agree(job, 0, &outcome) == RONDO_ERROR_PEER ? 0 : 5;
}

Test(door, newcomers_give_up_work_that_fails_when_the_others_do)
{
    pid_t ranks[2] = {start(0, fail), start(1, fail)}, newcomer;

    while (!there_is("failed"))
        usleep(1000);
    newcomer = start(2, fail);
    check_end(ranks[0], 0);
    check_end(ranks[1], 0);
    check_end(newcomer, 0);
}

/* An id of a process that has ended; `address`: there, NULL: a Unix socket. */
static void make_dead_id(const char *address, rondo_unique_id *ret_id)
{
    int ids[2];
    pid_t maker;

    cr_assert(!pipe(ids));
    maker = fork();
    if (!maker)
        _exit((address ? rondo_unique_id_create_at(address, -1, ret_id)
                       : rondo_unique_id_create(ret_id)) ||
              write(ids[1], ret_id, sizeof(*ret_id)) != sizeof(*ret_id));
    check_end(maker, 0);
    cr_assert_eq(read(ids[0], ret_id, sizeof(*ret_id)), sizeof(*ret_id));
}

/* Members stand still for each invitation. */
static void check_invited_once(const rondo_unique_id *id)
{
    struct door_invitation invitation = {.id = *id, .size = 2, .rank = 1};
    char names[1][DOOR_NAME];
    struct door *door;
    int status = 0, invited = 0;
    pid_t newcomer;

    cr_assert(!door_open(folder, &door) && !door_enter(door));
    newcomer = start(2, leave_or_stay);
    for (; waitpid(newcomer, &status, WNOHANG) == 0; usleep(1000))
        if (door_look(door, names, 1) && !door_invite(door, names[0], &invitation))
            invited++;
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 1, "%d", status);
    cr_expect_eq(invited, 1, "it was invited %d times", invited);
    door_close(door);
}

Test(door, who_cannot_reach_the_members_is_invited_once)
{
    rondo_unique_id id;

    make_dead_id(NULL, &id);
    check_invited_once(&id);
}

/* Says to everybody who comes what no meeting point says. */
static pid_t be_rude(int listener)
{
    static const char answer[] = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
    pid_t pid = fork();

    if (!pid)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int fd; !pid; usleep(1000))
        if ((fd = accept(listener, NULL, NULL)) >= 0 && write(fd, answer, sizeof(answer)) >= 0)
            close(fd);
    return pid;
}

/* The port of the members is that of others now, who say nothing, and then something. */
Test(door, who_finds_strangers_where_the_members_should_be_is_invited_once)
{
    struct bootstrap_place place;
    rondo_unique_id id;
    pid_t stranger;
    int listener;

    make_dead_id("127.0.0.1:0", &id);
    cr_assert(!bootstrap_id_read(&id, &place) &&
              !socket_listen(place.address, false, &listener, NULL));
    fcntl(listener, F_SETFL, 0);
    check_invited_once(&id);
    stranger = be_rude(listener);
    check_invited_once(&id);
    kill(stranger, SIGKILL);
    waitpid(stranger, NULL, 0);
    close(listener);
}

/* The two newcomers get their invitations at the same time. */
static int let_two_in(rondo_elastic *job, int rank)
{
    rondo_elastic_outcome outcome = {0};
    char names[2][DOOR_NAME];
    struct door *door;

    if (rank == 0) {
        if (door_open(folder, &door))
            return 2;
        while (door_look(door, names, 2) < 2)
            usleep(1000);
    }
    while (rank != 2 && !outcome.joined)
        if (rondo_elastic_agree(job, 1, &outcome))
            return 3;
    return rondo_elastic_agree(job, 1, &outcome) ? 4 : 0;
}

Test(door, who_was_invited_with_one_that_does_not_come_is_invited_again)
{
    pid_t founders[2] = {start(0, let_two_in), start(1, let_two_in)}, newcomer, absent;

    newcomer = start(2, let_two_in);
    absent = knock();
    check_end(absent, ERROR + RONDO_OK);
    check_end(newcomer, 0);
    check_end(founders[0], 0);
    check_end(founders[1], 0);
}

/* The first piece of work counts, and this rank fails to keep it. */
static int fail_to_keep(rondo_elastic *job, int rank)
{
    rondo_elastic_outcome outcome = {0};

    (void)rank;
    if (rondo_elastic_agree(job, 1, &outcome) || !outcome.counts)
        return 2;
    rondo_elastic_fail(job);
    return 0;
}

Test(door, who_fails_after_its_last_piece_of_work_does_not_end_the_job)
{
    pid_t ranks[2] = {start(0, fail_to_keep), start(1, fail_to_keep)};

    check_end(ranks[0], 0);
    check_end(ranks[1], 0);
    cr_expect(!there_is("over"));
}

/* Rank 0 goes on without rank 1, which is away until then: that is not the end of the job. */
static int be_left_behind(rondo_elastic *job, int rank)
{
    rondo_elastic_outcome outcome = {0};
    rondo_result result = rondo_elastic_agree(job, 1, &outcome);

    if (result || !outcome.counts)
        return 2;
    while (rank == 1 && !there_is("alone"))
        usleep(1000);
    rondo_comm_set_timeout(rondo_elastic_comm(job), 1);
    result = rondo_elastic_agree(job, 1, &outcome);
    if (rank == 1)
        return result == RONDO_ERROR_PEER ? 0 : 3;
    if (result || outcome.lost != 1)
        return 4;
    for (put("alone"); !result && !there_is("end"); usleep(1000))
        result = rondo_elastic_agree(job, 1, &outcome);
    return result ? 5 : 0;
}

Test(door, who_is_left_behind_does_not_end_the_job)
{
    pid_t ranks[2] = {start(0, be_left_behind), start(1, be_left_behind)};

    check_end(ranks[1], 0);
    cr_expect(!there_is("over"));
    put("end");
    check_end(ranks[0], 0);
    cr_expect(there_is("over"));
}

Test(door, a_job_that_begins_is_not_over_because_an_earlier_one_is)
{
    struct door *door;
    pid_t ranks[2];

    cr_assert(!door_open(folder, &door));
    door_say_over(door);
    door_close(door);
    ranks[0] = start(0, be_left_behind);
    ranks[1] = start(1, be_left_behind);
    check_end(ranks[1], 0);
    cr_expect(!there_is("over"));
    put("end");
    check_end(ranks[0], 0);
}
