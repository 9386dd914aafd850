#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The pages of the console in a browser: what people see and do there, without a pointer as well.

Skipped without chromium and chromedriver. axe-core, the checker of accessibility, comes with the
package axe-playwright-python of PyPI in the interpreter that PYTHON names, or from the file that
PTED_AXE names; without it only that check is skipped. PTED_SCREENSHOTS=DIR keeps pictures of the
pages there.

usage: run_console_pages.py, with top_srcdir and top_builddir in the environment.
"""
import ast
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

import tones
import webdriver
from run_access import ADMIN, READ, Guarded
from run_daemon import ADD, DIGITS
from run_embeddings import ENCODER
from run_generate import CHAT
from run_media import CARD as MEDIA
from run_media import TEXT, missing_library, png
from run_speech import SPEECH
from run_http import BUILD, MODELS, Daemon, Failure, Report, expect

SOURCE = Path(os.environ["top_srcdir"]).resolve()
RECIPES = SOURCE / "tests" / "recipes"
TAB, ENTER, RIGHT, HOME = "\ue004", "\ue007", "\ue014", "\ue011"
TABS_MAX = 300
PROFILE = ["--profile-spans-max", "100000"]
PHONE = {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": True}
DESK = {"width": 1280, "height": 900, "deviceScaleFactor": 1, "mobile": False}
AXE_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
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
LABELS = {"outputs": [{"labels": ["one", "two", "three", "four", "five"]}]}
CAPITAL = "What is the capital of Japan?"
TOKYO = "The capital of Japan is Tokyo."


# ---- helpers ------------------------------------------------------------------------------------

def keep(browser, name):
    folder = os.environ.get("PTED_SCREENSHOTS")
    if folder:
        browser.picture(os.path.join(folder, f"console-{name}.png"))


def texts_of(browser, selector):
    return browser.run("return [...document.querySelectorAll(arguments[0])].map("
                       "(node) => node.textContent)", selector)


def text_of(browser, selector):
    return browser.wait(f"document.querySelector({json.dumps(selector)})?.textContent")


def open_page(browser, url, page, selector):
    """The page, made anew: a change of what is behind '#' alone makes none."""
    browser.go(f"{url}/{page}")
    browser.run("window.isOld = true; location.reload()")
    browser.wait(f"!window.isOld && document.readyState === 'complete' && "
                 f"document.querySelector({json.dumps(selector)})")


def press_text(browser, selector, text):
    """Clicks on the one of |selector| that says |text|."""
    browser.wait(f"[...document.querySelectorAll({json.dumps(selector)})].some((node) => "
                 f"node.textContent === {json.dumps(text)})")
    browser.run("[...document.querySelectorAll(arguments[0])].find((node) => "
                "node.textContent === arguments[1]).click()", selector, text)


def write_field(browser, selector, text):
    browser.run("const field = document.querySelector(arguments[0]); field.value = arguments[1]; "
                "field.dispatchEvent(new Event('input'));", selector, text)


def go_to(browser, expression):
    """Presses Tab until the element with the focus is the one."""
    for _ in range(TABS_MAX):
        browser.press(TAB)
        if browser.run(f"const e = document.activeElement; return {expression}"):
            expect("focus is seen", browser.run(
                "return getComputedStyle(document.activeElement).outlineStyle !== 'none' || "
                "Boolean(document.activeElement.closest('.box:focus-within'))"), True)
            return
    raise Failure(f"Tab never comes to {expression}")


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


def scene_png():
    """160 x 90 pixels with a red and a blue square."""
    def colour(x, y):
        return (255, 0, 0) if 40 <= x < 60 and 25 <= y < 45 \
            else (0, 0, 255) if 120 <= x < 140 and 5 <= y < 25 else (10, 20, 30)
    return png([colour(x, y) for y in range(90) for x in range(160)], 160)


def with_card(folder, name, file, card):
    """Arguments that serve a copy of the file with that card."""
    shutil.copy(MODELS / file, os.path.join(folder, f"{name}.pte"))
    with open(os.path.join(folder, f"{name}.card.json"), "w", encoding="utf-8") as out:
        json.dump(card, out)
    return ["--model", f"{name}={folder}/{name}.pte"]


# ---- the start page -----------------------------------------------------------------------------

def start_page(browser, url):
    open_page(browser, url, "#/", "table.models a")
    kinds = browser.run(
        "return [...document.querySelectorAll('section.kind')].map((part) => "
        "[part.querySelector('h2').firstChild.textContent, "
        "[...part.querySelectorAll('tbody th')].map((name) => name.textContent)])")
    expect("kinds", kinds, [["Chat", ["chat"]], ["Speech and sound", ["whisper"]],
                            ["Embeddings and texts", ["enc", "enc.rows", "enc.score"]],
                            ["Tensors", ["add", "digits", "labelled", "mobile",
                                         "whisper.encoder"]]])
    expect("constants", "chat.get_max_seq_len" in texts_of(browser, "details a"), True)
    expect("changes are for administrators", texts_of(browser, "table.models button"), [])
    browser.wait("/MiB|GiB/.test(document.querySelectorAll('.tile strong')[3].textContent)")
    call = ("fetch('/v2/models/add/call', {method: 'POST', body: JSON.stringify("
            "{args: [[[1,2,3],[4,5,6]],[[1,1,1],[1,1,1]]]})})")
    browser.run(f"return Promise.all([{call}, {call}])")
    browser.wait("document.querySelectorAll('.tile .spark .line')[0].getAttribute('d') && "
                 "[...document.querySelectorAll('table.models tr')].find((row) => "
                 "row.textContent.startsWith('add')).cells[4].textContent === '2'")
    browser.wait("[1, 2].every((i) => /\\d (µs|ms|s)$/.test("
                 "document.querySelectorAll('.tile strong')[i].textContent))")
    keep(browser, "start")


def finds_models():
    """A field finds models by a part of their names, if there are many."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = []
        for i in range(14):
            arguments += ["--model", f"copy{i}={shutil.copy(MODELS / 'add.pte', folder)}"]
        with Daemon(arguments) as daemon, webdriver.Browser() as browser:
            open_page(browser, f"http://127.0.0.1:{daemon.port}", "#/", "input[type=search]")
            browser.type("input[type=search]", "py1")
            expect("found", texts_of(browser, "tbody tr:not([hidden]) a"),
                   ["copy1", "copy10", "copy11", "copy12", "copy13"])


# ---- tokens and administrators ------------------------------------------------------------------

def give_token(browser, token):
    browser.wait("document.getElementById('token-dialog').open")
    browser.type("#token-text", token)
    browser.press(ENTER)


def tokens():
    """A missing token opens the dialog once; only administrators see what changes models."""
    with Guarded() as guarded, webdriver.Browser() as browser:
        url = f"http://127.0.0.1:{guarded.daemon.port}"
        browser.go(f"{url}/")
        browser.wait("document.getElementById('token-dialog').open")
        press_text(browser, "dialog button", "Cancel")
        browser.wait("/Authorization/.test(document.querySelector('main .error')?.textContent)")
        browser.go(f"{url}/#/models/add")
        browser.wait("document.querySelector('main .error')")
        expect("once", browser.run("return document.getElementById('token-dialog').open"), False)
        browser.click("#token")
        give_token(browser, READ)
        browser.wait("document.querySelector('#panel form')")
        browser.click("header a")
        browser.wait("document.querySelector('table.models a')")
        expect("a reader", texts_of(browser, "table.models button"), [])
        browser.click("#token")
        browser.run("document.getElementById('token-text').value = ''")
        give_token(browser, ADMIN)
        browser.wait("document.querySelector('table.models button[title=\"Unload add\"]')")
        browser.click("button[title='Unload add']")
        browser.wait("document.querySelector('table.models button[title=\"Load add\"]')")
        expect("state", "not loaded" in text_of(browser, ".state"), True)
        browser.click("button[title='Load add']")
        browser.wait("document.querySelector('table.models a')")


def administrators():
    """At an address of --admin-listen there is a button for each change."""
    with Daemon([ADD, "--admin-listen=127.0.0.1:0"]) as daemon, webdriver.Browser() as browser:
        open_page(browser, f"http://127.0.0.1:{daemon.admin_port()}", "#/", "table.models a")
        titles = browser.run("return [...document.querySelectorAll('td button')].map("
                             "(button) => button.title)")
        expect("buttons", titles, ["Load again add", "Unload add"])


# ---- calls --------------------------------------------------------------------------------------

def call_tensors(browser, url):
    open_page(browser, url, "#/models/add", "fieldset textarea")
    browser.run("document.querySelectorAll('fieldset .buttons button:nth-child(2)')"
                ".forEach((button) => button.click())")
    browser.click("form button.main")
    browser.wait("document.querySelector('section pre')")
    expect("sum", text_of(browser, "section pre"), "[2,2,2,2,2,2]")
    expect("table", texts_of(browser, "table.numbers td"), ["2"] * 6)
    expect("curl", "curl --json" in text_of(browser, "#panel .buttons ~ pre"), True)
    write_field(browser, "textarea", "[1]")
    browser.click("form button.main")
    browser.wait("document.querySelector('.error')")
    expect("message", "expected 6 numbers" in text_of(browser, ".error"), True)
    keep(browser, "call")


def scores_alone_get_bars(browser, url, picture):
    """Ten floats are no classes; labels make them scores; NaN is no share of anything."""
    open_page(browser, url, "#/models/mobile", "input[type=file]")
    browser.type("input[type=file]", picture)
    browser.wait("document.querySelector('canvas.shown').width === 32")
    browser.click("form button.main")
    browser.wait("document.querySelectorAll('.cells li').length === 10")
    expect("bars", texts_of(browser, ".bars li"), [])
    open_page(browser, url, "#/models/labelled", "fieldset textarea")
    press_text(browser, "fieldset button", "ones")
    browser.click("form button.main")
    browser.wait("document.querySelectorAll('.bars li').length === 5")
    shares = texts_of(browser, ".bars data")
    expect("percents", all(share.endswith(" %") for share in shares), True)
    write_field(browser, "fieldset textarea", json.dumps([["NaN"] * 12]))
    browser.click("form button.main")
    browser.wait("[...document.querySelectorAll('.bars data')].every((data) => "
                 "data.textContent === 'NaN')")
    keep(browser, "scores")


def matrices(browser, url):
    """A large matrix is a heat map with square cells; pictures are as large as one can see."""
    open_page(browser, url, "#/models/enc.rows/call", "fieldset textarea")
    made = browser.run(
        "return import('/console/numbers.js').then(({showMatrix, showPicture}) => {"
        "  const row = (y) => Array.from({length: 40}, (_, x) => x - y);"
        "  const rows = Array.from({length: 20}, (_, y) => row(y));"
        "  document.querySelector('main').replaceChildren(...showMatrix(rows), ...showPicture("
        "    new Array(64).fill(0).map((_, i) => i), {channels: 1, height: 8, width: 8}, 'p'));"
        "  return [...document.querySelectorAll('main canvas')].map((canvas) => {"
        "    const box = canvas.getBoundingClientRect(); return [box.width, box.height]; }); })")
    (width, height), (side, _) = made
    expect("square cells", abs(width / 40 - height / 20) < 0.2, True)
    expect(f"{side} pixels are seen", side > 300, True)


def choose(browser, url, model, *files):
    """The page of |model| with these files in its fields, and its answer."""
    open_page(browser, url, f"#/models/{model}/call", "input[type=file]")
    for i, file in enumerate(files):
        browser.type(f"fieldset:nth-of-type({i + 1}) input[type=file]", file)
    browser.wait(f"document.querySelectorAll('.files li').length === {len(files)}")
    if len(files) > 1:  # with one the page asks by itself
        browser.click("form button.main")
    browser.wait("document.querySelector('section h2')")


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
    expect("labels", sorted(texts_of(browser, ".bars li span")), ["blue", "red"])
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
    expect("legend", [text.split()[0] for text in texts_of(browser, ".legend li")],
           ["nothing", "red", "blue"])
    keep(browser, "map")
    choose(browser, url, "digits", scene)
    expect("classes", len(texts_of(browser, ".bars li")), 5)
    browser.run("document.querySelector('input[type=number]').value = 2")
    browser.click("form button.main")
    browser.wait("document.querySelectorAll('.bars li').length === 2")
    expect("top_k", "call?top_k=2" in code_of(browser)[0], True)
    choose(browser, url, "media.sums", scene, tone)
    expect("a form", text_of(browser, "section pre").startswith("["), True)
    texts = code_of(browser)
    expect("curl", "-F 'sound=@\"tone.wav\"'" in texts[0], True)
    expect("sum by curl", "error" in use_code(browser, texts, folder), False)
    keep(browser, "form")


def drop_picture(browser, url):
    """A picture that is dropped is answered at once."""
    open_page(browser, url, "#/models/squares.boxes", ".drop")
    browser.run(
        "return new Promise((done) => { const canvas = document.createElement('canvas');"
        "canvas.width = 160; canvas.height = 90; const context = canvas.getContext('2d');"
        "context.fillStyle = '#f00'; context.fillRect(40, 25, 20, 20); canvas.toBlob((blob) => {"
        "  const data = new DataTransfer(); data.items.add(new File([blob], 'dropped.png', "
        "{type: 'image/png'})); document.querySelector('.drop').dispatchEvent(new DragEvent("
        "'drop', {dataTransfer: data, bubbles: true, cancelable: true})); done(); }); })")
    browser.wait("document.querySelector('svg.over .box')")


def record_sound(browser, url):
    """The browser's own microphone beeps; what it records is sent as WAV."""
    open_page(browser, url, "#/models/media.second", ".drop button")
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
        open_page(browser, url, f"#/models/answers.{model}", "fieldset textarea")
        browser.click(f"fieldset .buttons button:nth-of-type({button})")
        browser.click("form button.main")
        browser.wait(f"document.querySelector('{shown}')")
        expect("asks", '"answer":true' in code_of(browser)[0], True)


def call_text(browser, url, folder):
    open_page(browser, url, "#/models/enc/call", "fieldset textarea")
    browser.type("fieldset textarea", "hello world")
    browser.click("form button.main")
    browser.wait("document.querySelector('section pre')")
    texts = code_of(browser)
    expect("a text alone", "Content-Type: text/plain" in texts[0], True)
    expect("state by curl", "error" in use_code(browser, texts, folder), False)


def use_keys(browser, url, folder):
    """A call without a pointer: links, tabs, a file, Run, the code; the focus is never lost."""
    open_page(browser, url, "#/", "table.models a")
    go_to(browser, "e.textContent === 'squares.boxes'")
    browser.press(ENTER)
    browser.wait("document.querySelector('#panel form')")
    go_to(browser, "e.getAttribute('role') === 'tab'")
    browser.press(RIGHT)
    browser.wait("document.activeElement.textContent === 'Inputs and outputs'")
    expect("the address has it", browser.run("return location.hash"),
           "#/models/squares.boxes/tensors")
    browser.press(HOME)
    browser.wait("document.activeElement.textContent === 'Call'")
    go_to(browser, "e.type === 'file'")
    browser.type("input[type=file]", os.path.join(folder, "scene.png"))
    browser.wait("document.querySelectorAll('svg.over .box').length === 2")
    go_to(browser, "e.textContent === 'Run'")
    browser.press(ENTER)
    browser.wait("!document.querySelector('#panel button.main[aria-disabled]')")
    expect("kept", browser.run("return document.activeElement.textContent"), "Run")
    go_to(browser, "e.tagName === 'SELECT'")
    expect("is said", text_of(browser, "#panel p[role=status]").startswith("Answered"), True)


def draw_graph(browser, url):
    open_page(browser, url, "#/models/mobile/graph", ".graph circle")
    browser.click("#panel .buttons button")
    browser.wait("document.querySelectorAll('.graph rect').length > 5")
    keep(browser, "graph")


# ---- chats --------------------------------------------------------------------------------------

def say(browser, text):
    browser.type(".box textarea", text)
    browser.press(ENTER)


def wait_for_end(browser, count):
    browser.wait(f"document.querySelectorAll('.message.assistant .foot').length === {count} && "
                 "document.querySelector('.talk').getAttribute('aria-busy') === 'false'")


def set_chat(browser, **settings):
    for name, value in settings.items():
        write_field(browser, f"#chat-settings [name={name}]", value)


def chat(browser, url):
    """An answer, another try, a second chat; all are there when the page is opened again."""
    open_page(browser, url, "#/models/chat", ".box textarea")
    set_chat(browser, temperature="0")
    say(browser, CAPITAL)
    wait_for_end(browser, 1)
    expect("answer", text_of(browser, ".message.assistant .said"), TOKYO)
    expect("figures", "tokens/s" in text_of(browser, ".figures"), True)
    press_text(browser, ".foot button", "Retry")
    wait_for_end(browser, 1)
    expect("again", texts_of(browser, ".message .said"), [CAPITAL, TOKYO])
    press_text(browser, ".side button", "New chat")
    expect("empty", texts_of(browser, ".message"), [])
    set_chat(browser, max_tokens="3")
    say(browser, "Count from 2 to 7.")
    wait_for_end(browser, 1)
    expect("is cut", "cut at the limit" in text_of(browser, ".figures"), True)
    expect("code", '"max_tokens":3' in browser.run(
        "return document.querySelector('.request').textContent"), True)
    open_page(browser, url, "#/models/chat", ".chats li")
    expect("chats", texts_of(browser, ".chats button:first-child"), ["Count from 2 to 7.", CAPITAL])
    press_text(browser, ".chats button", CAPITAL)
    expect("opened", texts_of(browser, ".message .said"), [CAPITAL, TOKYO])
    browser.click(f"button[title='Delete {CAPITAL}']")
    browser.wait("document.querySelectorAll('.chats li').length === 1")
    keep(browser, "chat")


def chat_settings(browser, url):
    """A schema is kept to; what is no JSON is said, and what was asked can be asked again."""
    open_page(browser, url, "#/models/chat", ".box textarea")
    press_text(browser, ".side button", "New chat")
    browser.click("button[title=Settings]")
    set_chat(browser, temperature="0", max_tokens="", schema='{"enum": ["yes", "no"]}')
    say(browser, CAPITAL)
    wait_for_end(browser, 1)
    expect("kept to", text_of(browser, ".message.assistant .said") in ('"yes"', '"no"'), True)
    set_chat(browser, schema="{")
    press_text(browser, ".foot button", "Retry")
    browser.wait("document.querySelector('.talk .error')")
    expect("says", "this is no JSON" in text_of(browser, ".talk .error"), True)
    set_chat(browser, schema="")
    press_text(browser, ".talk > button", "Try again")
    wait_for_end(browser, 1)
    expect("answer", text_of(browser, ".message.assistant .said"), TOKYO)


# What a daemon may stream: thoughts, HTML, a call of a tool in pieces.
STREAM = [
    {"reasoning_content": "They want *HTML*."},
    {"content": "# Title\n\n<img src=x onerror=\"window.harmed = 1\"> and **bold** "},
    {"content": "[bad](javascript:window.harmed=1) [good](https://example.org)\n\n| a | b |\n"},
    {"content": "|---|--:|\n| 1 | `2` |\n\n```python\nprint('hi') # note\n```\n\n1. one\n"},
    {"content": "   - inner\n2. two\n"},
    {"tool_calls": [{"index": 0, "id": "c1", "type": "function",
                     "function": {"name": "weather", "arguments": "{\"city\":"}}]},
    {"tool_calls": [{"index": 0, "function": {"arguments": " \"Oslo\"}"}}]},
]
# Answers requests of chats with the events in window.stream, an error among them; the answer of an
# endless one never ends.
FAKE = """
window.asked = [];
const real = window.fetch;
window.fetch = (path, options) => {
    if (path !== '/v1/chat/completions') { return real(path, options); }
    window.asked.push(JSON.parse(options.body));
    const text = new TextEncoder();
    return Promise.resolve(new Response(new ReadableStream({start(control) {
        options.signal.addEventListener('abort', () =>
            control.error(new DOMException('stopped', 'AbortError')));
        for (const delta of window.stream) {
            const event = JSON.stringify(delta.error ? delta : {choices: [{delta}]});
            control.enqueue(text.encode('data: ' + event + '\\n\\n'));
        }
        if (!window.isEndless) { control.close(); }
    }})));
};
"""


def begin_fake(browser, url, stream, is_endless=False):
    open_page(browser, url, "#/models/chat", ".box textarea")
    press_text(browser, ".side button", "New chat")
    browser.run(FAKE + "window.stream = arguments[0]; window.isEndless = arguments[1];",
                stream, is_endless)


def rich_answers(browser, url):
    """Markdown is shown, HTML is not run; thoughts are folded; calls of tools get their answer."""
    begin_fake(browser, url, STREAM)
    say(browser, "Show me.")
    wait_for_end(browser, 1)
    said = ".message.assistant .markdown"
    expect("thoughts", text_of(browser, ".thinking .thought"), "They want HTML.")
    expect("folded", browser.run("return document.querySelector('.thinking').open"), False)
    expect("no HTML", browser.run(
        f"return document.querySelectorAll('{said} img, {said} script').length"), 0)
    expect("harmed", browser.run("return window.harmed"), None)
    expect("as text", "<img src=x" in text_of(browser, said), True)
    expect("links", browser.run(f"return [...document.querySelectorAll('{said} a')].map("
                                "(link) => link.href)"), ["https://example.org/"])
    expect("bold", texts_of(browser, f"{said} strong"), ["bold"])
    expect("table", texts_of(browser, f"{said} th, {said} td"), ["a", "b", "1", "2"])
    expect("code", text_of(browser, f"{said} pre code"), "print('hi') # note")
    expect("colours", texts_of(browser, f"{said} .code-comment"), ["# note"])
    expect("lists", texts_of(browser, f"{said} ol > li > ul > li"), ["inner"])
    expect("tool", text_of(browser, ".tool strong"), "weather")
    expect("arguments", json.loads(text_of(browser, ".tool pre")), {"city": "Oslo"})
    keep(browser, "rich")
    browser.run("window.stream = [{content: '<think>Warm.</think>It is warm.'}]")
    browser.type(".tool textarea", "20 degrees")
    press_text(browser, ".calls button", "Give the answer")
    wait_for_end(browser, 2)
    asked = browser.run("return window.asked[1].messages.slice(1)")
    expect("call", (asked[0]["tool_calls"][0]["function"]["name"], asked[1]),
           ("weather", {"role": "tool", "tool_call_id": "c1", "content": "20 degrees"}))
    expect("no thoughts are sent", "They want" in json.dumps(asked), False)
    expect("thought in the text", texts_of(browser, ".thought")[-1], "Warm.")
    expect("said", texts_of(browser, f"{said}")[-1], "It is warm.")


def stop_answers(browser, url):
    """What has come of an answer stays when it is stopped; a message can be said in another way."""
    begin_fake(browser, url, [{"content": "It goes on"}], is_endless=True)
    say(browser, "Never end.")
    browser.wait("/goes on/.test(document.querySelector('.message.assistant')?.textContent)")
    expect("button", browser.run("return document.querySelector('.box .main')"
                                 ".getAttribute('aria-label')"), "Stop")
    browser.click(".box .main")
    wait_for_end(browser, 1)
    expect("kept", text_of(browser, ".message.assistant .said"), "It goes on")
    expect("says so", "stopped" in text_of(browser, ".figures"), True)
    browser.click("button[title=Edit]")
    expect("back in the box", browser.run("return document.querySelector('.box textarea').value"),
           "Never end.")
    expect("taken back", texts_of(browser, ".message"), [])


def kept_chats(browser):
    """The texts of the chats in the browser's storage."""
    return browser.run("return JSON.parse(localStorage.getItem('pted-chats') || '[]').map("
                       "(chat) => chat.messages.map((message) => message.content))")


def begin_endless(browser, url, text):
    begin_fake(browser, url, [{"content": "It goes on"}], is_endless=True)
    say(browser, text)
    browser.wait("/goes on/.test(document.querySelector('.message.assistant')?.textContent)")


def drop_chats(browser, url):
    """A chat that is deleted while its answer comes stays away; other answers are not touched."""
    open_page(browser, url, "#/models/chat", ".box textarea")
    browser.run("localStorage.clear()")
    begin_endless(browser, url, "One.")
    expect("kept from the start", kept_chats(browser), [["One."]])
    browser.click(".box .main")
    wait_for_end(browser, 1)
    press_text(browser, ".side button", "New chat")
    say(browser, "Two.")
    browser.wait("/goes on/.test(document.querySelector('.message.assistant')?.textContent)")
    browser.click("button[title='Delete One.']")
    expect("the other", kept_chats(browser), [["Two."]])
    expect("still comes", text_of(browser, ".message.assistant .said"), "It goes on")
    expect("busy", browser.run("return document.querySelector('.talk').ariaBusy"), "true")
    browser.click("button[title='Delete Two.']")
    browser.run("return new Promise((done) => setTimeout(done, 300))")
    expect("stays away", (kept_chats(browser), texts_of(browser, ".chats li, .message")), ([], []))


def leave_chats(browser, url):
    """Questions outlive a reload, answers stop with their page, and two tabs lose no turns."""
    begin_endless(browser, url, "One.")
    open_page(browser, url, "#/models/chat", ".chats li")
    expect("question", texts_of(browser, ".message .said"), ["One."])
    browser.run(FAKE + "window.stream = [{content: 'Yes.'}]")
    press_text(browser, ".talk > button", "Try again")
    wait_for_end(browser, 1)
    browser.run("window.isEndless = true")
    say(browser, "Two.")
    browser.wait("document.querySelectorAll('.message.assistant .wait').length && "
                 "/Yes/.test([...document.querySelectorAll('.message')].at(-1).textContent)")
    browser.run("location.hash = '#/'")
    browser.wait("document.querySelector('table.models a')")
    expect("stopped", kept_chats(browser)[0], ["One.", "Yes.", "Two.", "Yes."])
    open_page(browser, url, "#/models/chat", ".chats li")
    use_tabs(browser, url)
    browser.run("Storage.prototype.setItem = () => { throw new Error('full'); }")
    say(browser, "Lost.")
    expect("says so", "no room" in text_of(browser, ".talk-side > div > .error"), True)


def use_tabs(browser, url):
    first = browser.ask("GET", "/window")
    second = browser.ask("POST", "/window/new", {"type": "tab"})["handle"]
    browser.run(FAKE + "window.stream = [{content: 'A.'}]; window.isEndless = true")
    say(browser, "In one tab.")
    browser.wait("document.querySelector('.message.assistant .wait')")
    browser.ask("POST", "/window", {"handle": second})
    open_page(browser, url, "#/models/chat", ".chats li")
    browser.run(FAKE + "window.stream = [{content: 'B.'}]")
    say(browser, "In the other.")
    browser.wait("[...document.querySelectorAll('.message .said')].at(-1).textContent === 'B.' && "
                 "document.querySelector('.message:last-of-type .foot')")
    browser.ask("POST", "/window", {"handle": first})
    browser.click(".box .main")
    browser.wait("!document.querySelector('.message.assistant .wait')")
    kept = kept_chats(browser)
    expect("both", sorted(chat[-1] for chat in kept[:2]), ["A.", "B."])
    browser.ask("POST", "/window", {"handle": second})
    browser.wait(f"document.querySelectorAll('.chats li').length === {len(kept)}")
    browser.ask("DELETE", "/window")
    browser.ask("POST", "/window", {"handle": first})


def try_again(browser, url):
    """Another try asks for the same answer; one that fails leaves the answer that was there."""
    error = {"error": {"message": "it is cut"}}
    begin_fake(browser, url, [{"content": "Half an"}, error])
    say(browser, "One.")
    browser.wait("document.querySelector('.talk .error')")
    expect("half", texts_of(browser, ".message .said"), ["One.", "Half an"])
    browser.run("window.stream = [{content: 'Use `</think>` there.'}]")
    press_text(browser, ".talk > button", "Try again")
    browser.wait("!document.querySelector('.talk .error, .wait')")
    expect("roles", browser.run("return window.asked[1].messages.map(({role}) => role)"), ["user"])
    expect("no thought", texts_of(browser, ".message .said"), ["One.", "Use </think> there."])
    browser.run("window.stream = [{content: 'Worse'}, arguments[0]]", error)
    press_text(browser, ".foot button", "Retry")
    browser.wait("document.querySelector('.talk .error')")
    expect("the old one", kept_chats(browser)[0], ["One.", "Use `</think>` there."])


MARKDOWN = [
    ("```a``` is code\n\nb", "<p><code>a</code> is code</p><p>b</p>"),
    ("```c d\n# x\n```", "pre code:# x"),
    ("[a](http://x/(y)) b", "a:a"),
    ("|a|b|\n|-|-|\n|1\\|2|3|", "td:1|2"),
    ("- a\u2028b", "li:a\u2028b"),
]


def markdown(browser, url):
    open_page(browser, url, "#/help", "h1")
    for text, wanted in MARKDOWN:
        html, node = browser.run(
            "return import('/console/markdown.js').then(({showMarkdown}) => {"
            "  const place = document.createElement('div'); showMarkdown(place, arguments[0]);"
            "  const name = arguments[1].split(':')[0];"
            "  return [place.innerHTML, /^</.test(name) ? null : "
            "place.querySelector(name)?.textContent ?? null]; })", text, wanted)
        expect(text, html if wanted[0] == "<" else f"{wanted.split(':')[0]}:{node}", wanted)


MARKDOWN_ELEMENTS = set(
    "A BLOCKQUOTE BR BUTTON CODE DEL DIV EM H1 H2 H3 H4 H5 H6 HR INPUT LI OL P PRE S SPAN STRONG "
    "TABLE TBODY TD TH THEAD TR UL path svg".split())


def hostile_texts(browser, url):
    """Long texts of a model become nodes of Markdown alone, before a script takes too long."""
    open_page(browser, url, "#/help", "h1")
    pieces = ["*a ", "_a", "**", "`", "``a`", "[", "[a](", "![", "\\", "> ", "> > ", "- ", "1. ",
              " - a\n  - b\n", "|", "|-", "# ", "#  ", "~~~\n", "```\n", "<think>", "http://",
              "a|b\n-|-\n", " ", "\t", "* * ", "~~a", "*a **b ", "- - - x", "--- ", "\n\n",
              "<a href=", ["- ", " ", "a\u2028b"], ["# ", " ", "a\u2028b"], ["` ", "a", "`"],
              ["[a](", "(b)", ""], "[a]((b)", "[a](b)", ["```", "~", "`"]]
    for piece in pieces:
        names = browser.run(
            "return import('/console/markdown.js').then(({showMarkdown}) => {"
            "  const place = document.createElement('div'), piece = arguments[0];"
            "  const [head, part, tail] = Array.isArray(piece) ? piece : ['', piece, ''];"
            "  showMarkdown(place, head + part.repeat(Math.ceil(60000 / part.length)) + tail);"
            "  return [...new Set([...place.querySelectorAll('*')].map((e) => e.tagName))]; })",
            piece)
        expect(f"{piece}: elements of no Markdown", set(names) - MARKDOWN_ELEMENTS, set())


def use_chat_keys(browser, url):
    open_page(browser, url, "#/models/chat", ".box textarea")
    go_to(browser, "e.closest('.box') && e.tagName === 'TEXTAREA'")
    go_to(browser, "e.title === 'Settings'")
    browser.press(ENTER)
    browser.wait("!document.getElementById('chat-settings').hidden && "
                 "document.activeElement.getAttribute('aria-expanded') === 'true'")


# ---- texts and speech ---------------------------------------------------------------------------

def texts(browser, url):
    open_page(browser, url, "#/models/enc", ".choice button")
    browser.click("form button.main")
    browser.wait("/^32 numbers/.test(document.querySelector('.result .soft')?.textContent)")
    press_text(browser, ".choice button", "Compare")
    for i in (1, 2):
        browser.run(f"document.querySelectorAll('form textarea')[{i - 1}].value = 'cat'")
    browser.click("form button.main")
    expect("the same", text_of(browser, ".figure strong"), "1.000")
    press_text(browser, ".choice button", "Rank")
    browser.run("document.querySelector('form textarea').value = 'dog\\ncat\\n\\nbird'")
    browser.run("document.querySelector('form input').value = 'cat'")
    browser.click("form button.main")
    browser.wait("document.querySelectorAll('.bars li').length === 3")
    expect("best", texts_of(browser, ".bars li span")[0], "cat")
    press_text(browser, ".choice button", "Map")
    browser.click("form button.main")
    browser.wait("document.querySelectorAll('svg.map .dot').length === 9")
    browser.run("document.querySelector('svg.map .dot').focus()")
    expect("is said", text_of(browser, ".picked"), "The cat sleeps on the sofa.")
    keep(browser, "texts")
    open_page(browser, url, "#/models/enc.score", "form button.main")
    expect("no vectors", texts_of(browser, ".choice button"), [])
    browser.click("form button.main")
    browser.wait("document.querySelectorAll('.bars li').length === 6")


def first_calls(browser, url):
    """The commands of the documentation's page are some that pte has."""
    open_page(browser, url, "#/help", ".code pre")
    for command in texts_of(browser, ".code pre"):
        program, name, *_ = command.split()
        if program == "pte":
            done = subprocess.run([BUILD / "pte", name, "--help"], capture_output=True, text=True,
                                  check=True)
            expect(command, done.stdout.startswith(f"usage: pte {name} "), True)


def components(browser, url):
    """The map's axes are those of most difference: a line in five dimensions stays a line."""
    open_page(browser, url, "#/help", "h1")
    shares, points = browser.run(
        "return import('/console/vectors.js').then(({mapOf}) => { const rows = [0, 1, 2, 3].map("
        "(t) => [3 * t, 4 * t, 0, 1, 0]); const {shares, points} = mapOf(rows);"
        "return [shares, points]; })")
    expect("shares", [round(share, 6) for share in shares], [1, 0])
    expect("distances", [round(abs(points[i + 1][0] - points[i][0]), 6) for i in range(3)], [5] * 3)


def speech(browser, url):
    sound = str((MODELS / "whisper" / "sound.flac").resolve())
    open_page(browser, url, "#/models/whisper.text_decoder", "input[type=file]")
    browser.type("input[type=file]", sound)
    browser.click("form button.main")
    browser.wait("document.querySelector('.result .said')?.textContent === 'red green blue'")
    for form, shown in (("verbose_json", ".segments li"), ("srt", ".result pre")):
        browser.run("const s = document.querySelectorAll('form select')[1]; s.value = arguments[0];"
                    "s.dispatchEvent(new Event('change'))", form)
        browser.click("form button.main")
        browser.wait(f"/red green blue/.test(document.querySelector('{shown}')?.textContent)")
    keep(browser, "speech")
    browser.click(".drop button")
    browser.wait("document.querySelector('.drop button').textContent === 'Stop'")
    browser.run("window.began = performance.now()")
    browser.wait("performance.now() - window.began > 300")
    browser.click(".drop button")
    browser.wait("/recording.wav/.test(document.querySelector('#panel').textContent)")


# ---- every page ---------------------------------------------------------------------------------

PAGES = [("#/", "table.models a"), ("#/help", "h1"), ("#/models/chat", ".box"),
         ("#/models/add", "#panel form"), ("#/models/add/tensors", "#panel table"),
         ("#/models/mobile/graph", ".graph circle"), ("#/models/enc", ".choice"),
         ("#/models/enc.score", "#panel form"), ("#/models/whisper.text_decoder", "#panel form"),
         ("#/models/labelled", "#panel form"), ("#/models/nobody", ".error")]


def axe_source():
    """The text of axe-core, or None."""
    path = os.environ.get("PTED_AXE")
    if not path:
        find = ("import importlib.util as u; s = u.find_spec('axe_playwright_python'); "
                "print(s.submodule_search_locations[0] if s else '')")
        python = shutil.which(os.environ.get("PYTHON", "")) or sys.executable
        done = subprocess.run([python, "-c", find], capture_output=True, text=True, check=True)
        path = done.stdout.strip() and os.path.join(done.stdout.strip(), "axe.min.js")
    if not path:
        print("skipped: accessibility, there is no axe-core (axe-playwright-python, or PTED_AXE)")
        return None
    return Path(path).read_text(encoding="utf-8")


def check_page(browser, page, axe):
    width = browser.run("return document.documentElement.scrollWidth - window.innerWidth")
    expect(f"{page} is not wider than the window", width <= 0, True)
    if axe:
        browser.run(axe + "; window.axe = axe;")
        found = browser.run(
            "return axe.run(document, {runOnly: arguments[0], resultTypes: ['violations']}).then("
            "(all) => all.violations.map((item) => [item.id, item.help, item.nodes.map("
            "(node) => node.html.slice(0, 200))]))",
            AXE_RULES)
        expect(f"{page}: violations", found, [])


def fill_page(browser, page):
    """Something to check: an answer in the pages that give one."""
    if page == "#/models/chat":
        browser.run(FAKE + "window.stream = arguments[0];", STREAM)
        say(browser, "Show me.")
        wait_for_end(browser, 1)
        browser.click("button[title=Settings]")
    elif page in ("#/models/add", "#/models/labelled", "#/models/enc", "#/models/enc.score"):
        browser.click("#panel form button.main")
        browser.wait("document.querySelector('#panel pre, #panel .bars')")


def every_page(browser, url):
    """Every page fits a phone and a desk, and has no fault that axe-core finds, light and dark."""
    axe = axe_source()
    for size in (PHONE, DESK):
        browser.devtools("Emulation.setDeviceMetricsOverride", **size)
        for mode in ("light", "dark"):
            browser.devtools("Emulation.setEmulatedMedia",
                             features=[{"name": "prefers-color-scheme", "value": mode}])
            for page, selector in PAGES:
                browser.run("localStorage.clear()")
                open_page(browser, url, page, selector)
                fill_page(browser, page)
                check_page(browser, f"{page} {size['width']} {mode}", axe)
                bottom = browser.run("return document.querySelector('.box')"
                                     "?.getBoundingClientRect().bottom || 0")
                expect(f"{page}: the box for messages is seen", bottom <= size["height"], True)
                name = page.strip("#/").replace("/", "-") or "home"
                keep(browser, f"page-{name}-{size['width']}-{mode}")


# ---- checks -------------------------------------------------------------------------------------

def models_of(folder):
    return [*PROFILE, ADD, DIGITS, str(MODELS / "mobile.pte"), *CHAT, *ENCODER, *SPEECH,
            *with_card(folder, "labelled", "mlp.pte", LABELS)]


def pages():
    """The pages of models of tensors, texts, and chats."""
    with tempfile.TemporaryDirectory() as folder:
        picture = os.path.join(folder, "bar.png")
        write_png(picture, 64)
        with Daemon(models_of(folder)) as daemon, webdriver.Browser() as browser:
            url = f"http://127.0.0.1:{daemon.port}"
            start_page(browser, url)
            call_tensors(browser, url)
            scores_alone_get_bars(browser, url, picture)
            matrices(browser, url)
            draw_graph(browser, url)
            texts(browser, url)
            components(browser, url)
            first_calls(browser, url)
            expect("complaints", browser.complaints(), [])


def chats():
    with Daemon(CHAT) as daemon, webdriver.Browser() as browser:
        url = f"http://127.0.0.1:{daemon.port}"
        for check in (chat, chat_settings, rich_answers, stop_answers, drop_chats,
                      leave_chats, try_again, markdown, hostile_texts, use_chat_keys):
            check(browser, url)
        expect("complaints", browser.complaints(), [])


def all_pages():
    with tempfile.TemporaryDirectory() as folder:
        with Daemon(models_of(folder)) as daemon, webdriver.Browser(1280, 900) as browser:
            url = f"http://127.0.0.1:{daemon.port}"
            browser.go(url)
            every_page(browser, url)


def media_models(folder):
    """The command line of models with cards."""
    cards = {"digits": {"inputs": [{"name": "image", "image": {"resize": [8, 8]}}],
                        "outputs": [{"labels": list("0123456789")}]},
             "squares": SQUARES, "media": MEDIA, "answers": ANSWERS,
             "enc": {"inputs": {"input_ids": {"text": TEXT}}}}
    files = {"digits": "digits.pte", "squares": "squares.pte", "media": "media/model.pte",
             "answers": "answers.pte", "enc": "encoder/model.pte"}
    shutil.copy(MODELS / "encoder" / "tokenizer.json", folder)
    return [word for name, card in cards.items()
            for word in with_card(folder, name, files[name], card)]


def media_pages():
    """The pages of models that take pictures, sounds and texts."""
    if missing_library():
        print("skipped: the pages of media, a library is missing")
        return
    with tempfile.TemporaryDirectory() as folder:
        with Daemon([*media_models(folder), *SPEECH]) as daemon, webdriver.Browser() as browser:
            url = f"http://127.0.0.1:{daemon.port}"
            call_media(browser, url, folder)
            drop_picture(browser, url)
            record_sound(browser, url)
            call_text(browser, url, folder)
            call_numbers(browser, url)
            use_keys(browser, url, folder)
            speech(browser, url)
            expect("complaints", browser.complaints(), [])


CHECKS = (pages, chats, all_pages, media_pages, finds_models, tokens, administrators)


def main():
    if not webdriver.is_there():
        print("SKIP: there is no chromium with chromedriver")
        return 77
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
