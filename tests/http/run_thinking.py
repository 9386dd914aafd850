#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Thoughts apart from answers, against a real daemon: cards say which words of the tiny chat model
stand around a thought, and templates open one.

usage: run_thinking.py, with top_srcdir and top_builddir in the environment.
"""
import contextlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from run_cards import refusal
from run_chat import Terminal
from run_generate import ANSWERS, FOLDER, Stream, ask, chat, post
from run_http import TIMEOUT_S, Client, Daemon, Failure, Report, expect
from run_pte import PTE
from run_responses import stream

JAPAN = [{"role": "user", "content": "What is the capital of Japan?"}]
PERU = [{"role": "user", "content": "What is the capital of Peru?"}]
TEXTS = {"open": "The capital", "close": "Japan is"}  # several tokens each
TOKENS = {"open": "The", "close": "L"}  # one token each
OPENED = {"open": "assistant", "close": " is"}  # the prompt ends with the first


@contextlib.contextmanager
def prepared(generation, template=None):
    """The program of a copy of the chat model, whose card has |generation|."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "chat"
        folder.mkdir()
        for file in FOLDER.iterdir():
            shutil.copy(file, folder)
        if generation:
            card = {"generation": generation}
            (folder / "model.card.json").write_text(json.dumps(card))
        if template:
            config = json.loads((folder / "tokenizer_config.json").read_text())
            config["chat_template"] = template
            (folder / "tokenizer_config.json").write_text(json.dumps(config))
        yield folder / "model.pte"


def thinker(thinking, template=None):
    """Likewise; the card says how the model thinks."""
    return prepared({"thinking": thinking} if thinking else None, template)


@contextlib.contextmanager
def served(thinking, template=None):
    with thinker(thinking, template) as path, Daemon(["--model", f"chat={path}"]) as daemon:
        yield Client(daemon.port), daemon.port


def events_of(port, messages, **members):
    body = {"model": "chat", "messages": messages, "temperature": 0, "stream": True, **members}
    return Stream(port, "/v1/chat/completions", body).events()


def deltas(events, name):
    return "".join(event["choices"][0]["delta"].get(name) or "" for event in events
                   if event != "[DONE]" and event["choices"])


def expect_message(answer, thought, text, reason="stop"):
    choice = answer["choices"][0]
    message = choice["message"]
    got = (message.get("reasoning_content"), message.get("reasoning"), message["content"],
           choice["finish_reason"])
    expect("message", got, (thought, thought, text, reason))


def apart():
    rows = ((TEXTS, JAPAN, "of", "Tokyo."), (TOKENS, PERU, "capital of Peru is", "ima."),
            (OPENED, JAPAN, "The capital of Japan", "Tokyo."),
            (TOKENS, JAPAN, "capital of Japan is Tokyo.", ""), ("none", JAPAN, None, None))
    for thinking, messages, thought, text in rows:
        text = ANSWERS[1]["answer"] if text is None else text
        with served(thinking) as (client, port):
            whole = chat(client, messages)
            expect_message(whole, thought, text)
            events = events_of(port, messages, stream_options={"include_usage": True})
            for name in ("reasoning_content", "reasoning"):
                expect(f"{name} of the stream", deltas(events, name), thought or "")
            expect("content of the stream", deltas(events, "content"), text)
            expect("usage of the stream", {**events[-2]["usage"], "prompt_tokens_details": 0},
                   {**whole["usage"], "prompt_tokens_details": 0})
            details = whole["usage"].get("completion_tokens_details")
            expect("details", bool(details), thinking != "none")
            if details:
                count = details["reasoning_tokens"]
                expect("counted", 0 < count < whole["usage"]["completion_tokens"], True)
            twice = chat(client, messages, n=2)["choices"]
            expect("n", [c["message"]["content"] for c in twice], [text, text])


def limits():
    with served(OPENED) as (client, port):
        cut = chat(client, JAPAN, max_tokens=3)
        expect_message(cut, "The capital of", "", "length")
        expect("all are thoughts", cut["usage"]["completion_tokens_details"]["reasoning_tokens"], 3)
        expect_message(chat(client, JAPAN, stop=["capital"]), "The capital of Japan", "Tokyo.")
        expect_message(chat(client, JAPAN, stop=["kyo"]), "The capital of Japan", "To")
        events = events_of(port, JAPAN, max_tokens=3)
        expect("cut stream", deltas(events, "reasoning"), "The capital of")
        marks = chat(client, JAPAN, logprobs=True)["choices"][0]["logprobs"]["content"]
        expect("tokens", "".join(mark["token"] for mark in marks), " Tokyo.<|im_end|>")
        marked = events_of(port, JAPAN, logprobs=True)
        told = [mark["token"] for event in marked if event != "[DONE]"
                for mark in (event["choices"][0]["logprobs"] or {}).get("content", ())]
        expect("tokens of the stream", told, [mark["token"] for mark in marks])


def forms():
    """A form is for the answer alone, whether the prompt or the model opens the thought."""
    rows = ((OPENED, JAPAN, "The capital of Japan", "Oslo|Paris"),
            (TOKENS, PERU, "capital of Peru is", "[a-z]{3}"))
    for thinking, messages, thought, regex in rows:
        with served(thinking) as (client, port):
            answer = chat(client, messages, guided_regex=regex)
            text = answer["choices"][0]["message"]["content"]
            expect("form", bool(re.fullmatch(regex, text)), True)
            expect_message(answer, thought, text)
            events = events_of(port, messages, guided_regex=regex)
            expect("stream", (deltas(events, "reasoning"), deltas(events, "content")),
                   (thought, text))
    with served(TEXTS) as (client, port):  # its marker is no token, so it does not think then
        answer = chat(client, JAPAN, guided_regex="[A-Z][a-z]+ [a-z]+")
        expect("no thought", "reasoning" in answer["choices"][0]["message"], False)


def no_header():
    """A model of channels that writes none: what was asked of the answer counts."""
    answers = ["yes", "no"]
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"enum": answers}}}
    tool = {"type": "function", "function": {"name": "f", "parameters": {
        "type": "object", "properties": {"a": {"enum": answers}}, "required": ["a"]}}}
    with served("harmony") as (client, _):
        text = chat(client, JAPAN, response_format=form)["choices"][0]["message"]["content"]
        expect("form", json.loads(text) in answers, True)
        choice = chat(client, JAPAN, tools=[tool], tool_choice="required")["choices"][0]
        call = choice["message"]["tool_calls"][0]["function"]
        expect("call", (call["name"], json.loads(call["arguments"])["a"] in answers), ("f", True))
        expect_message(chat(client, JAPAN), None, ANSWERS[1]["answer"])


TEMPLATE = ("{% for m in messages %}<|im_start|>{{ m.role }}\n"
            "{% if m.reasoning_content %}({{ m.reasoning_content }}|{{ m.reasoning }}){% endif %}"
            "{{ m.content }}<|im_end|>\n{% endfor %}{{ raise_exception('e=' ~ enable_thinking ~ "
            "' r=' ~ reasoning_effort ~ ' t=' ~ thinking ~ ' m=' ~ (messages|tojson)) }}")


def told(client, path, body):
    """What the template was told, which it raises as an error."""
    expect("status", post(client, path, {"model": "chat", **body}), 400)
    return json.loads(client.body)["error"]["message"]


def templates():
    with served(None, TEMPLATE) as (client, _):
        rows = (({}, "e= r= t= "), ({"reasoning_effort": "high"}, "e=True r=high t=True "),
                ({"reasoning_effort": "none"}, "e=False r= t=False "),
                ({"reasoning": {"enabled": False}}, "e=False r= t=False "),
                ({"reasoning_effort": "low", "chat_template_kwargs": {"enable_thinking": False}},
                 "e=False r=low t=True "))
        for members, wanted in rows:
            got = told(client, "/v1/chat/completions", {"messages": JAPAN, **members})
            expect(str(members), wanted in got, True)
        for name in ("reasoning_content", "reasoning"):
            history = [*JAPAN, {"role": "assistant", "content": "Tokyo.", name: "Hm."}, *PERU]
            got = told(client, "/v1/chat/completions", {"messages": history})
            for each in ("reasoning_content", "reasoning", "thinking"):
                expect(each, f'"{each}": "Hm."' in got, True)
        items = [*JAPAN, {"type": "reasoning", "id": "rs_1", "summary": [], "content": [
            {"type": "reasoning_text", "text": "Hm."}]},
            {"type": "message", "role": "assistant", "content": "Tokyo."}, *PERU]
        got = told(client, "/v1/responses", {"input": items, "reasoning": {"effort": "low"}})
        expect("item", '"content": "Tokyo.", "reasoning_content": "Hm."' in got, True)
        expect("effort", "r=low" in got, True)
        call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
        summary = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "So."}]}
        got = told(client, "/v1/responses", {"input": [*JAPAN, summary, call, {
            "type": "function_call_output", "call_id": "c", "output": "1"}]})
        expect("call", re.search(r'"content": "", "reasoning_content": "So\.", "tool_calls"', got)
               is not None, True)


def responses():
    for thinking, thought, text in ((OPENED, "The capital of Japan", "Tokyo."),
                                    (TOKENS, "capital of Japan is Tokyo.", "")):
        with served(thinking) as (client, port):
            body = {"model": "chat", "input": JAPAN[0]["content"], "temperature": 0}
            whole = ask(client, "/v1/responses", body)
            expect("types", [item["type"] for item in whole["output"]], ["reasoning", "message"])
            expect("thought", whole["output"][0]["content"],
                   [{"type": "reasoning_text", "text": thought}])
            expect("text", whole["output"][1]["content"][0]["text"], text)
            count = whole["usage"]["output_tokens_details"]["reasoning_tokens"]
            expect("counted", count > 0, True)
            events = stream(port, JAPAN[0]["content"])
            kinds = [event["type"] for event in events]
            first = kinds.index("response.output_item.added")
            expect("order", kinds[first:first + 3],
                   ["response.output_item.added", "response.content_part.added",
                    "response.reasoning_text.delta"])
            expect("deltas", "".join(event["delta"] for event in events if event["type"] ==
                                     "response.reasoning_text.delta"), thought)
            done = [event["item"] for event in events
                    if event["type"] == "response.output_item.done"]
            strip = lambda items: [{**item, "id": ""} for item in items]
            expect("items", strip(done), strip(whole["output"]))
            expect("places", [event["output_index"] for event in events
                              if event["type"] == "response.output_item.done"], [0, 1])
            cut = ask(client, "/v1/responses", {**body, "max_output_tokens": 3})
            expect("cut", [(item["type"], item["status"]) for item in cut["output"]],
                   [("reasoning", "incomplete")])


def late_thoughts():
    """At its end a stream says what its events have told, also of a thought behind text."""
    with served(TOKENS) as (_, port):
        for seed in range(30):
            events = stream(port, JAPAN[0]["content"], temperature=3, ignore_eos=True, seed=seed,
                            max_output_tokens=40)
            done = [event["item"] for event in events
                    if event["type"] == "response.output_item.done"]
            expect(f"items of seed {seed}", done, events[-1]["response"]["output"])


def terminal():
    with thinker(OPENED) as path:
        done = subprocess.run([PTE, "chat", "--temperature", "0", str(path)],
                              input=JAPAN[0]["content"].encode(), capture_output=True,
                              timeout=TIMEOUT_S, check=False)
        expect("text", done.stdout, b"Tokyo.\n")
        expect("note", re.search(rb"\[thought for \d+ tokens\]", done.stderr) is not None, True)
        for kind, shown in (("xterm", "\x1b[2mThe capital of Japan\x1b[0m"), ("dumb", "")):
            with Terminal(["--temperature", "0", str(path)], kind) as user:
                user.read(rb"> ")
                user.type(JAPAN[0]["content"] + "\n")
                text = user.read(rb"first after [0-9.]+ s\]")
                expect(f"{kind} shows it", shown in text, True)
                expect(f"{kind} is dim", "\x1b[2m" in text, bool(shown))
                expect(f"{kind} tells of it", "[thought for" in text, not shown)
                expect(f"{kind} has the answer", "Tokyo." in text, True)


def cards():
    for thinking, part in (("thonk", "expected harmony, gemma"), ({"open": "a"}, "open and close"),
                           ({"open": "x" * 64, "close": "b"}, "fewer than 64")):
        with thinker(thinking) as path:
            reason = refusal(path.parent)
            expect(f"{thinking}: {reason}", part in reason, True)


def main():
    report = Report()
    report.run_all((apart, limits, forms, no_header, templates, responses, late_thoughts, terminal,
                    cards))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
