/* SPDX-License-Identifier: BSD-3-Clause */
/* json.c - a recursive descent over the text; each value is a row of one growing array. */
#include "plan/file/json.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 16 };

struct reader {
    struct json *json;
    const char *at, *end;
    uint32_t line;
    int depth;
    char *why;
    size_t size;
};

static bool refuse(const struct reader *reader, const char *what)
{
    snprintf(reader->why, reader->size, "line %u: %s", reader->line, what);
    return false;
}

static bool is_at(const struct reader *reader, char character)
{
    return reader->at < reader->end && *reader->at == character;
}

static void skip_blanks(struct reader *reader)
{
    for (; reader->at < reader->end && strchr(" \t\r\n", *reader->at) && *reader->at; reader->at++)
        reader->line += *reader->at == '\n';
}

/* A row for one more value, which begins here; 0: no memory. */
static uint32_t append(struct reader *reader, enum json_type type)
{
    struct json *json = reader->json;

    if (json->count == json->room) {
        uint32_t room = json->room ? 2 * json->room : 64;
        struct json_value *moved = realloc(json->values, room * sizeof(*moved));

        if (!moved)
            return 0;
        json->values = moved;
        json->room = room;
    }
    json->values[json->count] = (struct json_value){.type = type, .line = reader->line};
    return json->count++;
}

/* The text between quotes, behind which the reader then is. */
static bool read_text(struct reader *reader, const char **ret_text, size_t *ret_length)
{
    const char *begin = ++reader->at;

    for (; reader->at < reader->end && *reader->at != '"'; reader->at++) {
        if ((unsigned char)*reader->at < ' ')
            return refuse(reader, "a string has a control character or no end");
        if (*reader->at == '\\' && ++reader->at == reader->end)
            break;
    }
    if (reader->at >= reader->end)
        return refuse(reader, "a string has no end");
    *ret_text = begin;
    *ret_length = (size_t)(reader->at++ - begin);
    return true;
}

static void skip_digits(struct reader *reader)
{
    while (reader->at < reader->end && isdigit((unsigned char)*reader->at))
        reader->at++;
}

static bool read_number(struct reader *reader, uint32_t value)
{
    const char *begin = reader->at, *digits;

    reader->at += is_at(reader, '-');
    digits = reader->at;
    skip_digits(reader);
    if (reader->at == digits || (*digits == '0' && reader->at > digits + 1))
        return refuse(reader, "that is no number, nor true, false or null, nor text in quotes");
    if (is_at(reader, '.')) {
        digits = ++reader->at;
        skip_digits(reader);
        if (reader->at == digits)
            return refuse(reader, "a number has no digits behind its point");
    }
    if (is_at(reader, 'e') || is_at(reader, 'E')) {
        reader->at++;
        reader->at += is_at(reader, '-') || is_at(reader, '+');
        digits = reader->at;
        skip_digits(reader);
        if (reader->at == digits)
            return refuse(reader, "a number has no exponent");
    }
    reader->json->values[value].text = begin;
    reader->json->values[value].length = (size_t)(reader->at - begin);
    return true;
}

static uint32_t read_value(struct reader *reader);

/* A name and the colon behind it. */
static bool read_name(struct reader *reader, const char **ret_name, size_t *ret_length)
{
    if (!is_at(reader, '"'))
        return refuse(reader, "a member of an object begins with its name in quotes");
    if (!read_text(reader, ret_name, ret_length))
        return false;
    skip_blanks(reader);
    if (!is_at(reader, ':'))
        return refuse(reader, "a colon is missing behind a name");
    reader->at++;
    skip_blanks(reader);
    return true;
}

/* Members up to the closing bracket. */
static bool read_members(struct reader *reader, uint32_t whole, bool named)
{
    const char close = named ? '}' : ']', *name = NULL;
    uint32_t last = 0;
    size_t length = 0;

    reader->at++;
    skip_blanks(reader);
    for (; !is_at(reader, close); skip_blanks(reader)) {
        uint32_t member;

        if (last && !is_at(reader, ','))
            return refuse(reader, "a comma or a closing bracket is missing");
        reader->at += last != 0;
        skip_blanks(reader);
        if (is_at(reader, close))
            return refuse(reader, "there is a comma before a closing bracket");
        if (named && !read_name(reader, &name, &length))
            return false;
        member = read_value(reader);
        if (!member)
            return false;
        reader->json->values[member].name = name;
        reader->json->values[member].name_length = length;
        *(last ? &reader->json->values[last].next : &reader->json->values[whole].first) = member;
        reader->json->values[whole].members++;
        last = member;
    }
    reader->at++;
    return true;
}

static bool read_word(struct reader *reader, const char *word)
{
    size_t length = strlen(word);

    if ((size_t)(reader->end - reader->at) < length || memcmp(reader->at, word, length) != 0)
        return refuse(reader, "that is no value of JSON");
    reader->at += length;
    return true;
}

/* Returns its row; 0: there is none, `why` says it. */
static uint32_t read_value(struct reader *reader)
{
    static const char *const words[] = {
        [JSON_TRUE] = "true", [JSON_FALSE] = "false", [JSON_NULL] = "null"};
    char first = reader->at < reader->end ? *reader->at : 0;
    enum json_type type = first == '{'   ? JSON_OBJECT
                          : first == '[' ? JSON_ARRAY
                          : first == '"' ? JSON_STRING
                          : first == 't' ? JSON_TRUE
                          : first == 'f' ? JSON_FALSE
                          : first == 'n' ? JSON_NULL
                                         : JSON_NUMBER;
    uint32_t value = append(reader, type);
    bool good;

    if (!value)
        refuse(reader, "out of memory");
    if (!value || (reader->depth == DEPTH_MAX && !refuse(reader, "brackets are too deep")))
        return 0;
    reader->depth++;
    if (type == JSON_OBJECT || type == JSON_ARRAY)
        good = read_members(reader, value, type == JSON_OBJECT);
    else if (type == JSON_STRING)
        good = read_text(reader, &reader->json->values[value].text,
                         &reader->json->values[value].length);
    else if (type == JSON_NUMBER)
        good = read_number(reader, value);
    else
        good = read_word(reader, words[type]);
    reader->depth--;
    return good ? value : 0;
}

bool json_open(struct json *json, const char *text, size_t length, char *why, size_t size)
{
    struct reader reader = {
        .json = json, .at = text, .end = text + length, .line = 1, .why = why, .size = size};

    *json = (struct json){.count = 0};
    (void)!append(&reader, JSON_NULL);
    skip_blanks(&reader);
    if (!json->values)
        return refuse(&reader, "out of memory");
    if (reader.at == reader.end)
        return refuse(&reader, "there is nothing in it");
    if (!read_value(&reader))
        return false;
    skip_blanks(&reader);
    return reader.at == reader.end || refuse(&reader, "there is more behind the end");
}

void json_close(struct json *json)
{
    free(json->values);
    *json = (struct json){.count = 0};
}

const struct json_value *json_first(const struct json *json, const struct json_value *of)
{
    return of->first ? &json->values[of->first] : NULL;
}

const struct json_value *json_next(const struct json *json, const struct json_value *value)
{
    return value->next ? &json->values[value->next] : NULL;
}

static bool is_named(const struct json_value *value, const char *name)
{
    return value->name && value->name_length == strlen(name) &&
           memcmp(value->name, name, value->name_length) == 0;
}

const struct json_value *json_member(const struct json *json, const struct json_value *object,
                                     const char *name)
{
    const struct json_value *member = NULL;

    if (object->type == JSON_OBJECT)
        member = json_first(json, object);
    while (member && !is_named(member, name))
        member = json_next(json, member);
    return member;
}

bool json_is_among(const struct json_value *value, const char *const *names)
{
    while (*names && !is_named(value, *names))
        names++;
    return *names;
}

bool json_is(const struct json_value *string, const char *word)
{
    return string->type == JSON_STRING && string->length == strlen(word) &&
           memcmp(string->text, word, string->length) == 0;
}

bool json_whole(const struct json_value *number, uint32_t most, uint32_t *ret_whole)
{
    uint64_t whole = 0;

    if (number->type != JSON_NUMBER)
        return false;
    for (size_t i = 0; i < number->length; i++) {
        if (!isdigit((unsigned char)number->text[i]))
            return false;
        whole = 10 * whole + (uint64_t)(number->text[i] - '0');
        if (whole > most)
            return false;
    }
    *ret_whole = (uint32_t)whole;
    return true;
}
