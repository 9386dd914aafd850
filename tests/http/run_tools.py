#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Calls of tools against a real daemon: which family a card names, which tools may be called.

The tiny chat model writes calls as Hermes does; tests/unit/test_tools.c has the other families.

usage: run_tools.py, with top_srcdir and top_builddir in the environment.
"""
import json
import sys

from run_cards import refusal
from run_generate import ANSWERS, CHAT, Stream, ask, chat, joined_calls, post
from run_http import Client, Daemon, Report, expect
from run_thinking import PERU, prepared

ROW = next(row for row in ANSWERS if "weather" in row["messages"][-1]["content"])
ASKED = ROW["messages"]


def tool(name, is_flat=False):
    function = {"name": name, "parameters": {
        "type": "object", "properties": {"city": {"type": "string", "enum": ["Oslo"]}},
        "required": ["city"], "additionalProperties": False}}
    return {"type": "function", **function} if is_flat else {"type": "function",
                                                             "function": function}


def called(message):
    return [(call["function"]["name"], json.loads(call["function"]["arguments"]))
            for call in message.get("tool_calls", ())]


OSLO = [("weather", {"city": "Oslo"})]

# How calls that have to be begin.
FORMS = {"hermes": '<tool_call>\n{"name": "weather", "arguments":',
         "coder": "<tool_call>\n<function=weather>\n<parameter=city>\nOslo\n"}


def families():
    for family, calls in ((None, OSLO), ("hermes", OSLO), ("coder", OSLO), ("kimi", [])):
        with prepared({"tools": family} if family else None) as path, \
                Daemon(["--model", f"chat={path}"]) as daemon:
            members = {"tools": [tool("weather")], "temperature": 0}
            choice = chat(Client(daemon.port), ASKED, **members)["choices"][0]
            expect(f"{family}", called(choice["message"]), calls)
            expect("reason", choice["finish_reason"], "tool_calls" if calls else "stop")
            events = Stream(daemon.port, "/v1/chat/completions",
                            {"model": "chat", "messages": ASKED, "stream": True,
                             **members}).events()
            told = "".join(event["choices"][0]["delta"].get("content") or "" for event in events
                           if event != "[DONE]")
            expect(f"{family} in a stream", told, "" if calls else ROW["answer"])
            forced = chat(Client(daemon.port), ASKED, tool_choice="required", logprobs=True,
                          **members)["choices"][0]
            expect(f"{family} forced", called(forced["message"]), OSLO)
            # A vocabulary without the marks of Kimi has no such form.
            begin = FORMS.get(family, '{')
            expect(f"{family}'s form", written(forced).startswith(begin), True)
            cut = chat(Client(daemon.port), ASKED, tool_choice="required", max_tokens=3, **members)
            expect(f"{family} cut", cut_call(cut), ("weather", None, "length"))
    with prepared({"tools": "no such"}) as path:
        expect("refused", "expected one of harmony" in refusal(path.parent), True)


def cut_call(answer):
    """The name of the only call of an answer that is cut, the text beside it, and the reason."""
    choice = answer["choices"][0]
    calls = choice["message"].get("tool_calls", ())
    names = ",".join(call["function"]["name"] for call in calls)
    return names, choice["message"]["content"], choice["finish_reason"]


def written(choice):
    return "".join(token["token"] for token in choice["logprobs"]["content"])


def forced_marks():
    """Marks that are special tokens come in calls that have to be, and in no text of theirs."""
    with prepared({"tools": "mistral"}) as path:
        add_marks(path.parent / "tokenizer.json", {"L": "[TOOL_CALLS]", "Q": "[ARGS]"})
        with Daemon(["--model", f"chat={path}"]) as daemon:
            members = {"tools": [tool("weather"), tool("other")], "temperature": 0}
            for choice in ("required", {"type": "function", "function": {"name": "weather"}}):
                forced = chat(Client(daemon.port), ASKED, tool_choice=choice, logprobs=True,
                              **members)["choices"][0]
                name = forced["message"]["tool_calls"][0]["function"]["name"]
                expect("call", called(forced["message"]), [(name, {"city": "Oslo"})])
                expect("form", written(forced).startswith(f"[TOOL_CALLS]{name}[ARGS]{{"), True)
                events = Stream(daemon.port, "/v1/chat/completions",
                                {"model": "chat", "messages": ASKED, "stream": True,
                                 "tool_choice": choice, **members}).events()
                expect("stream", [call["function"] for call in joined_calls(events)],
                       [call["function"] for call in forced["message"]["tool_calls"]])
            free = tool("other")
            free["function"]["parameters"] = {"type": "object", "properties": {
                "a": {"type": "string", "maxLength": 9}}, "required": ["a"]}
            for seed in range(8):
                hot = chat(Client(daemon.port), ASKED, tools=[free], tool_choice="required",
                           temperature=9, seed=seed)["choices"][0]["message"]
                text = called(hot)[0][1]["a"]
                expect("no marks in texts", "ARGS]" in text or "CALLS]" in text, False)


def special_marks():
    """A mark that is a special token counts, and is no text where no tools are known."""
    never = {"open": "assistant", "close": "###"}  # the call ends the thought that it forgets
    for thinking, thought in (("none", None), (never, "The capital of Peru is")):
        marked({"tools": "mistral", "thinking": thinking}, thought)


def add_marks(tokenizer, marks):
    """Makes special tokens of others."""
    parts = json.loads(tokenizer.read_text())
    vocab = parts["model"]["vocab"]
    for token, mark in marks.items():
        vocab[mark] = vocab.pop(token)
        parts["added_tokens"].append({**parts["added_tokens"][0], "id": vocab[mark],
                                      "content": mark, "special": True})
    tokenizer.write_text(json.dumps(parts))


def marked(generation, thought):
    with prepared(generation) as path:
        add_marks(path.parent / "tokenizer.json", {"L": "[TOOL_CALLS]"})  # of "Lima"
        with Daemon(["--model", f"chat={path}"]) as daemon:
            client = Client(daemon.port)
            before = "" if thought else "The capital of Peru is "
            message = chat(client, PERU, tools=[tool("weather")])["choices"][0]["message"]
            expect("with tools", (message.get("reasoning"), message["content"]),
                   (thought, before + "[TOOL_CALLS]ima."))
            message = chat(client, PERU)["choices"][0]["message"]
            expect("without", message["content" if before else "reasoning"],
                   "The capital of Peru is ima.")


def allowed(mode, *names, is_flat=False):
    tools = [{"type": "function", "name": name} if is_flat else
             {"type": "function", "function": {"name": name}} for name in names]
    inner = {"mode": mode, "tools": tools}
    return {"type": "allowed_tools", **(inner if is_flat else {"allowed_tools": inner})}


def choices():
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        tools = [tool("weather"), tool("other")]
        for choice, calls in ((allowed("auto", "weather"), OSLO), (allowed("auto", "other"), []),
                              (allowed("required", "other"), [("other", {"city": "Oslo"})])):
            answer = chat(client, ASKED, tools=tools, tool_choice=choice)
            expect(f"{choice}", called(answer["choices"][0]["message"]), calls)
        one = allowed("required", "other")
        cut = chat(client, ASKED, tools=tools, tool_choice=one, max_tokens=3)
        expect("the only one left", cut_call(cut), ("other", None, "length"))
        for choice, part in (({"type": "allowed_tools"}, "and a list"),
                             (allowed("never", "other"), "the mode")):
            body = {"model": "chat", "messages": ASKED, "tools": tools, "tool_choice": choice}
            expect("status", post(client, "/v1/chat/completions", body), 400)
            expect("text", part in json.loads(client.body)["error"]["message"], True)


def responses():
    """A forced function counts beside a format: some clients send both."""
    schema = {"type": "json_schema", "name": "x", "schema": {"type": "object"}}
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        body = {"model": "chat", "input": ASKED, "temperature": 0, "text": {"format": schema},
                "tools": [tool("weather", True), tool("other", True)]}
        for choice, name in (({"type": "function", "name": "other"}, "other"),
                             (allowed("required", "other", is_flat=True), "other")):
            answer = ask(client, "/v1/responses", {**body, "tool_choice": choice,
                                                   "parallel_tool_calls": False})
            expect("call", [(item["type"], item["name"]) for item in answer["output"]],
                   [("function_call", name)])
            expect("repeated", (answer["tool_choice"], answer["parallel_tool_calls"]),
                   (choice, False))


def main():
    report = Report()
    report.run_all((families, forced_marks, special_marks, choices, responses))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
