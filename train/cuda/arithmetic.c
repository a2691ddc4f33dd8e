/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arithmetic.c - the layers on the device: products by cuBLAS, the rest by our kernels, all queued
 * on the stream of passes.
 */
#include "train/cuda/inside.h"

#include "train/model/blas.h"

/* ---- Memory ---------------------------------------------------------------------------------- */

static void clear(void *memory, size_t bytes)
{
    if (bytes && !gpu.result)
        gpu_note(driver.cuMemsetD8Async(gpu_address(memory), 0, bytes, gpu.passes),
                 "cuMemsetD8Async");
}

static void *alloc(size_t bytes)
{
    CUdeviceptr memory = 0;

    if (gpu.result || driver.cuMemAlloc(&memory, bytes ? bytes : 1))
        return NULL; /* the caller says so */
    clear((void *)(uintptr_t)memory, bytes);
    return (void *)(uintptr_t)memory;
}

static void release(void *memory)
{
    if (memory)
        driver.cuMemFree(gpu_address(memory));
}

/* Memory that is not pinned has been copied when this returns. */
static void write_memory(void *to, const void *from, size_t bytes)
{
    if (bytes && !gpu.result)
        gpu_note(driver.cuMemcpyHtoDAsync(gpu_address(to), from, bytes, gpu.passes),
                 "cuMemcpyHtoDAsync");
}

static rondo_result read_memory(void *ret_to, const void *from, size_t bytes)
{
    if (bytes && !gpu.result)
        gpu_note(driver.cuMemcpyDtoHAsync(ret_to, gpu_address(from), bytes, gpu.passes),
                 "cuMemcpyDtoHAsync");
    return gpu_wait();
}

rondo_result gpu_wait(void)
{
    const struct train_worth *worth;

    if (!gpu.result)
        gpu_note(driver.cuStreamSynchronize(gpu.passes), "the work on it");
    if (gpu.result)
        return gpu_outcome();
    worth = &gpu.news->worth;
    if (gpu.wanted)
        *gpu.wanted = (struct loss){worth->sum, (long)worth->counted, (long)worth->right,
                                    (long)worth->complete};
    gpu.wanted = NULL;
    return RONDO_OK;
}

void *gpu_room(int room, size_t bytes)
{
    struct gpu_room *it = &gpu.rooms[room];

    if (bytes > it->bytes) {
        release(it->memory); /* the driver waits for kernels that use it */
        it->memory = alloc(bytes);
        it->bytes = it->memory ? bytes : 0;
        if (!it->memory)
            gpu_note(CUDA_ERROR_OUT_OF_MEMORY, "cuMemAlloc");
    }
    return it->memory;
}

void gpu_bring(const void *part, size_t bytes)
{
    size_t at = (size_t)((const char *)part - (const char *)gpu.device_news);

    if (!gpu.result)
        gpu_note(
            driver.cuMemcpyDtoHAsync((char *)gpu.news + at, gpu_address(part), bytes, gpu.passes),
            "cuMemcpyDtoHAsync");
}

/* ---- Products -------------------------------------------------------------------------------- */

/* From one product of a batch to the next, in elements. */
struct strides {
    size_t a, b, c;
    int count;
};

static const struct strides single = {0, 0, 0, 1};

/*
 * c = scale * a b + keep * c, for each of a batch. cuBLAS has columns where we have rows: what it
 * sees are transposed matrices, and c' = b' a'.
 */
static void multiply(struct matrix a, struct matrix b, real scale, real keep, struct matrix c,
                     struct strides strides)
{
    int inner = a.transposed ? a.rows : a.columns;

    if (gpu.result)
        return;
    gpu_note_cublas(cublas.cublasSgemmStridedBatched(
                        gpu.cublas, b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                        a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N, c.columns, c.rows, inner, &scale,
                        b.data, b.stride, (long long)strides.b, a.data, a.stride,
                        (long long)strides.a, &keep, c.data, c.stride, (long long)strides.c,
                        strides.count),
                    "cublasSgemmStridedBatched");
}

/* ---- Layers ---------------------------------------------------------------------------------- */

static void embedding_there(const struct embedding *layer, int rows, const int *tokens, real *y)
{
    const struct train_embedding call = {
        layer->token->value, layer->position->value, tokens, y, rows, layer->width, layer->length};

    gpu_launch_rows(GPU_embedding, (uint64_t)rows, layer->width, &call);
}

static void embedding_back(const struct embedding *layer, int rows, const int *tokens,
                           const real *dy)
{
    int vocabulary = (int)(layer->token->count / (size_t)layer->width);
    const struct train_embedding_backward call = {.tokens = tokens,
                                                  .dy = dy,
                                                  .token = layer->token->gradient,
                                                  .position = layer->position->gradient,
                                                  .rows = rows,
                                                  .width = layer->width,
                                                  .length = layer->length,
                                                  .vocabulary = vocabulary};

    gpu_launch_rows(GPU_embedding_backward, (uint64_t)(vocabulary + layer->length), layer->width,
                    &call);
}

/* Adds the sums over rows of dy to `to`; with `saved` those of dy times what was normalised to
 * `stretched_to`, too. */
static void add_columns(const struct norm_saved *saved, int rows, int width, const real *dy,
                        real *to, real *stretched_to)
{
    int parts = rows < TRAIN_COLUMN_SUMS ? rows : TRAIN_COLUMN_SUMS;
    size_t count = (size_t)parts * (size_t)width;
    float *sums = gpu_room(GPU_SUMS, 2 * count * sizeof(*sums));
    const struct train_sum_columns call = {.dy = dy,
                                           .x = saved ? saved->x : NULL,
                                           .statistics = saved ? saved->statistics : NULL,
                                           .sums = sums,
                                           .stretched = sums ? sums + count : NULL,
                                           .rows = rows,
                                           .width = width};
    struct train_add_sums add = {sums, to, parts, width};

    gpu_launch_blocks(GPU_sum_columns, (unsigned)parts, &call);
    gpu_launch_elements(GPU_add_sums, (uint64_t)width, &add);
    if (!saved)
        return;
    add.sums = call.stretched;
    add.to = stretched_to;
    gpu_launch_elements(GPU_add_sums, (uint64_t)width, &add);
}

static void linear_there(const struct linear *layer, int rows, const real *x, const real *residual,
                         real *y)
{
    int in = layer->in;
    int out = layer->out;
    const struct train_begin_rows call = {layer->bias->value, residual, y,
                                          (uint64_t)rows * (uint64_t)out, out};

    gpu_launch_elements(GPU_begin_rows, call.count, &call);
    multiply(matrix_of(x, rows, in, in), matrix_of(layer->weight->value, in, out, out), 1, 1,
             matrix_of(y, rows, out, out), single);
}

static void linear_back(const struct linear *layer, int rows, const real *x, const real *dy,
                        real *dx)
{
    int in = layer->in;
    int out = layer->out;
    struct matrix given = matrix_of(dy, rows, out, out);

    multiply(matrix_transpose(matrix_of(x, rows, in, in)), given, 1, 1,
             matrix_of(layer->weight->gradient, in, out, out), single);
    add_columns(NULL, rows, out, dy, layer->bias->gradient, NULL);
    if (dx)
        multiply(given, matrix_transpose(matrix_of(layer->weight->value, in, out, out)), 1, 0,
                 matrix_of(dx, rows, in, in), single);
}

static void norm_there(const struct norm *layer, int rows, const real *x, real *y, real *statistics)
{
    const struct train_norm call = {x,    layer->gain->value, layer->shift->value, y, statistics,
                                    rows, layer->width};

    gpu_launch_rows(GPU_norm, (uint64_t)rows, layer->width, &call);
}

static void norm_back(const struct norm *layer, int rows, struct norm_saved saved, const real *dy,
                      real *dx)
{
    const struct train_norm_backward call = {saved.x, layer->gain->value, saved.statistics, dy, dx,
                                             rows,    layer->width};

    gpu_launch_rows(GPU_norm_backward, (uint64_t)rows, layer->width, &call);
    add_columns(&saved, rows, layer->width, dy, layer->shift->gradient, layer->gain->gradient);
}

static void gelu_there(size_t count, const real *x, real *y)
{
    const struct train_gelu call = {x, y, count};

    gpu_launch_elements(GPU_gelu, count, &call);
}

static void gelu_back(size_t count, const real *x, const real *dy, real *dx)
{
    const struct train_gelu_backward call = {x, dy, dx, count};

    gpu_launch_elements(GPU_gelu_backward, count, &call);
}

/* ---- Attention: a batch of products is one head of all sequences ----------------------------- */

/* The parts are those of attention.c: 0 are queries, 1 keys, 2 values. */
static struct matrix part_of(const struct attention *layer, const real *qkv, int head, int part)
{
    int wide = layer->width / layer->heads;

    return matrix_of(qkv + part * layer->width + head * wide, layer->length, wide,
                     3 * layer->width);
}

static struct matrix head_of(const struct attention *layer, const real *y, int head)
{
    int wide = layer->width / layer->heads;

    return matrix_of(y + head * wide, layer->length, wide, layer->width);
}

static struct matrix square_of(const struct attention *layer, const real *weights, int number)
{
    int length = layer->length;

    return matrix_of(weights + (size_t)number * (size_t)length * (size_t)length, length, length,
                     length);
}

/* The steps from one sequence to the next, in elements. */
struct steps {
    size_t qkv, y, weights, scratch;
};

static struct steps steps_of(const struct attention *layer)
{
    size_t length = (size_t)layer->length;
    size_t rows = length * (size_t)layer->width;

    return (struct steps){3 * rows, rows, (size_t)layer->heads * length * length, length * length};
}

static real scale_of(const struct attention *layer)
{
    return 1 / real_root((real)(layer->width / layer->heads));
}

static void attention_there(const struct attention *layer, int sequences, const real *qkv,
                            real *weights, real *y)
{
    struct steps step = steps_of(layer);
    const struct strides to_weights = {step.qkv, step.qkv, step.weights, sequences};
    const struct strides to_y = {step.weights, step.qkv, step.y, sequences};
    const struct train_softmax call = {
        weights, (uint64_t)sequences * (uint64_t)(layer->heads * layer->length), layer->length};

    for (int head = 0; head < layer->heads; head++)
        multiply(part_of(layer, qkv, head, 0), matrix_transpose(part_of(layer, qkv, head, 1)),
                 scale_of(layer), 0, square_of(layer, weights, head), to_weights);
    gpu_launch_rows(GPU_softmax, call.rows, layer->length, &call);
    for (int head = 0; head < layer->heads; head++)
        multiply(square_of(layer, weights, head), part_of(layer, qkv, head, 2), 1, 0,
                 head_of(layer, y, head), to_y);
}

static void attention_back(const struct attention *layer, int sequences,
                           struct attention_saved saved, const real *dy, real *dqkv)
{
    struct steps step = steps_of(layer);
    const struct strides from_weights = {step.weights, step.y, step.qkv, sequences};
    const struct strides to_scratch = {step.y, step.qkv, step.scratch, sequences};
    const struct strides from_scratch = {step.scratch, step.qkv, step.qkv, sequences};
    struct matrix d_at = square_of(layer, saved.scratch, 0);
    real scale = scale_of(layer);

    for (int head = 0; head < layer->heads; head++) {
        struct matrix at = square_of(layer, saved.weights, head);
        struct matrix given = head_of(layer, dy, head);
        const struct train_softmax_backward call = {at.data, saved.scratch, step.weights, sequences,
                                                    layer->length};

        multiply(matrix_transpose(at), given, 1, 0, part_of(layer, dqkv, head, 2), from_weights);
        multiply(given, matrix_transpose(part_of(layer, saved.qkv, head, 2)), 1, 0, d_at,
                 to_scratch);
        gpu_launch_rows(GPU_softmax_backward, (uint64_t)sequences * (uint64_t)layer->length,
                        layer->length, &call);
        multiply(d_at, part_of(layer, saved.qkv, head, 1), scale, 0, part_of(layer, dqkv, head, 0),
                 from_scratch);
        multiply(matrix_transpose(d_at), part_of(layer, saved.qkv, head, 0), scale, 0,
                 part_of(layer, dqkv, head, 1), from_scratch);
    }
}

/* ---- Loss ------------------------------------------------------------------------------------ */

static void loss_there(int width, int length, int rows, const int *targets, real scale,
                       real *logits, struct loss *ret_loss)
{
    struct train_row_loss *each = gpu_room(GPU_LOSSES, (size_t)rows * sizeof(*each));
    const struct train_loss_rows call = {targets, logits, each, rows, width, scale};
    const struct train_loss_total total = {each, &gpu.device_news->worth, rows, length};

    gpu_launch_rows(GPU_loss_rows, (uint64_t)rows, width, &call);
    gpu_launch_blocks(GPU_loss_total, 1, &total);
    gpu_bring(total.total, sizeof(*total.total));
    gpu.wanted = ret_loss;
}

const struct arithmetic gpu_arithmetic = {
    .alloc = alloc,
    .release = release,
    .clear = clear,
    .write = write_memory,
    .read = read_memory,
    .finish = gpu_wait,
    .embedding_forward = embedding_there,
    .embedding_backward = embedding_back,
    .linear_forward = linear_there,
    .linear_backward = linear_back,
    .norm_forward = norm_there,
    .norm_backward = norm_back,
    .attention_forward = attention_there,
    .attention_backward = attention_back,
    .gelu_forward = gelu_there,
    .gelu_backward = gelu_back,
    .loss_of = loss_there,
};
