/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/api/sequences/sequence.h"

#include <stdio.h>
#include <string.h>

unsigned sequence_draw(const struct player *player, unsigned what, unsigned limit)
{
    uint64_t place = (uint64_t)(unsigned)player->step * 64 + what;

    return (unsigned)(world_hash(player->sequence->seed, place) % limit);
}

rondo_comm *sequence_comm(const struct player *player)
{
    return player->comms[sequence_draw(player, 0, (unsigned)player->comm_count)];
}

int sequence_size(const struct sequence *sequence)
{
    return 2 + (int)(world_hash(sequence->seed, 1) % 3);
}

static int count_steps(const struct step *steps)
{
    int count = 0;

    while (steps[count].name)
        count++;
    return count;
}

/* One step of four is illegal. */
static const struct step *choose(const struct player *player)
{
    const struct step *steps = sequence_draw(player, 60, 4) ? legal_steps : illegal_steps;

    return &steps[sequence_draw(player, 61, (unsigned)count_steps(steps))];
}

static rondo_result make_steps(struct player *player)
{
    rondo_result result = RONDO_OK;

    for (int i = 0; i < SEQUENCE_STEPS && !result; i++) {
        const struct step *step;

        if (player->sequence->left_out >> i & 1)
            continue;
        player->step = i;
        step = choose(player);
        if (player->sequence->trace && rondo_comm_rank(player->comms[0]) == 0) {
            fprintf(stderr, "  step %d: %s\n", i, step->name);
            fflush(stderr);
        }
        result = step->make(player);
        if (result) {
            char said[WORLD_SENTENCE / 2];

            snprintf(said, sizeof(said), "%s", player->sentence);
            player->sentence[0] = '\0';
            world_say(player->sentence, result, "step %d, %s: %s", i, step->name,
                      said[0] ? said : rondo_last_error(NULL));
        }
    }
    return result;
}

rondo_result sequence_play(rondo_comm *comm, void *sequence, char *sentence)
{
    struct player player = {
        .sequence = sequence, .comms = {comm}, .comm_count = 1, .sentence = sentence};
    rondo_result result = rondo_stream_open(&player.stream);

    if (!result)
        result = make_steps(&player);
    if (result)
        rondo_comm_abort(comm); /* the others wait for steps of this one */
    rondo_stream_close(player.stream);
    for (int i = 1; i < player.comm_count; i++)
        rondo_comm_close(player.comms[i]);
    return result;
}
