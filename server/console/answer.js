// SPDX-License-Identifier: MIT
// The answer of a model for people: bars for classes, a plot for numbers, a picture for a picture,
// boxes and masks over the picture that was sent. The numbers themselves are always there, too.

import {drawing, element, shapeText} from "/console/api.js";

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

function bars(values, labels) {
    const shares = areShares(values) ? values : softmax(values);
    const order = values.map((_, i) => i).sort((a, b) => values[b] - values[a]).slice(0, BARS_MAX);
    return element("ol", {class: "bars"}, order.map((i) => element("li", {},
        element("span", {title: labels ? labels[i] : ""}, labels ? labels[i] : `class ${i}`),
        element("meter", {min: 0, max: 1, value: shares[i], "aria-label": labels ? labels[i] : `class ${i}`}),
        element("output", {title: String(values[i])}, `${(100 * shares[i]).toFixed(1)} %`))));
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
    if (labels || (isRow && last >= 2 && last <= CLASSES_MAX)) {
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

export function showAnswer(answer, labels, canvas, ms) {
    return [
        element("p", {class: "soft"}, `Answered in ${ms.toFixed(ms < 10 ? 1 : 0)} ms, the browser's part included`),
        ...answer.outputs.map((output) => element("section", {},
            element("h3", {}, `${output.name} `, element("span", {class: "soft"}, shapeText(output))),
            views(output, labels[output.name], canvas), numbers(output))),
    ];
}
