/* SPDX-License-Identifier: BSD-3-Clause */
/* test_verbs_open.c - the transport before there are links: who can be linked, and how. */
#include "base/fail.h"
#include "tests/transport/verbs/fake_verbs.h"
#include "tests/transport/verbs/verbs_nodes.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/resource.h>

static void begin(void)
{
    fake_verbs_open(1);
}

static void end(void)
{
    cr_expect_eq(fake.living, 0, "%d objects of the adapter are lost", fake.living);
    fake_verbs_close();
}

TestSuite(verbs_open, .init = begin, .fini = end);

static bool reaches(const struct verbs_endpoint *own, const struct verbs_endpoint *peer,
                    const char **why)
{
    const struct transport_pair pair = {.own_part = own, .peer_part = peer};

    return verbs_transport.can_connect(&pair, why);
}

Test(verbs_open, who_reaches_whom)
{
    struct verbs_endpoint with = {.rails = 1, .ethernet = 1, .version = 1}, other = with;
    const char *why = "";

    cr_expect(reaches(&with, &other, &why));
    other.ethernet = 0;
    cr_expect(!reaches(&with, &other, &why));
    other = (struct verbs_endpoint){.rails = 0};
    cr_expect(!reaches(&with, &other, &why) && strstr(why, "no RDMA"));
    other = with;
    other.version = 2;
    cr_expect(!reaches(&with, &other, &why));
}

/* True if another communicator wants them, when they take so many bytes per peer. */
static bool wants_long_slots(size_t bytes)
{
    const struct network_wish wish = {.long_rings = bytes};
    struct verbs_endpoint endpoint = {0};
    struct network *network;

    cr_assert(verbs_transport.open(&wish, &endpoint, &network) == RONDO_OK, "%s", fail_sentence());
    network->ops->close(network);
    return verbs_transport.length(&endpoint, &endpoint) == LINK_LONG;
}

Test(verbs_open, long_slots_are_wanted_of_the_kernel_if_memory_may_be_locked)
{
    struct rlimit limit = {0};

    cr_assert(getrlimit(RLIMIT_MEMLOCK, &limit) == 0);
    limit.rlim_cur = limit.rlim_max < 65536 ? limit.rlim_max : 65536;
    cr_assert(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
    cr_expect(wants_long_slots(limit.rlim_cur / 2));
    cr_expect(!wants_long_slots(limit.rlim_cur / 2 + 1));
}

Test(verbs_open, an_adapter_with_hardware_wants_no_long_slots)
{
    fake_verbs_close();
    fake_verbs_open_hard(1);
    cr_expect(!wants_long_slots(1));
}

Test(verbs_open, protected_data_does_not_go_over_adapters)
{
    const struct network_wish wish = {.must = true, .security = SEAL_SECRET};
    struct verbs_endpoint endpoint = {0};
    struct network *network = NULL;

    cr_expect(verbs_transport.open(&wish, &endpoint, &network) == RONDO_ERROR_UNSUPPORTED);
    cr_expect(strstr(fail_sentence(), "RONDO_SECURITY=secret"), "%s", fail_sentence());
    cr_expect_null(network);
}
