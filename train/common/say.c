/* SPDX-License-Identifier: BSD-3-Clause */
/* say.c - see say.h. The program has one thread. */
#include "train/common/say.h"

#include "rondo/ddp.h"

#include <stdarg.h>
#include <stdio.h>

static char sentence[1024];

rondo_result say(rondo_result result, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(sentence, sizeof(sentence), format, arguments);
    va_end(arguments);
    return result;
}

rondo_result say_memory(void)
{
    return say(RONDO_ERROR_MEMORY, "out of memory: make --batch, --width or --layers smaller");
}

rondo_result say_comm(rondo_result result, const rondo_comm *comm)
{
    return result ? say(result, "%s", rondo_last_error(comm)) : RONDO_OK;
}

rondo_result say_ddp(rondo_result result)
{
    return result ? say(result, "%s", rondo_ddp_last_error()) : RONDO_OK;
}

const char *said(void)
{
    return sentence;
}
