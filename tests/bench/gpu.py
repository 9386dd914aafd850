#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks and times pted on a machine with a GPU that has neither a network nor a compiler.

`pack`, here, makes a folder of everything that machine lacks, in less than 64 MiB: the programs and
tests of this build with their libraries, Vulkan's loader, exported networks and what PyTorch
computes with them on a CPU. `run`, there, prints for the first Vulkan device

* whether the suite of the HAL and the cases of operators pass,
* of each network the largest difference from PyTorch, over the largest number of its result,
* its time beside the same network of PyTorch on the same GPU (float32 without TF32, as a graph of
  CUDA, without copies; the times of pted include the copies of inputs and results),
* what the device reaches in PyTorch: products of large matrices, copies of much memory,

and leaves a profile and a trace of each network in the folder of --output. No step may take longer
than its limit, or than what is left of eight minutes. The exit status is 1 if a check has
failed.

The networks are those of peers.py, and a decoder of decode.py with half of its layers. Their
weights repeat a few rows, so that the folder is small; times do not depend on that.

usage: gpu.py pack FOLDER    in the build tree, after `make check TESTS=`; needs torch, torchvision,
                             torchao, executorch and apt-get
       gpu.py run FOLDER     in the source tree there; without torch and CUDA only pted is timed
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("top_builddir", ".")).resolve()
PROGRAMS = ("pte", "tests/hal/cts", "tests/ops/test_shaders")
NETWORKS = ("mobilenet_v2", "resnet50", "vit_tiny")
LAYERS = 4  # of the decoder
ROWS = 7  # that the weights of a layer repeat
TOLERANCE = 1e-3  # of the largest number: peers.py has the same
FOLDER_BYTES_MAX = 64 << 20
# Libraries that every machine has, and that must fit the kernel and each other.
OF_THE_SYSTEM = re.compile(r"(ld-linux|lib(c|m|dl|rt|pthread)\.so|linux-vdso)")
DRIVERS = ("/usr/local/nvidia/share/vulkan/icd.d/nvidia_icd.json",)  # where loaders do not look
RUN_S = 480
LIMITS_S = {"suite": 60, "cases": 120, "model": 30, "torch": 60}
DECODER_STEPS = {"a token behind 128": (1, 128), "a prompt of 128": (128, 0)}


def say(text):
    print(f"gpu: {text}", file=sys.stderr, flush=True)


# ---- pack ----------------------------------------------------------------------------------------

def repeat_rows(model):
    """Makes weights compressible, also behind exporters, which turn the dims inside of a row and
    multiply rows by what batch normalization has measured."""
    import torch
    with torch.no_grad():
        for weight in (*model.parameters(), *model.buffers()):
            if weight.dim() > 0:
                weight.copy_(weight[torch.arange(weight.shape[0]) % ROWS])


def pack_network(name, folder):
    import numpy
    import peers
    import torch
    model, value = peers.make(name)
    repeat_rows(model)
    peers.set_statistics(model, value)
    repeat_rows(model.eval())
    with torch.no_grad():
        numpy.save(folder / f"{name}.out.npy", model(value).numpy())
        torch.jit.trace(model, value).save(folder / f"{name}.torch")
    numpy.save(folder / f"{name}.in.npy", value.numpy())
    peers.export_pte(model, value, folder / f"{name}.pte")


def pack_decoder(folder):
    import decode
    decode.DIMS["layers"] = LAYERS
    make = decode.make_decoder

    def make_repeated():
        model = make()
        repeat_rows(model)
        return model
    decode.make_decoder = make_repeated
    decode.export_pte(folder / "decoder.pte")


def pack_models(folder):
    with tempfile.TemporaryDirectory() as place:
        for name in NETWORKS:
            say(f"{name}: exporting")
            pack_network(name, Path(place))
        say("decoder: exporting")
        pack_decoder(Path(place))
        with tarfile.open(folder / "models.tar.xz", "w:xz", preset=1) as archive:
            archive.add(place, "models")


def libraries_of(program):
    printed = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    for line in printed.splitlines():
        found = re.search(r"=> (/\S+)", line)
        if found and not OF_THE_SYSTEM.search(line):
            yield Path(found[1])


def pack_programs(folder):
    (folder / "lib").mkdir()
    for name in PROGRAMS:
        subprocess.run(["strip", "-o", folder / Path(name).name, BUILD / name], check=True)
        for path in libraries_of(BUILD / name):
            shutil.copy(path.resolve(), folder / "lib" / path.name)


def pack_loader(folder):
    with tempfile.TemporaryDirectory() as place:
        subprocess.run(["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download",
                        "libvulkan1"], cwd=place, check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["dpkg", "-x", next(Path(place).glob("*.deb")), f"{place}/root"], check=True)
        loader = next(Path(place, "root").rglob("libvulkan.so.1"))
        shutil.copy(loader.resolve(), folder / "lib/libvulkan.so.1")


def pack(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    pack_programs(folder)
    pack_loader(folder)
    pack_models(folder)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{folder}: {size / (1 << 20):.1f} MiB")
    return 0 if size <= FOLDER_BYTES_MAX else 1


# ---- run -----------------------------------------------------------------------------------------

class Machine:
    """The unpacked folder, and what its checks have found."""

    def __init__(self, folder, place, output):
        self.folder, self.models, self.output = folder, place / "models", output
        with tarfile.open(folder / "models.tar.xz") as archive:
            archive.extractall(place, filter="data")
        paths = [str(folder / "lib"), os.environ.get("LD_LIBRARY_PATH", "")]
        self.environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(filter(None, paths)),
                            "top_srcdir": str(SOURCE)}
        drivers = [path for path in DRIVERS if Path(path).exists()]
        if drivers and "VK_DRIVER_FILES" not in os.environ:
            self.environment["VK_DRIVER_FILES"] = ":".join(drivers)
        self.has_failed = False
        self.end = time.monotonic() + RUN_S

    def limit_s(self, step):
        """Of this step, in what is left of the run."""
        return max(1, min(LIMITS_S[step], self.end - time.monotonic()))

    def call(self, step, program, *arguments):
        """(status, what it printed); status None: it took longer than its limit."""
        try:
            done = subprocess.run([self.folder / program, *map(str, arguments)], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  timeout=self.limit_s(step), env=self.environment, check=False)
            return done.returncode, done.stdout
        except subprocess.TimeoutExpired as late:
            printed = late.stdout or b""
            return None, printed if isinstance(printed, str) else printed.decode(errors="replace")

    def note(self, name, is_right, text=""):
        print(f"{'ok' if is_right else 'FAILED'} {name}{': ' if text else ''}{text}", flush=True)
        self.has_failed |= not is_right

    def check(self, step, program, *arguments):
        begin = time.monotonic()
        status, printed = self.call(step, program, *arguments)
        (self.output / f"{step}.log").write_text(printed)
        lines = printed.strip().splitlines()
        wrong = [line for line in lines if re.match(r"not ok|.*FAIL", line)][:10]
        how = "too long" if status is None else f"status {status}"
        self.note(step, status == 0, f"{how}, {time.monotonic() - begin:.0f} s; "
                  f"{'; '.join(wrong or lines[-1:])}")

    def run(self, name, *arguments):
        status, printed = self.call("model", "pte", "run", self.models / f"{name}.pte",
                                    "--device", "vulkan:0", *arguments)
        return status, end_of(printed)


def end_of(printed):
    return printed.strip()[-300:] or "nothing in time"


def median_us(printed):
    found = re.search(r"^median_us: ([\d.]+)$", printed, re.MULTILINE)
    return float(found[1]) if found else None


def difference(machine, name, place):
    """From PyTorch's result, over its largest number; None: there is no result."""
    import numpy
    value = machine.models / f"{name}.in.npy"
    status, printed = machine.run(name, f"input_0={value}", "--output", place)
    files = list(place.glob("*.npy"))
    if status != 0 or len(files) != 1:
        machine.note(name, False, printed)
        return None
    got, wanted = numpy.load(files[0]), numpy.load(machine.models / f"{name}.out.npy")
    return float(numpy.abs(got - wanted).max() / numpy.abs(wanted).max())


NETWORK_CODE = """
import numpy
model = torch.jit.load({model!r}, map_location="cuda").eval()
value = torch.from_numpy(numpy.load({value!r})).cuda()
print("median", time_of(lambda: model(value)))
"""
PEAK_CODE = """
for kind in (torch.float32, torch.float16):
    a = torch.randn(4096, 4096, device="cuda", dtype=kind)
    print(f"{2 * 4096 ** 3 / time_of(lambda: a @ a) / 1e9:.1f} TFLOP/s in", kind)
big = torch.zeros(1 << 28, device="cuda")
print(f"{2 * big.nbytes / time_of(lambda: big.clone()) / 1e6:.0f} GB/s copied")
"""
TORCH_CODE = """
import statistics, time, torch
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False


def time_of(call):
    with torch.no_grad():
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(5):
                call()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            call()
    times = []
    for _ in range(50):
        begin = time.perf_counter()
        graph.replay()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(times)

"""


def ask_torch(machine, what, code):
    """What the code prints in a process of its own; empty: there is no PyTorch, or no GPU."""
    try:
        done = subprocess.run([sys.executable, "-c", TORCH_CODE + code], capture_output=True,
                              text=True, timeout=machine.limit_s("torch"), check=False)
    except subprocess.TimeoutExpired:
        say(f"{what}: PyTorch took too long")
        return ""
    if done.returncode != 0:
        say(f"{what}: PyTorch: {(done.stderr.strip().splitlines() or ['no answer'])[-1]}")
        return ""
    return done.stdout


def torch_ms(machine, name):
    code = NETWORK_CODE.format(model=str(machine.models / f"{name}.torch"),
                               value=str(machine.models / f"{name}.in.npy"))
    printed = ask_torch(machine, name, code)
    found = re.search(r"^median ([\d.e-]+)$", printed, re.MULTILINE)
    return float(found[1]) if found else None


def network(machine, name, place):
    error = difference(machine, name, place)
    if error is None:
        return
    value = f"input_0={machine.models / f'{name}.in.npy'}"
    took = median_us(machine.run(name, value, "--repeat", 30)[1])
    beside = torch_ms(machine, name)
    times = [f"{took / 1e3:.2f} ms" if took else "no time",
             f"PyTorch {beside:.2f} ms" if beside else "PyTorch not timed"]
    machine.note(name, error <= TOLERANCE, f"difference {error:.1e}, {', '.join(times)}")
    profile(machine, name, value)


def profile(machine, name, *inputs):
    status, printed = machine.call("model", "pte", "profile",
                                   machine.models / f"{name}.pte", "--device", "vulkan:0",
                                   "--trace", machine.output / f"{name}.trace.json", *inputs)
    (machine.output / f"{name}.profile.txt").write_text(printed)
    if status != 0:
        machine.note(f"{name}: profile", False, end_of(printed))


def decoder(machine):
    for step, (count, start) in DECODER_STEPS.items():
        inputs = [f"input_0={json.dumps([[1] * count])}", f"input_1={json.dumps([start])}"]
        status, printed = machine.run("decoder", *inputs, "--repeat", 10)
        took = median_us(printed)
        machine.note(f"decoder, {step}", status == 0 and took is not None,
                     f"{took / 1e3:.2f} ms" if took else printed)
    profile(machine, "decoder", "input_0=[[1]]", "input_1=[128]")


def run(folder, output):
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        machine = Machine(folder, Path(place), output)
        print(machine.call("model", "pte", "devices")[1].strip(), flush=True)
        print(ask_torch(machine, "peak", PEAK_CODE).strip(), flush=True)
        machine.check("suite", "cts", "vulkan:0")
        for name in NETWORKS:
            results = Path(place, f"{name}.results")
            results.mkdir()
            network(machine, name, results)
        decoder(machine)
        machine.check("cases", "test_shaders", "--brief")
    return 1 if machine.has_failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("step", choices=("pack", "run"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--output", type=Path, default=Path("gpu-output"),
                        help="logs, profiles and traces of run (%(default)s)")
    options = parser.parse_args()
    if options.step == "pack":
        return pack(options.folder.resolve())
    return run(options.folder.resolve(), options.output.resolve())


if __name__ == "__main__":
    sys.exit(main())
