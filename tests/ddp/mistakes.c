/* SPDX-License-Identifier: BSD-3-Clause */
/* mistakes.c - what users do wrong: all ranks hear of it, and the next step works. */
#include "bodies.h"

#include <math.h>
#include <signal.h>
#include <string.h>

static double sum_of_pass_1(const struct toy *toy, const void *context, int parameter, size_t i)
{
    double all = 0;

    for (int rank = 0; rank < toy->size; rank++)
        all += toy_gradient(rank, 1, parameter, i);
    return all;
}

static rondo_result next_step_works(struct toy *toy)
{
    rondo_result result = rondo_ddp_zero_gradients(toy->ddp);

    if (!result)
        result = toy_pass(toy, 1, 1, true);
    if (!result)
        result = toy_check(toy, sum_of_pass_1, NULL);
    return toy_say(toy, result, "the next step");
}

/* One pass in which the last rank does something else with parameter 3. */
static rondo_result pass_with_mistake(struct toy *toy, rondo_result (*mistake)(struct toy *toy))
{
    rondo_result result = toy_say(toy, rondo_ddp_begin(toy->ddp, 1), "begin");

    for (int p = TOY_PARAMETERS - 1; p >= 0 && !result; p--) {
        if (p == 3 && toy->rank == toy->size - 1)
            result = mistake(toy);
        else if (p != TOY_FROZEN)
            result = toy_announce(toy, p, 1);
    }
    return result;
}

static rondo_result told_to_all(rondo_comm *comm, char *sentence, bool check_nan,
                                rondo_result (*mistake)(struct toy *toy), const char *word)
{
    char culprit[32] = "ank 0";
    struct toy *toy = toy_new(comm, false, sentence);
    rondo_ddp_config config = toy_config();
    rondo_result result;

    culprit[4] = (char)('0' + toy->size - 1);
    config.check_nan = check_nan;
    result = toy_open(toy, &config);
    for (int time = 0; time < 2 && !result; time++) {
        result = pass_with_mistake(toy, mistake);
        if (!result)
            result = toy_expect(toy, rondo_ddp_wait(toy->ddp), RONDO_ERROR_INVALID, culprit, word);
        if (!result)
            result = next_step_works(toy);
    }
    toy_free(toy);
    return result;
}

static rondo_result leave_out(struct toy *toy)
{
    return RONDO_OK;
}

rondo_result mistakes_missing_gradient(rondo_comm *comm, void *unused, char *sentence)
{
    return told_to_all(comm, sentence, false, leave_out,
                       "1 of 6 parameters in this pass: 'up.bias'");
}

static rondo_result announce_twice(struct toy *toy)
{
    rondo_result result = toy_announce(toy, 3, 1);

    return result ? result
                  : toy_expect(toy, rondo_ddp_gradient_ready(toy->ddp, 3), RONDO_ERROR_INVALID,
                               "'up.bias'", "twice");
}

rondo_result mistakes_twice(rondo_comm *comm, void *unused, char *sentence)
{
    return told_to_all(comm, sentence, false, announce_twice, "'up.bias' twice");
}

static rondo_result announce_nan(struct toy *toy)
{
    float *gradient = rondo_ddp_gradient(toy->ddp, 3);

    gradient[11] = NAN;
    return toy_announce(toy, 3, 1);
}

static rondo_result announce_infinity(struct toy *toy)
{
    float *gradient = rondo_ddp_gradient(toy->ddp, 3);

    gradient[16] = -INFINITY;
    return toy_announce(toy, 3, 1);
}

static void store_infinity(rondo_type type, void *at)
{
    const uint16_t half = 0x7c00, brain = 0x7f80;

    if (rondo_type_size(type) == 2)
        memcpy(at, type == RONDO_FLOAT16 ? &half : &brain, 2);
    else
        world_store(type, at, INFINITY);
}

/* One pass, in which parameter `bad` of rank 0 is infinite. */
static rondo_result pass_with_infinity(struct toy *toy, int bad)
{
    rondo_result result = rondo_ddp_begin(toy->ddp, 1);

    for (int p = 0; p < TOY_PARAMETERS && !result; p++) {
        if (p == bad && toy->rank == 0) {
            store_infinity(toy->parameters[p].type, rondo_ddp_gradient(toy->ddp, p));
            result = rondo_ddp_gradient_ready(toy->ddp, p);
        } else if (p != TOY_FROZEN) {
            result = toy_announce(toy, p, 1);
        }
    }
    return result ? result : rondo_ddp_wait(toy->ddp);
}

/* In each type; parameters 0, 1, 3 and 5 have four different ones. */
static rondo_result nan_of_all_types(rondo_comm *comm, char *sentence)
{
    static const int bad[] = {0, 1, 3, 5};
    struct toy *toy = toy_new(comm, true, sentence);
    rondo_ddp_config config = toy_config();
    rondo_result result;

    config.check_nan = 1;
    result = toy_open(toy, &config);
    for (int i = 0; i < 4 && !result; i++) {
        result = toy_say(toy, rondo_ddp_zero_gradients(toy->ddp), "zero");
        if (!result)
            result = toy_expect(toy, pass_with_infinity(toy, bad[i]), RONDO_ERROR_INVALID,
                                toy->parameters[bad[i]].name, "has inf at element 0");
    }
    toy_free(toy);
    return result;
}

rondo_result mistakes_nan(rondo_comm *comm, void *unused, char *sentence)
{
    rondo_result result =
        told_to_all(comm, sentence, true, announce_nan, "'up.bias' has nan at element 11");

    if (!result)
        result = told_to_all(comm, sentence, true, announce_infinity,
                             "'up.bias' has -inf at element 16");
    return result ? result : nan_of_all_types(comm, sentence);
}

/* Calls at the wrong time are refused where they are made, and change nothing. */
static rondo_result wrong_times(struct toy *toy)
{
    rondo_ddp *ddp = toy->ddp;
    rondo_result result, wrong = RONDO_ERROR_INVALID;

    if ((result = toy_expect(toy, rondo_ddp_wait(ddp), wrong, "not in a pass", "begin")) ||
        (result = toy_expect(toy, rondo_ddp_gradient_ready(ddp, 1), wrong, "'up.weight'",
                             "outside of a pass")) ||
        (result = toy_expect(toy, rondo_ddp_join(ddp, NULL, NULL), wrong, "join mode", "")) ||
        (result = toy_say(toy, rondo_ddp_begin(ddp, 1), "begin")) ||
        (result = toy_say(toy, rondo_ddp_begin(ddp, 1), "begin again")) ||
        (result = toy_expect(toy, rondo_ddp_gradient_ready(ddp, TOY_FROZEN), wrong, "'table'",
                             "frozen")) ||
        (result = toy_expect(toy, rondo_ddp_gradient_ready(ddp, -1), wrong, "-1", "")) ||
        (result = toy_expect(toy, rondo_ddp_gradient_ready(ddp, 7), wrong, "no parameter 7", "")))
        return result;
    for (int p = 0; p < TOY_PARAMETERS; p++)
        if (p != TOY_FROZEN && (result = toy_announce(toy, p, 1)))
            return result;
    if ((result = toy_expect(toy, rondo_ddp_begin(ddp, 1), wrong, "6 gradients", "wait")) ||
        (result = toy_expect(toy, rondo_ddp_zero_gradients(ddp), wrong, "inside of a pass", "")))
        return result;
    return toy_say(toy, rondo_ddp_wait(ddp), "wait");
}

rondo_result mistakes_out_of_order(rondo_comm *comm, void *unused, char *sentence)
{
    struct toy *toy = toy_new(comm, false, sentence);
    rondo_ddp_config config = toy_config();
    rondo_result result = toy_open(toy, &config);

    if (!result)
        result = wrong_times(toy);
    if (!result)
        result = toy_check(toy, sum_of_pass_1, NULL);
    if (!result && (rondo_ddp_gradient(toy->ddp, TOY_FROZEN) || rondo_ddp_gradient(toy->ddp, -1) ||
                    rondo_ddp_gradient(NULL, 0)))
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "a gradient that cannot be");
    toy_free(toy);
    return result;
}

rondo_result mistakes_passes(rondo_comm *comm, void *unused, char *sentence)
{
    struct toy *toy = toy_new(comm, false, sentence);
    rondo_ddp_config config = toy_config();
    rondo_result result = toy_open(toy, &config);

    for (int pass = 0; pass <= toy->rank && !result; pass++)
        result = toy_pass(toy, pass, 0, true);
    if (!result)
        result = toy_expect(toy, toy_pass(toy, 1, 1, true), RONDO_ERROR_MISMATCH,
                            "different numbers of passes", "from 2 to");
    if (!result)
        result = next_step_works(toy);
    toy_free(toy);
    return result;
}

/* The last rank gives up in the middle of a pass; the others are told. */
rondo_result mistakes_leaving(rondo_comm *comm, void *unused, char *sentence)
{
    struct toy *toy = toy_new(comm, false, sentence);
    rondo_ddp_config config = toy_config();
    rondo_result result = toy_open(toy, &config);
    int last = toy->rank == toy->size - 1 ? 3 : 0;

    if (!result)
        result = toy_say(toy, rondo_ddp_begin(toy->ddp, 1), "begin");
    for (int p = TOY_PARAMETERS - 1; p >= last && !result; p--)
        if (p != TOY_FROZEN)
            result = toy_announce(toy, p, 1);
    if (!result && !last)
        result = toy_expect(toy, rondo_ddp_wait(toy->ddp), RONDO_ERROR_ABORTED,
                            "exchange of gradients", "ank");
    else if (!last && result == RONDO_ERROR_ABORTED)
        result = RONDO_OK; /* it was told while it still announced */
    toy_free(toy);
    return result;
}

/* A model whose communicator can't be left for another one has no gradients any more. */
rondo_result mistakes_moving(rondo_comm *comm, void *unused, char *sentence)
{
    struct toy *toy = toy_new(comm, false, sentence);
    rondo_ddp_config config = toy_config();
    rondo_result result = toy_open(toy, &config);
    rondo_comm *revoked = NULL;
    void *gradient;

    if (!result)
        result = rondo_comm_dup(comm, &revoked);
    if (!result)
        result = rondo_comm_revoke(revoked);
    if (!result && !rondo_ddp_move(toy->ddp, revoked))
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "it has moved");
    gradient = result ? NULL : rondo_ddp_gradient(toy->ddp, 0);
    if (gradient)
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "there is a gradient");
    if (!result)
        result = toy_expect(toy, rondo_ddp_zero_gradients(toy->ddp), RONDO_ERROR_INVALID,
                            "rondo_ddp_move() has failed", "close");
    toy_free(toy);
    rondo_comm_close(revoked);
    return result;
}

/*
 * The last rank's process dies; the others are told, and everything after is refused. They return
 * an error, because not even finalizing works after that.
 */
rondo_result mistakes_dead_peer(rondo_comm *comm, void *unused, char *sentence)
{
    struct toy *toy = toy_new(comm, false, sentence);
    rondo_ddp_config config = toy_config();
    rondo_result result = toy_open(toy, &config);

    if (!result)
        result = toy_say(toy, rondo_ddp_begin(toy->ddp, 1), "begin");
    if (!result && toy->rank == toy->size - 1)
        raise(SIGKILL);
    for (int p = 0; p < TOY_PARAMETERS && !result; p++)
        if (p != TOY_FROZEN)
            result = toy_announce(toy, p, 1);
    if (!result)
        result = toy_expect(toy, rondo_ddp_wait(toy->ddp), RONDO_ERROR_PEER,
                            "exchange of gradients", "ank 2");
    if (!result)
        result = toy_expect(toy, rondo_ddp_begin(toy->ddp, 1), RONDO_ERROR_INVALID, "failed before",
                            "closing");
    toy_free(toy);
    return result ? result : world_say(sentence, RONDO_ERROR_PEER, "told, as it should be");
}
