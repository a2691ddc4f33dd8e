/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * id_owner.c - a process that makes a unique id and ends, with all its destructors.
 *
 * `id_owner leaves` prints the id and its process number, and ends when its input does. `id_owner
 * forks` has a child that ends at once, whose destructors must not wait for a thread that it does
 * not have, then meets by the id. A program of its own because a child of a Criterion test would
 * run Criterion's destructors, too.
 */
#include "tests/comm/rendezvous/party.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * The forked child has no server thread, but that thread's memory: it is no leak, and looking for
 * the thread's stack now and then hangs.
 */
const char *__asan_default_options(void) __attribute__((visibility("default")));
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

static int leaves(const rondo_unique_id *id)
{
    pid_t self = getpid();

    if (fwrite(id, sizeof(*id), 1, stdout) != 1 || fwrite(&self, sizeof(self), 1, stdout) != 1 ||
        fflush(stdout))
        return 1;
    return getchar() != EOF;
}

static int forks(const rondo_unique_id *id)
{
    struct bootstrap_place place;
    struct party_rank *ranks;
    int status, met;
    pid_t pid = fork();

    if (pid == 0)
        exit(0);
    if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) ||
        bootstrap_id_read(id, &place))
        return 1;
    ranks = party_new(&place, 2, 20);
    ranks[0].serve = ranks[1].serve = false;
    met = party_run(ranks, 2);
    if (met != 2)
        fprintf(stderr, "%s\n", ranks[0].sentence);
    party_free(ranks);
    return met != 2;
}

int main(int argc, char **argv)
{
    rondo_unique_id id;

    if (argc != 2 || bootstrap_id_create(&id))
        return 2;
    return strcmp(argv[1], "leaves") == 0 ? leaves(&id) : forks(&id);
}
