// SPDX-License-Identifier: MIT
// The page of a speech model: a file or a recording, and what is said in it.

import {ask, events} from "/console/api.js";
import {showCode} from "/console/code.js";
import {copyButton, element, field, showError} from "/console/dom.js";
import {dropZone, readSound, recordButton, writeWav} from "/console/media.js";
import {bytesText} from "/console/text.js";

const RATE = 16000; // of recordings: what Whisper hears
const TASKS = {transcriptions: "Transcribe", translations: "Translate to English"};
const FORMS = {
    json: "Text as it comes",
    verbose_json: "Text with times",
    srt: "Subtitles (SRT)",
    vtt: "Subtitles (WebVTT)",
};

function clock(seconds) {
    return `${Math.floor(seconds / 60)}:${(seconds % 60).toFixed(1).padStart(4, "0")}`;
}

function partsOf(model, file, settings) {
    const texts = {
        model,
        response_format: settings.form,
        ...(settings.language ? {language: settings.language} : {}),
        ...(settings.form === "json" ? {stream: "true"} : {}),
    };
    return [...Object.entries(texts).map(([name, text]) => ({name, text})), {name: "file", file}];
}

function showSegments(segments, player) {
    return element(
        "ol",
        {class: "segments"},
        segments.map((segment) =>
            element(
                "li",
                {},
                element(
                    "button",
                    {
                        type: "button",
                        class: "quiet",
                        onclick: () => {
                            player.currentTime = segment.start;
                            player.play();
                        },
                    },
                    clock(segment.start),
                ),
                element("span", {}, segment.text),
            ),
        ),
    );
}

async function showAnswer(answer, form, place, player) {
    if (form === "json") {
        const said = element("p", {class: "said"});
        place.replaceChildren(said);
        for await (const event of events(answer)) {
            said.textContent = event.text ?? said.textContent + (event.delta || "");
        }
        place.append(copyButton(() => said.textContent));
    } else if (form === "verbose_json") {
        const {language, duration, segments, text} = await answer.json();
        place.replaceChildren(
            showSegments(segments || [], player),
            element(
                "p",
                {class: "soft"},
                [language, duration ? `${duration.toFixed(1)} s` : null]
                    .filter(Boolean)
                    .join(" · "),
            ),
            copyButton(() => text),
        );
    } else {
        const text = await answer.text();
        place.replaceChildren(
            element("pre", {tabindex: "0"}, text),
            copyButton(() => text),
        );
    }
}

export function showSpeech(model) {
    const settings = {task: "transcriptions", form: "json", language: ""};
    const player = element("audio", {controls: true, hidden: true, "aria-label": "The sound"});
    const about = element("p", {class: "soft"});
    const trouble = element("span", {class: "soft", role: "status"});
    const result = element("div", {class: "result", "aria-live": "polite"});
    const code = element("div");
    let file = null;
    const take = (given) => {
        file = given;
        URL.revokeObjectURL(player.src);
        player.src = URL.createObjectURL(file);
        player.hidden = false;
        about.textContent = `${file.name}, ${bytesText(file.size)}`;
    };
    const record = recordButton(
        async (blob) => {
            take(
                new File([writeWav(await readSound(blob, RATE), RATE)], "recording.wav", {
                    type: "audio/wav",
                }),
            );
            form.requestSubmit();
        },
        (error) => {
            trouble.textContent = error.message;
        },
    );
    const select = (key, options) =>
        element(
            "select",
            {
                onchange: (event) => {
                    settings[key] = event.target.value;
                },
            },
            Object.entries(options).map(([value, name]) => element("option", {value}, name)),
        );
    const run = element("button", {class: "main", type: "submit"}, "Write it down");
    const form = element(
        "form",
        {
            onsubmit: async (event) => {
                event.preventDefault();
                const path = `/v1/audio/${settings.task}`;
                run.setAttribute("aria-disabled", "true");
                try {
                    if (!file) {
                        throw new Error("Choose a sound first, or record one.");
                    }
                    const parts = partsOf(model, file, settings);
                    const body = new FormData();
                    parts.forEach((part) => body.append(part.name, part.file ?? part.text));
                    code.replaceChildren(...showCode({path, parts}));
                    await showAnswer(await ask(path, body), settings.form, result, player);
                } catch (error) {
                    result.replaceChildren(showError(error));
                }
                run.removeAttribute("aria-disabled");
            },
        },
        dropZone("a sound", "audio/*,.wav,.flac,.mp3,.ogg,.opus", take, {name: model}, record, trouble),
        player,
        about,
        element(
            "div",
            {class: "fields roomy"},
            field("Task", select("task", TASKS)),
            field("Answer", select("form", FORMS)),
            field(
                "Language",
                element("input", {
                    type: "text",
                    placeholder: "heard",
                    size: 8,
                    maxlength: 20,
                    oninput: (event) => {
                        settings.language = event.target.value.trim();
                    },
                }),
            ),
        ),
        run,
    );
    return [
        element(
            "p",
            {class: "soft"},
            "WAV, FLAC, MP3 or Ogg. A recording is written down when it ends.",
        ),
        element("div", {class: "columns"}, form, element("div", {}, result, code)),
    ];
}
