/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * main.c - the program behind `rondo train`: becomes a job of ranks, or is one of its ranks.
 *
 * With -n it becomes `rondo run -n N` of itself. A rank of that job, or of any other launcher,
 * opens the communicator and trains.
 */
#include "train/trainer.h"

#include "cli/common/own_path.h"
#include "train/model/blas.h"
#include "train/cuda/gpu.h"
#include "train/common/say.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The command stands elsewhere in a build tree than where it is installed. */
static void find_command(char *path, size_t room)
{
    static const char *const places[] = {"/../cli/rondo", "/../../bin/rondo", "/rondo"};
    char own[1024];

    own_folder(own, sizeof(own));
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        snprintf(path, room, "%s%s", own, places[i]);
        if (!access(path, X_OK))
            return;
    }
    snprintf(path, room, "rondo"); /* wherever it is */
}

/* Returns only if that fails. */
static int become_job(const struct train_options *options, int argc, char **argv)
{
    char command[1200], number[16], self[1024];
    bool known = own_path(self, sizeof(self));
    char **list = calloc((size_t)argc + 10, sizeof(*list));
    char limits[32], restarts[16];
    int count = 0;

    if (!list || !known)
        return fprintf(stderr, "rondo train: cannot find itself: %s\n", strerror(errno)), 1;
    find_command(command, sizeof(command));
    snprintf(number, sizeof(number), "%d", options->ranks);
    snprintf(limits, sizeof(limits), "%d:%d", options->elastic.least, options->elastic.most);
    snprintf(restarts, sizeof(restarts), "%d", options->restarts);
    list[count++] = command;
    list[count++] = strdup("run");
    list[count++] = strdup("-n");
    list[count++] = number;
    if (options->elastic.most) {
        list[count++] = strdup("--elastic");
        list[count++] = limits;
        list[count++] = strdup("--max-restarts");
        list[count++] = restarts;
    }
    list[count++] = self;
    for (int i = 1; i < argc; i++)
        list[count++] = argv[i];
    fflush(stdout);
    execvp(command, list);
    fprintf(stderr, "rondo train: cannot start %s run: %s\n", command, strerror(errno));
    return 1;
}

static int be_elastic_rank(const struct train_options *options)
{
    rondo_result result;

    blas_use_one_thread();
    result = train_elastic(options);
    if (result)
        fprintf(stderr, "rondo train: %s\n", said());
    return result ? 1 : 0; /* who came too late has not trained, and is none that ended well */
}

static int be_rank(const struct train_options *options)
{
    rondo_config config = RONDO_CONFIG_INIT;
    rondo_comm *comm = NULL;
    rondo_result result;
    int rank = 0;

    if (options->deterministic)
        config.deterministic = 1;
    blas_use_one_thread();
    result = options->cuda ? gpu_open() : RONDO_OK; /* the communicator then has its device */
    if (!result)
        result = say_comm(rondo_comm_open(&config, &comm), NULL);
    if (!result) {
        rank = rondo_comm_rank(comm);
        result = train(options, comm);
    }
    if (result)
        fprintf(stderr, "rondo train: rank %d: %s\n", rank, said());
    rondo_comm_close(comm);
    if (options->cuda)
        gpu_close();
    return result ? 1 : 0;
}

int main(int argc, char **argv)
{
    const char *size = getenv("RONDO_SIZE");
    struct train_options options;
    char **copy = calloc((size_t)argc + 1, sizeof(*copy)); /* argp changes the order */

    if (!copy)
        return 1;
    memcpy(copy, argv, (size_t)argc * sizeof(*copy));
    train_options_parse(argc, argv, &options);
    setenv("OPENBLAS_NUM_THREADS", "1", 0);
    if (options.ranks && (!size || atoi(size) != options.ranks)) {
        if (!size && options.cuda && gpu_check()) { /* once, not by every rank */
            fprintf(stderr, "rondo train: %s\n", said());
            free(copy);
            return 1;
        }
        if (!size)
            return become_job(&options, argc, copy);
        fprintf(stderr,
                "rondo train: -n %d inside of a job of %s ranks: leave out -n, the launcher has "
                "started them\n",
                options.ranks, size);
        return 2;
    }
    free(copy);
    return options.elastic.most ? be_elastic_rank(&options) : be_rank(&options);
}
