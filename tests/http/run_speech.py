#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Speech models: transcriptions and translations of files of sound, against a real daemon.

The model and what eager PyTorch makes of the sounds (generate() of transformers, greedy) come from
contrib/export/whisper.py. With the Python package openai, its client is tried as well.

usage: run_speech.py, with top_srcdir and top_builddir in the environment.
"""
import contextlib
import ctypes.util
import http.client
import json
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

import tones
from interpreter import has
from load import in_threads, wait_until
from run_http import MODELS, TIMEOUT_S, Client, Daemon, Failure, Report, build_request, expect

FOLDER = MODELS / "whisper"
SPEECH = ["--model", f"whisper={FOLDER / 'model.pte'}"]
ANSWERS = json.loads((FOLDER / "answers.json").read_text())
HEAR, TRANSLATE = "/v1/audio/transcriptions", "/v1/audio/translations"
SHORT = [("en", [0, 1, 2]), ("en", [3]), ("de", [1, 3, 0]), ("de", [2, 1])]
LONG = [[0, 1], [2, 3, 0], [1], [3, 2], [0, 0], [2, 1, 3]]
TYPE = "multipart/form-data; boundary=xx"
FIRST_TIME = 280
UPLOADS = 24


def short_sound(index):
    language, words = SHORT[index]
    return tones.wav(tones.silence(0.1) + tones.phrase(language, words))


def long_sound():
    samples = tones.silence(0.1)
    for words in LONG:
        samples += tones.phrase("en", words) + tones.silence(0.4)
    return tones.wav(samples)


def form(file, **fields):
    parts = [b'--xx\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'
             % (name.encode(), str(value).encode()) for name, value in fields.items()]
    if file is not None:
        parts.append(b'--xx\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n'
                     b"Content-Type: audio/wav\r\n\r\n" + file + b"\r\n")
    return b"".join(parts) + b"--xx--\r\n"


def post(client, path, body, kind=TYPE):
    client.send(build_request("POST", path, body, [f"Content-Type: {kind}"]))
    return client.answer()


def ask(client, path, file, **fields):
    status = post(client, path, form(file, **{"model": "whisper", **fields}))
    if status != 200:
        raise Failure(f"{path}: {status} {client.body[:300]!r}")
    return client.body.decode()


def hear(client, file, **fields):
    return json.loads(ask(client, HEAR, file, **fields))


def refuse(client, status, text, path=HEAR, body=None, kind=TYPE, file=b"", **fields):
    got = post(client, path, form(file, **fields) if body is None else body, kind)
    message = json.loads(client.body)["error"]["message"]
    if got != status or text not in message:
        raise Failure(f"expected {status} {text!r}, got {got} {message!r}")


def file_of(row):
    return long_sound() if row["is_long"] else short_sound(row["sound"] // 4)


def transformers():
    """Every token is that of transformers."""
    with Daemon(SPEECH) as daemon:
        client = Client(daemon.port)
        for row in ANSWERS:
            path = TRANSLATE if row["task"] == "translate" else HEAR
            kind = "verbose_json" if row["times"] else "json"
            answer = json.loads(ask(client, path, file_of(row), language=row["language"],
                                    response_format=kind))
            expect("text", answer["text"], row["text"])
            if row["times"]:
                with_text = [s for s in row["segments"] if len(s["tokens"]) > 1]
                expect("segments", [s["tokens"] for s in answer["segments"]],
                       [s["tokens"] for s in with_text])
                expect("task", answer["task"], row["task"])
            for mine, other in zip(answer.get("segments", []), row["segments"]):
                expect("end", round(mine["end"], 2), other["end"])
                begin = (mine["tokens"][0] - FIRST_TIME) / 50 + mine["seek"] / 100
                expect("begin", round(mine["start"], 2), round(begin, 2))
                expect("logprob", -1 < mine["avg_logprob"] <= 0, True)
                expect("no speech", 0 <= mine["no_speech_prob"] < 0.5, True)


def languages():
    """The language is heard, or said by code or name."""
    with Daemon(SPEECH) as daemon:
        client = Client(daemon.port)
        for index, (language, words) in enumerate(SHORT):
            answer = hear(client, short_sound(index), response_format="verbose_json")
            expect("language", answer["language"], {"en": "english", "de": "german"}[language])
            expect("usage", answer["usage"], {"type": "duration", "seconds": answer["duration"]})
            expect("text", answer["text"], tones.text_of(language, words))
            text = ask(client, TRANSLATE, short_sound(index), response_format="text")
            expect("translation", text, row_text(index) + "\n")
        for name in ("de", "German"):
            expect("said", hear(client, short_sound(2), language=name,
                                response_format="verbose_json")["text"], "grün weiß rot")
        answer = hear(client, short_sound(0), prompt="white blue", temperature=0.5)
        usage = answer["usage"]
        expect("a prompt", usage["input_tokens"] > 4, True)
        expect("details", usage["input_token_details"],
               {"text_tokens": usage["input_tokens"], "audio_tokens": 0})


def row_text(index):
    return next(row["text"] for row in ANSWERS
                if row["sound"] == 4 * index + 2 and row["task"] == "translate")


def forms():
    with Daemon(SPEECH) as daemon:
        client = Client(daemon.port)
        text = ask(client, HEAR, short_sound(0), response_format="srt")
        expect("srt", text, "1\n00:00:00,080 --> 00:00:00,920\nred green blue\n\n")
        text = ask(client, HEAR, long_sound(), response_format="vtt")
        expect("vtt", text.startswith("WEBVTT\n\n00:00:00.080 --> 00:00:00.620\nred green\n\n"),
               True)
        expect("cues", text.count("-->"), len(LONG))
        expect("type", client.field("content-type"), "text/vtt; charset=utf-8")
        for name in ("sound.flac", "sound.ogg", "sound.opus", "sound.mp3"):
            expect(name, hear(client, (FOLDER / name).read_bytes())["text"], "red green blue")
        stereo = [s for pair in zip(*[tones.phrase("en", [1, 2], 44100)] * 2) for s in pair]
        expect("stereo", hear(client, tones.wav(stereo, 44100, 2))["text"], "green blue")
        body = form(short_sound(0), model="whisper").replace(b"--xx", b"--y z")
        expect("quoted", post(client, HEAR, body, 'Multipart/Form-Data; boundary="y z"'), 200)
        expect("by its method", hear(client, short_sound(0),
                                     model="whisper.text_decoder")["text"], "red green blue")
        client.send(build_request("GET", "/v1/models"))
        expect("models", client.answer(), 200)
        expect("the file's name", [m["id"] for m in json.loads(client.body)["data"]], ["whisper"])


def stream(daemon, file, **fields):
    """The data of its events."""
    client = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=TIMEOUT_S)
    client.request("POST", HEAR, form(file, model="whisper", stream="true", **fields),
                   {"Content-Type": TYPE})
    answer = client.getresponse()
    expect("type", answer.getheader("content-type"), "text/event-stream; charset=utf-8")
    events = answer.read().decode().split("\n\n")
    client.close()
    return [json.loads(e.split("data: ")[1]) for e in events if e]


def streams():
    with Daemon(SPEECH) as daemon:
        for file, text, least in ((short_sound(0), "red green blue", 2),
                                  (long_sound(), ANSWERS[-2]["text"], len(LONG))):
            data = stream(daemon, file)
            pieces = [d["delta"] for d in data if d["type"] == "transcript.text.delta"]
            expect("pieces", "".join(pieces), text)
            expect("several", len(pieces) >= least, True)
            expect("end", (data[-1]["type"], data[-1]["text"]), ("transcript.text.done", text))


def logprobs():
    """Of each token of text; those of the events together are those of the whole answer."""
    with Daemon(SPEECH) as daemon:
        client = Client(daemon.port)
        for file in (short_sound(0), long_sound()):
            heard = json.loads(ask(client, HEAR, file, include="logprobs"))
            said = b"".join(bytes(one["bytes"]) for one in heard["logprobs"]).decode()
            expect("bytes", said.strip(), heard["text"])
            expect("tokens", "".join(one["token"] for one in heard["logprobs"]), said)
            expect("logarithms", all(-5 < one["logprob"] <= 0 for one in heard["logprobs"]), True)
            events = stream(daemon, file, **{"include[]": "logprobs"})
            expect("events", sum((e["logprobs"] for e in events[:-1]), []), heard["logprobs"])
            expect("the end", events[-1]["logprobs"], heard["logprobs"])
        expect("not asked for", "logprobs" in hear(client, short_sound(0)), False)
        refuse(client, 400, "include: expected logprobs, got 'words'", file=short_sound(0),
               model="whisper", include="words")
        refuse(client, 400, "include: logprobs come with response_format json", model="whisper",
               file=short_sound(0), include="logprobs", response_format="verbose_json")


@contextlib.contextmanager
def blank_as_red():
    """The speech model, whose token for " re" is a blank."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(FOLDER, folder, dirs_exist_ok=True)
        tokenizer = json.loads((FOLDER / "tokenizer.json").read_text())
        model = tokenizer["model"]
        old, new = model["vocab"]["\u0120"], model["vocab"].pop("\u0120re")
        model["vocab"].update({"\u0120": new, "qq": old})
        model["merges"] = [pair for pair in model["merges"] if pair != ["\u0120", "re"]]
        (Path(folder) / "tokenizer.json").write_text(json.dumps(tokenizer))
        yield ["--model", f"whisper={folder}/model.pte"]


def blanks():
    """A blank at the beginning is no piece, but its token is told."""
    with blank_as_red() as options, Daemon(options) as daemon:
        client = Client(daemon.port)
        heard = json.loads(ask(client, HEAR, short_sound(0), include="logprobs"))
        expect("the first", (heard["text"], heard["logprobs"][0]["token"]), ("d green blue", " "))
        events = stream(daemon, short_sound(0), **{"include[]": "logprobs"})
        expect("pieces", "".join(e["delta"] for e in events[:-1]), heard["text"])
        expect("events", sum((e["logprobs"] for e in events[:-1]), []), heard["logprobs"])


def refusals():
    with Daemon([*SPEECH, "--sound-seconds-max", "3", "--model", f"add={MODELS / 'add.pte'}"]) as d:
        client, file = Client(d.port), short_sound(0)
        refuse(client, 400, "expected multipart/form-data", body=b"{}", kind="application/json")
        refuse(client, 400, "expected a boundary", body=b"{}", kind="multipart/form-data")
        refuse(client, 400, "the body ends within it", body=form(file)[:-9])
        twice = form(file, model="whisper")
        refuse(client, 400, "file: given more than once",
               body=twice[:-len(b"--xx--\r\n")] + form(file))
        refuse(client, 400, "model: given more than once", body=form(None, model="add")[
            :-len(b"--xx--\r\n")] + twice)
        refuse(client, 400, "file is missing", model="whisper", file=None)
        expect("the only one", post(client, "/v1/audio/transcriptions", form(file)), 200)
        refuse(client, 404, "no model 'nope'", file=file, model="nope")
        refuse(client, 400, "'add' is no speech model", file=file, model="add")
        refuse(client, 400, "got 'loud'", file=file, model="whisper", temperature="loud")
        refuse(client, 400, "expected json, text", file=file, model="whisper",
               response_format="xml")
        refuse(client, 501, "times of words", file=file, model="whisper",
               **{"timestamp_granularities[]": "word"})
        refuse(client, 400, "stream: expected", file=file, model="whisper", stream="true",
               response_format="srt")
        refuse(client, 400, "none of the 2", file=file, model="whisper", language="tlh")
        refuse(client, 400, "a special token", file=file, model="whisper",
               prompt="<|startoftranscript|>")
        refuse(client, 400, "a damaged MP3 file", file=b"ID3 and more", model="whisper")
        refuse(client, 400, "expected WAV, FLAC, MP3 or Ogg, got WebM of 9 bytes",
               file=b"\x1a\x45\xdf\xa3 webm", model="whisper")
        refuse(client, 413, "expected at most 3 s of sound", file=long_sound(), model="whisper")
        refuse(client, 400, "no samples", file=tones.wav([]), model="whisper")
        expect("alive", hear(client, file)["text"], "red green blue")


def damaged():
    """Broken files: an error or a text, and the next request is answered."""
    rng = random.Random(7)
    files = [short_sound(2), *((FOLDER / f"sound.{kind}").read_bytes()
                               for kind in ("flac", "ogg", "opus", "mp3"))]
    with Daemon([*SPEECH, "--sound-seconds-max", "5"]) as daemon:
        client = Client(daemon.port)
        for i in range(90):
            file = bytearray(files[i % 3])
            for _ in range(rng.randrange(1, 6)):
                file[rng.choice([rng.randrange(64), rng.randrange(len(file))])] = rng.randrange(256)
            cut = len(file) if rng.random() < 0.6 else rng.randrange(len(file))
            status = post(client, HEAR, form(bytes(file[:cut]), model="whisper"))
            if status not in (200, 400, 413):
                raise Failure(f"{status} {client.body[:300]!r}")
        bomb = bytearray(files[1])
        bomb[21] |= 0x0f
        bomb[22:26] = b"\xff" * 4
        refuse(client, 413, "expected at most 5 s of sound", file=bytes(bomb), model="whisper")
        expect("alive", hear(client, files[1])["text"], "red green blue")


def uploads():
    """Many at a time, some of which leave."""
    with Daemon([*SPEECH, "--ring-bytes", "16M"]) as daemon:
        def upload(index):
            client = Client(daemon.port)
            if index % 4 == 3:
                body = form(long_sound(), model="whisper", stream="true")
                client.send(build_request("POST", HEAR, body, [f"Content-Type: {TYPE}"]))
                client.close()
                return
            language, words = SHORT[(0, 2, 3)[index % 3]]
            answer = hear(client, short_sound((0, 2, 3)[index % 3]),
                          response_format="verbose_json")
            expect("text", answer["text"], tones.text_of(language, words))
        in_threads(UPLOADS, upload)

        def is_idle():
            client = Client(daemon.port)
            client.send(build_request("GET", "/metrics", b"", []))
            client.answer()
            return b"\npted_sequences 0\n" in client.body
        wait_until("no open sequence", is_idle)


@contextlib.contextmanager
def timeless():
    """The speech model, as if it knew no times: its windows have a fixed length."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(FOLDER, folder, dirs_exist_ok=True)
        text = (FOLDER / "tokenizer.json").read_text()
        (Path(folder) / "tokenizer.json").write_text(text.replace("<|0.00|>", "<|zero|>"))
        yield ["--model", f"whisper={folder}/model.pte"]


def ahead():
    """Windows that are encoded ahead: the same text, also beside clients that leave or are late,
    and behind the end of the model."""
    rng = random.Random(5)
    with timeless() as options:
        with Daemon([*options, "--workers", "1"]) as daemon:
            text = hear(Client(daemon.port), long_sound(), language="en")["text"]
        expect("words", text.count(" ") > 8, True)
        waits = [rng.random() / 20 for _ in range(UPLOADS)]
        options += ["--workers", "3", "--ring-bytes", "64M", "--admin-listen", "127.0.0.1:0"]
        with Daemon(options) as daemon:
            def upload(index):
                client = Client(daemon.port)
                body = form(long_sound(), model="whisper", language="en")
                fields = [f"Content-Type: {TYPE}"]
                if index % 3 == 1:
                    fields.append(f"X-Request-Timeout-Ms: {1 + int(1000 * waits[index])}")
                client.send(build_request("POST", HEAR, body, fields))
                if index % 3 == 2:
                    time.sleep(waits[index])
                    client.close()
                    return
                status = client.answer()
                if status == 200:
                    expect("text", json.loads(client.body)["text"], text)
                else:
                    expect(client.body, (index % 3, status), (1, 504))
                expect("goes on", hear(client, long_sound(), language="en")["text"], text)
            in_threads(UPLOADS, upload)

            def unload():
                client = Client(daemon.admin_port())
                client.send(build_request("POST", "/v2/repository/models/whisper/unload", b"{}"))
                return client.answer()

            def last(index):
                client = Client(daemon.port)
                if index == 3:
                    expect("unload", unload(), 200)
                    return
                status = post(client, HEAR, form(long_sound(), model="whisper", language="en"))
                if status == 200:
                    expect("text", json.loads(client.body)["text"], text)
                else:
                    expect(client.body, status in (404, 503), True)
            in_threads(8, last)


def metrics():
    """Files, seconds and tokens are counted, of what was heard to its end."""
    sounds = [short_sound(2), long_sound()]
    seconds = sum(len(sound) - 44 for sound in sounds) / 2 / 16000
    with Daemon(SPEECH) as daemon:
        client = Client(daemon.port)

        def value_of(name):
            client.send(build_request("GET", "/metrics", b"", []))
            expect("metrics", client.answer(), 200)
            rows = [line for line in client.body.decode().splitlines()
                    if line.startswith(f"{name}{{") and 'model="whisper.text_decoder"' in line]
            expect(name, len(rows), 1)
            return float(rows[0].split()[-1])

        for name in ("transcriptions_total", "sound_seconds_total", "prompt_tokens_total",
                     "answer_tokens_total", "first_token_seconds_count"):
            expect(name, value_of(f"pted_model_{name}"), 0)
        for sound in sounds:
            hear(client, sound)
        refuse(client, 400, "", file=b"no sound", model="whisper")
        expect("files", value_of("pted_model_transcriptions_total"), len(sounds))
        got = value_of("pted_model_sound_seconds_total")
        expect(f"{got} is {seconds}", abs(got - seconds) < 1e-3, True)
        expect("first", value_of("pted_model_first_token_seconds_count"), len(sounds))
        answers = value_of("pted_model_answer_tokens_total")
        nexts = value_of("pted_model_next_token_seconds_count")
        expect(f"{answers} > {nexts} > 0", answers > nexts + len(sounds) > len(sounds), True)
        expect("prompts", value_of("pted_model_prompt_tokens_total") > 0, True)
        expect("now", value_of("pted_model_generations"), 0)


def openai_client():
    if not has("openai"):
        print("SKIP: the Python package openai is missing")
        return
    import openai
    with Daemon(SPEECH) as daemon:
        api = openai.OpenAI(base_url=f"http://127.0.0.1:{daemon.port}/v1", api_key="none",
                            max_retries=0)
        sound = ("a.wav", short_sound(2))
        hear_it = api.audio.transcriptions.create
        expect("german", hear_it(model="whisper", file=sound, language="de",
                                 response_format="verbose_json").text, "grün weiß rot")
        whole = hear_it(model="whisper", file=("a.wav", long_sound()),
                        response_format="verbose_json", timestamp_granularities=["segment"])
        expect("segments", len(whole.segments), len(LONG))
        expect("text", hear_it(model="whisper", file=sound, response_format="text").strip() != "",
               True)
        events = list(hear_it(model="whisper", file=("a.wav", long_sound()), stream=True))
        expect("stream", "".join(e.delta for e in events[:-1]), events[-1].text)
        marked = hear_it(model="whisper", file=sound, include=["logprobs"])
        expect("logprobs", "".join(one.token for one in marked.logprobs).strip(), marked.text)
        expect("english", api.audio.translations.create(model="whisper", file=sound).text,
               row_text(2))
        try:
            hear_it(model="nope", file=sound)
            raise Failure("no error")
        except openai.NotFoundError as error:
            expect("a message", "nope" in error.body["message"], True)


def main():
    if not ctypes.util.find_library("sndfile") or not ctypes.util.find_library("soxr"):
        print("SKIP: libsndfile or libsoxr is missing")
        return 77
    report = Report()
    report.run_all((transformers, languages, forms, streams, logprobs, blanks, refusals, damaged,
                    uploads, ahead, metrics, openai_client))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
