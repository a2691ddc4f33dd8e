/* SPDX-License-Identifier: BSD-3-Clause */
/* machine.c - on what, and beside what else, a result was measured. */
#include "cli/bench/record.h"

#include "cli/common/lines.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

enum { STAT_FIELDS = 8, STOLEN = 7 };

/* The times of all processors so far, as in /proc/stat: the sum, and what the host took away. */
struct processor_time {
    double all, stolen;
};

static struct processor_time began;

static struct processor_time processor_time(void)
{
    struct processor_time time = {0};
    char line[256];
    char *at =
        line_after("/proc/stat", "cpu ", line, sizeof(line)) ? strpbrk(line, "0123456789") : NULL;

    for (int i = 0; at && i < STAT_FIELDS; i++) {
        double ticks = strtod(at, &at);

        time.all += ticks;
        time.stolen += i == STOLEN ? ticks : 0;
    }
    return time;
}

void bench_machine_begin(void)
{
    began = processor_time();
}

/* The environment that Rondo reads, without what nobody else is to know. */
static json_t *settings_json(void)
{
    json_t *settings = json_object();

    for (char **each = environ; *each; each++) {
        const char *value = strchr(*each, '=');

        if (value && !strncmp(*each, "RONDO_", 6) && strncmp(*each, "RONDO_SECRET", 12))
            json_object_setn_new(settings, *each, (size_t)(value - *each), json_string(value + 1));
    }
    return settings;
}

/* Returns the name in its line of /proc/cpuinfo, in `line`. */
static const char *processor_name(char *line, size_t room)
{
    const char *colon =
        line_after("/proc/cpuinfo", "model name", line, room) ? strchr(line, ':') : NULL;

    return colon ? colon + 2 : "unknown";
}

void bench_machine_caption(char *text, size_t room)
{
    char line[256], date[32];
    time_t now = time(NULL);
    struct utsname system;
    struct tm utc;

    uname(&system);
    strftime(date, sizeof(date), "%Y-%m-%d", gmtime_r(&now, &utc));
    snprintf(text, room, "%s, %ld processors, %s %s, Rondo %s, commit %s, %s",
             processor_name(line, sizeof(line)), sysconf(_SC_NPROCESSORS_ONLN), system.sysname,
             system.release, rondo_version(), bench_commit, date);
    for (char *at = text; *at; at++)
        *at = *at == '\'' || *at == '\\' ? ' ' : *at;
}

json_t *bench_machine_json(void)
{
    struct processor_time now = processor_time();
    double all = now.all - began.all;
    double load[3] = {0};
    struct utsname system;
    char line[256], cores[256];
    char *count =
        line_after("/proc/cpuinfo", "cpu cores", cores, sizeof(cores)) ? strchr(cores, ':') : NULL;

    uname(&system);
    getloadavg(load, 3);
    return json_pack("{s:s, s:s, s:I, s:I, s:s, s:s, s:s, s:[f,f,f], s:f, s:o}", "commit",
                     bench_commit, "processor", processor_name(line, sizeof(line)), "processors",
                     (json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "cores_per_socket",
                     (json_int_t)(count ? atoi(count + 1) : 0), "architecture", system.machine,
                     "system", system.sysname, "kernel", system.release, "load", load[0], load[1],
                     load[2], "stolen_percent",
                     all > 0 ? 100 * (now.stolen - began.stolen) / all : 0.0, "settings",
                     settings_json());
}
