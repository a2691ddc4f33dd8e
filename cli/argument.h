/* SPDX-License-Identifier: BSD-3-Clause */
/* argument.h - numbers on the command line; what is none ends the program as argp_error() does. */
#ifndef RONDO_CLI_ARGUMENT_H
#define RONDO_CLI_ARGUMENT_H

#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* `what` is the option, for the sentence: "-n". */
static inline long argument_whole(const struct argp_state *state, const char *what,
                                  const char *text, long least, long most)
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

static inline double argument_real(const struct argp_state *state, const char *what,
                                   const char *text, double least)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || *end || !isfinite(value) || value < least)
        argp_error(state, "%s is '%s': accepted is a number of at least %g", what, text, least);
    return value;
}

#endif
