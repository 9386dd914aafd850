#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints the goals for language models, and what was measured, as one table.

The model is the decoder of tests/bench/decode.py, 310 MB of weights; `long.pte` is the same with
room for 4,608 tokens. Clients talk to a daemon with two workers over HTTP. The parts:

* `one`, `two`: a token and a prompt beside llama.cpp, with that many threads, and the rate at which
  the weights are read beside the machine's.
* `step`: the time between two tokens that a client of a stream sees beside the time of the model's
  step (`compute_infer` in the daemon's statistics of the same tokens), greedy and sampled; and the
  first token of a prompt of 512 beside the first call of 512 tokens in `pte run`.
* `streams`: tokens a second of 8 clients beside those of one, and the times between them.
* `prompts`: the longest time between the tokens of a client while a prompt of 4,000 tokens is
  computed, beside the longest part of that prompt and a step; that part is what is left of the
  prompt when the rest of it is known. And the tokens that the second turn of a chat computes again.
* `leave`: the processor time that the daemon takes after a client has gone, in steps.
* `words`: tokenizers beside those of Hugging Face (contrib/export/text.py, what it needs included).

Parts may run one at a time: each leaves its rows in the folder of --cache, and the table has the
rows of all parts that have run there. Nothing else may run on the machine meanwhile.

usage: language.py [--cache FOLDER] [PART...]; without a PART all of them. top_builddir and
top_srcdir as in make check.
"""
import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

import decode
import streams

LONG_CONTEXT = 4608
PROMPT = 4000
PART = 8         # of a prompt, as the daemon takes it beside a stream (generator_part())
WORKERS = 2
NEW = 24         # tokens of a second turn
ARRIVING = 256   # of prompts beside streams


def row(goal, least=None, most=None, **got):
    """A line of the table: |goal| has a bound, and |got| its value and what it was made of."""
    return {"goal": goal, "least": least, "most": most, **got}


# ---- the engine ----------------------------------------------------------------------------------

def measure_engine(args, count):
    rows = []
    options = argparse.Namespace(cache=args.cache, peers="llama.cpp", rounds=args.rounds,
                                 seconds=args.seconds)
    for found in decode.measure(count, options):
        what = f"{found['step']}, {count} thread{'s' * (count > 1)}"
        note = f"{found['pted_ms']:.1f} ms"
        if "weights" in found:
            rows.append(row(f"bandwidth of weights, {count} thread{'s' * (count > 1)}", least=0.9,
                            got=found["weights"],
                            note=f"{note}; products {found['products']:.2f}"))
        for name, peer in found["peers"].items():
            rows.append(row(f"{what}, over {name}", most=1.0, got=peer["ratio"],
                            note=f"{found['pted_ms']:.1f} and {peer['ms']:.1f} ms; "
                                 f"{peer['least']:.2f}-{peer['most']:.2f}"))
    return rows


def measure_one_thread(args):
    return measure_engine(args, 1)


def measure_two_threads(args):
    return measure_engine(args, 2)


# ---- clients -------------------------------------------------------------------------------------

class Served(streams.Server):
    """A daemon with a model of the cache and words for it."""

    def __init__(self, args, name, *options):
        words = args.cache / "tokenizer.json"
        if not words.exists():
            streams.make_tokenizer(words, decode.DIMS["vocab"])
        super().__init__(args.cache / name, f"--workers={WORKERS}", f"--tokenizer=m={words}",
                         *options)

    def steps(self):
        """The number of the model's runs, and their nanoseconds."""
        batches = [batch["compute_infer"] for batch in self.stats()["batch_stats"]]
        return (sum(batch["count"] for batch in batches), sum(batch["ns"] for batch in batches))

    def wait_idle(self):
        """The number of runs when there are no more."""
        before, now = -1, self.steps()[0]
        while before != now:
            time.sleep(0.5)
            before, now = now, self.steps()[0]
        return now


def ids_of(count, seed):
    source = random.Random(seed)
    return [source.randrange(decode.DIMS["vocab"]) for _ in range(count)]


def measure_overhead(daemon, args, **sampling):
    """The mean time between tokens over that of the step, in the quietest round."""
    found = []
    for i in range(args.rounds):
        stream = streams.Stream(daemon.port, ids_of(16, i), args.tokens, **sampling)
        stream.next()
        stream.next()
        count, ns = daemon.steps()
        begin = stream.next()
        for _ in range(args.tokens - 8):
            end = stream.next()
        last, last_ns = daemon.steps()
        stream.close()
        step = (last_ns - ns) / (last - count) / 1e9
        found.append(((end - begin) / (args.tokens - 8) / step, step))
    return statistics.median(ratio for ratio, _ in found), min(step for _, step in found)


def measure_step(args):
    rows = []
    with Served(args, "decoder.pte") as daemon:
        daemon.wait_proven()
        for name, sampling in (("greedy", {"temperature": 0}),
                               ("sampled", {"temperature": 0.8, "top_k": 40, "top_p": 0.95}),
                               ("all are candidates", {"temperature": 1, "top_p": 0.95})):
            ratio, step = measure_overhead(daemon, args, **sampling)
            rows.append(row(f"a token of a stream over the step, {name}", most=1.03, got=ratio,
                            note=f"step {step * 1e3:.2f} ms"))
        pted, times = decode.Pted(args.cache, WORKERS), []
        for i in range(args.rounds):
            bare = pted.time("prefill 512", args.seconds) / 1e3
            for j in range(3):
                times.append((first_token(daemon, ids_of(512, 100 * i + j))[0], bare))
    ratio = statistics.median(ours / bare for ours, bare in times)
    return [*rows, row("first token of 512 over the first call of 512", most=1.1, got=ratio,
                       note=f"{1e3 * min(ours for ours, _ in times):.0f} ms, the call "
                            f"{1e3 * min(bare for _, bare in times):.0f} ms")]


def first_token(daemon, ids, **members):
    """Seconds until the first event of a stream, and the tokens that were not computed again."""
    begin = time.perf_counter()
    stream = streams.Stream(daemon.port, ids, 1, stream_options={"include_usage": True}, **members)
    seconds = stream.next() - begin
    while stream.next():
        pass
    stream.close()
    return seconds, stream.usage["prompt_tokens_details"]["cached_tokens"]


def measure_streams(args):
    with Served(args, "decoder.pte", "--max-batch=8") as daemon:
        rows = daemon.wait_proven()
        wanted = argparse.Namespace(rounds=args.rounds, tokens=args.tokens, prompts=0)
        results = streams.run(daemon, wanted, (1, 8))
        wanted.prompts = ARRIVING
        beside = streams.run(daemon, wanted, (8,))[8]
    one, eight = results[1], results[8]
    alone, together = statistics.median(one.gaps), statistics.median(eight.gaps)
    p99 = streams.percentile(eight.gaps, 0.99)
    beside_p99 = streams.percentile(beside.gaps, 0.99)
    return [row("tokens a second of 8 streams over one", least=4.5, got=eight.rate / one.rate,
                note=f"{eight.rate:.0f} and {one.rate:.0f} tokens/s, up to {rows} rows"),
            row("p99 between tokens of 8 over one's step", most=2.5, got=p99 / alone,
                note=f"{p99 * 1e3:.1f} and {alone * 1e3:.1f} ms, median of 8 "
                     f"{together * 1e3:.1f} ms"),
            row(f"p99 between tokens of 8 beside prompts of {ARRIVING}, over their step",
                most=2.0, got=beside_p99 / together,
                note=f"{beside_p99 * 1e3:.1f} ms; a prompt "
                     f"{statistics.median(beside.prompts) * 1e3:.0f} ms")]


def gaps_beside(daemon, ids):
    """The times between the tokens of a client while another one's prompt is computed."""
    stream = streams.Stream(daemon.port, [1, 2, 3], 100000, temperature=0)
    times = [stream.next() for _ in range(8)]
    other = streams.Stream(daemon.port, ids, 1, is_waited_for=False, cache_prompt=False)
    while not other.has_answer():
        times.append(stream.next())
    times += [stream.next() for _ in range(4)]
    other.close()
    stream.close()
    daemon.wait_idle()
    return [b - a for a, b in zip(times, times[1:])]


def measure_prompts(args):
    with Served(args, "long.pte", "--sequence-bytes-max=8G", "--prefix-bytes-max=4G") as daemon:
        daemon.wait_proven()
        ids = ids_of(PROMPT, 1)
        known = PROMPT - PART
        first_token(daemon, ids[:known])
        part, cached = first_token(daemon, ids)
        if cached != known:
            raise decode.Left(f"{cached} tokens were known, expected {known}")
        worst = []
        for i in range(args.rounds - 1):
            gaps = gaps_beside(daemon, ids_of(PROMPT, 10 + i))
            worst.append((max(gaps), statistics.median(gaps[:8])))
        turn, again, times = second_turn(daemon)
    longest = statistics.median(gap for gap, _ in worst)
    step = statistics.median(step for _, step in worst)
    return [row(f"longest wait beside a prompt of {PROMPT}, over a part and a step", most=1.05,
                got=longest / (part + step),
                note=f"{longest * 1e3:.0f} ms; {part * 1e3:.0f} and {step * 1e3:.0f}"),
            row(f"tokens that a second turn with {NEW} new ones computes, of {turn}",
                most=NEW + 1, got=again,
                note=f"{times[0] * 1e3:.0f} ms, all of them {times[1] * 1e3:.0f}")]


def second_turn(daemon):
    """The tokens of a chat's second turn, those of them that were computed, and the times until its
    first token: so, and with all of them computed."""
    first = ids_of(600, 5)
    stream = streams.Stream(daemon.port, first, 40, temperature=0, logprobs=0,
                            stream_options={"include_usage": True})
    while stream.next():
        pass
    # Each word is "t" and its id; an event may have several, with blanks between them or none.
    answer = [int(number) for number in re.findall(r"t(\d+)", "".join(stream.words))]
    stream.close()
    second = first + answer + ids_of(NEW, 6)
    seconds, cached = first_token(daemon, second)
    whole, _ = first_token(daemon, second, cache_prompt=False)
    return len(second), len(second) - cached, (seconds, whole)


def measure_leave(args):
    parts = []
    with Served(args, "decoder.pte") as daemon:
        daemon.wait_proven()
        for i in range(4 * args.rounds):
            stream = streams.Stream(daemon.port, ids_of(4, i), 1000, temperature=0)
            for _ in range(4 + i):
                stream.next()
            begin = daemon.processor_ns()
            for _ in range(8):
                stream.next()
            end = daemon.processor_ns()
            stream.close()
            daemon.wait_idle()
            parts.append(8 * (daemon.processor_ns() - end) / (end - begin))
    return [row("steps computed after a client has gone", most=1.1,
                got=statistics.median(parts),
                note=f"{len(parts)} clients, {min(parts):.2f}-{max(parts):.2f}")]


def measure_words(args):
    del args
    script = streams.TOP / "contrib/export/text.py"
    build = Path(os.environ.get("top_builddir", ".")).resolve()
    done = subprocess.run([sys.executable, script, "time", build, "gpt2", "llama3", "qwen25",
                           "gemma", "bert"], capture_output=True, text=True, check=False)
    found = re.findall(r"^(\w+) +load.* encode \S+ / \S+ = ([\d.]+)", done.stdout, re.MULTILINE)
    if done.returncode or not found:
        raise decode.Left(done.stderr.strip() or done.stdout)
    return [row(f"encoding over Hugging Face's, {name}", least=3, got=float(ratio), note="")
            for name, ratio in found]


# ---- all of them ---------------------------------------------------------------------------------

PARTS = {"one": measure_one_thread, "two": measure_two_threads, "step": measure_step,
         "streams": measure_streams, "prompts": measure_prompts, "leave": measure_leave,
         "words": measure_words}
MODELS = {part: ("decoder.pte", decode.DIMS["context"])
          for part in ("one", "two", "step", "streams", "leave")}
MODELS["prompts"] = ("long.pte", LONG_CONTEXT)


def path_of(folder, part):
    """Where the rows of a part are."""
    return folder / f"goals-{part}.json"


def ensure_model(folder, part):
    """What the part reads."""
    name, context = MODELS.get(part, (None, None))
    folder.mkdir(parents=True, exist_ok=True)
    if name:
        usual, decode.DIMS["context"] = decode.DIMS["context"], context
        decode.ensure(folder / name, decode.export_pte, decode.ENGINES["executorch"][3])
        decode.DIMS["context"] = usual


def print_table(folder):
    """Of the parts that have run. Returns whether all goals are met."""
    print("| goal | bound | measured | | |")
    print("| --- | --- | --- | --- | --- |")
    missed = 0
    for part in PARTS:
        path = path_of(folder, part)
        for found in json.loads(path.read_text()) if path.exists() else []:
            least, most, got = found["least"], found["most"], found["got"]
            is_met = got >= least if least is not None else got <= most
            missed += not is_met
            bound = f"at least {least}" if least is not None else f"at most {most}"
            text = f"{got:.2f}" if isinstance(got, float) else str(got)
            print(f"| {found['goal']} | {bound} | {text} | {'' if is_met else 'missed'} "
                  f"| {found['note']} |")
    return missed == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--cache", type=Path, default=Path("decode.cache"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.6, help="of a turn of an engine (0.6)")
    parser.add_argument("--tokens", type=int, default=64, help="of a stream (64)")
    args = parser.parse_args()
    wrong = [part for part in args.parts if part not in PARTS]
    if wrong:
        parser.error(f"no part {wrong[0]}: expected one of {', '.join(PARTS)}")
    try:
        for part in args.parts or PARTS:
            ensure_model(args.cache, part)
            rows = PARTS[part](args)
            path_of(args.cache, part).write_text(json.dumps(rows, indent=1) + "\n")
    except decode.Left as why:
        decode.say(str(why))
        return 1
    print_table(args.cache)
    return 0


if __name__ == "__main__":
    sys.exit(main())
