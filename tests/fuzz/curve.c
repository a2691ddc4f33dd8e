/* SPDX-License-Identifier: BSD-3-Clause */
/* curve.c - the curve of an earlier training, which a training goes on with (train/curve.c). */
#include "tests/fuzz/fuzz.h"

#include "train/curve.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct fuzz_input input = {bytes, bytes + count};
    uint64_t from = 1 + fuzz_number(&input, 2);
    struct curve *curve;

    if (!curve_open(fuzz_file(input.at, (size_t)(input.end - input.at)), from, &curve))
        curve_close(curve);
    return 0;
}
