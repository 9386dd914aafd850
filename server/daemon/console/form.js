// SPDX-License-Identifier: MIT
// A form made from the inputs of a model. What the card makes from files and texts is sent as those
// (media.js). Other inputs are filled with numbers, and pictures and sounds become numbers here.

import {ask, modelPath} from "/console/api.js";
import {showAnswer} from "/console/answer.js";
import {showCode} from "/console/code.js";
import {canvasOf, element, field, showError} from "/console/dom.js";
import {dropZone, mediaEditor, readSound, recordButton} from "/console/media.js";
import {shapeText} from "/console/text.js";

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
        shape.length === 1 ? data[i] : nest(data.slice(i * size, (i + 1) * size), shape.slice(1)),
    );
}

function filled(shape, datatype, how) {
    const random = () =>
        WHOLE.test(datatype)
            ? Math.floor(Math.random() * 10)
            : Number((Math.random() * 2 - 1).toFixed(4));
    const value = {zeros: () => 0, ones: () => 1, random}[how];
    return Array.from({length: count(shape)}, () =>
        datatype === "BOOL" ? Boolean(Math.round(value())) : value(),
    );
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
    ImageNet: {scale: 1 / 255, mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]},
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
    const canvas = canvasOf(1, 1, "the picture as the model gets it");
    canvas.hidden = true;
    const scale = element(
        "select",
        {onchange: () => settle()},
        Object.keys(SCALES).map((name) =>
            element(
                "option",
                {value: name, selected: name === (isWhole ? "0 to 255" : "0 to 1")},
                name,
            ),
        ),
    );
    let picture = null;
    function settle() {
        if (!picture) {
            return;
        }
        canvas.hidden = false;
        canvas.width = dims.width > 0 ? dims.width : picture.width;
        canvas.height = dims.height > 0 ? dims.height : picture.height;
        const context = canvas.getContext("2d", {willReadFrequently: true});
        context.fillStyle = "#fff";
        context.fillRect(0, 0, canvas.width, canvas.height);
        context.drawImage(picture, 0, 0, canvas.width, canvas.height);
        const size = [canvas.height, canvas.width];
        const shape = dims.isFirst ? [dims.channels, ...size] : [...size, dims.channels];
        onData(
            readPixels(canvas, dims, scale.value),
            tensor.shape.length === 4 ? [1, ...shape] : shape,
            canvas,
        );
    }
    return dropZone(
        "a picture",
        "image/*",
        async (file) => {
            picture = await createImageBitmap(file);
            settle();
        },
        {name: tensor.name},
        field("Pixels are", scale),
        canvas,
    );
}

// ---- sounds -------------------------------------------------------------------------------------

function isSound(tensor) {
    const dims = tensor.shape;
    const last = dims[dims.length - 1];
    return (
        /^FP/.test(tensor.datatype) &&
        (dims.length === 1 || (dims.length === 2 && Math.abs(dims[0]) === 1)) &&
        (last < 0 || last >= 400)
    );
}

function soundEditor(tensor, onData) {
    const rate = element("input", {type: "number", value: 16000, min: 3000, max: 192000});
    const last = tensor.shape[tensor.shape.length - 1];
    const trouble = element("span", {class: "soft", role: "status"});
    async function take(blob) {
        const samples = await readSound(blob, Number(rate.value));
        const length = last > 0 ? last : samples.length;
        const data = Array.from({length}, (_, i) => Number((samples[i] || 0).toFixed(6)));
        onData(data, tensor.shape.length === 2 ? [1, length] : [length]);
    }
    return dropZone(
        "a sound",
        "audio/*",
        take,
        {name: tensor.name},
        field("Samples a second", rate),
        recordButton(take, (error) => {
            trouble.textContent = error.message;
        }),
        trouble,
    );
}

// ---- the form -----------------------------------------------------------------------------------

// One input: what it is sent as comes from read().
function tensorEditor(tensor) {
    let shape = (tensor.example_shape || tensor.shape).map((dim) => (dim < 0 ? 1 : dim));
    let data = null; // numbers that are too many for the text
    let canvas = null;
    const isText = tensor.datatype === "BYTES";
    const isSent = element("input", {type: "checkbox", checked: !tensor.optional});
    const text = element("textarea", {
        spellcheck: "false",
        "aria-label": `Values of ${tensor.name}`,
        oninput: () => {
            data = null;
        },
    });
    const sizes = tensor.shape.map((dim, i) =>
        dim < 0
            ? element("input", {
                  type: "number",
                  min: 0,
                  value: shape[i],
                  "aria-label": `Size ${i} of ${tensor.name}`,
                  onchange: (event) => {
                      shape[i] = Number(event.target.value);
                      fillWith("zeros");
                  },
              })
            : null,
    );
    function set(values, dims, picture) {
        shape = dims;
        canvas = picture || null;
        sizes.forEach((field, i) => {
            if (field) {
                field.value = dims[i];
            }
        });
        data = values.length > TEXT_MAX ? values : null;
        text.value = data ? `${values.length} numbers` : JSON.stringify(nest(values, dims));
        text.readOnly = Boolean(data);
    }
    function fillWith(how) {
        set(filled(shape, tensor.datatype, how), shape);
    }
    const dims = pictureDims(tensor);
    const fields = element(
        "div",
        {hidden: Boolean(tensor.optional)},
        dims ? pictureEditor(tensor, dims, set) : null,
        isSound(tensor) ? soundEditor(tensor, set) : null,
        sizes.some(Boolean)
            ? element("div", {class: "buttons"}, "Sizes", sizes.filter(Boolean))
            : null,
        isText
            ? null
            : element(
                  "div",
                  {class: "buttons"},
                  ["zeros", "ones", "random"].map((how) =>
                      element("button", {type: "button", onclick: () => fillWith(how)}, how),
                  ),
              ),
        text,
    );
    isSent.addEventListener("change", () => {
        fields.hidden = !isSent.checked;
    });
    if (isText) {
        text.value = "";
    } else {
        fillWith("zeros");
    }
    return {
        node: element(
            "fieldset",
            {},
            element(
                "legend",
                {},
                `${tensor.name} `,
                element("span", {class: "soft"}, shapeText(tensor)),
            ),
            tensor.description ? element("p", {class: "soft"}, tensor.description) : null,
            tensor.optional ? element("label", {}, isSent, " Send it; it may be left out") : null,
            fields,
        ),
        isMedia: false,
        get isSent() {
            return isSent.checked;
        },
        get pictures() {
            return canvas ? [{canvas, width: canvas.width, height: canvas.height}] : [];
        },
        // A field of a form, whose value is JSON.
        parts() {
            const {data: values, shape: dims} = this.read();
            return [
                isText
                    ? {name: tensor.name, text: values[0]}
                    : {name: tensor.name, json: nest(values, dims)},
            ];
        },
        read() {
            const values = isText ? [text.value] : data || [JSON.parse(text.value)].flat(Infinity);
            if (!isText && values.length !== count(shape)) {
                throw new Error(
                    `${tensor.name}: expected ${count(shape)} numbers for the shape ` +
                        `[${shape.join(",")}], got ${values.length}`,
                );
            }
            return {
                name: tensor.name,
                shape: isText ? [1] : shape,
                datatype: tensor.datatype,
                data: values,
            };
        },
    };
}

// Answers for people, where the card says some.
function outputsFor(meta) {
    const outputs = meta.outputs.map(({name, answer}) =>
        answer && answer !== "classes" ? {name, parameters: {answer: true}} : {name},
    );
    return outputs.some((output) => output.parameters) ? {outputs} : {};
}

// What the editors say, as one request: JSON of tensors, or the file alone, or a form with fields.
function requestOf(name, meta, editors, topK) {
    const sent = editors.filter((editor) => editor.isMedia || editor.isSent);
    if (!sent.some((editor) => editor.isMedia)) {
        return {
            path: modelPath(name, "/infer"),
            json: {inputs: sent.map((editor) => editor.read()), ...outputsFor(meta)},
        };
    }
    const parts = sent.flatMap((editor) => editor.parts());
    const path = modelPath(name, "/call") + (topK ? `?top_k=${topK}` : "");
    return {path, ...(parts.length === 1 ? {alone: parts[0]} : {parts})};
}

function bodyOf(request) {
    if (request.json) {
        return request.json;
    }
    if (request.alone) {
        return request.alone.file || new Blob([request.alone.text], {type: "text/plain"});
    }
    const form = new FormData();
    for (const part of request.parts) {
        form.append(part.name, part.file ?? part.text ?? JSON.stringify(part.json));
    }
    return form;
}

function topKField(meta, editors) {
    const has =
        editors.some((editor) => editor.isMedia) &&
        meta.outputs.some(
            (output) => output.answer === "classes" || (output.label_count && !output.answer),
        );
    return has ? element("input", {type: "number", min: 0, max: 1000, placeholder: "5"}) : null;
}

export function showForm(name, meta, signature) {
    // A model of one picture or sound answers as soon as it is there.
    const done = meta.inputs.length === 1 ? () => form.requestSubmit() : null;
    const editors = meta.inputs.map((tensor) =>
        tensor.media ? mediaEditor(tensor, done) : tensorEditor(tensor),
    );
    const result = element("div");
    const state = element("p", {class: "soft", role: "status"});
    const run = element("button", {class: "main", type: "submit"}, "Run");
    const topK = topKField(meta, editors);
    async function call() {
        const request = requestOf(name, meta, editors, topK?.value);
        const began = performance.now();
        const answer = await (await ask(request.path, bodyOf(request))).json();
        const ms = performance.now() - began;
        const seen = editors.find((editor) => editor.pictures.length) || {pictures: []};
        const sent = {pictures: seen.pictures.slice(), form: seen.form};
        result.replaceChildren(...showAnswer(answer, meta, signature, sent), ...showCode(request));
        const time = ms.toFixed(ms < 10 ? 1 : 0);
        state.textContent = `Answered in ${time} ms, the way to the browser included.`;
    }
    async function submit(event) {
        event.preventDefault();
        if (run.getAttribute("aria-disabled")) {
            return;
        }
        run.setAttribute("aria-disabled", "true"); // a button that is disabled loses the focus
        try {
            await call();
        } catch (error) {
            state.textContent = "";
            result.replaceChildren(showError(error));
        }
        run.removeAttribute("aria-disabled");
    }
    const form = element(
        "form",
        {onsubmit: submit},
        editors.map((editor) => editor.node),
        topK ? field("Classes at most", topK) : null,
        run,
    );
    return [element("div", {class: "columns"}, form, element("div", {}, state, result))];
}
