/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * json.h - reads a JSON text (RFC 8259) into a tree of values.
 *
 * The library has no JSON of others: what a plan's file needs is these few functions. Values point
 * into the text, which stays the caller's; strings keep their escapes, as no word of a plan has
 * any.
 */
#ifndef RONDO_PLAN_FILE_JSON_H
#define RONDO_PLAN_FILE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum json_type {
    JSON_OBJECT,
    JSON_ARRAY,
    JSON_STRING,
    JSON_NUMBER,
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL
};

struct json_value {
    enum json_type type;
    uint32_t line; /* on which it begins, from 1 */
    const char *name, *text;
    size_t name_length, length; /* of its name in an object; of a string or number */
    uint32_t first, next;       /* its first member; the one behind it; 0: none */
    uint32_t members;
};

struct json {
    struct json_value *values; /* values[0] is unused, values[1] the whole */
    uint32_t count, room;
};

/* True, or `why` has what is wrong in which line. To be closed in any case. */
bool json_open(struct json *json, const char *text, size_t length, char *why, size_t size);
void json_close(struct json *json);

/* The member of that name; NULL: `object` has none, or is none. */
const struct json_value *json_member(const struct json *json, const struct json_value *object,
                                     const char *name);
/* The first member of an array or object, and the one behind another; NULL: there is none. */
const struct json_value *json_first(const struct json *json, const struct json_value *of);
const struct json_value *json_next(const struct json *json, const struct json_value *value);
bool json_is(const struct json_value *string, const char *word);
/* True if it is a member with one of the names, which NULL ends. */
bool json_is_among(const struct json_value *value, const char *const *names);
/* True if it is a whole number from 0 to `most`. */
bool json_whole(const struct json_value *number, uint32_t most, uint32_t *ret_whole);

#endif
