/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * setting.c - the table of environment variables; setting_read.c reads them.
 *
 * A new knob is one enum value in setting.h and one row here; manual and checks follow.
 */
#include "base/setting.h"

#include "base/caller/times.h"

#define MOST_BYTES 1125899906842624.0 /* 1 PiB: exact in a double, and more than any machine has */
#define MOST_RANKS 1048576.0

static const struct setting table[SETTINGS] = {
    [SETTING_ALGORITHM] =
        {"RONDO_ALGORITHM", SETTING_WORD, "auto",
         "Algorithm of every collective that has it: a name from `rondo explain --list`, or auto "
         "for the cheapest by the cost model; file:F: the plans of a file, JSON or XML of MSCCL "
         "(docs/plan_format.md).",
         NULL, 0, 0},
    [SETTING_DETERMINISTIC] =
        {"RONDO_DETERMINISTIC", SETTING_BOOL, "0",
         "1: a sum is associated as one balanced tree over ranks, whatever the algorithm, so its "
         "bits are the same everywhere.",
         NULL, 0, 0},
    [SETTING_SLOT_BYTES] = {"RONDO_SLOT_BYTES", SETTING_SIZE, "128K",
                            "Payload of one slot of shared memory; messages are cut to this size.",
                            NULL, 1024, 1073741824},
    [SETTING_SLOTS] = {"RONDO_SLOTS", SETTING_INT, "8",
                       "Slots between two ranks: how far a sender may be ahead of its receiver.",
                       NULL, 2, 1024},
    [SETTING_TIMEOUT] = {"RONDO_TIMEOUT", SETTING_SECONDS, DEFAULT_TIMEOUT,
                         "Seconds until a silent peer is an error; 0: wait for ever.", NULL, 0,
                         LONGEST_WAIT},
    [SETTING_LATE] = {"RONDO_LATE", SETTING_SECONDS, DEFAULT_LATE,
                      "Seconds until a wait is told in the log, with its cause; 0: never.", NULL, 0,
                      LONGEST_WAIT},
    [SETTING_UNIFORM] = {"RONDO_UNIFORM", SETTING_BOOL, "0",
                         "1: a collective returns the same result on every rank that is left, by "
                         "an agreement after each.",
                         NULL, 0, 0},
    [SETTING_LOG] =
        {"RONDO_LOG", SETTING_WORD, "warn",
         "What is said on stderr: warnings (warn), also decisions and errors (info), also details "
         "(debug), or nothing.",
         "none|warn|info|debug", 0, 0},
    [SETTING_LOG_FILE] = {"RONDO_LOG_FILE", SETTING_WORD, "",
                          "Where that goes instead: a file for each rank, such as job.%r.log; %r "
                          "is the rank, %p the process, %h the host.",
                          NULL, 0, 0},
    [SETTING_LOG_ROOMS] = {"RONDO_LOG_ROOMS", SETTING_WORD, "",
                           "The only parts of the library that speak at info and debug, such as "
                           "comm/engine,transport; all, if it is not set.",
                           NULL, 0, 0},
    [SETTING_CPU] =
        {"RONDO_CPU", SETTING_WORD, "auto",
         "Vector instructions of the arithmetic; auto takes the best that the processor has.",
         "auto|plain|avx2|avx512|neon", 0, 0},
    [SETTING_SPIN] = {"RONDO_SPIN", SETTING_SECONDS, "-1",
                      "Seconds a waiting rank spins before it gives up the processor; -1: chosen "
                      "by the number of ranks and cores.",
                      NULL, -1, LONGEST_WAIT},
    [SETTING_HEAP_BYTES] = {"RONDO_HEAP_BYTES", SETTING_SIZE, "0",
                            "Address space of the shared heap; 0: 4 x memory, or 1/4 of ulimit -v.",
                            NULL, 0, MOST_BYTES},
    [SETTING_CMA] = {"RONDO_CMA", SETTING_WORD, "auto",
                     "Cross-memory attach for large plain buffers; auto uses it where allowed and "
                     "faster.",
                     "auto|on|off", 0, 0},
    [SETTING_STREAM] =
        {"RONDO_STREAM", SETTING_WORD, "auto",
         "Long pieces go into slots past the cache; auto tries what is faster, again and again.",
         "auto|on|off", 0, 0},
    [SETTING_BIND] =
        {"RONDO_BIND", SETTING_WORD, "core",
         "Read by `rondo run` alone: it binds each rank to a core of its own, or none; "
         "--bind goes before it.",
         "core|none", 0, 0},
    [SETTING_RANK] = {"RONDO_RANK", SETTING_INT, "-1",
                      "Rank of this process; set by `rondo run` or by hand, -1: not set.", NULL, -1,
                      MOST_RANKS - 1},
    [SETTING_SIZE_RANKS] = {"RONDO_SIZE", SETTING_INT, "-1",
                            "Number of ranks of the job; set with RONDO_RANK, -1: not set.", NULL,
                            -1, MOST_RANKS},
    [SETTING_LOCAL_RANK] = {"RONDO_LOCAL_RANK", SETTING_INT, "-1",
                            "Rank of this process among those on its host, -1: not known.", NULL,
                            -1, MOST_RANKS - 1},
    [SETTING_LOCAL_SIZE] = {"RONDO_LOCAL_SIZE", SETTING_INT, "-1",
                            "Number of ranks on this host, -1: not known.", NULL, -1, MOST_RANKS},
    [SETTING_ADDRESS] = {"RONDO_ADDRESS", SETTING_WORD, "",
                         "Where the ranks meet: HOST:PORT of rank 0, or unix:NAME on one host; a "
                         "unique id is served there too when it is set.",
                         NULL, 0, 0},
    [SETTING_SECRET] =
        {"RONDO_SECRET", SETTING_WORD, "",
         "Secret of the job, the same text for every rank; required where ranks meet over TCP.",
         NULL, 0, 0},
    [SETTING_ELASTIC] = {"RONDO_ELASTIC", SETTING_WORD, "",
                         "MIN:MAX: with how many ranks a job of rondo_elastic_open() goes on when "
                         "some end or come; `rondo run --elastic` sets it.",
                         NULL, 0, 0},
    [SETTING_DOOR] = {"RONDO_DOOR", SETTING_WORD, "",
                      "Folder in which such a job and its newcomers find each other; not set: "
                      "nobody comes.",
                      NULL, 0, 0},
    [SETTING_JOIN] = {"RONDO_JOIN", SETTING_BOOL, "0",
                      "1: this process comes to a job that runs, at RONDO_DOOR.", NULL, 0, 0},
    [SETTING_SECURITY] =
        {"RONDO_SECURITY", SETTING_WORD, "none",
         "What protects data between hosts from somebody on the way: none, as on a network that is "
         "trusted; authentic: what was changed is an error; secret: nobody can read it, either. "
         "Over TCP alone, RDMA can't.",
         "none|authentic|secret", 0, 0},
    [SETTING_VERBS_DEVICES] =
        {"RONDO_VERBS_DEVICES", SETTING_WORD, "",
         "RDMA devices to use, such as mlx5_0,mlx5_1:2, each port one rail, at most 4; the first "
         "active ones if it is not set.",
         NULL, 0, 0},
    [SETTING_VERBS_ADDRESSES] = {"RONDO_VERBS_ADDRESSES", SETTING_WORD, "",
                                 "Range that the address of an RDMA port on Ethernet must be in, "
                                 "such as 10.1.0.0/16; any if it is not set.",
                                 NULL, 0, 0},
    [SETTING_TRANSPORT] =
        {"RONDO_TRANSPORT", SETTING_WORD, "auto",
         "What links ranks: auto takes shared memory on a host and the best network between hosts; "
         "a name allows that one alone, also between ranks of one host.",
         "auto|shm|tcp|verbs", 0, 0},
    [SETTING_INTERFACE] =
        {"RONDO_INTERFACE", SETTING_WORD, "",
         "Network interfaces that TCP may use, with commas between: beginnings of names, address "
         "ranges such as 10.1.0.0/16, either with ^ to exclude; not set: all but loopback and "
         "bridges.",
         NULL, 0, 0},
    [SETTING_HOST_ID] =
        {"RONDO_HOST_ID", SETTING_WORD, "",
         "Ranks with different texts are taken to be on different hosts, so they do not share "
         "memory: for trying out networks on one machine.",
         NULL, 0, 0},
    [SETTING_TCP_STREAMS] =
        {"RONDO_TCP_STREAMS", SETTING_INT, "1",
         "TCP connections that large messages between two ranks use side by side.", NULL, 1, 8},
    [SETTING_TCP_CONGESTION] =
        {"RONDO_TCP_CONGESTION", SETTING_WORD, "auto",
         "Congestion control of TCP connections for data, such as cubic; auto is the system's, but "
         "cubic or reno instead of bbr where the other host answers within 1 ms.",
         NULL, 0, 0},
    [SETTING_TCP_PATIENCE] =
        {"RONDO_TCP_TIMEOUT", SETTING_SECONDS, DEFAULT_TCP_TIMEOUT,
         "Seconds until a host that does not answer on the network is given up.", NULL, 1, 3600},
    [SETTING_CUDA] = {"RONDO_CUDA", SETTING_WORD, "auto",
                      "Calls on CUDA streams: auto runs them on the device where all ranks can "
                      "reach each other's memory; host goes by way of the host's memory always.",
                      "auto|host", 0, 0},
    [SETTING_CUDA_PIECE] =
        {"RONDO_CUDA_PIECE", SETTING_SIZE, "4M",
         "Calls on CUDA streams that go by way of the host: all_reduce, reduce and broadcast of "
         "more bytes are cut into pieces, whose copies and messages overlap.",
         NULL, 4096, 1 << 30},
    [SETTING_CUDA_RESERVE] =
        {"RONDO_CUDA_RESERVE", SETTING_SIZE, "64M",
         "Device memory of each rank that the other processes of its host map when a communicator "
         "is opened. Buffers are copied there that peers cannot map, or not soon; calls that are "
         "longer are cut into pieces of that length.",
         NULL, 64 << 10, 1 << 30},
    [SETTING_COPY_ENGINES] =
        {"RONDO_COPY_ENGINES", SETTING_BOOL, "0",
         "1: calls on CUDA streams that only move data (all_gather, broadcast, all_to_all, gather, "
         "scatter) are copies by copy engines, and leave the multiprocessors to the program, where "
         "ranks are processes of one host; each rank's input goes through its reserve.",
         NULL, 0, 0},
    [SETTING_GPUDIRECT] =
        {"RONDO_GPUDIRECT", SETTING_WORD, "auto",
         "Calls on CUDA streams between hosts: auto lets RDMA adapters use device memory if a test "
         "of it passed on every rank, by dmabuf or else by peer memory; a name allows that way "
         "alone; slots: the device fills pinned slots of the host, over any transport; off: all "
         "is copied to the host before.",
         "auto|dmabuf|peer|slots|off", 0, 0},
    [SETTING_NVLS] =
        {"RONDO_NVLS", SETTING_WORD, "auto",
         "all_reduce, all_gather and reduce_scatter on CUDA streams through multicast of NVSwitch: "
         "auto, of 3 and more devices, long calls and no sums of floats, where the driver offers "
         "it and a check of its sums passed; on (of all ranks), also sums of floats, which a "
         "switch adds up in an order of its own, of 2 devices and of any length, and a warning "
         "where it cannot be; off. Never if RONDO_DETERMINISTIC is set.",
         "auto|on|off", 0, 0},
    [SETTING_TOPOLOGY] = {"RONDO_TOPOLOGY", SETTING_WORD, "",
                          "A machine recorded as hwloc XML that `rondo topo` and `rondo doctor` "
                          "look at instead of this one.",
                          NULL, 0, 0},
    [SETTING_BENCH_DIR] = {"RONDO_BENCH_DIR", SETTING_WORD, "",
                           "Folder of the workers of `rondo bench`, one per library; where they "
                           "were installed if it is not set.",
                           NULL, 0, 0},
    [SETTING_COSTS] =
        {"RONDO_COSTS", SETTING_WORD, "",
         "Costs for the choice of algorithms instead of measuring them: "
         "latency_us,copy_GBps,reduce_GBps, and between groups of ranks latency_us,GBps,rails.",
         NULL, 0, 0},
    [SETTING_GROUPS] =
        {"RONDO_GROUPS", SETTING_WORD, "",
         "Groups of ranks near each other, for algorithms in two levels: 4x2, 4+3+1, 0,1,0,1 (the "
         "group of each rank) or 2* (dealt in turn); if it is not set they are hosts, or on one "
         "host NUMA nodes.",
         NULL, 0, 0},
    [SETTING_RECORDER] = {"RONDO_RECORDER", SETTING_BOOL, "1",
                          "Each rank writes its last calls into a file that `rondo ps` reads; 0: "
                          "it does not.",
                          NULL, 0, 0},
    [SETTING_RECORDER_DIR] =
        {"RONDO_RECORDER_DIR", SETTING_WORD, "",
         "Folder of these files, where nobody else may write; /dev/shm/rondo-UID if it is not set, "
         "or rondo in XDG_RUNTIME_DIR.",
         NULL, 0, 0},
    [SETTING_RECORDER_SIGNAL] =
        {"RONDO_RECORDER_SIGNAL", SETTING_WORD, "none",
         "A signal on which a process writes what all ranks of its host wait for on stderr, as "
         "`rondo ps` does.",
         "none|usr1|usr2", 0, 0},
    [SETTING_TRACE] =
        {"RONDO_TRACE", SETTING_WORD, "",
         "Each process writes its calls, their steps and waits into this file, with a dot and its "
         "rank behind the name, for `rondo trace`.",
         NULL, 0, 0},
    [SETTING_PROFILE] =
        {"RONDO_PROFILE", SETTING_WORD, "",
         "Each process adds up its calls by what they are in this file, with a dot and its rank "
         "behind the name, for `rondo trace`; the file of RONDO_TRACE has these sums, too.",
         NULL, 0, 0},
    [SETTING_TRACE_BYTES] = {"RONDO_TRACE_BYTES", SETTING_SIZE, "16M",
                             "Room for events in such a file, 32 bytes each; the oldest are "
                             "overwritten.",
                             NULL, 65536, 1UL << 36},
    [SETTING_CUDA_IMAGE] = {"RONDO_CUDA_IMAGE", SETTING_WORD, "",
                            "A file of kernels for the GPU that is loaded instead of those in the "
                            "library and, if it has them, in `rondo train`: for tests.",
                            NULL, 0, 0},
};

const struct setting *setting_at(enum setting_id id)
{
    return &table[id];
}
