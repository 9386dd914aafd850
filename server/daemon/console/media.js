// SPDX-License-Identifier: MIT
// Inputs that the card of a model makes from pictures, sounds and texts. Files are sent as they
// are; a recording becomes a WAV file here.

import {canvasOf, drawing, element, icon} from "/console/dom.js";
import {bytesText} from "/console/text.js";

const PREVIEW_MAX = 1024; // pixels of a side
const WAVE_MAX = 800; // points of a drawn sound

// ---- choosing -----------------------------------------------------------------------------------

// A place for files. |take| gets each of them and its number; where it fails, the file is told to
// be no |what|. options.done() is called when all of them are taken.
export function dropZone(what, types, take, options, ...children) {
    const state = element("span", {class: "soft", role: "status"});
    const give = async (files) => {
        const chosen = options.many ? [...files] : [...files].slice(0, 1);
        try {
            for (let i = 0; i < chosen.length; i++) {
                await take(chosen[i], i);
            }
            state.textContent = "";
            options.done?.();
        } catch {
            state.textContent = `this browser cannot read it as ${what}`;
        }
    };
    const pick = element("input", {
        type: "file",
        accept: types,
        multiple: options.many,
        "aria-label": `Choose ${what} for ${options.name}`,
        onchange: () => pick.files.length && give(pick.files),
    });
    const zone = element(
        "div",
        {
            class: "drop",
            ondragover: (event) => {
                event.preventDefault();
                zone.classList.add("over");
            },
            ondragleave: () => zone.classList.remove("over"),
            ondrop: (event) => {
                event.preventDefault();
                zone.classList.remove("over");
                give(event.dataTransfer.files);
            },
        },
        element(
            "p",
            {class: "soft"},
            options.many
                ? `Drop ${what}, or several, here, or choose them.`
                : `Drop ${what} here, or choose one.`,
        ),
        pick,
        " ",
        state,
        children,
    );
    return zone;
}

// ---- pictures -----------------------------------------------------------------------------------

// The picture as people see it, on a canvas of a bounded size, with its own size in pixels.
// |imageOrientation|: "from-image" is the turn of EXIF, "none" the picture as the file has it.
async function readPicture(file, imageOrientation = "from-image") {
    const bitmap = await createImageBitmap(file, {imageOrientation});
    const {width, height} = bitmap;
    const scale = Math.min(1, PREVIEW_MAX / Math.max(width, height));
    const sides = [width, height].map((side) => Math.max(1, Math.round(side * scale)));
    const canvas = canvasOf(...sides, file.name);
    canvas.getContext("2d").drawImage(bitmap, 0, 0, canvas.width, canvas.height);
    bitmap.close();
    return {canvas, width, height, name: file.name};
}

// ---- sounds -------------------------------------------------------------------------------------

export async function readSound(blob, rate) {
    const context = new OfflineAudioContext(1, 1, rate);
    const sound = await context.decodeAudioData(await blob.arrayBuffer());
    const mixed = new Float32Array(sound.length);
    for (let c = 0; c < sound.numberOfChannels; c++) {
        sound.getChannelData(c).forEach((value, i) => {
            mixed[i] += value / sound.numberOfChannels;
        });
    }
    return mixed;
}

// A WAV file of 16 bits and one channel.
export function writeWav(samples, rate) {
    const view = new DataView(new ArrayBuffer(44 + 2 * samples.length));
    const text = (at, word) => [...word].forEach((c, i) => view.setUint8(at + i, c.charCodeAt(0)));
    text(0, "RIFF");
    view.setUint32(4, 36 + 2 * samples.length, true);
    text(8, "WAVEfmt ");
    view.setUint32(16, 16, true);
    view.setUint16(20, 1, true);
    view.setUint16(22, 1, true);
    view.setUint32(24, rate, true);
    view.setUint32(28, 2 * rate, true);
    view.setUint16(32, 2, true);
    view.setUint16(34, 16, true);
    text(36, "data");
    view.setUint32(40, 2 * samples.length, true);
    samples.forEach((value, i) =>
        view.setInt16(44 + 2 * i, Math.round(32767 * Math.max(-1, Math.min(1, value))), true),
    );
    return view.buffer;
}

// A button that hands the recorded sound over, as the browser has coded it.
export function recordButton(take, onError) {
    let recorder = null;
    const say = (name, text) => record.replaceChildren(icon(name), text);
    const begin = async () => {
        const stream = await navigator.mediaDevices.getUserMedia({audio: true});
        const parts = [];
        recorder = new MediaRecorder(stream);
        recorder.ondataavailable = (event) => parts.push(event.data);
        recorder.onstop = () => {
            stream.getTracks().forEach((track) => track.stop());
            take(new Blob(parts)).catch(onError);
        };
        recorder.start();
        say("stop", "Stop");
    };
    const record = element(
        "button",
        {
            type: "button",
            class: "record",
            onclick: () => {
                if (recorder) {
                    recorder.stop();
                    recorder = null;
                    say("microphone", "Record");
                } else {
                    begin().catch(onError);
                }
            },
        },
        icon("microphone"),
        "Record",
    );
    return navigator.mediaDevices ? record : null;
}

function drawWave(samples) {
    const step = Math.max(1, Math.ceil(samples.length / WAVE_MAX));
    let path = "";
    for (let i = 0; i < samples.length; i += step) {
        let most = 0;
        for (let k = i; k < Math.min(i + step, samples.length); k++) {
            most = Math.max(most, Math.abs(samples[k]));
        }
        path += `M${i / step},${50 - 50 * most}V${50 + 50 * most}`;
    }
    return drawing(
        "svg",
        {
            class: "plot wave",
            preserveAspectRatio: "none",
            role: "img",
            viewBox: `0 -2 ${Math.ceil(samples.length / step)} 104`,
            "aria-label": "the sound's loudness",
        },
        drawing("path", {d: path}),
    );
}

function playButton(samples, rate, name) {
    return element(
        "button",
        {
            type: "button",
            "aria-label": `Play ${name}`,
            onclick: () => {
                const context = new AudioContext();
                const sound = context.createBuffer(1, samples.length, rate);
                sound.copyToChannel(samples, 0);
                const source = context.createBufferSource();
                source.buffer = sound;
                source.connect(context.destination);
                source.onended = () => context.close();
                source.start();
            },
        },
        "Play",
    );
}

// ---- files of an input --------------------------------------------------------------------------

const KINDS = {
    image: {what: "a picture", types: "image/*"},
    sound: {what: "a sound", types: "audio/*,.wav,.flac,.mp3,.ogg,.opus"},
};

// What is shown of a file; a file that the browser cannot read is sent all the same.
async function preview(file, tensor) {
    try {
        if (tensor.media === "image") {
            const picture = await readPicture(file);
            picture.stored = await readPicture(file, "none");
            return {
                picture,
                nodes: [picture.canvas],
                about: `${picture.width} × ${picture.height} pixels`,
            };
        }
        const rate = 16000;
        const samples = await readSound(file, rate);
        return {
            nodes: [drawWave(samples), playButton(samples, rate, file.name)],
            about: `${(samples.length / rate).toFixed(2)} s`,
        };
    } catch {
        return {nodes: [], about: "no preview"};
    }
}

function fileEditor(tensor, many, done) {
    const {what, types} = KINDS[tensor.media];
    const items = [];
    const list = element("ul", {class: "files"});
    // The first file of a choice takes the place of those before.
    async function add(file, number) {
        const shown = await preview(file, tensor);
        if (number === 0) {
            items.length = 0;
            list.replaceChildren();
        }
        items.push({file, picture: shown.picture || null});
        list.append(
            element(
                "li",
                {},
                shown.nodes,
                element(
                    "span",
                    {class: "soft"},
                    `${file.name}, ${bytesText(file.size)}, ${shown.about}`,
                ),
            ),
        );
    }
    // What the model takes, as far as browsers can make it; the daemon does the rest.
    const rate = tensor.sound ? Math.min(48000, Math.max(8000, tensor.sound.rate)) : 0;
    const trouble = element("span", {class: "soft", role: "status"});
    const record = rate
        ? recordButton(
              async (blob) => {
                  const wav = writeWav(await readSound(blob, rate), rate);
                  await add(new File([wav], "recording.wav", {type: "audio/wav"}), 0);
              },
              (error) => {
                  trouble.textContent = error.message;
              },
          )
        : null;
    return {
        node: dropZone(what, types, add, {many, name: tensor.name, done}, record, trouble, list),
        parts() {
            if (items.length === 0) {
                throw new Error(`${tensor.name}: choose ${what} first`);
            }
            return items.map(({file}) => ({name: tensor.name, file}));
        },
        get pictures() {
            return tensor.media === "image" ? items.map(({picture}) => picture) : [];
        },
    };
}

function textEditor(tensor, many) {
    const place = element("div");
    const add = () => {
        const text = element("textarea", {rows: 3, "aria-label": `Text of ${tensor.name}`});
        place.append(text);
        return text;
    };
    add();
    return {
        node: element(
            "div",
            {},
            place,
            many
                ? element(
                      "div",
                      {class: "buttons"},
                      element(
                          "button",
                          {type: "button", onclick: () => add().focus()},
                          "Another text",
                      ),
                  )
                : null,
        ),
        parts() {
            const texts = [...place.children].map((text) => text.value).filter(Boolean);
            if (texts.length === 0) {
                throw new Error(`${tensor.name}: write a text first`);
            }
            return texts.map((text) => ({name: tensor.name, text}));
        },
        pictures: [],
    };
}

// One input: its parts are those of the request, a row for each. done() is called when files have
// been chosen.
export function mediaEditor(tensor, done) {
    const many = tensor.shape[0] !== 1;
    const editor =
        tensor.media === "text" ? textEditor(tensor, many) : fileEditor(tensor, many, done);
    return Object.assign(Object.create(editor), {
        isMedia: true,
        form: tensor.image || null,
        node: element(
            "fieldset",
            {},
            element(
                "legend",
                {},
                `${tensor.name} `,
                element("span", {class: "soft"}, tensor.media),
            ),
            tensor.description ? element("p", {class: "soft"}, tensor.description) : null,
            editor.node,
        ),
    });
}
