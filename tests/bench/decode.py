#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the times of a language model in pted with those in other inference engines.

The model is a decoder of the Llama kind with random weights, so nothing is downloaded. Its linear
layers have 4-bit weights in groups of 32, each group with a scale, and round their inputs to 8 bits
(8da4w). It is exported once, through the XNNPACK partitioner, as decoder.pte for pted and
ExecuTorch. llama.cpp gets a file of the same dimensions, decoder.gguf, with other random weights in
its format Q4_0, which also has groups of 32. Both files stay in the folder of --cache.

The steps are one token behind 128 others (decode) and first calls of 128 and 512 tokens (prefill).
Each peer runs in a process of its own. ExecuTorch's results must be like pted's before anything is
timed. Then the engines take turns, ROUNDS times. A token of pted is a step of a sequence
(tests/bench/bench_calls, which has to be built); its first calls begin with empty caches.

With --processor, times are those of the processor, of all threads of an engine together, and a
prompt is one of bench_calls, too: on a busy machine, with one thread, that tells more. Threads that
wait for each other by turning count as well, so it tells little about several. Rates of reading are
not measured then.

The table has the median times, and the median over the rounds of pted's time over the peer's: below
1, pted is faster. The spread is the smallest and the largest ratio. The column "weights" is the
file's weights and their scales, in bytes over the time of a token, as a part of the rate at which
the same threads read memory; `pte profile` measures that rate in every round. "products" is the
same for the matrix products alone, while they run: what they read over their own time.

`pip install -r tests/bench/peers.txt torchao` installs what the export needs. `pip install
llama-cpp-python gguf` compiles and installs llama.cpp. A peer that is not installed is left out,
and a line on stderr names it.
"""
import argparse
import importlib.metadata
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

BUILD = Path(os.environ.get("top_builddir", ".")).resolve()
PTE = BUILD / "pte"
DIMS = {"layers": 8, "dim": 2048, "heads": 32, "kv_heads": 8, "hidden": 8192, "vocab": 32000,
        "context": 1024}
GROUP = 32
SCALE_BYTES = 2  # of a group, in the file
TOLERANCE = 0.1  # of the largest number: the engines round the inputs of products differently


class Left(Exception):
    """Why an engine is left out."""


def say(text):
    print(f"decode: {text}", file=sys.stderr, flush=True)


# ---- the model -----------------------------------------------------------------------------------

def linears():
    """(outputs, inputs) of the quantized layers of the whole model."""
    dim, hidden = DIMS["dim"], DIMS["hidden"]
    kv = dim // DIMS["heads"] * DIMS["kv_heads"]
    layer = [(dim, dim), (kv, dim), (kv, dim), (dim, dim), (hidden, dim), (hidden, dim),
             (dim, hidden)]
    return layer * DIMS["layers"] + [(DIMS["vocab"], dim)]


def weight_bytes():
    """Bytes of the weights and scales that a token reads."""
    return sum(n * k / 2 + n * k / GROUP * SCALE_BYTES for n, k in linears())


def make_decoder():
    import torch
    from torch import nn

    import executorch.extension.llm.custom_ops.custom_ops  # noqa: F401  registers operators
    width = DIMS["dim"] // DIMS["heads"]

    def linear(n, k):
        return nn.Linear(k, n, bias=False)

    def rotate(x, cos, sin):
        a, b = x[..., ::2], x[..., 1::2]
        return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            dim, kv, hidden = DIMS["dim"], DIMS["kv_heads"] * width, DIMS["hidden"]
            self.norm1, self.norm2 = nn.RMSNorm(dim), nn.RMSNorm(dim)
            self.q, self.k, self.v = linear(dim, dim), linear(kv, dim), linear(kv, dim)
            self.out, self.gate = linear(dim, dim), linear(hidden, dim)
            self.up, self.down = linear(hidden, dim), linear(dim, hidden)
            shape = (1, DIMS["context"], DIMS["kv_heads"], width)
            self.register_buffer("k_cache", torch.zeros(shape), persistent=False)
            self.register_buffer("v_cache", torch.zeros(shape), persistent=False)

        def forward(self, x, cos, sin, start):
            b, t, d = x.shape
            y = self.norm1(x)
            q = rotate(self.q(y).view(b, t, DIMS["heads"], width), cos, sin)
            k = rotate(self.k(y).view(b, t, DIMS["kv_heads"], width), cos, sin)
            v = self.v(y).view(b, t, DIMS["kv_heads"], width)
            torch.ops.llama.update_cache(k, self.k_cache, start)
            torch.ops.llama.update_cache(v, self.v_cache, start)
            mixed = torch.ops.llama.custom_sdpa(q, self.k_cache, self.v_cache, start, None, 0.0,
                                                True)
            x = x + self.out(mixed.reshape(b, t, d))
            y = self.norm2(x)
            return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y))

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(DIMS["vocab"], DIMS["dim"])
            self.layers = nn.ModuleList(Layer() for _ in range(DIMS["layers"]))
            self.norm, self.output = nn.RMSNorm(DIMS["dim"]), linear(DIMS["vocab"], DIMS["dim"])
            rates = 10000.0 ** (-torch.arange(0, width, 2) / width)
            angle = torch.outer(torch.arange(DIMS["context"]).float(), rates)
            self.register_buffer("cos", angle.cos(), persistent=False)
            self.register_buffer("sin", angle.sin(), persistent=False)

        def forward(self, tokens, input_pos):
            count, start = tokens.shape[1], input_pos[0].item()
            torch._check(start >= 0)
            torch._check(start + count <= DIMS["context"])
            cos, sin = (t.narrow(0, start, count)[None, :, None] for t in (self.cos, self.sin))
            x = self.embed(tokens)
            for layer in self.layers:
                x = layer(x, cos, sin, start)
            return self.output(self.norm(x[:, -1:]))

    return Decoder()


def export_pte(path):
    import torch
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import (
        XnnpackDynamicallyQuantizedPartitioner, XnnpackPartitioner)
    from executorch.exir import to_edge_transform_and_lower
    from torchao.quantization import Int8DynamicActivationIntxWeightConfig, quantize_
    from torchao.quantization.granularity import PerGroup
    from torchao.utils import unwrap_tensor_subclass
    warnings.simplefilter("ignore")  # the exporters warn of their own code
    torch.manual_seed(0)
    model = make_decoder().eval()
    quantize_(model, Int8DynamicActivationIntxWeightConfig(
        weight_dtype=torch.int4, weight_granularity=PerGroup(GROUP)))
    count = torch.export.Dim("count", min=1, max=DIMS["context"] - 1)
    program = torch.export.export(
        unwrap_tensor_subclass(model), (torch.tensor([[1, 2, 3]]), torch.tensor([0])),
        dynamic_shapes={"tokens": {1: count}, "input_pos": {}})
    partitioners = [XnnpackDynamicallyQuantizedPartitioner(), XnnpackPartitioner()]
    lowered = to_edge_transform_and_lower(program, partitioner=partitioners)
    path.write_bytes(lowered.to_executorch().buffer)


def export_gguf(path):
    import gguf
    import numpy
    random, q4 = numpy.random.default_rng(0), gguf.GGMLQuantizationType.Q4_0
    block = numpy.dtype([("scale", "<f2"), ("bytes", "u1", GROUP // 2)])
    file = gguf.GGUFWriter(path, "llama")
    file.add_context_length(DIMS["context"])
    file.add_embedding_length(DIMS["dim"])
    file.add_block_count(DIMS["layers"])
    file.add_feed_forward_length(DIMS["hidden"])
    file.add_head_count(DIMS["heads"])
    file.add_head_count_kv(DIMS["kv_heads"])
    file.add_rope_dimension_count(DIMS["dim"] // DIMS["heads"])
    file.add_layer_norm_rms_eps(1e-5)
    file.add_vocab_size(DIMS["vocab"])
    file.add_tokenizer_model("no_vocab")

    def add_linear(name, n, k):
        blocks = numpy.empty((n, k // GROUP), block)
        blocks["scale"] = 0.005
        blocks["bytes"] = random.integers(256, size=blocks["bytes"].shape, dtype="u1")
        file.add_tensor(f"{name}.weight", blocks.view("u1").reshape(n, -1), raw_dtype=q4)

    def add_norm(name):
        file.add_tensor(f"{name}.weight", numpy.ones(DIMS["dim"], "f4"))

    names = ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"]
    shapes = linears()
    add_linear("token_embd", *shapes[-1])
    for layer in range(DIMS["layers"]):
        for name, shape in zip(names, shapes):
            add_linear(f"blk.{layer}.{name}", *shape)
        add_norm(f"blk.{layer}.attn_norm")
        add_norm(f"blk.{layer}.ffn_norm")
    add_norm("output_norm")
    add_linear("output", *shapes[-1])
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()


def ensure(path, write, package):
    """Writes the model if it is not there."""
    if path.exists():
        return
    say(f"exporting {path}")
    unfinished = path.with_name("unfinished" + path.suffix)
    try:
        write(unfinished)
    except ImportError as missing:
        raise Left(f"{missing}: {package}") from missing
    unfinished.rename(path)


# ---- engines -------------------------------------------------------------------------------------

STEPS = {"decode": (1, 128), "prefill 128": (128, 0), "prefill 512": (512, 0)}  # tokens, position


def inputs_of(step):
    """The tokens and the position of the first one, as arrays."""
    import numpy
    count, position = STEPS[step]
    tokens = numpy.random.default_rng(1).integers(DIMS["vocab"], size=(1, count))
    return tokens.astype("int64"), numpy.array([position])


class Engine:
    """A peer: call() runs a step once and returns its result."""

    def call(self, step):
        raise NotImplementedError

    def prepare(self, step):
        """What a call of the step needs and its time does not count."""

    def time(self, step, seconds, clock):
        """Median milliseconds of the calls made in |seconds|, at least three."""
        self.prepare(step)
        self.call(step)
        times, end = [], time.perf_counter() + seconds
        while len(times) < 3 or time.perf_counter() < end:
            begin = clock()
            self.call(step)
            times.append((clock() - begin) * 1e3)
        return statistics.median(times)


class Executorch(Engine):
    def __init__(self, folder, threads):
        import executorch.extension.llm.custom_ops.custom_ops  # noqa: F401  registers operators
        import torch
        from executorch.extension.pybindings import portable_lib
        portable_lib._unsafe_reset_threadpool(threads)
        torch.set_num_threads(threads)
        self.module = portable_lib._load_for_executorch(str(folder / "decoder.pte"))

    def call(self, step):
        import torch
        inputs = [torch.from_numpy(value) for value in inputs_of(step)]
        return self.module.run_method("forward", inputs)[0].numpy()


class LlamaCpp(Engine):
    def __init__(self, folder, threads):
        from llama_cpp import Llama
        self.model = Llama(str(folder / "decoder.gguf"), n_ctx=DIMS["context"], n_batch=512,
                           n_ubatch=512, n_threads=threads, n_threads_batch=threads,
                           verbose=False)

    def prepare(self, step):
        self.model.reset()
        if STEPS[step][1]:
            self.model.eval([1] * STEPS[step][1])

    def call(self, step):
        self.model.n_tokens = STEPS[step][1]  # forgets what earlier calls added
        self.model.eval(inputs_of(step)[0][0].tolist())
        return self.model.scores


# name: the class, the file that it reads, how the file is written, what that needs
ENGINES = {
    "executorch": (Executorch, "decoder.pte", export_pte,
                   "pip install -r tests/bench/peers.txt torchao"),
    "llama.cpp": (LlamaCpp, "decoder.gguf", export_gguf, "pip install llama-cpp-python gguf"),
}


def version_of(name):
    """Of the package that has the engine."""
    package = {"executorch": "executorch", "llama.cpp": "llama-cpp-python"}[name]
    return f"{package} {importlib.metadata.version(package)}"


def serve(name, folder, threads, clock):
    """In the engine's process: answers each question with a median, or with a saved result."""
    import numpy
    engine = ENGINES[name][0](folder, threads)
    print("ready", flush=True)
    for line in sys.stdin:
        step, what, value = json.loads(line)
        if what == "result":
            numpy.save(value, engine.call(step))
            print("saved", flush=True)
        else:
            print(engine.time(step, value, clock), flush=True)


class Peer:
    """An engine in a process of its own."""

    def __init__(self, name, folder, threads, *options):
        _, file, write, package = ENGINES[name]
        self.name = name
        ensure(folder / file, write, package)
        command = [sys.executable, __file__, "--serve", name, "--threads", str(threads),
                   "--cache", str(folder), *options]
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.log, text=True)
        self.answer("ready")

    def answer(self, expected=None):
        """The next line of an answer; libraries print other lines."""
        for line in self.process.stdout:
            line = line.strip()
            if line == expected or (not expected and re.fullmatch(r"[0-9.e+-]+", line)):
                return line
        self.log.seek(0)
        words = self.log.read().strip().splitlines() or ["it ended without a message"]
        raise Left(words[-1])

    def ask(self, *question):
        print(json.dumps(question), file=self.process.stdin, flush=True)

    def result(self, step, path):
        self.ask(step, "result", str(path))
        self.answer("saved")

    def time(self, step, seconds):
        self.ask(step, "time", seconds)
        return float(self.answer())

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.log.close()


class Pted:
    """pted's runtime in `pte run`: a process for each round, of which only the calls count."""

    def __init__(self, folder, threads, program="decoder.pte", *options):
        self.program, self.folder, self.threads = folder / program, folder, threads
        self.options = options  # of bench_calls

    def run(self, command, step, *options):
        import numpy
        values = []
        for i, value in enumerate(inputs_of(step)):
            path = self.folder / f"input_{i}.npy"
            numpy.save(path, value)
            values += ["--input", f"input_{i}={path}"]
        done = subprocess.run([PTE, command, self.program, *values, "--workers",
                               str(self.threads), *options], capture_output=True, text=True,
                              check=False)
        if done.returncode:
            raise Left(done.stderr.strip())
        return done.stdout

    def result(self, step, path):
        with tempfile.TemporaryDirectory() as folder:
            self.run("run", step, "--output", folder)
            Path(folder, "output_0.npy").replace(path)

    def bench(self, pattern, *options):
        """Milliseconds in the words of bench_calls."""
        command = [BUILD / "tests/bench/bench_calls", "--workers", str(self.threads),
                   *self.options, *options, self.program]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Left(done.stderr.strip())
        return float(re.search(pattern, done.stdout)[1]) / 1e3

    def step_ms(self, position):
        """The median of steps of one token behind so many others."""
        return self.bench(r"(\d+) us in the median", "--at", str(position))

    def time(self, step, seconds):
        if STEPS[step][0] == 1:
            return self.step_ms(STEPS[step][1])
        if self.options:
            return self.bench(r"(\d+) us first", "--prompt", str(STEPS[step][0]))

        def median(count):
            text = self.run("run", step, "--repeat", str(count))
            return float(re.search(r"median_us: ([0-9.]+)", text).group(1)) / 1e3
        return median(max(3, int(seconds * 1e3 / median(1))))

    def read_rates(self):
        """Bytes a second: that all threads can read, and that they read for products."""
        text = self.run("profile", "decode", "--json", "--repeat", "9")
        profile = json.loads(text)
        products = [row for row in profile["layers"] if row["operator"] == "q_linear"]
        busy_us = sum(row["busy_us"] for row in products) / self.threads
        return (profile["peak"]["read_bytes"],
                sum(row["bytes"] for row in products) / busy_us * 1e6)


# ---- measuring -----------------------------------------------------------------------------------

def verify(pted, peer, folder):
    """ExecuTorch's results must be like pted's."""
    import numpy
    for step in STEPS:
        paths = [folder / "pted.npy", folder / "executorch.npy"]
        pted.result(step, paths[0])
        peer.result(step, paths[1])
        got, expected = (numpy.load(path).flatten() for path in paths)
        error = float(abs(got - expected).max() / abs(expected).max())
        if not error <= TOLERANCE:
            raise Left(f"{step}: the results differ by {error:.1e} of the largest number, "
                       f"expected at most {TOLERANCE:.1e}")


def peer_names(text):
    names = [name for name in text.split(",") if name]
    for name in names:
        if name not in ENGINES:
            raise argparse.ArgumentTypeError(
                f"no peer is called {name!r}; expected {' or '.join(ENGINES)}")
    return names


def clock_options(args):
    return ["--processor"] if getattr(args, "processor", False) else []


def open_peers(pted, threads, args):
    """Those that are installed and give the right results."""
    peers = []
    for name in args.peers:
        peer = None
        try:
            peer = Peer(name, args.cache, threads, *clock_options(args))
            say(f"{name} is {version_of(name)}")
            if name == "executorch":
                verify(pted, peer, args.cache)
            peers.append(peer)
        except Left as why:
            say(f"{name} is left out: {why}; {ENGINES[name][3]}")
            if peer:
                peer.close()
    return peers


def measure_step(pted, peers, step, args):
    """{"step", "threads", "pted_ms", "weights", "peers": {name: {"ms", "ratio", ...}}}"""
    rounds, reads = [], []
    for _ in range(args.rounds):
        rounds.append([engine.time(step, args.seconds) for engine in (pted, *peers)])
        reads += [pted.read_rates()] if step == "decode" and not pted.options else []
    ms = statistics.median(times[0] for times in rounds)
    row = {"step": step, "threads": pted.threads, "pted_ms": ms, "peers": {},
           "tokens_per_s": STEPS[step][0] / ms * 1e3}
    if reads:
        row["weights"] = weight_bytes() / ms * 1e3 / statistics.median(peak for peak, _ in reads)
        row["products"] = statistics.median(rate / peak for peak, rate in reads)
    for i, peer in enumerate(peers, 1):
        ratios = [times[0] / times[i] for times in rounds]
        row["peers"][peer.name] = {
            "ms": statistics.median(times[i] for times in rounds),
            "ratio": statistics.median(ratios), "least": min(ratios), "most": max(ratios)}
    return row


def measure(threads, args):
    """A row of the table for each step."""
    pted = Pted(args.cache, threads, "decoder.pte", *clock_options(args))
    peers = open_peers(pted, threads, args)
    try:
        return [measure_step(pted, peers, step, args) for step in STEPS]
    finally:
        for peer in peers:
            peer.close()


def print_cell(row, name):
    found = row["peers"].get(name)
    if not found:
        return "- | -"
    return (f"{found['ms']:.1f} | {found['ratio']:.2f} ({found['least']:.2f}-"
            f"{found['most']:.2f})")


def print_rows(rows):
    heads = " | ".join(f"{name} ms | ratio" for name in ENGINES)
    print(f"| step | threads | pted ms | tokens/s | weights | products | {heads} |")
    print("| --- |" + " --- |" * (5 + 2 * len(ENGINES)))
    for row in rows:
        weights, products = (f"{row[name]:.2f}" if name in row else ""
                             for name in ("weights", "products"))
        cells = " | ".join(print_cell(row, name) for name in ENGINES)
        print(f"| {row['step']} | {row['threads']} | {row['pted_ms']:.1f} "
              f"| {row['tokens_per_s']:.0f} | {weights} | {products} | {cells} |")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0],
                                     epilog="top_builddir in the environment: where `pte` is (.)")
    parser.add_argument("--threads", default="1,2", help="numbers with commas between them (1,2)")
    parser.add_argument("--peers", default=",".join(ENGINES), type=peer_names,
                        help=f"likewise, or an empty text for pted alone ({','.join(ENGINES)})")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each engine (5)")
    parser.add_argument("--seconds", type=float, default=1, help="of a turn (1)")
    parser.add_argument("--cache", type=Path, default=Path("decode.cache"),
                        help="folder of the exported model (decode.cache)")
    parser.add_argument("--processor", action="store_true", help="processor time")
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    parser.add_argument("--serve", choices=ENGINES, help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    args = parse_arguments()
    if args.serve:
        serve(args.serve, args.cache, int(args.threads),
              time.process_time if args.processor else time.perf_counter)
        return 0
    args.cache.mkdir(parents=True, exist_ok=True)
    rows = []
    try:
        ensure(args.cache / "decoder.pte", export_pte, ENGINES["executorch"][3])
        for threads in args.threads.split(","):
            rows += measure(int(threads), args)
    except Left as why:
        say(str(why))
        return 1
    print_rows(rows)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
