/* SPDX-License-Identifier: BSD-3-Clause */
/* settings.c - the configuration of a communicator: what the
 * caller set, else the environment, else the default. */
#include "comm/open.h"
#include "comm/state/comm.h"

#include "base/fail.h"
#include "base/setting.h"
#include "comm/gpu/gpu.h"
#include "transport/link/seal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    SLOT_BYTES_MIN = 1024,
    SLOT_BYTES_MAX = 1 << 30,
    SLOTS_MIN = 2,
    SLOTS_MAX = 1024,
    CROWD = 8,
    LARGE_CROWD = 128,
    LEAST_FITTING = 16384,
    LEAST_OF_LARGE = 4096,   /* so that hundreds of ranks find room in one heap */
    LEAST_ON_NETWORK = 65536 /* shorter messages cost a network more time than their bytes */
};

/* Rings are touched by every pair of ranks: with many
 * ranks, smaller slots keep the sum in bounds. */
static size_t fitting_slot_bytes(size_t wanted, int size)
{
    size_t bytes = size > CROWD ? wanted * CROWD / (size_t)size : wanted;
    size_t least = size > LARGE_CROWD ? LEAST_OF_LARGE : LEAST_FITTING;

    bytes -= bytes % 64;
    return bytes < least ? least : bytes;
}

void comm_settings_expect_hosts(struct comm_settings *settings)
{
    if (strcmp(settings->transport, "auto") != 0)
        return;
    settings->networked = true;
    if (settings->fitted && settings->slot_bytes < LEAST_ON_NETWORK)
        settings->slot_bytes = LEAST_ON_NETWORK;
}

static rondo_result read_slots(const rondo_config *config, int size, struct comm_settings *settings)
{
    long slots = config->slots;
    rondo_result result = RONDO_OK;

    settings->slot_bytes = config->slot_bytes;
    if (!settings->slot_bytes) {
        result = setting_read_size(SETTING_SLOT_BYTES, &settings->slot_bytes);
        settings->fitted = !setting_is_set(SETTING_SLOT_BYTES);
        if (!result && settings->fitted)
            settings->slot_bytes = fitting_slot_bytes(settings->slot_bytes, size);
    }
    if (!result && !slots)
        result = setting_read_int(SETTING_SLOTS, &slots);
    if (result)
        return result;
    if (settings->slot_bytes < SLOT_BYTES_MIN || settings->slot_bytes > SLOT_BYTES_MAX ||
        slots < SLOTS_MIN || slots > SLOTS_MAX)
        return rondo_fail(RONDO_ERROR_INVALID,
                          "Slots must have %d to %d bytes and there must be %d to %d of them; "
                          "%ld slots of %zu bytes were asked for (RONDO_SLOTS, RONDO_SLOT_BYTES).",
                          SLOT_BYTES_MIN, SLOT_BYTES_MAX, SLOTS_MIN, SLOTS_MAX, slots,
                          settings->slot_bytes);
    settings->slots = (int)slots;
    return RONDO_OK;
}

static rondo_result read_algorithm(const rondo_config *config, struct comm_settings *settings)
{
    const char *name = config->algorithm ? config->algorithm : setting_read_word(SETTING_ALGORITHM);

    if (!*name)
        name = "auto";
    if (strcmp(name, "auto") != 0 && !algorithm_find(name))
        return rondo_fail(RONDO_ERROR_INVALID,
                          "There is no algorithm \"%s\" (RONDO_ALGORITHM or the configuration); "
                          "`rondo explain --list` names them.",
                          name);
    snprintf(settings->algorithm, sizeof(settings->algorithm), "%s", name);
    return RONDO_OK;
}

/* A word that is yes, no, or left to a measurement: 1, 0, -1. */
static rondo_result read_choice(enum setting_id id, int *ret_choice)
{
    const char *word = setting_read_word(id);

    if (strcmp(word, "on") != 0 && strcmp(word, "off") != 0 && strcmp(word, "auto") != 0)
        return rondo_fail(RONDO_ERROR_INVALID, "%s is \"%s\"; it may be auto, on or off.",
                          setting_at(id)->name, word);
    *ret_choice = strcmp(word, "auto") == 0 ? -1 : strcmp(word, "on") == 0;
    return RONDO_OK;
}

static rondo_result read_transport(struct comm_settings *settings)
{
    rondo_result result = setting_check(SETTING_TRANSPORT);

    snprintf(settings->transport, sizeof(settings->transport), "%s",
             setting_read_word(SETTING_TRANSPORT));
    settings->networked =
        strcmp(settings->transport, "auto") != 0 && strcmp(settings->transport, "shm") != 0;
    return result;
}

static rondo_result read_security(struct comm_settings *settings)
{
    rondo_result result = setting_check(SETTING_SECURITY);
    const char *word = setting_read_word(SETTING_SECURITY);

    settings->security = SEAL_NONE;
    while (!result && strcmp(word, seal_mode_name(settings->security)) != 0)
        settings->security++;
    return result;
}

static rondo_result read_paths(struct comm_settings *settings)
{
    int reads = 0;
    rondo_result result = read_choice(SETTING_CMA, &reads);

    settings->reads_across = reads > 0;
    settings->measure_reads = reads < 0;
    return result ? result : read_choice(SETTING_STREAM, &settings->streams);
}

rondo_result comm_read_settings(const rondo_config *config, int size,
                                struct comm_settings *ret_settings)
{
    static const rondo_config unset = RONDO_CONFIG_INIT;
    struct comm_settings settings = {0};
    rondo_result result;

    setting_warn_of_strangers();
    if (!config)
        config = &unset;
    if (config->struct_size != sizeof(*config))
        return rondo_fail(RONDO_ERROR_INVALID,
                          "A rondo_config must begin as RONDO_CONFIG_INIT; this one says it has "
                          "%zu bytes instead of %zu.",
                          config->struct_size, sizeof(*config));
    result = read_algorithm(config, &settings);
    if (!result)
        result = read_slots(config, size, &settings);
    if (!result)
        result = read_paths(&settings);
    if (!result)
        result = read_transport(&settings);
    if (!result)
        result = read_security(&settings);
    settings.cuda_device = config->cuda_device >= 0 ? config->cuda_device : gpu_current();
    settings.deterministic = config->deterministic > 0;
    if (!result && config->deterministic < 0)
        result = setting_read_bool(SETTING_DETERMINISTIC, &settings.deterministic);
    settings.timeout = config->timeout;
    if (!result && !isfinite(config->timeout))
        result = rondo_fail(RONDO_ERROR_INVALID,
                            "The timeout of the configuration is no number of seconds (%g); 0 "
                            "waits for ever.",
                            config->timeout);
    if (!result && config->timeout < 0)
        result = setting_read_seconds(SETTING_TIMEOUT, &settings.timeout);
    if (!result)
        result = setting_read_seconds(SETTING_SPIN, &settings.spin);
    if (!result)
        *ret_settings = settings;
    return result;
}

/* FNV-1a: short, and only to tell different from equal. */
static uint32_t hash_text(uint32_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    return hash;
}

uint32_t comm_settings_hash(const struct comm_settings *settings)
{
    char text[320];

    snprintf(text, sizeof(text), "%d %s %s %zu %d %s", settings->deterministic, settings->transport,
             settings->algorithm, settings->slot_bytes, settings->slots,
             setting_read_word(SETTING_COSTS));
    return hash_text(hash_text(2166136261u, text), setting_read_word(SETTING_GROUPS));
}
