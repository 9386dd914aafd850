// SPDX-License-Identifier: MIT
// The answer of a model: what its card says for people, or else numbers as what they may be: a
// picture, boxes or a mask over the picture that was sent, a matrix, a line. Bars are only for
// scores that have labels. The numbers themselves are always there, too.

import {copyOf, element} from "/console/dom.js";
import {paint, showMatrix, showPicture, showVector} from "/console/numbers.js";
import {answerRows, showRows} from "/console/people.js";
import {numberText, shapeText} from "/console/text.js";

const BARS_MAX = 10;
const ROWS_MAX = 8; // of bars
const TEXT_MAX = 4000;
const SIDE_MIN = 8; // of a picture

// ---- classes ------------------------------------------------------------------------------------

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

// Scores with the names of their classes, the best first; as shares, if all of them are numbers.
function bars(values, labels) {
    const isFinite = values.every(Number.isFinite);
    const shares = !isFinite ? null : areShares(values) ? values : softmax(values);
    const order = values
        .map((_, i) => i)
        .sort((a, b) => values[b] - values[a] || 0)
        .slice(0, BARS_MAX);
    return element(
        "ol",
        {class: "bars"},
        order.map((i) =>
            element(
                "li",
                {},
                element("span", {title: labels[i]}, labels[i]),
                element("meter", {
                    min: 0,
                    max: 1,
                    value: shares ? shares[i] : 0,
                    "aria-hidden": "true",
                }),
                element(
                    "data",
                    {value: values[i], title: String(values[i])},
                    shares ? `${(100 * shares[i]).toFixed(1)} %` : numberText(values[i]),
                ),
            ),
        ),
    );
}

// ---- over the picture that was sent -------------------------------------------------------------

// A colour for each class; class 0 is mostly the background, so it is clear.
function classColour(index) {
    const hue = (index * 137.508) % 360;
    const part = (shift) => {
        const k = (shift + hue / 30) % 12;
        return Math.round(255 * (0.5 - 0.45 * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
    };
    return index === 0 ? [0, 0, 0, 0] : [part(0), part(8), part(4), 170];
}

function maskOver(data, dims, canvas) {
    const size = dims.height * dims.width;
    const mask = paint(dims, "the classes of its pixels", (i) => {
        let best = 0;
        for (let c = 1; c < dims.channels; c++) {
            best = data[c * size + i] > data[best * size + i] ? c : best;
        }
        return classColour(best);
    });
    mask.className = "over tiny";
    return element("div", {class: "picture"}, copyOf(canvas), mask);
}

// Boxes as [n, 4] corners, in pixels or as shares of the picture.
function boxesOver(data, canvas) {
    const copy = copyOf(canvas);
    const context = copy.getContext("2d");
    const isShare = data.every((value) => value >= -0.01 && value <= 1.01);
    const [sx, sy] = isShare ? [canvas.width, canvas.height] : [1, 1];
    context.strokeStyle = "#e5484d";
    context.lineWidth = Math.max(1, canvas.width / 160);
    for (let i = 0; i + 3 < Math.min(data.length, 400); i += 4) {
        const [x0, y0, x1, y1] = data.slice(i, i + 4);
        context.strokeRect(x0 * sx, y0 * sy, (x1 - x0) * sx, (y1 - y0) * sy);
    }
    return element("div", {class: "picture"}, copy);
}

// ---- tensors ------------------------------------------------------------------------------------

function product(dims) {
    return dims.reduce((a, b) => a * b, 1);
}

// Shows one of |count| parts at a time; |show| gives the nodes of part |i|.
function partOf(count, what, show) {
    const place = element("div", {}, show(0));
    if (count <= 1) {
        return [place];
    }
    return [
        element(
            "label",
            {class: "field small"},
            element("span", {}, `${what} of ${count}, from 0`),
            element("input", {
                type: "number",
                min: 0,
                max: count - 1,
                value: 0,
                oninput: (event) => {
                    const i = Math.min(
                        count - 1,
                        Math.max(0, Math.floor(Number(event.target.value)) || 0),
                    );
                    place.replaceChildren(...show(i));
                },
            }),
        ),
        place,
    ];
}

function matrixAt(data, height, width, i) {
    return Array.from({length: height}, (_, y) =>
        data.slice((i * height + y) * width, (i * height + y + 1) * width),
    );
}

function showTensor(name, data, shape) {
    const dims = [...shape];
    while (dims.length > 1 && dims[0] === 1) {
        dims.shift();
    }
    if (data.length <= 1 || dims.length === 0) {
        return [
            element(
                "p",
                {class: "figure"},
                element("strong", {}, data.length ? numberText(data[0]) : "no numbers"),
            ),
        ];
    }
    if (dims.length === 1) {
        return showVector(data);
    }
    const [height, width] = dims.slice(-2);
    const channels = dims.length >= 3 ? dims[dims.length - 3] : 0;
    const isPicture = (channels === 1 || channels === 3) && height >= SIDE_MIN && width >= SIDE_MIN;
    if (
        isPicture ||
        (shape.length === 4 && shape[1] === 1 && height >= SIDE_MIN && width >= SIDE_MIN)
    ) {
        const size = (channels || 1) * height * width;
        return partOf(data.length / size, "Picture", (i) =>
            showPicture(
                data.slice(i * size, (i + 1) * size),
                {channels: channels || 1, height, width},
                name,
            ),
        );
    }
    return partOf(product(dims.slice(0, -2)), "Matrix", (i) =>
        showMatrix(matrixAt(data, height, width, i)),
    );
}

// Height, width and channels of what may be a mask, channels first.
function maskDims(shape) {
    const [channels, height, width] = shape.slice(-3);
    return shape.length >= 3 &&
        product(shape.slice(0, -3)) === 1 &&
        channels > 3 &&
        height >= SIDE_MIN &&
        width >= SIDE_MIN
        ? {channels, height, width}
        : null;
}

// What a tensor of |output| is shown as. |labels| of its classes, the |canvas| that was sent.
function views(output, labels, canvas) {
    const {shape} = output;
    if (output.datatype === "BYTES") {
        return output.data.map((text) => element("p", {class: "said"}, String(text)));
    }
    const data = output.data.map(Number); // "NaN" comes as a text
    const dims = maskDims(shape);
    if (canvas && /box/i.test(output.name) && shape.at(-1) === 4 && shape.length <= 3) {
        return [boxesOver(data, canvas)];
    }
    if (dims && canvas) {
        return [maskOver(data, dims, canvas)];
    }
    if (labels) {
        const rows = Math.min(ROWS_MAX, data.length / labels.length);
        return Array.from({length: rows}, (_, i) =>
            bars(data.slice(i * labels.length, (i + 1) * labels.length), labels),
        );
    }
    return showTensor(output.name, data, shape);
}

// ---- outputs ------------------------------------------------------------------------------------

function raw(summary, value) {
    const text = JSON.stringify(value);
    return element(
        "details",
        {},
        element("summary", {}, summary),
        element(
            "pre",
            {tabindex: "0"},
            text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)} …` : text,
        ),
    );
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
    const head = new DataView(
        Uint8Array.from(atob(png.slice(0, 32)), (c) => c.charCodeAt(0)).buffer,
    );
    return {png, width: head.getUint32(16), height: head.getUint32(20), classes: []};
}

// Outputs of `infer`: an answer for people is a list of texts there.
function outputsOf(answer, meta) {
    const read = {boxes: JSON.parse, map: mapOf, text: (text) => text};
    return answer.outputs.map((output) => {
        const about = meta.outputs.find((item) => item.name === output.name);
        const kind = output.datatype === "BYTES" ? about?.answer : null;
        return read[kind]
            ? {...output, rows: {kind, rows: output.data.map(read[kind]), about: about[kind]}}
            : output;
    });
}

// Outputs of `call`; those that boxes were made from are null.
function resultsOf(answer, meta, schema) {
    return leaves(answer.result, schema)
        .filter(({value}) => value !== null)
        .map(({name, value}) => {
            const about = meta.outputs.find((item) => item.name === name);
            return {...flatten(name, value, about), rows: answerRows(value, about), value};
        });
}

// |sent|: pictures by row, and what the model's card makes of them.
export function showAnswer(answer, meta, signature, sent) {
    const outputs = answer.outputs
        ? outputsOf(answer, meta)
        : resultsOf(answer, meta, signature.result_schema);
    return outputs.map((output) => {
        const what = output.rows ? output.rows.kind : shapeText(output);
        return element(
            "section",
            {class: "output"},
            element("h2", {}, output.name, " ", element("span", {class: "soft"}, what)),
            output.rows
                ? showRows(output.rows, sent.pictures, sent.form)
                : views(output, signature.labels?.[output.name], sent.pictures[0]?.canvas),
            output.rows ? raw("As JSON", output.value ?? output.data) : raw("Numbers", output.data),
        );
    });
}
