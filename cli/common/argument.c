/* SPDX-License-Identifier: BSD-3-Clause */
/* argument.c - makes argp's table from ours, and sets members of a command's options. */
#include "cli/common/argument.h"

#include "cli/common/completion.h"
#include "cli/common/nearest.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_KEY = 256 }; /* of options without a letter; beyond all letters */
enum { NAMES_MAX = 2048 };

/* The parser works on this. */
struct parse {
    const struct argument_command *command;
    void *options;
};

long argument_whole(const struct argp_state *state, const char *what, const char *text, long least,
                    long most)
{
    char *end;
    long value;

    errno = 0;
    value = strtol(text, &end, 10);
    if (errno || end == text || *end || value < least || value > most)
        argp_error(state, "%s is '%s': accepted is a whole number from %ld to %ld", what, text,
                   least, most);
    return value;
}

double argument_real(const struct argp_state *state, const char *what, const char *text,
                     double least)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || *end || !isfinite(value) || value < least)
        argp_error(state, "%s is '%s': accepted is a number of at least %g", what, text, least);
    return value;
}

int argument_name(const struct argp_state *state, const char *what, const char *(*name)(int i),
                  const char *word)
{
    const char *nearest = nearest_name(word, name);
    char list[NAMES_MAX] = "";
    size_t used = 0;

    for (int i = 0; name(i); i++) {
        if (!strcmp(name(i), word))
            return i;
        if (used < sizeof(list))
            used +=
                (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "", name(i));
    }
    argp_error(state, "there is no %s '%s'%s%s%s there are %s", what, word,
               nearest ? ", did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : ";",
               list);
    return -1;
}

/* The words of the row that is being read, for word_at(). */
static const char *const *words_of_row;

static const char *word_at(int i)
{
    return words_of_row[i];
}

static int key_of(const struct argument *table, int row)
{
    return table[row].letter ? table[row].letter : FIRST_KEY + row;
}

static bool is_end(const struct argument *row)
{
    return !row->name && !row->letter;
}

/* Into a whole number or a bool of any size: their low bytes come first. */
static void keep(const struct argument_effect *effect, void *member, long value)
{
    memcpy(member, &value, effect->bytes);
}

static void set(struct argp_state *state, const struct argument *row, void *options, char *text)
{
    const struct argument_effect *effect = &row->effect;
    void *member = (char *)options + effect->offset;
    char what[32];
    int word;

    if (row->letter)
        snprintf(what, sizeof(what), "-%c", row->letter);
    else
        snprintf(what, sizeof(what), "--%s", row->name);
    switch (effect->type) {
    case ARGUMENT_FLAG:
        *(bool *)member = true;
        break;
    case ARGUMENT_TEXT:
        memcpy(member, &text, sizeof(text));
        break;
    case ARGUMENT_WHOLE:
        keep(effect, member,
             argument_whole(state, what, text, (long)effect->least, (long)effect->most));
        break;
    case ARGUMENT_REAL:
        *(double *)member = argument_real(state, what, text, effect->least);
        break;
    case ARGUMENT_WORD:
        words_of_row = effect->words;
        word = effect->find ? effect->find(text) : argument_name(state, what, word_at, text);
        if (word < 0)
            argp_error(state, effect->wrong, text);
        keep(effect, member, word);
        break;
    case ARGUMENT_CALL:
        effect->take(state, options, text);
        break;
    }
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    const struct parse *parse = state->input;
    const struct argument_command *command = parse->command;

    if (key == ARGP_KEY_ARG && command->operand) {
        command->operand(state, parse->options, text);
        return 0;
    }
    if (key == ARGP_KEY_END && command->finish)
        command->finish(state, parse->options);
    for (int row = 0; !is_end(&command->table[row]); row++)
        if (key == key_of(command->table, row)) {
            set(state, &command->table[row], parse->options, text);
            return 0;
        }
    return ARGP_ERR_UNKNOWN;
}

void argument_parse(const struct argument_command *command, int argc, char **argv, void *options)
{
    struct argp_option table[ARGUMENT_ROWS_MAX + 1] = {{0}};
    const struct argp argp = {table, parse, command->operands, command->doc, NULL, NULL, NULL};
    struct parse input = {command, options};
    static char name[64];

    if (argc == 2 && !strcmp(argv[1], "--complete")) { /* of a shell; not shown to people */
        completion_print(command);
        exit(0);
    }
    for (int row = 0; row < ARGUMENT_ROWS_MAX && !is_end(&command->table[row]); row++) {
        const struct argument *of = &command->table[row];

        table[row] = (struct argp_option){of->name,  key_of(command->table, row),
                                          of->value, of->help ? 0 : OPTION_HIDDEN,
                                          of->help,  of->group};
    }
    snprintf(name, sizeof(name), "%s", command->name);
    argv[0] = name; /* argp says it in its messages */
    argp_err_exit_status = 2;
    argp_parse(&argp, argc, argv, command->flags, NULL, &input);
}
