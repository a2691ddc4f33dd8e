/* SPDX-License-Identifier: BSD-3-Clause */
/* doctor.c - `rondo doctor`: what works on this machine, what does not, and how to fix it. */
#include "cli/commands.h"

#include "cli/doctor/report.h"

#include <argp.h>
#include <string.h>

enum { OPTION_JSON = 256 };

static const struct argp_option option_table[] = {
    {"json", OPTION_JSON, "FILE", 0,
     "Write the lines as JSON; - is the standard output, without the text", 0},
    {0}};

static error_t parse_option(int key, char *value, struct argp_state *state)
{
    const char **json = state->input;

    if (key != OPTION_JSON)
        return ARGP_ERR_UNKNOWN;
    *json = value;
    return 0;
}

static const struct argp parser = {
    option_table,
    parse_option,
    NULL,
    "Tries what Rondo needs from this machine and says in a line each what works (ok), what "
    "could be better (note) and what must be mended (FAIL)."
    "\vExit status: 0 if nothing must be mended, else 1.",
    NULL,
    NULL,
    NULL};

int command_doctor(int argc, char **argv)
{
    static char name[] = "rondo doctor";
    static struct doctor_report report;
    const char *json = NULL;
    bool good = true;

    argp_err_exit_status = 2;
    argv[0] = name;
    argp_parse(&parser, argc, argv, 0, NULL, &json);
    report.count = 0;
    doctor_check_machine(&report);
    doctor_check_processes(&report);
    doctor_check_limits(&report);
    doctor_check_devices(&report);
    doctor_check_launchers(&report);
    doctor_check_settings(&report);
    if (!json || strcmp(json, "-"))
        doctor_print(&report, stdout);
    if (json)
        good = doctor_write_json(&report, json);
    return good && !doctor_count(&report, DOCTOR_FAIL) ? 0 : 1;
}
