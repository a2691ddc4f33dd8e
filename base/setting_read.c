/* SPDX-License-Identifier: BSD-3-Clause */
/* setting_read.c - environment variables as values, and what is said of those that are none. */
#include "base/setting.h"

#include "base/caller/number.h"
#include "base/fail.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool setting_is_set(enum setting_id id)
{
    const char *value = getenv(setting_at(id)->name);

    return value && *value;
}

const char *setting_read_word(enum setting_id id)
{
    return setting_is_set(id) ? getenv(setting_at(id)->name) : setting_at(id)->fallback;
}

/* ---- Texts to values ------------------------------------------------------------------------ */

static bool parse_bool(const char *text, bool *ret_value)
{
    static const char *const yes[] = {"1", "true", "yes", "on"};
    static const char *const no[] = {"0", "false", "no", "off"};

    for (int i = 0; i < 4; i++) {
        if (!strcasecmp(text, yes[i]) || !strcasecmp(text, no[i])) {
            *ret_value = !strcasecmp(text, yes[i]);
            return true;
        }
    }
    return false;
}

static bool parse_int(const char *text, long *ret_value)
{
    char *end;
    long value;

    if (isspace((unsigned char)*text) || *text == '+')
        return false;
    errno = 0;
    value = strtol(text, &end, 10);
    if (end == text || *end || errno)
        return false;
    *ret_value = value;
    return true;
}

static bool parse_size(const char *text, size_t *ret_bytes)
{
    static const char units[] = "KMGT";
    char *end;
    const char *unit;
    unsigned shift = 0;
    unsigned long long value;

    if (!isdigit((unsigned char)*text))
        return false; /* strtoull would take signs and spaces */
    errno = 0;
    value = strtoull(text, &end, 10);
    unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    if (unit) {
        shift = 10 * (unsigned)(unit - units + 1);
        end++;
        if (!strcmp(end, "iB") || !strcmp(end, "B"))
            end += strlen(end);
    }
    if (*end || errno || value > (SIZE_MAX >> shift))
        return false;
    *ret_bytes = (size_t)value << shift;
    return true;
}

static bool parse_seconds(const char *text, double *ret_seconds)
{
    char *end;
    double value;

    if ((!isdigit((unsigned char)*text) && *text != '.' && *text != '-') || strpbrk(text, "xX"))
        return false; /* no spaces, no "inf" or "nan" */
    value = number_read(text, &end);
    if (end == text || *end || !isfinite(value))
        return false;
    *ret_seconds = value;
    return true;
}

rondo_result setting_parse_size(const char *text, size_t *ret_bytes)
{
    if (!text || !parse_size(text, ret_bytes))
        return rondo_fail(RONDO_ERROR_INVALID,
                          "'%s' is no size: accepted is a whole number of bytes, or of units such "
                          "as 64K, 4M or 1G",
                          text ? text : "");
    return RONDO_OK;
}

/* ---- Reading -------------------------------------------------------------------------------- */

static bool is_listed(const char *words, const char *word)
{
    size_t length = strlen(word);

    if (strchr(word, '|'))
        return false;
    for (; words; words = strchr(words, '|') ? strchr(words, '|') + 1 : NULL)
        if (!strncmp(words, word, length) && (words[length] == '|' || !words[length]))
            return length > 0;
    return false;
}

void setting_accepts(const struct setting *setting, char *ret_text, size_t room)
{
    switch (setting->type) {
    case SETTING_BOOL:
        snprintf(ret_text, room, "0 or 1");
        return;
    case SETTING_INT:
        snprintf(ret_text, room, "a whole number from %.0f to %.0f", setting->least, setting->most);
        return;
    case SETTING_SIZE:
        snprintf(ret_text, room, "a size from %.0f to %.0f bytes, such as 64K, 4M or 1G",
                 setting->least, setting->most);
        return;
    case SETTING_SECONDS:
        snprintf(ret_text, room, "seconds from %g to %g, such as 0.5", setting->least,
                 setting->most);
        return;
    case SETTING_WORD:
        break;
    }
    snprintf(ret_text, room, "%s", setting->words ? "one of " : "any text");
    for (const char *c = setting->words; c && *c; c++) {
        char next[3] = {*c, '\0', '\0'};

        if (*c == '|')
            memcpy(next, ", ", 3);
        strncat(ret_text, next, room - strlen(ret_text) - 1);
    }
}

static rondo_result refuse(const struct setting *setting)
{
    char accepted[160];

    setting_accepts(setting, accepted, sizeof(accepted));
    return rondo_fail(RONDO_ERROR_INVALID, "%s is '%s': accepted is %s", setting->name,
                      getenv(setting->name), accepted);
}

static bool in_range(const struct setting *setting, double value)
{
    return value >= setting->least && value <= setting->most;
}

rondo_result setting_read_bool(enum setting_id id, bool *ret_value)
{
    return parse_bool(setting_read_word(id), ret_value) ? RONDO_OK : refuse(setting_at(id));
}

rondo_result setting_read_int(enum setting_id id, long *ret_value)
{
    long value;

    if (!parse_int(setting_read_word(id), &value) || !in_range(setting_at(id), (double)value))
        return refuse(setting_at(id));
    *ret_value = value;
    return RONDO_OK;
}

rondo_result setting_read_size(enum setting_id id, size_t *ret_bytes)
{
    size_t bytes;

    if (!parse_size(setting_read_word(id), &bytes) || !in_range(setting_at(id), (double)bytes))
        return refuse(setting_at(id));
    *ret_bytes = bytes;
    return RONDO_OK;
}

rondo_result setting_read_seconds(enum setting_id id, double *ret_seconds)
{
    double seconds;

    if (!parse_seconds(setting_read_word(id), &seconds) || !in_range(setting_at(id), seconds))
        return refuse(setting_at(id));
    *ret_seconds = seconds;
    return RONDO_OK;
}

rondo_result setting_check(enum setting_id id)
{
    bool flag;
    long number;
    size_t bytes;
    double seconds;

    switch (setting_at(id)->type) {
    case SETTING_BOOL:
        return setting_read_bool(id, &flag);
    case SETTING_INT:
        return setting_read_int(id, &number);
    case SETTING_SIZE:
        return setting_read_size(id, &bytes);
    case SETTING_SECONDS:
        return setting_read_seconds(id, &seconds);
    case SETTING_WORD:
        break;
    }
    if (setting_at(id)->words && !is_listed(setting_at(id)->words, setting_read_word(id)))
        return refuse(setting_at(id));
    return RONDO_OK;
}
