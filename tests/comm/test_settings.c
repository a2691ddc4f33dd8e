/* SPDX-License-Identifier: BSD-3-Clause */
/* test_settings.c - the configuration of a communicator:
 * precedence, refusals, and what must agree. */
#include "base/fail.h"
#include "comm/open.h"
#include "comm/state/comm.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct comm_settings read_settings(const rondo_config *config, int size)
{
    struct comm_settings settings;

    cr_assert(comm_read_settings(config, size, &settings) == RONDO_OK, "%s", fail_sentence());
    return settings;
}

static uint32_t hash(const struct comm_settings *settings)
{
    char text[ENDPOINT_SETTINGS];

    return comm_settings_hash(settings, text);
}

Test(settings, have_the_documented_defaults)
{
    struct comm_settings settings = read_settings(NULL, 4);

    cr_expect(settings.slot_bytes == 128 << 10 && settings.slots == 8);
    cr_expect(settings.timeout == 300 && settings.spin == -1 && !settings.deterministic);
    cr_expect(settings.reads == -1 && settings.automatic && !settings.uniform);
    cr_expect_str_eq(settings.algorithm, "auto");
}

Test(settings, the_configuration_comes_before_the_environment_and_that_before_defaults)
{
    rondo_config config = RONDO_CONFIG_INIT;
    struct comm_settings settings;

    setenv("RONDO_ALGORITHM", "ring", 1);
    setenv("RONDO_SLOTS", "5", 1);
    setenv("RONDO_SLOT_BYTES", "64K", 1);
    setenv("RONDO_TIMEOUT", "7.5", 1);
    setenv("RONDO_DETERMINISTIC", "1", 1);
    setenv("RONDO_SPIN", "0.25", 1);
    setenv("RONDO_CMA", "on", 1);
    settings = read_settings(&config, 64);
    cr_expect_str_eq(settings.algorithm, "ring");
    cr_expect(settings.slots == 5 && settings.slot_bytes == 64 << 10, "also for many ranks");
    cr_expect(settings.timeout == 7.5 && settings.deterministic && settings.spin == 0.25);
    cr_expect(settings.reads == 1 && !settings.automatic);
    config = (rondo_config){sizeof(config), 0, "direct", 4096, 3, 0, -1, NULL, 0, 0, 0, -1, -1};
    settings = read_settings(&config, 64);
    cr_expect_str_eq(settings.algorithm, "direct");
    cr_expect(settings.slots == 3 && settings.slot_bytes == 4096);
    cr_expect(settings.timeout == 0 && !settings.deterministic);
}

Test(settings, slots_shrink_when_there_are_many_ranks_but_not_below_4_kib)
{
    size_t last = SIZE_MAX;

    for (int size = 1; size <= 1000; size = size * 2 + 1) {
        struct comm_settings settings = read_settings(NULL, size);

        cr_expect(settings.slot_bytes <= last && settings.slot_bytes >= 4096);
        cr_expect(settings.slot_bytes % 64 == 0);
        last = settings.slot_bytes;
    }
    cr_expect(last == 4096);
}

Test(settings, a_network_is_of_ranks_on_different_hosts)
{
    rondo_config config = RONDO_CONFIG_INIT;
    struct comm_settings any = read_settings(&config, 4), tcp;

    config.network = "tcp";
    tcp = read_settings(&config, 4);
    cr_expect_str_eq(any.between, "auto");
    cr_expect_str_eq(tcp.between, "tcp");
    cr_expect(strcmp(tcp.transport, "auto") == 0 && !tcp.forced, "not within a host");
    cr_expect(hash(&any) != hash(&tcp), "ranks have to agree");
    setenv("RONDO_TRANSPORT", "shm", 1);
    cr_expect_str_eq(read_settings(&config, 4).between, "shm");
    setenv("RONDO_TRANSPORT", "verbs", 1);
    cr_expect(comm_read_settings(&config, 4, &any) == RONDO_ERROR_INVALID);
    cr_expect(strstr(fail_sentence(), "RONDO_TRANSPORT=verbs"), "%s", fail_sentence());
}

static void expect_refused(const rondo_config *config, const char *word)
{
    struct comm_settings settings = {.slots = 77};

    fail_clear();
    cr_expect(comm_read_settings(config, 4, &settings) == RONDO_ERROR_INVALID, "%s", word);
    cr_expect(strstr(fail_sentence(), word), "%s is not in: %s", word, fail_sentence());
    cr_expect(settings.slots == 77, "outputs are written on success only");
}

Test(settings, every_invalid_field_of_a_configuration_gives_a_sentence)
{
    static const struct {
        rondo_config config;
        const char *word;
    } wrong[] = {
        {{8, -1, NULL, 0, 0, -1, -1, NULL, 0, 0, 0, -1, -1}, "RONDO_CONFIG_INIT"},
        {{0, -1, NULL, 0, 0, -1, -1, NULL, 0, 0, 0, -1, -1}, "RONDO_CONFIG_INIT"},
        {{sizeof(rondo_config), -1, "no-such", 0, 0, -1, -1, NULL, 0, 0, 0, -1, -1}, "no-such"},
        {{sizeof(rondo_config), -1, NULL, 1023, 0, -1, -1, NULL, 0, 0, 0, -1, -1}, "1023"},
        {{sizeof(rondo_config), -1, NULL, SIZE_MAX, 0, -1, -1, NULL, 0, 0, 0, -1, -1},
         "RONDO_SLOT_BYTES"},
        {{sizeof(rondo_config), -1, NULL, ((size_t)1 << 30) + 1, 0, -1, -1, NULL, 0, 0, 0, -1, -1},
         "RONDO_SLOT_BYTES"},
        {{sizeof(rondo_config), -1, NULL, 0, 1, -1, -1, NULL, 0, 0, 0, -1, -1}, "RONDO_SLOTS"},
        {{sizeof(rondo_config), -1, NULL, 0, -1, -1, -1, NULL, 0, 0, 0, -1, -1}, "RONDO_SLOTS"},
        {{sizeof(rondo_config), -1, NULL, 0, 1025, -1, -1, NULL, 0, 0, 0, -1, -1}, "RONDO_SLOTS"},
        {{sizeof(rondo_config), -1, NULL, 0, 0, NAN, -1, NULL, 0, 0, 0, -1, -1}, "timeout"},
        {{sizeof(rondo_config), -1, NULL, 0, 0, INFINITY, -1, NULL, 0, 0, 0, -1, -1}, "timeout"},
        {{sizeof(rondo_config), -1, NULL, 0, 0, -1, -1, "pigeon", 0, 0, 0, -1, -1},
         "network \"pigeon\""},
        {{sizeof(rondo_config), -1, NULL, 0, 0, -1, -1, "shm", 0, 0, 0, -1, -1}, "network \"shm\""},
        {{sizeof(rondo_config), -1, NULL, 0, 0, -1, -1, NULL, 256, 0, 0, -1, -1}, "traffic class"},
        {{sizeof(rondo_config), -1, NULL, 0, 0, -1, -1, NULL, -1, 0, 0, -1, -1}, "traffic class"},
        {{sizeof(rondo_config), -1, NULL, 0, 0, -1, -1, NULL, 0, 3, 2, -1, -1}, "3 to 2 blocks"},
        {{sizeof(rondo_config), -1, NULL, 0, 0, -1, -1, NULL, 0, 0, -2, -1, -1}, "-2 blocks"},
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        expect_refused(&wrong[i].config, wrong[i].word);
}

Test(settings, a_uniform_result_is_for_as_many_ranks_as_can_vote)
{
    rondo_config config = RONDO_CONFIG_INIT;
    struct comm_settings settings;

    config.uniform = 1;
    cr_expect(read_settings(&config, VOTE_RANKS).uniform);
    cr_expect(comm_read_settings(&config, VOTE_RANKS + 1, &settings) == RONDO_ERROR_UNSUPPORTED);
    cr_expect(strstr(fail_sentence(), "RONDO_UNIFORM"), "%s", fail_sentence());
    setenv("RONDO_UNIFORM", "1", 1);
    config.uniform = -1;
    cr_expect(comm_read_settings(&config, VOTE_RANKS + 1, &settings) == RONDO_ERROR_UNSUPPORTED);
}

Test(settings, a_communicator_that_was_shrunk_keeps_them)
{
    rondo_config config = RONDO_CONFIG_INIT;
    struct comm_settings before, after;
    rondo_comm *comm, *shrunk;

    config.network = "tcp";
    config.traffic_class = 0x60;
    config.min_blocks = 2;
    config.max_blocks = 5;
    config.copy_engines = 1;
    cr_assert(rondo_comm_open_all(1, &config, &comm) == RONDO_OK, "%s", rondo_last_error(NULL));
    cr_assert(rondo_comm_shrink(comm, NULL, &shrunk) == RONDO_OK, "%s", rondo_last_error(comm));
    before = comm->settings;
    after = shrunk->settings;
    cr_expect(after.traffic_class == 0x60 && after.copy_engines);
    cr_expect(after.min_blocks == 2 && after.max_blocks == 5);
    cr_expect_str_eq(after.between, "tcp");
    cr_expect_eq(hash(&after), hash(&before), "a newcomer has to give the same");
    rondo_comm_close(shrunk);
    rondo_comm_close(comm);
}

Test(settings, every_invalid_variable_gives_a_sentence_with_its_name)
{
    static const char *const wrong[][2] = {
        {"RONDO_ALGORITHM", "pigeon"}, {"RONDO_SLOTS", "1"},       {"RONDO_SLOTS", "many"},
        {"RONDO_SLOTS", "1025"},       {"RONDO_SLOT_BYTES", "-1"}, {"RONDO_SLOT_BYTES", "300"},
        {"RONDO_SLOT_BYTES", "2G"},    {"RONDO_TIMEOUT", "-3"},    {"RONDO_TIMEOUT", "soon"},
        {"RONDO_SPIN", "nan"},         {"RONDO_CMA", "maybe"},     {"RONDO_DETERMINISTIC", "2"},
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        setenv(wrong[i][0], wrong[i][1], 1);
        expect_refused(NULL, wrong[i][0]);
        unsetenv(wrong[i][0]);
    }
}

Test(settings, an_empty_variable_or_name_is_as_good_as_none)
{
    rondo_config config = RONDO_CONFIG_INIT;

    setenv("RONDO_ALGORITHM", "", 1);
    setenv("RONDO_SLOTS", "", 1);
    config.algorithm = "";
    cr_expect_str_eq(read_settings(&config, 2).algorithm, "auto");
    cr_expect(read_settings(&config, 2).slots == 8);
}

Test(settings, the_first_one_that_differs_is_found_with_both_values)
{
    struct comm_settings settings = read_settings(NULL, 4), other = settings;
    char one[ENDPOINT_SETTINGS], two[ENDPOINT_SETTINGS];
    char word[ENDPOINT_SETTINGS], other_word[ENDPOINT_SETTINGS];

    comm_settings_hash(&settings, one);
    comm_settings_compare(one, one, word, other_word);
    cr_expect(!*word && !*other_word);
    strcpy(other.algorithm, "ring");
    other.slots = 4;
    comm_settings_hash(&other, two);
    comm_settings_compare(one, two, word, other_word);
    cr_expect_str_eq(word, "RONDO_ALGORITHM=auto");
    cr_expect_str_eq(other_word, "RONDO_ALGORITHM=ring");
    memset(two, 'x', sizeof(two)); /* nothing ends it */
    comm_settings_compare(one, two, word, other_word);
    cr_expect_eq(strlen(other_word), ENDPOINT_SETTINGS - 1);
}

Test(settings, what_ranks_must_agree_on_changes_the_hash_and_nothing_else_does)
{
    struct comm_settings settings = read_settings(NULL, 4), other = settings;

    other.timeout = 1;
    other.spin = 2;
    cr_expect(hash(&other) == hash(&settings));
    other.slots++;
    cr_expect(hash(&other) != hash(&settings));
    other = settings;
    other.slot_bytes += 64;
    cr_expect(hash(&other) != hash(&settings));
    other = settings;
    other.deterministic = true;
    cr_expect(hash(&other) != hash(&settings));
    other = settings;
    strcpy(other.algorithm, "ring");
    cr_expect(hash(&other) != hash(&settings));
}
