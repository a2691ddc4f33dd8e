# SPDX-License-Identifier: BSD-3-Clause
#
# words.sh - `./dev test`; it is part of that script, and uses its functions.
#
# Each test runs once. build-asan has assertions and sanitizers, and runs all that they can run: what is wrong in memory
# or in arithmetic ends it there. build-release is what people install; it runs the tests that are marked `plain`, for a
# reason that a comment at the test gives, and a few that are marked `twice`. build-tsan runs those that are marked
# `stress`, for what only threads do wrong, and build-fuzz the parsers of bytes from outside. build-test is for people:
# it has assertions, and is compiled soon.
#
# Criterion looks at how a case ends: it sees a signal, but not the exit status by which leaks are told otherwise.
export ASAN_OPTIONS=handle_sigill=1:abort_on_error=1
export TSAN_OPTIONS=handle_sigill=1:halt_on_error=1:second_deadlock_stack=1:suppressions=$PWD/tests/tsan.supp

side_by_side=6 # programs at a time: most of them wait for each other's ranks, and nothing measures
bundled=(cuda gpu compat train_cuda) # suites whose programs `./dev bundle` takes along, and a plain test tries
logs=()

# Meson's tests of a folder, a line for each suite; a test that fails does not end this script. A few programs that fail
# are run once more, alone: those that are right then are unsteady, and the tally names them.
tests_of() { # FOLDER OPTIONS of meson test...
    local folder=$1 log=$1/meson-logs/testlog.json failed
    shift
    rm -f "$log" "$folder/meson-logs/again.json"
    printf '   $ meson test -C %s %s\n' "$folder" "$*"
    meson test -C "$folder" --no-rebuild --list "$@" >"$folder/listed-tests" 2>/dev/null
    meson test -C "$folder" --no-rebuild --num-processes $side_by_side "$@" |
        python3 tests/lint/tally.py --watch "$folder/listed-tests" || echo "   $folder: see the end"
    mapfile -t failed < <(python3 tests/lint/tally.py --failed "$log")
    [ ${#failed[@]} = 0 ] ||
        run meson test -C "$folder" --no-rebuild --num-processes 1 --logbase again "${failed[@]}" ||
        echo "   $folder: they fail alone, too"
    logs+=("$log")
}

tally() { # LOGS...: the end of a run, and what sanitizers said in it
    grep -hsE -A 20 'ERROR: |WARNING: ThreadSanitizer' "$reports".* | head -n 100 || true
    python3 tests/lint/tally.py "$@"
}

# Undefined behaviour is an illegal instruction, and the other sanitizer says in which line: with sentences of their own
# objects are five times as large, and each process has a second runtime, whose memory is searched for leaks, too. Null
# pointers, ends of objects, and pointers beyond them are found by AddressSanitizer when they are used. -g1: to write
# down where variables are as well takes a quarter of the compiler's time.
sanitized="-g1 -fsanitize=undefined -fsanitize-undefined-trap-on-error -fno-sanitize=null,object-size,pointer-overflow"

# It takes what tests leave of the processors; at a lower priority busy neighbours would leave nothing.
beside() { # LOG COMMAND...; `wait "$beside"` has its status
    local log=$1
    shift
    (
        renice -n 5 $BASHPID >/dev/null
        "$@"
    ) >"$log" 2>&1 &
    beside=$!
}

test_build() { # FOLDER: configures one of the builds above
    case $1 in
    build-release) configure build-release --buildtype=release -Dwerror=true ;;
    build-test) configure build-test "${checked[@]}" ;;
    build-asan) configure build-asan -Doptimization=1 -Db_sanitize=address -Db_lundef=false \
        -Dfuzz_seconds=0 -Dgpu_architectures= -Dc_args="$sanitized" -Dcpp_args="$sanitized" ;;
    build-tsan) configure build-tsan -Doptimization=1 -Db_sanitize=thread -Db_lundef=false \
        -Dgpu_architectures= -Dc_args="$sanitized" -Dcpp_args="$sanitized" ;;
    build-fuzz) fuzz_build ;;
    esac
}

test_some() { # [FOLDER] ROOM or TEST...: those alone, after building only what they need; in build-test by default
    local folder=build-test name suites selection=()
    case $1 in build-*) folder=$1; shift ;; esac
    [ $# -gt 0 ] || die "which room or test of $folder?"
    [ -f "$folder/build.ninja" ] || { word_deps; test_build "$folder"; }
    suites=$(python3 tests/lint/tally.py --suites "$folder")
    for name in "$@"; do
        if grep -qx "$name" <<<"$suites"; then
            selection+=(--suite "$name")
        else
            selection+=("$name")
        fi
    done
    step "tests of $*"
    rm -f "$folder/meson-logs/testlog.json" "$folder/meson-logs/again.json"
    run meson test -C "$folder" --print-errorlogs "${selection[@]}" || echo "   $folder: see above"
    tally "$folder/meson-logs/testlog.json"
}

test_again() { # what failed in the last run of everything, each program in its build
    local folder name
    [ -s out/failed ] || die "nothing failed in the last ./dev test, or there was none"
    while read -r folder name; do
        step "$name of $folder"
        test_build "$folder"
        run meson test -C "$folder" --print-errorlogs --num-processes 1 --logbase "one-$name" "$name" \
            </dev/null || echo "   it fails"
        logs+=("$folder/meson-logs/one-$name.json")
    done < <(cat out/failed)
    tally "${logs[@]}"
}

test_all() {
    local targets names
    word_deps
    step "what people install, and the tests that no sanitizer can run"
    test_build build-release
    mapfile -t targets < <(python3 tests/lint/tally.py --targets build-release installed plain twice "${bundled[@]}")
    compile build-release "${targets[@]}"
    tests_of build-release --suite plain --suite twice

    step "under AddressSanitizer and UndefinedBehaviorSanitizer, assertions on"
    test_build build-asan
    mapfile -t targets < <(python3 tests/lint/tally.py --targets build-asan installed -plain -stress)
    compile build-asan "${targets[@]}"
    tests_of build-asan --no-suite plain --no-suite stress

    step "the stress programs under ThreadSanitizer"
    test_build build-tsan
    mapfile -t targets < <(python3 tests/lint/tally.py --targets build-tsan stress)
    [ ${#targets[@]} -gt 0 ] || die "build-tsan has no stress programs: tests/*/meson.build should name some"
    compile build-tsan "${targets[@]}"
    beside out/build-fuzz.log test_build build-fuzz # the longest of these programs leave a processor idle
    tests_of build-tsan --suite stress

    step "parsers of bytes from outside under libFuzzer, $fuzz_seconds s each"
    wait "$beside" || die "build-fuzz was not compiled: $(tail -n 25 out/build-fuzz.log)"
    tests_of build-fuzz --suite fuzz

    step "all parts together"
    tally --keep out "${logs[@]}"
}

word_test() { # everything, [BUILD] and rooms (comm, plan, ...) or tests, --again what failed, or torch (3 GB)
    # Criterion closes stderr, so reports of sanitizers go to files.
    reports=$PWD/out/sanitizer
    mkdir -p out
    rm -f "$reports".*
    export ASAN_OPTIONS+=:log_path=$reports TSAN_OPTIONS+=:log_path=$reports
    case ${1:-} in
    '') test_all ;;
    --again) test_again ;;
    torch) test_torch ;;
    *) test_some "$@" ;;
    esac
}
