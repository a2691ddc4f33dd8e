/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ps.c - `rondo ps [JOB]`: what ranks wait for, and whom for, seen from outside.
 *
 * Each rank writes its calls into a file (comm/recorder/recorder.h), and this command reads those
 * of all ranks. No rank has to answer, so it works when they are stopped, have crashed, or sleep in
 * a lock. Records of other hosts come by ssh, from the same command there.
 */
#include "cli/ps/ps.h"

#include "cli/commands.h"
#include "cli/common/argument.h"

#include "base/fail.h"
#include "comm/recorder/folder.h"
#include "comm/recorder/gather.h"
#include "comm/recorder/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char summary[] =
    "Show what ranks of running jobs wait for, and whom for.\v"
    "JOB is a process, the beginning of a communicator's number, or the name of a program; all "
    "communicators that its processes are in are shown. Ranks write their last calls into files in "
    "/dev/shm/rondo-UID (RONDO_RECORDER_DIR), which are read: no rank has to answer. Below each "
    "communicator in which somebody waits stands the cause, and how it is reached.";

struct command {
    const char *job, *hosts, *ssh;
    bool json, late, stack, raw, clean;
    double timeout;
};

static void take_job(struct argp_state *state, void *input, char *text)
{
    struct command *command = input;

    if (command->job)
        argp_error(state, "one job at a time, and there are '%s' and '%s'", command->job, text);
    command->job = text;
}

static void check(struct argp_state *state, void *input)
{
    const struct command *command = input;

    if (command->ssh && !command->hosts)
        argp_error(state, "--ssh is for --hosts");
    if (command->hosts && !command->hosts[strspn(command->hosts, ",")])
        argp_error(state, "--hosts '%s' names no host", command->hosts);
    if (command->stack && (command->hosts || command->json))
        argp_error(state, "--stack shows ranks of this host, as text");
    if (command->late && command->json)
        argp_error(state, "--json has what --late shows");
}

#define SETS(member) ARGUMENT_SETS(struct command, member)

static const struct argument table[] = {
    {"json", 0, NULL, 0, SETS(json), "Write JSON instead of text"},
    {"late", 0, NULL, 0, SETS(late), "Show who comes late to calls, how late and how often"},
    {"hosts", 0, "LIST", 0, SETS(hosts), "Ask these hosts by ssh, with commas between"},
    {"ssh", 0, "PROGRAM", 0, SETS(ssh), "PROGRAM HOST COMMAND does what ssh would do"},
    {"timeout", 0, "S", 0, ARGUMENT_NUMBER(struct command, timeout, 0, 0),
     "Seconds that hosts have to answer (10)"},
    {"stack", 0, NULL, 0, SETS(stack),
     "Show where the program of the culprit stands; eu-stack stops it for a moment"},
    {"clean", 0, NULL, 0, SETS(clean), "Remove records of processes that have ended"},
    {"raw", 0, NULL, 0, SETS(raw), NULL},
    {0}};

/* ---- Which communicators --------------------------------------------------------------------- */

static bool matches(const struct sighting *sighting, const char *job)
{
    const struct recorder_identity *identity = &sighting->record.identity;
    char number[24], comm[24];

    snprintf(number, sizeof(number), "%d", identity->pid);
    snprintf(comm, sizeof(comm), "%llx", (unsigned long long)sighting->record.comm);
    return strcmp(job, number) == 0 || strcmp(job, identity->program) == 0 ||
           (strlen(job) >= 4 && strncmp(job, comm, strlen(job)) == 0);
}

/* True if any sighting that is kept shares the process or the communicator of this one. */
static bool is_related(const struct sightings *sightings, const bool *kept, int of)
{
    const struct sighting *sighting = sightings->at[of];

    for (int i = 0; i < sightings->count; i++) {
        const struct sighting *other = sightings->at[i];

        if (kept[i] && ((other->record.comm == sighting->record.comm && sighting->record.comm) ||
                        (other->record.identity.pid == sighting->record.identity.pid &&
                         strcmp(other->where, sighting->where) == 0)))
            return true;
    }
    return false;
}

/* Keeps the communicators of a job, and those that its processes are in. */
static void select_job(struct sightings *sightings, const char *job)
{
    bool *kept = calloc((size_t)sightings->count + 1, sizeof(*kept)), more = true;
    int left = 0;

    if (!kept)
        return;
    for (int i = 0; i < sightings->count; i++)
        kept[i] = matches(sightings->at[i], job);
    while (more) {
        more = false;
        for (int i = 0; i < sightings->count; i++)
            if (!kept[i] && is_related(sightings, kept, i))
                more = kept[i] = true;
    }
    for (int i = 0; i < sightings->count; i++)
        if (kept[i])
            sightings->at[left++] = sightings->at[i];
        else
            free(sightings->at[i]);
    sightings->count = left;
    free(kept);
}

/* ---- Showing --------------------------------------------------------------------------------- */

static void add_stack(void *context, FILE *to, const struct finding *finding)
{
    const struct sightings *sightings = context;

    if (finding->culprit >= 0)
        ps_write_stack(to, sightings->at[finding->culprit]);
    else
        for (int i = 0; i < finding->length; i++)
            ps_write_stack(to, sightings->at[finding->chain[i]]);
}

static int show(const struct command *command, struct sightings *sightings)
{
    struct findings findings;
    int status = 0;

    if (!sightings->count && !command->json) {
        printf(command->job ? "No rank of '%s' has a record here.\n"
                            : "No rank of this user has a record here.%s\n",
               command->job ? command->job : "");
        return 0;
    }
    findings_make(sightings, &findings);
    if (command->json)
        status = ps_write_json(sightings, &findings);
    else if (command->late)
        table_write_late(stdout, sightings);
    else
        table_write(stdout, sightings, &findings, command->stack ? add_stack : NULL, sightings);
    findings_done(&findings);
    if (fflush(stdout) || ferror(stdout)) {
        fprintf(stderr, "rondo ps: cannot write: %s\n", strerror(errno));
        return 1;
    }
    return status;
}

static int clean(void)
{
    int folder = folder_open(false);

    if (folder < 0) {
        fprintf(stderr, "rondo ps: %s\n", fail_sentence());
        return 1;
    }
    printf("%d records of processes that have ended are removed.\n", folder_sweep(folder, true));
    close(folder);
    return 0;
}

int command_ps(int argc, char **argv)
{
    struct command command = {.timeout = DEFAULT_PS_TIMEOUT};
    struct sightings sightings = {0};
    int status = 0;

    argument_parse(&(struct argument_command){.name = "rondo ps",
                                              .operands = "[JOB]",
                                              .doc = summary,
                                              .table = table,
                                              .operand = take_job,
                                              .finish = check},
                   argc, argv, &command);
    if (command.raw)
        return ps_write_raw();
    if (command.clean)
        return clean();
    if (command.hosts)
        status = ps_ask_hosts(command.hosts, command.ssh, command.timeout, &sightings);
    else if (!gather_here(LOOK_PS, &sightings) && errno != ENOENT) {
        fprintf(stderr, "rondo ps: %s\n", fail_sentence());
        status = 1;
    }
    if (command.job)
        select_job(&sightings, command.job);
    if (!status)
        status = show(&command, &sightings);
    sightings_done(&sightings);
    return status;
}
