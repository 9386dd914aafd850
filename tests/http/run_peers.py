#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Clients of other servers, as they come from PyPI, against a real daemon.

Skipped without the Python packages anthropic and cohere.

usage: run_peers.py, with top_srcdir and top_builddir in the environment.
"""
import importlib
import sys

import interpreter
from run_embeddings import ENCODER, PAIRS, QUERY
from run_generate import ANSWERS, CHAT, CONTEXT, HELLO, wait_idle
from run_http import Client, Daemon, Failure, Report, expect
from run_messages import ASKED, WEATHER, whole

if not interpreter.has("anthropic", "cohere"):
    print("SKIP: the Python packages anthropic or cohere are missing")
    sys.exit(77)

anthropic = importlib.import_module("anthropic")
cohere = importlib.import_module("cohere")


def connect(daemon):
    return anthropic.Anthropic(base_url=f"http://127.0.0.1:{daemon.port}", api_key="none",
                               max_retries=0)


def messages():
    """Anthropic's client: answers, streams by both of its helpers, counts, errors."""
    with Daemon(CHAT) as daemon:
        api = connect(daemon).messages
        for row in ANSWERS[:8]:
            asked = {"model": "chat", "max_tokens": 60, "messages": row["messages"],
                     "extra_body": {"temperature": 0}}
            answer = api.create(**asked)
            expect("text", answer.content[0].text, row["answer"])
            expect("tokens", whole(answer.usage.to_dict()), len(row["ids"]))
            counted = api.count_tokens(model="chat", messages=row["messages"])
            expect("count", counted.input_tokens, len(row["ids"]))
            with api.stream(**asked) as stream:
                expect("texts", "".join(stream.text_stream), row["answer"])
                last = stream.get_final_message()
            expect("built", (last.content[0].text, last.stop_reason), (row["answer"], "end_turn"))
            kinds = [event.type for event in api.create(**asked, stream=True)]
            expect("events", (kinds[0], kinds[1], kinds[-1]),
                   ("message_start", "content_block_start", "message_stop"))
        expect("models", [row.id for row in connect(daemon).models.list()], ["chat"])
        expect("a model", connect(daemon).models.retrieve("chat").max_input_tokens, CONTEXT)
        for wrong, members in ((anthropic.BadRequestError, {"messages": []}),
                               (anthropic.NotFoundError, {"messages": HELLO, "model": "x"})):
            try:
                api.create(**{"model": "chat", "max_tokens": 9, **members})
                raise Failure("no error")
            except wrong as why:
                expect("form", why.body["type"], "error")


def tools():
    with Daemon(CHAT) as daemon:
        api = connect(daemon).messages
        asked = {"model": "chat", "max_tokens": 60, "messages": ASKED, "tools": [WEATHER],
                 "extra_body": {"temperature": 0}}
        answer = api.create(**asked)
        with api.stream(**asked) as stream:
            streamed = stream.get_final_message()
        for message in (answer, streamed):
            call = message.content[0]
            expect("call", (call.type, call.name, call.input, message.stop_reason),
                   ("tool_use", "weather", {"city": "Oslo"}, "tool_use"))
        result = {"type": "tool_result", "tool_use_id": answer.content[0].id, "content": "sunny"}
        again = api.create(**{**asked, "messages": [*ASKED, answer.to_param(),
                                                   {"role": "user", "content": [result]}]})
        expect("goes on", again.role, "assistant")


def leaving():
    with Daemon(CHAT) as daemon:
        with connect(daemon).messages.stream(model="chat", max_tokens=200, messages=HELLO,
                                             extra_body={"ignore_eos": True}) as stream:
            next(iter(stream.text_stream))
        wait_idle(Client(daemon.port))


def rankings():
    with Daemon(ENCODER) as daemon:
        api = cohere.ClientV2(api_key="none", base_url=f"http://127.0.0.1:{daemon.port}")
        documents = [row["text"] for row in PAIRS[:5]]
        vectors = api.embed(model="enc", texts=documents, input_type="search_document",
                            embedding_types=["float"])
        expect("vectors", [len(row) for row in vectors.embeddings.float_], [32] * 5)
        first = cohere.Client(api_key="none", base_url=f"http://127.0.0.1:{daemon.port}")
        plain = first.embed(model="enc", texts=documents, input_type="search_document")
        expect("plain", plain.embeddings, vectors.embeddings.float_)
        answer = api.rerank(model="enc.score", query=QUERY, documents=documents, top_n=2,
                            max_tokens_per_doc=4096, priority=1)
        best = sorted(range(5), key=lambda i: -PAIRS[i]["logit"])[:2]
        expect("best", [row.index for row in answer.results], best)
        try:
            api.rerank(model="nobody", query=QUERY, documents=documents)
            raise Failure("no error")
        except cohere.NotFoundError as why:
            expect("form", list(why.body), ["message"])


def chats():
    """Cohere's client: answers, streams, calls, errors."""
    weather = {"type": "function", "function": {
        "name": "weather", "description": "of a city", "parameters": WEATHER["input_schema"]}}
    with Daemon(CHAT) as daemon:
        api = cohere.ClientV2(api_key="none", base_url=f"http://127.0.0.1:{daemon.port}")
        for row in ANSWERS[:4]:
            asked = {"model": "chat", "messages": row["messages"], "k": 1, "max_tokens": 60}
            answer = api.chat(**asked)
            expect("text", answer.message.content[0].text, row["answer"])
            expect("tokens", answer.usage.tokens.input_tokens, len(row["ids"]))
            events = list(api.chat_stream(**asked))
            expect("texts", "".join(event.delta.message.content.text for event in events
                                    if event.type == "content-delta"), row["answer"])
            expect("last", (events[-1].type, events[-1].delta.finish_reason),
                   ("message-end", "COMPLETE"))
        asked = {"model": "chat", "messages": ASKED, "tools": [weather], "k": 1}
        answer = api.chat(**asked)
        call = answer.message.tool_calls[0]
        expect("call", (call.function.name, call.function.arguments, answer.finish_reason),
               ("weather", '{"city": "Oslo"}', "TOOL_CALL"))
        told = "".join(event.delta.message.tool_calls.function.arguments
                       for event in api.chat_stream(**asked) if event.type == "tool-call-delta")
        expect("arguments", told, call.function.arguments)
        result = {"role": "tool", "tool_call_id": call.id, "content": [
            {"type": "document", "document": {"data": {"sky": "clear"}}}]}
        again = api.chat(model="chat", messages=[*ASKED, answer.message, result], max_tokens=9)
        expect("goes on", again.message.role, "assistant")
        try:
            api.chat(model="chat", messages=[])
            raise Failure("no error")
        except cohere.BadRequestError as why:
            expect("form", list(why.body), ["message"])


CHECKS = (messages, tools, leaving, rankings, chats)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
