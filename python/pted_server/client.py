# SPDX-License-Identifier: MIT
"""A client of pted, with arrays of numpy."""
from __future__ import annotations

import json
import ssl
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Optional, Union
from urllib.parse import quote

from .tensors import Array, Data, Reader, infer_input, infer_output, to_json
from .transport import Answer, ServerError, Transport

Args = Union[tuple[Any, ...], list[Any]]
Document = dict[str, Any]
JSON_TYPE = {"Content-Type": "application/json"}


def model_path(model: str, verb: str = "") -> str:
    return f"/v2/models/{quote(model, safe='$')}{verb and '/'}{verb}"


def call_body(args: Args, kwargs: Optional[Mapping[str, Any]], data: Optional[Data]) -> Document:
    if not isinstance(args, (tuple, list)):
        raise TypeError(f"args: expected a tuple of arguments, got {type(args).__name__}")
    body: Document = {"args": to_json(args, data)}
    if kwargs:
        body["kwargs"] = to_json(kwargs, data)
    return body


def event_body(members: Mapping[str, Any], **more: Any) -> bytes:
    given = {name: value for name, value in more.items() if value is not None}
    return json.dumps({**given, **members}).encode()


class Client:
    """A server. Threads may share a client; it keeps its connections.

    |url| is http://HOST:PORT or https://HOST:PORT, with a path if a proxy has pted there, or
    unix:PATH. |token| is what pted or a proxy wants as a bearer token. |timeout| is for how many
    seconds the network may be silent; None: for any time. |tls| has certificates and keys, such as
    ssl.create_default_context(cafile="ca.pem").

    Methods raise ServerError if the server refuses, and ConnectionError, TimeoutError or another
    OSError if it cannot be asked.
    """

    def __init__(self, url: str = "http://127.0.0.1:8000", *, token: Optional[str] = None,
                 timeout: Optional[float] = 60.0, tls: Optional[ssl.SSLContext] = None) -> None:
        self._transport = Transport(url, token, timeout, tls)

    def close(self) -> None:
        """Closes the connections that nothing uses. A later call makes new ones."""
        self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], why: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def request(self, method: str, path: str, body: Any = None) -> Any:
        """Any route of pted: sends |body| as JSON, and returns that of the answer."""
        if body is None:
            return self._transport.ask(method, path).document
        return self._transport.ask(method, path, [json.dumps(body).encode()], JSON_TYPE).document

    def _post(self, path: str, body: Document, data: Data) -> Answer:
        head = json.dumps(body).encode()
        size = {"Inference-Header-Content-Length": str(len(head))} if data.parts else JSON_TYPE
        return self._transport.ask("POST", path, [head, *data.parts], size)

    # ------------------------------------------------------------ what is served

    def is_ready(self) -> bool:
        """Are the models loaded? False also if nobody listens."""
        try:
            self._transport.ask("GET", "/v2/health/ready")
            return True
        except (ServerError, OSError):
            return False

    def models(self) -> list[Document]:
        """Names, versions and states of all models."""
        found: list[Document] = self.request("POST", "/v2/repository/index")
        return found

    def metadata(self, model: str) -> Document:
        """Names, types and shapes of inputs and outputs."""
        found: Document = self.request("GET", model_path(model))
        return found

    def signature(self, model: str) -> Document:
        """The structure of the arguments and results of call()."""
        found: Document = self.request("GET", model_path(model, "signature"))
        return found

    # ------------------------------------------------------------ calls

    def call(self, model: str, args: Args = (), kwargs: Optional[Mapping[str, Any]] = None, *,
             parameters: Optional[Mapping[str, Any]] = None) -> Any:
        """Calls |model| as its forward(*args, **kwargs), and returns the structure of results.

        Arguments are arrays, numbers, texts, None, bytes of files, and lists, tuples and
        dictionaries of these; what numpy can make an array of is one. A list of numbers takes the
        type of its argument; an array has to have it. Results are arrays and numbers in lists and
        dictionaries, or what the model's card says. |parameters|: priority, timeout, top_k...
        """
        data = Data()
        body = call_body(args, kwargs, data)
        body["parameters"] = {"nan": "token", **(parameters or {})}
        answer = self._post(model_path(model, "call?binary=1"), body, data)
        with self._transport.reading():
            return Reader(answer.data).from_json(answer.document["result"])

    def infer(self, model: str, inputs: Mapping[str, Any],
              outputs: Optional[Iterable[str]] = None, *,
              parameters: Optional[Mapping[str, Any]] = None) -> dict[str, Array]:
        """Calls |model| by the Open Inference Protocol: tensors by name. |outputs| are all unless
        it names some. Texts and files are arrays of str or bytes; those that come are bytes.
        """
        data = Data()
        body: Document = {
            "parameters": {"binary_data_output": True, **(parameters or {})},
            "inputs": [infer_input(name, value, data) for name, value in inputs.items()]}
        if outputs is not None:
            body["outputs"] = [{"name": name} for name in outputs]
        answer = self._post(model_path(model, "infer"), body, data)
        reader = Reader(answer.data)
        with self._transport.reading():
            return {output["name"]: infer_output(output, reader)
                    for output in answer.document["outputs"]}

    def shape(self, model: str, args: Args = (),
              kwargs: Optional[Mapping[str, Any]] = None) -> list[Document]:
        """Name, type, shape and bytes of each result that call() would give, without a call: only
        the shapes of arrays are sent. A size that depends on data is -1, beside its bounds.
        """
        body = call_body(args, kwargs, None)
        answer = self.request("POST", model_path(model, "shape"), body)
        with self._transport.reading():
            found: list[Document] = answer["outputs"]
        return found

    def sequence(self, model: str, name: Optional[str] = None) -> CallSequence:
        """Calls that share a state, under a name that no other sequence has."""
        return CallSequence(self, model, name or uuid.uuid4().hex)

    # ------------------------------------------------------------ language models

    def generate(self, model: str, text: str, **parameters: Any) -> Document:
        """The answer has "text_output", "finish_reason" and "usage"."""
        path, body = model_path(model, "generate"), {"text_input": text, "parameters": parameters}
        found: Document = self.request("POST", path, body)
        return found

    def stream_generate(self, model: str, text: str, **parameters: Any) -> Iterator[Document]:
        """The same in parts: "text_output" of each is a piece of the text."""
        body = {"text_input": text, "parameters": parameters}
        return self._transport.events(model_path(model, "generate_stream"), event_body(body))

    def chat(self, messages: Sequence[Mapping[str, Any]], model: Optional[str] = None,
             **members: Any) -> Document:
        """A completion of OpenAI's form: ["choices"][0]["message"]["content"] is the text. The
        model may be left out if there is one. |members|: temperature, max_tokens, tools...
        """
        body = event_body(members, model=model, messages=list(messages))
        found: Document = self._transport.ask("POST", "/v1/chat/completions", [body],
                                              JSON_TYPE).document
        return found

    def stream_chat(self, messages: Sequence[Mapping[str, Any]], model: Optional[str] = None,
                    **members: Any) -> Iterator[Document]:
        """The same in parts: ["choices"][0]["delta"] of each may have a piece of "content"."""
        body = event_body(members, model=model, messages=list(messages), stream=True)
        return self._transport.events("/v1/chat/completions", body)


class CallSequence:
    """Calls of a model with state, one after the other. The first one begins a state, and the one
    with |is_last| ends it; a state that nobody uses for some time is forgotten."""

    def __init__(self, client: Client, model: str, name: str) -> None:
        self.name = name
        self._client, self._model, self._is_begun = client, model, False

    def _parameters(self, is_last: bool, more: Optional[Mapping[str, Any]]) -> Document:
        return {**(more or {}), "sequence_id": self.name, "sequence_start": not self._is_begun,
                "sequence_end": is_last}

    def call(self, args: Args = (), kwargs: Optional[Mapping[str, Any]] = None, *,
             is_last: bool = False, parameters: Optional[Mapping[str, Any]] = None) -> Any:
        """As Client.call()."""
        result = self._client.call(self._model, args, kwargs,
                                   parameters=self._parameters(is_last, parameters))
        self._is_begun = not is_last
        return result

    def infer(self, inputs: Mapping[str, Any], outputs: Optional[Iterable[str]] = None, *,
              is_last: bool = False,
              parameters: Optional[Mapping[str, Any]] = None) -> dict[str, Array]:
        """As Client.infer()."""
        result = self._client.infer(self._model, inputs, outputs,
                                    parameters=self._parameters(is_last, parameters))
        self._is_begun = not is_last
        return result
