#!/bin/sh
# SPDX-License-Identifier: MIT
# The corpus of malformed programs: each must be refused by the container's reader unless its
# manifest says that it may survive, or only a delegate's importer can see the damage. Nor may any
# of the others come as far as a result, and none may end or stop the process.
mutate="${top_srcdir:=.}/../shared/models/export/mutate.py"
if ! [ -f "$mutate" ] || ! command -v python3 >/dev/null; then
    echo "skipped: needs python3 and ../shared/models/export/mutate.py beside the sources"
    exit 77
fi
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
python3 "$mutate" --out "$dir" >/dev/null || exit 1
"${top_builddir:=.}/tests/fuzz/replay_pte" "$dir"/*.pte >"$dir/replies" || exit 1
"$top_builddir/tests/fuzz/replay_program" "$dir"/*.pte >"$dir/calls" || exit 1
python3 - "$dir" <<'END'
import json
import sys

folder = sys.argv[1]
manifest = json.load(open(f"{folder}/manifest.json"))


def read_replies(name):
    replies = {}
    for line in open(f"{folder}/{name}"):
        file = next((entry["file"] for entry in manifest if entry["file"] in line), None)
        assert file and file not in replies, line
        replies[file] = "refused: " in line
    assert len(replies) == len(manifest), f"{len(replies)} replies to {len(manifest)} files"
    return replies


parsed, called = read_replies("replies"), read_replies("calls")
failures = left = 0
for entry in manifest:
    must_go = entry["expect"] == "reject"
    is_payload = entry["damage"].startswith("delegate payload:")
    left += must_go and is_payload and not parsed[entry["file"]]
    if must_go and not is_payload and not parsed[entry["file"]]:
        failures += 1
        print("accepted:", entry["file"], entry["damage"])
    if must_go and not called[entry["file"]]:
        failures += 1
        print("called:", entry["file"], entry["damage"])
print(f"{len(manifest)} files: {sum(parsed.values())} refused by the reader,",
      f"{left} left for the delegate's importer, {sum(called.values())} without a result")
sys.exit(failures != 0)
END
