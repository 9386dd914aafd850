#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The files of the console, the graphs that it draws, and the description of all routes.
run_console_pages.py has its pages in a browser.

usage: run_console.py, with top_srcdir and top_builddir in the environment.
"""
import gzip
import json
import os
import re
import sys
import tempfile

from run_daemon import ADD, DIGITS
from run_embeddings import ENCODER
from run_generate import CHAT
from run_speech import SPEECH
from run_http import MODELS, Client, Daemon, Report, build_request, expect

FILES = os.path.join(os.environ["top_srcdir"], "server", "daemon", "console")
GZIP_MAX = 100000
SHORT = 1024  # bytes that are sent as they are
PROFILE = ["--profile-spans-max", "100000"]
PIPELINE = {"twice": {"steps": [
    {"model": "add", "inputs": [{"input": 0}, {"input": 1}]},
    {"model": "add", "inputs": [{"from": 0, "output": 0}, {"input": 1}]}]}}


def get(client, path, *fields):
    client.send(build_request("GET", path, fields=fields))
    return client.answer()


def files():
    """All files are there, small together, and let a page load nothing from elsewhere."""
    total = 0
    with Daemon([ADD]) as daemon:
        client = Client(daemon.port)
        for name in sorted(os.listdir(FILES)):
            if not name.endswith((".html", ".css", ".js", ".json", ".svg")):
                continue
            path = "/" if name == "index.html" else f"/console/{name}"
            expect(path, get(client, path), 200)
            with open(os.path.join(FILES, name), "rb") as file:
                expect(name, client.body, file.read())
            policy = client.field("Content-Security-Policy")
            expect("policy", "default-src 'none'" in policy and "unsafe" not in policy, True)
            expect("type", client.field("X-Content-Type-Options"), "nosniff")
            if name != "openapi.json":
                expect("no other host", re.findall(rb"https?://(?!www\.w3\.org/)", client.body), [])
                expect("gzip", get(client, path, "Accept-Encoding: gzip"), 200)
                total += len(client.body)
                with open(os.path.join(FILES, name), "rb") as file:
                    plain = file.read()
                is_short = len(plain) < SHORT
                expect("coding", client.field("Content-Encoding"), None if is_short else "gzip")
                expect(name, client.body if is_short else gzip.decompress(client.body), plain)
        expect(f"{total} bytes are few", total < GZIP_MAX, True)
        for path in ("/console/", "/console/none.js", "/console/..%2Ffiles.def", "/console/a/b"):
            expect(path, get(client, path), 404)
    with Daemon(["--console", "off", ADD]) as daemon:
        client = Client(daemon.port)
        expect("off", get(client, "/"), 404)
        expect("off", get(client, "/console/main.js"), 404)
        expect("still described", get(client, "/openapi.json"), 200)


def graph_of(client, name):
    expect("graph", get(client, f"/v2/models/{name}/graph"), 200)
    graph = json.loads(client.body)
    made = set()
    for node in graph["nodes"]:
        for value in node["inputs"]:
            key = (node["block"], value["value"])
            expect(f"{name}: {node['operator']} reads {key}",
                   key in made or value.get("constant", False), True)
        made |= {(node["block"], value["value"]) for value in node["outputs"]}
    return graph


def graphs():
    """Each value that a node reads was made before; profiles have the numbers of nodes."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "pipelines.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(PIPELINE, file)
        with Daemon([*PROFILE, "--pipeline", path, ADD, DIGITS]) as daemon:
            client = Client(daemon.port)
            graph = graph_of(client, "digits")
            expect("kind", graph["kind"], "graph")
            operators = {(n["block"], n["node"]): n["operator"]
                         for n in graph["nodes"] if "node" in n}
            expect("example", get(client, "/v2/models/digits/signature"), 200)
            body = json.loads(client.body)["example"]
            client.send(build_request("POST", "/v2/models/digits/call?profile=1",
                                      json.dumps(body).encode()))
            expect("profile", client.answer(), 200)
            layers = [row for row in json.loads(client.body)["profile"]["layers"] if "node" in row]
            expect("layers", len(layers) > 0, True)
            for row in layers:
                expect("operator", operators[row["block"], row["node"]], row["operator"])
            steps = graph_of(client, "twice")
            expect("kind", steps["kind"], "pipeline")
            expect("steps", [n["operator"] for n in steps["nodes"]],
                   ["input", "add", "add", "output"])
            expect("edge", steps["nodes"][2]["inputs"][0]["value"],
                   steps["nodes"][1]["outputs"][0]["value"])
            expect("unknown", get(client, "/v2/models/none/graph"), 404)


def many_graphs():
    """Every model of the tree that can be called has a graph in order."""
    names = ["loops", "branches", "lists", "keywords", "methods", "xnn_int8", "zero_batch"]
    with Daemon([str(MODELS / f"{name}.pte") for name in names]) as daemon:
        client = Client(daemon.port)
        expect("models", get(client, "/v2/models"), 200)
        for name in json.loads(client.body)["models"]:
            graph_of(client, name)


def paths_of(pattern):
    """The paths of a pattern of route.def, as OpenAPI writes them."""
    plain = pattern.replace("{m}", "{model}").replace("{v}", "{version}").replace(
        "{r}", "{file}" if "console" in pattern else "{allocator}" if "call" in pattern else
        "{region}")
    if "[/]" in plain:
        return [plain.replace("[/]", "")]
    return [re.sub(r"\[.*?\]", "", plain), plain.replace("[", "").replace("]", "")] \
        if "[" in plain else [plain]


def references(value):
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for item in value.values():
            yield from references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def check_members(schemas):
    """Requests to language models have all members that the daemon reads, and no others."""
    with open(os.path.join(os.environ["top_srcdir"], "server", "language", "ask.def"),
              encoding="utf-8") as file:
        rows = re.findall(r"^ASK_(?!REFUSED|ABSENT)\w+\((\w+),.*?\b([A-Z](?: \| [A-Z])*)\b",
                          file.read(), re.M)
    for letter, form in (("M", "Chat"), ("C", "Completion"), ("G", "Generate")):
        members = dict(schemas[f"{form}Request"]["properties"])
        members.update(members.pop("parameters", {}).get("properties", {}))
        wanted = {name for name, forms in rows if letter in forms or "E" in forms}
        expect(form, sorted(members), sorted(wanted))


def description():
    """/openapi.json has every route, the call of each model, and no reference into nothing."""
    with Daemon([ADD, DIGITS]) as daemon:
        client = Client(daemon.port)
        expect("document", get(client, "/openapi.json"), 200)
        document = json.loads(client.body)
    with open(os.path.join(os.environ["top_srcdir"], "server", "daemon", "request", "route.def"),
              encoding="utf-8") as file:
        rows = re.findall(r'^ROUTE\(\w+, (GET|POST), "([^"]+)"', file.read(), re.M)
    wanted = {(path, method.lower()) for method, pattern in rows for path in paths_of(pattern)}
    found = {(path, method) for path, item in document["paths"].items() for method in item}
    calls = {(f"/v2/models/{name}/call", "post") for name in ("add", "digits")}
    expect("routes", sorted(found - calls), sorted(wanted))
    expect("calls", calls <= found, True)
    for reference in references(document):
        at = document
        for part in reference.removeprefix("#/").split("/"):
            at = at[part]
    check_members(document["components"]["schemas"])
    ids = [item[method]["operationId"] for item in document["paths"].values() for method in item]
    expect("ids differ", len(ids), len(set(ids)))


def kinds():
    """The index says what people use a model for, and by which name OpenAI's API calls it."""
    card = os.path.join(os.environ["top_srcdir"], "docs", "examples", "digits.card.json")
    with Daemon([ADD, DIGITS, "--card", f"digits={card}", *CHAT, *ENCODER, *SPEECH]) as daemon:
        client = Client(daemon.port)
        client.send(build_request("POST", "/v2/repository/index"))
        expect("index", client.answer(), 200)
        rows = {row["name"]: (row.get("kind"), row.get("id")) for row in json.loads(client.body)
                if "constant" not in row}
        expect("kinds", rows, {
            "add": (None, None), "chat": ("language", None), "digits": ("image", None),
            "enc": ("embedding", None), "enc.rows": ("embedding", None),
            "enc.score": ("ranking", None), "whisper.encoder": (None, None),
            "whisper.text_decoder": ("speech", "whisper")})


CHECKS = (files, graphs, many_graphs, kinds, description)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
