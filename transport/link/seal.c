/* SPDX-License-Identifier: BSD-3-Clause */
/* seal.c - libsodium's AEAD ciphers make the tags. */
#include "transport/link/seal.h"

#include <sodium.h>
#include <string.h>

enum { NONCE = 12 };
_Static_assert(sizeof(crypto_aead_aes256gcm_state) <= SEAL_SCHEDULE, "room for the schedule");
_Static_assert(crypto_aead_aes256gcm_NPUBBYTES == NONCE &&
                   crypto_aead_chacha20poly1305_IETF_NPUBBYTES == NONCE,
               "the same nonce for both ciphers");
_Static_assert(crypto_aead_aes256gcm_ABYTES == SEAL_TAG &&
                   crypto_aead_chacha20poly1305_IETF_ABYTES == SEAL_TAG,
               "the same tag for both ciphers");
_Static_assert(crypto_aead_aes256gcm_KEYBYTES == SEAL_KEY &&
                   crypto_aead_chacha20poly1305_IETF_KEYBYTES == SEAL_KEY,
               "the same key for both ciphers");

const char *seal_mode_name(unsigned mode)
{
    static const char *const names[SEAL_MODES] = {"none", "authentic", "secret"};

    return mode < SEAL_MODES ? names[mode] : "?";
}

bool seal_has_aes(void)
{
    return crypto_aead_aes256gcm_is_available() == 1;
}

static crypto_aead_aes256gcm_state *schedule_of(struct seal *seal)
{
    return (crypto_aead_aes256gcm_state *)(void *)seal->schedule;
}

static void expand(struct seal *seal)
{
    if (seal->aes)
        crypto_aead_aes256gcm_beforenm(schedule_of(seal), seal->key);
}

void seal_begin(struct seal *seal, enum seal_mode mode, bool aes, const unsigned char key[SEAL_KEY])
{
    memcpy(seal->key, key, SEAL_KEY);
    seal->number = 0;
    seal->mode = mode;
    seal->aes = aes;
    expand(seal);
}

void seal_end(struct seal *seal)
{
    sodium_memzero(seal, sizeof(*seal));
}

/* The number of the record; now and then with a new key, from which the old one does not follow. */
static void next_nonce(struct seal *seal, unsigned char nonce[NONCE])
{
    static const unsigned char label[] = "rondo next key";
    uint64_t number = seal->number++;

    if (number && number % SEAL_RENEW == 0) {
        unsigned char old[SEAL_KEY];

        memcpy(old, seal->key, SEAL_KEY);
        crypto_generichash(seal->key, SEAL_KEY, label, sizeof(label), old, SEAL_KEY);
        sodium_memzero(old, sizeof(old));
        expand(seal);
    }
    memset(nonce, 0, NONCE);
    for (int i = 0; i < 8; i++)
        nonce[i] = (unsigned char)(number >> (8 * i));
}

void seal_close(struct seal *seal, const void *bytes, size_t count, void *ret_bytes,
                unsigned char ret_tag[SEAL_TAG])
{
    bool secret = seal->mode == SEAL_SECRET;
    const unsigned char *hidden = secret ? bytes : NULL, *shown = secret ? NULL : ret_bytes;
    size_t hidden_bytes = secret ? count : 0, shown_bytes = secret ? 0 : count;
    unsigned char nonce[NONCE];

    next_nonce(seal, nonce);
    /* The tag is made of the copy: the caller's memory may be changing. */
    if (!secret && ret_bytes != bytes)
        memcpy(ret_bytes, bytes, count);
    if (seal->aes)
        crypto_aead_aes256gcm_encrypt_detached_afternm(ret_bytes, ret_tag, NULL, hidden,
                                                       hidden_bytes, shown, shown_bytes, NULL,
                                                       nonce, schedule_of(seal));
    else
        crypto_aead_chacha20poly1305_ietf_encrypt_detached(ret_bytes, ret_tag, NULL, hidden,
                                                           hidden_bytes, shown, shown_bytes, NULL,
                                                           nonce, seal->key);
}

bool seal_open(struct seal *seal, void *bytes, size_t count, const unsigned char tag[SEAL_TAG])
{
    bool secret = seal->mode == SEAL_SECRET;
    const unsigned char *shown = secret ? NULL : bytes;
    size_t hidden_bytes = secret ? count : 0, shown_bytes = secret ? 0 : count;
    unsigned char nonce[NONCE];

    next_nonce(seal, nonce);
    if (seal->aes)
        return !crypto_aead_aes256gcm_decrypt_detached_afternm(
            bytes, NULL, bytes, hidden_bytes, tag, shown, shown_bytes, nonce, schedule_of(seal));
    return !crypto_aead_chacha20poly1305_ietf_decrypt_detached(
        bytes, NULL, bytes, hidden_bytes, tag, shown, shown_bytes, nonce, seal->key);
}
