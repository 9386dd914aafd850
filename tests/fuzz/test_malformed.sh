#!/bin/sh
# SPDX-License-Identifier: MIT
# The corpus of malformed programs: each must be refused by the container's reader unless its
# manifest says that it may survive, or only a delegate's importer can see the damage.
mutate="${top_srcdir:=.}/../shared/models/export/mutate.py"
if ! [ -f "$mutate" ] || ! command -v python3 >/dev/null; then
    echo "skipped: needs python3 and ../shared/models/export/mutate.py beside the sources"
    exit 77
fi
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
python3 "$mutate" --out "$dir" >/dev/null || exit 1
"${top_builddir:=.}/tests/fuzz/replay_pte" "$dir"/*.pte >"$dir/replies" || exit 1
python3 - "$dir" <<'END'
import json
import sys

folder = sys.argv[1]
manifest = json.load(open(f"{folder}/manifest.json"))
replies = open(f"{folder}/replies").read().splitlines()
assert len(replies) == len(manifest), f"{len(replies)} replies to {len(manifest)} files"
failures = refused = left = 0
for entry in manifest:
    reply = next(r for r in replies if entry["file"] in r)
    if "refused: " in reply:
        refused += 1
    elif entry["expect"] == "reject" and entry["damage"].startswith("delegate payload:"):
        left += 1
    elif entry["expect"] == "reject":
        failures += 1
        print("accepted:", entry["file"], entry["damage"])
print(f"{len(manifest)} files: {refused} refused, {left} left for the delegate's importer")
sys.exit(failures != 0)
END
