#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Takes the pictures of the console that README.md shows, from a daemon with models of the tests:
docs/pictures/console-photo.webp and console-chat.webp. Needs chromium with chromedriver.

usage: contrib/pictures.py BUILD    BUILD: a folder in which pted has been built
"""
import base64
import json
import os
import sys
import tempfile
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1]
PICTURES = SOURCE / "docs" / "pictures"
WIDTH, HEIGHT = 1200, 840
BYTES_MAX = 120000
PATIENCE_S = 3  # for the first numbers of the live plots
WEATHER = [{"type": "function", "function": {"name": "weather", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}]

# Tiles on a table, lit from the left: what the model was trained to find, and the table's grain.
# The picture goes into the page as a file that is dropped there.
SCENE = """
return new Promise((done) => {
    const canvas = document.createElement("canvas");
    canvas.width = 960;
    canvas.height = 720;
    const context = canvas.getContext("2d");
    const light = context.createLinearGradient(0, 0, 960, 720);
    light.addColorStop(0, "#4a4a4a");
    light.addColorStop(1, "#303030");
    context.fillStyle = light;
    context.fillRect(0, 0, 960, 720);
    let state = 7;
    const random = () => (state = (state * 16807) % 2147483647) / 2147483647;
    const tile = (corners, x, y, size, angle, colour) => {
        context.save();
        context.shadowColor = "#000a";
        context.shadowBlur = 14;
        context.shadowOffsetX = context.shadowOffsetY = 7;
        context.fillStyle = colour;
        context.beginPath();
        for (let i = 0; i < corners; i++) {
            const at = angle + 2 * Math.PI * i / corners;
            context.lineTo(x + size * Math.cos(at), y + size * Math.sin(at));
        }
        context.closePath();
        context.fill();
        context.restore();
    };
    for (const [corners, x, y, size, angle, colour] of arguments[0]) {
        tile(corners, x, y, size, angle, colour);
    }
    const image = context.getImageData(0, 0, 960, 720);
    for (let i = 0; i < image.data.length; i++) {
        image.data[i] += i % 4 === 3 ? 0 : 16 * (random() - 0.5);
    }
    context.putImageData(image, 0, 0);
    canvas.toBlob((blob) => {
        const data = new DataTransfer();
        data.items.add(new File([blob], "tiles.jpg", {type: "image/jpeg"}));
        document.querySelector(".drop").dispatchEvent(new DragEvent("drop",
            {dataTransfer: data, bubbles: true, cancelable: true}));
        done();
    }, "image/jpeg", 0.92);
});
"""
RED, GREEN, BLUE = "#fa3c3c", "#3cfa3c", "#3c3cfa"
TILES = [[4, 230, 230, 120, 0.6, BLUE], [48, 640, 200, 90, 0, GREEN], [3, 420, 520, 125, 0.2, RED],
         [4, 760, 540, 105, 0.2, BLUE]]


def open_browser(module, mode="light"):
    browser = module.Browser(WIDTH, HEIGHT)
    browser.devtools("Emulation.setDeviceMetricsOverride", width=WIDTH, height=HEIGHT,
                     deviceScaleFactor=1.5, mobile=False)
    browser.devtools("Emulation.setScrollbarsHidden", hidden=True)
    browser.devtools("Emulation.setEmulatedMedia",
                     features=[{"name": "prefers-color-scheme", "value": mode}])
    return browser


def take(browser, name):
    """Writes the page as it is now; the quality is the best that keeps the file small."""
    for quality in (90, 80, 70, 60):
        shot = browser.devtools("Page.captureScreenshot", format="webp", quality=quality)
        data = base64.b64decode(shot["data"])
        if len(data) <= BYTES_MAX:
            break
    PICTURES.mkdir(exist_ok=True)
    (PICTURES / f"{name}.webp").write_bytes(data)
    print(f"{name}.webp: {len(data)} bytes")


def take_picture(browser, url):
    browser.go(f"{url}/#/models/tiles")
    browser.wait("document.querySelector('.drop')")
    time.sleep(PATIENCE_S)
    browser.run(SCENE, TILES)
    browser.wait("document.querySelector('svg.over .box')")
    browser.run("document.activeElement.blur()")
    time.sleep(PATIENCE_S)
    take(browser, "console-photo")


def say(browser, text, count):
    browser.type(".box textarea", text + "\ue007")
    browser.wait(f"document.querySelectorAll('.message.assistant .foot').length === {count}")


def take_chat(browser, url):
    browser.go(f"{url}/#/models/chat")
    browser.wait("document.querySelector('.box textarea')")
    for name, value in (("temperature", "0"), ("tools", json.dumps(WEATHER))):
        browser.run("const field = document.querySelector(`[name=${arguments[0]}]`);"
                    "field.value = arguments[1]; field.dispatchEvent(new Event('input'))",
                    name, value)
    say(browser, "Say the word river three times.", 1)
    browser.run("document.querySelector('.side button').click()")
    say(browser, "What is the capital of Japan?", 1)
    browser.run("document.querySelector('.side button').click()")
    say(browser, "How is the weather in Oslo?", 1)
    browser.run("document.activeElement.blur(); scrollTo(0, 0)")
    time.sleep(PATIENCE_S)
    take(browser, "console-chat")


def main(build):
    os.environ["top_srcdir"], os.environ["top_builddir"] = str(SOURCE), str(Path(build).resolve())
    sys.path.insert(0, str(SOURCE / "tests" / "http"))
    import webdriver  # pylint: disable=import-outside-toplevel
    from run_http import MODELS, Daemon  # pylint: disable=import-outside-toplevel
    with tempfile.TemporaryDirectory() as folder:
        tiles = os.path.join(folder, "tiles")
        os.symlink(MODELS / "yolo" / "detect_executorch_model", tiles)
        models = ["--model", f"chat={MODELS / 'chat' / 'model.pte'}", tiles]
        with Daemon(models) as daemon, open_browser(webdriver) as browser:
            url = f"http://127.0.0.1:{daemon.port}"
            browser.go(url)
            take_picture(browser, url)
            take_chat(browser, url)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
