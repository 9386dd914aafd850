#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Makes a folder with packages a repository for apt: Packages, Packages.gz and Release; with a key
# of gpg also InRelease, Release.gpg and the key. A folder that is signed needs its key again. Any
# web server can serve it. docs/project/releases.md has the line for clients.
#
#   contrib/release/apt.sh FOLDER [KEY]

set -eu
cd "$1"
key=${2-}
if [ -z "$key" ] && [ -e InRelease ]; then
    echo "apt.sh: $1 is signed (InRelease): expected the key to sign it with" >&2
    exit 1
fi
# Release and what signs it belong to the old files, so a failure leaves nothing that lies.
rm -f InRelease Release Release.gpg
apt-ftparchive packages . >Packages.new
mv Packages.new Packages
gzip -9nk -f Packages
apt-ftparchive \
    -o APT::FTPArchive::Release::Origin=pted \
    -o APT::FTPArchive::Release::Label=pted \
    -o APT::FTPArchive::Release::Suite=stable \
    -o APT::FTPArchive::Release::Description='Packages of pted' \
    -o APT::FTPArchive::Release::Architectures="$(sed -n 's/^Architecture: //p' Packages |
        sort -u | paste -sd ' ')" \
    release . >Release.new
mv Release.new Release
[ -n "$key" ] || exit 0
gpg --batch --yes --local-user "$key" --clearsign --output InRelease Release
gpg --batch --yes --local-user "$key" --armor --detach-sign --output Release.gpg Release
gpg --batch --export "$key" >pted-archive-keyring.gpg
