#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the speech model of the tests: tests/models/whisper/, a Whisper that hears tones as words.

The sounds are those of tests/http/tones.py. The model is transformers' own Whisper with a window of
2 s, one layer in the encoder and two in the decoder; training takes some minutes. The program has
the methods that exporters of ExecuTorch give such models: encoder (features), and text_decoder (one
token, what the encoder found, the position of the token) with caches as mutable buffers.
answers.json has what eager PyTorch makes of some sounds (generate(), greedy), and features.f32 has
features by WhisperFeatureExtractor, for the tests.

usage: whisper.py [--out DIR] [--steps N]; needs requirements.txt, transformers,
lameenc and libsndfile
"""
import argparse
import ctypes
import json
import random
import sys
from pathlib import Path

import lameenc
import numpy
import torch
from transformers import (GenerationConfig, WhisperConfig, WhisperFeatureExtractor,
                          WhisperForConditionalGeneration)

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "http"), str(ROOT / "python")]
import tones  # noqa: E402
from pted_server.export import export_speech  # noqa: E402

DEFAULT_OUT = ROOT / "tests" / "models" / "whisper"
SECONDS, MELS, DIM, POSITIONS, TARGETS = 2, 80, 48, 100, 48
SPECIALS = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|de|>", "<|translate|>",
            "<|transcribe|>", "<|startoflm|>", "<|startofprev|>", "<|nospeech|>",
            "<|notimestamps|>"]


def make_tokenizer(out):
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    texts = [" " + word for word in tones.WORDS["en"] + tones.WORDS["de"][:1]] * 10
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=270, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.add_special_tokens(SPECIALS)
    tokenizer.add_tokens([AddedToken(f"<|{i * 0.02:.2f}|>", normalized=False)
                          for i in range(POSITIONS + 1)])
    tokenizer.save(str(out / "tokenizer.json"), pretty=False)
    return tokenizer


class Sample:
    """A window of sound, and the tokens that stand for it."""

    def __init__(self, rng, tokenizer):
        self.language = rng.choice(["en", "de"])
        self.samples, self.segments = [], []
        self.samples += tones.silence(rng.choice([0, 0, 0.1, 0.3]) * rng.random())
        while len(self.samples) < SECONDS * tones.RATE and len(self.segments) < rng.randrange(1, 4):
            words = [rng.randrange(4) for _ in range(rng.randrange(1, 4))]
            begin = len(self.samples)
            self.samples += tones.phrase(self.language, words)
            self.segments.append((begin, len(self.samples), words))
            self.samples += tones.silence(0.3 + 0.2 * rng.random())
        self.samples = self.samples[:SECONDS * tones.RATE]
        self.noise = 10 ** rng.uniform(-5, -2.5)
        self.gain = rng.uniform(0.3, 1.0)

    def tokens(self, rng, tokenizer):
        word_of = "en" if (translates := rng.random() < 0.3) else self.language
        has_times = rng.random() < 0.6
        ids = [tokenizer.token_to_id(t) for t in (
            "<|startoftranscript|>", f"<|{self.language}|>",
            "<|translate|>" if translates else "<|transcribe|>")]
        first_time = tokenizer.token_to_id("<|0.00|>")
        ids += [] if has_times else [tokenizer.token_to_id("<|notimestamps|>")]
        end_of_window = SECONDS * tones.RATE
        for begin, end, words in self.segments:
            if begin + 0.2 * tones.RATE > end_of_window:
                break
            heard = [w for i, w in enumerate(words)
                     if begin + (i * 0.3 + 0.2) * tones.RATE <= end_of_window]
            text = tokenizer.encode(" " + tones.text_of(word_of, heard)).ids
            if has_times:
                text = [first_time + begin // 320] + text
                if end <= end_of_window:
                    text += [first_time + end // 320]
            ids += text
        return (ids + [tokenizer.token_to_id("<|endoftext|>")])[:TARGETS]


def extractor():
    return WhisperFeatureExtractor(feature_size=MELS, chunk_length=SECONDS)


def train(tokenizer, steps):
    rng = random.Random(1)
    torch.manual_seed(1)
    vocab = tokenizer.get_vocab_size()
    end = tokenizer.token_to_id("<|endoftext|>")
    config = WhisperConfig(
        vocab_size=vocab, num_mel_bins=MELS, d_model=DIM, encoder_layers=1, decoder_layers=2,
        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=96,
        decoder_ffn_dim=96, max_source_positions=POSITIONS, max_target_positions=TARGETS,
        bos_token_id=end, eos_token_id=end, pad_token_id=end,
        decoder_start_token_id=tokenizer.token_to_id("<|startoftranscript|>"),
        suppress_tokens=None, begin_suppress_tokens=None, attn_implementation="eager")
    model = WhisperForConditionalGeneration(config)
    listen = extractor()
    pool = []
    for _ in range(3000):
        sample = Sample(rng, tokenizer)
        wave = numpy.zeros(SECONDS * tones.RATE, numpy.float32)
        wave[:len(sample.samples)] = sample.samples
        wave = wave * sample.gain + sample.noise * numpy.random.default_rng(
            rng.randrange(1 << 30)).standard_normal(len(wave)).astype(numpy.float32)
        pool.append((sample, listen(wave, sampling_rate=16000, return_tensors="pt")
                     .input_features[0]))
    print("windows:", len(pool), flush=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, steps)
    for step in range(steps):
        batch = rng.sample(pool, 32)
        rows = [sample.tokens(rng, tokenizer) for sample, _ in batch]
        width = max(map(len, rows))
        ids = torch.tensor([row + [end] * (width - len(row)) for row in rows])
        labels = torch.tensor([row[1:] + [-100] * (width - len(row)) for row in rows])
        logits = model(input_features=torch.stack([f for _, f in batch]),
                       decoder_input_ids=ids[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits.transpose(1, 2), labels)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 200 == 0:
            print(step, loss.item(), flush=True)
    return model.eval()


def settings(tokenizer):
    """generation_config.json, as Whisper's have it."""
    of = tokenizer.token_to_id
    return {
        "bos_token_id": of("<|endoftext|>"), "eos_token_id": of("<|endoftext|>"),
        "pad_token_id": of("<|endoftext|>"),
        "decoder_start_token_id": of("<|startoftranscript|>"),
        "begin_suppress_tokens": [of("Ġ"), of("<|endoftext|>")],
        "suppress_tokens": [of(t) for t in ("#", "<|startoftranscript|>", "<|startoflm|>",
                                            "<|startofprev|>", "<|nospeech|>")],
        "is_multilingual": True, "max_initial_timestamp_index": 50, "max_length": TARGETS,
        "no_timestamps_token_id": of("<|notimestamps|>"),
        "prev_sot_token_id": of("<|startofprev|>"), "return_timestamps": False,
        "lang_to_id": {"<|en|>": of("<|en|>"), "<|de|>": of("<|de|>")},
        "task_to_id": {"transcribe": of("<|transcribe|>"), "translate": of("<|translate|>")}}


# ---------------------------------------------------------------- what the tests expect

SHORT = [("en", [0, 1, 2]), ("en", [3]), ("de", [1, 3, 0]), ("de", [2, 1])]
LONG = [("en", [[0, 1], [2, 3, 0], [1], [3, 2], [0, 0], [2, 1, 3]])]


def sounds():
    for language, words in SHORT:
        yield language, False, tones.silence(0.1) + tones.phrase(language, words)
    for language, phrases in LONG:
        samples = tones.silence(0.1)
        for words in phrases:
            samples += tones.phrase(language, words) + tones.silence(0.4)
        yield language, True, samples


def as_heard(samples):
    """After the way through a file of 16 bits."""
    return numpy.array([round(32767 * s) / 32768 for s in samples], numpy.float32)


def answer(model, tokenizer, samples, **options):
    listen = extractor()
    given = listen(as_heard(samples), sampling_rate=16000, return_tensors="pt", truncation=False,
                   padding="longest" if len(samples) > 2 * 16000 else "max_length",
                   return_attention_mask=True)
    out = model.generate(given.input_features, attention_mask=given.attention_mask, num_beams=1,
                         do_sample=False, return_segments=True, **options)
    ids = [int(i) for segment in out["segments"][0] for i in segment["tokens"]]
    plain = [i for i in ids if i < tokenizer.token_to_id("<|endoftext|>")]
    return {"text": tokenizer.decode(plain).strip(),
            "segments": [{"start": round(float(s["start"]), 2), "end": round(float(s["end"]), 2),
                          "tokens": [int(i) for i in s["tokens"]]} for s in out["segments"][0]]}


def answers(model, tokenizer):
    out = []
    for language, is_long, samples in sounds():
        for task in ("transcribe", "translate"):
            for has_times in ([True] if is_long else [False, True]):
                heard = answer(model, tokenizer, samples, language=language, task=task,
                               return_timestamps=has_times)
                out.append({"sound": len(out), "language": language, "task": task,
                            "times": has_times, "is_long": is_long, **heard})
    return out


class Info(ctypes.Structure):
    _fields_ = [("frames", ctypes.c_int64)] + [
        (name, ctypes.c_int) for name in ("rate", "channels", "format", "sections", "seekable")]


def write_sound(path, samples, rate, channels, kind):
    """With libsndfile; |kind| is its number of the format."""
    library = ctypes.CDLL("libsndfile.so.1")
    library.sf_open.restype = ctypes.c_void_p
    info = Info(0, rate, channels, kind, 0, 0)
    file = ctypes.c_void_p(library.sf_open(str(path).encode(), 0x20, ctypes.byref(info)))
    data = numpy.array(samples, numpy.float32)
    library.sf_writef_float(file, data.ctypes.data_as(ctypes.c_void_p),
                            ctypes.c_int64(len(data) // channels))
    library.sf_close(file)


def write_mp3(path, samples, rate):
    """With a variable rate, loud frames first, and without the frame that says the length."""
    encoder = lameenc.Encoder()
    encoder.silence()
    encoder.set_in_sample_rate(rate)
    encoder.set_channels(1)
    encoder.set_vbr(4)
    encoder.set_vbr_quality(7)
    data = (numpy.array(samples) * 32767).astype("<i2").tobytes()
    path.write_bytes(encoder.encode(data) + encoder.flush())


def write_sounds(out):
    samples = tones.silence(0.1, 22050) + tones.phrase("en", [0, 1, 2], 22050)
    write_sound(out / "sound.flac", samples, 22050, 1, 0x170002)
    samples = tones.silence(0.1, 44100) + tones.phrase("en", [0, 1, 2], 44100)
    write_sound(out / "sound.ogg", [s for s in samples for _ in range(2)], 44100, 2, 0x200060)
    samples = tones.silence(0.1, 48000) + tones.phrase("en", [0, 1, 2], 48000)
    write_sound(out / "sound.opus", samples, 48000, 1, 0x200064)
    write_mp3(out / "sound.mp3", tones.phrase("en", [0, 1, 2], 22050) + tones.silence(0.5, 22050),
              22050)


def write_features(path):
    """80 and 128 bands of the same 40 frames, for tests/unit/test_log_mel.c."""
    state, samples = 12345, []
    for i in range(5000):
        state = (state * 1103515245 + 12345) & 0x7fffffff
        samples.append((state / 0x3fffffff - 1) * (0.001 if i < 2500 else 0.5) *
                       (1 if i % 700 < 350 else 0.01))
    wave = numpy.zeros(40 * 160, numpy.float32)
    wave[:len(samples)] = samples
    parts = []
    for bands in (80, 128):
        listen = WhisperFeatureExtractor(feature_size=bands)
        parts.append(listen._np_extract_fbank_features(wave[None], "cpu")[0])
    path.write_bytes(b"".join(p.astype("<f4").tobytes() for p in parts))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT)
    parser.add_argument("--steps", type=int, default=3000)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    write_sounds(args.out)
    write_features(args.out / "features.f32")
    tokenizer = make_tokenizer(args.out)
    config = settings(tokenizer)
    (args.out / "generation_config.json").write_text(json.dumps(config, indent=1) + "\n")
    model = train(tokenizer, args.steps)
    model.generation_config = GenerationConfig(**config)
    heard = answers(model, tokenizer)
    (args.out / "answers.json").write_text(json.dumps(heard, ensure_ascii=False, indent=1) + "\n")
    for one in heard:
        print(one)
    export_speech(model, args.out / "model.pte", backend="portable")
    print("bytes:", (args.out / "model.pte").stat().st_size)


if __name__ == "__main__":
    main()
