#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# embed.sh OUTPUT [IMAGE]: an assembler file with the image's bytes as `cuda_image`; without one it has none.
set -e
[ -z "$2" ] || include=".incbin \"$(realpath "$2")\""
cat >"$1" <<END
    .section .rodata
    .global cuda_image, cuda_image_bytes
    .hidden cuda_image, cuda_image_bytes
    .balign 64
cuda_image:
    $include
cuda_image_end:
    .balign 8
cuda_image_bytes:
    .quad cuda_image_end - cuda_image
    .section .note.GNU-stack, "", %progbits
END
