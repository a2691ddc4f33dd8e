/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * read.c - from JSON to plans, with the builders that algorithms use.
 *
 * A member that nobody knows is refused, so that a slip of the pen is no other plan; those that
 * only tell people something are skipped. The first mistake ends it, with its place.
 */
#include "plan/file/file.h"

#include "base/collective.h"
#include "base/fail.h"
#include "plan/file/json.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { ATOMS_MAX = UINT16_MAX, NOWHERE = -1, COMBINE = PLAN_WAIT + 1 /* beside enum plan_verb */ };

struct reading {
    struct json json;
    const char *path;
    struct plan_file *file;
    struct plan *plan; /* of the rank that is being read */
    int rank, program, step;
    size_t programs; /* of the rank */
    uint32_t parts, message_atoms, scratch_blocks;
    struct plan_operand *operands; /* of a step: sources, then destinations */
    uint32_t lines_room;
    bool no_memory;
};

/* Sets the sentence, which names the place. Returns false. */
static bool __attribute__((format(printf, 3, 4)))
refuse(const struct reading *reading, const struct json_value *at, const char *format, ...)
{
    char place[120] = "", why[300];
    size_t length = 0;
    va_list arguments;

    if (reading->rank != NOWHERE)
        length = (size_t)snprintf(place, sizeof(place), ", rank %d", reading->rank);
    if (reading->step != NOWHERE && reading->programs > 1)
        length += (size_t)snprintf(place + length, sizeof(place) - length, ", program %d",
                                   reading->program);
    if (reading->step != NOWHERE)
        snprintf(place + length, sizeof(place) - length, ", step %d", reading->step);
    va_start(arguments, format);
    vsnprintf(why, sizeof(why), format, arguments);
    va_end(arguments);
    rondo_fail(RONDO_ERROR_INVALID, "The plan in %s is wrong: line %u%s: %s.", reading->path,
               at->line, place, why);
    return false;
}

static bool no_memory(struct reading *reading)
{
    reading->no_memory = true;
    rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for the plan in %s.", reading->path);
    return false;
}

/* ---- Members --------------------------------------------------------------------------------- */

static bool refuse_name(const struct reading *reading, const struct json_value *member,
                        const char *const *names)
{
    char list[160] = "";

    for (size_t length = 0; *names; names++)
        length += (size_t)snprintf(list + length, sizeof(list) - length, ", %s", *names);
    return refuse(reading, member, "nothing is called \"%.*s\" here; known are %s",
                  (int)(member->name_length < 40 ? member->name_length : 40), member->name,
                  list + 2);
}

/* Every member has one of the names, which NULL ends. */
static bool check_names(const struct reading *reading, const struct json_value *object,
                        const char *const *names)
{
    const struct json_value *member;

    if (object->type != JSON_OBJECT)
        return refuse(reading, object, "an object, { }, is wanted here");
    for (member = json_first(&reading->json, object); member;
         member = json_next(&reading->json, member))
        if (!json_is_among(member, names))
            return refuse_name(reading, member, names);
    return true;
}

/* A whole number; `otherwise` if the member is not there. Negative: it has to be. */
static bool read_whole(const struct reading *reading, const struct json_value *object,
                       const char *name, uint32_t most, long otherwise, uint32_t *ret_whole)
{
    const struct json_value *member = json_member(&reading->json, object, name);

    if (!member && otherwise < 0)
        return refuse(reading, object, "\"%s\" is missing", name);
    *ret_whole = (uint32_t)otherwise;
    return !member || json_whole(member, most, ret_whole) ||
           refuse(reading, member, "\"%s\" is no whole number from 0 to %u", name, most);
}

static bool read_rank(const struct reading *reading, const struct json_value *object,
                      const char *name, long otherwise, uint32_t *ret_rank)
{
    const struct json_value *member = json_member(&reading->json, object, name);
    int size = reading->file->size;

    if (!read_whole(reading, object, name, INT32_MAX, otherwise, ret_rank))
        return false;
    return *ret_rank < (uint32_t)size || refuse(reading, member ? member : object,
                                                "there is no rank %u among %d", *ret_rank, size);
}

static bool read_flag(const struct reading *reading, const struct json_value *object,
                      const char *name, unsigned flag, unsigned *flags)
{
    const struct json_value *member = json_member(&reading->json, object, name);

    if (member && member->type != JSON_TRUE && member->type != JSON_FALSE)
        return refuse(reading, member, "\"%s\" is true or false", name);
    *flags |= member && member->type == JSON_TRUE ? flag : 0;
    return true;
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static bool read_operand(const struct reading *reading, const struct json_value *value,
                         struct plan_operand *ret_operand)
{
    static const char *const names[] = {"input", "output", "scratch", "slot",
                                        "first", "rank",   "channel", NULL};
    struct plan_operand operand = {.rank = reading->rank};
    uint32_t channel, rank;
    int kinds = 0;

    if (!check_names(reading, value, names))
        return false;
    for (int kind = PLAN_INPUT; kind <= PLAN_SLOT; kind++)
        if (json_member(&reading->json, value, names[kind])) {
            operand.buffer = (uint8_t)kind;
            kinds++;
        }
    if (kinds != 1)
        return refuse(reading, value, "an operand is one of input, output, scratch and slot");
    if (!read_whole(reading, value, "first", ATOMS_MAX, 0, &operand.first) ||
        !read_whole(reading, value, "channel", PLAN_CHANNELS - 1, 0, &channel))
        return false;
    operand.channel = (uint8_t)channel;
    if (operand.buffer == PLAN_SLOT) {
        if (!read_rank(reading, value, "slot", -1, &rank))
            return false;
    } else if (!read_whole(reading, value, names[operand.buffer], ATOMS_MAX, -1, &operand.block) ||
               !read_rank(reading, value, "rank", reading->rank, &rank)) {
        return false;
    }
    operand.rank = (int32_t)rank;
    *ret_operand = operand;
    return true;
}

/* Executors have room for so many operands. */
static bool read_operands(const struct reading *reading, const struct json_value *step,
                          const char *name, struct plan_operand *operands, int *ret_count)
{
    const struct json_value *list = json_member(&reading->json, step, name), *value;
    int count = 0, most = reading->file->size + 2;

    if (!list || list->type != JSON_ARRAY || !list->members || list->members > (uint32_t)most)
        return refuse(reading, list ? list : step,
                      "\"%s\" is a list, [ ], of 1 to %d operands, here of %u", name, most,
                      list && list->type == JSON_ARRAY ? list->members : 0);
    for (value = json_first(&reading->json, list); value; value = json_next(&reading->json, value))
        if (!read_operand(reading, value, &operands[count++]))
            return false;
    *ret_count = count;
    return true;
}

/* copy, reduce, and combine, which has waits and signals around it. */
static bool read_move(const struct reading *reading, const struct json_value *value, int verb)
{
    static const char *const names[] = {"do",       "atoms", "from",  "to",  "finish",
                                        "balanced", "text",  "start", "end", NULL};
    struct plan *plan = reading->plan;
    struct plan_list from = {0, reading->operands}, to = {0};
    uint32_t atoms;
    unsigned flags = 0;

    if (!check_names(reading, value, names) ||
        !read_whole(reading, value, "atoms", ATOMS_MAX, 1, &atoms) ||
        !read_flag(reading, value, "finish", PLAN_FINISH, &flags) ||
        !read_flag(reading, value, "balanced", PLAN_BALANCED, &flags) ||
        !read_operands(reading, value, "from", reading->operands, &from.count))
        return false;
    to.operands = reading->operands + from.count;
    if (!read_operands(reading, value, "to", reading->operands + from.count, &to.count))
        return false;
    if (verb != COMBINE && (verb == PLAN_REDUCE) != (from.count > 1))
        return refuse(reading, value, "copy has one source, reduce has several");
    (verb == COMBINE ? plan_combine : plan_move)(plan, atoms, flags, from, to);
    return true;
}

static bool read_event(const struct reading *reading, const struct json_value *value, int verb)
{
    static const char *const names[] = {"do",   "event", "peer", "channel", "addresses",
                                        "text", "start", "end",  NULL};
    const struct json_value *event = json_member(&reading->json, value, "event");
    uint32_t peer, channel;
    unsigned flags = 0;
    struct plan_step step;

    if (!check_names(reading, value, names))
        return false;
    if (!event || (!json_is(event, "data") && !json_is(event, "credit")))
        return refuse(reading, event ? event : value, "\"event\" is \"data\" or \"credit\"");
    if (!read_rank(reading, value, "peer", -1, &peer) ||
        !read_whole(reading, value, "channel", PLAN_CHANNELS - 1, 0, &channel) ||
        !read_flag(reading, value, "addresses", PLAN_ADDRESSES, &flags))
        return false;
    step = (struct plan_step){.verb = (uint8_t)verb,
                              .event = json_is(event, "data") ? PLAN_DATA : PLAN_CREDIT,
                              .flags = (uint8_t)flags,
                              .channel = (uint8_t)channel,
                              .peer = (int32_t)peer};
    plan_append(reading->plan, &step, NULL);
    return true;
}

static bool read_step(const struct reading *reading, const struct json_value *value)
{
    static const char *const words[] = {"copy", "reduce", "signal", "wait", "combine"};
    const struct json_value *word = json_member(&reading->json, value, "do");
    int verb = 0;

    while (word && verb <= COMBINE && !json_is(word, words[verb]))
        verb++;
    if (!word || verb > COMBINE)
        return refuse(reading, word ? word : value,
                      "\"do\" is \"combine\", \"copy\", \"reduce\", \"signal\" or \"wait\"");
    return (verb == PLAN_SIGNAL || verb == PLAN_WAIT ? read_event : read_move)(reading, value,
                                                                               verb);
}

/* ---- Ranks ----------------------------------------------------------------------------------- */

/* Notes the line of the steps that were added since the last call. */
static bool note_lines(struct reading *reading, uint32_t from, uint32_t line)
{
    uint32_t **lines = &reading->plan->lines, count = reading->plan->step_count;

    if (reading->plan->out_of_memory)
        return no_memory(reading);
    if (count > reading->lines_room) {
        uint32_t room = count < 32 ? 64 : 2 * count;
        uint32_t *moved = realloc(*lines, room * sizeof(*moved));

        if (!moved)
            return no_memory(reading);
        *lines = moved;
        reading->lines_room = room;
    }
    for (; from < count; from++)
        (*lines)[from] = line;
    return true;
}

static bool read_program(struct reading *reading, const struct json_value *program)
{
    const struct json_value *step;

    if (program->type != JSON_ARRAY)
        return refuse(reading, program, "a program is a list of steps, [ ]");
    reading->step = 0;
    for (step = json_first(&reading->json, program); step;
         step = json_next(&reading->json, step), reading->step++) {
        uint32_t before = reading->plan->step_count;

        if (!read_step(reading, step) || !note_lines(reading, before, step->line))
            return false;
    }
    reading->step = NOWHERE;
    return true;
}

static bool open_plan(struct reading *reading, const struct json_value *value)
{
    struct plan_file *file = reading->file;

    if (file->plans[reading->rank])
        return refuse(reading, value, "this rank had a plan before");
    if (plan_open(file->collective, file->name, file->size, reading->rank, file->root,
                  &file->plans[reading->rank]))
        return no_memory(reading);
    reading->plan = file->plans[reading->rank];
    reading->lines_room = 0;
    plan_shape(reading->plan, reading->parts, reading->message_atoms, reading->scratch_blocks);
    return true;
}

static bool read_plan(struct reading *reading, const struct json_value *value)
{
    static const char *const names[] = {"rank", "programs", NULL};
    const struct json_value *programs, *program;
    uint32_t rank;

    if (!check_names(reading, value, names) || !read_rank(reading, value, "rank", -1, &rank))
        return false;
    reading->rank = (int)rank;
    if (!open_plan(reading, value))
        return false;
    programs = json_member(&reading->json, value, "programs");
    if (!programs || programs->type != JSON_ARRAY || !programs->members ||
        programs->members > PLAN_PROGRAMS_MAX)
        return refuse(reading, programs ? programs : value, "\"programs\" lists 1 to %d programs",
                      PLAN_PROGRAMS_MAX);
    reading->programs = programs->members;
    reading->program = 0;
    for (program = json_first(&reading->json, programs); program;
         program = json_next(&reading->json, program), reading->program++) {
        if (reading->program)
            plan_next_program(reading->plan);
        if (!read_program(reading, program))
            return false;
    }
    reading->rank = NOWHERE;
    return true;
}

static bool read_plans(struct reading *reading, const struct json_value *root)
{
    const struct json_value *plans = json_member(&reading->json, root, "plans"), *plan;
    struct plan_file *file = reading->file;
    size_t size = (size_t)file->size;

    if (!plans || plans->type != JSON_ARRAY)
        return refuse(reading, plans ? plans : root, "\"plans\" is a list, [ ]: a plan per rank");
    if (plans->members != size)
        return refuse(reading, plans, "\"ranks\" is %d, but \"plans\" lists %zu", file->size,
                      (size_t)plans->members);
    file->plans = calloc(size, sizeof(*file->plans));
    reading->operands = calloc(2 * (size + 2), sizeof(*reading->operands));
    if (!file->plans || !reading->operands)
        return no_memory(reading);
    for (plan = json_first(&reading->json, plans); plan; plan = json_next(&reading->json, plan))
        if (!read_plan(reading, plan))
            return false;
    return true;
}

/* ---- The whole ------------------------------------------------------------------------------- */

static bool read_collective(struct reading *reading, const struct json_value *root)
{
    const struct json_value *name = json_member(&reading->json, root, "collective");

    for (int c = 0; name && c < RONDO_COLLECTIVES; c++)
        if (json_is(name, rondo_collective_name((rondo_collective)c)) &&
            !collective_is_pair((rondo_collective)c)) {
            reading->file->collective = (rondo_collective)c;
            return true;
        }
    return refuse(reading, name ? name : root, "\"collective\" is not the name of one");
}

/* A name is short, of letters, digits, _ and -. */
static bool read_name(struct reading *reading, const struct json_value *root)
{
    static const char fit[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    const struct json_value *name = json_member(&reading->json, root, "algorithm");
    char *to = reading->file->name;

    if (name && name->type == JSON_STRING && name->length && name->length < PLAN_FILE_NAME) {
        memcpy(to, name->text, name->length);
        to[name->length] = 0;
        if (strspn(to, fit) == name->length)
            return true;
    }
    return refuse(reading, name ? name : root,
                  "\"algorithm\" is a name of 1 to %d letters, digits, _ and -",
                  PLAN_FILE_NAME - 1);
}

static bool read_shape(struct reading *reading, const struct json_value *root)
{
    struct plan_file *file = reading->file;
    uint32_t ranks, rank;
    uint64_t atoms;

    if (!read_whole(reading, root, "ranks", PLAN_FILE_RANKS, -1, &ranks) ||
        !read_whole(reading, root, "parts", ATOMS_MAX, 1, &reading->parts) ||
        !read_whole(reading, root, "message_atoms", ATOMS_MAX, -1, &reading->message_atoms) ||
        !read_whole(reading, root, "scratch_blocks", ATOMS_MAX, 0, &reading->scratch_blocks))
        return false;
    if (!ranks || !reading->parts)
        return refuse(reading, root, "there have to be ranks, and parts of a block");
    atoms = (uint64_t)ranks * (ranks + reading->scratch_blocks) * reading->parts;
    if (atoms > PLAN_FILE_ATOMS || (uint64_t)reading->message_atoms * ranks > PLAN_FILE_ATOMS)
        return refuse(reading, root, "so many ranks, parts and blocks of scratch are too many");
    file->size = (int)ranks;
    if (!read_rank(reading, root, "root", 0, &rank))
        return false;
    file->root = (int)rank;
    return !rank || collective_has_root(file->collective) ||
           refuse(reading, root, "%s has no root", rondo_collective_name(file->collective));
}

static bool read_root(struct reading *reading, const struct json_value *root)
{
    static const char *const names[] = {
        "format",         "collective", "algorithm", "ranks", "root",    "parts", "message_atoms",
        "scratch_blocks", "plans",      "summary",   "costs", "seconds", NULL};
    const struct json_value *format = json_member(&reading->json, root, "format");

    if (!check_names(reading, root, names))
        return false;
    if (!format || !json_is(format, "rondo plan 1"))
        return refuse(reading, format ? format : root, "\"format\" is \"rondo plan 1\"");
    return read_collective(reading, root) && read_name(reading, root) &&
           read_shape(reading, root) && read_plans(reading, root);
}

rondo_result plan_file_parse(const char *path, const char *text, size_t length,
                             struct plan_file **ret_file)
{
    struct reading reading = {.path = path, .rank = NOWHERE, .step = NOWHERE};
    rondo_result result = RONDO_OK;
    char why[120];

    reading.file = calloc(1, sizeof(*reading.file));
    if (!reading.file)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for the plan in %s.", path);
    reading.file->hash = plan_file_hash(text, length);
    if (!json_open(&reading.json, text, length, why, sizeof(why)))
        result = rondo_fail(RONDO_ERROR_INVALID, "The plan in %s is no JSON: %s.", path, why);
    else if (!read_root(&reading, &reading.json.values[1]))
        result = reading.no_memory ? RONDO_ERROR_MEMORY : RONDO_ERROR_INVALID;
    json_close(&reading.json);
    free(reading.operands);
    if (result)
        plan_file_close(reading.file);
    else
        *ret_file = reading.file;
    return result;
}
