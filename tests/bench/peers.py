#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the times of well-known networks in pted with those in other inference engines.

The networks have random weights and are made from the configurations of torchvision and
transformers, so nothing is downloaded. Each is exported twice, once: as NAME.pte through the
XNNPACK partitioner for pted and ExecuTorch, and as NAME.onnx for ONNX Runtime and OpenVINO. The
exports stay in the folder of --cache.

Names that end in `_int8` are the same networks with 8-bit weights and activations, quantised for
each family of engines by its own tool: PT2E with the quantiser of XNNPACK, one scale a channel of
weights, and quantize_static() of ONNX Runtime with the same choices.

Each engine runs in a process of its own, on the same input, batch 1. Before anything is timed, its
result must equal PyTorch's within the tolerance of its kind. Then the engines take turns, ROUNDS
times. Each round gives the ratio of two medians measured one after the other. The table has the
median of these ratios, pted's time over the peer's: below 1, pted is faster. The spread is the
smallest and the largest ratio.

With --cpu an older processor is played: pted and OpenVINO use no newer instructions. The others
have no such option and are left out. With several --threads the last lines have the time with the
first number of threads over the time with each other one.

An engine or a library of models that is not installed is left out, and a line on stderr names it.
`pip install -r tests/bench/peers.txt` installs all of them.
"""
import argparse
import importlib
import importlib.util
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

from peers_svg import draw

PTE = Path(os.environ.get("top_builddir", ".")).resolve() / "pte"
IMAGE = (1, 3, 224, 224)
# Largest difference from PyTorch, over the largest number of its result.
TOLERANCE = {"f32": 1e-3, "bf16": 1 / 4, "int8": 1 / 2}  # deep random networks amplify errors
CALIBRATION = 8  # random inputs, of which the scales of activations are taken


class Left(Exception):
    """Why an engine or a model is left out."""


def say(text):
    print(f"peers: {text}", file=sys.stderr, flush=True)


# ---- models --------------------------------------------------------------------------------------

TORCHVISION = {
    "mobilenet_v2": "mobilenet_v2", "mobilenet_v3": "mobilenet_v3_large", "resnet18": "resnet18",
    "resnet50": "resnet50", "efficientnet_b0": "efficientnet_b0",
    "convnext_tiny": "convnext_tiny", "swin_t": "swin_t", "squeezenet": "squeezenet1_1",
    "densenet121": "densenet121", "shufflenet_v2": "shufflenet_v2_x1_0",
}
VIT_TINY = {"image_size": 224, "patch_size": 16, "num_layers": 12, "num_heads": 3,
            "hidden_dim": 192, "mlp_dim": 768}
BERT = {  # tokens and configuration
    "minilm": (64, {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12,
                    "intermediate_size": 1536}),
    "bert_base": (128, {}),
}
INT8 = {f"{name}_int8": name for name in ("mobilenet_v2", "resnet18", "resnet50")}
MODELS = [*TORCHVISION, "vit_tiny", "lraspp", *BERT, *INT8]
kept = []  # libraries of operators, which unregister when they are collected


def import_torchvision():
    """torchvision, also if its own operators do not load; these networks do not use them."""
    import torch
    try:
        return importlib.import_module("torchvision")
    except RuntimeError:
        for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor boxes, Tensor scores, float threshold) -> Tensor")
        kept.append(library)
        return importlib.import_module("torchvision")


def make_vision(name):
    import torch
    vision = import_torchvision().models
    if name == "vit_tiny":
        model = vision.VisionTransformer(**VIT_TINY)
        torch.nn.init.normal_(model.heads.head.weight, std=0.02)  # zeros by default
    elif name == "lraspp":
        whole = vision.segmentation.lraspp_mobilenet_v3_large(weights_backbone=None)
        model = take_result(whole, "out")
    else:
        model = getattr(vision, TORCHVISION[INT8.get(name, name)])()
    return model, torch.randn(IMAGE)


def make_text(name):
    import torch
    import_torchvision()  # which transformers imports, if it is there
    transformers = importlib.import_module("transformers")
    tokens, options = BERT[name]
    config = transformers.BertConfig(**options)
    whole = transformers.BertModel(config, add_pooling_layer=False)
    model = take_result(whole, "last_hidden_state")
    return model, torch.randint(config.vocab_size, (1, tokens))


def make(name):
    """A network in evaluation mode, and its input."""
    import torch
    torch.manual_seed(0)
    try:
        model, value = make_text(name) if name in BERT else make_vision(name)
    except (ImportError, RuntimeError) as missing:
        raise Left(str(missing).splitlines()[0]) from missing
    set_statistics(model, value)
    return model.eval(), value


def set_statistics(model, value):
    """Gives batch normalization the statistics of this input, so that results stay in range."""
    import torch
    norms = [m for m in model.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = None
    if norms:
        with torch.no_grad():
            model.train()(torch.cat([value, torch.randn_like(value)]))


def take_result(model, result):
    """The network |model|, of which one named result is used."""
    import torch

    class OneResult(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, value):
            return self.model(value)[result]
    return OneResult()


# ---- exports -------------------------------------------------------------------------------------

def export_pte(model, value, path):
    import torch
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower
    program = torch.export.export(model, (value,))
    lowered = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    path.write_bytes(lowered.to_executorch().buffer)


def export_onnx(model, value, path):
    import torch
    torch.onnx.export(model, (value,), path, dynamo=True, external_data=False, verbose=False)


def calibration(value):
    import torch
    torch.manual_seed(1)
    return [value, *(torch.randn_like(value) for _ in range(CALIBRATION - 1))]


def export_pte_int8(model, value, path):
    import torch
    from executorch.backends.xnnpack.quantizer import xnnpack_quantizer
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    config = xnnpack_quantizer.get_symmetric_quantization_config(is_per_channel=True)
    prepared = prepare_pt2e(torch.export.export(model, (value,)).module(),
                            xnnpack_quantizer.XNNPACKQuantizer().set_global(config))
    with torch.no_grad():
        for one in calibration(value):
            prepared(one)
    export_pte(convert_pt2e(prepared), value, path)


def export_onnx_int8(model, value, path):
    from onnxruntime import quantization

    class Reader(quantization.CalibrationDataReader):
        def __init__(self):
            self.values = iter(calibration(value))

        def get_next(self):
            one = next(self.values, None)
            return None if one is None else {"x": one.numpy()}
    with tempfile.TemporaryDirectory() as folder:
        plain, prepared = Path(folder, "plain.onnx"), Path(folder, "prepared.onnx")
        import torch
        torch.onnx.export(model, (value,), plain, dynamo=True, external_data=False, verbose=False,
                          input_names=["x"])
        quantization.quant_pre_process(plain, prepared)
        quantization.quantize_static(prepared, path, Reader(), per_channel=True,
                                     activation_type=quantization.QuantType.QUInt8,
                                     weight_type=quantization.QuantType.QInt8)


def export(name, folder):
    """Writes NAME.pte, NAME.onnx, NAME.in.npy and NAME.out.npy, as far as they are not there."""
    import numpy
    import torch
    paths = [folder / f"{name}{suffix}" for suffix in (".in.npy", ".out.npy", ".pte", ".onnx")]
    if all(path.exists() for path in paths):
        return
    say(f"{name}: exporting")
    warnings.simplefilter("ignore")  # the exporters warn of their own code
    model, value = make(name)
    with torch.no_grad():
        numpy.save(paths[1], model(value).numpy())
    numpy.save(paths[0], value.numpy())
    to_pte, to_onnx = ((export_pte_int8, export_onnx_int8) if name in INT8 else
                       (export_pte, export_onnx))
    for write, path in ((to_pte, paths[2]), (to_onnx, paths[3])):
        unfinished = path.with_name("unfinished" + path.suffix)
        try:
            write(model, value, unfinished)
        except ImportError as missing:
            raise Left(str(missing)) from missing
        unfinished.rename(path)


# ---- engines -------------------------------------------------------------------------------------

class Calls:
    """An engine with a loaded model: call() runs it once and returns the first result."""

    def call(self):
        raise NotImplementedError

    def time(self, seconds):
        """Median milliseconds of the calls made in |seconds|, at least three."""
        times = []
        end = time.perf_counter() + seconds
        while len(times) < 3 or time.perf_counter() < end:
            begin = time.perf_counter()
            self.call()
            times.append((time.perf_counter() - begin) * 1e3)
        return statistics.median(times)


class Executorch(Calls):
    def __init__(self, stem, value, threads):
        import torch
        from executorch.extension.pybindings import portable_lib
        portable_lib._unsafe_reset_threadpool(threads)
        torch.set_num_threads(threads)
        self.module = portable_lib._load_for_executorch(f"{stem}.pte")
        self.inputs = [torch.from_numpy(value)]

    def call(self):
        return self.module.run_method("forward", self.inputs)[0].numpy()


class OnnxRuntime(Calls):
    def __init__(self, stem, value, threads):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        self.session = onnxruntime.InferenceSession(f"{stem}.onnx", options,
                                                    providers=["CPUExecutionProvider"])
        self.inputs = {self.session.get_inputs()[0].name: value}

    def call(self):
        return self.session.run(None, self.inputs)[0]


class OpenVino(Calls):
    """With |precision| None the engine chooses: bf16 where the processor has it."""

    def __init__(self, stem, value, threads, precision=None):
        import openvino
        options = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads}
        if precision:
            options["INFERENCE_PRECISION_HINT"] = precision
        model = openvino.Core().compile_model(f"{stem}.onnx", "CPU", options)
        self.request, self.inputs = model.create_infer_request(), [value]
        self.result = model.output(0)

    def call(self):
        return self.request.infer(self.inputs)[self.result]


class OpenVinoF32(OpenVino):
    def __init__(self, stem, value, threads):
        super().__init__(stem, value, threads, "f32")


# name: the class, the module that it needs, the kind of its tolerance
ENGINES = {
    "executorch": (Executorch, "executorch", "f32"),
    "onnxruntime": (OnnxRuntime, "onnxruntime", "f32"),
    "openvino_f32": (OpenVinoF32, "openvino", "f32"),
    "openvino": (OpenVino, "openvino", "bf16"),
}


def serve(engine, stem, threads):
    """In the engine's process: writes its result, then reads seconds and prints medians."""
    import numpy
    calls = ENGINES[engine][0](stem, numpy.load(f"{stem}.in.npy"), threads)
    calls.call()
    numpy.save(f"{stem}.{engine}.npy", calls.call())
    print("ready", flush=True)
    for line in sys.stdin:
        print(calls.time(float(line)), flush=True)


# Levels of pted, and the same in the words of oneDNN, which OpenVINO computes with.
CPUS = {"avx2": "AVX2", "avx_vnni": "AVX2_VNNI", "avx512": "AVX512_CORE",
        "avx512_vnni": "AVX512_CORE_VNNI"}


class Peer:
    """An engine in a process of its own."""

    def __init__(self, engine, stem, threads, cpu):
        self.name, self.kind = engine, ENGINES[engine][2]
        self.output = Path(f"{stem}.{engine}.npy")
        command = [sys.executable, __file__, "--serve", engine, "--threads", str(threads),
                   "--cache", str(Path(stem).parent), "--models", Path(stem).name]
        self.log = tempfile.TemporaryFile("w+")
        limit = {"ONEDNN_MAX_CPU_ISA": CPUS[cpu]} if cpu else {}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.log, text=True, env={**os.environ, **limit})
        while (line := self.process.stdout.readline().strip()) != "ready":
            if not line and self.process.poll() is not None:
                raise Left(self.last_words())

    def last_words(self):
        self.log.seek(0)
        return (self.log.read().strip().splitlines() or ["it ended without a message"])[-1]

    def time(self, seconds):
        try:
            print(seconds, file=self.process.stdin, flush=True)
            return float(self.process.stdout.readline())
        except (OSError, ValueError) as failure:
            raise Left(self.last_words()) from failure

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.log.close()


class Pted:
    """pted's runtime in `pte run`: a process for each round, of which only the calls count."""

    def __init__(self, stem, threads, precision, cpu):
        self.name, self.kind = "pted", "bf16" if precision == "bf16" else "f32"
        self.output = Path(f"{stem}.pted.npy")
        self.options = [f"{stem}.pte", "--input", f"input_0={stem}.in.npy", "--workers",
                        str(threads), "--precision", precision, *(("--cpu", cpu) if cpu else ())]
        with tempfile.TemporaryDirectory() as folder:
            self.run("--output", folder)
            Path(folder, "output_0.npy").replace(self.output)
        self.first_ms = self.median("--repeat", "3")

    def run(self, *options):
        done = subprocess.run([PTE, "run", *self.options, *options], capture_output=True,
                              text=True, check=False)
        if done.returncode:
            raise Left(done.stderr.strip())
        return done.stdout

    def median(self, *options):
        return float(re.search(r"median_us: ([0-9.]+)", self.run(*options)).group(1)) / 1e3

    def time(self, seconds):
        return self.median("--repeat", str(max(3, int(seconds * 1e3 / self.first_ms))))

    def close(self):
        pass


# ---- measuring -----------------------------------------------------------------------------------

def verify(engine, stem):
    """The engine's result must equal PyTorch's."""
    import numpy
    most = TOLERANCE["int8" if Path(stem).name in INT8 else engine.kind]
    expected, got = numpy.load(f"{stem}.out.npy"), numpy.load(engine.output)
    engine.output.unlink()
    if expected.shape != got.shape:
        raise Left(f"expected a result of {expected.shape}, got {got.shape}")
    error = float(abs(expected - got).max() / abs(expected).max())
    if not error <= most:
        raise Left(f"its result differs from PyTorch's by {error:.1e} of the largest number, "
                   f"expected at most {most:.1e}")


def open_all(stem, threads, args):
    """pted first, then the peers that run this model and give the right result."""
    engines = []
    makers = {"pted": lambda: Pted(stem, threads, args.precision, args.cpu)}
    for name in args.peers:
        makers[name] = lambda name=name: Peer(name, stem, threads, args.cpu)
    for name, maker in makers.items():
        engine = None
        try:
            engine = maker()
            verify(engine, stem)
            engines.append(engine)
        except Left as why:
            say(f"{Path(stem).name}: {name} is left out: {why}")
            if engine:
                engine.close()
            if name == "pted":
                break
    return engines


def measure(name, threads, args):
    """A row of the table: {"model", "threads", "pted_ms", "peers": {name: {...}}}, or None."""
    engines = open_all(str(args.cache / name), threads, args)
    if not engines:
        return None
    try:
        rounds = [[engine.time(args.seconds) for engine in engines] for _ in range(args.rounds)]
    except Left as why:
        say(f"{name}: left out: {why}")
        return None
    finally:
        for engine in engines:
            engine.close()
    row = {"model": name, "threads": threads, "precision": args.precision, "cpu": args.cpu,
           "pted_ms": statistics.median(times[0] for times in rounds), "peers": {}}
    for i, engine in enumerate(engines[1:], 1):
        ratios = [times[0] / times[i] for times in rounds]
        row["peers"][engine.name] = {
            "ms": statistics.median(times[i] for times in rounds),
            "ratio": statistics.median(ratios), "least": min(ratios), "most": max(ratios)}
    return row


# ---- printing ------------------------------------------------------------------------------------

def cell(row, peer, with_spread):
    found = row["peers"].get(peer)
    if not found:
        return "-"
    spread = f" ({found['least']:.2f}-{found['most']:.2f})" if with_spread else ""
    return f"{found['ratio']:.2f}{spread}"


def print_row(row, peers):
    cells = "".join(f"{cell(row, peer, True):>20}" for peer in peers)
    print(f"{row['model']:<16}{row['threads']:>7}{row['pted_ms']:>10.2f}{cells}", flush=True)


def print_head(peers):
    print(f"{'model':<16}{'threads':>7}{'pted ms':>10}" + "".join(f"{p:>20}" for p in peers))


def print_gains(rows, peers):
    """What more threads gain each engine."""
    first = {}
    for row in rows:
        ms = {"pted": row["pted_ms"], **{peer: found["ms"] for peer, found in row["peers"].items()}}
        one = first.setdefault(row["model"], ms)
        if one is not ms:
            cells = (f"{one[name] / ms[name]:.2f}" if name in ms and name in one else "-"
                     for name in ("pted", *peers))
            widths = (10, *(20 for _ in peers))
            print(f"{row['model']:<16}{row['threads']:>7}" +
                  "".join(f"{text:>{width}}" for text, width in zip(cells, widths)))


def write_markdown(rows, peers, path):
    lines = [f"| model | threads | pted ms | {' | '.join(peers)} |",
             "| --- |" + " --- |" * (2 + len(peers))]
    for row in rows:
        cells = " | ".join(cell(row, peer, False) for peer in peers)
        lines.append(f"| {row['model']} | {row['threads']} | {row['pted_ms']:.2f} | {cells} |")
    path.write_text("\n".join(lines) + "\n")


def write_svg(rows, peers, path):
    several = len({row["threads"] for row in rows}) > 1
    path.write_text(draw([(f"{row['model']} x{row['threads']}" if several else row["model"],
                           [row["peers"].get(peer, {}).get("ratio") for peer in peers])
                          for row in rows], peers), encoding="utf-8")


# ---- command line --------------------------------------------------------------------------------

def names(known):
    def parse(text):
        chosen = text.split(",")
        for name in chosen:
            if name not in known:
                raise argparse.ArgumentTypeError(
                    f"expected names of {', '.join(known)}, got '{name}'")
        return chosen
    return parse


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0],
                                     epilog="top_builddir in the environment: where `pte` is (.)")
    parser.add_argument("--models", type=names(MODELS), default=MODELS,
                        help=f"with commas between them, of {', '.join(MODELS)} (all)")
    parser.add_argument("--peers", type=names(ENGINES), default=list(ENGINES),
                        help=f"with commas between them, of {', '.join(ENGINES)} (all)")
    parser.add_argument("--threads", default="1", help="numbers with commas between them (1)")
    parser.add_argument("--precision", choices=("exact", "fast", "bf16"), default="fast",
                        help="of pted (fast)")
    parser.add_argument("--cpu", choices=CPUS, help="no newer instructions (all there are)")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each engine (5)")
    parser.add_argument("--seconds", type=float, default=0.5, help="length of a turn (0.5)")
    parser.add_argument("--cache", type=Path, default=Path("peers-cache"),
                        help="folder of the exports (peers-cache)")
    parser.add_argument("--markdown", type=Path, help="also write the table to this file")
    parser.add_argument("--json", type=Path, help="also write all numbers to this file")
    parser.add_argument("--svg", type=Path, help="also draw the ratios (peers_svg.py)")
    parser.add_argument("--serve", choices=ENGINES, help=argparse.SUPPRESS)
    args = parser.parse_args()
    try:
        args.thread_counts = [int(text) for text in args.threads.split(",")]
    except ValueError:
        parser.error(f"--threads: expected numbers with commas between them, got '{args.threads}'")
    if args.rounds < 1:
        parser.error(f"--rounds: expected at least 1, got {args.rounds}")
    return args


def find_peers(chosen):
    """The chosen peers that are installed."""
    found = []
    for peer in chosen:
        module = ENGINES[peer][1]
        if importlib.util.find_spec(module):
            found.append(peer)
        else:
            say(f"{peer} is left out: Python has no module '{module}'")
    return found


def measure_all(args):
    rows = []
    print_head(args.peers)
    for name in args.models:
        try:
            export(name, args.cache)
        except Left as why:
            say(f"{name} is left out: {why}")
            continue
        for threads in args.thread_counts:
            row = measure(name, threads, args)
            if row:
                print_row(row, args.peers)
                rows.append(row)
    return rows


def main():
    args = parse_arguments()
    if args.serve:
        serve(args.serve, str(args.cache / args.models[0]), args.thread_counts[0])
        return
    if not PTE.exists():
        sys.exit(f"peers: expected the program {PTE}; set top_builddir to the build tree")
    args.peers = find_peers([peer for peer in args.peers
                             if not args.cpu or peer.startswith("openvino")])
    args.cache.mkdir(parents=True, exist_ok=True)
    rows = measure_all(args)
    print_gains(rows, args.peers)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    if args.markdown:
        write_markdown(rows, args.peers, args.markdown)
    if args.svg and rows and args.peers:
        write_svg(rows, args.peers, args.svg)
    sys.exit(0 if rows else 1)


if __name__ == "__main__":
    main()
