#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The Debian package, the image, and the completion of shells.

The package is built from the files of git, checked by lintian, and installed, used and removed in
a bare root. That takes Debian's tools, root, and a mirror of Debian; what is missing is skipped.

usage: run_package.py [--install PACKAGE ARCH], with top_srcdir and top_builddir in the environment.
With a package that is built already it is installed in a root of ARCH, such as arm64, whose
programs have to start here: see contrib/emulated.sh.
"""
import gzip
import hashlib
import importlib.util
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "http"))
# pylint: disable=wrong-import-position
from run_daemon import infer  # noqa: E402
from run_http import BUILD, MODELS, SOURCE, Client, Failure, Report, expect  # noqa: E402

BUILD_S = 3000
IMAGE_BYTES_MAX = 15_000_000
IS_ROOT = os.geteuid() == 0


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=BUILD_S, check=False, **options)
    if done.returncode != 0:
        raise Failure(f"{command[0]}: status {done.returncode}: {done.stdout[-3000:]}")
    return done.stdout


def ask(*command, root=None):
    """Serves `add` with the installed program, and sends it a request."""
    prefix = ["chroot", str(root)] if root else []
    process = subprocess.Popen([*prefix, *command], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        for line in process.stderr:
            found = re.search(r"listening on http://127\.0\.0\.1:(\d+)", line)
            if found:
                expect("infer", infer(Client(int(found[1]))), 200)
                return
        raise Failure("the daemon did not start")
    finally:
        process.terminate()
        expect("exit status", process.wait(30), 0)


# ---- completion ----

def complete(line, cwd=None):
    """What bash offers for |line|."""
    script = (f'. {SOURCE}/contrib/completions/bash/pted; COMP_WORDS=({line}); '
              f'[[ "{line}" == *" " ]] && COMP_WORDS+=(""); '
              'COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); '
              '_${COMP_WORDS[0]} ${COMP_WORDS[0]}; printf "%s\\n" "${COMPREPLY[@]}"')
    environment = {**os.environ, "PATH": f"{BUILD}:{os.environ['PATH']}"}
    return run("bash", "-c", script, env=environment, cwd=cwd).split()


def completion():
    expect("option", complete("pted --body-b"), ["--body-bytes-max"])
    expect("word", complete("pted --precision b"), ["bf16"])
    expect("command", complete("pte prof"), ["profile"])
    expect("option of a command", complete("pte run --top"), ["--top-k"])
    expect("option of a client", complete("pte top --tok"), ["--token", "--token-file"])
    expect("servers", complete("pte ls htt"), ["http://", "https://"])
    expect("files", "digits.pte" in complete("pted dig", cwd=MODELS), True)
    expect("no others", "digits.json" in complete("pted dig", cwd=MODELS), False)
    for shell, path in (("zsh", "zsh/_pted"), ("fish", "fish/pted.fish")):
        if shutil.which(shell):
            run(shell, "-n", SOURCE / "contrib/completions" / path)


# ---- image ----

ARCH = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine())


def is_of_this_tree(program):
    """Whether a program of this machine was built from the commit that is tested."""
    found = re.search(r"^commit: (.*)$", run(program, "--version"), re.MULTILINE)
    return (found[1] if found else "") == run(SOURCE / "contrib/commit.sh", SOURCE).strip()


def programs(folder):
    """The folder of the static program of contrib/portable.sh, or else a stripped one of this
    build."""
    for top in (SOURCE / "build" / "portable", BUILD / "portable"):
        static = top / f"{platform.machine()}-linux-musl"
        if (static / "pted").exists():
            if is_of_this_tree(static / "pted"):
                return static
            print(f"# skipped: the program of {static}: it is not of this commit")
    folder.mkdir()
    run("strip", "-o", folder / "pted", BUILD / "pted")
    return folder


def add_libraries(root):
    """What programs that are not static need in |root|: also libcurl, which pte opens."""
    found = run("ldd", root / "usr/bin/pted")
    for path in re.findall(r"\s(/\S*libcurl\.so\.4)$", run("/sbin/ldconfig", "-p"), re.MULTILINE):
        found += f"{path} " + run("ldd", path)
    for library in set(re.findall(r"(?:^|\s)(/(?:usr/)?lib\S*)", found)):
        (root / library[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, root / library[1:])


def read_archive(path, arch):
    """The config and the layer of an image; each blob is what its name says."""
    with tarfile.open(path) as tar:
        files = {one.name: tar.extractfile(one).read() for one in tar}
    for name, data in files.items():
        if name.startswith("blobs/"):
            expect(name, hashlib.sha256(data).hexdigest(), name.rpartition("/")[2])

    def blob(descriptor):
        data = files["blobs/" + descriptor["digest"].replace(":", "/")]
        expect("size", len(data), descriptor["size"])
        return data

    index = json.loads(files["index.json"])["manifests"]
    expect("images", [(one["platform"]["architecture"], one["platform"]["os"]) for one in index],
           [(arch, "linux")])
    manifest = json.loads(blob(index[0]))
    config, packed = json.loads(blob(manifest["config"])), blob(manifest["layers"][0])
    for_docker = json.loads(files["manifest.json"])[0]
    expect("docker's config", json.loads(files[for_docker["Config"]]), config)
    expect("docker's layers", [files[name] for name in for_docker["Layers"]], [packed])
    layer = gzip.decompress(packed)
    expect("the layer", config["rootfs"]["diff_ids"],
           ["sha256:" + hashlib.sha256(layer).hexdigest()])
    return config["config"], layer


def check_config(config):
    """What clusters and Docker look at."""
    expect("user", re.fullmatch(r"[1-9]\d*:[1-9]\d*", config["User"]) is not None, True)
    expect("command", [*config["Entrypoint"], *config["Cmd"]],
           ["/usr/bin/pted", "--models", "/models", "--watch"])
    expect("probe", config["Healthcheck"]["Test"][:3], ["CMD", "/usr/bin/pte", "ping"])
    labels = {name.rpartition(".")[2]: text for name, text in config["Labels"].items()
              if name.startswith("org.opencontainers.image.")}
    expect("version", labels["version"] in run(BUILD / "pted", "--version"), True)
    table = SOURCE / "contrib/portable/sources.tsv"
    rows = [line.split("\t") for line in table.read_text().splitlines()
            if not line.startswith("#")] if table.exists() else []
    for licence in {part for row in rows if row[2] != "-" for part in row[2].split(" AND ")}:
        expect(licence, licence in labels["licenses"].split(" AND "), True)


def serve(root, config):
    """As the user of the image, in its files alone: serves, and the probe says so."""
    shutil.copy(MODELS / "add.pte", root / "models")
    environment = {**dict(pair.split("=", 1) for pair in config["Env"]),
                   "PTED_LISTEN": "0.0.0.0:0", "http_proxy": "http://127.0.0.1:1"}
    inside = [shutil.which("chroot"), f"--userspec={config['User']}", str(root)]

    def probe():
        return subprocess.run([*inside, *config["Healthcheck"]["Test"][1:]], env=environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=30, check=False)

    with subprocess.Popen([*inside, *config["Entrypoint"], *config["Cmd"]], env=environment,
                          stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            said = ""
            for line in process.stderr:
                said += line
                if "listening on" in line:
                    break
            found = re.search(r"listening on \S*:(\d+)", said)
            expect("where it listens", said if not found else "", "")
            port = int(found.group(1))
            environment["PTED_LISTEN"] = f"0.0.0.0:{port}"
            expect("infer", infer(Client(port)), 200)
            expect("probe", (probe().stdout, probe().returncode),
                   (f"http://127.0.0.1:{port}: ready\n", 0))
        finally:
            process.terminate()
            expect("exit status", process.wait(30), 0)
    expect("probe of nobody", probe().returncode, 77)


def build_with_containerfile(context, folder, config):
    """Another tool makes the same image of the Containerfile."""
    command = ["buildah", "--root", folder / "storage", "--runroot", folder / "run",
               "--storage-driver", "vfs"]
    arguments = [f"--build-arg={name}={config['Labels']['org.opencontainers.image.' + label]}"
                 for name, label in (("VERSION", "version"), ("REVISION", "revision"))]
    run(*command, "bud", "--isolation", "chroot", "--format", "docker", "--platform",
        f"linux/{ARCH}", *arguments, "-f", SOURCE / "contrib/container/Containerfile", "-t", "pted",
        context)
    built = json.loads(run(*command, "inspect", "--type", "image", "pted"))["Docker"]["config"]
    built["Labels"].pop("io.buildah.version", None)
    built["WorkingDir"] = built["WorkingDir"] or "/"
    expect("the image of the Containerfile", {name: built[name] for name in config}, config)


def check_image(folder, made, arch, is_static=True):
    """An image of the program in |made| has it and nothing else; serves and is probed as another
    user than root. It is made in |folder|. Returns its config."""
    archives = []
    for output in (folder / "one", folder / "two"):
        run(sys.executable, SOURCE / "contrib/container/image.py", "--arch", arch, "--programs",
            made, "--output", output)
        archives.append(next(output.glob("*.tar")).read_bytes())
    expect("two builds are the same", archives[0] == archives[1], True)
    of_what = "" if is_static else ", not of static programs"
    print(f"# image: {len(archives[0]) / 1e6:.1f} MB{of_what}")
    expect("size", len(archives[0]) < IMAGE_BYTES_MAX, True)
    config, layer = read_archive(next((folder / "one").glob("*.tar")), arch)
    check_config(config)
    root = folder / "unpacked"
    with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
        expect("owners", {(one.uid, one.gid) for one in tar}, {(0, 0)})
        expect("programs", [one.name for one in tar if one.isfile() and one.mode & 0o111],
               ["usr/bin/pted"])
        expect("links", [(one.name, one.linkname) for one in tar if one.issym()],
               [("usr/bin/pte", "pted")])
        tar.extractall(root)
    os.chmod(folder, 0o755)
    if not is_static:
        add_libraries(root)
    if IS_ROOT:
        serve(root, config)
    else:
        print("# skipped: the image serves; it takes root")
    return config


def image():
    """Of this machine's static program, if contrib/portable.sh has made it."""
    if not ARCH:
        print(f"# skipped: images for {platform.machine()}")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = programs(folder / "programs")
        config = check_image(folder, made, ARCH, made != folder / "programs")
        if IS_ROOT and shutil.which("buildah"):
            build_with_containerfile(folder / "one", folder, config)
        else:
            print("# skipped: the Containerfile; it takes root and buildah")


def vulkan():
    """The variant with Vulkan is used like the other image, and computes on a GPU."""
    spec = importlib.util.spec_from_file_location("image", SOURCE / "contrib/container/image.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    folder = SOURCE / "contrib/container"
    texts = [(folder / name).read_text() for name in ("Containerfile", "Containerfile.vulkan")]
    without_run = re.sub(r"(?m)^RUN (.*\\\n)*.*\n", "", texts[1])
    one, other = (module.read_config(text, {}) for text in (texts[0], without_run))
    for name in ("User", "Healthcheck", "Cmd", "Entrypoint", "ExposedPorts", "StopSignal"):
        expect(name, other[name], one[name])
    ours = {pair for pair in one["Env"] if pair.startswith("PTED_")}
    expect("variables", {pair for pair in other["Env"] if pair.startswith("PTED_")} - ours,
           {"PTED_DEVICE=auto"})
    expect("and no fewer", ours - set(other["Env"]), set())


# ---- Kubernetes ----

def manifests():
    """What the examples for KServe run: options that the programs know, at addresses that belong
    together."""
    try:
        import yaml  # pylint: disable=import-outside-toplevel
    except ImportError:
        print("# skipped: the manifests; there is no yaml")
        return
    kinds = []
    for path in sorted((SOURCE / "contrib/kserve").glob("*.yaml")):
        text = path.read_text(encoding="utf-8").replace("{{.Name}}", "digits")
        for document in yaml.safe_load_all(text):
            kinds.append(document["kind"])
            for container in document["spec"].get("containers", []):
                check_container(container)
    expect("kinds", sorted(kinds), ["ClusterServingRuntime", "ClusterServingRuntime",
                                    "InferenceService", "InferenceService"])


def check_container(container):
    done = subprocess.run([BUILD / "pted", "--check-config", *container["args"]], check=False,
                          capture_output=True, text=True)
    if done.returncode and "/mnt/models/model.pte: No such file" not in done.stderr:
        raise Failure(f"{container['args']}: {done.stderr}")
    ports = {int(text.rpartition(":")[2]) for text in container["args"] if ":" in text}
    expect("ports", {port["containerPort"] for port in container["ports"]} <= ports, True)
    for name in ("readinessProbe", "livenessProbe"):
        probe = container[name]
        if "httpGet" in probe:
            expect(f"{name}: port", probe["httpGet"]["port"] in ports, True)
            continue
        command = probe["exec"]["command"]
        expect(f"{name}: program", command[0], "/usr/bin/pte")
        expect(f"{name}: port", int(re.search(r":(\d+)", command[-1])[1]) in ports, True)
        done = subprocess.run([BUILD / "pte", *command[1:-1], "127.0.0.1:1/digits"], check=False,
                              capture_output=True, text=True)
        expect(f"{name}: {done.stderr}", done.returncode, 77)


# ---- Debian ----

def copy_tree(tree):
    """The files of git, with changes that are not committed yet."""
    tree.mkdir()
    files = subprocess.run(["git", "-C", SOURCE, "ls-files", "-z"], check=True,
                           stdout=subprocess.PIPE).stdout
    archive = subprocess.run(["tar", "-C", SOURCE, "-c", "--null", "-T", "-"], input=files,
                             check=True, stdout=subprocess.PIPE).stdout
    subprocess.run(["tar", "-C", tree, "-x"], input=archive, check=True)


def build(folder):
    tree = folder / "pted"
    copy_tree(tree)
    jobs = len(os.sched_getaffinity(0))
    environment = {key: value for key, value in os.environ.items()
                   if key not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "CFLAGS")}
    # Without optimization for a third of the time: its code is tested elsewhere.
    environment["DEB_BUILD_OPTIONS"] = f"parallel={jobs} noautodbgsym noopt"
    environment["DEB_CFLAGS_APPEND"] = "-g0"
    run("dpkg-buildpackage", "-b", "-us", "-uc", cwd=tree, env=environment)
    package = next(folder.glob("pted_*.deb"))
    print(f"# {package.name}: {package.stat().st_size / 1e6:.2f} MB")
    return package


def check_contents(package):
    names = run("dpkg-deb", "-c", package)
    expect("pte is a link", "usr/bin/pte -> pted\n" in names, True)
    for name in ("usr/bin/pted", "usr/bin/pte", "lib/systemd/system/pted.service",
                 "lib/systemd/system/pted.socket", "man8/pted.8.gz", "man1/pte.1.gz",
                 "bash-completion/completions/pted", "bash-completion/completions/pte",
                 "zsh/vendor-completions/_pted", "fish/vendor_completions.d/pted.fish"):
        if name not in names:
            raise Failure(f"{name} is not in the package")


def check_library(package):
    for name, files in (("libpted1", ["libpted.so.1 ->"]),
                        ("libpted-dev", ["usr/include/pted.h", "libpted.a", "libpted.so ->",
                                         "pkgconfig/pted.pc", "examples/digits.c"])):
        names = run("dpkg-deb", "-c", next(package.parent.glob(f"{name}_*.deb")))
        expect(f"files that are not in {name}", [file for file in files if file not in names], [])


def lint(package):
    changes = next(package.parent.glob("*.changes"))
    run("lintian", "--allow-root", "--fail-on", "error,warning", changes)


def files_of(root):
    return {str(path.relative_to(root)) for path in root.rglob("*")
            if not re.search(r"^(var/(cache|log|lib/(apt|dpkg))|proc|sys|dev|tmp|run)",
                             str(path.relative_to(root)))}


def names_of(package, field):
    return [part.split("(")[0].strip() for part in run("dpkg-deb", "-f", package, field).split(",")]


def install_packages(root, names):
    run("chroot", root, "apt-get", "-qq", "install", "-y", "--no-install-recommends", *names)


def bare_root(folder, *packages, suite="bookworm", arch=None):
    """A root that has nothing but Debian's essential packages, and those named."""
    root = folder / "root"
    options = ["--arch", arch] if arch else []
    run(SOURCE / "contrib/bare_root.sh", *options, suite, root, *packages)
    return root


def install(package, folder, arch=None):
    root = bare_root(folder, arch=arch)
    shutil.copy(package, root / "pted.deb")
    shutil.copy(MODELS / "add.pte", root / "add.pte")
    install_packages(root, names_of(package, "Depends"))
    before = files_of(root)
    run("chroot", root, "dpkg", "-i", "/pted.deb")
    ask("/usr/bin/pted", "--listen", "127.0.0.1:0", "/add.pte", root=root)
    run("chroot", root, "/usr/bin/pte", "run", "/add.pte")
    run("chroot", root, "dpkg", "--purge", "pted")
    expect("files that are left", sorted(files_of(root) - before), [])
    # What dpkg-shlibdeps does not see.
    install_packages(root, names_of(package, "Recommends"))
    run("chroot", root, "dpkg", "-i", "/pted.deb")
    version = run("chroot", root, "/usr/bin/pted", "--version")
    shutil.copytree(MODELS / "chat", root / "chat")
    row = json.loads((MODELS / "chat/answers.json").read_text())[0]
    said = run("chroot", root, "sh", "-c", f"echo '{row['messages'][0]['content']}' | "
               "pte chat --temperature 0 /chat/model.pte")
    expect("a chat", row["answer"] in said, True)
    expect("libraries", "opened when needed: libssl.so" in version, True)
    expect("libraries that are not found", re.findall(r"\S+ \(not found\)", version), [])


def check_package(report, folder):
    begin = time.monotonic()
    packages = []
    report.run("the package is built", lambda: packages.append(build(folder)))
    print(f"# built in {time.monotonic() - begin:.0f} s")
    if not packages:
        return
    report.run("its contents", check_contents, packages[0])
    report.run("the packages of the library", check_library, packages[0])
    report.run("lintian", lint, packages[0])
    if IS_ROOT and shutil.which("debootstrap"):
        report.run("installed and removed in a bare root", install, packages[0], folder)
    else:
        print("# skipped: the installation; it takes root and debootstrap")


def debian(report):
    missing = [tool for tool in ("dpkg-buildpackage", "dh", "lintian") if not shutil.which(tool)]
    if missing:
        print(f"# skipped: the package; there is no {', '.join(missing)}")
        return
    # The flags of the compiler name the folder, so only a folder of the same name finds what ccache
    # has kept.
    folder = BUILD.resolve() / "package"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        check_package(report, folder)
    finally:
        shutil.rmtree(folder)


def install_other(report, package, arch):
    """The package of another architecture, which is built already."""
    with tempfile.TemporaryDirectory(dir=BUILD) as folder:
        expect("architecture", run("dpkg-deb", "-f", package, "Architecture").strip(), arch)
        report.run("its contents", check_contents, package)
        report.run("the packages of the library", check_library, package)
        report.run(f"installed and removed in a bare root of {arch}", install, package,
                   Path(folder), arch)


def main():
    report = Report()
    if sys.argv[1:2] == ["--install"]:
        install_other(report, Path(sys.argv[2]), sys.argv[3])
        return report.finish()
    report.run("completion", completion)
    report.run("image", image)
    report.run("image with Vulkan", vulkan)
    report.run("manifests", manifests)
    debian(report)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
