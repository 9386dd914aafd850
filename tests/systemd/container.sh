#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A system manager in a container of its own, made of what the machine has: run_systemd.py starts
#
#   unshare --mount --pid --net --uts --ipc --cgroup --fork --kill-child container.sh FOLDER
#
# FOLDER/stage has what `make install` put there, FOLDER/units the only units that there are, and
# FOLDER/root is where the root is mounted. That is a tmpfs; of the machine only /usr is in it,
# which nobody can write to. So whatever runs there ends with the manager, and nothing of it is
# left. Neither units nor generators of the machine are seen: those would clean up its folders.

set -eu
stage=$1/stage
units=$1/units
root=$1/root
mount --make-rprivate /
mount -t tmpfs -o mode=755 pted-test "$root"
cd "$root"
mkdir dev empty etc old proc root run sys tmp usr var
chmod 1777 tmp

# bind FROM TO: read-only.
bind() {
    mount --bind "$1" "$2"
    mount -o remount,bind,ro "$2"
}

bind /usr usr
for name in bin sbin lib lib32 lib64 libx32; do
    if [ -L "/$name" ]; then
        cp -P "/$name" .
    elif [ -d "/$name" ]; then
        mkdir "$name"
        bind "/$name" "$name"
    fi
done
for folder in usr/lib/systemd/system-generators usr/lib/systemd/system-environment-generators; do
    [ ! -d "$folder" ] || bind empty "$folder"
done
for name in group ld.so.cache nsswitch.conf passwd; do
    [ ! -e "/etc/$name" ] || cp -L "/etc/$name" etc
done
# Where the stage has a folder that /usr has as well, that of the stage is seen.
for path in "$stage"/* "$stage"/usr/*; do
    place=${path#"$stage"/}
    if [ "$place" != usr ] && [ -d "$path" ]; then
        [ -d "$place" ] || mkdir "$place"
        bind "$path" "$place"
    fi
done
cp -r "$units" units

mount -t proc proc proc
bind proc/sys proc/sys
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs dev
for name in full null random tty urandom zero; do
    : >"dev/$name"
    mount --bind "/dev/$name" "dev/$name"
done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd

pivot_root . old
umount -l /old
rmdir /old
# A manager in a container expects this: it mounts credentials in a namespace of their own.
mount --make-rshared /
container=other SYSTEMD_UNIT_PATH=/etc/systemd/system:/units
export container SYSTEMD_UNIT_PATH
exec /usr/lib/systemd/systemd --system --unit=test.target --show-status=no
