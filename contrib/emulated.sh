#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: contrib/emulated.sh CPU COMMAND...
#
# Runs a command in a place where programs for a CPU start, such as aarch64: by the machine itself,
# by an emulator that the system has registered, or by qemu-CPU-static, which is registered for the
# command alone, in namespaces of its own. These take root and Linux 6.7. The command and all that
# it has started end together. Exits with 77, and says why, where none of the three works.

set -eu
cpu=$1
shift

skip() {
    echo "emulated: no program for $cpu starts here: $*" >&2
    exit 77
}

# An emulator that is opened at once (F) works in a changed root, too.
is_registered() {
    grep -qsx 'flags:.*F.*' "/proc/sys/fs/binfmt_misc/qemu-$cpu"
}

# The first 20 bytes of a program, and which bits of them count: ET_EXEC or ET_DYN. The class of the
# file says how many bits addresses have. A program keeps the name that it is called by (P): pte and
# pted are one.
register() {
    class='\x02'
    case $cpu in
    aarch64) machine='\xb7\x00' ;;
    arm) machine='\x28\x00' class='\x01' ;;
    riscv64) machine='\xf3\x00' ;;
    x86_64) machine='\x3e\x00' ;;
    *) skip 'expected aarch64, arm, riscv64 or x86_64' ;;
    esac
    magic='\x7fELF'$class'\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00'$machine
    mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
    mount -t binfmt_misc none /proc/sys/fs/binfmt_misc 2>/dev/null || skip 'it takes Linux 6.7'
    printf '%s' ":qemu-$cpu:M::$magic:$mask:$qemu:PF" >/proc/sys/fs/binfmt_misc/register
}

if [ "$cpu" = "$(uname -m)" ] || is_registered; then
    exec "$@"
fi
qemu=$(command -v "qemu-$cpu-static") || skip "qemu-$cpu-static is missing"
if [ "${EMULATED-}" = "$cpu" ]; then
    register
    unset EMULATED
    exec "$@"
fi
if [ "$(id -u)" -ne 0 ] || ! unshare --user --mount --pid --fork true 2>/dev/null; then
    skip 'it takes root and namespaces'
fi
# In the namespace all users are those that they were. A shell outside of it has to say so. This one
# goes there, and waits for that.
pipes=$(mktemp -d)
mkfifo "$pipes/made" "$pipes/mapped"
(
    read -r _ <"$pipes/made"
    for kind in gid uid; do
        echo '0 0 65536' >"/proc/$$/${kind}_map"
    done
    echo >"$pipes/mapped"
    rm -r "$pipes"
) &
# debootstrap takes a container of lxc for one that cannot make devices, and mounts the system's.
# shellcheck disable=SC2016 # for that shell
exec unshare --user sh -euc 'pipes=$1; shift
    echo >"$pipes/made"
    read -r _ <"$pipes/mapped"
    exec env container=lxc unshare --mount --pid --fork --kill-child --mount-proc "$@"' \
    sh "$pipes" env EMULATED="$cpu" "$0" "$cpu" "$@"
