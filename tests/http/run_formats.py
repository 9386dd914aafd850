#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What answers of language models have to be: calls of tools, schemas, expressions, rules; and the
errors of requests, tokenizers and chat templates.

The model is that of run_generate.py, whose tests have clients that wait, leave and crowd.

usage: run_formats.py, with top_srcdir and top_builddir in the environment.
"""
import json
import re
import shutil
import sys
import tempfile
from pathlib import Path

from run_generate import (ADD, ANSWERS, CHAT, CONTEXT, FOLDER, HELLO, SCHEMA, VOCAB, as_schema, ask,
                          chat, check_schema, complete, delta_text, joined_calls, post, stream,
                          wait_idle)
from run_http import TIMEOUT_S, Client, Daemon, Report, build_request, expect


def tools():
    """A call of a tool of the request is found, in a stream too; of another tool it is text."""
    row = ANSWERS[-1]
    given = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
             for name in ("other", "weather")]
    function = {"name": "weather", "arguments": '{"city": "Oslo"}'}
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        choice = chat(client, row["messages"], tools=given)["choices"][0]
        expect("reason", choice["finish_reason"], "tool_calls")
        expect("content", choice["message"]["content"], None)
        expect("calls", [c["function"] for c in choice["message"]["tool_calls"]], [function])
        events = stream(daemon.port, "/v1/chat/completions",
                        {"model": "chat", "messages": row["messages"], "temperature": 0,
                         "tools": given})
        expect("in a stream", [c["function"] for c in joined_calls(events)], [function])
        pieces = sum("tool_calls" in e["choices"][0]["delta"] for e in events[:-1])
        expect("as it comes", pieces > 3, True)
        expect("no text", delta_text(events), "")
        expect("reason", events[-2]["choices"][0]["finish_reason"], "tool_calls")
        for members in ({"tools": given[:1]}, {"tools": given, "tool_choice": "none"}, {}):
            choice = chat(client, row["messages"], **members)["choices"][0]
            expect("text", choice["message"]["content"], row["answer"])
            expect("reason", choice["finish_reason"], "stop")
        plain = chat(client, HELLO, tools=given)["choices"][0]["message"]
        expect("no call", (plain["content"], "tool_calls" in plain), (ANSWERS[0]["answer"], False))
        call = {"role": "assistant", "tool_calls": [
            {"id": "1", "type": "function", "function": function}]}
        said = []
        for content in ("", None):  # the template adds it to a text, so null counts as empty
            history = [*row["messages"], {**call, "content": content},
                       {"role": "tool", "content": "rain"}]
            said.append(chat(client, history, tools=given)["choices"][0]["message"]["content"])
        expect("history", said[1], said[0])
        wait_idle(client)


def cut_calls(client, port, members):
    """A call that max_tokens cuts is a call, as far as it goes, and ends with "length"; a stop text
    cuts it as well. A stream says the same."""
    def call(**more):
        expect("status", post(client, "/v1/chat/completions", {**members, **more}), 200)
        choice = json.loads(client.body)["choices"][0]
        events = stream(port, "/v1/chat/completions", {**members, **more})
        function = choice["message"]["tool_calls"][0]["function"]
        expect("streamed", [c["function"] for c in joined_calls(events)], [function])
        expect("no text", (choice["message"]["content"], delta_text(events)), (None, ""))
        expect("the same reason", events[-2]["choices"][0]["finish_reason"],
               choice["finish_reason"])
        return choice["finish_reason"], function["name"], function["arguments"]

    reason, name, whole = call()
    expect("whole", (reason, name, "day" in json.loads(whole)), ("tool_calls", "plan", True))
    lengths = set()
    for count in range(1, 100):
        reason, name, arguments = call(max_tokens=count)
        expect("name", name, "plan")
        expect("begins as the whole", whole.startswith(arguments), True)
        lengths.add(len(arguments))
        if reason == "tool_calls":
            break
        expect("reason", reason, "length")
    expect("all of it at last", (reason, arguments), ("tool_calls", whole))
    expect("parts of it before", len(lengths) > 2, True)
    expect("a stop text", call(stop=["day"]), ("stop", "plan", whole[:whole.index("day")]))


def forced_calls():
    """An answer that has to be a call is one, with the arguments that the tool has."""
    def tool(name, parameters):
        return {"type": "function", "function": {"name": name, "parameters": parameters}}

    def named(name):
        return {"type": "function", "function": {"name": name}}

    days = {"type": "object", "properties": {"day": {"$ref": "#/$defs/day"}}, "required": ["day"],
            "$defs": {"day": {"enum": ["Monday", "Friday"]}}}
    city = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 6}},
            "required": ["city"], "$defs": {"day": {"enum": ["never"]}}}
    tools = [tool("plan", days), tool("weather", city), tool("stop", {}), tool("rest", None)]

    def call_of(answer):
        choice = answer["choices"][0]
        expect("reason", choice["finish_reason"], "tool_calls")
        expect("one call", (choice["message"]["content"], len(choice["message"]["tool_calls"])),
               (None, 1))
        function = choice["message"]["tool_calls"][0]["function"]
        return function["name"], json.loads(function["arguments"])

    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        for seed in range(8):
            hot = {"temperature": 5, "seed": seed, "tools": tools}
            name, arguments = call_of(chat(client, HELLO, **hot, tool_choice=named("plan")))
            expect("plan", (name, arguments["day"] in ("Monday", "Friday")), ("plan", True))
            name, arguments = call_of(chat(client, HELLO, **hot, tool_choice=named("weather")))
            expect("weather", (name, len(arguments["city"]) <= 6), ("weather", True))
            name, arguments = call_of(chat(client, HELLO, **{**hot, "tools": tools[:2]},
                                           tool_choice="required"))
            expect("any", name in ("plan", "weather"), True)
        events = stream(daemon.port, "/v1/chat/completions",
                        {"model": "chat", "messages": HELLO, "temperature": 0, "tools": tools,
                         "tool_choice": named("plan")})
        expect("in a stream", [c["function"]["name"] for c in joined_calls(events)], ["plan"])
        expect("no text", delta_text(events), "")
        cut_calls(client, daemon.port, {"model": "chat", "messages": HELLO, "temperature": 0,
                                        "tools": tools, "tool_choice": named("plan")})
        # A list that is larger than what a request keeps of its body; members named like a tool.
        many = [tool(f"tool{i}", {"description": "x" * 1000}) for i in range(99)]
        nested = {"type": "function", "function": {"name": "x", "function": {"function": {}}}}
        # The name of a function is the one in it, whatever stands around it.
        around = {"name": "other", **tool("x", {}), "parameters": {}}
        within = {"type": "function", "function": {"function": {"name": "g"}, "name": "y"}}
        for others in (many, [nested], [around], [within]):
            name, arguments = call_of(chat(client, HELLO, tools=[*others, tools[0]],
                                           temperature=0, tool_choice=named("plan")))
            expect("behind others", (name, arguments["day"] in ("Monday", "Friday")),
                   ("plan", True))
        for given in ({**tools[0], "name": "other"}, {"name": "other", **tools[0]}):
            name, _ = call_of(chat(client, HELLO, tools=[given], tool_choice="required"))
            expect("a name beside", name, "plan")
        place = {"$ref": "#/$defs/place"}
        with_place = {"$defs": {"place": {"type": "object"}}}
        for parameters in (True, {"description": "anything"}, {**place, **with_place},
                           {"anyOf": [{"properties": {}}, place], **with_place},
                           {"anyOf": [{"properties": {}}] * 300}):
            name, arguments = call_of(chat(client, HELLO, tools=[tool("f", parameters)],
                                           tool_choice="required"))
            expect("an object", (name, isinstance(arguments, dict)), ("f", True))
        for parameters in ({"type": "string"}, {"type": ["object", "null"]}, {"enum": [{}, 1]},
                           {"type": "array", "items": {}}, {"anyOf": [{"type": "object"}, True]}):
            expect("no object", post(client, "/v1/chat/completions", {
                "model": "chat", "messages": HELLO, "tools": [tool("f", parameters)],
                "tool_choice": "required"}), 400)
            expect("why", "schema.f: the arguments of a function are of type 'object'" in
                   json.loads(client.body)["error"]["message"], True)
        for members, text in (
                ({"tool_choice": "required"}, "tool_choice: expected tools"),
                ({"tools": [], "tool_choice": "required"}, "tools: expected at least one"),
                ({"tools": tools, "tool_choice": named("nope")}, "with the name 'nope'"),
                ({"tools": tools, "tool_choice": named("")}, "and the name of one"),
                ({"tools": tools, "tool_choice": {"type": "allowed_tools"}}, "tool_choice"),
                ({"tools": tools, "tool_choice": "any"}, "\"required\" or a function"),
                ({"tools": tools, "tool_choice": 5}, "tool_choice"),
                ({"tools": [5], "tool_choice": "required"}, "tools: [0]: expected a function"),
                ({"tools": [tool("f", {"properties": {"a": {"not": {"const": 1}}}})],
                  "tool_choice": "required"}, "tools: schema.f.a: 'not' is supported as {} alone"),
                ({"tools": tools, "tool_choice": "required", "guided_regex": "a"},
                 "cannot have another format")):
            body = {"model": "chat", "messages": HELLO, **members}
            expect(text, post(client, "/v1/chat/completions", body), 400)
            message = json.loads(client.body)["error"]["message"]
            expect(text, text in message or message, True)
        wait_idle(client)


def tokens_of(client, text):
    return ask(client, "/v2/models/chat/tokenize", {"text": text, "add_special": False})["tokens"]


def formats():
    """What a constrained answer has to be, it is, whenever it was not cut."""
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        reasons = []

        def constrained(check, path="/v1/chat/completions", **members):
            body = {"model": "chat", "max_tokens": 120, **members}
            body.update({"messages": HELLO} if "chat" in path else {"prompt": "Hello"})
            choices = ask(client, path, body)["choices"]
            texts = [c["message"]["content"] if "chat" in path else c["text"] for c in choices]
            for choice, text in zip(choices, texts):
                reasons.append(choice["finish_reason"])
                if choice["finish_reason"] == "stop":
                    check(text)
            if "seed" in members or members["temperature"] == 0:
                events = stream(daemon.port, path, body)
                expect("stream", [delta_text(events, i) for i in range(len(texts))], texts)
            return texts

        def check_object(text):
            expect("an object", type(json.loads(text)), dict)

        anything = {"type": "json_object"}
        for temperature in (0, 0.7, 1, 3):
            for seed in range(4):
                constrained(check_object, temperature=temperature, seed=seed,
                            response_format=anything)
                constrained(check_schema, temperature=temperature, seed=seed,
                            response_format=as_schema(SCHEMA))
        constrained(check_object, "/v1/completions", temperature=1, seed=5, n=3, logprobs=2,
                    response_format=anything)
        ends = ['"', '}', '":', '"}']
        liked = {str(i): 8 for text in ends for i in tokens_of(client, text)}
        before = len(reasons)
        for seed in range(8):
            constrained(check_object, temperature=1, seed=seed, response_format=anything,
                        logit_bias=liked)
        expect("some objects end", "stop" in reasons[before:], True)
        texts = constrained(check_schema, temperature=2, seed=6, n=4, presence_penalty=1,
                            repetition_penalty=1.5, response_format=as_schema(SCHEMA))
        expect("choices differ", len(set(texts)) > 1, True)
        short = as_schema({"type": "object", "properties": {"a": {"enum": [1, True, None]}},
                           "required": ["a"], "additionalProperties": False})
        liked = {str(ANSWERS[0]["answer_ids"][0]): 100}
        for members in ({"logit_bias": liked}, {"ignore_eos": True}, {"top_k": 3}, {"top_p": 0.5},
                        {"logprobs": True, "top_logprobs": 3}):
            before = len(reasons)
            constrained(lambda text: expect("a", json.loads(text)["a"] in (1, True, None), True),
                        temperature=1, seed=7, response_format=short, **members)
            expect(f"{members}", reasons[before:], ["stop"])
        tagged = as_schema({"discriminator": {"propertyName": "kind"}, "oneOf": [
            {"type": "object", "properties": {"kind": {"const": kind}, "x": {"enum": [1, 2]}},
             "required": ["kind", "x"], "additionalProperties": True} for kind in "ab"]})
        before = len(reasons)
        constrained(lambda text: expect("x", json.loads(text)["x"] in (1, 2), True),
                    temperature=1, seed=8, response_format=tagged)
        expect("a union with a tag", reasons[before:], ["stop"])
        for path, given in (("/v1/completions", "prompt"), ("/v1/chat/completions", "messages")):
            answer = ask(client, path, {"model": "chat", "guided_regex": "[ab]{3}-[0-9]{2}",
                                        given: "x" if given == "prompt" else HELLO})
            choice = answer["choices"][0]
            text = choice["text"] if given == "prompt" else choice["message"]["content"]
            expect(text, bool(re.fullmatch("[ab]{3}-[0-9]{2}", text)), True)
            expect("it is complete", choice["finish_reason"], "stop")
        texts = ["", "yes", "yes, é", 'no "\n']
        for members in ({"guided_choice": texts}, {"structured_outputs": {"choice": texts}},
                        {"structured_outputs": {"regex": "", "json": None, "other": [1]}},
                        {"structured_outputs": {"json": {"const": ""}, "json_object": False}},
                        {"structured_outputs": {"grammar": 'root ::= "yes"'}}):
            before = len(reasons)
            constrained(lambda text: expect(text, text in [*texts, '""'], True), temperature=2,
                        seed=9, **members)
            expect(f"{members}", reasons[before:], ["stop"])
        constrained(check_object, temperature=1, seed=5,
                    structured_outputs={"json_object": True})
        generate = "/v2/models/chat/generate"
        answer = ask(client, generate, {"text_input": "x", "parameters": {
            "guided_json": json.dumps({"const": {"a": [1]}})}})
        expect("const", json.loads(answer["text_output"]), {"a": [1]})
        answer = ask(client, "/v1/completions", {"model": "chat", "prompt": "x",
                                                 "guided_regex": ""})
        expect("nothing", answer["choices"][0]["text"], "")
        cut = chat(client, HELLO, max_tokens=2, response_format=as_schema(SCHEMA))
        expect("cut", cut["choices"][0]["finish_reason"], "length")
        expect("some end", reasons.count("stop") > 10, True)
        for members, text in (
                ({"response_format": as_schema({"type": "object", "properties": {
                    "days": {"type": "integer", "not": {"const": 1}}}})},
                 "response_format.json_schema.schema.days: 'not' is supported as {} alone"),
                ({"response_format": {"type": "json_schema"}}, "schema is missing"),
                ({"response_format": as_schema([])}, "response_format.json_schema.schema"),
                ({"response_format": as_schema({"type": "nope"})}, "response_format.json_schema"),
                # Limits and loops of the whole grammar, too, are said of the schema.
                ({"response_format": as_schema({"$ref": "#"})},
                 "response_format.json_schema.schema: a rule calls itself"),
                ({"response_format": as_schema({"properties": {
                    "a": {"type": "string", "pattern": "(a)\\1"}}})},
                 "response_format.json_schema.schema.a: "),
                ({"response_format": {}}, "json_object"), ({"response_format": "x"}, "an object"),
                ({"guided_regex": "(a)\\1"}, "guided_regex: "),
                ({"guided_regex": "((a{1000}){1000}){1000}"}, "guided_regex: "),
                ({"guided_json": "{"}, "guided_json: "),
                ({"guided_choice": []}, "guided_choice: expected a list of texts that is not"),
                ({"guided_choice": ["a", 1]}, "guided_choice: expected a list of texts, got"),
                ({"guided_choice": ["a" * 5000]}, "guided_choice: a grammar has more than 4000 "
                 "levels; each byte of a text is one"),
                ({"structured_outputs": {"choice": "a"}}, "structured_outputs"),
                ({"structured_outputs": {"regex": "(a)\\1"}}, "structured_outputs.regex: "),
                ({"structured_outputs": {"structural_tag": "{}"}},
                 "structured_outputs.structural_tag: expected json, regex, choice or grammar"),
                ({"structured_outputs": {"regex": "a", "choice": ["a"]}}, "one of response_format"),
                ({"guided_regex": "a", "guided_json": {}},
                 "one of response_format, structured_outputs, grammar and the members guided_...")):
            expect(text, post(client, "/v1/chat/completions",
                              {"model": "chat", "messages": HELLO, **members}), 400)
            error = json.loads(client.body)["error"]
            expect("form", sorted(error), ["code", "message", "param", "type"])
            if text not in error["message"]:
                expect("message", error["message"], text)
        wait_idle(client)


def rules():
    """Rules in GBNF, under both names, by all routes."""
    gbnf = 'root ::= answer ("," answer)?\nanswer ::= "yes" | "no" | "(" root ")"\n'
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        for name in ("grammar", "guided_grammar"):
            for seed in range(8):
                answer = ask(client, "/v1/chat/completions",
                             {"model": "chat", "messages": HELLO, "seed": seed, "temperature": 2,
                              "max_tokens": 60, name: gbnf})["choices"][0]
                text = answer["message"]["content"]
                if answer["finish_reason"] == "stop":
                    expect("balanced", text.count("("), text.count(")"))
                    expect("words", bool(re.fullmatch(r"[(]*(yes|no)[(),yesno]*", text)), True)
        text = ask(client, "/v2/models/chat/generate",
                   {"text_input": "x", "parameters": {"grammar": 'root ::= "é" [0-9]{3}',
                                                      "temperature": 0}})["text_output"]
        expect("generate", bool(re.fullmatch("é[0-9]{3}", text)), True)
        for bad, why in (('root ::= x', "there is no rule 'x'"), ("", "there is no rule 'root'"),
                         ('root ::= root "a"', "before its first"),
                         ("root ::= " + "(" * 300, "too deep"),
                         ('root ::= ("a"{9000}){9000}', "more than")):
            status = post(client, "/v1/completions",
                          {"model": "chat", "prompt": "x", "grammar": bad})
            message = json.loads(client.body)["error"]["message"]
            expect(bad[:20], (status, why in message or message), (400, True))
        expect("two", post(client, "/v1/completions", {
            "model": "chat", "prompt": "x", "grammar": gbnf, "guided_regex": "a"}), 400)


# ---------------------------------------------------------------- mistakes

def model_left_out():
    """A request without a model is for the only one that can answer."""
    forms = (("/v1/completions", {"prompt": "x", "max_tokens": 2}),
             ("/v1/chat/completions", {"messages": HELLO, "max_tokens": 2}),
             ("/v1/responses", {"input": "x", "max_output_tokens": 16, "model": None}))
    with Daemon([*CHAT, "--model", f"add={ADD}"]) as daemon:
        client = Client(daemon.port)
        for path, body in forms:
            expect(path, ask(client, path, body)["model"], "chat")
    for models, status, text in (
            ([*CHAT, "--model", f"other={FOLDER / 'model.pte'}"], 400,
             "model is missing: several could answer, which GET /v1/models lists"),
            ([ADD], 404, "model is missing: no language model is loaded")):
        with Daemon(models) as daemon:
            client = Client(daemon.port)
            for path, body in forms:
                expect(path, post(client, path, body), status)
                expect("why", text in json.loads(client.body)["error"]["message"], True)


def refusals():
    """Each mistake has its error, in OpenAI's form, and the daemon goes on."""
    ids = [5] * CONTEXT
    with Daemon([*CHAT, "--model", f"add={ADD}"]) as daemon:
        client = Client(daemon.port)
        for path, body, status, text in (
                ("completions", {"model": "nope", "prompt": "x"}, 404, "no model 'nope'"),
                ("completions", {"model": "add", "prompt": "x"}, 400, "no language model"),
                ("completions", {"model": "chat"}, 400, "prompt is missing"),
                ("completions", {"model": "chat", "prompt": ""}, 400, "no tokens"),
                ("completions", {"model": "chat", "prompt": []}, 400, "missing or empty"),
                ("completions", {"model": "chat", "prompt": ids}, 400,
                 "the prompt has 256 tokens, the context of model 'chat' has 256"),
                ("completions", {"model": "chat", "prompt": "word " * 9000}, 400, "has 256"),
                ("chat/completions", {"model": "chat", "messages": [
                    {"role": "user", "content": "x" * 1100000}]}, 400,
                 "256 tokens, which are at most 65536 bytes"),
                ("completions", {"model": "chat", "prompt": "x" * 65537}, 400,
                 "the prompt: it has 65537 bytes, expected at most 256 tokens"),
                ("completions", {"model": "chat", "prompt": [VOCAB]}, 400, "below 448, got 448"),
                ("completions", {"model": "chat", "prompt": [-1]}, 400, "prompt[0]"),
                ("completions", {"model": "chat", "prompt": {"a": 1}}, 400, "prompt"),
                ("completions", {"model": "chat", "prompt": ["x"] * 65}, 400, "at most 64"),
                ("completions", {"model": "chat", "prompt": "x", "temperature": -1}, 400,
                 "temperature: expected a number from 0 to 100"),
                ("completions", {"model": "chat", "prompt": "x", "top_p": 1.5}, 400, "top_p"),
                ("completions", {"model": "chat", "prompt": "x", "n": 0}, 400, "n: expected"),
                ("completions", {"model": "chat", "prompt": "x", "n": 1000}, 400, "n: expected"),
                ("completions", {"model": "chat", "prompt": "x", "max_tokens": "5"}, 400, ""),
                ("completions", {"model": "chat", "prompt": "x", "best_of": 2}, 400, "best_of"),
                ("completions", {"model": "chat", "prompt": "x", "n": 3, "best_of": 4}, 400,
                 "best_of: expected n (3), got 4"),
                ("completions", {"model": "chat", "prompt": "x", "suffix": "y"}, 400,
                 "suffix: the tokenizer of model 'chat' has no tokens for a gap"),
                ("completions", {"model": "chat", "prompt": "x", "logprobs": 21}, 400, "0 to 20"),
                ("completions", {"model": "chat", "prompt": "x", "stop": [""]}, 400, "stop"),
                ("completions", {"model": "chat", "prompt": "x", "stop": ["x"] * 17}, 400, "16"),
                ("completions", {"model": "chat", "prompt": "x", "logit_bias": {"448": 1}}, 400,
                 "logit_bias: expected ids below 448"),
                ("completions", {"model": "chat", "prompt": "x", "logit_bias": {"a": 1}}, 400, ""),
                ("completions", {"model": "chat", "prompt": "x",
                                 "logit_bias": {str(i): 1 for i in range(1025)}}, 400,
                 "logit_bias.1024: expected at most 1024 ids"),
                ("completions", b'{"model":"chat","prompt":"x","logit_bias":{"7":1,"8":1,"7":2}}',
                 400, "logit_bias.7: the id repeats"),
                ("completions", {"model": "chat", "prompt": "x", "logit_bias": {"1": 101}}, 400,
                 ""),
                ("completions", {"model": "chat", "prompt": "x", "stop_token_ids": [500]}, 400,
                 "stop_token_ids"),
                ("completions", b'{"model":"chat","prompt":"\\ud800"}', 400, "surrogate"),
                ("completions", b'{"model":"chat","prompt":"\xff"}', 400, "UTF-8"),
                ("completions", b'{"model":"chat","prompt":"x"', 400, ""),
                ("completions", b'{"model":"chat","prompt":"x","prompt":"y"}', 400, ""),
                ("completions", b"", 400, ""), ("completions", b"[]", 400, "object"),
                ("chat/completions", {"model": "chat"}, 400, "messages is missing"),
                ("chat/completions", {"model": "chat", "messages": []}, 400, "at least one"),
                ("chat/completions", {"model": "chat", "messages": "x"}, 400, "an array"),
                ("chat/completions", {"model": "chat", "messages": [1]}, 400, "messages[0]"),
                ("chat/completions", {"model": "chat", "messages": [{"role": 1}]}, 400,
                 "messages[0]"),
                ("chat/completions", {"model": "chat", "messages": [{"role": "user",
                                                                     "content": 5}]}, 400,
                 "messages[0]"),
                ("chat/completions", {"model": "chat", "messages": [{"role": "user"}]}, 400,
                 "messages[0]: content is missing"),
                ("chat/completions", {"model": "chat", "messages": [{"role": "assistant"}]}, 400,
                 "chat template: line 1, column"),
                ("chat/completions", {"model": "chat", "messages": HELLO * 200}, 400,
                 "the context of model 'chat' has 256"),
                ("chat/completions", {"model": "chat", "messages": HELLO, "top_logprobs": 2}, 400,
                 "top_logprobs"),
                ("chat/completions", {"model": "chat", "messages": HELLO,
                                      "response_format": {"type": "nope"}}, 400,
                 "response_format")):
            expect(f"{body}"[:80], post(client, f"/v1/{path}", body), status)
            error = json.loads(client.body)["error"]
            expect(f"{body}"[:80], sorted(error), ["code", "message", "param", "type"])
            if text not in error["message"]:
                expect(f"{body}"[:80], error["message"], text)
        for path, body, status in (("chat/generate", {"text_input": 5}, 400),
                                   ("chat/generate", {}, 400), ("nope/generate", {}, 404),
                                   ("add/generate", {"text_input": "x"}, 400),
                                   ("chat/tokenize", {}, 400), ("add/tokenize", {"text": "x"}, 400),
                                   ("chat/tokenize", {"text": "x", "y": 1}, 400),
                                   ("chat/detokenize", {"tokens": [VOCAB]}, 400),
                                   ("chat/detokenize", {"tokens": "x"}, 400)):
            expect(f"{path} {body}", post(client, f"/v2/models/{path}", body), status)
            expect("form", isinstance(json.loads(client.body)["error"], str), True)
        for route in ("generate", "generate_stream"):
            for body, text in (({}, "text_input is missing or empty"),
                               ({"text_input": 5}, "text_input: "),
                               ({"prompt": "x"}, "text_input is missing or empty"),
                               ({"text_input": ["x", 5]}, "text_input[0]: expected"),
                               ({"text_input": ""}, "no tokens"),
                               ({"text_input": "x", "parameters": {"text_input": "y"}},
                                "parameters.text_input: given twice, in parameters"),
                               ({"text_input": "x", "stop": "y", "parameters": {"stop": ["z"]}},
                                "parameters.stop: given twice, in parameters"),
                               ({"parameters": {"seed": 1}, "text_input": "x", "seed": 1},
                                "seed: given twice, in parameters"),
                               ({"text_input": "x" * 70000}, "65536 bytes")):
                expect(text, post(client, f"/v2/models/chat/{route}", body), 400)
                error = json.loads(client.body)["error"]
                expect(text, text in error or error, True)
        for method, path, status in (("GET", "models/nope", 404), ("GET", "completions", 405),
                                     ("POST", "nope", 404), ("GET", "responses/resp_1", 404)):
            client.send(build_request(method, f"/v1/{path}", b"{}" if method == "POST" else b""))
            expect(path, client.answer(), status)
            expect(path, sorted(json.loads(client.body)["error"]),
                   ["code", "message", "param", "type"])
        biased = complete(client, "What is", max_tokens=4, best_of=1,
                          logit_bias={str(i): -100 if i != 70 else 100 for i in range(VOCAB)})
        expect("as many biases as there are tokens", biased["choices"][0]["text"], "eeee")
        parts = [{"role": "user", "content": [{"type": "text", "text": "Hel"},
                                              {"type": "text", "text": "lo!"}]}]
        expect("parts", chat(client, parts)["choices"][0]["message"]["content"],
               ANSWERS[0]["answer"])
        odd = {"user": "me", "metadata": {"a": [1]}, "store": False, "temperature": None,
               "stop": None, "seed": None, "logit_bias": None, "response_format": {"type": "text"}}
        expect("members that are passed over",
               post(client, "/v1/chat/completions",
                    {"model": "chat", "messages": HELLO, **odd}), 200)
        wait_idle(client)


def other_words():
    """A tokenizer that does not match the model is refused, with both numbers."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("model.pte", "tokenizer.json", "tokenizer_config.json"):
            shutil.copy(FOLDER / name, folder)
        path = Path(folder) / "tokenizer.json"
        words = json.loads(path.read_text())
        vocab = words["model"]["vocab"]
        words["model"]["vocab"] = {k: v for k, v in vocab.items() if v < 300}
        words["model"]["merges"] = [m for m in words["model"]["merges"]
                                    if "".join(m if isinstance(m, list) else m.split(" "))
                                    in words["model"]["vocab"]]
        path.write_text(json.dumps(words))
        daemon = Daemon(["--model", f"chat={folder}/model.pte"])
        daemon.wait_for("tokenizer.json: the tokenizer has 300 tokens, the model's vocabulary 448")
        expect("it does not start", daemon.process.wait(TIMEOUT_S) != 0, True)
        path.write_text("{")
        daemon = Daemon(["--model", f"chat={folder}/model.pte"])
        daemon.wait_for(r"tokenizer\.json")
        expect("it does not start", daemon.process.wait(TIMEOUT_S) != 0, True)
        path.unlink()
        with Daemon(["--model", f"chat={folder}/model.pte"]) as daemon:
            client = Client(daemon.port)
            expect("no words", post(client, "/v1/completions", {"model": "chat", "prompt": "x"}),
                   400)
            text = json.loads(client.body)["error"]["message"]
            expect(text, text.startswith("model 'chat' has no tokenizer: expected tokenizer.json"),
                   True)
            daemon.wait_for("model chat: there is no tokenizer beside it")
        with Daemon(["--model", f"chat={folder}/model.pte", "--tokenizer",
                     f"chat={FOLDER / 'tokenizer.json'}"]) as daemon:
            answer = chat(Client(daemon.port), ANSWERS[0]["messages"])
            expect("said", answer["choices"][0]["message"]["content"], ANSWERS[0]["answer"])


def missing_templates():
    """The answer of a chat says which files may have the template."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("model.pte", "tokenizer.json"):
            shutil.copy(FOLDER / name, folder)
        with Daemon(["--model", f"chat={folder}/model.pte"]) as daemon:
            client = Client(daemon.port)
            body = {"model": "chat", "messages": HELLO}
            expect("a chat", post(client, "/v1/chat/completions", body), 501)
            expect("why", json.loads(client.body)["error"]["message"],
                   "model 'chat': there is no chat template: expected chat_template.jinja, or "
                   "tokenizer_config.json with chat_template, beside the tokenizer")


def odd_templates():
    """A template that is not understood is in the log and in the answers of chats, no more."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("model.pte", "tokenizer.json"):
            shutil.copy(FOLDER / name, folder)
        for source, text in (("a\n{{ x|pprint }}", "line 2, column 6: the filter 'pprint' is not"),
                             ("{% for x in y %}", "the block that begins here has no 'endfor'")):
            (Path(folder) / "chat_template.jinja").write_text(source)
            with Daemon(["--model", f"chat={folder}/model.pte"]) as daemon:
                daemon.wait_for("warning: model chat: chats are refused: chat template: .*"
                                + re.escape(text))
                client = Client(daemon.port)
                body = {"model": "chat", "messages": HELLO}
                expect("a chat", post(client, "/v1/chat/completions", body), 501)
                message = json.loads(client.body)["error"]["message"]
                expect("why", text in message or message, True)
                complete(client, "What", max_tokens=1)


def refusing_templates():
    """What a template says of a client's messages, the client is told, and no log has it."""
    secret = "my secret"
    for source, told, logged in (
            ("{{ raise_exception('no: ' ~ messages[0].content) }}", f"chat template: no: {secret}",
             "chat template: (only the client is told)"),
            ("{{ messages[0][messages[0].content].x }}", f"'{secret}' is undefined",
             "line 1, column 36: (only the client is told)"),
            ("{{ tools.x }}", "'tools' is undefined", "'tools' is undefined"),
            ("{{ raise_exception('') }}", "the template refuses these messages",
             "the template refuses these messages"),
            ("{{ raise_exception(' \\n') }}", "the template refuses these messages",
             "the template refuses these messages")):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("model.pte", "tokenizer.json"):
                shutil.copy(FOLDER / name, folder)
            (Path(folder) / "chat_template.jinja").write_text(source)
            access = Path(folder) / "access"
            for options in ((), ("--log-requests=all",)):
                with Daemon(["--model", f"chat={folder}/model.pte", "--log-level=debug",
                             "--access-log=all", f"--access-log-file={access}",
                             *options]) as daemon:
                    client = Client(daemon.port)
                    body = {"model": "chat", "messages": [{"role": "user", "content": secret}]}
                    expect(source, post(client, "/v1/chat/completions", body), 400)
                    message = json.loads(client.body)["error"]["message"]
                    expect("told", told in message or message, True)
                    daemon.wait_for(re.escape(logged))
                expect("in the log", secret in daemon.read_log(), False)
            lines = access.read_text()
            expect("in the access log", (logged in lines, secret in lines), (True, False))


def template_values():
    """A client gives the template values of its own, but not those that pted gives it."""
    source = ("{% if mood is defined %}{{ raise_exception('it is ' ~ mood.is ~ bos_token) }}"
              "{% endif %}{{ messages[0].content }}")
    with tempfile.TemporaryDirectory() as folder:
        for name in ("model.pte", "tokenizer.json"):
            shutil.copy(FOLDER / name, folder)
        (Path(folder) / "chat_template.jinja").write_text(source)
        (Path(folder) / "tokenizer_config.json").write_text('{"bos_token": "<s>"}')
        with Daemon(["--model", f"chat={folder}/model.pte"]) as daemon:
            client = Client(daemon.port)
            told = {"mood": {"is": "fine"}, "bos_token": "x"}
            for path, given in (("/v1/chat/completions", {"messages": HELLO}),
                                ("/v1/responses", {"input": "x"})):
                body = {"model": "chat", **given, "chat_template_kwargs": told}
                expect(path, post(client, path, body), 400)
                expect("why", "it is fine<s>" in client.body.decode() or client.body, True)
            plain = chat(client, HELLO, max_tokens=4)["choices"]
            expect("others", chat(client, HELLO, max_tokens=4, chat_template_kwargs={
                "messages": 1, "tools": None, "add_generation_prompt": 2})["choices"], plain)
            body["chat_template_kwargs"] = [1]
            expect("a list", post(client, path, body), 400)


CHECKS = (tools, forced_calls, formats, rules, refusals, model_left_out, other_words,
          missing_templates, odd_templates, refusing_templates, template_values)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
