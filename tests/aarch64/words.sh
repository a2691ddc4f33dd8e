# SPDX-License-Identifier: BSD-3-Clause
#
# words.sh - what ./dev does for 64-bit Arm on another machine; it is part of that script, and uses its functions.
#
# Libraries for Arm go into a folder and are not installed: Debian allows a library for two processors only in exactly
# the same version, and would remove or upgrade packages of this machine to get there.

arm_root=$PWD/build-aarch64-root
arm_libraries=libc6-dev,libhwloc-dev,libsodium-dev,libjansson-dev,libibverbs-dev,libpmix-dev,libcriterion-dev

arm_libraries_are_there() { # Debian's libraries for Arm in $arm_root; one attempt that failed leaves nothing
    local release link to
    [ "$(cat "$arm_root/complete" 2>/dev/null)" != "$arm_libraries" ] || return 0
    step "libraries for 64-bit Arm, 300 MB"
    rm -rf "$arm_root"
    release=$(. /etc/os-release && echo "$VERSION_CODENAME")
    run mmdebstrap --quiet --architectures=arm64 --variant=extract --include="$arm_libraries" "$release" "$arm_root" \
        $(ls /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources 2>/dev/null) ||
        die "the libraries for Arm could not be fetched: is there a network?"
    # /usr/lib/.../libm.so is a link to /lib/..., which is a folder of this machine.
    find "$arm_root" -lname '/*' -printf '%p\t%l\n' | while IFS=$'\t' read -r link to; do
        ln -sfnr "$arm_root$to" "$link"
    done
    echo "$arm_libraries" >"$arm_root/complete"
}

arm_configure() {
    local preload=$arm_root/exec.so files=$arm_root/cross.ini compiler="'aarch64-linux-gnu-gcc'" cross=()
    word_deps build aarch64
    arm_libraries_are_there
    run aarch64-linux-gnu-gcc --sysroot="$arm_root" -D_GNU_SOURCE -O1 -Wall -Wextra -Werror -shared -fPIC \
        tests/aarch64/exec.c -o "$preload"
    ! command -v ccache >/dev/null || compiler="'ccache', $compiler"
    printf "[constants]\nroot = '%s'\ncompiler = [%s]\n" "$arm_root" "$compiler" >"$files"
    [ -f build-aarch64/build.ninja ] || cross=(--cross-file "$files" --cross-file tests/aarch64/cross.ini)
    configure build-aarch64 "${cross[@]}" -Doptimization=1 -Dwerror=true -Dcuda=disabled -Dpeers=disabled -Dvm=disabled
    export QEMU_LD_PREFIX=$arm_root QEMU_SET_ENV=LD_PRELOAD=$preload EMULATOR
    EMULATOR=$(command -v qemu-aarch64)
}

test_aarch64() { # builds for 64-bit Arm, then runs under qemu the tests of the kernels and two ranks
    step "a build for 64-bit Arm"
    arm_configure
    compile build-aarch64 include/librondo.so.0.1.0 cli/rondo examples/example_01_all_reduce kernels_tests
    step "kernels on 64-bit Arm, by qemu: every level and plain C give the same"
    tests_of build-aarch64 --suite kernels
    python3 tests/lint/tally.py "${logs[@]}"
    step "an all-reduce on 2 ranks of 64-bit Arm, by qemu"
    run qemu-aarch64 build-aarch64/cli/rondo run -n 2 build-aarch64/examples/example_01_all_reduce
    unset QEMU_LD_PREFIX QEMU_SET_ENV EMULATOR
}
