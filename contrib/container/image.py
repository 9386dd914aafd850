#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes images of pted from its static program, without docker, podman or a registry.

    contrib/portable.sh && contrib/container/image.py
    podman load -i build/image/pted-0.1.0-amd64.tar     # or docker load

For each architecture there is an archive that `docker load`, `podman load` and skopeo
(docker-archive: and oci-archive:) take. The architectures are those that contrib/portable.sh has
built programs for, unless --arch names them. With several, pted-VERSION.tar is one index of all of
them, for a registry: skopeo copy --all oci-archive:build/image/pted-0.1.0.tar docker://X
The folders build/image/root/ARCH are what is in the images, and the context for a build with the
Containerfile. Everything but the files comes from contrib/container/Containerfile. The same
programs give the same bytes.

With --vulkan it leaves only folders for Containerfile.vulkan, of the programs for glibc.

usage: image.py [--vulkan] [--arch amd64|arm64]... [--programs FOLDER] [--certificates FILE]
                [--label NAME=X]... [--output FOLDER]
"""
import argparse
import gzip
import hashlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
from datetime import datetime, timezone
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
CONTAINERFILE = Path(__file__).resolve().parent / "Containerfile"
TARGETS = {"amd64": "x86_64-linux", "arm64": "aarch64-linux"}
MACHINES = {62: "amd64", 183: "arm64"}  # e_machine of ELF
UNITS_NS = {"ms": 10 ** 6, "s": 10 ** 9, "m": 60 * 10 ** 9, "h": 3600 * 10 ** 9}
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
OCI = "application/vnd.oci.image."


def fail(text, status=65):
    print(f"image: {text}", file=sys.stderr)
    sys.exit(status)


# ---- what the Containerfile says ----

def instructions(text):
    """[(instruction, its text)]; lines that a backslash continues are joined."""
    lines = [line for line in text.split("\n") if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [tuple(line.split(None, 1)) for line in joined.split("\n") if line.strip()]


def pairs(text):
    return dict(word.split("=", 1) for word in shlex.split(text))


def nanoseconds(text):
    found = re.fullmatch(r"(\d+)(ms|s|m|h)", text)
    if not found:
        fail(f"{CONTAINERFILE.name}: expected a time, got {text!r}")
    return int(found[1]) * UNITS_NS[found[2]]


def read_health(text):
    options, _, command = text.partition("CMD")
    named = dict(re.findall(r"--([a-z-]+)=(\S+)", options))
    return {"Test": ["CMD", *json.loads(command)], "Interval": nanoseconds(named["interval"]),
            "Timeout": nanoseconds(named["timeout"]),
            "StartPeriod": nanoseconds(named["start-period"]), "Retries": int(named["retries"])}


def read_config(text, values):
    """The member "config" of an image. |values|: of ARG."""
    config = {"Env": [], "Labels": {}, "ExposedPorts": {}}
    for instruction, rest in instructions(text):
        rest = re.sub(r"\$\{(\w+)\}", lambda found: values.get(found[1], ""), rest)
        if instruction == "LABEL":
            config["Labels"].update(pairs(rest))
        elif instruction == "ENV":
            config["Env"] += [f"{name}={value}" for name, value in pairs(rest).items()]
        elif instruction == "EXPOSE":
            config["ExposedPorts"][rest] = {}
        elif instruction == "HEALTHCHECK":
            config["Healthcheck"] = read_health(rest)
        elif instruction in ("ENTRYPOINT", "CMD"):
            config["Entrypoint" if instruction == "ENTRYPOINT" else "Cmd"] = json.loads(rest)
        elif instruction in ("USER", "STOPSIGNAL"):
            config["User" if instruction == "USER" else "StopSignal"] = rest
        elif instruction not in ("FROM", "ARG", "COPY"):
            fail(f"{CONTAINERFILE.name}: expected no {instruction}")
    config["WorkingDir"] = "/"
    return config


# ---- the files ----

def machine_of(program):
    """The architecture of a program of ELF."""
    head = program.read_bytes()[:20] if program.is_file() else b""
    if head[:4] != b"\x7fELF":
        fail(f"{program}: expected a program; contrib/portable.sh makes it", 66)
    return MACHINES.get(int.from_bytes(head[18:20], "little"), "another machine")


def make_folder(path, mode=0o755):
    path.mkdir(parents=True)
    path.chmod(mode)


def put_programs(root, arch, programs):
    """The folder with all files that are pted's."""
    shutil.rmtree(root, ignore_errors=True)
    for name in ("usr/bin", "usr/share/doc/pted", "models"):
        make_folder(root / name)
    make_folder(root / "var/cache/pted", 0o1777)  # also for users that a cluster has chosen
    program = programs / "pted"
    if machine_of(program) != arch:
        fail(f"{program}: expected a program for {arch}, got one for {machine_of(program)}")
    shutil.copyfile(program, root / "usr/bin/pted")
    (root / "usr/bin/pted").chmod(0o755)
    (root / "usr/bin/pte").symlink_to("pted")
    shutil.copyfile(SOURCE / "LICENSE", root / "usr/share/doc/pted/LICENSE")
    if (programs / "THIRD_PARTY").exists():
        shutil.copyfile(programs / "THIRD_PARTY", root / "usr/share/doc/pted/THIRD_PARTY")


def put_system(root, certificates):
    """What the programs need where there is nothing else."""
    make_folder(root / "etc/ssl/certs")
    make_folder(root / "tmp", 0o1777)
    shutil.copyfile(certificates, root / CERTIFICATES[1:])
    (root / "etc/passwd").write_text("root:x:0:0::/:/nonexistent\n"
                                     "pted:x:65532:65532::/:/nonexistent\n")
    (root / "etc/group").write_text("root:x:0:\npted:x:65532:\n")


def pack(root, seconds):
    """The files as a tar, in the order of their names; all belong to root."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(root.rglob("*")):
            entry = tar.gettarinfo(path, str(path.relative_to(root)))
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mtime = seconds
            if path.is_symlink():
                tar.addfile(entry)
            elif path.is_file():
                entry.mode = 0o755 if path.parent.name == "bin" else 0o644
                with open(path, "rb") as file:
                    tar.addfile(entry, file)
            else:
                entry.mode = 0o1777 if path.stat().st_mode & 0o1000 else 0o755
                tar.addfile(entry)
    return out.getvalue()


# ---- the image ----

class Archive:
    """An OCI layout in a tar, which is also an archive of `docker save`."""

    def __init__(self):
        self.files, self.manifests, self.for_docker = {}, [], []

    def blob(self, data, media_type):
        digest = hashlib.sha256(data).hexdigest()
        self.files[f"blobs/sha256/{digest}"] = data
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}

    def add(self, config, arch, layer, created, tag):
        packed = gzip.compress(layer, 9, mtime=0)
        about = {"created": created, "architecture": arch, "os": "linux", "config": config,
                 "rootfs": {"type": "layers",
                            "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
                 "history": [{"created": created, "created_by": "contrib/container/image.py"}]}
        described = self.blob(as_json(about), OCI + "config.v1+json")
        layers = [self.blob(packed, OCI + "layer.v1.tar+gzip")]
        manifest = self.blob(as_json({
            "schemaVersion": 2, "mediaType": OCI + "manifest.v1+json", "config": described,
            "layers": layers, "annotations": config["Labels"]}), OCI + "manifest.v1+json")
        self.manifests.append({**manifest, "platform": {"architecture": arch, "os": "linux"},
                               "annotations": {"org.opencontainers.image.ref.name": tag,
                                               "io.containerd.image.name": f"pted:{tag}"}})
        self.for_docker.append({
            "Config": path_of(described), "RepoTags": [f"pted:{tag}"],
            "Layers": [path_of(one) for one in layers]})

    def write(self, path, seconds):
        files = dict(sorted(self.files.items()))
        index = {"schemaVersion": 2, "mediaType": OCI + "index.v1+json",
                 "manifests": self.manifests}
        if len(self.manifests) == 1:
            files["manifest.json"] = as_json(self.for_docker)
        else:  # one name for all of them
            for one in self.manifests:
                del one["annotations"]
            nested = self.blob(as_json(index), index["mediaType"])
            files[path_of(nested)] = self.files[path_of(nested)]
            index = {**index, "manifests": [nested]}
        files["index.json"] = as_json(index)
        files["oci-layout"] = as_json({"imageLayoutVersion": "1.0.0"})
        with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
            for name, data in files.items():
                entry = tarfile.TarInfo(name)
                entry.size, entry.mtime, entry.mode = len(data), seconds, 0o644
                tar.addfile(entry, io.BytesIO(data))


def as_json(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def path_of(descriptor):
    return "blobs/" + descriptor["digest"].replace(":", "/")


# ---- the command ----

def version():
    return re.search(r"AC_INIT\(\[pted\], \[([^]]*)\]",
                     (SOURCE / "configure.ac").read_text(encoding="utf-8"))[1]


def revision():
    done = subprocess.run([SOURCE / "contrib/commit.sh", SOURCE], capture_output=True, text=True,
                          check=False)
    return done.stdout.strip()


def seconds_of_source():
    """When the source was made: the images have no other time."""
    if os.environ.get("SOURCE_DATE_EPOCH"):
        return int(os.environ["SOURCE_DATE_EPOCH"])
    done = subprocess.run(["git", "-C", SOURCE, "log", "-1", "--format=%ct"], capture_output=True,
                          text=True, check=False)
    return int(done.stdout) if done.returncode == 0 and done.stdout.strip() else 0


def timestamp(seconds):
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def read_arguments():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("--vulkan", action="store_true")
    parser.add_argument("--arch", action="append", choices=list(TARGETS))
    parser.add_argument("--programs", type=Path)
    parser.add_argument("--certificates", type=Path, default=Path(CERTIFICATES))
    parser.add_argument("--label", action="append", default=[])
    parser.add_argument("--output", type=Path, default=SOURCE / "build/image")
    return parser.parse_args()


def programs_of(arguments, arch):
    libc = "gnu" if arguments.vulkan else "musl"
    return arguments.programs or SOURCE / "build/portable" / f"{TARGETS[arch]}-{libc}"


def arches_of(arguments):
    """Those that are named, or else those whose programs are there."""
    if arguments.arch:
        return list(dict.fromkeys(arguments.arch))
    folders = {arch: programs_of(arguments, arch) for arch in TARGETS}
    found = [arch for arch, folder in folders.items() if (folder / "pted").is_file()]
    if not found:
        fail(f"expected programs in {' or '.join(map(str, folders.values()))}; "
             "contrib/portable.sh makes them", 66)
    return found


def make_images(arguments, arches):
    """The archives of all architectures, and the one with all of them."""
    seconds, everything = seconds_of_source(), Archive()
    for arch in arches:
        root = arguments.output / "root" / arch
        put_programs(root, arch, programs_of(arguments, arch))
        put_system(root, arguments.certificates)
        config = read_config(CONTAINERFILE.read_text(encoding="utf-8"),
                             {"VERSION": version(), "REVISION": revision(), "TARGETARCH": arch})
        for label in arguments.label:
            config["Labels"].update([label.split("=", 1)])
        layer, archive = pack(root, seconds), Archive()
        path = arguments.output / f"pted-{version()}-{arch}.tar"
        for each in (archive, everything):
            each.add(config, arch, layer, timestamp(seconds), version())
        archive.write(path, seconds)
        print(f"{path}: {path.stat().st_size / 1e6:.1f} MB, {len(layer) / 1e6:.1f} MB unpacked")
    if len(arches) > 1:
        path = arguments.output / f"pted-{version()}.tar"
        everything.write(path, seconds)
        print(f"{path}: {' and '.join(arches)}")


def main():
    arguments = read_arguments()
    os.umask(0o022)  # the image's files are for all users
    if arguments.programs and len(arguments.arch or []) != 1:
        fail("--programs: expected one --arch beside it", 64)
    if any("=" not in label for label in arguments.label):
        fail("--label: expected NAME=X", 64)
    arches = arches_of(arguments)
    if arguments.vulkan:
        for arch in arches:
            root = arguments.output / "root-vulkan" / arch
            put_programs(root, arch, programs_of(arguments, arch))
            print(root)
        return
    if not arguments.certificates.is_file():
        fail(f"{arguments.certificates}: expected certificates of authorities (Debian: "
             "ca-certificates), or --certificates FILE", 66)
    make_images(arguments, arches)


if __name__ == "__main__":
    main()
