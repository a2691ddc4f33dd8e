/* SPDX-License-Identifier: BSD-3-Clause */
/* options.c - the command line of `rondo train`. */
#include "train/options.h"

#include "cli/common/argument.h"

#include "rondo/train.h"

static const char *const shards[] = {"none", "optimizer", "gradients", "full", NULL};
static const char *const batches[] = {"step", "rank", NULL};
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

#define SETS(member)          ARGUMENT_SETS(struct train_options, member)
#define NUMBER(member, least) ARGUMENT_NUMBER(struct train_options, member, least, 1000000000)
#define WORD(member, list)    ARGUMENT_WORDS(struct train_options, member, list)

static void take_elastic(struct argp_state *state, void *input, char *text)
{
    struct train_elastic *elastic = &((struct train_options *)input)->elastic;
    int length = 0;

    if (sscanf(text, "%d:%d%n", &elastic->least, &elastic->most, &length) != 2 || text[length] ||
        elastic->least < 1 || elastic->most < elastic->least)
        argp_error(state, "--elastic is '%s': accepted is MIN:MAX, as 2:4, with 1 <= MIN <= MAX",
                   text);
}

static const struct argument table[] = {
    {"ranks", 'n', "N", 1, NUMBER(ranks, 1),
     "start N ranks here (without it: a launcher has, or one)"},
    {"elastic", 0, "MIN:MAX", 1, ARGUMENT_CALLS(take_elastic),
     "go on without ranks that fail while MIN are left, and with those that come, up to MAX"},
    {"elastic-batch", 0, "OF", 1, WORD(each, batches),
     "what stays when ranks come and go, the batch of a step, or that of a rank; then the learning "
     "rate follows the number of ranks: step, rank (step)"},
    {"max-restarts", 0, "N", 1, NUMBER(restarts, 0),
     "with -n and --elastic: newcomers for ranks that fail, N times (0)"},
    {"steps", 0, "N", 1, NUMBER(steps, 0), "steps of the optimizer (1000)"},
    {"batch", 0, "N", 1, NUMBER(batch, 1), "sequences per micro-batch (256)"},
    {"accumulate", 0, "N", 1, NUMBER(accumulate, 1), "micro-batches per rank and step (1)"},
    {"seed", 0, "N", 1, NUMBER(seed, 0), "of the first values and the order of the data (1)"},
    {"data", 0, "FILE", 2, SETS(data), "learn this text, byte by byte, not sums"},
    {"context", 0, "N", 2, NUMBER(context, 2), "bytes of a sequence of --data (64)"},
    {"digits", 0, "N", 2, NUMBER(digits, 1), "of the numbers to be added (3)"},
    {"width", 0, "N", 3, NUMBER(width, 1), "numbers per token; a multiple of the heads (64)"},
    {"heads", 0, "N", 3, NUMBER(heads, 1), "of attention (4)"},
    {"layers", 0, "N", 3, NUMBER(layers, 1), "blocks of attention and MLP (2)"},
    {"rate", 0, "R", 4, SETS(rate), "learning rate after the warm-up (0.008)"},
    {"warmup", 0, "N", 4, NUMBER(warmup, 0), "steps in which the rate rises (50)"},
    {"decay", 0, "D", 4, SETS(decay), "weight decay (0.1)"},
    {"clip", 0, "NORM", 4, SETS(clip), "most that the norm of the gradient may be; 0: any (1)"},
    {"precision", 0, "TYPE", 5, WORD(precision, precisions),
     "in which gradients travel: float32, float16, bfloat16 (float32)"},
    {"shard", 0, "WHAT", 5, WORD(shard, shards),
     "what ranks divide: none, optimizer (ZeRO-1), gradients (ZeRO-2), full (none)"},
    {"bucket-bytes", 0, "N", 5, NUMBER(bucket_bytes, 1),
     "of gradients that travel together (an eighth of the model)"},
    {"deterministic", 0, NULL, 5, SETS(deterministic),
     "the same bits on 1, 2, 4 or 8 ranks that have the same micro-batches per step"},
    {"memory", 0, "KIND", 5, WORD(cuda, memories),
     "where ranks compute: host, or cuda: on GPUs (host)"},
    {"checkpoint", 0, "FILE", 6, SETS(checkpoint), "write model and optimizer, at the end"},
    {"every", 0, "N", 6, NUMBER(every, 0), "... and after each N steps"},
    {"resume", 0, NULL, 6, SETS(resume), "go on where --checkpoint was written, if there is one"},
    {"evaluate", 0, "N", 7, NUMBER(evaluate, 0),
     "steps between looks at what is held out, 0: at the end only (100)"},
    {"samples", 0, "N", 7, NUMBER(samples, 0), "texts that the model writes at the end (5)"},
    {"csv", 0, "FILE", 7, SETS(csv), "write a line per step"},
    {"svg", 0, "FILE", 7, SETS(svg), "draw loss and accuracy (needs gnuplot)"},
    {"json", 0, "FILE", 7, SETS(json), "write the summary"},
    {0},
};

static const char doc[] =
    "Trains a small GPT on all ranks at once: each computes gradients for its own part of the "
    "batch, and they are averaged while the backward pass goes on.\v"
    "The default task are sums of two numbers, digit by digit; some of them are held out and show "
    "what was learned. A step takes ranks * accumulate * batch sequences. Works under "
    "`rondo run`, torchrun, mpirun and srun, too.";

/* Refuses options that GPUs do not serve yet. */
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

/* Every rank has to have all that a newcomer or a rank that is left needs. */
static void finish_elastic(const struct argp_state *state, const struct train_options *options)
{
    const struct train_elastic *elastic = &options->elastic;

    if (!elastic->most && (options->restarts || options->each))
        argp_error(state, "--%s needs --elastic MIN:MAX",
                   options->restarts ? "max-restarts" : "elastic-batch");
    if (!elastic->most)
        return;
    if (options->shard)
        argp_error(state,
                   "--elastic goes on with what every rank has, and a shard of a rank that "
                   "ended is gone: leave out --shard %s, or go on from a --checkpoint",
                   shards[options->shard]);
    if (options->cuda)
        argp_error(state, "--elastic is for ranks that compute on the host: leave out --memory "
                          "cuda, or go on from a --checkpoint");
    if (options->deterministic)
        argp_error(state, "--elastic adds up in the order of the ranks that are left: leave out "
                          "--deterministic");
    if (options->ranks && (options->ranks < elastic->least || options->ranks > elastic->most))
        argp_error(state, "-n %d is not within --elastic %d:%d", options->ranks, elastic->least,
                   elastic->most);
}

/* Refuses options that do not go together. */
static void finish(struct argp_state *state, void *input)
{
    const struct train_options *options = input;
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
    finish_elastic(state, options);
}

static void refuse(struct argp_state *state, void *options, char *text)
{
    argp_error(state, "'%s' is not an option", text);
}

void train_options_parse(int argc, char **argv, struct train_options *ret_options)
{
    static const struct argument_command command = {.name = "rondo train",
                                                    .operands = "",
                                                    .doc = doc,
                                                    .table = table,
                                                    .operand = refuse,
                                                    .finish = finish};

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
    argument_parse(&command, argc, argv, ret_options);
}
