#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `make install` installs, under a real systemd: started, asked, restarted, stopped.

The manager is a system manager in a container of its own (container.sh), so the unit runs as it is,
with its user and its whole sandbox. That takes root; otherwise only what the unit says is tested,
and the exit status is 77.

usage: run_systemd.py, with top_srcdir and top_builddir in the environment.
"""
import ctypes
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "http"))
# pylint: disable=wrong-import-position
from run_daemon import infer  # noqa: E402
from run_http import (BUILD, MODELS, PTED, SOURCE, TIMEOUT_S, Client, Failure,  # noqa: E402
                      Report, expect)

EXPOSURE_MAX = "14"  # tenths
SKIP = 77
PORT = 8000
STATE = "/var/lib/pted/models"
UNITS = Path("/usr/lib/systemd/system")
# Of the machine's units those that the container needs; the targets are made here.
JOURNAL = ("systemd-journald.service", "systemd-journald.socket",
           "systemd-journald-dev-log.socket")
TARGETS = ("basic", "multi-user", "network-online", "shutdown", "sockets", "sysinit", "test")
# LeakSanitizer looks at a process by ptrace(2), which the unit denies.
SANITIZED = "[Service]\nEnvironment=ASAN_OPTIONS=detect_leaks=0\n"


def run(*command, **options):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=TIMEOUT_S, check=False, **options)


def wait_until(what, condition, explain=str):
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        if time.monotonic() > deadline:
            raise Failure(f"{what}: {explain()}")
        time.sleep(0.02)


class Installed:
    """`make install` into a folder of our own."""

    def __init__(self, folder):
        self.stage = folder / "stage"
        environment = {key: value for key, value in os.environ.items()
                       if key not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "DESTDIR")}
        done = run("make", "-s", "-C", str(BUILD), "install", f"DESTDIR={self.stage}",
                   env=environment)
        if done.returncode != 0:
            raise Failure(f"make install: {done.stderr}")
        self.service = next(self.stage.rglob("pted.service"))
        self.socket = next(self.stage.rglob("pted.socket"))
        self.gpu = next(self.stage.rglob("pted-gpu.conf"))
        self.program = "/" + str(next(self.stage.rglob("bin/pted")).relative_to(self.stage))

    def settings(self):
        """{name: value} of the service; the value of one that stands there twice is the last."""
        lines = [line.partition("=") for line in self.service.read_text().splitlines()]
        return {name: value for name, equals, value in lines if equals and name[:1] != "#"}


class Container:
    """A system manager with nothing but our units."""
    script = SOURCE / "tests/systemd/container.sh"
    target = "test.target"

    def __init__(self, folder, installed):
        self.folder = folder
        self.units = folder / "units"
        self.cgroup = make_cgroup()
        self.process = None
        self.pid = None
        self.sanitizers = re.search("^sanitizers: (.*)$", run(PTED, "--version").stdout,
                                    re.MULTILINE)[1]
        self.fill(installed)

    def fill(self, installed):
        self.units.mkdir()
        (self.folder / "root").mkdir()
        for name in TARGETS:
            wants = "Wants=systemd-journald.service\n" if name == "test" else ""
            (self.units / f"{name}.target").write_text(
                f"[Unit]\nDefaultDependencies=no\n{wants}")
        for path in (*(UNITS / name for name in JOURNAL), installed.service, installed.socket):
            shutil.copy(path, self.units)
        (self.units / "pted.service.d").mkdir()
        if "asan" in self.sanitizers:
            (self.units / "pted.service.d" / "sanitized.conf").write_text(SANITIZED)

    def start(self):
        """None, or why there can be none."""
        if not self.cgroup:
            return "it takes root and a cgroup file system of version 2"
        if "tsan" in self.sanitizers:
            return "ThreadSanitizer changes the layout of memory, which the unit denies"
        # Not a pipe: what the manager leaves behind would hold it open.
        self.output = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup", "--fork",
             "--kill-child", "sh", self.script, self.folder],
            stdin=subprocess.DEVNULL, stdout=self.output, stderr=subprocess.STDOUT,
            preexec_fn=lambda: (self.cgroup / "cgroup.procs").write_text("0"))
        if not self.wait_for_pid() or not self.wait_for_manager():
            self.stop()
            self.output.seek(0)
            return f"the container does not start: {self.output.read().strip()}"
        # Sockets of this process are in the container's network from now on.
        with open(f"/proc/{self.pid}/ns/net", "rb") as net:
            if ctypes.CDLL(None, use_errno=True).setns(net.fileno(), 0) < 0:
                return f"setns: {os.strerror(ctypes.get_errno())}"
        return None

    def wait_for_pid(self):
        """The manager is the child of unshare."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        while self.process.poll() is None:
            pids = children.read_text().split()
            if pids:
                self.pid = int(pids[0])
                return True
            time.sleep(0.01)
        return False

    def wait_for_manager(self):
        deadline = time.monotonic() + TIMEOUT_S
        while self.process.poll() is None and time.monotonic() < deadline:
            if self.run("systemctl", "is-active", self.target).returncode == 0:
                return True
            time.sleep(0.05)
        return False

    def stop(self):
        """Its first process takes all others along."""
        if self.process:
            self.process.kill()
            self.process.wait()

        def remove():
            try:
                for folder, _, _ in os.walk(self.cgroup, topdown=False):
                    os.rmdir(folder)
                return True
            except OSError:
                return False
        if self.cgroup:
            wait_until("processes that remain", remove)

    def run(self, *command):
        return run("nsenter", "--target", str(self.pid), "--mount", "--uts", "--ipc", "--net",
                   "--pid", "--cgroup", *command)

    def systemctl(self, *arguments):
        done = self.run("systemctl", *arguments)
        if done.returncode != 0:
            raise Failure(f"systemctl {' '.join(arguments)}: {done.stderr.strip()}\n{self.log()}")
        return done.stdout

    def log(self):
        """Messages of the service, each behind its priority."""
        text = self.run("journalctl", "--no-pager", "-o", "export", "-u", "pted.service").stdout
        return "".join(f"<{entry.group(1)}> {entry.group(2)}\n" for entry in re.finditer(
            r"^PRIORITY=(\d)\n(?:.*\n)*?MESSAGE=(.*)$", text, re.MULTILINE))

    def path(self, name):
        """In the container's files."""
        return Path(f"/proc/{self.pid}/root{name}")

    def show(self, name):
        return self.systemctl("show", "--value", "-p", name, "pted.service").strip()

    def wait_for_show(self, name, wanted):
        wait_until(name, lambda: self.show(name) == wanted,
                   lambda: f"{self.show(name)}, expected {wanted}\n{self.log()}")

    def wait_for_restart(self):
        wait_until("restart", lambda: self.show("NRestarts") != "0", self.log)
        self.wait_for_show("ActiveState", "active")

    def wait_for_log(self, pattern):
        wait_until(f"{pattern!r} in the log", lambda: re.search(pattern, self.log()), self.log)

    def change(self, text):
        """A drop-in beside the unit; "" is none. The service starts afresh."""
        self.systemctl("stop", "pted.socket", "pted.service")
        self.path("/units/pted.service.d/test.conf").write_text(text)
        self.systemctl("daemon-reload")
        self.systemctl("reset-failed")

    def main_status(self):
        """{name: value} of /proc/PID/status."""
        text = self.path(f"/proc/{self.show('MainPID')}/status").read_text()
        return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)


def make_cgroup():
    """One below ours, where the container's root is; NULL: we may not."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    root = next((Path(mount[1]) for mount in mounts if mount[2] == "cgroup2"), None)
    own = re.search(r"^0::/(.*)$", Path("/proc/self/cgroup").read_text(), re.MULTILINE)
    if os.geteuid() != 0 or not root or not own:
        return None
    cgroup = root / own[1] / f"pted-test-{os.getpid()}"
    try:
        cgroup.mkdir()
    except OSError:
        return None
    return cgroup


# ---- what the unit says ----

def unit_is_sound(installed):
    """`systemd-analyze verify` has nothing to say, but for the program, which is not there yet."""
    with tempfile.TemporaryDirectory() as folder:
        text = installed.service.read_text().replace(installed.program, "/bin/true")
        (Path(folder) / "pted.service").write_text(re.sub("^Documentation=.*\n", "", text,
                                                          flags=re.MULTILINE))
        shutil.copy(installed.socket, folder)
        done = run("systemd-analyze", "verify", f"{folder}/pted.service", f"{folder}/pted.socket")
        expect("systemd-analyze verify", (done.returncode, done.stderr), (0, ""))


def unit_is_closed(installed):
    """Of ten points that `systemd-analyze security` gives, few remain."""
    done = run("systemd-analyze", "security", "--no-pager", "--offline=true",
               f"--threshold={EXPOSURE_MAX}", str(installed.service))
    if done.returncode != 0:
        raise Failure(f"{done.stdout}{done.stderr}")


def unit_names_one_folder(installed):
    """What is served is one of the folders that systemd makes, by one path."""
    settings = installed.settings()
    folders = [f"%S/{name}" for name in settings["StateDirectory"].split()]
    expect("ExecStart", settings["ExecStart"],
           f"{installed.program} --models %S/pted/models --watch")
    expect("is the folder made", "%S/pted/models" in folders, True)


def unit_has_limits(installed):
    settings = installed.settings()
    expect("MemoryMax", settings.get("MemoryMax"), "80%")
    expect("TasksMax", settings.get("TasksMax"), "1280")
    expect("WatchdogSec", settings.get("WatchdogSec"), "30")


# ---- what it does ----

def ask(name="add", status=200):
    client = Client(PORT)
    expect(f"infer on {name}", infer(client, name), status)
    return client


def niceness(task):
    return int((task / "stat").read_text().split(") ")[1].split()[16])


def is_closed():
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", PORT)) != 0


def starts_with_no_model(container):
    container.systemctl("start", "pted.service")
    expect("StatusText", container.show("StatusText"), "serving 0 of 0 models")
    container.wait_for_log(rf"<4> no \.pte file in {STATE}: expected NAME\.pte, ")
    command = container.path(f"/proc/{container.show('MainPID')}/cmdline").read_bytes()
    expect("arguments", command.split(b"\0")[1:3], [b"--models", STATE.encode()])
    ask("add", 404)


def access_log_is_in_the_journal(container):
    """A request is an entry with fields, by which journalctl finds it."""
    container.change("[Service]\nEnvironment=PTED_ACCESS_LOG=all\n")
    container.systemctl("start", "pted.service")
    ask("nope", 404)

    def entries():
        text = container.run("journalctl", "--no-pager", "-o", "json", "-u", "pted.service",
                             "PTED_STATUS=404").stdout
        return [json.loads(line) for line in text.splitlines()]
    wait_until("an entry", entries, container.log)
    entry = entries()[0]
    expect("fields", [entry[name] for name in ("MESSAGE", "PRIORITY", "PTED_METHOD", "PTED_PATH")],
           ["POST /v2/models/nope/infer 404", "6", "POST", "/v2/models/nope/infer"])
    container.change("")


def serves_what_was_put_there(container):
    shutil.copy(MODELS / "add.pte", container.path(STATE))
    container.systemctl("restart", "pted.service")
    expect("StatusText", container.show("StatusText"), "serving 1 of 1 models")
    container.wait_for_log(r"<5> listening on http://127\.0\.0\.1:8000\n")
    ask()


def is_in_its_sandbox(container):
    status = container.main_status()
    expect("is it root", "0" in status["Uid"].split(), False)
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        expect(name, int(status[name], 16), 0)
    expect("NoNewPrivs", status["NoNewPrivs"], "1")
    expect("Seccomp", status["Seccomp"], "2")
    pid = container.show("MainPID")
    tasks = container.path(f"/proc/{pid}/task")

    def distance():
        nice = {(task / "comm").read_text().strip(): niceness(task) for task in tasks.iterdir()}
        return nice.get("worker-0", nice["pted"]) - nice["pted"]
    wait_until("a worker above the loop's niceness by 3", lambda: distance() == 3,
               lambda: str(distance()))


def reloads(container):
    pid = container.show("MainPID")
    container.systemctl("reload", "pted.service")
    container.wait_for_log("<5> SIGHUP: looking for changed models")
    expect("MainPID", container.show("MainPID"), pid)
    ask()


def stops(container):
    """At once, and without a failure."""
    container.systemctl("stop", "pted.service")
    expect("ActiveState", container.show("ActiveState"), "inactive")
    expect("Result", container.show("Result"), "success")
    expect("ExecMainStatus", container.show("ExecMainStatus"), "0")
    expect("is the port closed", is_closed(), True)


def is_started_by_its_socket(container):
    """The first client waits for the start; those that come during a restart are served, too."""
    container.systemctl("start", "pted.socket")
    expect("ActiveState", container.show("ActiveState"), "inactive")
    ask()
    expect("ActiveState", container.show("ActiveState"), "active")
    container.systemctl("stop", "pted.service")
    expect("is the port closed", is_closed(), False)
    container.wait_for_show("ActiveState", "active")
    container.systemctl("restart", "--no-block", "pted.service")
    for _ in range(20):
        ask()
    container.systemctl("stop", "pted.socket", "pted.service")
    expect("is the port closed", is_closed(), True)


def starts_again_after_a_crash(container):
    container.change("[Service]\nRestartSec=0\n")
    container.systemctl("start", "pted.service")
    container.systemctl("kill", "--kill-whom=main", "--signal=KILL", "pted.service")
    container.wait_for_restart()
    ask()


def starts_again_when_it_hangs(container):
    """A process that does not run gives no sign of life."""
    container.change("[Service]\nRestartSec=0\nWatchdogSec=3\n")
    container.systemctl("start", "pted.service")
    container.systemctl("kill", "--kill-whom=main", "--signal=STOP", "pted.service")
    container.wait_for_restart()
    ask()


def reads_its_document(container):
    """/etc/pted/pted.json, if it is there, beside the folder; not started with a wrong one."""
    document = container.path("/etc/pted/pted.json")
    expect("is the folder made", document.parent.is_dir(), True)
    container.change("")
    document.write_text(f'{{"models": {{"sum": "{STATE}/add.pte"}}, "max_batch": 1}} // ours')
    container.systemctl("start", "pted.service")
    ask()
    ask("sum")
    document.write_text('{"models": {"sum": 1}}')
    expect("restart", container.run("systemctl", "restart", "pted.service").returncode, 1)
    expect("NRestarts", container.show("NRestarts"), "0")
    expect("ExecMainStatus", container.show("ExecMainStatus"), "78")
    container.wait_for_log("/etc/pted/pted.json:1:20: models.sum: expected a path or an object")
    document.unlink()
    container.change("")
    container.systemctl("start", "pted.service")
    ask("sum", 404)


def is_not_started_again_in_vain(container):
    container.change(f"[Service]\nRestartSec=0\nExecStart=\nExecStart={container.program} /none\n")
    expect("start", container.run("systemctl", "start", "pted.service").returncode, 1)
    expect("ActiveState", container.show("ActiveState"), "failed")
    expect("NRestarts", container.show("NRestarts"), "0")
    expect("ExecMainStatus", container.show("ExecMainStatus"), "66")
    container.wait_for_log("<3> model file /none: No such file or directory")


def does_without_niceness(container):
    """Where setpriority(2), sched_setattr(2) and setrlimit(2) are denied, too."""
    denied = "setpriority sched_setattr setrlimit"
    if "asan" not in container.sanitizers:  # which ends without getrlimit(2)
        denied += " prlimit64"
    container.change(f"[Service]\nSystemCallFilter=~@resources {denied}\n")
    container.systemctl("start", "pted.service")
    ask()
    pid = container.show("MainPID")
    nice = {niceness(task) for task in container.path(f"/proc/{pid}/task").iterdir()}
    expect("kinds of niceness", len(nice), 1)
    container.systemctl("stop", "pted.service")
    expect("Result", container.show("Result"), "success")


def runs_on_a_vulkan_device(container):
    """With the drop-in for GPUs, where there is a driver, of whatever kind."""
    pte = os.environ.get("PTE", str(Path(PTED).parent / "pte"))
    if not re.search("^vulkan:", run(pte, "devices").stdout, re.MULTILINE):
        print("# there is no Vulkan device")
        return
    with container.path("/etc/group").open("a") as groups:
        groups.write("render:x:990:\nvideo:x:991:\n")
    container.change(container.gpu.read_text().replace("--device auto", "--device vulkan"))
    container.systemctl("start", "pted.service")
    container.wait_for_log("<6> device vulkan:0: ")
    ask()
    container.systemctl("stop", "pted.service")
    expect("Result", container.show("Result"), "success")


UNIT_CHECKS = (unit_is_sound, unit_is_closed, unit_names_one_folder, unit_has_limits)
CHECKS = (
    starts_with_no_model, access_log_is_in_the_journal, serves_what_was_put_there,
    is_in_its_sandbox, reloads, stops,
    is_started_by_its_socket, starts_again_after_a_crash, starts_again_when_it_hangs,
    reads_its_document, is_not_started_again_in_vain, does_without_niceness,
    runs_on_a_vulkan_device)


def main():
    report = Report()
    if not shutil.which("systemd-analyze") or not shutil.which("unshare"):
        print("1..0 # skip there is no systemd here")
        return SKIP
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        installed = Installed(folder)
        for check in UNIT_CHECKS:
            report.run(check.__name__, check, installed)
        container = Container(folder, installed)
        container.program, container.gpu = installed.program, installed.gpu
        reason = container.start()
        if reason is None:
            try:
                for check in CHECKS:
                    report.run(check.__name__, check, container)
            finally:
                container.stop()
    status = report.finish()
    if reason and status == 0:
        print(f"# skip nothing was started: {reason}")
        return SKIP
    return status


if __name__ == "__main__":
    sys.exit(main())
