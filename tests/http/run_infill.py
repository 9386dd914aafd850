#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fill in the middle: suffix of /v1/completions, by the tokens of each family, or of a card.

The chat model gets the tokens of a family in place of signs that its texts do not have; what it
answers has to be what it answers to the same ids.

usage: run_infill.py, with top_srcdir and top_builddir in the environment.
"""
import contextlib
import json
import shutil
import sys
import tempfile
from pathlib import Path

from run_cards import refusal
from run_generate import CHAT, FOLDER, ask, complete, delta_text, post, stream
from run_http import Client, Daemon, Report, expect

SIGNS = "#$%&@^~_"  # in the vocabulary of the chat model, and in no merge
FAMILIES = {  # tokens before the prompt, the suffix and the answer; then one that ends an answer
    "qwen": ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|fim_pad|>"),
    "starcoder": ("<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<file_sep>"),
    "santacoder": ("<fim-prefix>", "<fim-suffix>", "<fim-middle>", "<fim-pad>"),
    "codellama": ("\u2581<PRE>", "\u2581<SUF>", "\u2581<MID>", "\u2581<EOT>"),
    "deepseek": ("<\uff5cfim\u2581begin\uff5c>", "<\uff5cfim\u2581hole\uff5c>",
                 "<\uff5cfim\u2581end\uff5c>", "<|EOT|>"),
    "mistral": ("[PREFIX]", "[SUFFIX]", None, "</s>"),
}
BEFORE, AFTER = "The capital of Japan", " is Tokyo.\n"


@contextlib.contextmanager
def model_with(tokens, card=None):
    """Options of a daemon, and the ids of |tokens|."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        shutil.copy(FOLDER / "model.pte", folder)
        shutil.copy(FOLDER / "tokenizer_config.json", folder)
        tokenizer = json.loads((FOLDER / "tokenizer.json").read_text())
        vocab, ids = tokenizer["model"]["vocab"], {}
        for sign, token in zip(SIGNS, tokens):
            ids[token] = vocab.pop(sign)
            vocab[token] = ids[token]
            tokenizer["added_tokens"].append({
                "id": ids[token], "content": token, "special": True, "single_word": False,
                "lstrip": False, "rstrip": False, "normalized": False})
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
        if card is not None:
            (folder / "model.card.json").write_text(json.dumps({"generation": {"infill": card}}))
        yield [f"--model=chat={folder}/model.pte"], ids


def ids_of(client, text):
    return ask(client, "/v2/models/chat/tokenize", {"text": text, "add_special": False})["tokens"]


def check_order(client, daemon, ids, prefix, suffix, middle):
    """The answer is that to the ids."""
    before, after = ids_of(client, BEFORE), ids_of(client, AFTER)
    whole = ([ids[prefix], *before, ids[suffix], *after, ids[middle]] if middle else
             [ids[suffix], *after, ids[prefix], *before])
    wanted = complete(client, [whole], max_tokens=12)
    for prompt in (BEFORE, [before]):
        found = complete(client, prompt, suffix=AFTER, max_tokens=12)
        expect("text", found["choices"][0]["text"], wanted["choices"][0]["text"])
        expect("tokens", found["usage"]["prompt_tokens"], len(whole))
    both = complete(client, [BEFORE, BEFORE], suffix=AFTER, max_tokens=12, n=2)
    expect("several", {c["text"] for c in both["choices"]}, {wanted["choices"][0]["text"]})
    events = stream(daemon.port, "/v1/completions", {"model": "chat", "prompt": BEFORE,
                                                     "suffix": AFTER, "max_tokens": 12,
                                                     "temperature": 0})
    expect("stream", delta_text(events), wanted["choices"][0]["text"])


def families():
    for prefix, suffix, middle, end in FAMILIES.values():
        tokens = [token for token in (prefix, suffix, middle, end) if token]
        with model_with(tokens) as (options, ids), Daemon(options) as daemon:
            client = Client(daemon.port)
            check_order(client, daemon, ids, prefix, suffix, middle)
            forced = {"logit_bias": {str(ids[end]): 100}, "max_tokens": 5}
            ended = complete(client, BEFORE, suffix=AFTER, **forced)
            expect("its own end", (ended["choices"][0]["finish_reason"],
                                   ended["usage"]["completion_tokens"]), ("stop", 1))
            plain = complete(client, BEFORE, suffix="", **forced)
            expect("of such answers alone", plain["choices"][0]["finish_reason"], "length")
            kept = complete(client, BEFORE, suffix=AFTER, ignore_eos=True, **forced)
            expect("unless ends are ignored", kept["usage"]["completion_tokens"], 5)


def cards():
    """A card names a row, the tokens, or says that there are none."""
    both = [*FAMILIES["qwen"], *FAMILIES["codellama"]]
    with model_with(both, "codellama") as (options, ids), Daemon(options) as daemon:
        check_order(Client(daemon.port), daemon, ids, *FAMILIES["codellama"][:3])
    own = {"prefix": "<a>", "suffix": "<b>", "middle": "<c>"}
    with model_with(own.values(), own) as (options, ids), Daemon(options) as daemon:
        check_order(Client(daemon.port), daemon, ids, "<a>", "<b>", "<c>")
    own.pop("middle")
    with model_with(own.values(), own) as (options, ids), Daemon(options) as daemon:
        check_order(Client(daemon.port), daemon, ids, "<a>", "<b>", None)
    with model_with(both, "none") as (options, _), Daemon(options) as daemon:
        client = Client(daemon.port)
        expect("none", post(client, "/v1/completions", {"model": "chat", "prompt": "a",
                                                        "suffix": "b"}), 400)
    for card, part in (("qwin", "expected one of qwen, starcoder"),
                       ({"prefix": "a"}, "both prefix and suffix"),
                       ({"prefix": "<x>", "suffix": "<y>"}, 'no token "<x>"'),
                       ({"prefix": "a", "suffix": "b", "end": "c"}, "prefix, suffix or middle"),
                       ({"prefix": "a" * 64, "suffix": "b"}, "fewer than 64")):
        with model_with([], card) as (options, _):
            reason = refusal(Path(options[0].partition("chat=")[2]).parent)
            expect(f"{card}: {reason}", part in reason, True)


def refusals():
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        for suffix in (None, ""):
            complete(client, "x", suffix=suffix, max_tokens=1)
        expect("no tokens", post(client, "/v1/completions",
                                 {"model": "chat", "prompt": "x", "suffix": "y"}), 400)
        message = json.loads(client.body)["error"]["message"]
        expect("what is missing", "<|fim_prefix|>" in message and "card" in message, True)
    with model_with(FAMILIES["qwen"]) as (options, _), Daemon(options) as daemon:
        client = Client(daemon.port)
        for members, part in (({"suffix": 5}, "suffix"), ({"suffix": ["a"]}, "suffix"),
                              ({"suffix": "a", "echo": True}, "echo: not with a suffix"),
                              ({"suffix": "a" * 1000000}, "the suffix: it has 1000000 bytes"),
                              ({"suffix": "a b" * 200}, "the prompt has")):
            expect(f"{str(members)[:40]}", post(client, "/v1/completions", {
                "model": "chat", "prompt": "x", **members}), 400)
            expect(part, part in client.body.decode(), True)
        answer = complete(client, "", suffix="a", max_tokens=1)
        expect("nothing before it", answer["usage"]["prompt_tokens"], 4)


CHECKS = (families, cards, refusals)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
