/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recording.h - a recorded machine, out of a file that may come from anybody.
 *
 * hwloc's reader of XML crashes on some files that are well-formed and describe no possible
 * machine. So a child process reads the file, and writes the machine down anew as it understood it;
 * the child reads that, too. What this process gets to read is the second text alone.
 */
#ifndef RONDO_TOPOLOGY_RECORDING_H
#define RONDO_TOPOLOGY_RECORDING_H

#include "rondo/rondo.h"

#include <hwloc.h>

/* An empty topology, set up as every topology of this room is; NULL: errno. */
hwloc_topology_t topology_prepare(void);

/* XML that hwloc can read, malloc()ed, terminated; RONDO_ERROR_INVALID names the file. */
rondo_result topology_read_recording(const char *file, char **ret_xml, size_t *ret_bytes);

#endif
