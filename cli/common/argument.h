/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * argument.h - the options of a command as a table: what --help says of each, and which member of
 * the command's options it sets.
 *
 *     {"rounds", 0, "N", 3, ARGUMENT_NUMBER(struct options, rounds, 1, INT_MAX),
 *      "times that all take turns (5)"}
 *
 * What is wrong on a command line ends the program with status 2 and a sentence on stderr, as
 * argp_error() does.
 */
#ifndef RONDO_CLI_COMMON_ARGUMENT_H
#define RONDO_CLI_COMMON_ARGUMENT_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>

enum argument_type {
    ARGUMENT_FLAG,
    ARGUMENT_TEXT,
    ARGUMENT_WHOLE,
    ARGUMENT_REAL,
    ARGUMENT_WORD,
    ARGUMENT_CALL
};

/* Judges or keeps what was given, `text`, in the command's options. */
typedef void argument_take(struct argp_state *state, void *options, char *text);

/* The effect is what an option does. */
struct argument_effect {
    enum argument_type type;
    size_t offset, bytes;          /* of the member that it sets */
    double least, most;            /* of a number; a real has no greatest one */
    const char *const *words;      /* one of them is accepted, its place is kept; NULL ends them */
    int (*find)(const char *text); /* in the place of `words`; negative: there is no such word */
    const char *wrong;             /* what is said then, with a %s for the word */
    argument_take *take;           /* of a call */
};

/* clang-format off */
/* The effect follows from the type of the member: bool, a string, a whole number, double. */
#define ARGUMENT_NUMBER(options, member, lowest, highest) \
    {.type = _Generic(((options *)0)->member, bool: ARGUMENT_FLAG, char *: ARGUMENT_TEXT, \
                      const char *: ARGUMENT_TEXT, double: ARGUMENT_REAL, \
                      default: ARGUMENT_WHOLE), \
     .offset = offsetof(options, member), .bytes = sizeof(((options *)0)->member), \
     .least = lowest, .most = highest}
#define ARGUMENT_SETS(options, member) ARGUMENT_NUMBER(options, member, 0, 0)
#define ARGUMENT_WORDS(options, member, list) \
    {.type = ARGUMENT_WORD, .offset = offsetof(options, member), \
     .bytes = sizeof(((options *)0)->member), .words = list}
#define ARGUMENT_FINDS(options, member, search, sentence) \
    {.type = ARGUMENT_WORD, .offset = offsetof(options, member), \
     .bytes = sizeof(((options *)0)->member), .find = search, .wrong = sentence}
#define ARGUMENT_CALLS(function) {.type = ARGUMENT_CALL, .take = function}
/* clang-format on */

struct argument {
    const char *name;  /* "rounds" is given as --rounds; NULL: by its letter only */
    int letter;        /* 'n' is given as -n; 0: by its name only */
    const char *value; /* what --help calls it; NULL: the option has none */
    int group;         /* of those that --help shows together */
    struct argument_effect effect;
    const char *help; /* NULL: --help does not show it */
};

enum { ARGUMENT_ROWS_MAX = 48 };

struct argument_command {
    const char *name;             /* "rondo bench" */
    const char *operands;         /* as --help shows them; NULL: there are none */
    const char *doc;              /* before the options, and after a \v behind them */
    const struct argument *table; /* ends with {0}, after at most ARGUMENT_ROWS_MAX rows */
    argument_take *operand;       /* each operand comes here; NULL: there are none */
    /* Judges what can only be judged when all is known; NULL: there is nothing. */
    void (*finish)(struct argp_state *state, void *options);
    unsigned flags; /* of argp_parse() */
};

/* Reads the command line into `options`, which has the defaults. A shell that asks for words
 * (--complete, completion.h) gets them, and the program ends. */
void argument_parse(const struct argument_command *command, int argc, char **argv, void *options);

/* The number that `text` is; `what` is the option, for the sentence: "-n". */
long argument_whole(const struct argp_state *state, const char *what, const char *text, long least,
                    long most);
/* The place of `word` among names: `name` gives the i-th one, NULL after the last. A word that is
 * none of them ends the program, with all of them and the nearest: "there is no `what` 'rign'". */
int argument_name(const struct argp_state *state, const char *what, const char *(*name)(int i),
                  const char *word);
double argument_real(const struct argp_state *state, const char *what, const char *text,
                     double least);

#endif
