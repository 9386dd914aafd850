#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""POST /v1/messages against a real daemon with a tiny model: blocks, events, refusals.

run_peers.py asks the same with Anthropic's own client.

usage: run_messages.py, with top_srcdir and top_builddir in the environment.
"""
import hashlib
import json
import sys
import tempfile
from pathlib import Path

from load import wait_until
from run_embeddings import ENCODER
from run_generate import ANSWERS, CHAT, CONTEXT, HELLO, Stream, ask, chat, post, wait_idle
from run_http import Client, Daemon, Failure, Report, build_request, expect
from run_thinking import JAPAN, TEXTS, served

ASKED = [{"role": "user", "content": "How is the weather in Oslo?"}]
WEATHER = {"name": "weather", "description": "of a city",
           "input_schema": {"type": "object", "properties": {"city": {"type": "string"}},
                            "required": ["city"]}}


def body_of(messages, **members):
    return {"model": "chat", "messages": messages, "temperature": 0, "max_tokens": 60, **members}


def say(client, messages, **members):
    return ask(client, "/v1/messages", body_of(messages, **members))


def text_of(answer):
    return "".join(block["text"] for block in answer["content"] if block["type"] == "text")


def whole(usage):
    return (usage["input_tokens"] + usage["cache_creation_input_tokens"]
            + usage["cache_read_input_tokens"])


class Events(Stream):
    """The events of a message; checks their names."""

    def events(self):
        parts = b"".join(iter(self.chunk, b"")).decode().split("\n\n")
        expect("end of the events", parts.pop(), "")
        events = []
        for part in parts:
            name, _, data = part.partition("\ndata: ")
            events.append(json.loads(data))
            expect("name", name, f"event: {events[-1]['type']}")
        return events


def stream(port, messages, **members):
    return Events(port, "/v1/messages", body_of(messages, stream=True, **members)).events()


def build(events):
    """The message that the events make; checks their order."""
    expect("first", events[0]["type"], "message_start")
    expect("last", [event["type"] for event in events[-2:]], ["message_delta", "message_stop"])
    message, is_open = events[0]["message"], False
    for event in events[1:-2]:
        if event["type"] == "content_block_start":
            expect("blocks do not nest", is_open, False)
            expect("index", event["index"], len(message["content"]))
            message["content"].append({**event["content_block"], "json": ""})
            is_open = True
        elif event["type"] == "content_block_stop":
            expect("index", (is_open, event["index"]), (True, len(message["content"]) - 1))
            is_open = False
        else:
            expect("delta", (event["type"], event["index"]),
                   ("content_block_delta", len(message["content"]) - 1))
            delta, block = event["delta"], message["content"][-1]
            if delta["type"] in ("text_delta", "thinking_delta"):
                block[delta["type"][:-6]] += delta[delta["type"][:-6]]
            else:
                block["json"] += delta["partial_json"]
    expect("all blocks are closed", is_open, False)
    for block in message["content"]:
        told = block.pop("json")
        if block["type"] == "tool_use":
            block["input"] = json.loads(told)
    message.update(events[-2]["delta"], usage=events[-2]["usage"])
    return message


def answers():
    """The answers are those of chats, whatever form their messages have."""
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        for row in ANSWERS:
            answer = say(client, row["messages"], metadata={"user_id": "u"}, speed="standard")
            if row["answer"].startswith("<tool_call>"):
                continue
            expect("text", text_of(answer), row["answer"])
            expect("members", (answer["type"], answer["role"], answer["model"]),
                   ("message", "assistant", "chat"))
            expect("reason", (answer["stop_reason"], answer["stop_sequence"]), ("end_turn", None))
            expect("input", whole(answer["usage"]), len(row["ids"]))
            expect("output", answer["usage"]["output_tokens"], len(row["answer_ids"]) + 1)
            expect("count", ask(client, "/v1/messages/count_tokens", body_of(row["messages"])),
                   {"input_tokens": len(row["ids"])})
            events = stream(daemon.port, row["messages"])
            expect("real count", whole(events[0]["message"]["usage"]), len(row["ids"]))
            built = build(events)
            for name in ("content", "stop_reason", "stop_sequence", "role", "type"):
                expect(name, built[name], answer[name])
            expect("output", built["usage"]["output_tokens"], answer["usage"]["output_tokens"])
        row = ANSWERS[2]
        content = row["messages"][0]["content"]
        parts = [{"type": "text", "text": content[:5], "cache_control": {"type": "ephemeral"}},
                 {"type": "text", "text": content[5:]}]
        expect("blocks", text_of(say(client, [{"role": "user", "content": parts}])), row["answer"])
        system = "You answer \"briefly\".\n"
        plain = chat(client, [{"role": "system", "content": system}] + HELLO)
        for given in (system, [{"type": "text", "text": system[:4]},
                               {"type": "text", "text": system[4:]}]):
            answer = say(client, HELLO, system=given)
            expect("system", text_of(answer), plain["choices"][0]["message"]["content"])
            expect("tokens", whole(answer["usage"]), plain["usage"]["prompt_tokens"])
        wait_idle(client)


def ends():
    """Why an answer ended; and one that the client has begun."""
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        cut = say(client, HELLO, max_tokens=2)
        expect("cut", (cut["stop_reason"], cut["usage"]["output_tokens"]), ("max_tokens", 2))
        full = say(client, HELLO, max_tokens=2 * CONTEXT, ignore_eos=True)
        expect("context", full["stop_reason"], "model_context_window_exceeded")
        count = ANSWERS[2]["messages"]
        for built in (say(client, count, stop_sequences=["9", "5, "]),
                      build(stream(daemon.port, count, stop_sequences=["9", "5, "]))):
            expect("stopped", (text_of(built), built["stop_reason"], built["stop_sequence"]),
                   ("2, 3, 4, ", "stop_sequence", "5, "))
        begun = [*count, {"role": "assistant", "content": "2, 3, 4,"}]
        expect("goes on", text_of(say(client, begun)), " 5, 6, 7.")
        counts = [ask(client, "/v1/messages/count_tokens", body_of(messages))["input_tokens"]
                  for messages in (count, begun)]
        expect("its tokens are the prompt's", counts[0] < counts[1], True)


def tools():
    """Calls of tools and what they gave."""
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        answer = say(client, ASKED, tools=[WEATHER])
        call = answer["content"][0]
        expect("call", (len(answer["content"]), call["type"], call["name"], call["input"]),
               (1, "tool_use", "weather", {"city": "Oslo"}))
        expect("reason", answer["stop_reason"], "tool_use")
        events = stream(daemon.port, ASKED, tools=[WEATHER])
        expect("input as it comes", sum("partial_json" in e.get("delta", ()) for e in events) > 3,
               True)
        built = build(events)
        expect("stream", (built["content"][0]["input"], built["stop_reason"]),
               ({"city": "Oslo"}, "tool_use"))
        none = say(client, ASKED, tools=[WEATHER], tool_choice={"type": "none"})
        expect("none", none["content"][0]["type"], "text")
        for choice in ({"type": "any"}, {"type": "tool", "name": "weather"}):
            forced = say(client, HELLO, tools=[WEATHER], tool_choice=choice, max_tokens=200)
            expect("forced", [(block["type"], block["name"]) for block in forced["content"]],
                   [("tool_use", "weather")])
        cut = say(client, HELLO, tools=[WEATHER], tool_choice={"type": "any"}, max_tokens=14)
        expect("cut", (cut["stop_reason"], cut["content"][0]["input"]), ("max_tokens", {}))
        # As a chat has it: texts and calls of one message, results before the user's text.
        messages = [*ASKED, {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": ""},
            {"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": "a"},
            {"type": "tool_use", "id": "1", "name": "weather", "input": {}},
            {"type": "tool_use", "id": "2", "name": "weather", "input": {"city": "a"}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "1", "content": "x", "is_error": True},
                {"type": "tool_result", "tool_use_id": "2",
                 "content": [{"type": "text", "text": "y"}]},
                {"type": "text", "text": "And?"}]}]
        told = [*ASKED, {"role": "assistant", "content": "a"}, {"role": "tool", "content": "x"},
                {"role": "tool", "content": "y"}, {"role": "user", "content": "And?"}]
        expect("tokens", whole(say(client, messages, max_tokens=1)["usage"]),
               chat(client, told, max_tokens=1)["usage"]["prompt_tokens"])


def thoughts():
    """A thought is a block before the text."""
    with served(TEXTS) as (client, port):
        answer = say(client, JAPAN, thinking={"type": "adaptive"}, output_config={"effort": "low"})
        expect("blocks", [block["type"] for block in answer["content"]], ["thinking", "text"])
        expect("thought", answer["content"][0], {"type": "thinking", "thinking": "of",
                                                 "signature": ""})
        expect("text", text_of(answer), "Tokyo.")
        details = answer["usage"]["output_tokens_details"]
        expect("tokens", 0 < details["thinking_tokens"] < answer["usage"]["output_tokens"], True)
        expect("stream", build(stream(port, JAPAN))["content"], answer["content"])
        back = [*JAPAN, {"role": "assistant", "content": answer["content"]}, *HELLO]
        expect("sent back", say(client, back)["role"], "assistant")


def formats():
    schema = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"],
              "additionalProperties": False}
    form = {"type": "json_schema", "schema": schema}
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        for members in ({"output_config": {"format": form, "effort": None}},
                        {"output_format": form}):
            answer = say(client, HELLO, max_tokens=100, **members)
            expect("a", list(json.loads(text_of(answer))), ["a"])


def tokens():
    """A token may come as a key."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tokens"
        path.write_text("a infer sha256:" + hashlib.sha256(b"secret").hexdigest() + "\n")
        path.chmod(0o600)
        with Daemon([*CHAT, "--token-file", str(path)]) as daemon:
            client = Client(daemon.port)
            for fields, status in (((), 401), (("x-api-key: other",), 401), (("x-api-key:",), 401),
                                   (("X-Api-Key: secret",), 200),
                                   (("x-api-key: secret", "x-api-key: secret"), 401),
                                   (("Authorization: Bearer secret",), 200),
                                   (("Authorization: Bearer x", "x-api-key: secret"), 401)):
                expect(fields, post(client, "/v1/messages", body_of(HELLO), fields), status)
            expect("its form", post(client, "/v1/messages", body_of(HELLO)), 401)
            expect("type", json.loads(client.body)["error"]["type"], "authentication_error")


def leaving():
    """A client that leaves ends its answer."""
    with Daemon(CHAT) as daemon:
        client, gone = Client(daemon.port), Client(daemon.port)
        body = json.dumps(body_of(HELLO, stream=True, max_tokens=200, ignore_eos=True)).encode()
        gone.send(build_request("POST", "/v1/messages", body))
        gone.socket.recv(100)
        gone.reset()
        wait_until("it is over", lambda: wait_idle(client) is None)


def refusals():
    rows = (({"messages": []}, "messages: expected at least one"),
            ({"messages": [{"role": "user"}]}, "each with a content"),
            ({"messages": [{"content": "a"}]}, "expected the role"),
            ({"messages": [{"role": "tool", "content": "a"}]}, "expected the role"),
            ({"messages": [{"role": "user", "content": None}]}, "expected a text or a list"),
            ({"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]},
             "messages[0].content[0]: language models take no images"),
            ({"messages": [{"role": "user", "content": [{"type": "document"}]}]},
             "expected a block of type text"),
            ({"messages": [{"role": "user", "content": [{"type": "text", "text": 5}]}]},
             "expected a text in text"),
            ({"messages": [{"role": "user", "content": [
                {"type": "tool_use", "id": "1", "name": "a", "input": {}}]}]},
             "only the assistant"),
            ({"messages": [{"role": "assistant", "content": [
                {"type": "tool_use", "id": "1", "name": "a", "input": []}]}]},
             "an object as input"),
            ({"messages": [{"role": "assistant", "content": [
                {"type": "tool_result", "tool_use_id": "1"}]}]}, "only the user"),
            ({"messages": [{"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "1", "content": [
                    {"type": "tool_result", "tool_use_id": "1"}]}]}]}, "of type text, got"),
            ({"messages": HELLO, "system": 5}, "system: expected a text or a list"),
            ({"messages": HELLO, "tools": [{"name": "a"}]}, "with name and input_schema"),
            ({"messages": HELLO, "tools": [{"type": "web_search_20250305", "name": "a"}]},
             "of type custom"),
            ({"messages": HELLO, "tool_choice": {"type": "tool"}},
             "tool_choice: expected the type"),
            ({"messages": HELLO, "tool_choice": {"type": "any"}}, "expected tools to choose from"),
            ({"messages": HELLO, "temperature": -1}, "temperature: expected"),
            ({"messages": HELLO, "stop_sequences": [""]}, "stop_sequences[0]"),
            ({"messages": HELLO, "mcp_servers": []}, "mcp_servers: it is not done here"))
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        for members, why in rows:
            for path in ("/v1/messages", "/v1/messages/count_tokens"):
                expect(why, post(client, path, {"model": "chat", **members}), 400)
                error = json.loads(client.body)
                expect("form", (error["type"], error["error"]["type"]),
                       ("error", "invalid_request_error"))
                if why not in error["error"]["message"]:
                    raise Failure(f"{members}: {error['error']['message']!r}, expected {why!r}")
        for body in (b"{", b'{"messages": [[[[', b"[]", b'{"messages": [{"role": "user", '
                     b'"content": [{"type": "tool_result", "content": [{'):
            expect("malformed", post(client, "/v1/messages", body), 400)
        expect("nobody", post(client, "/v1/messages", {"model": "x", "messages": HELLO}), 404)
        expect("type", json.loads(client.body)["error"]["type"], "not_found_error")
        for version, status in (("2023-01-01", 400), ("2023-06-01", 200), ("2026-10-21", 200),
                                ("bedrock-2023-05-31", 400), ("2023-06-0x", 400)):
            for path in ("/v1/messages?beta=true", "/v1/messages/count_tokens"):
                fields = [f"anthropic-version: {version}", "anthropic-beta: a"]
                expect(version, post(client, path, body_of(HELLO), fields), status)
        wait_idle(client)


def unfound():
    """Errors about a path below, and about a head that is refused, have the same form."""
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        for path, status in (("/v1/messages", 405), ("/v1/messages/count_tokens", 405),
                             ("/v1/messages/batches", 404)):
            client.send(build_request("GET", path))
            expect(path, client.answer(), status)
            expect("form", json.loads(client.body)["type"], "error")
        client.send(b"POST /v1/messages HTTP/1.1\r\nHost: a\r\nExpect: b\r\n\r\n")
        expect("Expect", client.answer(), 417)
        error = json.loads(client.body)
        expect("form", (error["type"], error["error"]["type"]),
               ("error", "invalid_request_error"))


def large():
    """A long history is kept once, with instructions or without: chats take it as well."""
    messages = [{"role": "user", "content": "a" * 2500000}]
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        for path, body in (("/v1/chat/completions", {"messages": messages}),
                           ("/v1/messages", {"messages": messages, "max_tokens": 1}),
                           ("/v1/messages", {"messages": messages, "system": "b"}),
                           ("/v1/messages", {"messages": HELLO, "system": "b" * 2500000}),
                           ("/v1/responses", {"input": messages}),
                           ("/v1/responses", {"input": messages, "instructions": "b"})):
            expect(path, post(client, path, {"model": "chat", **body}), 400)
            expect("why", "the prompt: it has 2500" in client.body.decode(), True)


def models():
    """Clients of Anthropic's API know models in another form; they say so in each request."""
    with Daemon([*CHAT, *ENCODER]) as daemon:
        client, version = Client(daemon.port), "anthropic-version: 2023-06-01"
        for target in ("/v1/models?limit=1000", "/v1/models/chat"):
            client.send(build_request("GET", target, None, [version]))
            expect(target, client.answer(), 200)
            answer = json.loads(client.body)
            row = answer["data"][0] if "data" in answer else answer
            expect("row", (row["type"], row["id"], row["display_name"], row["max_input_tokens"]),
                   ("model", "chat", "chat", CONTEXT))
            expect("time", row["created_at"][10] + row["created_at"][-1], "TZ")
            if "data" in answer:
                expect("one page", (len(answer["data"]), answer["has_more"], answer["first_id"],
                                    answer["last_id"]), (1, False, "chat", "chat"))
        client.send(build_request("GET", "/v1/models/nobody", None, [version]))
        expect("nobody", client.answer(), 404)
        client.send(build_request("GET", "/v1/models"))
        expect("others", client.answer(), 200)
        expect("form", json.loads(client.body)["object"], "list")
    with Daemon(ENCODER) as daemon:
        client = Client(daemon.port)
        client.send(build_request("GET", "/v1/models", None, [version]))
        expect("none", client.answer(), 200)
        expect("page", json.loads(client.body),
               {"data": [], "has_more": False, "first_id": None, "last_id": None})


CHECKS = (answers, ends, tools, thoughts, formats, tokens, leaving, refusals, unfound,
          large, models)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
