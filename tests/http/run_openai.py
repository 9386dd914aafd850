#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""OpenAI's own client against a real daemon with a language model.

Skipped without the Python package openai.

usage: run_openai.py, with top_srcdir and top_builddir in the environment.
"""
import json
import sys

from run_embeddings import ENCODER, SINGLE, expect_close, normalized
from run_generate import ANSWERS, CHAT, HELLO, wait_idle
from run_http import Client, Daemon, Failure, Report, expect
from run_thinking import JAPAN, OPENED, thinker

try:
    import openai
except ImportError:
    print("SKIP: the Python package openai is missing")
    sys.exit(77)


def connect(daemon):
    return openai.OpenAI(base_url=f"http://127.0.0.1:{daemon.port}/v1", api_key="none",
                         max_retries=0)


def chats():
    with Daemon(CHAT) as daemon:
        api = connect(daemon)
        for row in ANSWERS:
            answer = api.chat.completions.create(model="chat", messages=row["messages"],
                                                 temperature=0)
            expect("answer", answer.choices[0].message.content, row["answer"])
            expect("reason", answer.choices[0].finish_reason, row["finish_reason"])
            expect("tokens", answer.usage.prompt_tokens, len(row["ids"]))
            pieces = api.chat.completions.create(
                model="chat", messages=row["messages"], temperature=0, stream=True,
                stream_options={"include_usage": True})
            text, usage = "", None
            for piece in pieces:
                usage = piece.usage or usage
                text += "".join(c.delta.content or "" for c in piece.choices)
            expect("stream", text, row["answer"])
            expect("usage", usage.completion_tokens, len(row["answer_ids"]) + 1)
        marks = api.chat.completions.create(model="chat", messages=HELLO, temperature=0,
                                            logprobs=True, top_logprobs=2, n=2, seed=3)
        expect("logprobs", len(marks.choices[1].logprobs.content[0].top_logprobs), 2)


def queries():
    """Parameters that other servers want, such as those of Azure, are not looked at."""
    with Daemon(CHAT) as daemon:
        api = connect(daemon).with_options(default_query={"api-version": "2024-10-21"})
        expect("models", "chat" in [model.id for model in api.models.list()], True)
        row = ANSWERS[0]
        answer = api.chat.completions.create(model="chat", messages=row["messages"], temperature=0,
                                             extra_query={"a": "b c"})
        expect("answer", answer.choices[0].message.content, row["answer"])


def responses():
    """The other form of chats, and its events, as the client builds them."""
    tool = {"type": "function", "name": "weather", "description": "of a city", "strict": None,
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
    with Daemon(CHAT) as daemon:
        api = connect(daemon)
        for row in ANSWERS:
            answer = api.responses.create(model="chat", input=row["messages"], temperature=0,
                                          store=False, metadata={"a": "b"})
            expect("text", answer.output_text, row["answer"])
            expect("state", (answer.status, answer.metadata), ("completed", {"a": "b"}))
            expect("tokens", answer.usage.input_tokens, len(row["ids"]))
            cached = answer.usage.input_tokens_details.cached_tokens
            expect("cached", cached < len(row["ids"]), True)
            text, last = "", None
            for event in api.responses.create(model="chat", input=row["messages"], temperature=0,
                                              stream=True):
                text += event.delta if event.type == "response.output_text.delta" else ""
                last = event
            expect("stream", text, row["answer"])
            expect("end", last.response.output_text, row["answer"])
            with api.responses.stream(model="chat", input=row["messages"],
                                      temperature=0) as events:
                expect("built", events.get_final_response().output_text, row["answer"])
        called = api.responses.create(model="chat", input="How is the weather in France?",
                                      tools=[tool], temperature=0)
        call = called.output[0]
        expect("call", (call.type, call.name), ("function_call", "weather"))
        after = api.responses.create(
            model="chat", temperature=0, max_output_tokens=5, tools=[tool],
            instructions="Be brief.",
            input=[{"role": "user", "content": "How is the weather in France?"}, call,
                   {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}])
        expect("limit", after.usage.output_tokens <= 5, True)
        shaped = api.responses.create(
            model="chat", input="Hello!", temperature=0,
            text={"format": {"type": "json_schema", "name": "x", "schema": {
                "type": "object", "properties": {"n": {"enum": ["one"]}}, "required": ["n"],
                "additionalProperties": False}}})
        expect("shape", json.loads(shaped.output_text), {"n": "one"})
        for members in ({"previous_response_id": "resp_1"}, {"background": True}):
            try:
                api.responses.create(model="chat", input="a", **members)
                raise Failure(f"{members} is done")
            except openai.BadRequestError as error:
                expect("type", error.type, "invalid_request_error")


def thoughts():
    with thinker(OPENED) as path, Daemon(["--model", f"chat={path}"]) as daemon:
        api = connect(daemon)
        message = api.chat.completions.create(
            model="chat", messages=JAPAN, temperature=0,
            reasoning_effort="low").choices[0].message
        expect("chat", (message.reasoning_content, message.content),
               ("The capital of Japan", "Tokyo."))
        answer = api.responses.create(model="chat", input=JAPAN, temperature=0,
                                      reasoning={"effort": "low"})
        expect("response", (answer.output[0].content[0].text, answer.output_text),
               ("The capital of Japan", "Tokyo."))
        expect("effort", answer.reasoning.effort, "low")
        with api.responses.stream(model="chat", input=JAPAN, temperature=0) as events:
            kinds = {event.type for event in events}
            built = events.get_final_response()
        expect("events", "response.reasoning_text.delta" in kinds, True)
        expect("built", (built.output[0].content[0].text, built.output_text),
               ("The capital of Japan", "Tokyo."))
        again = api.responses.create(model="chat", temperature=0, input=[
            *JAPAN, *answer.output, {"role": "user", "content": "Hello!"}])
        expect("sent back", again.status, "completed")


def embeddings():
    """The client asks for base64 by itself and makes floats of it."""
    with Daemon(ENCODER) as daemon:
        api = connect(daemon)
        answer = api.embeddings.create(model="enc", input=[row["text"] for row in SINGLE[:4]])
        plain = api.embeddings.create(model="enc", input=[row["text"] for row in SINGLE[:4]],
                                      encoding_format="float", dimensions=8)
        for row, item, short in zip(SINGLE, answer.data, plain.data):
            expect_close("vector", item.embedding, normalized(row["mean"]))
            expect_close("short", short.embedding, normalized(item.embedding[:8]))
        expect("usage", answer.usage.prompt_tokens, sum(len(row["ids"]) for row in SINGLE[:4]))
        try:
            api.embeddings.create(model="enc", input=SINGLE[-1]["text"])
            raise Failure("a text that is too long is taken")
        except openai.BadRequestError as error:
            expect("numbers", "74 tokens" in str(error), True)


def completions():
    row = ANSWERS[2]
    with Daemon(CHAT) as daemon:
        api = connect(daemon)
        answer = api.completions.create(model="chat", prompt=row["prompt"], temperature=0,
                                        max_tokens=60, logprobs=1)
        expect("answer", answer.choices[0].text, row["answer"])
        expect("logprobs", len(answer.choices[0].logprobs.tokens), len(row["answer_ids"]) + 1)
        pieces = api.completions.create(model="chat", prompt=row["ids"], temperature=0,
                                        max_tokens=60, stream=True, stop=["6"])
        expect("stream", "".join(p.choices[0].text for p in pieces), "2, 3, 4, 5, ")
        expect("models", "chat" in [m.id for m in api.models.list()], True)
        expect("a model", api.models.retrieve("chat").id, "chat")


def errors():
    with Daemon(CHAT) as daemon:
        api = connect(daemon)
        for wanted, members in ((openai.NotFoundError, {"model": "nope"}),
                                (openai.BadRequestError, {"temperature": -1}),
                                (openai.BadRequestError, {"messages": HELLO * 200})):
            try:
                api.chat.completions.create(**{"model": "chat", "messages": HELLO, **members})
                raise Failure(f"{members}: no error")
            except wanted as error:
                expect("a message", bool(error.body["message"]), True)


def cancelling():
    with Daemon(CHAT) as daemon:
        api = connect(daemon)
        pieces = api.chat.completions.create(model="chat", messages=HELLO, temperature=0, n=64,
                                             stream=True, extra_body={"ignore_eos": True})
        next(iter(pieces))
        pieces.close()
        wait_idle(Client(daemon.port))


def main():
    report = Report()
    report.run_all((chats, queries, responses, thoughts, completions, embeddings, errors,
                    cancelling))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
