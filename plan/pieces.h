/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pieces.h - where the operands of a step are and how long they are, for whoever moves the data:
 * move.c on the host, cuda/kernels/ on a GPU. Like step_loop.h it is included with STEP_FUNCTION,
 * the qualifiers of every function here.
 */
/* Cut the segment that begins at `start` into atoms. */
STEP_FUNCTION void exec_open_segment(const struct execution *x, struct exec_program *program,
                                     size_t start)
{
    size_t left = x->shape.count - start;
    size_t grain = x->shape.grain;
    size_t grains;

    program->start = start;
    program->at = program->begin;
    program->length = x->shape.segment;
    program->each = x->shape.each;
    program->rest = x->shape.rest;
    if (left >= x->shape.segment)
        return;
    program->length = left;
    grains = (left + grain - 1) / grain;
    program->each = grains / x->plan->parts;
    program->rest = grains - program->each * x->plan->parts;
}

/* First element of an atom, within its segment: base/range.h with the divisions done beforehand. */
STEP_FUNCTION size_t atom_start(const struct execution *x, const struct exec_program *program,
                                uint32_t atom)
{
    size_t extra, start;

    if (!atom)
        return 0;
    extra = atom < program->rest ? atom : program->rest;
    start = (program->each * atom + extra) * x->shape.grain;
    return start < program->length ? start : program->length;
}

/* Bytes from the beginning of a user buffer to the range. */
STEP_FUNCTION size_t user_offset(const struct execution *x, const struct exec_program *program,
                                 const struct plan_operand *operand)
{
    return (operand->block * x->shape.count + program->start +
            atom_start(x, program, operand->first)) *
           x->shape.element;
}

/* Elements of a range: of the first operand that has an
 * address, else of the slot's own first atom. */
STEP_FUNCTION size_t step_elements(const struct execution *x, const struct exec_program *program,
                                   const struct plan_step *step)
{
    const struct plan_operand *operand = plan_sources(x->plan, step);
    int last = step->sources + step->destinations - 1;

    if (step->atoms == x->plan->parts)
        return program->length;
    for (int i = 0; i < last && operand->buffer == PLAN_SLOT; i++)
        operand++;
    return atom_start(x, program, operand->first + step->atoms) -
           atom_start(x, program, operand->first);
}

/* Finds the source that is this rank's own raw input, which a pre-multiplied sum scales; -1: none
 * is. */
STEP_FUNCTION int raw_source(const struct execution *x, const struct plan_step *step)
{
    const struct plan_operand *sources = plan_sources(x->plan, step);

    for (int i = 0; i < step->sources; i++)
        if (sources[i].buffer == PLAN_INPUT && sources[i].rank == x->plan->rank)
            return i;
    return -1;
}

/* True if the step moves bytes and does nothing else. */
STEP_FUNCTION bool only_copies(const struct execution *x, const struct plan_step *step)
{
    return !x->op || (step->verb == PLAN_COPY && !x->op->has_scale &&
                      !((step->flags & PLAN_FINISH) && x->op->divisor > 1));
}
