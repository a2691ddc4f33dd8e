/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * setting.h - every environment variable of Rondo, in one table (setting.c): name, type, default,
 * sentence. docs/configuration.md and `rondo doctor` are made from it, so a knob that is not in
 * the table does not exist. Values are read from the environment at every call: callers are
 * those that open something (a communicator, a device, an id), never those that move data.
 */
#ifndef RONDO_BASE_SETTING_H
#define RONDO_BASE_SETTING_H

#include "rondo/rondo.h"

#include <stdbool.h>
#include <stddef.h>

enum setting_type { SETTING_BOOL, SETTING_INT, SETTING_SIZE, SETTING_SECONDS, SETTING_WORD };

enum setting_id {
    SETTING_ALGORITHM,     /* word */
    SETTING_DETERMINISTIC, /* bool */
    SETTING_SLOT_BYTES,    /* size */
    SETTING_SLOTS,         /* int */
    SETTING_TIMEOUT,       /* seconds */
    SETTING_LATE,          /* seconds */
    SETTING_UNIFORM,       /* bool */
    SETTING_LOG,           /* word */
    SETTING_LOG_FILE,      /* word: a path with %r, %p, %h */
    SETTING_LOG_ROOMS,     /* word: folders of the sources, a comma list */
    SETTING_CPU,           /* word: plain, avx2, avx512, neon, auto */
    SETTING_SPIN,          /* seconds of spinning before yielding; -1: chosen by ranks and cores */
    SETTING_HEAP_BYTES,    /* size: limit of the shared heap of this process */
    SETTING_CMA,           /* word: auto, on, off */
    SETTING_STREAM,        /* word: auto, on, off */
    SETTING_BIND,          /* word: core, none */
    SETTING_RANK,          /* int */
    SETTING_SIZE_RANKS,    /* int, RONDO_SIZE */
    SETTING_LOCAL_RANK,    /* int */
    SETTING_LOCAL_SIZE,    /* int */
    SETTING_ADDRESS,       /* word, host:port or unix:name */
    SETTING_SECRET,        /* word */
    SETTING_ELASTIC,       /* word: MIN:MAX */
    SETTING_DOOR,          /* word: a folder */
    SETTING_JOIN,          /* bool */
    SETTING_SECURITY,      /* word: none, authentic, secret */
    SETTING_VERBS_DEVICES, /* word: names of RDMA devices, with ',' between */
    SETTING_VERBS_ADDRESSES, /* word: a range of addresses */
    SETTING_TRANSPORT,       /* word: auto, shm, tcp, verbs */
    SETTING_INTERFACE,       /* word: names, ranges, ^ to exclude */
    SETTING_HOST_ID,         /* word */
    SETTING_TCP_STREAMS,     /* int: data connections between two ranks */
    SETTING_TCP_CONGESTION,
    SETTING_TCP_PATIENCE, /* seconds, RONDO_TCP_TIMEOUT */
    SETTING_CUDA,         /* word: auto, host */
    SETTING_CUDA_PIECE,   /* size: bytes of a long call that goes by way of the host */
    SETTING_CUDA_RESERVE, /* size: bytes of device memory that peers map at the start */
    SETTING_COPY_ENGINES, /* bool */
    SETTING_GPUDIRECT,    /* word: auto, dmabuf, peer, slots, off */
    SETTING_NVLS,         /* word: auto, on, off */
    SETTING_TOPOLOGY,     /* word: an hwloc XML file to use instead of this machine */
    SETTING_BENCH_DIR,    /* word */
    SETTING_COSTS,    /* word: "latency_us,copy_GBps,reduce_GBps" instead of measuring at open */
    SETTING_GROUPS,   /* word: groups of ranks instead of hosts and NUMA nodes */
    SETTING_RECORDER, /* bool */
    SETTING_RECORDER_DIR,    /* word: a folder */
    SETTING_RECORDER_SIGNAL, /* word: none, usr1, usr2 */
    SETTING_TRACE,           /* word: a path, to which the rank is added */
    SETTING_PROFILE,         /* the same */
    SETTING_TRACE_BYTES,     /* size: of the events of a process */
    SETTING_CUDA_IMAGE,      /* word: a file of kernels to load instead of our own */
    SETTINGS
};

struct setting {
    const char *name; /* "RONDO_TIMEOUT" */
    enum setting_type type;
    const char *fallback; /* the default, as one would write it */
    const char *sentence;
    const char *words;  /* of a word: those accepted, with '|' between; NULL: any text */
    double least, most; /* of a number: the accepted range */
};

const struct setting *setting_at(enum setting_id id);
/* Read as the type in the table says; a malformed value is RONDO_ERROR_INVALID in a sentence
 * that shows it. */
rondo_result setting_read_bool(enum setting_id id, bool *ret_value);
rondo_result setting_read_int(enum setting_id id, long *ret_value);
rondo_result setting_read_size(enum setting_id id, size_t *ret_bytes); /* accepts 64K, 4M, 1G */
rondo_result setting_read_seconds(enum setting_id id, double *ret_seconds);
const char *setting_read_word(enum setting_id id); /* never NULL */
/* Set and not empty: an empty variable is as good as none. */
bool setting_is_set(enum setting_id id);
/* Checks that the table accepts the value, whatever its type. Words with a list are checked only
 * here. */
rondo_result setting_check(enum setting_id id);
/* Writes what the table accepts, in words: "a whole number from 1 to 64". */
void setting_accepts(const struct setting *setting, char *ret_text, size_t room);
/* "64K" -> 65536; also used by the command line. */
rondo_result setting_parse_size(const char *text, size_t *ret_bytes);

/* Finds the setting of this name; -1: none has it. */
int setting_find(const char *name);
/* The setting that `name` is a misspelling of, by the fewest edits, at most one in three of the
 * letters behind RONDO_; NULL: none is near. */
const struct setting *setting_nearest(const char *name);
/* Warns of every variable that begins with RONDO_, has a value and is no setting; once per
 * process, later calls do nothing. */
void setting_warn_of_strangers(void);

#endif
