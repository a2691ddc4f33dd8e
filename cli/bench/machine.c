/* SPDX-License-Identifier: BSD-3-Clause */
/* machine.c - on what, and beside what else, a result was measured. */
#include "cli/bench/record.h"

#include "cli/common/lines.h"

#include <math.h>
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

/* These are the settings in the environment before a run sets what its ranks need. */
static json_t *settings;

static json_t *find_settings(void)
{
    json_t *found = json_object();

    for (char **each = environ; *each; each++) {
        const char *value = strchr(*each, '=');

        /* Nobody else is to know the secret. */
        if (value && !strncmp(*each, "RONDO_", 6) && strncmp(*each, "RONDO_SECRET", 12))
            json_object_setn_new(found, *each, (size_t)(value - *each), json_string(value + 1));
    }
    return found;
}

/* Returns the settings as words. */
static const char *environment(void)
{
    static char text[2048];
    const char *name;
    json_t *value;
    size_t used = 0;

    text[0] = 0;
    json_object_foreach(settings, name,
                        value) if (used + strlen(name) + json_string_length(value) + 3 <
                                   sizeof(text)) used +=
        (size_t)snprintf(text + used, sizeof(text) - used, "%s%s=%s", used ? " " : "", name,
                         json_string_value(value));
    return text;
}

void bench_machine_begin(void)
{
    began = processor_time();
    json_decref(settings);
    settings = find_settings();
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

static int cores_per_socket(void)
{
    char line[256];
    char *count =
        line_after("/proc/cpuinfo", "cpu cores", line, sizeof(line)) ? strchr(line, ':') : NULL;

    return count ? atoi(count + 1) : 0;
}

static double stolen_percent(void)
{
    struct processor_time now = processor_time();
    double all = now.all - began.all;

    return all > 0 ? 100 * (now.stolen - began.stolen) / all : 0;
}

void bench_machine_add(struct bench_record *record)
{
    static char line[256], date[32], version[64];
    static struct utsname system;
    time_t now = time(NULL);
    struct tm utc;

    uname(&system);
    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    snprintf(version, sizeof(version), "Rondo %s", rondo_version());
    if (!record->version)
        record->version = version;
    record->processor = processor_name(line, sizeof(line));
    record->processors = sysconf(_SC_NPROCESSORS_ONLN);
    record->cores_per_socket = cores_per_socket();
    record->architecture = system.machine;
    record->system = system.sysname;
    record->kernel = system.release;
    record->stolen_percent = stolen_percent();
    record->environment = environment();
    record->commit = bench_commit;
    record->date = date;
    if (getloadavg(&record->load, 1) < 1)
        record->load = NAN;
}

json_t *bench_machine_json(void)
{
    struct bench_record facts = {0};
    double load[3] = {0};
    json_t *json;

    bench_machine_add(&facts);
    getloadavg(load, 3);
    json = bench_record_json(&facts, "commit,processor,processors,cores_per_socket,architecture,"
                                     "system,kernel,stolen_percent");
    json_object_set_new(json, "load", json_pack("[f,f,f]", load[0], load[1], load[2]));
    json_object_set(json, "settings", settings);
    return json;
}
