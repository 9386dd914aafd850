#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The page for people, the graphs that it draws, and the description of all routes.

The part with a browser is skipped without chromium and chromedriver. PTED_SCREENSHOTS=DIR keeps
pictures of the pages there.

usage: run_console.py, with top_srcdir and top_builddir in the environment.
"""
import ast
import gzip
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

import tones
import webdriver
from run_daemon import ADD, DIGITS
from run_generate import CHAT
from run_media import CARD as MEDIA
from run_media import TEXT, missing_library, png
from run_http import MODELS, Client, Daemon, Failure, Report, build_request, expect

FILES = os.path.join(os.environ["top_srcdir"], "server", "daemon", "console")
GZIP_MAX = 60000
TAB, ENTER, RIGHT, HOME = "\ue004", "\ue007", "\ue014", "\ue011"
TABS_MAX = 300
PROFILE = ["--profile-spans-max", "100000"]
SQUARES = {"methods": {
    "boxes": {"inputs": [{"name": "picture", "image": {"resize": [48, 64], "fit": "inside"}}],
              "outputs": [{"name": "found", "labels": ["red", "green", "blue"],
                           "answer": {"boxes": {"score": 0.4}}}]},
    "map": {"inputs": [{"name": "picture", "image": {"resize": 48, "crop": [48, 64]}}],
            "outputs": [{"name": "ground", "labels": ["nothing", "red", "green", "blue"],
                         "answer": "map"}]}}}
ANSWERS = {"methods": {
    "joined": {"outputs": [{"name": "found", "labels": ["cat", "dog", "bird"],
                            "answer": {"boxes": {"score": 0}}}]},
    "text": {"outputs": [{"name": "said", "labels": ["", "a", "b", "c", " "], "answer": "text"}]},
    "map": {"outputs": [{"name": "ground", "labels": ["sky", "road", "tree"], "answer": "map"}]}}}
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
            if not name.endswith((".html", ".css", ".js", ".json")):
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
                expect("coding", client.field("Content-Encoding"), "gzip")
                total += len(client.body)
                with open(os.path.join(FILES, name), "rb") as file:
                    expect(name, gzip.decompress(client.body), file.read())
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
        rows = re.findall(r"^ASK_(?!REFUSED)\w+\((\w+),.*?\b([CMGR](?: \| [CMGR])*)\b", file.read(),
                          re.M)
    for letter, form in (("M", "Chat"), ("C", "Completion"), ("G", "Generate")):
        members = dict(schemas[f"{form}Request"]["properties"])
        members.update(members.pop("parameters", {}).get("properties", {}))
        expect(form, sorted(members), sorted({name for name, forms in rows if letter in forms}))


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


# ---- with a browser -----------------------------------------------------------------------------

def write_png(path, size):
    """A white picture with a black bar."""
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data
                + struct.pack(">I", zlib.crc32(kind + data)))
    rows = b"".join(b"\0" + bytes(0 if size // 3 < x < size // 2 else 255 for x in range(size))
                    for _ in range(size))
    with open(path, "wb") as out:
        out.write(b"\x89PNG\r\n\x1a\n"
                  + chunk(b"IHDR", struct.pack(">IIBBBBB", size, size, 8, 0, 0, 0, 0))
                  + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def keep(browser, name):
    folder = os.environ.get("PTED_SCREENSHOTS")
    if folder:
        browser.picture(os.path.join(folder, f"console-{name}.png"))


def look_at_list(browser, url):
    browser.go(url + "/")
    browser.wait("document.querySelector('table.models a')")
    expect("a model", browser.run(
        "return document.querySelector('main').innerText.includes('digits')"), True)
    expect("models", browser.run(
        "return [...document.querySelectorAll('table.models a')].map((link) => link.textContent)"),
        ["add", "chat", "digits", "mobile"])
    expect("constants", "chat.get_max_seq_len" in browser.run(
        "return [...document.querySelectorAll('details a')].map((link) => link.textContent)"), True)
    keep(browser, "list")


def call_model(browser, url):
    browser.go(url + "/#/models/add")
    browser.wait("document.querySelector('fieldset textarea')")
    browser.run("document.querySelectorAll('fieldset .buttons button:nth-child(2)')"
                ".forEach((button) => button.click())")
    browser.click("form button.main")
    browser.wait("document.querySelector('section pre')")
    expect("sum", browser.run("return document.querySelector('section pre').textContent"),
           "[2,2,2,2,2,2]")
    expect("curl", browser.run("return document.querySelector('#panel').innerText"
                               ".includes('curl --json')"), True)
    browser.run("const t = document.querySelector('textarea'); t.value = '[1]'; "
                "t.dispatchEvent(new Event('input'))")
    browser.click("form button.main")
    browser.wait("document.querySelector('.error')")
    expect("message", "expected 6 numbers" in
           browser.run("return document.querySelector('.error').textContent"), True)
    keep(browser, "call")


def call_picture(browser, url, picture):
    browser.go(url + "/#/models/mobile")
    browser.wait("document.querySelector('input[type=file]')")
    browser.type("input[type=file]", picture)
    browser.wait("document.querySelector('canvas.shown').width === 32 && "
                 "document.querySelector('fieldset textarea').value.includes('0.')  || "
                 "document.querySelector('fieldset textarea').value.includes('1')")
    browser.click("form button.main")
    browser.wait("document.querySelectorAll('.bars li').length === 10")
    keep(browser, "picture")


def choose(browser, url, model, *files):
    """The page of |model| with these files in its fields, and its answer."""
    browser.go(f"{url}/#/models/{model}")
    browser.wait(f"document.querySelector('h2')?.textContent === '{model}' && "
                 "document.querySelector('input[type=file]')")
    for i, file in enumerate(files):
        browser.type(f"fieldset:nth-of-type({i + 1}) input[type=file]", file)
    browser.wait(f"document.querySelectorAll('.files li').length === {len(files)}")
    browser.click("form button.main")
    browser.wait("document.querySelector('section h3')")


def code_of(browser):
    browser.run("window.texts = []; const s = document.querySelector('#panel select');"
                "for (const o of s.options) { s.value = o.value; s.dispatchEvent("
                "new Event('change')); texts.push(s.parentNode.parentNode.querySelector("
                "'.buttons ~ pre').textContent); }")
    return browser.run("return window.texts")


def use_code(browser, texts, folder):
    """What the curl of a page gets; its Python and JavaScript are at least parsed."""
    ast.parse(texts[1])
    compiled = browser.devtools("Runtime.compileScript", expression=f"async () => {{{texts[2]}}}",
                                sourceURL="", persistScript=False)
    expect("JavaScript", compiled.get("exceptionDetails"), None)
    if not shutil.which("curl"):
        return {"result": [None]}
    done = subprocess.run(["sh", "-c", texts[0].replace("curl", "curl -s", 1)], cwd=folder,
                          capture_output=True, check=True)
    return json.loads(done.stdout)


def call_media(browser, url, folder):
    """Files go as they are; answers are those of the card, over the picture that was sent."""
    scene, tone = os.path.join(folder, "scene.png"), os.path.join(folder, "tone.wav")
    with open(scene, "wb") as file:
        file.write(scene_png())
    with open(tone, "wb") as file:
        file.write(tones.wav([0.5] * 160, 1000))
    choose(browser, url, "squares.boxes", scene)
    boxes = browser.run("return [...document.querySelectorAll('svg.over .box')].map((box) => "
                        "['x', 'y', 'width', 'height'].map("
                        "(side) => Math.round(box.getAttribute(side))))")
    expect("boxes", sorted(boxes), [[40, 25, 20, 20], [120, 5, 20, 20]])
    labels = browser.run("return [...document.querySelectorAll('.bars li span')].map("
                         "(span) => span.textContent)")
    expect("labels", sorted(labels), ["blue", "red"])
    texts = code_of(browser)
    expect("curl", ["--data-binary @'scene.png'" in texts[0], "image/png" in texts[0]], [True] * 2)
    expect("Python", 'data=open("scene.png", "rb")' in texts[1], True)
    expect("JavaScript", "body: files[0]" in texts[2], True)
    boxes, = use_code(browser, texts, folder)["result"]
    expect("boxes by curl", len(boxes or [0, 0]), 2)
    keep(browser, "boxes")
    choose(browser, url, "squares.map", scene)
    browser.wait("(() => { const over = document.querySelector('canvas.over'); "
                 "const context = new OffscreenCanvas(160, 90).getContext('2d', "
                 "{willReadFrequently: true}); context.drawImage(over, 0, 0); "
                 "const alpha = (x, y) => context.getImageData(x, y, 1, 1).data[3]; "
                 "return alpha(50, 35) > 100 && alpha(10, 10) === 0; })()")
    expect("legend", browser.run("return [...document.querySelectorAll('.legend li')].map("
                                 "(item) => item.textContent.split(' ')[0])"),
           ["nothing", "red", "blue"])
    keep(browser, "map")
    choose(browser, url, "digits", scene)
    expect("classes", browser.run("return document.querySelectorAll('.bars li').length"), 5)
    browser.run("document.querySelector('input[type=number]').value = 2")
    browser.click("form button.main")
    browser.wait("document.querySelectorAll('.bars li').length === 2")
    expect("top_k", "call?top_k=2" in code_of(browser)[0], True)
    choose(browser, url, "media.sums", scene, tone)
    expect("a form", browser.run("return document.querySelector('section pre').textContent"
                                 ".startsWith('[')"), True)
    texts = code_of(browser)
    expect("curl", "-F 'sound=@\"tone.wav\"'" in texts[0], True)
    expect("sum by curl", "error" in use_code(browser, texts, folder), False)
    keep(browser, "form")


def record_sound(browser, url):
    """The browser's own microphone beeps; what it records is sent as WAV."""
    browser.go(f"{url}/#/models/media.second")
    browser.wait("document.querySelector('.drop button')")
    browser.click(".drop button")
    browser.wait("document.querySelector('.drop button').textContent === 'Stop'")
    browser.run("window.began = performance.now()")
    browser.wait("performance.now() - window.began > 300")
    browser.click(".drop button")
    browser.wait("document.querySelector('.files li')")
    browser.click("form button.main")
    browser.wait("document.querySelector('section pre')")
    expect("a file", "recording.wav" in code_of(browser)[0], True)


def call_numbers(browser, url):
    """Models of numbers, whose cards say answers: those come with `infer`."""
    for model, button, shown in (("joined", 1, ".bars li"), ("text", 3, "p.said"),
                                 ("map", 3, ".picture canvas")):
        browser.go(f"{url}/#/models/answers.{model}")
        browser.wait(f"document.querySelector('h2')?.textContent === 'answers.{model}' && "
                     "document.querySelector('fieldset textarea')")
        browser.click(f"fieldset .buttons button:nth-of-type({button})")
        browser.click("form button.main")
        browser.wait(f"document.querySelector('{shown}')")
        expect("asks", '"answer":true' in code_of(browser)[0], True)


def call_text(browser, url, folder):
    browser.go(f"{url}/#/models/enc")
    browser.wait("document.querySelector('fieldset textarea')")
    browser.type("fieldset textarea", "hello world")
    browser.click("form button.main")
    browser.wait("document.querySelector('section pre')")
    texts = code_of(browser)
    expect("a text alone", "Content-Type: text/plain" in texts[0], True)
    expect("state by curl", "error" in use_code(browser, texts, folder), False)


def go_to(browser, expression):
    """Presses Tab until the element with the focus is the one."""
    for _ in range(TABS_MAX):
        browser.press(TAB)
        if browser.run(f"const e = document.activeElement; return {expression}"):
            expect("focus is seen", browser.run(
                "return getComputedStyle(document.activeElement).outlineStyle !== 'none'"), True)
            return
    raise Failure(f"Tab never comes to {expression}")


def use_keys(browser, url, folder):
    """A call without a pointer: links, tabs, a file, Run, the code; the focus is never lost."""
    browser.go(f"{url}/")
    browser.wait("document.querySelector('table.models a')")
    go_to(browser, "e.textContent === 'squares.boxes'")
    browser.press(ENTER)
    browser.wait("document.querySelector('#panel form')")
    go_to(browser, "e.getAttribute('role') === 'tab'")
    browser.press(RIGHT)
    browser.wait("document.activeElement.textContent === 'Inputs and outputs'")
    browser.press(HOME)
    browser.wait("document.activeElement.textContent === 'Call'")
    go_to(browser, "e.type === 'file'")
    browser.type("input[type=file]", os.path.join(folder, "scene.png"))
    browser.wait("document.querySelector('.files li')")
    go_to(browser, "e.textContent === 'Run'")
    browser.press(ENTER)
    browser.wait("document.querySelectorAll('svg.over .box').length === 2")
    expect("kept", browser.run("return document.activeElement.textContent"), "Run")
    go_to(browser, "e.tagName === 'SELECT'")
    expect("is said", browser.run("return document.querySelector('#panel p[role=status]')"
                                  ".textContent").startswith("Answered"), True)


def names_for_readers(browser, page):
    """Everything that acts or is a picture has a name for screen readers."""
    roles = {"button", "link", "textbox", "spinbutton", "combobox", "image", "checkbox", "tab",
             "tabpanel", "log", "dialog", "Canvas", "graphics-document"}
    nodes = browser.devtools("Accessibility.getFullAXTree")["nodes"]
    seen = [(node["role"]["value"], node.get("name", {}).get("value", ""))
            for node in nodes if not node["ignored"] and node["role"]["value"] in roles]
    expect(f"{page} has some", len(seen) > 3, True)
    expect(f"{page} without a name", [role for role, name in seen if not name], [])


def draw_graph(browser):
    browser.run("[...document.querySelectorAll('[role=tab]')].find((tab) => "
                "tab.textContent === 'Graph').click()")
    browser.wait("document.querySelectorAll('.graph circle').length > 10")
    browser.click("#panel .buttons button")
    browser.wait("document.querySelectorAll('.graph rect').length > 5")
    keep(browser, "graph")


def chat(browser, url):
    browser.go(url + "/#/models/chat")
    browser.wait("document.querySelector('.talk')")
    browser.run("[...document.querySelectorAll('label input')][1].value = 0")
    browser.type("#panel textarea", "What is the capital of Japan?")
    browser.click("#panel button.main")
    browser.wait("/tokens/.test(document.querySelector('#panel [role=status]').textContent)")
    expect("answer", browser.run("return document.querySelector('p.assistant').textContent"),
           "The capital of Japan is Tokyo.")
    names_for_readers(browser, "chat")
    keep(browser, "chat")


def look_at_phone(url):
    """Nothing is wider than a phone."""
    with webdriver.Browser(500, 800) as browser:
        browser.devtools("Emulation.setDeviceMetricsOverride", width=360, height=740,
                         deviceScaleFactor=2, mobile=True)
        for page in ("/", "/#/models/add", "/#/models/chat"):
            browser.go(url + page)
            browser.wait("document.querySelector(location.hash ? '#panel form' : 'table.models a')")
            expect(f"{page} fits", browser.run(
                "return document.documentElement.scrollWidth <= window.innerWidth"), True)
        keep(browser, "phone")


def scene_png():
    """160 x 90 pixels with a red and a blue square."""
    def colour(x, y):
        return (255, 0, 0) if 40 <= x < 60 and 25 <= y < 45 \
            else (0, 0, 255) if 120 <= x < 140 and 5 <= y < 25 else (10, 20, 30)
    return png([colour(x, y) for y in range(90) for x in range(160)], 160)


def media_models(folder):
    """The command line of models with cards."""
    cards = {"digits": {"inputs": [{"name": "image", "image": {"resize": [8, 8]}}],
                        "outputs": [{"labels": list("0123456789")}]},
             "squares": SQUARES, "media": MEDIA, "answers": ANSWERS,
             "enc": {"inputs": {"input_ids": {"text": TEXT}}}}
    files = {"digits": "digits.pte", "squares": "squares.pte", "media": "media/model.pte",
             "answers": "answers.pte", "enc": "encoder/model.pte"}
    arguments = []
    shutil.copy(MODELS / "encoder" / "tokenizer.json", folder)
    for name, card in cards.items():
        shutil.copy(MODELS / files[name], os.path.join(folder, f"{name}.pte"))
        with open(os.path.join(folder, f"{name}.card.json"), "w", encoding="utf-8") as file:
            json.dump(card, file)
        arguments += ["--model", f"{name}={folder}/{name}.pte"]
    return arguments


def media_pages():
    """The pages of models that take pictures, sounds and texts."""
    if not webdriver.is_there() or missing_library():
        print("skipped: the pages of media, there is no browser or a library is missing")
        return
    with tempfile.TemporaryDirectory() as folder:
        with Daemon(media_models(folder)) as daemon, webdriver.Browser() as browser:
            url = f"http://127.0.0.1:{daemon.port}"
            call_media(browser, url, folder)
            record_sound(browser, url)
            call_text(browser, url, folder)
            call_numbers(browser, url)
            use_keys(browser, url, folder)
            names_for_readers(browser, "squares.boxes")
            expect("complaints", browser.complaints(), [])


def pages():
    if not webdriver.is_there():
        print("skipped: the pages, there is no chromium with chromedriver")
        return
    models = [ADD, DIGITS, str(MODELS / "mobile.pte"), *CHAT]
    with tempfile.TemporaryDirectory() as folder:
        picture = os.path.join(folder, "bar.png")
        write_png(picture, 64)
        with Daemon([*PROFILE, *models]) as daemon:
            url = f"http://127.0.0.1:{daemon.port}"
            with webdriver.Browser() as browser:
                look_at_list(browser, url)
                call_model(browser, url)
                call_picture(browser, url, picture)
                draw_graph(browser)
                chat(browser, url)
                expect("complaints", browser.complaints(), [])
            look_at_phone(url)


CHECKS = (files, graphs, many_graphs, description, pages, media_pages)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
