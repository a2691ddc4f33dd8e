/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * completion.h - the words that a shell may offer on the command line of `rondo`, which
 * `rondo --complete [COMMAND]` prints for the scripts in include/packages/completion: a line each,
 * with tabs between the word, what its value is called, the values that are accepted, and what the
 * word does; "-" where there is none.
 */
#ifndef RONDO_CLI_COMMON_COMPLETION_H
#define RONDO_CLI_COMMON_COMPLETION_H

#include "cli/common/argument.h"

/* The options that --help shows. */
void completion_print(const struct argument_command *command);

/* One line; `value` and `help` may be NULL. */
void completion_word(const char *word, const char *value, const char *help);

#endif
