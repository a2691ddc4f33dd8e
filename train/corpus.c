/* SPDX-License-Identifier: BSD-3-Clause */
/* corpus.c - what all corpora have in common. */
#include "train/corpus.h"

int corpus_token(const struct corpus *corpus, unsigned char byte)
{
    for (int i = 0; i < corpus->vocabulary; i++)
        if (corpus->bytes[i] == byte)
            return i;
    return -1;
}

void corpus_close(struct corpus *corpus)
{
    if (corpus)
        corpus->ops->close(corpus);
}
