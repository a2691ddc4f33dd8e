/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * settings.c - the environment as users write it: lines NAME=VALUE. All RONDO_ variables, and what
 * is made of their words: sizes, seconds, costs, groups, interfaces (base/setting_read.c,
 * comm/settings.c, collectives/levels/grouping_text.c, base/net/address.c).
 */
#include "tests/fuzz/fuzz.h"

#include "base/fail.h"
#include "base/net/address.h"
#include "base/setting.h"
#include "collectives/levels/grouping.h"
#include "comm/open.h"
#include "comm/rendezvous/socket.h"
#include "comm/state/comm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void read_each(void)
{
    bool truth;
    long whole;
    double seconds;
    size_t bytes;

    for (int id = 0; id < SETTINGS; id++) {
        const struct setting *setting = setting_at((enum setting_id)id);

        if (setting_check((enum setting_id)id))
            fuzz_expect(strstr(fail_sentence(), setting->name), "the sentence names the setting");
        else if (setting->type == SETTING_BOOL)
            fuzz_expect(!setting_read_bool((enum setting_id)id, &truth), "what is checked reads");
        else if (setting->type == SETTING_INT)
            fuzz_expect(!setting_read_int((enum setting_id)id, &whole), "what is checked reads");
        else if (setting->type == SETTING_SIZE)
            fuzz_expect(!setting_read_size((enum setting_id)id, &bytes), "what is checked reads");
        else if (setting->type == SETTING_SECONDS)
            fuzz_expect(!setting_read_seconds((enum setting_id)id, &seconds) && isfinite(seconds),
                        "seconds are a number");
    }
}

static void read_groups(const char *text, int size)
{
    struct grouping *groups = NULL;
    char described[64];

    if (grouping_text_size(text) < 0 || grouping_parse(text, size, &groups))
        return;
    if (groups)
        grouping_describe(groups, described, sizeof(described));
    grouping_close(groups);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct fuzz_input input = {bytes, bytes + count};
    int size = 1 + (int)fuzz_byte(&input);
    char *lines = fuzz_text(&input, '\0');
    struct comm_settings settings;
    struct net_addresses addresses;
    char text[ENDPOINT_SETTINGS];

    fuzz_environment(lines);
    read_each();
    if (!comm_read_settings(NULL, size, &settings))
        (void)comm_settings_hash(&settings, text);
    else
        fuzz_expect(*fail_sentence(), "an error has a sentence");
    read_groups(setting_read_word(SETTING_GROUPS), size);
    (void)!net_addresses_find(&addresses);
    (void)!socket_address_check(setting_read_word(SETTING_ADDRESS));
    fuzz_environment(NULL);
    free(lines);
    return 0;
}
