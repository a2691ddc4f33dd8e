/* SPDX-License-Identifier: BSD-3-Clause */
/* test_folder.c - the folder of records, which processes of several namespaces may share. */
#include <criterion/criterion.h>

#include "comm/recorder/folder.h"
#include "comm/recorder/gather.h"
#include "comm/recorder/recorder.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static char place[] = "/tmp/rondo_folder_XXXXXX";

static void make_place(void)
{
    cr_assert_not_null(mkdtemp(place));
    setenv("RONDO_RECORDER_DIR", place, 1);
}

static void remove_place(void)
{
    rmdir(place);
}

TestSuite(folder, .init = make_place, .fini = remove_place);

static struct recorder *open_one(void)
{
    static const unsigned char host[16] = {1, 2, 3};

    return recorder_open(&(struct recorder_owner){.rank = 0, .size = 1, .host_id = host});
}

/* Process 1 of a namespace of its own, as in a container: it has a record, and ends without closing
 * it when `go` does. Returns whether namespaces can be made here. */
static bool run_container(int ready, int go)
{
    pid_t child;
    char byte;

    if (unshare(CLONE_NEWPID))
        return false;
    child = fork();
    if (child == 0) {
        byte = open_one() ? 'y' : 'n';
        _exit(write(ready, &byte, 1) != 1 || read(go, &byte, 1) != 0);
    }
    waitpid(child, NULL, 0);
    return true;
}

struct container {
    pid_t pid;
    int ready, go;
};

/* 'y' or 'n': its rank has a record or has none; anything else: there are no namespaces. */
static char start_container(struct container *ret_container)
{
    int ready[2], go[2];
    char byte = '\0';

    cr_assert(!pipe2(ready, O_CLOEXEC) && !pipe2(go, O_CLOEXEC));
    ret_container->pid = fork();
    if (ret_container->pid == 0) {
        close(go[1]);
        _exit(run_container(ready[1], go[0]) ? 0 : 1);
    }
    close(ready[1]);
    close(go[0]);
    *ret_container = (struct container){ret_container->pid, ready[0], go[1]};
    return read(ready[0], &byte, 1) == 1 ? byte : '\0';
}

static void end_container(struct container *container)
{
    close(container->go);
    close(container->ready);
    waitpid(container->pid, NULL, 0);
}

static int count_life(enum sighting_life life)
{
    struct sightings seen = {0};
    int count = 0;

    cr_assert(gather_here(0, &seen));
    for (int i = 0; i < seen.count; i++)
        count += seen.at[i]->process.life == life;
    sightings_done(&seen);
    return count;
}

Test(folder, containers_that_share_the_folder_do_not_take_each_other_s_records)
{
    enum { CRASHED = 20 };
    struct container container;
    char has = start_container(&container);
    int folder = folder_open(false);

    if (has != 'y' && has != 'n')
        cr_skip_test("no process namespaces here");
    for (int i = 0; i < CRASHED; i++) {
        struct container crashed;

        cr_assert_eq(start_container(&crashed), 'y', "container %d has no record", i);
        end_container(&crashed);
    }
    cr_expect_eq(count_life(SIGHTING_HIDDEN), 1, "of the one that is left");
    cr_expect_eq(count_life(SIGHTING_ENDED), CRASHED);
    cr_expect_eq(folder_sweep(folder, true), CRASHED);
    cr_expect_eq(count_life(SIGHTING_HIDDEN), 1);
    end_container(&container);
    cr_expect_eq(folder_sweep(folder, true), 1);
    close(folder);
}
