/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * signal.h - a table on stderr when this process gets a signal, if RONDO_RECORDER_SIGNAL names it.
 *
 * A library takes no signal unasked, and none that the program has a handler for. The handler only
 * wakes a thread, which writes the table.
 */
#ifndef RONDO_COMM_RECORDER_SIGNAL_H
#define RONDO_COMM_RECORDER_SIGNAL_H

/* From any thread, any number of times; does nothing unless the setting asks for it. */
void recorder_listen(void);

#endif
