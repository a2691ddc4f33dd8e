/* SPDX-License-Identifier: BSD-3-Clause */
/* nearest.h - what somebody meant who wrote a name that there is none of. */
#ifndef RONDO_CLI_COMMON_NEAREST_H
#define RONDO_CLI_COMMON_NEAREST_H

/* Returns the name with the fewest letters to insert, remove or replace, at most half of the word;
 * NULL: none is near. `name` gives the i-th one, NULL after the last. */
const char *nearest_name(const char *word, const char *(*name)(int i));

#endif
