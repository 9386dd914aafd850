// SPDX-License-Identifier: MIT
// A form made from the inputs of a model. An input is filled with numbers, a picture or a sound;
// pictures and sounds become numbers here, in the page.

import {ask, element, modelPath, shapeText, showError} from "/console/api.js";
import {showAnswer} from "/console/answer.js";
import {showCode} from "/console/code.js";

const TEXT_MAX = 20000; // numbers that are shown as text
const WHOLE = /^U?INT/;

// ---- numbers ------------------------------------------------------------------------------------

function count(shape) {
    return shape.reduce((product, dim) => product * dim, 1);
}

function nest(data, shape) {
    if (shape.length === 0) {
        return data[0];
    }
    const size = count(shape.slice(1));
    return Array.from({length: shape[0]}, (_, i) =>
        shape.length === 1 ? data[i] : nest(data.slice(i * size, (i + 1) * size), shape.slice(1)));
}

function filled(shape, datatype, how) {
    const random = () => WHOLE.test(datatype) ? Math.floor(Math.random() * 10)
        : Number((Math.random() * 2 - 1).toFixed(4));
    const value = {zeros: () => 0, ones: () => 1, random}[how];
    return Array.from({length: count(shape)},
        () => datatype === "BOOL" ? Boolean(Math.round(value())) : value());
}

// ---- pictures -----------------------------------------------------------------------------------

// Where height, width and channels are in |shape|, or null: it is no picture.
function pictureDims(tensor) {
    const rank = tensor.shape.length;
    if (rank < 3 || rank > 4 || tensor.datatype === "BOOL" || tensor.datatype === "BYTES") {
        return null;
    }
    const [a, b, c] = tensor.shape.slice(rank - 3);
    const isColour = (dim) => dim === 1 || dim === 3;
    if (isColour(a) && (b > 3 || b < 0) && (c > 3 || c < 0)) {
        return {channels: a, height: b, width: c, isFirst: true};
    }
    if (isColour(c) && (a > 3 || a < 0) && (b > 3 || b < 0)) {
        return {channels: c, height: a, width: b, isFirst: false};
    }
    return null;
}

const SCALES = {
    "0 to 1": {scale: 1 / 255, mean: [0, 0, 0], std: [1, 1, 1]},
    "ImageNet": {scale: 1 / 255, mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]},
    "-1 to 1": {scale: 1 / 255, mean: [0.5, 0.5, 0.5], std: [0.5, 0.5, 0.5]},
    "0 to 255": {scale: 1, mean: [0, 0, 0], std: [1, 1, 1]},
};

function readPixels(canvas, dims, scaleName) {
    const {width, height} = canvas;
    const pixels = canvas.getContext("2d").getImageData(0, 0, width, height).data;
    const {scale, mean, std} = SCALES[scaleName];
    const data = new Array(width * height * dims.channels);
    for (let i = 0; i < width * height; i++) {
        const rgb = [pixels[4 * i], pixels[4 * i + 1], pixels[4 * i + 2]];
        const grey = 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2];
        for (let c = 0; c < dims.channels; c++) {
            const value = ((dims.channels === 1 ? grey : rgb[c]) * scale - mean[c]) / std[c];
            data[dims.isFirst ? c * width * height + i : i * dims.channels + c] =
                scaleName === "0 to 255" ? Math.round(value) : Number(value.toFixed(5));
        }
    }
    return data;
}

function pictureEditor(tensor, dims, onData) {
    const isWhole = WHOLE.test(tensor.datatype);
    const canvas = element("canvas", {class: "shown", "aria-label": "the picture as the model gets it"});
    const scale = element("select", {onchange: () => settle()}, Object.keys(SCALES).map((name) =>
        element("option", {value: name, selected: name === (isWhole ? "0 to 255" : "0 to 1")}, name)));
    let picture = null;
    function settle() {
        if (!picture) {
            return;
        }
        canvas.width = dims.width > 0 ? dims.width : picture.width;
        canvas.height = dims.height > 0 ? dims.height : picture.height;
        const context = canvas.getContext("2d", {willReadFrequently: true});
        context.fillStyle = "#fff";
        context.fillRect(0, 0, canvas.width, canvas.height);
        context.drawImage(picture, 0, 0, canvas.width, canvas.height);
        const size = [canvas.height, canvas.width];
        const shape = dims.isFirst ? [dims.channels, ...size] : [...size, dims.channels];
        onData(readPixels(canvas, dims, scale.value), tensor.shape.length === 4 ? [1, ...shape] : shape,
            canvas);
    }
    return dropZone("a picture", "image/*", async (file) => {
        picture = await createImageBitmap(file);
        settle();
    }, element("label", {}, "Pixels are", scale), canvas);
}

// ---- sounds -------------------------------------------------------------------------------------

function isSound(tensor) {
    const dims = tensor.shape;
    const last = dims[dims.length - 1];
    return /^FP/.test(tensor.datatype) && (dims.length === 1 || (dims.length === 2 && Math.abs(dims[0]) === 1))
        && (last < 0 || last >= 400);
}

async function readSound(blob, rate) {
    const context = new OfflineAudioContext(1, 1, rate);
    const sound = await context.decodeAudioData(await blob.arrayBuffer());
    const mixed = new Float32Array(sound.length);
    for (let c = 0; c < sound.numberOfChannels; c++) {
        sound.getChannelData(c).forEach((value, i) => { mixed[i] += value / sound.numberOfChannels; });
    }
    return mixed;
}

function soundEditor(tensor, onData) {
    const rate = element("input", {type: "number", value: 16000, min: 3000, max: 192000});
    const last = tensor.shape[tensor.shape.length - 1];
    let recorder = null;
    async function take(blob) {
        const samples = await readSound(blob, Number(rate.value));
        const length = last > 0 ? last : samples.length;
        const data = Array.from({length}, (_, i) => Number((samples[i] || 0).toFixed(6)));
        onData(data, tensor.shape.length === 2 ? [1, length] : [length]);
    }
    const record = element("button", {type: "button", onclick: async () => {
        if (recorder) {
            recorder.stop();
            recorder = null;
            record.textContent = "Record";
            return;
        }
        const stream = await navigator.mediaDevices.getUserMedia({audio: true});
        const parts = [];
        recorder = new MediaRecorder(stream);
        recorder.ondataavailable = (event) => parts.push(event.data);
        recorder.onstop = () => {
            stream.getTracks().forEach((track) => track.stop());
            take(new Blob(parts));
        };
        recorder.start();
        record.textContent = "Stop";
    }}, "Record");
    return dropZone("a sound", "audio/*", take, element("label", {}, "Samples a second", rate),
        navigator.mediaDevices ? record : null);
}

function dropZone(what, types, take, ...children) {
    const state = element("span", {class: "soft", role: "status"});
    const give = (file) => file && take(file).then(() => { state.textContent = file.name || ""; },
        () => { state.textContent = `this browser cannot read it as ${what}`; });
    const pick = element("input", {type: "file", accept: types, "aria-label": `Choose ${what}`,
        onchange: () => give(pick.files[0])});
    const zone = element("div", {
        class: "drop",
        ondragover: (event) => { event.preventDefault(); zone.classList.add("over"); },
        ondragleave: () => zone.classList.remove("over"),
        ondrop: (event) => {
            event.preventDefault();
            zone.classList.remove("over");
            give(event.dataTransfer.files[0]);
        },
    }, element("p", {class: "soft"}, `Drop ${what} here, or choose one. `, pick, " ", state), children);
    return zone;
}

// ---- the form -----------------------------------------------------------------------------------

// One input: what it is sent as comes from read().
function tensorEditor(tensor) {
    let shape = (tensor.example_shape || tensor.shape).map((dim) => dim < 0 ? 1 : dim);
    let data = null; // numbers that are too many for the text
    let canvas = null;
    const isText = tensor.datatype === "BYTES";
    const text = element("textarea", {spellcheck: "false", "aria-label": `Values of ${tensor.name}`,
        oninput: () => { data = null; }});
    const sizes = tensor.shape.map((dim, i) => dim < 0 ? element("input", {
        type: "number", min: 0, value: shape[i], "aria-label": `Size ${i} of ${tensor.name}`,
        onchange: (event) => { shape[i] = Number(event.target.value); fillWith("zeros"); },
    }) : null);
    function set(values, dims, picture) {
        shape = dims;
        canvas = picture || null;
        sizes.forEach((field, i) => { if (field) { field.value = dims[i]; } });
        data = values.length > TEXT_MAX ? values : null;
        text.value = data ? `${values.length} numbers` : JSON.stringify(nest(values, dims));
        text.readOnly = Boolean(data);
    }
    function fillWith(how) {
        set(filled(shape, tensor.datatype, how), shape);
    }
    const dims = pictureDims(tensor);
    if (isText) {
        text.value = "";
    } else {
        fillWith("zeros");
    }
    return {
        node: element("fieldset", {},
            element("legend", {}, `${tensor.name} `, element("span", {class: "soft"}, shapeText(tensor))),
            tensor.description ? element("p", {class: "soft"}, tensor.description) : null,
            dims ? pictureEditor(tensor, dims, set) : null,
            isSound(tensor) ? soundEditor(tensor, set) : null,
            sizes.some(Boolean) ? element("div", {class: "buttons"}, "Sizes", sizes.filter(Boolean)) : null,
            isText ? null : element("div", {class: "buttons"}, ["zeros", "ones", "random"].map((how) =>
                element("button", {type: "button", onclick: () => fillWith(how)}, how))),
            text),
        get canvas() {
            return canvas;
        },
        read() {
            const values = isText ? [text.value] : data || [JSON.parse(text.value)].flat(Infinity);
            if (!isText && values.length !== count(shape)) {
                throw new Error(`${tensor.name}: expected ${count(shape)} numbers for the shape `
                    + `[${shape.join(",")}], got ${values.length}`);
            }
            return {name: tensor.name, shape: isText ? [1] : shape, datatype: tensor.datatype, data: values};
        },
    };
}

export function showForm(name, meta, signature) {
    const editors = meta.inputs.map(tensorEditor);
    const result = element("div", {"aria-live": "polite"});
    const run = element("button", {class: "main", type: "submit"}, "Run");
    async function submit(event) {
        event.preventDefault();
        run.disabled = true;
        try {
            const body = {inputs: editors.map((editor) => editor.read())};
            const path = modelPath(name, "/infer");
            const began = performance.now();
            const answer = await (await ask(path, body)).json();
            const canvas = editors.map((editor) => editor.canvas).find(Boolean) || null;
            result.replaceChildren(
                ...showAnswer(answer, signature.labels || {}, canvas, performance.now() - began),
                ...showCode(path, body));
        } catch (error) {
            result.replaceChildren(showError(error));
        }
        run.disabled = false;
    }
    return [element("div", {class: "columns"},
        element("form", {onsubmit: submit}, editors.map((editor) => editor.node), run), result)];
}
