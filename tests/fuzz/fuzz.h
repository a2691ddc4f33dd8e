/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz.h - what targets share: an input is a list of decisions and bytes, read from front to back.
 *
 * A target is a function of (bytes, length) that has no memory of the input before, apart from
 * what the library keeps by itself. Reading beyond the end gives zeroes, so every input is a whole
 * one. What is never to be, the target checks with fuzz_expect(), also in release builds.
 */
#ifndef RONDO_TESTS_FUZZ_H
#define RONDO_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fuzz_input {
    const uint8_t *at, *end;
};

/* The target, by the name that libFuzzer wants. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static inline bool fuzz_has_more(const struct fuzz_input *input)
{
    return input->at < input->end;
}

/* The next byte. */
static inline unsigned fuzz_byte(struct fuzz_input *input)
{
    return fuzz_has_more(input) ? *input->at++ : 0;
}

/* Fill `to` with the next bytes. */
void fuzz_bytes(struct fuzz_input *input, void *to, size_t count);
/* A little-endian number of so many bytes, up to 8. */
uint64_t fuzz_number(struct fuzz_input *input, int bytes);
/* The bytes before the next `separator` or the end, as text in memory of its own: free() it. */
char *fuzz_text(struct fuzz_input *input, char separator);

/* Ends the program, with the sentence, if it is not so. */
void fuzz_expect(bool is_so, const char *sentence);

/* Ends the program, with what is wrong, if the text is no JSON. */
void fuzz_expect_json(const char *text, size_t length);

/* A file in memory with these bytes, and its name; it is the same one each time. */
const char *fuzz_file(const void *bytes, size_t count);
/* Two connected sockets, neither of which blocks. */
void fuzz_sockets(int ret_ends[2]);
/* Throw away what has come to this end. */
void fuzz_drain(int end);

/* Make the environment of the process these lines, "NAME=VALUE" each, and nothing else; the text
 * is kept by the caller until the next call, NULL: empty. */
void fuzz_environment(char *lines);

/* Collects what is written to stdout between these two, as a text: free() it. */
void fuzz_listen(void);
char *fuzz_heard(size_t *ret_length);

/* Random numbers of libsodium are a fixed row of them from here on. */
void fuzz_seed_nonces(void);

#endif
