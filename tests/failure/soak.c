/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * soak.c - the runs of a range of seeds, some at a time.
 *
 *     soak [--transport shm|tcp|mixed|gpu] [--first N] [--runs N] [--seconds S] [--jobs N]
 *          [--csv FILE]
 *     soak --seed N [--transport T]     one run, with all that its ranks say
 *
 * Ends with status 1 if any run had a defect. A run that failed before its fate could strike, as a
 * machine with too much to do makes timeouts pass, is made once more with longer ones.
 */
#include "soak.h"

#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { JOBS_MAX = 16, PATIENCE = 5 };

struct soak {
    struct report_options report;
    uint64_t first;
    int runs, jobs;
    double seconds; /* no run begins after these; 0: no limit */
    bool verbose;
    struct outcome *outcomes; /* shared with the processes of the runs */
};

struct job {
    pid_t pid; /* 0: free */
    int index;
};

static void usage(void)
{
    fprintf(stderr,
            "usage: soak [--transport shm|tcp|mixed|gpu] [--first N] [--runs N] [--seconds S] "
            "[--jobs N] [--csv FILE] | --seed N\n");
    exit(2);
}

static enum soak_transport find_transport(const char *name)
{
    for (int t = 0; t < SOAK_TRANSPORTS; t++)
        if (strcmp(name, soak_transports[t]) == 0)
            return (enum soak_transport)t;
    usage();
    return SOAK_SHM;
}

static FILE *open_csv(const char *path)
{
    FILE *csv = fopen(path, "w");

    if (!csv) {
        perror(path);
        exit(2);
    }
    report_csv_head(csv);
    return csv;
}

static void parse(int argc, char **argv, struct soak *soak)
{
    static const struct option options[] = {
        {"transport", required_argument, NULL, 't'}, {"first", required_argument, NULL, 'f'},
        {"runs", required_argument, NULL, 'n'},      {"seconds", required_argument, NULL, 's'},
        {"jobs", required_argument, NULL, 'j'},      {"csv", required_argument, NULL, 'c'},
        {"seed", required_argument, NULL, 'S'},      {NULL, 0, NULL, 0}};
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 't')
            soak->report.transport = find_transport(optarg);
        else if (option == 'f' || option == 'S')
            soak->first = strtoull(optarg, NULL, 10);
        else if (option == 'n')
            soak->runs = atoi(optarg);
        else if (option == 's')
            soak->seconds = atof(optarg);
        else if (option == 'j')
            soak->jobs = atoi(optarg);
        else if (option == 'c')
            soak->report.csv = open_csv(optarg);
        else
            usage();
        if (option == 'S') {
            soak->runs = 1;
            soak->verbose = true;
        }
    }
    if (soak->runs < 1 || soak->jobs < 1 || soak->jobs > JOBS_MAX || optind != argc)
        usage();
}

static void run_one(const struct soak *soak, int index)
{
    struct outcome *outcome = &soak->outcomes[index];
    uint64_t seed = soak->first + (uint64_t)index;
    struct scene scene;
    char text[SOAK_TEXT];

    scene_make(seed, soak->report.transport, 1, &scene);
    if (soak->verbose) {
        scene_describe(&scene, text, sizeof(text));
        printf("%s, timeout %.2f s\n", text, scene.timeout);
    }
    stage_run(&scene, soak->verbose, outcome);
    if (outcome->defects != 1u << DEFECT_SPOILED)
        return;
    scene_make(seed, soak->report.transport, PATIENCE, &scene);
    stage_run(&scene, soak->verbose, outcome);
}

static void start(const struct soak *soak, struct job *job, int index)
{
    fflush(NULL);
    job->index = index;
    job->pid = fork();
    if (job->pid < 0) {
        perror("soak: fork");
        exit(2);
    }
    if (job->pid)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    run_one(soak, index);
    exit(0);
}

static void finish(const struct soak *soak, struct job *job, int status)
{
    struct outcome *outcome = &soak->outcomes[job->index];

    if (!WIFEXITED(status) || WEXITSTATUS(status) || !outcome->ran) {
        outcome->seed = soak->first + (uint64_t)job->index;
        outcome->ran = true;
        outcome_add(outcome, DEFECT_CRASHED, "the process that watches the ranks ended with %#x",
                    (unsigned)status);
    }
    report_run(&soak->report, outcome);
    job->pid = 0;
}

/* Wait until any job has ended. */
static void wait_for_one(const struct soak *soak, struct job *jobs)
{
    int status;
    pid_t pid = wait(&status);

    for (int j = 0; j < soak->jobs; j++)
        if (pid > 0 && jobs[j].pid == pid)
            finish(soak, &jobs[j], status);
}

static void progress(int done, int runs, double began)
{
    if (done % 50 == 0 && done)
        fprintf(stderr, "%d of %d runs begun, %.1f a second\n", done, runs,
                done / (soak_now() - began));
}

/* Returns how many runs there were. */
static int run_all(const struct soak *soak)
{
    struct job jobs[JOBS_MAX] = {{0}};
    double began = soak_now();
    int next = 0, busy;

    do {
        bool late = soak->seconds > 0 && soak_now() - began > soak->seconds;

        busy = 0;
        for (int j = 0; j < soak->jobs; j++) {
            if (!jobs[j].pid && next < soak->runs && !late) {
                progress(next, soak->runs, began);
                start(soak, &jobs[j], next++);
            }
            busy += jobs[j].pid != 0;
        }
        if (busy)
            wait_for_one(soak, jobs);
    } while (busy);
    printf("%d of %d runs over %s in %.1f s\n", next, soak->runs,
           soak_transports[soak->report.transport], soak_now() - began);
    return next;
}

int main(int argc, char **argv)
{
    struct soak soak = {.runs = 100, .jobs = 3, .first = 1};
    size_t bytes;
    int defects;

    parse(argc, argv, &soak);
    bytes = (size_t)soak.runs * sizeof(*soak.outcomes);
    soak.outcomes = world_share(bytes);
    run_all(&soak);
    defects = report_summary(&soak.report, soak.outcomes, soak.runs);
    printf("%d runs with defects\n", defects);
    world_unshare(soak.outcomes, bytes);
    if (soak.report.csv)
        fclose(soak.report.csv);
    return defects > 0;
}
