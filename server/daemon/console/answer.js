// SPDX-License-Identifier: MIT
// The answer of a model: what its card says for people, or else bars for classes, a plot for
// numbers, a picture for a picture, boxes and masks over the picture that was sent. The numbers
// themselves are always there, too.

import {drawing, element, shapeText} from "/console/api.js";
import {answerRows, showRows} from "/console/people.js";

const BARS_MAX = 10;
const CLASSES_MAX = 2000;
const TEXT_MAX = 4000;

function softmax(values) {
    const top = Math.max(...values);
    const powers = values.map((value) => Math.exp(value - top));
    const sum = powers.reduce((a, b) => a + b, 0);
    return powers.map((power) => power / sum);
}

function areShares(values) {
    const sum = values.reduce((a, b) => a + b, 0);
    return values.every((value) => value >= 0 && value <= 1.0001) && Math.abs(sum - 1) < 0.01;
}

// Does any of so many numbers stand out as a class does? Those of a sound do not.
function stands(values) {
    const shares = areShares(values) ? values : softmax(values);
    return values.length <= 20 || Math.max(...shares) * values.length > 10;
}

function bars(values, labels) {
    const shares = areShares(values) ? values : softmax(values);
    const order = values.map((_, i) => i).sort((a, b) => values[b] - values[a]).slice(0, BARS_MAX);
    return element("ol", {class: "bars"}, order.map((i) => element("li", {},
        element("span", {title: labels ? labels[i] : ""}, labels ? labels[i] : `class ${i}`),
        element("meter", {min: 0, max: 1, value: shares[i], "aria-hidden": "true"}),
        element("data", {value: values[i], title: String(values[i])}, `${(100 * shares[i]).toFixed(1)} %`))));
}

function plot(values) {
    const finite = values.filter(Number.isFinite);
    const low = Math.min(...finite);
    const high = Math.max(...finite);
    const span = high - low || 1;
    const path = values.map((value, i) => `${i ? "L" : "M"}${i},${
        Number.isFinite(value) ? 100 - 100 * (value - low) / span : 100}`).join("");
    return [drawing("svg", {class: "plot", viewBox: `0 -5 ${Math.max(values.length - 1, 1)} 110`,
        preserveAspectRatio: "none", role: "img",
        "aria-label": `${values.length} numbers from ${low} to ${high}`}, drawing("path", {d: path})),
    element("p", {class: "soft"}, `${values.length} numbers from ${low.toPrecision(4)} to ${high.toPrecision(4)}`)];
}

// ---- pictures -----------------------------------------------------------------------------------

// Height, width and channels of an output that may be a picture or a mask, channels first.
function pictureDims(output) {
    const dims = output.shape[0] === 1 ? output.shape.slice(1) : output.shape;
    const [channels, height, width] = dims.length === 2 ? [1, ...dims] : dims;
    return dims.length >= 2 && dims.length <= 3 && height >= 8 && width >= 8 ? {channels, height, width} : null;
}

function paint({height, width}, colour) {
    const canvas = element("canvas", {class: "shown", width, height});
    const context = canvas.getContext("2d");
    const image = context.createImageData(width, height);
    for (let i = 0; i < width * height; i++) {
        image.data.set(colour(i), 4 * i);
    }
    context.putImageData(image, 0, 0);
    return canvas;
}

// A colour for each class; class 0 is mostly the background, so it is clear.
function classColour(index) {
    const hue = (index * 137.508) % 360;
    const part = (shift) => {
        const k = (shift + hue / 30) % 12;
        return Math.round(255 * (0.5 - 0.45 * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
    };
    return index === 0 ? [0, 0, 0, 0] : [part(0), part(8), part(4), 170];
}

function picture(output, dims) {
    const size = dims.height * dims.width;
    let low = Infinity, high = -Infinity;
    for (const value of output.data) {
        low = Math.min(low, value);
        high = Math.max(high, value);
    }
    const level = (value) => Math.round(255 * (value - low) / (high - low || 1));
    return paint(dims, (i) => dims.channels === 3
        ? [level(output.data[i]), level(output.data[size + i]), level(output.data[2 * size + i]), 255]
        : [level(output.data[i]), level(output.data[i]), level(output.data[i]), 255]);
}

function mask(output, dims) {
    const size = dims.height * dims.width;
    return paint(dims, (i) => {
        let best = 0;
        for (let c = 1; c < dims.channels; c++) {
            best = output.data[c * size + i] > output.data[best * size + i] ? c : best;
        }
        return classColour(best);
    });
}

function copyOf(canvas) {
    const copy = element("canvas", {width: canvas.width, height: canvas.height});
    copy.getContext("2d").drawImage(canvas, 0, 0);
    return copy;
}

function overlay(canvas, over) {
    over.className = "over";
    return element("div", {class: "picture"}, copyOf(canvas), over);
}

// Boxes as [n, 4] corners, in pixels or as shares of the picture.
function boxes(output, canvas) {
    const copy = copyOf(canvas);
    const context = copy.getContext("2d");
    const isShare = output.data.every((value) => value >= -0.01 && value <= 1.01);
    const [sx, sy] = isShare ? [canvas.width, canvas.height] : [1, 1];
    context.strokeStyle = "#e5484d";
    context.lineWidth = Math.max(1, canvas.width / 160);
    for (let i = 0; i + 3 < Math.min(output.data.length, 400); i += 4) {
        const [x0, y0, x1, y1] = output.data.slice(i, i + 4);
        context.strokeRect(x0 * sx, y0 * sy, (x1 - x0) * sx, (y1 - y0) * sy);
    }
    return element("div", {class: "picture"}, copy);
}

// ---- outputs ------------------------------------------------------------------------------------

function views(output, labels, canvas) {
    const {shape, data} = output;
    const last = shape[shape.length - 1];
    const isRow = shape.length >= 1 && data.length === last;
    if (output.datatype === "BYTES" || output.datatype === "BOOL") {
        return [];
    }
    const dims = pictureDims(output);
    if (canvas && /box/i.test(output.name) && last === 4 && shape.length <= 3) {
        return [boxes(output, canvas)];
    }
    if (dims && dims.channels > 3 && canvas) {
        return [overlay(canvas, mask(output, dims))];
    }
    if (dims && (dims.channels === 1 || dims.channels === 3)) {
        return [picture(output, dims)];
    }
    if (labels || (isRow && last >= 2 && last <= CLASSES_MAX && stands(data))) {
        const rows = labels ? data.length / labels.length : 1;
        const size = data.length / rows;
        const lists = Array.from({length: Math.min(rows, 8)},
            (_, i) => bars(data.slice(i * size, (i + 1) * size), labels));
        return isRow && !labels && last > 20 ? [...lists, ...plot(data)] : lists;
    }
    return data.length > 2 ? plot(data) : [];
}

function numbers(output) {
    const text = JSON.stringify(output.data);
    return element("details", {open: output.data.length <= 64},
        element("summary", {}, "Numbers"),
        element("pre", {tabindex: "0"}, text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)} …` : text));
}

// A nested list as the protocol's flat one.
function flatten(name, value, output) {
    const shape = [];
    for (let at = value; Array.isArray(at); at = at[0]) {
        shape.push(at.length);
    }
    return {name, datatype: output?.datatype || "", shape, data: [value].flat(Infinity)};
}

// The values of |value| by the names that its schema has.
function leaves(value, schema, found = []) {
    if (schema.title !== undefined) {
        found.push({name: schema.title, value});
    } else if (schema.properties) {
        Object.entries(schema.properties).forEach(([key, item]) => leaves(value[key], item, found));
    } else {
        (schema.prefixItems || []).forEach((item, i) => leaves(value[i], item, found));
    }
    return found;
}

// A PNG file in base64, whose head has its size.
function mapOf(png) {
    const head = new DataView(Uint8Array.from(atob(png.slice(0, 32)), (c) => c.charCodeAt(0)).buffer);
    return {png, width: head.getUint32(16), height: head.getUint32(20), classes: []};
}

// Outputs of `infer`: an answer for people is a list of texts there.
function outputsOf(answer, meta) {
    const read = {boxes: JSON.parse, map: mapOf, text: (text) => text};
    return answer.outputs.map((output) => {
        const about = meta.outputs.find((item) => item.name === output.name);
        const kind = output.datatype === "BYTES" ? about?.answer : null;
        return read[kind] ? {...output, rows: {kind, rows: output.data.map(read[kind]),
            about: about[kind]}} : output;
    });
}

// Outputs of `call`; those that boxes were made from are null.
function resultsOf(answer, meta, schema) {
    return leaves(answer.result, schema).filter(({value}) => value !== null).map(({name, value}) => {
        const about = meta.outputs.find((item) => item.name === name);
        return {...flatten(name, value, about), rows: answerRows(value, about), value};
    });
}

function raw(output) {
    const text = JSON.stringify(output.value ?? output.data);
    return element("details", {}, element("summary", {}, "As JSON"),
        element("pre", {tabindex: "0"}, text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)} …` : text));
}

// |sent|: pictures by row, and what the model's card makes of them.
export function showAnswer(answer, meta, signature, sent) {
    const outputs = answer.outputs ? outputsOf(answer, meta)
        : resultsOf(answer, meta, signature.result_schema);
    return outputs.map((output) => output.rows
            ? element("section", {}, element("h3", {}, `${output.name} `,
                element("span", {class: "soft"}, output.rows.kind)),
            showRows(output.rows, sent.pictures, sent.form), raw(output))
            : element("section", {},
                element("h3", {}, `${output.name} `, element("span", {class: "soft"}, shapeText(output))),
                views(output, signature.labels?.[output.name], sent.pictures[0]?.canvas), numbers(output)));
}
