#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Libraries of agents against a real daemon with a language model: answers, streams, calls of
tools, output of a schema, errors.

Each check needs one Python package, and says so where it is missing: some of them want an older
package openai than others. Skipped without any.

usage: run_agents.py, with top_srcdir and top_builddir in the environment.
"""
import asyncio
import contextlib
import importlib.util
import json
import os
import sys

from run_generate import ANSWERS, CHAT, wait_idle
from run_http import Client, Daemon, Report, expect

PACKAGES = {"langchain": "langchain_openai", "pydantic_ai": "pydantic_ai", "litellm": "litellm",
            "instructor": "instructor", "openai_agents": "agents"}
THERE = {name for name, module in PACKAGES.items() if importlib.util.find_spec(module)}
if not THERE or not importlib.util.find_spec("openai"):
    print("SKIP: no Python package of", ", ".join(PACKAGES), "is there")
    sys.exit(77)

import openai
from pydantic import BaseModel, Field

HELLO, HI = ANSWERS[0]["messages"][0]["content"], ANSWERS[0]["answer"]
WEATHER = next(row["messages"][-1]["content"] for row in ANSWERS
               if "weather" in row["messages"][-1]["content"])
OSLO = {"city": "Oslo"}


class Day(BaseModel):
    count: int = Field(ge=1, le=9)
    is_free: bool


@contextlib.contextmanager
def served():
    """The daemon, and what its clients call its address."""
    with Daemon(CHAT) as daemon:
        yield daemon, f"http://127.0.0.1:{daemon.port}/v1"
        wait_idle(Client(daemon.port))


def weather(city: str) -> str:
    """Says the weather of a city."""
    return f"sunny in {city}"


def langchain():
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI
    with served() as (_, url):
        for api in (False, True):
            def model(api=api, **members):
                return ChatOpenAI(model="chat", base_url=url, api_key="none", temperature=0,
                                  max_retries=0, use_responses_api=api, **members)
            expect("answer", model().invoke(HELLO).text, HI)
            expect("stream", "".join(chunk.text for chunk in model().stream(HELLO)), HI)
            caller = model().bind_tools([tool(weather)])
            expect("call", caller.invoke(WEATHER).tool_calls[0]["args"], OSLO)
            chunks = list(caller.stream(WEATHER))
            whole = chunks[0]
            for chunk in chunks[1:]:
                whole += chunk
            pieces = sum(bool(chunk.tool_call_chunks) for chunk in chunks)
            expect("call in a stream", (whole.tool_calls[0]["args"], pieces > 3), (OSLO, True))
            for method in ("json_schema", "function_calling"):
                day = model().with_structured_output(Day, method=method).invoke(HELLO)
                expect(method, 1 <= day.count <= 9, True)
        try:
            model().invoke(HELLO, max_tokens=-4)
        except openai.BadRequestError:
            pass
        else:
            raise AssertionError("a wrong request is taken")


def pydantic_ai():
    from pydantic_ai import Agent, NativeOutput
    from pydantic_ai.exceptions import ModelHTTPError
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    async def ask_all(model, url):
        async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as api:
            def agent(output, **settings):
                return Agent(model("chat", provider=OpenAIProvider(openai_client=api)),
                             output_type=output, model_settings={"temperature": 0.0, **settings})

            async def stream(output):
                async with agent(output).run_stream(HELLO) as answer:
                    return [part async for part in answer.stream_output()][-1]

            expect("answer", (await agent(str).run(HELLO)).output, HI)
            expect("stream", await stream(str), HI)
            for output in (Day, NativeOutput(Day)):
                day = (await agent(output).run(HELLO)).output
                expect("output", day.count in range(1, 10), True)
                expect("output in a stream", (await stream(output)).count > 0, True)
            caller = agent(str)
            caller.tool_plain(weather)
            answer = await caller.run(WEATHER)
            calls = [part.args_as_dict() for message in answer.all_messages()
                     for part in message.parts if part.part_kind == "tool-call"]
            expect("call", calls[:1], [OSLO])
            try:
                await agent(str, temperature=-3.0).run(HELLO)
            except ModelHTTPError as error:
                expect("status", error.status_code, 400)
            else:
                raise AssertionError("a wrong request is taken")

    with served() as (_, url):
        for model in (OpenAIChatModel, OpenAIResponsesModel):
            asyncio.run(ask_all(model, url))


def litellm():
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import litellm as package
    package.telemetry, package.suppress_debug_info = False, True
    tool = {"type": "function", "function": {"name": "weather", "parameters": {
        "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}
    with served() as (daemon, url):
        bare = f"http://127.0.0.1:{daemon.port}"
        for name, base in (("openai/chat", url), ("hosted_vllm/chat", url),
                           ("anthropic/chat", bare), ("ollama_chat/chat", bare)):
            def complete(text, name=name, base=base, **members):
                return package.completion(model=name, api_base=base, api_key="none", temperature=0,
                                          messages=[{"role": "user", "content": text}], **members)
            expect(name, complete(HELLO).choices[0].message.content, HI)
            expect("stream", "".join(chunk.choices[0].delta.content or ""
                                     for chunk in complete(HELLO, stream=True)), HI)
            if name.startswith("ollama"):
                continue
            chunks = list(complete(WEATHER, stream=True, tools=[tool]))
            call = package.stream_chunk_builder(chunks).choices[0].message.tool_calls[0].function
            expect("call in a stream", (call.name, json.loads(call.arguments)), ("weather", OSLO))
        day = complete(HELLO, "openai/chat", url, response_format=Day).choices[0].message.content
        expect("schema", Day.model_validate_json(day).count > 0, True)
        try:
            complete(HELLO, "openai/none", url)
        except package.NotFoundError:
            pass
        else:
            raise AssertionError("a wrong request is taken")


def instructor():
    import instructor as package
    with served() as (_, url):
        api = openai.OpenAI(base_url=url, api_key="none", max_retries=0)
        asked = {"model": "chat", "temperature": 0, "max_retries": 0, "response_model": Day}
        messages = [{"role": "user", "content": HELLO}]
        for mode in (package.Mode.TOOLS, package.Mode.JSON_SCHEMA):
            chats = package.from_openai(api, mode=mode).chat.completions
            expect(f"{mode}", chats.create(messages=messages, **asked).count > 0, True)
            last = list(chats.create_partial(messages=messages, **asked))[-1]
            expect("in a stream", last.count in range(1, 10), True)
        # It forces a function and sends a format as well.
        responses = package.from_openai(api, mode=package.Mode.RESPONSES_TOOLS).responses
        expect("responses", responses.create(input=HELLO, **asked).count > 0, True)


def openai_agents():
    import agents as package
    package.set_tracing_disabled(True)

    async def run(model, text, url, **members):
        async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as api:
            agent = package.Agent(name="a", model=model(model="chat", openai_client=api),
                                  model_settings=package.ModelSettings(temperature=0), **members)
            answer = package.Runner.run_streamed(agent, text, max_turns=2)
            kinds = [event.data.type async for event in answer.stream_events()
                     if event.type == "raw_response_event"]
            return answer.final_output, kinds

    with served() as (_, url):
        for model in (package.OpenAIChatCompletionsModel, package.OpenAIResponsesModel):
            expect("answer", asyncio.run(run(model, HELLO, url))[0], HI)
            day, _ = asyncio.run(run(model, HELLO, url, output_type=Day))
            expect("output", day.count in range(1, 10), True)
            said, kinds = asyncio.run(run(model, WEATHER, url,
                                          tools=[package.function_tool(weather)],
                                          tool_use_behavior="stop_on_first_tool"))
            expect("call", said, weather("Oslo"))
            deltas = kinds.count("response.function_call_arguments.delta")
            expect("as it comes", deltas > 3, True)


def main():
    report = Report()
    for name in PACKAGES:
        if name in THERE:
            report.run(name, globals()[name])
        else:
            print(f"# the Python package of {name} is missing")
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
