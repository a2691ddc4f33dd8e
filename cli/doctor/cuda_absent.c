/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_absent.c - stands in for cuda.c where the CUDA toolkit was not installed. */
#include "cli/doctor/report.h"

#include <unistd.h>

void doctor_check_gpudirect(struct doctor_report *report)
{
    (void)report; /* doctor_check_cuda() has said why */
}

void doctor_check_cuda(struct doctor_report *report)
{
    if (access("/dev/nvidia0", F_OK))
        doctor_say(report, DOCTOR_OK, "CUDA", NULL,
                   "host memory only: built without the CUDA toolkit, and no /dev/nvidia0 here");
    else
        doctor_say(report, DOCTOR_NOTE, "CUDA", "install the CUDA toolkit and build Rondo again",
                   "there is a GPU, but this Rondo was built without the CUDA toolkit");
}
