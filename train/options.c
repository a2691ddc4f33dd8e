/* SPDX-License-Identifier: BSD-3-Clause */
/* options.c - the command line of `rondo train`. */
#include "train/options.h"

#include "rondo/train.h"

#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEY_STEPS = 256,
    KEY_BATCH,
    KEY_ACCUMULATE,
    KEY_RATE,
    KEY_WARMUP,
    KEY_DECAY,
    KEY_CLIP,
    KEY_SEED,
    KEY_WIDTH,
    KEY_HEADS,
    KEY_LAYERS,
    KEY_DATA,
    KEY_DIGITS,
    KEY_CONTEXT,
    KEY_PRECISION,
    KEY_SHARD,
    KEY_BUCKET_BYTES,
    KEY_DETERMINISTIC,
    KEY_MEMORY,
    KEY_CHECKPOINT,
    KEY_EVERY,
    KEY_RESUME,
    KEY_EVALUATE,
    KEY_SAMPLES,
    KEY_CSV,
    KEY_SVG,
    KEY_JSON
};

static const struct argp_option table[] = {
    {"ranks", 'n', "N", 0, "start N ranks here (without it: a launcher has, or one)", 1},
    {"steps", KEY_STEPS, "N", 0, "steps of the optimizer (1000)", 1},
    {"batch", KEY_BATCH, "N", 0, "sequences per micro-batch (256)", 1},
    {"accumulate", KEY_ACCUMULATE, "N", 0, "micro-batches per rank and step (1)", 1},
    {"seed", KEY_SEED, "N", 0, "of the first values and the order of the data (1)", 1},
    {"data", KEY_DATA, "FILE", 0, "learn this text, byte by byte, not sums", 2},
    {"context", KEY_CONTEXT, "N", 0, "bytes of a sequence of --data (64)", 2},
    {"digits", KEY_DIGITS, "N", 0, "of the numbers to be added (3)", 2},
    {"width", KEY_WIDTH, "N", 0, "numbers per token; a multiple of the heads (64)", 3},
    {"heads", KEY_HEADS, "N", 0, "of attention (4)", 3},
    {"layers", KEY_LAYERS, "N", 0, "blocks of attention and MLP (2)", 3},
    {"rate", KEY_RATE, "R", 0, "learning rate after the warm-up (0.008)", 4},
    {"warmup", KEY_WARMUP, "N", 0, "steps in which the rate rises (50)", 4},
    {"decay", KEY_DECAY, "D", 0, "weight decay (0.1)", 4},
    {"clip", KEY_CLIP, "NORM", 0, "most that the norm of the gradient may be; 0: any (1)", 4},
    {"precision", KEY_PRECISION, "TYPE", 0,
     "in which gradients travel: float32, float16, bfloat16 (float32)", 5},
    {"shard", KEY_SHARD, "WHAT", 0,
     "what ranks divide: none, optimizer (ZeRO-1), gradients (ZeRO-2), full (none)", 5},
    {"bucket-bytes", KEY_BUCKET_BYTES, "N", 0,
     "of gradients that travel together (an eighth of the model)", 5},
    {"deterministic", KEY_DETERMINISTIC, NULL, 0,
     "the same bits on 1, 2, 4 or 8 ranks that have the same micro-batches per step", 5},
    {"memory", KEY_MEMORY, "KIND", 0, "where ranks compute: host, or cuda: on GPUs (host)", 5},
    {"checkpoint", KEY_CHECKPOINT, "FILE", 0, "write model and optimizer, at the end", 6},
    {"every", KEY_EVERY, "N", 0, "... and after each N steps", 6},
    {"resume", KEY_RESUME, NULL, 0, "go on where --checkpoint was written, if there is one", 6},
    {"evaluate", KEY_EVALUATE, "N", 0, "steps between looks at what is held out (100)", 7},
    {"samples", KEY_SAMPLES, "N", 0, "texts that the model writes at the end (5)", 7},
    {"csv", KEY_CSV, "FILE", 0, "write a line per step", 7},
    {"svg", KEY_SVG, "FILE", 0, "draw loss and accuracy (needs gnuplot)", 7},
    {"json", KEY_JSON, "FILE", 0, "write the summary", 7},
    {0},
};

static const char doc[] =
    "Trains a small GPT on all ranks at once: each computes gradients for its own part of the "
    "batch, and they are averaged while the backward pass goes on.\v"
    "The default task are sums of two numbers, digit by digit; some of them are held out and show "
    "what was learned. A step takes ranks * accumulate * batch sequences. Works under "
    "`rondo run`, torchrun, mpirun and srun, too.";

static const char *const shards[] = {"none", "optimizer", "gradients", "full", NULL};
static const char *const memories[] = {"host", "cuda", NULL};
static const char *const precisions[] = {"float32", "float16", "bfloat16", NULL};

const char *train_shard_name(int shard)
{
    return shards[shard];
}

const char *train_precision_name(rondo_ddp_compression precision)
{
    return precisions[precision];
}

static long whole(const struct argp_state *state, const char *what, const char *text, long least)
{
    const long most = 1000000000;
    char *end;
    long value;

    errno = 0;
    value = strtol(text, &end, 10);
    if (errno || end == text || *end || value < least || value > most)
        argp_error(state, "--%s is '%s': accepted is a whole number from %ld to %ld", what, text,
                   least, most);
    return value;
}

static double positive(const struct argp_state *state, const char *what, const char *text)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || *end || !isfinite(value) || value < 0)
        argp_error(state, "--%s is '%s': accepted is a number of at least 0", what, text);
    return value;
}

static int word(const struct argp_state *state, const char *what, const char *text,
                const char *const *known)
{
    for (int i = 0; known[i]; i++)
        if (!strcmp(text, known[i]))
            return i;
    argp_error(state, "--%s is '%s', which is not among those that --help names", what, text);
    return 0;
}

/* Options that are a number; false: another one. */
static bool set_number(struct train_options *options, int key, const char *arg,
                       const struct argp_state *state)
{
    switch (key) {
    case 'n':
        return (options->ranks = (int)whole(state, "ranks", arg, 1)) > 0;
    case KEY_BATCH:
        return (options->batch = (int)whole(state, "batch", arg, 1)) > 0;
    case KEY_ACCUMULATE:
        return (options->accumulate = (int)whole(state, "accumulate", arg, 1)) > 0;
    case KEY_WIDTH:
        return (options->width = (int)whole(state, "width", arg, 1)) > 0;
    case KEY_HEADS:
        return (options->heads = (int)whole(state, "heads", arg, 1)) > 0;
    case KEY_LAYERS:
        return (options->layers = (int)whole(state, "layers", arg, 1)) > 0;
    case KEY_DIGITS:
        return (options->digits = (int)whole(state, "digits", arg, 1)) > 0;
    case KEY_CONTEXT:
        return (options->context = (int)whole(state, "context", arg, 2)) > 0;
    case KEY_BUCKET_BYTES:
        return (options->bucket_bytes = (size_t)whole(state, "bucket-bytes", arg, 1)) > 0;
    default:
        return false;
    }
}

/* Numbers that may be 0; false: another option. */
static bool set_amount(struct train_options *options, int key, const char *arg,
                       const struct argp_state *state)
{
    switch (key) {
    case KEY_STEPS:
        options->steps = (uint64_t)whole(state, "steps", arg, 0);
        return true;
    case KEY_SEED:
        options->seed = (uint64_t)whole(state, "seed", arg, 0);
        return true;
    case KEY_WARMUP:
        options->warmup = (uint64_t)whole(state, "warmup", arg, 0);
        return true;
    case KEY_EVERY:
        options->every = (uint64_t)whole(state, "every", arg, 0);
        return true;
    case KEY_EVALUATE:
        options->evaluate = (uint64_t)whole(state, "evaluate", arg, 0);
        return true;
    case KEY_SAMPLES:
        options->samples = (int)whole(state, "samples", arg, 0);
        return true;
    case KEY_RATE:
        options->rate = positive(state, "rate", arg);
        return true;
    case KEY_DECAY:
        options->decay = positive(state, "decay", arg);
        return true;
    case KEY_CLIP:
        options->clip = positive(state, "clip", arg);
        return true;
    default:
        return false;
    }
}

static bool set_other(struct train_options *options, int key, const char *arg,
                      const struct argp_state *state)
{
    switch (key) {
    case KEY_DATA:
        options->data = arg;
        return true;
    case KEY_PRECISION:
        options->precision = (rondo_ddp_compression)word(state, "precision", arg, precisions);
        return true;
    case KEY_SHARD:
        options->shard = word(state, "shard", arg, shards);
        return true;
    case KEY_DETERMINISTIC:
        options->deterministic = true;
        return true;
    case KEY_MEMORY:
        options->cuda = word(state, "memory", arg, memories) == 1;
        return true;
    case KEY_CHECKPOINT:
        options->checkpoint = arg;
        return true;
    case KEY_RESUME:
        options->resume = true;
        return true;
    case KEY_CSV:
        options->csv = arg;
        return true;
    case KEY_SVG:
        options->svg = arg;
        return true;
    case KEY_JSON:
        options->json = arg;
        return true;
    default:
        return false;
    }
}

/* What GPUs do not do yet. */
static void finish_cuda(const struct argp_state *state, const struct train_options *options)
{
    if (options->shard)
        argp_error(state, "--memory cuda keeps all of the model on every GPU: leave out --shard %s",
                   shards[options->shard]);
    if (options->precision)
        argp_error(state, "--memory cuda needs --precision float32: 16 bits travel from the host");
    if (options->deterministic)
        argp_error(state, "--memory cuda adds up in the order of its GPU: leave out "
                          "--deterministic");
}

/* What does not go together. */
static void finish(const struct argp_state *state, const struct train_options *options)
{
    int passes = options->accumulate;

    if (options->width % options->heads)
        argp_error(state, "--width %d is not a multiple of --heads %d", options->width,
                   options->heads);
    if (options->digits > 4)
        argp_error(state, "--digits is %d: accepted is up to 4", options->digits);
    if (options->context > 4096)
        argp_error(state, "--context is %d: accepted is up to 4096", options->context);
    if ((options->resume || options->every) && !options->checkpoint)
        argp_error(state, "--%s needs --checkpoint FILE", options->resume ? "resume" : "every");
    if (options->shard && options->precision)
        argp_error(state,
                   "--precision %s is for gradients that are not divided: leave out "
                   "--shard %s",
                   precisions[options->precision], shards[options->shard]);
    if (options->deterministic && options->shard)
        argp_error(state,
                   "--deterministic is for gradients that are not divided: leave out "
                   "--shard %s",
                   shards[options->shard]);
    if (options->deterministic && options->precision)
        argp_error(state, "--deterministic needs --precision float32");
    if (options->deterministic && (passes & (passes - 1)))
        argp_error(state, "--deterministic needs a power of two as --accumulate, not %d", passes);
    if (options->cuda)
        finish_cuda(state, options);
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct train_options *options = state->input;

    if (key == ARGP_KEY_ARG)
        argp_error(state, "'%s' is not an option", arg);
    if (key == ARGP_KEY_END)
        finish(state, options);
    if (key != 'n' && key < KEY_STEPS)
        return ARGP_ERR_UNKNOWN;
    if (set_number(options, key, arg, state) || set_amount(options, key, arg, state) ||
        set_other(options, key, arg, state))
        return 0;
    return ARGP_ERR_UNKNOWN;
}

void train_options_parse(int argc, char **argv, struct train_options *ret_options)
{
    static const struct argp argp = {table, parse_option, "", doc, NULL, NULL, NULL};
    static char name[] = "rondo train";

    *ret_options = (struct train_options){.steps = 1000,
                                          .seed = 1,
                                          .batch = 256,
                                          .accumulate = 1,
                                          .rate = 0.008,
                                          .warmup = 50,
                                          .decay = 0.1,
                                          .clip = 1,
                                          .width = 64,
                                          .heads = 4,
                                          .layers = 2,
                                          .digits = 3,
                                          .context = 64,
                                          .evaluate = 100,
                                          .samples = 5};
    argv[0] = name;
    argp_err_exit_status = 2;
    argp_parse(&argp, argc, argv, 0, NULL, ret_options);
}
