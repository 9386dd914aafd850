#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Installs what the tests need on Debian 12, and packages of PyPI (tests/requirements.txt) in
# build/check-python, unless PYTHON names an interpreter that has them. Then builds and runs all of
# them in several ways, each in its own tree build/check-STEP with its log beside it. A tree is
# removed when all of its tests have passed: together they take 20 GB. Two steps run at a time, so
# that one works while the other configures, packs, waits for a daemon or for its last test. Each
# prints its line at its end. The last line counts the tests of all steps; a step that does not
# build, breaks off or runs no test counts as one failure more. A test that fails runs once more,
# alone in its step. If it passes then, it counts as passed and as unsteady. Each unsteady test is a
# defect: the closing lines name it and its step.
#
#   contrib/check.sh          every step
#   contrib/check.sh STEP...  some: gcc clang memory threads dist package quickstart debian13
#                             arm64-quick
#
# These steps run only by their names, and not in CI. The first installs the newest ExecuTorch,
# transformers, optimum-executorch and Ultralytics, exports with them and runs the programs, for
# hours; contrib/export/newest.py has its options. The second makes two versions of a copy by
# contrib/release.sh; apt upgrades one to the other in a root of Debian. The third does what the
# README says first, in bare roots of Debian. It builds the programs of contrib/portable.sh. It
# tests them in roots that have nothing else, or Debian; those of another CPU by qemu-user-static.
# The next three build for another architecture with Debian's compiler, and run tests of units, of
# the HAL, of operators, of models and of HTTP in an emulator of its processors: arm64-quick is the
# part of that for CI. The last one makes Debian's package for arm64 here, and installs it in a root
# of arm64.
#
#   contrib/check.sh newest [--constraint FILE] [--venv PART=DIR]... [--only PART[=NAME,...]]...
#   contrib/check.sh release
#   contrib/check.sh portable [TARGET]...
#   contrib/check.sh arm64|armhf|riscv64 [CPU]...     such as cortex-a53, neoverse-n1, max
#   contrib/check.sh arm64-package

set -u
cd "$(dirname "$0")/.." || exit 1

PACKAGES=contrib/packages.tsv
# shellcheck source=contrib/packages.sh
. contrib/packages.sh

# Without the last ones the first steps compile: see make_tools().
FIRST_PACKAGES='libcmocka-dev python3 ccache glslang-tools'
TEST_PACKAGES='clang libedit2 python3-venv python3-prometheus-client python3-yaml shellcheck systemd
    prometheus mesa-vulkan-drivers vulkan-validationlayers haproxy apt-utils bash-completion
    chromium chromium-driver debhelper debootstrap dpkg-dev fish gnupg lintian openssl valgrind zsh'
# The longest first, but gcc before those that compile with the same flags.
STEPS='gcc threads memory clang debian13 package arm64-quick dist quickstart'
TOTAL_SECONDS=5100
PYPI_SECONDS=300
end=$(($(date +%s) + TOTAL_SECONDS))
# Tests wait much of their time, for a daemon or for a client. One test a processor would leave it
# idle then, so there are two: of two steps one each.
jobs=${CHECK_JOBS:-$((2 * $(nproc)))}
under=

# Installs what only tests take, while the first steps compile: apt and pip wait much of their time,
# for the network and for the disk. Leaves a line for await_tools(). The step newest makes
# interpreters of its own.
TOOLS=$PWD/build/check-tools
make_tools() {
    state=failed
    # shellcheck disable=SC2086 # a list of words
    install_packages $TEST_PACKAGES && { [ "$1" = newest ] || make_python; } && state=ready
    echo "$state ${PYTHON-}" >"$TOOLS.new"
    mv "$TOOLS.new" "$TOOLS"
}

# Waits for make_tools(), and sets PYTHON.
await_tools() {
    until [ -e "$TOOLS" ]; do sleep 1; done
    read -r state PYTHON <"$TOOLS"
    export PYTHON
    [ -n "$PYTHON" ] || unset PYTHON
    [ "$state" = ready ] || echo 'ERROR: the packages that tests take are not installed'
    [ "$state" = ready ]
}

# A tree here is compiled once, so lists of what an object depends on are of no use: to set them up
# takes two thirds of the time of configure. The step quickstart keeps to the default.
ONCE=--disable-dependency-tracking

# Under a sanitizer GCC warns of errors that cannot happen. So only the plain builds refuse
# warnings.
compile() {
    ../../configure --quiet $ONCE "$@" && make -s -j"$(nproc)" all
}

# Call before objects are compiled that no other step takes. To keep an object takes as long as a
# third of its compilation, because ccache preprocesses it by itself: only a second run gains by it.
compile_for_this_step() {
    if [ "${CHECK_CACHE-}" = empty ]; then
        export CCACHE_DISABLE=1
    fi
}

check() {
    # shellcheck disable=SC2086 # a command or nothing
    VERBOSE=1 $under make -s -j"$jobs" "$@"
}

# Prints the seconds of the longest tests: from the birth of a test's log to its last line. Where a
# file system knows no births, it prints nothing.
print_longest() {
    find tests -name '*.log' -exec stat -c '%W %Y %n' {} + |
        awk '$1 > 0 { printf "%d s %s\n", $2 - $1, $3 }' | sort -rn | head -n 30
}

# Runs the tests, or only those that TESTS= names. Then runs the failed tests once more.
AGAIN='Once more, alone:'
check_twice() {
    await_tools || return
    check check "$@"
    status=$?
    print_longest
    [ $status -ne 0 ] || return 0
    find tests -name '*.trs' -exec grep -l '^:recheck: *yes' {} + | sed 's/\.trs$//' |
        while read -r test; do
            echo "$AGAIN $test"
            sed -n '/^not ok/s/^/because: /p; /^SUMMARY: /s/^/because: /p' "$test.log" |
                head -n 5
        done
    jobs=1
    check recheck "$@"
}

# The words of a variable of this tree's Makefile, one a line.
words() {
    # shellcheck disable=SC2016 # for make, not for the shell
    printf 'include Makefile\nprint:\n\t@echo $(%s)\n' "$1" | make -s -f - print | tr ' ' '\n'
}

# Reads tests, one a line, and prints them as one line with the longest ones first: a long test that
# begins last leaves a processor idle. The order here is that of their times under a sanitizer.
LONGEST='http/run_generate http/run_sched http/run_memory http/run_shares http/run_pte
    fuzz/test_program_mutations hal/test_uk_math hal/test_uk_gemm hal/test_uk_u8 hal/test_uk_bf16
    hal/test_uk_vec hal/test_uk_dw hal/test_uk_winograd http/run_drafts http/run_lifecycle
    http/run_batch ops/shaders http/run_fetch'
longest_first() {
    awk -v longest="$LONGEST" '
        BEGIN {
            count = split(longest, list)
            for (i = 1; i <= count; i++) rank["tests/" list[i]] = i
        }
        {
            name = $0
            sub(/\.[a-z]+$/, "", name)
            print (name in rank ? rank[name] : count + NR), $0
        }' | sort -n | cut -d ' ' -f 2 | tr '\n' ' '
}

# The tests of texts run no more of the programs than --help, so the step gcc suffices for them.
TEXTS='^tests/(archives|docs|lint|settings)\.sh$'

# Another compiler makes other code of kernels, operators, units and the library, and finds other
# errors in them. Programs of changed bytes and failed allocations look for what the sanitizers see.
# Those against a running server or by commands of pages look for what the server does.
CLANG_EXCLUDE="^tests/(fuzz|http|oom|readme|recipes|systemd)/|$TEXTS"
CLANG_PROGRAMS_EXCLUDE='^tests/(bench|fuzz|http|oom)/'

# AddressSanitizer need not see every shader on every case of an operator: it sees the forms for the
# CPU in test_ops, and the host's side of Vulkan in the tests of the HAL and of models. Nor need it
# see what a browser makes of the console, whose files run_console asks for, what a generator makes
# of openapi.json, which test_api asks for, or all commands of pages, which repeat what other tests
# ask for.
MEMORY_EXCLUDE="$TEXTS|^tests/ops/shaders\\.sh\$|^tests/(readme|recipes)/"
MEMORY_EXCLUDE="$MEMORY_EXCLUDE|/run_(console_pages|openapi)\\.py\$"
MEMORY_PROGRAMS_EXCLUDE='^tests/bench/|/test_shaders$'

# Under ThreadSanitizer run the tests of the HAL, the library, units in which threads meet, and a
# running server, except:
# * test_changed_files, in which the handler of SIGBUS maps zeros over a page that another thread
#   reads: that is its purpose, and the sanitizer takes mmap() for a write that races;
# * tests of Vulkan, whose driver has threads of its own. These are compiled without the sanitizer,
#   which would see races in them;
# * tests of one kernel: these start no thread;
# * tests of what an answer, a card, a command, an exporter's program or another server says: their
#   threads are those of the others.
THREADS_EXCLUDE='/test_changed_files$|/test_uk_|vulkan|run_devices'
SAYINGS='access|access_log|answers|bad_media|bench|bench_language|cards|classes|config|console'
SAYINGS=$SAYINGS'|console_pages|doors|embeddings|exporters|folders|formats|haproxy|infill|layouts'
SAYINGS=$SAYINGS'|lm_eval|messages|ollama|openai|openapi|orders|predict|proxy|pte|pte_client'
SAYINGS=$SAYINGS'|pte_compare|pte_media|responses|speech|tls_plays'
THREADS_EXCLUDE="$THREADS_EXCLUDE|/run_($SAYINGS)\\.py"
thread_tests() {
    threaded_units >threaded
    { words "$1" | grep -E '^tests/(hal/|http/|lib/test_)'; words "$1" | grep -xFf threaded; } |
        grep -vE "$THREADS_EXCLUDE" | longest_first
}

# Tests of units that start threads, or include a header of the scheduler, of queues, of pipelines
# or of the daemon. A device's workers are in the tests of the HAL.
THREADED='hal/queue|runtime/(pipeline|sched)/.*|server/daemon/.*|server/process/offload'
THREADED="$THREADED|tests/unit/(api|infer|observe|sched|serving)_support"
threaded_units() {
    includes="^#include (<pthread\\.h>|\"($THREADED)\\.h\")"
    (cd ../.. && grep -lE "$includes" tests/unit/test_*.c) | sed 's/\.c$//'
}

# Checks that the archive has every file of git, except files that only git and CI read.
check_archive() {
    git -C ../.. ls-files 2>/dev/null | grep -v '^\.[a-z]*\(/\|$\)' | sort >tracked
    tar -tzf pted-*.tar.gz | sed 's,^[^/]*/,,' | sort >packed
    comm -23 tracked packed >forgotten
    sed 's,$,: ERROR: not in the archive,' forgotten
    [ ! -s forgotten ]
}

# Packs the archive, once in a run, and unpacks it. Tests that read ../shared find it beside the
# unpacked tree.
ARCHIVE=$PWD/build/check-archive.tar.gz
unpack_archive() {
    if [ ! -e "$ARCHIVE" ]; then
        ../../configure --quiet $ONCE && make -s dist GZIP_ENV=--fast && check_archive &&
            mv pted-*.tar.gz "$ARCHIVE" || return
    fi
    tar -xzf "$ARCHIVE" || return
    [ ! -d ../../../shared ] || ln -s ../../../shared shared
}

# ---- Debian 13: in a bare root, whose compiler and libraries are newer than those here ----------

# Few tests: of what is compiled, and of each library that differs.
ROOT_PACKAGES='libcmocka-dev libedit2 python3 debhelper ccache openssl'
ROOT_UNITS='codecs conn document fetch_url framing halves http invocation json media number ops_copy
    passes pte sched serving tokenizer transcription transport_tls vm yaml'
ROOT_TESTS='chat http daemon start generate media parts pte tls'

has_roots() {
    [ "$(id -u)" -eq 0 ] && command -v debootstrap >/dev/null &&
        unshare --mount --pid --fork true 2>/dev/null
}

# make_root SUITE [build] [PACKAGE]...: with the files of git in it. What is mounted here is seen in
# this namespace only.
make_root() {
    suite=$1
    shift
    ../../contrib/bare_root.sh "$suite" root "$@" &&
        mount --rbind /dev root/dev && mount -t proc proc root/proc && mkdir -p root/src &&
        git -C ../.. ls-files -z | tar -C ../.. -c --null -T - | tar -C root/src -x || return
    if [ -d "${CCACHE_DIR-}" ]; then
        mkdir root/ccache && mount --bind "$CCACHE_DIR" root/ccache
    fi
}

# in_root DIR: the words before a command that runs it in the root.
in_root() {
    echo "chroot $PWD/root env -i -C $1 HOME=/root LC_ALL=C.UTF-8 VERBOSE=1 CCACHE_NOHASHDIR=1" \
        CCACHE_DIR=/ccache ${CCACHE_DISABLE:+CCACHE_DISABLE=1} \
        PATH=/usr/lib/ccache:/usr/sbin:/usr/bin:/sbin:/bin
}

# Builds the package, with little optimization because that takes long, and tests in its tree.
test_root() {
    $(in_root /src) DEB_CFLAGS_APPEND='-O1 -g0' DEB_BUILD_OPTIONS="parallel=$(nproc) noautodbgsym" \
        dpkg-buildpackage -b -us -uc >package.log 2>&1 || { tail -n 40 package.log; return 1; }
    if grep ':[0-9]*: warning:' package.log; then
        echo 'ERROR: warnings'
        return 1
    fi
    $(in_root /) sh -c 'dpkg -i pted_*.deb && pte run /src/tests/models/add.pte &&
        echo Hello! | pte chat --temperature 0 /src/tests/models/chat/model.pte |
            grep "How can I help you"' &&
        printf 'Testsuite summary for the package\n# PASS: 1\n# ERROR: 0\n' || return
    under=$(in_root /src/debian/build)
    # shellcheck disable=SC2086 # lists of words
    programs=$(printf 'tests/unit/test_%s ' $ROOT_UNITS)
    # shellcheck disable=SC2086
    tests="$programs $(printf 'tests/http/run_%s.py ' $ROOT_TESTS)"
    cd root/src/debian/build &&
        check_twice check_LIBRARIES= check_PROGRAMS="$programs" TESTS="$tests"
}

# in_namespace STEP FUNCTION: processes and mounts of the step end with their namespace, of which
# this is the first process.
in_namespace() {
    if ! has_roots; then
        echo 'skipped: it takes root, debootstrap and namespaces'
        printf 'Testsuite summary for %s\n# SKIP: 1\n# ERROR: 0\n' "$1"
    elif [ $$ -ne 1 ]; then
        unshare --mount --pid --fork --kill-child --mount-proc ../../contrib/check.sh --inside "$1"
    else
        trap 'exit 143' TERM
        "$2"
    fi
}

debian13() {
    # shellcheck disable=SC2086 # a list of words
    make_root trixie build $ROOT_PACKAGES && test_root
}

# As for s390x, whose numbers begin with the highest byte.
refuse_big_endian() {
    mkdir big_endian && cd big_endian || return
    ! CC='gcc -U__BYTE_ORDER__ -D__BYTE_ORDER__=__ORDER_BIG_ENDIAN__' ../../../configure --quiet \
        >../big_endian.log 2>&1 && grep 'error: .*big-endian' ../big_endian.log && cd ..
}

# ---- scripts that are not tests of make check ----

# Runs a script and counts its result: it exits with 77 if it cannot run here. Each part that it
# skips has a line in its output.
passed=0 failed=0 skipped=0 output=script.log
try() {
    "$@" >"$output" 2>&1
    case $? in
    0) passed=$((passed + 1)) ;;
    77)
        skipped=$((skipped + 1))
        echo "SKIP: $*"
        ;;
    *)
        failed=$((failed + 1))
        echo "FAIL: $*"
        ;;
    esac
    skipped=$((skipped + $(grep -c '^# skipped' "$output")))
    cat "$output"
}

# Prints what was counted as make check would, and returns whether no script has failed.
print_counts() {
    printf 'Testsuite summary for %s\n# PASS: %s\n# SKIP: %s\n# FAIL: %s\n# ERROR: 0\n' \
        "$1" $passed $skipped $failed
    [ $failed -eq 0 ]
}

# ---- other architectures ----

# Of each: its name for QEMU, the prefix of its compiler, and processors. Of arm64 the first two
# have neon, the next one dotprod, and the last one all levels.
cross_row() {
    case $1 in
    arm64) echo aarch64 aarch64-linux-gnu cortex-a53 cortex-a72 neoverse-n1 max ;;
    armhf) echo arm arm-linux-gnueabihf max ;;
    riscv64) echo riscv64 riscv64-linux-gnu rv64 ;;
    esac
}

# Kernels, operators and models are tested on each processor, models also by HTTP. All else is
# tested on the last one.
CROSS_EACH='tests/ops/test_ops tests/models/test_same_bytes tests/models/run_models.py'
CROSS_LAST='tests/hal/cpu_1_worker.sh tests/hal/cpu_4_workers.sh tests/hal/test_cpu
    tests/hal/test_handles tests/http/run_daemon.py tests/http/run_http.py
    tests/http/run_media.py tests/http/run_sequences.py tests/http/run_tls.py'
# The emulator has a handler of its own for pages that a file lacks.
CROSS_EXCLUDED='/test_changed_files$'
# What maps memory, with pages of 16 and 64 KiB. Not those of the HAL: they ask mincore(), which
# counts pages of 4 KiB in the emulator.
CROSS_PAGES='tests/unit/test_pte tests/unit/test_state tests/unit/test_prefix tests/unit/test_edits
    tests/models/test_same_bytes'
# No test takes longer, even in the emulator: one that waits for ever fails.
CROSS_TEST_SECONDS=3600

# cross_configure ARCH [OPTION]...: configures this tree for it, and sets what the functions below
# read. Returns 77, after a line that says why, where the packages cannot be had.
cross_configure() {
    arch=$1
    shift
    row=$(cross_row "$arch")
    machine=${row%% *}
    row=${row#* }
    if ! install_packages "gcc-${row%% *}" mmdebstrap qemu-user-static; then
        echo "skipped: apt has no compiler or emulator for $arch"
        return 77
    fi
    (tree=$PWD && cd ../.. && contrib/cross.sh "$arch" "$tree" --enable-werror "$@") || return
    export QEMU_LD_PREFIX="$PWD/../cross/$arch"
    kernels=$(words UK_TESTS | tr '\n' ' ')
    units=$(words TESTS | grep '^tests/unit/' | grep -vE "$CROSS_EXCLUDED" | tr '\n' ' ')
}

# cross_test CPU TEST...: in the emulator.
cross_test() {
    echo "$1${QEMU_PAGESIZE:+, pages of $QEMU_PAGESIZE bytes}"
    QEMU_CPU=$1
    export QEMU_CPU
    shift
    VERBOSE=1 ../../contrib/emulated.sh "$machine" make -s -j"$jobs" check-TESTS \
        check_LIBRARIES= check_PROGRAMS= TESTS="$*" \
        LOG_COMPILER="timeout --kill-after=10 $CROSS_TEST_SECONDS"
}

cross_make() {
    make -s -j"$(nproc)" check_LIBRARIES= "$@"
}

# All of an architecture.
cross() {
    arch=$1
    shift
    mkdir -p "build/check-$arch" && cd "build/check-$arch" && cross_configure "$arch" || return
    # shellcheck disable=SC2046 # lists of words
    [ $# -gt 0 ] || set -- $(cross_row "$arch" | cut -d ' ' -f 3-)
    # shellcheck disable=SC2086
    cross_make all-am $kernels $units tests/ops/test_ops tests/models/test_same_bytes \
        tests/hal/cts tests/hal/test_cpu tests/hal/test_handles || return
    output=../check-$arch.log
    for cpu; do
        # shellcheck disable=SC2086
        try cross_test "$cpu" $kernels $CROSS_EACH
    done
    # shellcheck disable=SC2086
    try cross_test "$cpu" $units $CROSS_LAST
    for QEMU_PAGESIZE in 16384 65536; do
        export QEMU_PAGESIZE
        # shellcheck disable=SC2086
        [ "$arch" != arm64 ] || try cross_test "$cpu" $CROSS_PAGES
    done
    print_counts "$arch" && [ $passed -gt 0 ]
}

# The package, made by dpkg with Debian's compiler and libraries for arm64 in a root of this
# machine. It is installed, serves, and is removed in a root of arm64, in an emulator.
arm64_package() {
    install_packages qemu-user-static && make_root bookworm ccache || return
    $(in_root /src) DEBIAN_FRONTEND=noninteractive sh -ec '
            dpkg --add-architecture arm64
            apt-get -qq update
            apt-get -qq -y --no-install-recommends install crossbuild-essential-arm64
            apt-get -qq -y --no-install-recommends build-dep -a arm64 -P cross,nocheck ./
        ' >dependencies.log 2>&1 || { tail -n 40 dependencies.log; return 1; }
    # With little optimization because more takes long; its code is tested elsewhere.
    $(in_root /src) DEB_CFLAGS_APPEND='-O1 -g0' DEB_BUILD_OPTIONS="parallel=$(nproc) noautodbgsym" \
        dpkg-buildpackage -a arm64 -Pcross,nocheck -b -us -uc >package.log 2>&1 ||
        { tail -n 40 package.log; return 1; }
    top_srcdir=$(cd ../.. && pwd) && top_builddir=$PWD && export top_srcdir top_builddir
    try ../../contrib/emulated.sh aarch64 ../../tests/package/run_package.py --install \
        root/pted_*_arm64.deb arm64
    print_counts 'the package for arm64'
}

# A part that is short enough for CI. On the first processor an instruction that its level should
# not have ends a test. What the second one has besides is in the kernels of bytes alone. The last
# one has all levels.
cross_quick() {
    cross_configure arm64 CFLAGS=-O2 $ONCE
    status=$?
    if [ $status -eq 0 ]; then
        # shellcheck disable=SC2086 # lists of words
        cross_make $kernels tests/ops/test_ops || return
        for cpu in cortex-a53 neoverse-n1 max; do
            tests="$kernels tests/ops/test_ops"
            [ $cpu != neoverse-n1 ] || tests=tests/hal/test_uk_u8
            # shellcheck disable=SC2086
            cross_test $cpu $tests || status=$?
        done
    fi
    [ $status -eq 77 ] || return $status
    printf 'Testsuite summary for arm64\n# SKIP: 1\n# ERROR: 0\n'
}

# One step, inside its tree. The first two compile before all tools are there.
step() {
    case $1 in
    gcc | threads) ;;
    *) await_tools || return ;;
    esac
    case $1 in
    gcc | dist | package) ;;
    *) compile_for_this_step ;;
    esac
    case $1 in
    gcc)
        # In the archive, as its users build it, but without what only a debugger reads: that would
        # take a quarter of the time of compiling and linking.
        ../../contrib/shaders.sh --check && unpack_archive && cd pted-*/ &&
            mkdir -p build/gcc && cd build/gcc && compile CC=gcc CFLAGS=-O2 --enable-werror &&
            compile_for_this_step && check_twice TESTS="$(words TESTS | longest_first)"
        ;;
    clang)
        compile CC=clang CFLAGS=-O2 --enable-werror --without-vulkan &&
            check_twice check_PROGRAMS="$(words check_PROGRAMS |
                grep -vE "$CLANG_PROGRAMS_EXCLUDE" | tr '\n' ' ')" \
                TESTS="$(words TESTS | grep -vE "$CLANG_EXCLUDE" | longest_first)"
        ;;
    memory)
        # Keeps less freed memory: by default it is 12 GB in one test, of Mesa's compiler. The
        # sanitizer's own view of variables of threads in loaded libraries, of which libjpeg has
        # one, makes its search for leaks crash.
        export ASAN_OPTIONS=quarantine_size_mb=16:thread_local_quarantine_size_kb=64
        ASAN_OPTIONS=$ASAN_OPTIONS:intercept_tls_get_addr=0
        # All models run on the CPU; on other devices and in bfloat16 these suffice here.
        export PTED_TEST_MODELS='branches digits loops mlp mobile tally unet vk_images xnn_int8'
        # With -O2 the compiler takes twice as long, which is more than the tests save. The part of
        # it that is named here joins products and sums, as the bounds of tests of kernels want.
        compile CC=gcc CFLAGS='-O1 -g1 -fexpensive-optimizations' --enable-asan --enable-ubsan &&
            check_twice check_PROGRAMS="$(words check_PROGRAMS |
                grep -vE "$MEMORY_PROGRAMS_EXCLUDE" | tr '\n' ' ')" \
                TESTS="$(words TESTS | grep -vE "$MEMORY_EXCLUDE" | longest_first)"
        ;;
    threads)
        # The sanitizer's shadow memory does not fit every random layout of the address space.
        setarch "$(uname -m)" -R true 2>/dev/null && under="setarch $(uname -m) -R"
        jobs=$(nproc)
        export TSAN_OPTIONS=halt_on_error=1
        compile CC=gcc CFLAGS='-O2 -g1' --enable-tsan &&
            check_twice check_PROGRAMS="$(thread_tests check_PROGRAMS)" \
                TESTS="$(thread_tests TESTS)"
        ;;
    dist)
        # The step gcc builds and runs the tests of an archive.
        ../../configure --quiet $ONCE &&
            check distcheck DISTCHECK_CONFIGURE_FLAGS="CFLAGS=-O2 $ONCE" TESTS= check_PROGRAMS= \
                check_LIBRARIES= GZIP_ENV=--fast &&
            refuse_big_endian &&
            printf 'Testsuite summary for the archive\n# PASS: 1\n# ERROR: 0\n'
        ;;
    package)
        # The tests of what is packaged; the program itself is tested by the other steps.
        compile CC=gcc CFLAGS=-O2 --enable-werror || return
        compile_for_this_step
        top_srcdir=$(cd ../.. && pwd) && top_builddir=$PWD && export top_srcdir top_builddir
        try ../../tests/package/run_package.py
        try ../../tests/package/run_wheel.py
        print_counts 'the packages'
        ;;
    release)
        # Its two versions are compiled in there, not here.
        top_srcdir=$(cd ../.. && pwd) && top_builddir=$PWD && export top_srcdir top_builddir
        try ../../tests/package/run_release.py
        print_counts 'the release'
        ;;
    debian13) in_namespace debian13 debian13 ;;
    quickstart)
        # In the archive, so that the developer's own build stays as it is. How fast the digit is
        # read does not matter, and without optimization the build takes a third of the time.
        unpack_archive && (cd pted-*/ && CFLAGS=-O0 contrib/quickstart.sh --once) | tee answer
        grep -q '^prediction: 2, .*(written as 2)' answer &&
            printf 'Testsuite summary for the quickstart\n# PASS: 1\n# ERROR: 0\n'
        ;;
    arm64-quick) cross_quick ;;
    arm64-package) in_namespace arm64-package arm64_package ;;
    *) echo "unknown step '$1'"; return 64 ;;
    esac
}

# Prints "PASSED FAILED SKIPPED" over every automake summary in a log; the report of a failed run
# repeats the numbers before its summary.
totals() {
    awk -v again="$AGAIN" '/^Testsuite summary / { summary = 1 }
        index($0, again) == 1 { fail = 0 }
        summary && /^# (PASS|XFAIL): / { pass += $3 }
        summary && /^# (FAIL|XPASS|ERROR): / { fail += $3 }
        summary && /^# SKIP: / { skip += $3 }
        summary && /^# ERROR: / { summary = 0 }
        END { print pass + 0, fail + 0, skip + 0 }' "$1"
}

# Prints the tests of a log that passed at the second try. automake's lines name a script with its
# suffix, but the name of its result file has none.
unsteady_tests() {
    awk -v again="$AGAIN" 'index($0, again) == 1 { tried[$NF] = 1 }
        /^PASS: / && ($2 in tried) { print $2; delete tried[$2]; next }
        /^PASS: / {
            sub(/\.[a-z]+$/, "", $2)
            if ($2 in tried) print $2
            delete tried[$2]
        }' "$1"
}

# Runs a step. Prints its line and what has failed. Leaves the numbers in build/check-STEP.result.
run() {
    log=build/check-$1.log
    rm -rf "build/check-$1"
    mkdir -p "build/check-$1"
    begin=$(date +%s)
    timeout $((end - begin)) contrib/check.sh --inside "$1" >"$log" 2>&1 </dev/null &
    child=$!
    wait $child
    status=$?
    # shellcheck disable=SC2046 # three numbers
    set -- "$1" $(totals "$log")
    if [ "$3" -eq 0 ] && { [ $status -ne 0 ] || [ $(($2 + $4)) -eq 0 ]; }; then
        set -- "$1" "$2" 1 "$4"
    fi
    names=$(unsteady_tests "$log" | tr '\n' ' ')
    count=$(echo "$names" | wc -w)
    {
        printf '%-12s%s passed, %s failed, %s skipped, %s unsteady, %s s\n' "$1" "$2" "$3" "$4" \
            "$count" $(($(date +%s) - begin))
        grep -E "^($AGAIN|because:|skipped:) " "$log"
        if [ "$3" -gt 0 ]; then
            echo "exit status $status, from the end of $log:"
            grep -E '^(FAIL|XPASS|ERROR)[: ]|: error: |ERROR: .*Sanitizer|runtime error:' "$log" |
                head -n 40
            tail -n 60 "$log"
        fi
    } >"build/check-$1.report"
    cat "build/check-$1.report"
    if [ $(($3 + count)) -eq 0 ]; then
        rm -rf "build/check-$1"
    fi
    echo "$2 $3 $4 $names" >"build/check-$1.result"
}

# Runs one of the steps after the other that no other lane has taken.
lane() {
    trap 'kill ${child:-}; exit 1' TERM
    for name; do
        if mkdir "build/check-taken/$name" 2>/dev/null; then
            run "$name"
        fi
    done
}

# Runs the steps in two lanes.
run_steps() {
    rm -rf build/check-taken build/check-*.result
    mkdir build/check-taken
    if [ $# -gt 1 ]; then
        CHECK_JOBS=$(nproc)
        export CHECK_JOBS
    fi
    lane "$@" &
    one=$!
    lane "$@" &
    two=$!
    trap 'kill $one $two 2>/dev/null; exit 1' INT TERM
    wait $one
    wait $two
    rm -rf build/check-taken
}

# Prints the closing lines for the steps, and returns whether no test has failed.
sum_up() {
    passed=0 failed=0 skipped=0 unsteady=0 unsteady_names=
    for name; do
        if ! read -r one two three names <"build/check-$name.result"; then
            one=0 two=1 three=0 names=
        fi 2>/dev/null
        passed=$((passed + one))
        failed=$((failed + two))
        skipped=$((skipped + three))
        for test in $names; do
            unsteady=$((unsteady + 1))
            unsteady_names="$unsteady_names $test ($name),"
        done
    done
    echo "$skipped skipped, $unsteady unsteady${unsteady_names:+:}${unsteady_names%,}"
    echo "$passed passed, $failed failed"
    [ $failed -eq 0 ]
}

# PYTHON is for the tests that need those packages; the others run with the system's python3.
# Without PyPI they are skipped. What the tests do not import is not compiled.
make_python() {
    [ -z "${PYTHON-}" ] || return 0
    tree=$PWD/build/check-python
    if ! cmp -s tests/requirements.txt "$tree/requirements.txt"; then
        rm -rf "$tree"
        if ! python3 -m venv "$tree" >"$tree.log" 2>&1 ||
            ! timeout $PYPI_SECONDS "$tree/bin/pip" install --quiet --disable-pip-version-check \
                --no-compile -r tests/requirements.txt >>"$tree.log" 2>&1; then
            echo "no packages of PyPI, tests of other projects' clients are skipped:"
            tail -n 2 "$tree.log"
            return
        fi
        # Of this one the tests use a file alone, axe-core, and not the browsers that it asks for.
        timeout $PYPI_SECONDS "$tree/bin/pip" install --quiet --disable-pip-version-check \
            --no-compile --no-deps axe-playwright-python==0.1.8 >>"$tree.log" 2>&1 ||
            echo 'no axe-core, the check of accessibility is skipped'
        cp tests/requirements.txt "$tree/"
    fi
    export PYTHON="$tree/bin/python"
}

# What the newest exporters write. The environments and the programs stay in the tree.
newest() {
    mkdir -p build/check-newest
    (cd build/check-newest && ../../configure --quiet && make -s -j"$(nproc)" all-am) || return
    top_srcdir=$PWD top_builddir=$PWD/build/check-newest \
        contrib/export/newest.py --work build/check-newest/newest "$@"
}

# Those tests of HTTP that need the libraries run against the programs too. Those of another CPU run
# in an emulator: see contrib/emulated.sh. Its time and memory are not what some of them bound.
PORTABLE_TESTS='run_http run_tls run_media run_fetch run_chat'
portable_tests() {
    echo "$PORTABLE_TESTS"
    [ "$1" != "$(uname -m)" ] || echo run_bad_media run_generate run_pte
}

portable() {
    contrib/portable.sh "$@" || return
    [ $# -gt 0 ] || set -- "$(uname -m)-linux-musl"
    top_srcdir=$PWD output=build/check-portable.log
    export top_srcdir
    try tests/package/run_quickstart.py bookworm trixie
    for target; do
        echo "$target"
        folder=$PWD/build/portable/$target
        cpu=${target%%-*}
        try contrib/emulated.sh "$cpu" tests/portable/run_portable.py "$folder" bookworm trixie
        if ! contrib/emulated.sh "$cpu" "$folder/pted" --version >$output 2>&1; then
            echo "skipped: tests of HTTP against $target: $(tail -n 1 $output)"
            skipped=$((skipped + 1))
            continue
        fi
        for name in $(portable_tests "$cpu"); do
            try env top_builddir="$folder" contrib/emulated.sh "$cpu" "${PYTHON:-python3}" \
                "tests/http/$name.py"
        done
    done
    print_counts 'portable programs' && [ $passed -gt 0 ]
}

if [ "${1-}" = --inside ]; then
    cd "build/check-$2" && step "$2"
    exit
fi
# shellcheck disable=SC2046,SC2086 # lists of words
install_packages $(build_packages "$(distribution)") $FIRST_PACKAGES || exit 1
# Several steps compile the same sources with the same flags, in trees of other names. The folder is
# named because Debian's tools give the compiler another HOME.
if [ -d /usr/lib/ccache ]; then
    CCACHE_DIR=${CCACHE_DIR:-$(ccache --get-config cache_dir)}
    export CCACHE_NOHASHDIR=1 CCACHE_DIR PATH="/usr/lib/ccache:$PATH"
    CHECK_CACHE=$(ccache --print-stats | awk '$1 == "files_in_cache" && !$2 { print "empty" }')
    export CHECK_CACHE
fi
mkdir -p build
rm -f "$TOOLS" "$ARCHIVE"
make_tools "${1-}" &
autoreconf -fi >build/check-autoreconf.log 2>&1 || { cat build/check-autoreconf.log; exit 1; }
case ${1-} in
newest | portable)
    await_tools && "$@"
    exit
    ;;
arm64 | armhf | riscv64)
    await_tools && cross "$@"
    exit
    ;;
esac
# shellcheck disable=SC2086 # a list of words
[ $# -gt 0 ] || set -- $STEPS
run_steps "$@"
sum_up "$@"
