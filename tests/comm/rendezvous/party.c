/* SPDX-License-Identifier: BSD-3-Clause */
/* party.c - ranks as threads; they return results, whoever joins them judges. */
#include "tests/comm/rendezvous/party.h"

#include "comm/rendezvous/socket.h"

#include <dirent.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void party_place(struct bootstrap_place *ret_place, bool tcp)
{
    int listener, port;

    memset(ret_place, 0, sizeof(*ret_place));
    if (sodium_init() < 0)
        return;
    randombytes_buf(ret_place->secret, sizeof(ret_place->secret));
    snprintf(ret_place->address, sizeof(ret_place->address), "unix:rondo-test-%d-%08x",
             (int)getpid(), (unsigned)randombytes_random());
    if (tcp && !socket_listen("127.0.0.1:0", false, &listener, &port)) {
        close(listener);
        snprintf(ret_place->address, sizeof(ret_place->address), "127.0.0.1:%d", port);
    }
}

struct party_rank *party_new(const struct bootstrap_place *place, int size, double timeout)
{
    struct party_rank *ranks = calloc((size_t)size, sizeof(*ranks));

    for (int i = 0; ranks && i < size; i++) {
        ranks[i].place = *place;
        ranks[i].rank = i;
        ranks[i].size = size;
        ranks[i].serve = true;
        ranks[i].timeout = timeout;
        ranks[i].blob_bytes = PARTY_BLOB;
    }
    return ranks;
}

struct party_rank *party_at(bool tcp, int size, double timeout)
{
    struct bootstrap_place place;

    party_place(&place, tcp);
    return party_new(&place, size, timeout);
}

static void fill(unsigned char *blob, int rank)
{
    for (int i = 0; i < PARTY_BLOB; i++)
        blob[i] = (unsigned char)(rank * 31 + i);
}

static bool all_right(const struct party_rank *me, const unsigned char *blobs)
{
    unsigned char wanted[PARTY_BLOB];

    for (int rank = 0; rank < me->size; rank++) {
        fill(wanted, rank);
        if (memcmp(blobs + (size_t)rank * me->blob_bytes, wanted, me->blob_bytes))
            return false;
    }
    return true;
}

void party_take_part(struct party_rank *me)
{
    unsigned char blob[PARTY_BLOB];
    size_t room = me->size > 0 ? (size_t)me->size * PARTY_BLOB : 1;
    unsigned char *blobs = calloc(1, room);

    fill(blob, me->rank);
    fail_clear();
    me->result = blobs ? bootstrap_all_gather(&me->place, me->rank, me->size, me->serve,
                                              me->timeout, blob, me->blob_bytes, blobs)
                       : RONDO_ERROR_MEMORY;
    me->right = !me->result && all_right(me, blobs);
    snprintf(me->sentence, sizeof(me->sentence), "%s", fail_sentence());
    free(blobs);
}

static void *body(void *argument)
{
    party_take_part(argument);
    return NULL;
}

void party_start(struct party_rank *ranks, int count)
{
    pthread_attr_t attributes;

    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 256 << 10);
    for (int i = 0; i < count; i++)
        if (pthread_create(&ranks[i].thread, &attributes, body, &ranks[i])) {
            ranks[i].result = RONDO_ERROR_SYSTEM;
            ranks[i].thread = pthread_self();
        }
    pthread_attr_destroy(&attributes);
}

void party_join(struct party_rank *ranks, int count)
{
    for (int i = 0; i < count; i++)
        if (!pthread_equal(ranks[i].thread, pthread_self()))
            pthread_join(ranks[i].thread, NULL);
}

int party_run(struct party_rank *ranks, int count)
{
    int right = 0;

    party_start(ranks, count);
    party_join(ranks, count);
    for (int i = 0; i < count; i++)
        right += ranks[i].right;
    return right;
}

void party_free(struct party_rank *ranks)
{
    free(ranks);
}

int party_files(void)
{
    DIR *directory = opendir("/proc/self/fd");
    int count = 0;

    while (directory && readdir(directory))
        count++;
    if (directory)
        closedir(directory);
    return count;
}
