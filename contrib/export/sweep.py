#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch's own operator samples as one-operator programs, run by tests/ops/test_ops.

    sweep.py --out DIR            writes DIR/tests/ops/NAME.{pte,cases,bin}, one NAME an operator
    sweep.py --out DIR --run      runs what is there and prints what differs, and counts

The samples are those of torch.testing._internal's op_db, every tensor an input of a method, every
other argument a constant in it; a sample that is random, or that does not export, is left out. The
files have the form that ops.py describes. As exporters do, operators are decomposed; --preserve
keeps those for which ExecuTorch has a kernel. Takes long: --jobs, --only, --dtypes and --samples.
"""

import argparse
import logging
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path

import torch
from torch.utils import _pytree as pytree

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)

from executorch.exir import EdgeCompileConfig, to_edge  # noqa: E402
from executorch.extension.pybindings import portable_lib  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

import ops  # noqa: E402
import ops_case  # noqa: E402
import sweep_corners  # noqa: E402
import sweep_kernels  # noqa: E402

ALARM_SECONDS = 30
ALARM_TOTAL_SECONDS = 600  # until the first attempt inside sets its own
VALUES_MAX = 64  # of a case, tests/ops/cases.h
BYTES_MAX = 1 << 20  # of a case
METHODS_MAX = 40  # of a program
TOLERANCES = {torch.float64: 1e-9, torch.float16: 4e-3, torch.bfloat16: 3e-2}
NO_RESULT = re.compile("rand|empty|bernoulli|multinomial")  # what comes out is anyone's guess
FAILURE = re.compile(r"^(\S+): (\S+) \((\w+), (\d+) workers\): (.*)$")


def registered():
    return set(portable_lib._get_operator_names())


def preserved():
    """The functional forms of the kernels that ExecuTorch has, where they have one."""
    keep = []
    for name in registered():
        if not name.startswith("aten::"):
            continue
        base, _, overload = name.removeprefix("aten::").partition(".")
        packet = getattr(torch.ops.aten, base, None)
        wanted = overload.removesuffix("out").removesuffix("_") or "default"
        if packet and wanted in packet.overloads():
            keep.append(getattr(packet, wanted))
    return keep


class Sample(torch.nn.Module):
    """One call of an operator; what is no tensor is a constant of it."""

    def __init__(self, op, sample, channels_last=False):
        super().__init__()
        self.op = op
        self.leaves, self.spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
        self.places = [i for i, v in enumerate(self.leaves) if isinstance(v, torch.Tensor)]
        self.inputs = tuple(
            self.leaves[i].detach().clone(memory_format=torch.contiguous_format)
            for i in self.places)
        self.channels_last = channels_last
        for i in self.places:
            self.leaves[i] = None

    def forward(self, *tensors):
        leaves = list(self.leaves)
        for i, tensor in zip(self.places, tensors):
            if self.channels_last and tensor.dim() == 4:
                tensor = tensor.to(memory_format=torch.channels_last)
            leaves[i] = tensor
        first, args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        result = self.op(first, *args, **kwargs)
        return tuple(
            v.clone() if isinstance(v, torch.Tensor) and any(v is t for t in tensors) else v
            for v in pytree.tree_leaves(result) if v is not None)


def is_usable(module):
    """Tensors of types that there are, not too many, and the same results each time."""
    runs = [pytree.tree_leaves(module(*[t.clone() for t in module.inputs])) for _ in range(2)]
    values = [*module.inputs, *runs[0]]
    tensors = [v for v in values if isinstance(v, torch.Tensor)]
    return (len(tensors) == len(values) and 0 < len(runs[0]) and len(values) <= VALUES_MAX
            and all(t.dtype in ops.DTYPES and t.layout is torch.strided for t in tensors)
            and all(t.dim() <= 16 for t in tensors)
            and sum(t.numel() * t.element_size() for t in tensors) <= BYTES_MAX
            and all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(*runs)))


def on_alarm(*_):
    raise TimeoutError("too long")


def attempt(function, *args, seconds=ALARM_SECONDS):
    """The result, or None for whatever goes wrong: thousands of samples, and not our code."""
    signal.alarm(seconds)
    try:
        return function(*args)
    except BaseException as error:  # noqa: BLE001
        if isinstance(error, KeyboardInterrupt):
            raise
        return None
    finally:
        signal.alarm(0)


def lower(graphs, config):
    return to_edge(graphs, compile_config=config).to_executorch()


def lower_each(graphs, config):
    """Programs of as many methods as can go together: halves, until one is alone."""
    program = attempt(lower, graphs, config)
    if program:
        return [(program, list(graphs))]
    names = list(graphs)
    if len(names) == 1 or not any(attempt(lower, {n: graphs[n]}, config) for n in names[:2]):
        return []
    halves = names[:len(names) // 2], names[len(names) // 2:]
    return [one for half in halves
            for one in lower_each({n: graphs[n] for n in half}, config)]


def samples_of(info, options):
    for dtype in options.dtypes:
        if dtype not in info.supported_dtypes("cpu"):
            continue
        count = options.samples if dtype is torch.float32 else max(1, options.samples // 3)
        made = attempt(lambda: list(info.sample_inputs("cpu", dtype, requires_grad=False)))
        step = max(1, len(made or ()) // count)  # spread: samples begin with the plain ones
        for number, sample in list(enumerate(made or ()))[::step][:count]:
            yield f"{ops_case.short(dtype)}_{number}", sample


def run_eagerly(module):
    tensors = [t.clone() for t in module.inputs]
    expected = pytree.tree_leaves(module(*[t.clone() for t in module.inputs]))
    return tensors, expected, max([TOLERANCES.get(t.dtype, 1e-4) for t in tensors] or [1e-4])


def write_operator(info, options, config):
    name = re.sub(r"\W", "_", f"{info.name}_{info.variant_test_name}".rstrip("_"))
    stem = options.out / "tests" / "ops"
    if (stem / f"{name}.done").exists():
        return
    modules, graphs, failures = {}, {}, 0
    torch.manual_seed(0)
    for method, sample in samples_of(info, options):
        module = attempt(Sample, info.op, sample, options.channels_last)
        if module is None or not attempt(is_usable, module):
            continue
        if options.channels_last and not any(t.dim() == 4 for t in module.inputs):
            continue
        graph = attempt(lambda: torch.export.export(module.eval(), module.inputs))
        failures += graph is None
        if graph is not None:
            modules[method], graphs[method] = module, graph
        if failures > 6:
            break
    written, lowered, methods = 0, [], list(graphs)
    for i in range(0, len(methods), METHODS_MAX):
        lowered += lower_each({m: graphs[m] for m in methods[i:i + METHODS_MAX]}, config)
        if not lowered:
            break  # most likely an operator that has no out form
    for number, (program, members) in enumerate(lowered):
        runs = {method: run_eagerly(modules[method]) for method in members}
        base = stem / f"{name}-{number}.pte"
        base.write_bytes(bytes(program.buffer))
        sweep_kernels.write_runs(base, runs, options)
        written += len(members)
    (stem / f"{name}.done").write_text(f"{written} of {len(graphs)} exported\n")
    print(f"{name}: {written} of {len(graphs)} exported, {failures} refused", flush=True)


def write_kernels(options, known, infos):
    """As write_operator() for all of them, without an exporter: sweep_kernels.py."""
    options.tolerances, options.methods = TOLERANCES, METHODS_MAX
    (options.out / "tests" / "ops").mkdir(parents=True, exist_ok=True)
    found = sweep_kernels.Found(attempt, known, options)
    torch.manual_seed(0)
    with torch.no_grad():
        if options.corners or options.stored:
            for call in sweep_corners.stored() if options.stored else sweep_corners.corners():
                found.add(*call, 1000)
        else:
            infos = [info for info in infos if not NO_RESULT.search(info.name)]
            sweep_kernels.record(found, infos, samples_of)
        (sweep_kernels.write_stored if options.stored else sweep_kernels.write)(found)


def write_share(options, share):
    signal.signal(signal.SIGALRM, on_alarm)
    torch.set_num_threads(1)
    known = registered()
    if options.kernels or options.corners or options.stored:
        return write_kernels(options, known, op_db[share::options.jobs])
    config = EdgeCompileConfig(_check_ir_validity=False,
                               preserve_ops=preserved() if options.preserve else [])
    (options.out / "tests" / "ops").mkdir(parents=True, exist_ok=True)
    for info in op_db[share::options.jobs]:
        if re.search(options.only, info.name) and not NO_RESULT.search(info.name):
            with torch.no_grad():
                attempt(write_operator, info, options, config, seconds=ALARM_TOTAL_SECONDS)


def verdicts_of(path):
    """What ExecuTorch made of each method, where that is known: sweep_kernels.py."""
    path = path.with_suffix(".verdicts")
    return dict(line.split() for line in path.open()) if path.exists() else {}


def run(options):
    """Each program in a process of its own: one that crashes is one that fails."""
    environment = {**os.environ, "top_srcdir": str(options.out)}
    calls, failed, reasons, said = 0, 0, Counter(), Counter()
    for path in sorted((options.out / "tests" / "ops").glob("*.pte")):
        name = path.stem
        if not re.search(options.only, name):
            continue
        count = path.with_suffix(".cases").read_text().count("case ")
        done = subprocess.run([options.program, "--brief", name], env=environment, text=True,
                              capture_output=True, timeout=600, errors="replace")
        calls += count
        if done.returncode not in (0, 1):
            failed += count
            print(f"{name}: ended with {done.returncode}")
            continue
        methods = {}
        for line in done.stderr.splitlines():
            match = FAILURE.match(line)
            if match:
                methods.setdefault(match[2], match[5])
            elif done.returncode:
                print(f"{name}: {line}")
        failed += len(methods)
        theirs = verdicts_of(path)
        said.update(verdict for method, verdict in theirs.items() if method in methods)
        for method, text in methods.items():
            verdict = f" (ExecuTorch {theirs[method]})" if method in theirs else ""
            print(f"{name}: {method}: {text}{verdict}")
            reasons[re.sub(r"\d+", "N", text)] += 1
    print(f"{calls} calls, {failed} failed", *(f"(ExecuTorch {v}: {n})" for v, n in said.items()))
    for text, count in reasons.most_common(40):
        print(f"{count:6} {text}")
    return failed > 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--run", action="store_true")
    parser.add_argument("--program", default="tests/ops/test_ops")
    parser.add_argument("--kernels", action="store_true",
                        help="the kernel calls underneath instead, written without an exporter")
    parser.add_argument("--corners", action="store_true", help="likewise those of sweep_corners.py")
    parser.add_argument("--stored", action="store_true", help="tests/ops/corners of the sources")
    parser.add_argument("--dynamic", action="store_true", help="... with dims that vary")
    parser.add_argument("--preserve", action="store_true")
    parser.add_argument("--channels-last", action="store_true",
                        help="images are brought into that order first; samples without are left")
    parser.add_argument("--only", default="", help="a regular expression of names")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--samples", type=int, default=9, help="of float32; of others a third")
    parser.add_argument("--dtypes", nargs="+", type=lambda name: getattr(torch, name),
                        default=[*ops_case.FLOATS, *ops_case.INTS, torch.bool])
    options = parser.parse_args()
    options.out = options.out.resolve()
    if options.run:
        return run(options)
    workers = [multiprocessing.Process(target=write_share, args=(options, share))
               for share in range(options.jobs)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return max(worker.exitcode for worker in workers)


if __name__ == "__main__":
    sys.exit(main())
