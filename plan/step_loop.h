/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * step_loop.h - the loop over a program's steps, for whoever carries plans out: a host thread, a
 * CUDA block, the queue of a CUDA stream.
 *
 * The includer has before it plan/pieces.h, with STEP_FUNCTION, and one function for each kind of
 * step; plan/step_slots.h has the first four for messages in slots:
 *
 *     step_wait_data(x, step), step_wait_credit(x, step)
 *     step_publish(x, step), step_give_back(x, step)
 *                                       wait for a message or for room; signal one or the other
 *     step_combine(x, program, step)    the data movement of a copy or reduce step
 *     step_at(x, program), step_next(x, program)
 *                                       the step that the program is at; go on to the next
 *
 * No function here waits: a step that can't go on returns EXEC_BLOCKED and is tried again, so a
 * program is (counter, segment) and nothing else.
 */

/* Run one program until it is done or can't go on.
 * EXEC_MOVED: it did something, then had to wait. */
STEP_FUNCTION enum exec_state step_run(struct execution *x, struct exec_program *program)
{
    uint32_t before = program->at;
    size_t segment = program->start;

    for (;;) {
        while (program->at < program->end) {
            const struct plan_step *step = step_at(x, program);
            bool data = step->event == PLAN_DATA;
            enum exec_state state;

            if (step->verb == PLAN_WAIT)
                state = data ? step_wait_data(x, step) : step_wait_credit(x, step);
            else if (step->verb == PLAN_SIGNAL)
                state = data ? step_publish(x, step) : step_give_back(x, step);
            else
                state = step_combine(x, program, step);
            if (state == EXEC_BLOCKED)
                return program->at == before && program->start == segment ? EXEC_BLOCKED
                                                                          : EXEC_MOVED;
            if (state != EXEC_MOVED)
                return state;
            step_next(x, program);
        }
        if (x->shape.count - program->start <= x->shape.segment) {
            program->done = true;
            return EXEC_DONE;
        }
        exec_open_segment(x, program, program->start + x->shape.segment);
    }
}
