#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# compile.sh USAGE COMMAND...: runs nvcc, and keeps in USAGE what its assembler says of each kernel; all else that
# it says goes on.
usage=$1
shift
"$@" -Xptxas -v 2>"$usage"
status=$?
grep -v -e '^ptxas info' -e '^    ' "$usage" >&2
exit $status
