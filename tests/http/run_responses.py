#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""POST /v1/responses against a real daemon with a tiny model: items, events, refusals.

run_openai.py asks the same with OpenAI's own client.

usage: run_responses.py, with top_srcdir and top_builddir in the environment.
"""
import itertools
import json
import shutil
import sys
import tempfile
from pathlib import Path

from load import bytes_of_first
from run_generate import ANSWERS, CHAT, FOLDER, HELLO, Stream, ask, chat, post, wait_idle
from run_http import MODELS, Client, Daemon, Failure, Report, expect

WEATHER = {"type": "function", "name": "weather", "description": "of a city",
           "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
           "strict": None}
ASKED = "How is the weather in France?"


def respond(client, given, **members):
    return ask(client, "/v1/responses",
               {"model": "chat", "input": given, "temperature": 0, **members})


def text_of(answer):
    return "".join(part["text"] for item in answer["output"] if item["type"] == "message"
                   for part in item["content"])


class Events(Stream):
    """The events of a response; checks their names and numbers."""

    def events(self):
        parts = b"".join(iter(self.chunk, b"")).decode().split("\n\n")
        expect("end of the events", parts.pop(), "")
        events = []
        for number, part in enumerate(parts):
            name, _, data = part.partition("\ndata: ")
            event = json.loads(data)
            expect("name", name, f"event: {event['type']}")
            expect("number", event["sequence_number"], number)
            events.append(event)
        return events


def stream(port, given, indent=None, **members):
    body = {"model": "chat", "input": given, "temperature": 0, "stream": True, **members}
    return Events(port, "/v1/responses", json.dumps(body, indent=indent).encode()).events()


def answers():
    """The answers are those of chats, whatever form their messages have."""
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        for row in ANSWERS:
            answer = respond(client, row["messages"], metadata={"a": "1"}, store=False)
            expect("text", text_of(answer), row["answer"])
            expect("status", answer["status"], "completed")
            expect("object", (answer["object"], answer["model"], answer["store"]),
                   ("response", "chat", False))
            expect("metadata", answer["metadata"], {"a": "1"})
            expect("input", answer["usage"]["input_tokens"], len(row["ids"]))
            expect("output", answer["usage"]["output_tokens"], len(row["answer_ids"]) + 1)
        row = ANSWERS[2]
        content = row["messages"][0]["content"]
        for given in (content, [{"role": "user", "content": content}],
                      [{"type": "message", "role": "user",
                        "content": [{"type": "input_text", "text": content[:5]},
                                    {"type": "input_text", "text": content[5:]}]}],
                      [{"type": "reasoning", "id": "r", "summary": []},
                       {"content": content, "role": "user", "type": "message"}]):
            expect("text", text_of(respond(client, given)), row["answer"])
        plain = chat(client, [{"role": "system", "content": "You answer \"briefly\".\n"}] + HELLO)
        answer = respond(client, HELLO[0]["content"], instructions="You answer \"briefly\".\n")
        expect("instructions", text_of(answer), plain["choices"][0]["message"]["content"])
        expect("repeated", answer["instructions"], "You answer \"briefly\".\n")
        answer = respond(client, [{"role": "developer", "content": "You answer \"briefly\".\n"}]
                         + HELLO, max_output_tokens=2)
        expect("cut", (answer["status"], answer["incomplete_details"]),
               ("incomplete", {"reason": "max_output_tokens"}))
        expect("limit", (answer["max_output_tokens"], answer["usage"]["output_tokens"]), (2, 2))
        # What came can be sent back, and is computed once.
        first = respond(client, content)
        more = [{"role": "user", "content": content}, *first["output"], *HELLO]
        second = respond(client, more)
        expect("cached", second["usage"]["input_tokens_details"]["cached_tokens"] >=
               first["usage"]["total_tokens"] - 1, True)
        wait_idle(client)


def repeated():
    """Members that the answer repeats, in a body larger than what a request keeps of it."""
    large = {"instructions": "Hi! " * 9, "metadata": {"a": "x" * 100000}}
    with Daemon(CHAT) as daemon:
        answer = respond(Client(daemon.port), ANSWERS[0]["messages"], **large)
        expect("repeated", {name: answer[name] for name in large}, large)


def in_lines():
    """What events repeat of a body has ends of lines, which would end their fields."""
    given = {"tools": [WEATHER], "metadata": {"a": "1\n2"}, "tool_choice": "auto",
             "instructions": "1\n2", "text": {"format": {"type": "text"}}}
    with Daemon(CHAT) as daemon:
        for event in stream(daemon.port, HELLO, indent=1, max_output_tokens=2, **given):
            if "response" in event:
                expect("repeated", {name: event["response"][name] for name in given}, given)


def bytes_of_chat():
    """The model alone, as --model-bytes-max counts it."""
    with Daemon(CHAT) as daemon:
        return bytes_of_first(Client(daemon.port))


def parsed_twice():
    """The request for a model that is only listed is parsed again when the file has been loaded.
    What it keeps for its answer does not count twice: it would be more than a request may have."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(FOLDER, Path(folder) / "chat")
        shutil.copy(MODELS / "mobile.pte", Path(folder) / "a.pte")
        room = bytes_of_chat() + 10
        with Daemon(["--models", folder, "--model-bytes-max", str(room)]) as daemon:
            client = Client(daemon.port)
            expect("listed", post(client, "/v2/repository/index", {"ready": True}), 200)
            expect("the first model", [m["name"] for m in json.loads(client.body)], ["a"])
            metadata = {"a": "x" * 2500000}
            answer = respond(client, HELLO, metadata=metadata, max_output_tokens=2)
            expect("repeated", answer["metadata"] == metadata, True)


def tools():
    """Calls of functions and what they gave."""
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        answer = respond(client, ASKED, tools=[WEATHER])
        call = answer["output"][0]
        expect("call", (len(answer["output"]), call["type"], call["name"], call["status"]),
               (1, "function_call", "weather", "completed"))
        told = chat(client, [{"role": "user", "content": ASKED}],
                    tools=[{"type": "function", "function": {"name": "weather"}}])
        arguments = told["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"]
        expect("arguments", call["arguments"], arguments)
        expect("tools", answer["tools"], [WEATHER])
        plain = respond(client, ASKED, tools=[WEATHER], tool_choice="none")
        expect("none", plain["output"][0]["type"], "message")
        chosen = {"type": "function", "name": "weather"}
        for choice in (chosen, "required"):
            forced = respond(client, "Hello!", tools=[WEATHER], tool_choice=choice)
            expect("forced", [(item["type"], item["name"]) for item in forced["output"]],
                   [("function_call", "weather")])
            expect("as given", forced["tool_choice"], choice)
        cut = respond(client, "Hello!", tools=[WEATHER], tool_choice=chosen, max_output_tokens=16)
        item = cut["output"][0]
        expect("cut", (cut["status"], item["type"], item["name"], item["status"]),
               ("incomplete", "function_call", "weather", "incomplete"))
        events = stream(daemon.port, "Hello!", tools=[WEATHER], tool_choice=chosen,
                        max_output_tokens=16)
        expect("cut in a stream", (events[-1]["type"], events[-2]["item"]["status"]),
               ("response.incomplete", "incomplete"))
        events = stream(daemon.port, ASKED, tools=[WEATHER])
        expect("types", [kind for kind, _ in itertools.groupby(e["type"] for e in events)],
               ["response.created", "response.in_progress", "response.output_item.added",
                "response.function_call_arguments.delta", "response.function_call_arguments.done",
                "response.output_item.done", "response.completed"])
        deltas = [e["delta"] for e in events if e["type"].endswith("arguments.delta")]
        expect("as they come", (len(deltas) > 3, "".join(deltas)), (True, arguments))
        expect("item", events[-1]["response"]["output"][0]["arguments"], arguments)
        expect("done", events[-3]["arguments"], arguments)
        history = [{"role": "user", "content": ASKED}, call,
                   {"type": "function_call_output", "call_id": call["call_id"], "output": "sunny"}]
        one = respond(client, history)
        listed = [*history[:2], {**history[2],
                                 "output": [{"type": "input_text", "text": "sunny"}]}]
        expect("output in parts", text_of(respond(client, listed)), text_of(one))
        # One message of the assistant has its text and its calls.
        messages = [{"role": "user", "content": ASKED},
                    {"role": "assistant", "content": "a", "tool_calls": [
                        {"id": "1", "type": "function",
                         "function": {"name": "weather", "arguments": "{}"}},
                        {"id": "2", "type": "function",
                         "function": {"name": "weather", "arguments": "{}"}}]},
                    {"role": "tool", "tool_call_id": "1", "content": "x"},
                    {"role": "tool", "tool_call_id": "2", "content": "y"}]
        items = [messages[0], {"role": "assistant", "content": "a"},
                 *({"type": "function_call", "call_id": n, "name": "weather", "arguments": "{}"}
                   for n in "12"),
                 *({"type": "function_call_output", "call_id": n, "output": text}
                   for n, text in zip("12", "xy"))]
        expect("tokens", respond(client, items)["usage"]["input_tokens"],
               chat(client, messages)["usage"]["prompt_tokens"])


def events():
    """The events build the answer."""
    with Daemon(CHAT) as daemon:
        for row in ANSWERS:
            got = stream(daemon.port, row["messages"])
            kinds = [e["type"] for e in got if e["type"] != "response.output_text.delta"]
            expect("types", kinds,
                   ["response.created", "response.in_progress", "response.output_item.added",
                    "response.content_part.added", "response.output_text.done",
                    "response.content_part.done", "response.output_item.done",
                    "response.completed"])
            deltas = [e["delta"] for e in got if e["type"] == "response.output_text.delta"]
            expect("deltas", "".join(deltas), row["answer"])
            done = {e["type"]: e for e in got}
            expect("text", done["response.output_text.done"]["text"], row["answer"])
            expect("part", done["response.content_part.done"]["part"]["text"], row["answer"])
            expect("begin", (got[0]["response"]["status"], got[0]["response"]["output"],
                             got[0]["response"]["usage"]), ("in_progress", [], None))
            whole = got[-1]["response"]
            expect("whole", text_of(whole), row["answer"])
            expect("usage", whole["usage"]["output_tokens"], len(row["answer_ids"]) + 1)
            expect("ids", {e["item_id"] for e in got if "item_id" in e},
                   {whole["output"][0]["id"]})
        got = stream(daemon.port, HELLO, max_output_tokens=1)
        expect("cut", (got[-1]["type"], got[-1]["response"]["status"]),
               ("response.incomplete", "incomplete"))
        late = Events(daemon.port, "/v1/responses",
                      {"model": "chat", "input": HELLO, "ignore_eos": True, "stream": True},
                      ["X-Request-Timeout-Ms: 30"]).events()
        if late[-1]["type"] not in ("error", "response.incomplete"):
            raise Failure(f"the end: {late[-1]}")


def formats():
    """Answers of a given form."""
    schema = {"type": "object", "properties": {"n": {"enum": ["one", "two"]}},
              "required": ["n"], "additionalProperties": False}
    form = {"type": "json_schema", "name": "x", "schema": schema, "strict": True}
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        answer = respond(client, HELLO, text={"format": form})
        expect("schema", list(json.loads(text_of(answer))), ["n"])
        expect("repeated", answer["text"], {"format": form})
        answer = respond(client, HELLO, text={"format": {"type": "text"}, "verbosity": "low"})
        expect("text", answer["text"]["format"], {"type": "text"})
        for wrong, message in (({"type": "json_schema", "name": "x"}, "schema is missing"),
                               ({"type": "xml"}, "expected the type")):
            text = {"format": wrong}
            expect("refused", post(client, "/v1/responses",
                                   {"model": "chat", "input": "a", "text": text}), 400)
            if message not in json.loads(client.body)["error"]["message"]:
                raise Failure(f"{text}: {client.body!r}")


def refusals():
    """What is not done here, and what is wrong, with its place."""
    call = {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"}
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        for members, message in (
                ({"previous_response_id": "resp_1"}, "answers are not stored"),
                ({"conversation": "conv_1"}, "answers are not stored"),
                ({"prompt": {"id": "p"}}, "prompts are not stored"),
                ({"background": True}, "background"),
                ({"input": []}, "input is missing or empty"),
                ({"input": None}, "input is missing or empty"),
                ({"input": 1}, "input"),
                ({"input": [1]}, "input[0]"),
                ({"input": [{"role": "user"}]}, "a message: expected a role and a content"),
                ({"input": [{"type": "item_reference", "id": "x"}]}, "got \"item_reference\""),
                ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
                 "expected a part of type input_text"),
                ({"input": [{k: v for k, v in call.items() if k != "name"}]}, "function_call"),
                ({"input": [{"type": "function_call_output", "call_id": "1"}]}, "output"),
                ({"tools": [{"type": "web_search"}]}, "tools[0]"),
                ({"tools": [{"type": "function", "name": 1}]}, "tools[0]"),
                ({"metadata": []}, "metadata"), ({"max_output_tokens": 0}, "max_output_tokens"),
                ({"tool_choice": "required"}, "tool_choice"), ({"temperature": -1}, "temperature"),
                ({"input": "a" * 2000}, "context")):
            body = {"model": "chat", "input": "a", **members}
            expect(f"{members}"[:80], post(client, "/v1/responses", body), 400)
            error = json.loads(client.body)["error"]
            expect("type", error["type"], "invalid_request_error")
            if message not in error["message"]:
                raise Failure(f"{members}: {error['message']!r}, expected {message!r}")
        for body in (b"{", b'{"model": "chat", "input": [{"role": "user", "content": "\xff"}]}',
                     b'{"model": "chat", "input": [[[[', b'[]'):
            expect("status", post(client, "/v1/responses", body), 400)
        expect("no such model", post(client, "/v1/responses", {"model": "x", "input": "a"}), 404)
        expect("then", post(client, "/v1/responses",
                            {"model": "chat", "input": "a", "store": True, "user": "u",
                             "mode": "x", "top_a": 0, "min_tokens": 0, "k": 1}), 200)
        wait_idle(client)


def as_python_reads_it():
    """What only flows to a template is read as Python's json reads it, as in chats."""
    deep = "[" * 70 + "123456789012345678901234567890" + "]" * 70
    text = ('"role": "user", "role": "user", "x": 1, "x": {"big": 1e400, "deep": %s}, "content": '
            % deep)
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        for path, name in (("/v1/chat/completions", "messages"), ("/v1/messages", "messages"),
                           ("/v1/responses", "input")):
            said = []
            for content in (r'"Hi \ud83d there"',
                            r'[{"type": "text", "type": "text", "n": [1e999], "text": "?", '
                            r'"text": "Hi \ud83d there"}]'):
                body = '{"model": "chat", "temperature": 0, "%s": [{%s%s}]}' % (name, text, content)
                answer = ask(client, path, body.encode())
                said.append(answer["choices"][0]["message"]["content"] if "choices" in answer
                            else answer["content"][0]["text"] if "content" in answer
                            else text_of(answer))
            expect(path, said[1:], said[:1])
        call = ('{"type": "function_call", "call_id": "1", "name": "f\\udc00", "arguments": '
                '"{\\"a\\": 1e400, \\"a\\": 123456789012345678901234567890}"}')
        output = '{"type": "function_call_output", "call_id": "1", "output": "\\ud83d"}'
        body = '{"model": "chat", "input": [{"role": "user", "content": "a"}, %s, %s]}'
        expect("calls", post(client, "/v1/responses", (body % (call, output)).encode()), 200)
        for wrong in (r'"a\x"', '"a\n"', r'"\ud8"'):
            body = '{"model": "chat", "input": [{"role": "user", "content": %s}]}' % wrong
            expect("no JSON", post(client, "/v1/responses", body.encode()), 400)


CHECKS = (answers, repeated, in_lines, parsed_twice, tools, events, formats, as_python_reads_it,
          refusals)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
