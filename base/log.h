/* SPDX-License-Identifier: BSD-3-Clause */
/* log.h - what the library says on stderr, by RONDO_LOG: none, warn (default), info, debug.
 * Never stdout. */
#ifndef RONDO_BASE_LOG_H
#define RONDO_BASE_LOG_H

#include <stdbool.h>

enum log_level { LOG_NONE, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* Cheap enough for any path but the hot one: a load and a compare. */
bool log_wants(enum log_level level);
/* One line "rondo[rank] level: text"; written whole, so that lines of different ranks do not
 * mix. */
void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The rank that this thread speaks for, -1 before it has one. */
void log_set_rank(int rank);

#define log_warn(...)  log_write(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_write(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_DEBUG, __VA_ARGS__)

#endif
