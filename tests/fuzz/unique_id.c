/* SPDX-License-Identifier: BSD-3-Clause */
/* unique_id.c - an id that came from anywhere, also one with a right check over any bytes
 * (comm/rendezvous/id.c, socket.c). */
#include "tests/fuzz/fuzz.h"

#include "comm/rendezvous/bootstrap.h"
#include "comm/rendezvous/socket.h"
#include "comm/rendezvous/wire.h"

#include <string.h>

enum { ADDRESS = 8, CHECK = 120 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct fuzz_input input = {bytes, bytes + count};
    unsigned options = fuzz_byte(&input);
    unsigned char hash[WIRE_HASH];
    rondo_unique_id id;
    struct bootstrap_place place;

    _Static_assert(sizeof(id) == 128, "magic, address, secret, check");
    fuzz_bytes(&input, &id, sizeof(id));
    if (options & 1)
        memcpy(&id, (unsigned char[]){'r', 'o', 'n', 'd', 'o', 'i', 'd', WIRE_VERSION}, ADDRESS);
    if (options & 2) {
        fuzz_expect(!wire_init(), "libsodium starts");
        wire_hash(&id, CHECK, hash);
        memcpy((char *)&id + CHECK, hash, sizeof(id) - CHECK);
    }
    if (!bootstrap_id_read(&id, &place)) {
        fuzz_expect(memchr(place.address, '\0', sizeof(place.address)), "an address has an end");
        fuzz_expect(!socket_address_check(place.address), "an id's address can be used");
    }
    return 0;
}
