#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The system manager of a root of Debian, in a container of its own: run_release.py starts
#
#   unshare --mount --pid --net --uts --ipc --cgroup --fork --kill-child boot.sh ROOT
#
# What it writes stays in ROOT, but for /run and /dev. No device of the machine is there.

set -eu
mount --make-rprivate /
mount --bind "$1" "$1"
cd "$1"
mount -t proc proc proc
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs run
# Bound from the machine, before its root is gone.
mount -t tmpfs -o mode=755 tmpfs dev
for name in full null random tty urandom zero; do
    : >"dev/$name"
    mount --bind "/dev/$name" "dev/$name"
done
mkdir dev/pts dev/shm run/old
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
pivot_root . run/old
umount -l /run/old
rmdir /run/old
container=other
export container
exec /usr/lib/systemd/systemd --system --unit=basic.target --show-status=no
