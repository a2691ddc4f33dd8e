/* SPDX-License-Identifier: BSD-3-Clause */
/* choice.c - see choice.h. */
#include "comm/state/choice.h"

#include "base/collective.h"

/* Murmur's finalizer: every bit of the input moves every bit of the output. */
uint64_t choice_mix(uint64_t value)
{
    value = (value ^ value >> 33) * 0xff51afd7ed558ccdu;
    value = (value ^ value >> 33) * 0xc4ceb9fe1a85ec53u;
    return value ^ value >> 33;
}

uint64_t choice_hash(const struct choice_key *key)
{
    bool pair = collective_is_pair(key->collective);
    uint64_t small = (uint64_t)(pair ? RONDO_SEND : key->collective) << 56 |
                     (uint64_t)key->type << 48 | (uint64_t)(uint16_t)choice_op(key) << 32 |
                     (pair ? 0 : (uint32_t)key->root);

    return choice_mix(small + choice_mix(key->count + 0x9e3779b97f4a7c15u));
}

uint32_t choice_fingerprint(const struct choice_key *key)
{
    return (uint32_t)choice_hash(key);
}

uint32_t choice_name_hash(const char *name)
{
    uint64_t hash = 0;

    for (; *name; name++)
        hash = choice_mix(hash + (unsigned char)*name);
    return (uint32_t)hash;
}
