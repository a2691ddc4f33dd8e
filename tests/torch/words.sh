# SPDX-License-Identifier: BSD-3-Clause
#
# words.sh - what ./dev does with torch; it is part of that script, and uses its functions.

torch_venv=$PWD/build-torch/venv

torch_is_there() { # a venv with torch, the wheel and rondo-torch; returns 1 and says why where that cannot be
    local venv=$torch_venv free source=build-torch/source cxx=g++
    free=$(df --output=avail -k . | tail -1)
    if [ ! -d "$venv" ] && [ "$free" -lt 12000000 ]; then
        echo "skipped: torch takes 6 GB, and as much while it is installed; there are $((free >> 20)) GB"
        return 1
    fi
    mkdir -p build-torch
    [ -x "$venv/bin/python" ] || run python3 -m venv "$venv"
    if ! "$venv/bin/python" -c 'import torch, numpy, expecttest, setuptools, deepspeed, transformers' 2>/dev/null &&
        ! { run "$venv/bin/pip" install --quiet torch numpy expecttest setuptools &&
            run "$venv/bin/pip" install --quiet --no-build-isolation deepspeed transformers; }; then
        echo "skipped: torch, or what its tests need, could not be installed; is there a network?"
        return 1
    fi
    word_wheel
    run "$venv/bin/pip" install --quiet --no-deps --force-reinstall out/wheel/*.whl
    step "rondo-torch, compiled against this torch"
    ! command -v ccache >/dev/null || cxx="ccache g++"
    mkdir -p $source
    cp -r python/compiled/. $source
    run env CC="$cxx" CXX="$cxx" RONDO_INCLUDE="$PWD/include" "$venv/bin/pip" install --quiet --no-deps \
        --no-build-isolation --force-reinstall ./$source
}

test_torch() { # the backend of torch.distributed, where there is room for torch and a network
    local python=$torch_venv/bin/python failed=0 kind
    torch_is_there || return 0
    rm -f build-torch/*.tap
    step "scripts and calls under torchrun"
    run "$python" tests/torch/test_torch.py | tee build-torch/calls.tap || failed=1
    for kind in compiled python; do
        export TORCH_RONDO=$kind
        step "torch's own DistributedTest on 3 ranks, backend $kind"
        run "$python" tests/torch/distributed.py rondo 3 | tee build-torch/distributed-$kind.tap || failed=1
        step "the same on two hosts"
        run env TESTED_HOSTS=2 "$python" tests/torch/distributed.py rondo 3 |
            tee build-torch/hosts-$kind.tap || failed=1
        step "those of its tests that only run under Gloo's name, backend $kind"
        run "$python" tests/torch/distributed.py gloo 3 monitored_barrier barrier_timeout \
            batch_isend_irecv_gloo sparse isend irecv any_source | tee build-torch/gloo-$kind.tap || failed=1
    done
    unset TORCH_RONDO
    printf '%d passed, %d failed\n' "$(cat build-torch/*.tap | grep '^ok' | grep -vc 'SKIP')" \
        "$(cat build-torch/*.tap | grep -c '^not ok')"
    return $failed
}
