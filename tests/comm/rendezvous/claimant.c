/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * claimant.c - a rank of a job, for the tests of who is which rank: it says "claimed", then "met 0
 * 1" or a sentence. For each line that it is given it opens once more; it ends when there are no
 * more.
 *
 * With an argument it starts itself as a child, which inherits its variables, "before" it opens or
 * "after"; what the child says stands first. Or it "forks", and the child is the rank, not it.
 */
#include "comm/rendezvous/bootstrap.h"

#include "base/fail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void take_part(void)
{
    struct launch launch = {.launcher = ""};
    int ranks[16] = {0};
    rondo_result result = launch_read(&launch);

    if (!result)
        result = launch_claim(&launch);
    if (!result) {
        const struct bootstrap_part part = {.place = &launch.place,
                                            .rank = launch.rank,
                                            .size = launch.size,
                                            .serve = true,
                                            .timeout = 60,
                                            .watch = &launch.watch};

        puts("claimed");
        result = bootstrap_take_part(&part, &launch.rank, sizeof(int), ranks);
    }
    if (result) {
        puts(fail_sentence());
        return;
    }
    launch_met(&launch);
    printf("met");
    for (int i = 0; i < launch.size; i++)
        printf(" %d", ranks[i]);
    puts("");
}

static void have_child(const char *own)
{
    char command[1024];

    snprintf(command, sizeof(command), "%s </dev/null", own);
    if (system(command))
        puts("the child was not started");
}

int main(int argc, char **argv)
{
    const char *when = argc > 1 ? argv[1] : "";
    char line[16];
    pid_t child;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!strcmp(when, "before"))
        have_child(argv[0]);
    if (!strcmp(when, "forks") && (child = fork()) != 0)
        return child < 0 || waitpid(child, NULL, 0) < 0;
    take_part();
    if (!strcmp(when, "after"))
        have_child(argv[0]);
    while (fgets(line, sizeof(line), stdin))
        take_part();
    return 0;
}
