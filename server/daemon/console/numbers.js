// SPDX-License-Identifier: MIT
// Numbers as pictures: a line for a vector, a table or a heat map for a matrix, pixels for a
// picture.

import {canvasOf, drawing, element} from "/console/dom.js";
import {numberText} from "/console/text.js";

const ROW_MAX = 16; // numbers of a vector that are written out
const TABLE_MAX = 144; // numbers of a matrix that are written out
const SIDE_MAX = 512; // cells of a side of a heat map
const HEAT_REM = 30; // the longer side of a heat map
const POINTS_MAX = 4000; // of a line

function bounds(values) {
    let low = Infinity,
        high = -Infinity;
    for (const value of values) {
        if (Number.isFinite(value)) {
            low = Math.min(low, value);
            high = Math.max(high, value);
        }
    }
    return low <= high ? {low, high} : null;
}

// How many are no numbers, in words; or nothing.
function oddText(values) {
    const count = values.filter((value) => !Number.isFinite(value)).length;
    return count === 0 ? "" : `, ${count} of them NaN or infinite`;
}

function rangeText(values) {
    const range = bounds(values);
    const text = range ? ` from ${numberText(range.low)} to ${numberText(range.high)}` : "";
    return `${values.length} numbers${text}${oddText(values)}`;
}

// ---- vectors ------------------------------------------------------------------------------------

function plot(values) {
    const step = Math.max(1, Math.ceil(values.length / POINTS_MAX));
    const shown = step === 1 ? values : values.filter((_, i) => i % step === 0);
    const {low, high} = bounds(shown) || {low: 0, high: 1};
    const span = high - low || 1;
    const y = (value) => (100 - (100 * (value - low)) / span).toFixed(2);
    let path = "",
        isOn = false;
    shown.forEach((value, i) => {
        path += Number.isFinite(value) ? `${isOn ? "L" : "M"}${i},${y(value)}` : "";
        isOn = Number.isFinite(value);
    });
    return drawing(
        "svg",
        {
            class: "plot",
            viewBox: `0 -5 ${Math.max(shown.length - 1, 1)} 110`,
            role: "img",
            preserveAspectRatio: "none",
            "aria-label": rangeText(values),
        },
        low < 0 && high > 0
            ? drawing("path", {class: "axis", d: `M0 ${y(0)}H${shown.length}`})
            : null,
        drawing("path", {d: path}),
    );
}

export function showVector(values) {
    return values.length <= ROW_MAX
        ? [
              element(
                  "ol",
                  {class: "cells", start: 0},
                  values.map((value, i) =>
                      element("li", {}, element("small", {}, i), numberText(value)),
                  ),
              ),
          ]
        : [plot(values), element("p", {class: "soft"}, rangeText(values))];
}

// ---- matrices -----------------------------------------------------------------------------------

// Colours of a value in its range: blue to white to red around 0, or white to blue.
function painter({low, high}) {
    const isAround = low < 0 && high > 0;
    const most = Math.max(Math.abs(low), Math.abs(high)) || 1;
    const mix = (to, share) => to.map((part) => Math.round(250 + (part - 250) * share));
    return (value) =>
        !Number.isFinite(value)
            ? [255, 200, 0]
            : isAround
              ? mix(value < 0 ? [33, 84, 180] : [190, 50, 40], Math.abs(value) / most)
              : mix([33, 84, 180], (value - low) / (high - low || 1));
}

function showTable(rows) {
    const colour = painter(bounds(rows.flat()) || {low: 0, high: 0});
    return [
        element(
            "div",
            {class: "scroll", tabindex: "0", role: "region", "aria-label": "Numbers"},
            element(
                "table",
                {class: "numbers"},
                element(
                    "tbody",
                    {},
                    rows.map((row, i) =>
                        element(
                            "tr",
                            {},
                            element("th", {scope: "row"}, i),
                            row.map((value) => {
                                const cell = element("td", {class: "tinted"}, numberText(value));
                                cell.style.setProperty("--tint", `rgb(${colour(value).join(" ")})`);
                                return cell;
                            }),
                        ),
                    ),
                ),
            ),
        ),
    ];
}

function paintCells(canvas, rows, colour) {
    const context = canvas.getContext("2d");
    const image = context.createImageData(canvas.width, canvas.height);
    for (let y = 0; y < canvas.height; y++) {
        const row = rows[Math.floor((y * rows.length) / canvas.height)];
        for (let x = 0; x < canvas.width; x++) {
            const value = row[Math.floor((x * row.length) / canvas.width)];
            image.data.set([...colour(value), 255], 4 * (y * canvas.width + x));
        }
    }
    context.putImageData(image, 0, 0);
}

function heatMap(rows, {names}) {
    const values = rows.flat();
    const range = bounds(values) || {low: 0, high: 0};
    const canvas = element("canvas", {
        class: "heat",
        width: Math.min(SIDE_MAX, rows[0].length),
        height: Math.min(SIDE_MAX, rows.length),
        role: "img",
        "aria-label": `a heat map of ${rows.length} × ${rows[0].length}: ${rangeText(values)}`,
    });
    const width = HEAT_REM * Math.min(1, rows[0].length / rows.length);
    canvas.style.width = `min(100%, ${Math.max(4, width)}rem)`;
    paintCells(canvas, rows, painter(range));
    const said = element(
        "p",
        {class: "soft"},
        `${rows.length} × ${rows[0].length}: ${rangeText(values)}`,
    );
    canvas.addEventListener("pointermove", (event) => {
        const box = canvas.getBoundingClientRect();
        const y = Math.min(
            rows.length - 1,
            Math.max(0, Math.floor(((event.clientY - box.top) / box.height) * rows.length)),
        );
        const x = Math.min(
            rows[0].length - 1,
            Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * rows[0].length)),
        );
        const place = names ? `${names[y]} and ${names[x]}` : `[${y}, ${x}]`;
        said.textContent = `${place}: ${numberText(rows[y][x])}`;
    });
    return [canvas, said];
}

// |rows|: lists of the same length. |names| of rows and columns, if they have some.
export function showMatrix(rows, options = {}) {
    return rows.length * rows[0].length <= TABLE_MAX && !options.names
        ? showTable(rows)
        : heatMap(rows, options);
}

// ---- pictures -----------------------------------------------------------------------------------

// A canvas; |colour| gives [r, g, b, a] of a pixel by its number.
export function paint({height, width}, name, colour) {
    const canvas = canvasOf(width, height, name);
    const context = canvas.getContext("2d");
    const image = context.createImageData(width, height);
    for (let i = 0; i < width * height; i++) {
        image.data.set(colour(i), 4 * i);
    }
    context.putImageData(image, 0, 0);
    return canvas;
}

// Channels first, 1 or 3 of them; black is the least value, white the greatest.
export function showPicture(data, {channels, height, width}, name) {
    const {low, high} = bounds(data) || {low: 0, high: 1};
    const size = height * width;
    const level = (value) => Math.round((255 * (value - low)) / (high - low || 1));
    const canvas = paint({height, width}, `${name} as a picture`, (i) =>
        channels === 3
            ? [level(data[i]), level(data[size + i]), level(data[2 * size + i]), 255]
            : [level(data[i]), level(data[i]), level(data[i]), 255],
    );
    return [
        element("div", {class: "picture"}, canvas),
        element("p", {class: "soft"}, `${width} × ${height} pixels, ${rangeText(data)}`),
    ];
}
