/* SPDX-License-Identifier: BSD-3-Clause */
/* embedding.c - a token becomes a vector: one for what it is, plus one for where it stands. */
#include "train/model/layers.h"

REAL_VECTOR void embedding_forward(const struct embedding *layer, int rows, const int *tokens,
                                   real *y)
{
    size_t width = (size_t)layer->width;

    for (int row = 0; row < rows; row++) {
        const real *token = layer->token->value + (size_t)tokens[row] * width;
        const real *position = layer->position->value + (size_t)(row % layer->length) * width;

        for (size_t i = 0; i < width; i++)
            y[(size_t)row * width + i] = token[i] + position[i];
    }
}

REAL_VECTOR void embedding_backward(const struct embedding *layer, int rows, const int *tokens,
                                    const real *dy)
{
    size_t width = (size_t)layer->width;

    for (int row = 0; row < rows; row++) {
        real *token = layer->token->gradient + (size_t)tokens[row] * width;
        real *position = layer->position->gradient + (size_t)(row % layer->length) * width;

        for (size_t i = 0; i < width; i++) {
            token[i] += dy[(size_t)row * width + i];
            position[i] += dy[(size_t)row * width + i];
        }
    }
}
