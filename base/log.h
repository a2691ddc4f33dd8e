/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log.h - what the library says on stderr, or in a file per rank (RONDO_LOG_FILE), by RONDO_LOG:
 * none, warn (default), info, debug. Never stdout.
 *
 * At info a call of the user, or opening, is at most three lines of rank 0; calls that the library
 * makes itself, and what all ranks would say alike, are at debug elsewhere.
 */
#ifndef RONDO_BASE_LOG_H
#define RONDO_BASE_LOG_H

#include <stdbool.h>

enum log_level { LOG_NONE, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* Cheap enough for any path but the hot one: a load and a compare. */
bool log_wants(enum log_level level);
/*
 * One line, written whole, so that lines of different ranks do not mix:
 *
 *     rondo[rank] warn: text                                    a warning on stderr
 *     rondo[rank] info: 2026-11-24 08:40:30.123456 room: text   all else, and all in a file
 *
 * The room is the folder of `file`; RONDO_LOG_ROOMS may leave lines of others out.
 */
void log_write(enum log_level level, const char *file, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The rank that this thread speaks for, -1 before it has one. The first one is the process's. */
void log_set_rank(int rank);
/* The rank of this thread, else of the process; -1: none so far. */
int log_rank(void);
/* The level of what every rank would say alike: info where this process is rank 0, else debug. */
enum log_level log_alike_level(void);

#define log_warn(...)  log_write(LOG_WARN, __FILE__, __VA_ARGS__)
#define log_info(...)  log_write(LOG_INFO, __FILE__, __VA_ARGS__)
#define log_debug(...) log_write(LOG_DEBUG, __FILE__, __VA_ARGS__)
#define log_alike(...) log_write(log_alike_level(), __FILE__, __VA_ARGS__)

#endif
