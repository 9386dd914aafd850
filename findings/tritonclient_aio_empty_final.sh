#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tritonclient.grpc.aio: nobody can ask for the empty final response of a decoupled model.
#
# A decoupled model of Triton sends the flag triton_final_response with its last answer only if the
# request has the parameter triton_enable_empty_final_response. The blocking client sets it where
# async_stream_infer() gets enable_empty_final_response=True. The client with asyncio takes requests
# as dicts. It knows no such key, and drops it without a word, as it does any other key. The
# parameter itself cannot be given either: names that begin with triton_ are refused, and as that
# happens while the stream takes its requests, the caller sees only a CancelledError. So code that
# moves from one client to the other waits for a flag that never comes. A server that wants to serve
# both has to send the flag unasked.
#
# Seen: tritonclient 2.73.0 with grpcio 1.85.3.
# Needs: python3 with venv, pip with PyPI. Exit status 0: still so; 1: it has changed.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/ask.py" <<'END'
import asyncio
import queue
import sys
from concurrent import futures

import grpc
import numpy
import tritonclient.grpc
import tritonclient.grpc.aio
from tritonclient.grpc import service_pb2, service_pb2_grpc

NAME = "enable_empty_final_response"
asked = []


class Server(service_pb2_grpc.GRPCInferenceServiceServicer):
    def ModelStreamInfer(self, request_iterator, context):
        for request in request_iterator:
            asked.append("triton_" + NAME in request.parameters)
            yield service_pb2.ModelStreamInferResponse()


def an_input():
    tensor = tritonclient.grpc.InferInput("x", [1], "FP32")
    tensor.set_data_from_numpy(numpy.ones(1, numpy.float32))
    return [tensor]


def ask_blocking(address):
    answers = queue.Queue()
    with tritonclient.grpc.InferenceServerClient(address) as client:
        client.start_stream(lambda result, error: answers.put(error))
        client.async_stream_infer("m", an_input(), **{NAME: True})
        answers.get(timeout=30)


async def ask_with_asyncio(address, **more):
    async def requests():
        yield {"model_name": "m", "inputs": an_input(), **more}

    async with tritonclient.grpc.aio.InferenceServerClient(address) as client:
        async for _ in client.stream_infer(requests()):
            pass


def error_of_parameter(address):
    try:
        asyncio.run(ask_with_asyncio(address, parameters={"triton_" + NAME: True}))
    except BaseException as error:  # CancelledError is no Exception
        return type(error).__name__
    return None


server = grpc.server(futures.ThreadPoolExecutor(4))
service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(Server(), server)
address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
server.start()
ask_blocking(address)
asyncio.run(ask_with_asyncio(address, **{NAME: True}))
error = error_of_parameter(address)
server.stop(None)
print(f"asked for it: blocking {asked[0]}, asyncio {asked[1]}; with the parameter itself: {error}")
sys.exit((asked[0], asked[1], error) != (True, False, "CancelledError"))
END

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check "tritonclient[grpc]==2.73.0" \
    grpcio==1.85.3
"$folder/venv/bin/python" "$folder/ask.py"
