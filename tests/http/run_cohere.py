#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""POST /v2/chat, as Cohere's clients ask, against a real daemon with a tiny model.

run_peers.py asks the same with Cohere's own client.

usage: run_cohere.py, with top_srcdir and top_builddir in the environment.
"""
import json
import sys

from load import wait_until
from run_embeddings import expect_close
from run_generate import ANSWERS, CHAT, CONTEXT, HELLO, Stream, ask, chat, post, wait_idle
from run_http import Client, Daemon, Failure, Report, build_request, expect
from run_messages import ASKED
from run_thinking import JAPAN, TEXTS, served

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = {"type": "function", "function": {"name": "weather", "description": "of a city",
                                            "parameters": SCHEMA}}
COUNT = ANSWERS[2]["messages"]


def body_of(messages, **members):
    return {"model": "chat", "messages": messages, "temperature": 0, "max_tokens": 60, **members}


def say(client, messages, **members):
    return ask(client, "/v2/chat", body_of(messages, **members))


def text_of(answer):
    content = answer["message"]["content"]
    return "".join(block["text"] for block in content if block["type"] == "text")


class Events(Stream):
    """The events of a message; checks their names."""

    def events(self):
        parts = b"".join(iter(self.chunk, b"")).decode().split("\n\n")
        expect("end of the events", parts[-2:], ["data: [DONE]", ""])
        events = []
        for part in parts[:-2]:
            name, _, data = part.partition("\ndata: ")
            events.append(json.loads(data))
            expect("name", name, f"event: {events[-1]['type']}")
        return events


def stream(port, messages, **members):
    return Events(port, "/v2/chat", body_of(messages, stream=True, **members)).events()


def build(events):
    """The answer that the events make; checks their order."""
    expect("ends", (events[0]["type"], events[-1]["type"]), ("message-start", "message-end"))
    content, calls, logprobs, is_open = [], [], [], None
    for event in events[1:-1]:
        kind, _, what = event["type"].rpartition("-")
        rows = content if kind == "content" else calls
        told = event.get("delta", {}).get("message", {}).get(
            "content" if kind == "content" else "tool_calls")
        if what == "start":
            expect("blocks do not nest", is_open, None)
            expect("index", event["index"], len(rows))
            rows.append(told)
            is_open = kind
            continue
        expect("block", (is_open, event["index"]), (kind, len(rows) - 1))
        if what == "end":
            is_open = None
        elif kind == "content":
            for name, text in told.items():
                rows[-1][name] += text
            logprobs += [event["logprobs"]] if "logprobs" in event else []
        else:
            rows[-1]["function"]["arguments"] += told["function"]["arguments"]
    expect("all blocks are closed", is_open, None)
    message = {"role": "assistant", "content": content, "tool_calls": calls}
    return {"message": message, "logprobs": logprobs, "id": events[0]["id"], **events[-1]["delta"]}


def answers():
    """The answers are those of chats, whatever form their messages have."""
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        for row in ANSWERS:
            answer = say(client, row["messages"], safety_mode="OFF", citation_options={"mode": "x"})
            if row["answer"].startswith("<tool_call>"):
                continue
            expect("text", text_of(answer), row["answer"])
            expect("reason", answer["finish_reason"], "COMPLETE")
            usage = {"input_tokens": len(row["ids"]), "output_tokens": len(row["answer_ids"]) + 1}
            expect("usage", (answer["usage"]["tokens"], answer["usage"]["billed_units"]),
                   (usage, usage))
            built = build(stream(daemon.port, row["messages"]))
            expect("content", built["message"]["content"], answer["message"]["content"])
            expect("usage", (built["usage"]["tokens"], built["finish_reason"]),
                   (usage, "COMPLETE"))
        content = COUNT[0]["content"]
        parts = [{"type": "text", "text": content[:5]}, {"type": "text", "text": content[5:]}]
        expect("blocks", text_of(say(client, [{"role": "user", "content": parts}])),
               ANSWERS[2]["answer"])
        system = [{"role": "system", "content": "You answer \"briefly\".\n"}] + HELLO
        expect("system", text_of(say(client, system)),
               chat(client, system)["choices"][0]["message"]["content"])
        for members in ({"k": 1}, {"p": 0.0}, {"k": 0, "p": 1, "seed": 3}):
            sampled = say(client, COUNT, **{"temperature": None, **members})
            if "seed" not in members:
                expect("the most probable", text_of(sampled), ANSWERS[2]["answer"])
        wait_idle(client)


def ends():
    """Why an answer ended."""
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        cut = say(client, HELLO, max_tokens=2)
        expect("cut", (cut["finish_reason"], cut["usage"]["tokens"]["output_tokens"]),
               ("MAX_TOKENS", 2))
        full = say(client, HELLO, max_tokens=2 * CONTEXT, ignore_eos=True)
        expect("context", full["finish_reason"], "MAX_TOKENS")
        none = say(client, HELLO, max_tokens=0)
        expect("no text", none["message"]["content"], [{"type": "text", "text": ""}])
        for built in (say(client, COUNT, stop_sequences=["9", "5, "]),
                      build(stream(daemon.port, COUNT, stop_sequences=["9", "5, "]))):
            expect("stopped", (text_of(built), built["finish_reason"]),
                   ("2, 3, 4, ", "STOP_SEQUENCE"))


def probabilities():
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        answer = say(client, COUNT, logprobs=True)
        told = chat(client, COUNT, logprobs=True, max_tokens=60)["choices"][0]["logprobs"]
        expect_close("numbers", [row["logprobs"][0] for row in answer["logprobs"]],
                     [row["logprob"] for row in told["content"]])
        expect("texts", "".join(row["text"] for row in answer["logprobs"]).rstrip("\n"),
               "".join(row["token"] for row in told["content"]).rstrip("\n"))
        built = build(stream(daemon.port, COUNT, logprobs=True))
        for name in ("token_ids", "logprobs"):
            expect_close(name, [x for row in built["logprobs"] for x in row[name]],
                         [x for row in answer["logprobs"] for x in row[name]])


def tools():
    """Calls of tools and what they gave."""
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        for answer in (say(client, ASKED, tools=[WEATHER]),
                       build(stream(daemon.port, ASKED, tools=[WEATHER]))):
            call, = answer["message"]["tool_calls"]
            expect("call", (call["type"], call["function"]["name"],
                            json.loads(call["function"]["arguments"])),
                   ("function", "weather", {"city": "Oslo"}))
            expect("no text", answer["message"]["content"], [])
            expect("reason", answer["finish_reason"], "TOOL_CALL")
        none = say(client, ASKED, tools=[WEATHER], tool_choice="NONE")
        expect("none", "tool_calls" in none["message"], False)
        forced = say(client, HELLO, tools=[WEATHER], tool_choice="REQUIRED", max_tokens=200)
        expect("forced", forced["message"]["tool_calls"][0]["function"]["name"], "weather")
        # As a chat has it; a document is the JSON of its data.
        calls = [{"id": "1", "type": "function",
                  "function": {"name": "weather", "arguments": "{}"}}]
        data = '{"a": "\\"x\\""}'
        documents = [{"type": "document", "document": {"id": "d", "data": json.loads(data)}}]
        for plan, results in ((None, "x"), ("Hm.", [{"type": "text", "text": "x"}]),
                              ("Hm.", documents)):
            told = [*ASKED, {"role": "assistant", "content": plan or ""},
                    {"role": "tool", "content": data if results is documents else "x"}]
            messages = [*ASKED, {"role": "assistant", "tool_plan": plan, "tool_calls": calls,
                                 "citations": []},
                        {"role": "tool", "tool_call_id": "1", "content": results}]
            got = say(client, messages, max_tokens=1)["usage"]["tokens"]["input_tokens"]
            expect(plan, got, chat(client, told, max_tokens=1)["usage"]["prompt_tokens"])


def thoughts():
    """A thought is a block before the text."""
    with served(TEXTS) as (client, port):
        answer = say(client, JAPAN, thinking={"type": "enabled", "token_budget": 5})
        expect("blocks", answer["message"]["content"],
               [{"type": "thinking", "thinking": "of"}, {"type": "text", "text": "Tokyo."}])
        expect("stream", build(stream(port, JAPAN))["message"]["content"],
               answer["message"]["content"])
        back = [*JAPAN, {"role": "assistant", "content": answer["message"]["content"]}, *HELLO]
        expect("sent back", say(client, back)["message"]["role"], "assistant")


def formats():
    schema = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"],
              "additionalProperties": False}
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        for members in ({"json_schema": schema}, {"schema": schema}):
            answer = say(client, HELLO, max_tokens=100,
                         response_format={"type": "json_object", **members})
            expect("a", list(json.loads(text_of(answer))), ["a"])
        plain = say(client, COUNT, response_format={"type": "text"})
        expect("text", text_of(plain), ANSWERS[2]["answer"])


def leaving():
    """A client that leaves ends its answer."""
    with Daemon(CHAT) as daemon:
        client, gone = Client(daemon.port), Client(daemon.port)
        body = json.dumps(body_of(HELLO, stream=True, max_tokens=200, ignore_eos=True)).encode()
        gone.send(build_request("POST", "/v2/chat", body))
        gone.socket.recv(100)
        gone.reset()
        wait_until("it is over", lambda: wait_idle(client) is None)


def refusals():
    deep = '{"a":' * 5000 + "1" + "}" * 5000
    rows = (({"messages": []}, "messages is missing or empty"), ({}, "messages is missing"),
            ({"messages": [{"role": "user"}]}, "messages[0]: content is missing"),
            ({"messages": [{"content": "a"}]}, "expected a message with a role"),
            ({"messages": [{"role": "user", "content": 5}]}, "expected a text or a list"),
            ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
             "messages[0].content[0]: expected a block of type text"),
            ({"messages": [{"role": "user", "content": [{"type": "text", "text": 5}]}]},
             "expected a block of type text"),
            ({"messages": [{"role": "tool", "content": [{"type": "document", "document": {}}]}]},
             "expected a block of type text"),
            ({"messages": HELLO, "tool_choice": "required"}, 'expected "REQUIRED"'),
            ({"messages": HELLO, "tool_choice": "REQUIRED"}, "expected tools to choose from"),
            ({"messages": HELLO, "documents": ["a"]}, "documents: it is not done here"),
            ({"messages": HELLO, "k": -1}, "k: expected"),
            ({"messages": HELLO, "p": 2}, "p: expected"),
            ({"messages": HELLO, "max_tokens": 1 << 60}, "max_tokens: expected"),
            ({"messages": HELLO, "response_format": {"type": "json_schema"}},
             'expected the type "text"'),
            ({"messages": HELLO, "response_format": {"type": "json_object", "json_schema": 5}},
             "json_schema: expected"),
            ({"messages": HELLO, "stop_sequences": [""]}, "stop_sequences[0]"))
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        for members, why in rows:
            expect(why, post(client, "/v2/chat", {"model": "chat", **members}), 400)
            answer = json.loads(client.body)
            expect("form", list(answer), ["message"])
            if why not in answer["message"]:
                raise Failure(f"{members}: {answer['message']!r}, expected {why!r}")
        for body in (b"{", b'{"messages": [[[[', b"[]", b'{"messages": [{"role": "user", '
                     b'"content": [{"type": "document", "document": {"data": {',
                     b'{"messages": [{"role": "user", "role": "tool"}]}',
                     f'{{"messages": [{{"role": {deep}}}]}}'.encode(),
                     f'{{"messages": [{{"role": "tool", "content": [{deep}]}}]}}'.encode()):
            expect("malformed", post(client, "/v2/chat", body), 400)
        many = {"messages": [{"role": "user", "content": [{"type": "text", "text": ""}] * 99999}]}
        expect("no text", post(client, "/v2/chat", {**many, "max_tokens": 1}), 200)
        long = {"messages": [{"role": "tool", "content": [
            {"type": "document", "document": {"data": "\x00" * 400000}}]}]}
        expect("long", post(client, "/v2/chat", long), 400)
        expect("nobody", post(client, "/v2/chat", {"model": "x", "messages": HELLO}), 404)
        wait_idle(client)


CHECKS = (answers, ends, probabilities, tools, thoughts, formats, leaving, refusals)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
