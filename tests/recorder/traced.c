/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * traced.c - a rank whose calls are traced: `traced WAY`, where WAY is
 *
 *     calls   some collectives and a message, each of which prints how many microseconds it took
 *     many    as many all_reduces as no small ring has room for, and what the model expects of one
 *     die     rank 1 is killed between two calls; all others wait for it in the second one
 *     tags    messages with tags, each of which prints its peer, tag, bytes and microseconds; rank
 *             0 ends while it waits for one
 *     child   rank 0 has a child that makes a communicator of its own
 */
#include "rondo/bindings.h"
#include "rondo/p2p.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { COUNT = 4096, TIMES = 20, MANY = 2000 };

static rondo_comm *comm;
static float values[COUNT], results[COUNT];
static int rank;

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static void check(rondo_result result)
{
    if (!result)
        return;
    fprintf(stderr, "rank %d: %s\n", rank, rondo_last_error(comm));
    exit(1);
}

static void all_reduce(void)
{
    double began = now();

    check(rondo_all_reduce(values, results, COUNT, RONDO_FLOAT32, RONDO_SUM, comm, NULL));
    printf("%d all_reduce %.3f\n", rank, now() - began);
}

static void others(void)
{
    double began = now();

    check(rondo_broadcast(values, results, COUNT, RONDO_FLOAT32, 0, comm, NULL));
    printf("%d broadcast %.3f\n", rank, now() - began);
    began = now();
    check(rondo_barrier(comm, NULL));
    printf("%d barrier %.3f\n", rank, now() - began);
    began = now();
    if (rank == 0)
        check(rondo_send(values, COUNT, RONDO_FLOAT32, 1, comm, NULL));
    else if (rank == 1)
        check(rondo_recv(results, COUNT, RONDO_FLOAT32, 0, comm, NULL));
    if (rank < 2)
        printf("%d %s %.3f\n", rank, rank ? "recv" : "send", now() - began);
}

struct message {
    rondo_transfer *transfer;
    double posted;
};

static struct message post(rondo_p2p *p2p, bool sends, void *memory, size_t bytes, int peer,
                           int tag)
{
    struct message message = {.posted = now()};

    check(sends ? rondo_p2p_send(p2p, memory, bytes, peer, tag, &message.transfer)
                : rondo_p2p_recv(p2p, memory, bytes, peer, tag, &message.transfer));
    return message;
}

static void complete(const char *way, struct message message)
{
    rondo_envelope envelope;

    check(rondo_transfer_wait(message.transfer, -1, &envelope));
    printf("%d %s:%d:%d:%zu %.3f\n", rank, way, envelope.source, envelope.tag, envelope.bytes,
           now() - message.posted);
    rondo_transfer_close(message.transfer);
}

/* Short ones and a long one, from the peer that is named and from any, to this rank itself, one
 * that is given up and one that is too long, which print nothing. */
static void tags(void)
{
    static char memory[4][1 << 20];
    const int peer = 1 - rank;
    struct message receives[3], sends[3];
    rondo_transfer *too_long;
    rondo_p2p *p2p;

    check(rondo_p2p_open(comm, &p2p));
    receives[0] = post(p2p, false, memory[0], 200, peer, 5);
    receives[1] = post(p2p, false, memory[1], sizeof(memory[1]), RONDO_ANY_SOURCE, 6);
    receives[2] = post(p2p, false, memory[2], 10, rank, RONDO_ANY_TAG);
    sends[0] = post(p2p, true, memory[3], 100, peer, 5);
    sends[1] = post(p2p, true, memory[3], sizeof(memory[3]), peer, 6);
    sends[2] = post(p2p, true, memory[3], 10, rank, 7);
    for (int i = 0; i < 3; i++) {
        complete("receive", receives[i]);
        complete("send", sends[i]);
    }
    rondo_transfer_close(post(p2p, false, memory[0], 300, peer, 8).transfer);
    complete("send", post(p2p, true, memory[3], 20, rank, 9));
    too_long = post(p2p, false, memory[0], 10, rank, 9).transfer;
    if (rondo_transfer_wait(too_long, -1, NULL) != RONDO_ERROR_MISMATCH)
        exit(1);
    rondo_transfer_close(too_long);
    check(rondo_barrier(comm, NULL));
    if (rank == 0) {
        (void)post(p2p, false, memory[0], 400, 0, 10);
        _exit(0);
    }
}

static void estimate(void)
{
    const rondo_call call = {.struct_size = sizeof(call),
                             .collective = RONDO_ALL_REDUCE,
                             .comm = comm,
                             .input = values,
                             .output = results,
                             .count = COUNT,
                             .type = RONDO_FLOAT32,
                             .op = RONDO_SUM};
    double microseconds;

    check(rondo_estimate(&call, &microseconds));
    printf("%d estimate %.6f\n", rank, microseconds);
}

static void have_a_child(void)
{
    pid_t child = fork();
    int status;

    if (child) {
        if (waitpid(child, &status, 0) < 0 || status)
            exit(1);
        return;
    }
    setenv("RONDO_RANK", "0", 1);
    setenv("RONDO_SIZE", "1", 1);
    setenv("RONDO_LOCAL_SIZE", "1", 1);
    unsetenv("RONDO_ADDRESS");
    check(rondo_comm_open(NULL, &comm)); /* the one before it is the parent's */
    check(rondo_barrier(comm, NULL));
    rondo_comm_close(comm);
    exit(0);
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "calls";

    setvbuf(stdout, NULL, _IOLBF, 0); /* so that lines of two ranks do not mix */
    check(rondo_comm_open(NULL, &comm));
    rank = rondo_comm_rank(comm);
    if (!strcmp(way, "child") && rank == 0)
        have_a_child();
    if (!strcmp(way, "many"))
        estimate();
    if (!strcmp(way, "tags")) {
        tags();
        return 0;
    }
    for (int i = 0; i < (strcmp(way, "many") ? TIMES : MANY); i++)
        all_reduce();
    rondo_trace_begin("others", 7);
    rondo_trace_begin("others", 8);
    others();
    rondo_trace_end("others", 7);
    rondo_trace_end("others", 8);
    if (!strcmp(way, "die")) {
        if (rank == 1)
            raise(SIGKILL);
        return rondo_barrier(comm, NULL) ? 0 : 1;
    }
    rondo_comm_close(comm);
    return 0;
}
