#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares transcriptions of pted with those of faster-whisper (CTranslate2).

The model has the shape of a Whisper and random weights, so nothing is downloaded. It is exported
once for pted, by export_speech(), in float32 and with int8 weights and activations, and converted
once for CTranslate2, which computes in float32 or int8 as it is told. The files stay in the folder
of --cache.

A transcription is that of SECONDS seconds of noise. The end of the text is forbidden, so each
window of 30 s has TOKENS tokens, on both sides. pted is a daemon that gets the sound as a WAV file.
faster-whisper is taken apart: its features, then encode() and generate() of CTranslate2 with one
beam, as its transcribe() calls them for each window.

The engines take turns, ROUNDS times. Printed is the time of one transcription, the least of all
rounds, and pted's over the peer's: that of the processor, of all threads, or with --wall the time
that passes, which counts where there are several threads. "Same" counts the tokens of the first
window up to the first that differs: float32 should agree, where two logits are not almost equal.

Needs torch, transformers, torchao and executorch, and `pip install faster-whisper`.
"""
import argparse
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import time
import wave
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("top_builddir", ".")).resolve()
RATE, WINDOW = 16000, 30
SHAPES = {  # width, layers, heads
    "tiny": (384, 4, 6),
    "base": (512, 6, 8),
}
BYTES, END, SPECIALS = 256, 50257, 51865
NAMES = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|transcribe|>",
         "<|notimestamps|>", "<|nocaptions|>", "<|translate|>", "<|de|>"]
PROMPT = [END + 1, END + 2, END + 3, END + 4]


def say(text):
    print(f"speech: {text}", file=sys.stderr, flush=True)


# ---- files ---------------------------------------------------------------------------------------

def write_tokenizer(folder):
    """Tokens are the bytes, then words that are their numbers."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    names = sorted(pre_tokenizers.ByteLevel.alphabet())
    names += [f"w{i}." for i in range(BYTES, END)]
    tokenizer = Tokenizer(models.BPE({name: i for i, name in enumerate(names)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    others = [f"<|other{i}|>" for i in range(END + len(NAMES), SPECIALS)]
    tokenizer.add_special_tokens([AddedToken(name, special=True) for name in NAMES + others])
    tokenizer.save(str(folder / "tokenizer.json"))


def generation_config(tokens):
    from transformers import GenerationConfig
    return GenerationConfig(
        bos_token_id=END, eos_token_id=END, decoder_start_token_id=END + 1, is_multilingual=True,
        max_length=len(PROMPT) + tokens - 1, no_timestamps_token_id=END + 4,
        lang_to_id={"<|en|>": END + 2, "<|de|>": END + 7},
        task_to_id={"transcribe": END + 3, "translate": END + 6},
        suppress_tokens=[END], begin_suppress_tokens=[])


def make_model(shape):
    import torch
    from transformers import WhisperConfig, WhisperForConditionalGeneration
    width, layers, heads = SHAPES[shape]
    torch.manual_seed(0)
    return WhisperForConditionalGeneration(WhisperConfig(
        d_model=width, encoder_layers=layers, decoder_layers=layers, vocab_size=SPECIALS,
        encoder_attention_heads=heads, decoder_attention_heads=heads, encoder_ffn_dim=4 * width,
        decoder_ffn_dim=4 * width, bos_token_id=END, eos_token_id=END, pad_token_id=END,
        decoder_start_token_id=END + 1, suppress_tokens=None, begin_suppress_tokens=None)).eval()


def make_programs(shape, folder, precisions):
    """The program of each precision, as far as it is not there."""
    from pted_server.export import export_speech
    from pted_server.export.chat import quantize
    for precision in precisions:
        program = folder / precision / "model.pte"
        if not program.exists():
            say(f"{shape}: exporting {precision}")
            program.parent.mkdir(parents=True, exist_ok=True)
            model = make_model(shape)
            if precision == "int8":
                quantize(model, "int8")
            export_speech(model, program.with_name("unfinished.pte"))
            program.with_name("unfinished.pte").rename(program)


def make_peer(shape, folder):
    from ctranslate2.converters import TransformersConverter
    if (folder / "ct2").exists():
        return
    say(f"{shape}: converting")
    source = folder / "transformers"
    make_model(shape).save_pretrained(source)
    write_tokenizer(source)
    (source / "tokenizer_config.json").write_text(json.dumps(
        {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": NAMES[0]}))
    TransformersConverter(str(source)).convert(str(folder / "unfinished"))
    (folder / "unfinished").rename(folder / "ct2")
    shutil.rmtree(source)


def make(shape, folder, tokens, precisions):
    # transformers imports torchvision, if it is there, whether its operators load or not
    from peers import import_torchvision
    try:
        import_torchvision()
    except ImportError:
        pass
    sys.path.insert(0, str(ROOT / "python"))
    folder.mkdir(parents=True, exist_ok=True)
    make_programs(shape, folder, precisions)
    make_peer(shape, folder)
    for precision in precisions:
        write_tokenizer(folder / precision)
        generation_config(tokens).save_pretrained(folder / precision)


def write_sound(path, seconds):
    import numpy
    noise = numpy.random.default_rng(3).normal(0, 3000, seconds * RATE)
    with wave.open(str(path), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(RATE)
        sound.writeframes(noise.clip(-32768, 32767).astype("<i2").tobytes())


# ---- engines -------------------------------------------------------------------------------------

class Pted:
    """A daemon with one model; its processor time is read from outside."""

    def __init__(self, folder, precision, args):
        self.sound = folder / "sound.wav"
        command = [BUILD / "pted", "--listen", "127.0.0.1:0", "--workers", str(args.threads),
                   "--max-batch", "1", "--model", f"whisper={folder / precision / 'model.pte'}"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        lines = []
        while not lines or "listening on" not in lines[-1]:
            lines.append(self.process.stderr.readline())
            if not lines[-1]:
                sys.exit("speech: " + "".join(lines))
        self.host = lines[-1].split("//")[-1].strip()
        self.clock = time.CLOCK_MONOTONIC if args.wall else (~self.process.pid << 3) | 2

    def transcribe(self):
        """The tokens of all windows, and seconds of the processor."""
        parts = [f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
                 for name, value in (("model", "whisper"), ("language", "en"))]
        parts.append('--b\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n')
        body = "".join(parts).encode() + self.sound.read_bytes() + b"\r\n--b--\r\n"
        connection = http.client.HTTPConnection(self.host, timeout=600)
        begin = time.clock_gettime(self.clock)
        connection.request("POST", "/v1/audio/transcriptions", body,
                           {"Content-Type": "multipart/form-data; boundary=b"})
        answer = json.loads(connection.getresponse().read())
        spent = time.clock_gettime(self.clock) - begin
        connection.close()
        if "text" not in answer:
            sys.exit(f"speech: {answer}")
        tokens = [int(number) for number in re.findall(r"w(\d+)\.", answer["text"])]
        return tokens, answer["usage"]["output_tokens"], spent

    def close(self):
        self.process.terminate()
        self.process.communicate()


class Peer:
    """CTranslate2 in a process of its own, with the features of faster-whisper."""

    def __init__(self, folder, precision, args):
        kind = {"f32": "float32", "int8": "int8"}[precision]
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve", kind, "--cache", folder, "--threads",
             str(args.threads), "--tokens", str(args.tokens), *["--wall"] * args.wall],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "OMP_NUM_THREADS": str(args.threads), "OPENBLAS_NUM_THREADS": "1"})

    def transcribe(self):
        print(file=self.process.stdin, flush=True)
        answer = json.loads(self.process.stdout.readline())
        return answer["ids"], answer["count"], answer["seconds"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def serve(args):
    """In the peer's process: a transcription for each line of stdin."""
    import ctranslate2
    import numpy
    from faster_whisper.feature_extractor import FeatureExtractor
    model = ctranslate2.models.Whisper(str(args.cache / "ct2"), compute_type=args.serve,
                                       intra_threads=args.threads, inter_threads=1)
    extract = FeatureExtractor()
    clock = time.CLOCK_MONOTONIC if args.wall else time.CLOCK_PROCESS_CPUTIME_ID
    for _ in sys.stdin:
        begin = time.clock_gettime(clock)
        with wave.open(str(args.cache / "sound.wav"), "rb") as sound:
            samples = numpy.frombuffer(sound.readframes(sound.getnframes()), "<i2") / 32768
        ids, count = [], 0
        for at in range(0, len(samples), WINDOW * RATE):
            window = samples[at:at + WINDOW * RATE].astype(numpy.float32)
            features = extract(numpy.pad(window, (0, WINDOW * RATE - len(window))))
            view = ctranslate2.StorageView.from_array(
                numpy.ascontiguousarray(features[None, :, :100 * WINDOW]))
            result = model.generate(model.encode(view), [PROMPT], beam_size=1,
                                    max_length=2 * args.tokens,  # half of it is for prompts
                                    suppress_blank=False,
                                    suppress_tokens=[END])[0].sequences_ids[0]
            count += len(result)
            ids += [token for token in result if BYTES <= token < END]
        seconds = time.clock_gettime(clock) - begin
        print(json.dumps({"ids": ids, "count": count, "seconds": seconds}), flush=True)


# ---- measuring -----------------------------------------------------------------------------------

def count_same(mine, theirs):
    same = 0
    while same < min(len(mine), len(theirs)) and mine[same] == theirs[same]:
        same += 1
    return same


def measure(shape, precision, folder, args):
    engines = [Pted(folder, precision, args), Peer(folder, precision, args)]
    least, tokens, counts = [float("inf")] * 2, [None] * 2, [0] * 2
    for _ in range(args.rounds):
        for i, engine in enumerate(engines):
            tokens[i], counts[i], seconds = engine.transcribe()
            least[i] = min(least[i], seconds)
    for engine in engines:
        engine.close()
    print(f"{shape:<8}{precision:<8}{args.threads:>7}{least[0] * 1e3:>10.0f}{least[1] * 1e3:>10.0f}"
          f"{least[0] / least[1]:>8.2f}{counts[0]:>8}{counts[1]:>8}"
          f"{count_same(*tokens):>6}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True, help="a folder for the models")
    parser.add_argument("--shapes", default="tiny")
    parser.add_argument("--precisions", default="f32", help="of f32, int8")
    parser.add_argument("--seconds", type=int, default=WINDOW)
    parser.add_argument("--tokens", type=int, default=100, help="of each window")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--wall", action="store_true", help="the time that passes")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve(args)
        return
    print(f"{'shape':<8}{'':<8}{'threads':>7}{'pted ms':>10}{'peer ms':>10}{'ratio':>8}"
          f"{'tokens':>8}{'peer':>8}{'same':>6}")
    precisions = args.precisions.split(",")
    for shape in args.shapes.split(","):
        folder = args.cache.resolve() / shape
        make(shape, folder, args.tokens, precisions)
        write_sound(folder / "sound.wav", args.seconds)
        for precision in precisions:
            measure(shape, precision, folder, args)


main()
