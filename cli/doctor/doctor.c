/* SPDX-License-Identifier: BSD-3-Clause */
/* doctor.c - `rondo doctor`: what works on this machine, what does not, and how to fix it. */
#include "cli/common/argument.h"
#include "cli/commands.h"
#include "cli/doctor/report.h"

#include <string.h>

struct options {
    const char *json;
};

static const struct argument table[] = {
    {"json", 0, "FILE", 0, ARGUMENT_SETS(struct options, json),
     "Write the lines as JSON; - is the standard output, without the text"},
    {0}};

static const struct argument_command command = {
    .name = "rondo doctor",
    .doc = "Tries what Rondo needs from this machine and says in a line each what works (ok), what "
           "could be better (note) and what must be mended (FAIL)."
           "\vExit status: 0 if nothing must be mended, else 1.",
    .table = table};

int command_doctor(int argc, char **argv)
{
    static struct doctor_report report;
    struct options options = {NULL};
    bool good = true;

    argument_parse(&command, argc, argv, &options);
    report.count = 0;
    doctor_check_machine(&report);
    doctor_check_processes(&report);
    doctor_check_limits(&report);
    doctor_check_devices(&report);
    doctor_check_launchers(&report);
    doctor_check_settings(&report);
    if (!options.json || strcmp(options.json, "-"))
        doctor_print(&report, stdout);
    if (options.json)
        good = doctor_write_json(&report, options.json);
    return good && !doctor_count(&report, DOCTOR_FAIL) ? 0 : 1;
}
