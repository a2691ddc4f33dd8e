/* SPDX-License-Identifier: BSD-3-Clause */
/* settings.c - the configuration of a communicator: what the
 * caller set, else the environment, else the default. */
#include "comm/open.h"
#include "comm/state/comm.h"

#include "base/fail.h"
#include "base/setting.h"
#include "collectives/file/file.h"
#include "comm/gpu/gpu.h"
#include "comm/rendezvous/host.h"
#include "transport/link/seal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    SLOT_BYTES_MIN = 1024,
    SLOT_BYTES_MAX = 1 << 30,
    SLOTS_MIN = 2,
    SLOTS_MAX = 1024,
    SEVERAL_RANKS = 8,
    MANY_RANKS = 128,
    LEAST_FITTING = 16384,
    LEAST_OF_LARGE = 4096,   /* so that hundreds of ranks find room in one heap */
    LEAST_ON_NETWORK = 65536 /* shorter messages cost a network more time than their bytes */
};

/* Rings are touched by every pair of ranks: with many
 * ranks, smaller slots keep the sum in bounds. */
static size_t fitting_slot_bytes(size_t wanted, int size)
{
    size_t bytes = size > SEVERAL_RANKS ? wanted * SEVERAL_RANKS / (size_t)size : wanted;
    size_t least = size > MANY_RANKS ? LEAST_OF_LARGE : LEAST_FITTING;

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

/* "file:" and a path: the plans of that file. */
static rondo_result load_plans(const char *path, int size, const char **ret_name)
{
    const struct algorithm *algorithm;
    rondo_result result = file_algorithm(path, &algorithm);

    if (result)
        return result;
    if (algorithm->given->size != size)
        return rondo_fail(RONDO_ERROR_INVALID,
                          "The plan in %s (RONDO_ALGORITHM or the configuration) is for %d ranks, "
                          "the communicator has %d.",
                          path, algorithm->given->size, size);
    *ret_name = algorithm->name;
    return RONDO_OK;
}

static rondo_result read_algorithm(const rondo_config *config, int size,
                                   struct comm_settings *settings)
{
    static const char file[] = "file:";
    const char *name = config->algorithm ? config->algorithm : setting_read_word(SETTING_ALGORITHM);
    rondo_result result = RONDO_OK;

    if (strncmp(name, file, strlen(file)) == 0 && !algorithm_find(name))
        result = load_plans(name + strlen(file), size, &name);
    if (result)
        return result;
    if (!*name)
        name = "auto";
    settings->automatic = strcmp(name, "auto") == 0;
    if (!settings->automatic && !algorithm_find(name))
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
    const char *word = setting_read_word(SETTING_TRANSPORT);
    const struct transport_ops *transport = transport_find(word);

    snprintf(settings->transport, sizeof(settings->transport), "%s", word);
    settings->forced = transport && transport->open;
    settings->networked = settings->forced || (strcmp(word, "auto") == 0 && host_may_be_hidden());
    return transport ? RONDO_OK : setting_check(SETTING_TRANSPORT);
}

/* The network that may be used between hosts. */
static rondo_result read_network(const rondo_config *config, struct comm_settings *settings)
{
    const struct transport_ops *network;

    memcpy(settings->between, settings->transport, sizeof(settings->between));
    if (!config->network || strcmp(config->network, settings->transport) == 0)
        return RONDO_OK;
    network = transport_find(config->network);
    if (!network || !network->open)
        return rondo_fail(RONDO_ERROR_INVALID,
                          "There is no network \"%s\" (of the configuration); there are tcp and "
                          "verbs.",
                          config->network);
    if (settings->forced)
        return rondo_fail(RONDO_ERROR_INVALID,
                          "The configuration wants the network %s and RONDO_TRANSPORT=%s allows "
                          "that one alone: leave one of them away.",
                          config->network, settings->transport);
    if (strcmp(settings->transport, "auto") == 0)
        snprintf(settings->between, sizeof(settings->between), "%s", network->name);
    return RONDO_OK;
}

/* The wishes that each rank has for itself. */
static rondo_result read_own(const rondo_config *config, struct comm_settings *settings)
{
    if (config->traffic_class < 0 || config->traffic_class > UINT8_MAX)
        return rondo_fail(RONDO_ERROR_INVALID,
                          "The traffic class of the configuration is %d; it may be 1 to 255, or 0 "
                          "for the system's.",
                          config->traffic_class);
    if (config->min_blocks < 0 || config->max_blocks < 0 ||
        (config->max_blocks && config->min_blocks > config->max_blocks))
        return rondo_fail(RONDO_ERROR_INVALID,
                          "The configuration wants kernels of %d to %d blocks; the first must not "
                          "be more than the second, and neither below 0.",
                          config->min_blocks, config->max_blocks);
    settings->traffic_class = config->traffic_class;
    settings->min_blocks = (unsigned)config->min_blocks;
    settings->max_blocks = (unsigned)config->max_blocks;
    return RONDO_OK;
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
    rondo_result result = read_choice(SETTING_CMA, &settings->reads);

    return result ? result : read_choice(SETTING_STREAM, &settings->streams);
}

/* RONDO_COSTS, for repeatable choices. */
static rondo_result read_costs(struct link_costs *costs)
{
    const char *text = setting_read_word(SETTING_COSTS);

    if (*text && !costs_read(text, costs))
        return rondo_fail(RONDO_ERROR_INVALID,
                          "RONDO_COSTS is \"%s\"; it must be three positive numbers, "
                          "\"latency_us,copy_GBps,reduce_GBps\", or with two or three more for "
                          "what goes from group to group, \",latency_us,GBps,rails\".",
                          text);
    return RONDO_OK;
}

static rondo_result read_uniform(const rondo_config *config, int size,
                                 struct comm_settings *settings)
{
    rondo_result result = RONDO_OK;

    settings->uniform = config->uniform > 0;
    if (config->uniform < 0)
        result = setting_read_bool(SETTING_UNIFORM, &settings->uniform);
    if (result || !settings->uniform || size <= VOTE_RANKS)
        return result;
    return rondo_fail(RONDO_ERROR_UNSUPPORTED,
                      "The same result of a call on all ranks (`uniform`, RONDO_UNIFORM) is for up "
                      "to %d ranks, and the communicator has %d: leave it away.",
                      VOTE_RANKS, size);
}

int comm_choose_device(const rondo_config *config)
{
    return config->cuda_device == -1 ? gpu_current() : config->cuda_device;
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
    result = read_algorithm(config, size, &settings);
    if (!result)
        result = read_slots(config, size, &settings);
    if (!result)
        result = read_paths(&settings);
    if (!result)
        result = read_costs(&settings.costs);
    settings.groups = setting_read_word(SETTING_GROUPS);
    if (!result)
        result = read_transport(&settings);
    if (!result)
        result = read_network(config, &settings);
    if (!result)
        result = read_own(config, &settings);
    if (!result)
        result = read_security(&settings);
    settings.cuda_device = comm_choose_device(config);
    settings.deterministic = config->deterministic > 0;
    if (!result && config->deterministic < 0)
        result = setting_read_bool(SETTING_DETERMINISTIC, &settings.deterministic);
    if (!result)
        result = read_uniform(config, size, &settings);
    settings.copy_engines = config->copy_engines > 0;
    if (!result && config->copy_engines < 0)
        result = setting_read_bool(SETTING_COPY_ENGINES, &settings.copy_engines);
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
        result = setting_read_seconds(SETTING_LATE, &settings.late);
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

uint32_t comm_settings_hash(const struct comm_settings *settings, char ret_text[ENDPOINT_SETTINGS])
{
    const struct link_costs *costs = &settings->costs;

    memset(ret_text, 0, ENDPOINT_SETTINGS);
    snprintf(ret_text, ENDPOINT_SETTINGS,
             "RONDO_DETERMINISTIC=%d RONDO_UNIFORM=%d RONDO_COPY_ENGINES=%d RONDO_TRANSPORT=%s "
             "network=%s RONDO_ALGORITHM=%s RONDO_SLOT_BYTES=%zu RONDO_SLOTS=%d "
             "RONDO_COSTS=%g,%g,%g,%g,%g,%d RONDO_GROUPS=%s",
             settings->deterministic, settings->uniform, settings->copy_engines,
             settings->transport, settings->between, settings->algorithm, settings->slot_bytes,
             settings->slots, costs->latency, costs->copy_bw, costs->reduce_bw,
             costs->across.latency, costs->across.bandwidth, costs->across.rails, settings->groups);
    return hash_text(hash_text(2166136261u, ret_text), settings->groups);
}

/* Takes the next word off a text that another rank has sent. */
static void take_word(const char **at, const char *end, char ret_word[ENDPOINT_SETTINGS])
{
    size_t length = 0;

    for (; *at < end && **at && **at != ' '; (*at)++)
        ret_word[length++] = **at > ' ' && **at <= '~' ? **at : '?';
    ret_word[length] = '\0';
    if (*at < end && **at)
        (*at)++;
}

void comm_settings_compare(const char one[ENDPOINT_SETTINGS], const char other[ENDPOINT_SETTINGS],
                           char ret_one[ENDPOINT_SETTINGS], char ret_other[ENDPOINT_SETTINGS])
{
    const char *at = one, *there = other;

    do {
        take_word(&at, one + ENDPOINT_SETTINGS - 1, ret_one);
        take_word(&there, other + ENDPOINT_SETTINGS - 1, ret_other);
    } while ((*ret_one || *ret_other) && strcmp(ret_one, ret_other) == 0);
}
