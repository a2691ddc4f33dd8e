/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * launch_secret.c - a key out of the secret that ranks were given.
 *
 * Who records a handshake can try secrets at home until one fits. Of a random one of 32 characters
 * there are too many; others are stretched: each guess costs as many megabytes and milliseconds as
 * the one try of every rank. All ranks decide alike, by the text alone.
 */
#include "comm/rendezvous/launch.h"

#include "base/fail.h"
#include "base/fork.h"
#include "base/lock.h"

#include <sodium.h>
#include <string.h>

enum {
    LONG = 32,    /* characters of a secret that nobody guesses, if it has COLOURS */
    COLOURS = 10, /* different characters of such a secret */
    PASSES = 3,
    MEMORY = 16 << 20, /* bytes: some 30 ms */
};

/* The last secret that was stretched: a process opens many communicators with one secret. */
static struct {
    struct lock lock;
    unsigned char text[32], key[BOOTSTRAP_SECRET]; /* a hash of the text */
    bool known;
} last = {.lock = LOCK_AT(LOCK_LAUNCH_SECRET)};
FORK_RENEWS({.lock = &last.lock});

bool launch_secret_is_strong(const char *secret)
{
    bool seen[256] = {false};
    size_t different = 0;

    for (const char *at = secret; *at; at++) {
        different += !seen[(unsigned char)*at];
        seen[(unsigned char)*at] = true;
    }
    return strlen(secret) >= LONG && different >= COLOURS;
}

static bool stretch(const char *secret, unsigned char ret_key[BOOTSTRAP_SECRET])
{
    static const unsigned char salt[crypto_pwhash_SALTBYTES + 1] = "rondo job secret";

    return !crypto_pwhash(ret_key, BOOTSTRAP_SECRET, secret, strlen(secret), salt, PASSES, MEMORY,
                          crypto_pwhash_ALG_ARGON2ID13);
}

rondo_result launch_secret_stretch(const char *secret, unsigned char ret_key[BOOTSTRAP_SECRET])
{
    unsigned char text[sizeof(last.text)];
    rondo_result result = RONDO_OK;

    crypto_generichash(text, sizeof(text), (const unsigned char *)secret, strlen(secret), NULL, 0);
    lock_take(&last.lock);
    if (!last.known || sodium_memcmp(last.text, text, sizeof(text)) != 0) {
        last.known = stretch(secret, last.key);
        memcpy(last.text, text, sizeof(text));
    }
    if (last.known)
        memcpy(ret_key, last.key, sizeof(last.key));
    else
        result = rondo_fail(RONDO_ERROR_MEMORY,
                            "no memory to make a key of RONDO_SECRET (%d MiB): give it %d random "
                            "characters, which need none",
                            MEMORY >> 20, LONG);
    lock_give(&last.lock);
    return result;
}
