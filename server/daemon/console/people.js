// SPDX-License-Identifier: MIT
// Answers for people, as the card of a model has them: classes, boxes, maps and texts. Boxes and
// maps lie over the picture that was sent.

import {canvasOf, copyOf, drawing, element} from "/console/dom.js";
import {numberText} from "/console/text.js";

// ---- where the model's picture lies in the one that was sent ------------------------------------

// Half of |rest|; what ends in .5 is rounded to an even number.
function half(rest) {
    return Math.floor(rest / 2) + (rest % 4 === 3 ? 1 : 0);
}

function isFilled(form) {
    return form.fit === "inside" || form.fit === "letterbox";
}

function resized(form, width, height) {
    const [h, w] = [form.resize].flat();
    if (!h) {
        return [width, height];
    }
    if (form.fit === "stretch") {
        return [w, h];
    }
    const scale = isFilled(form) ? Math.min(w / width, h / height) : h / Math.min(width, height);
    const round = isFilled(form) ? Math.round : (value) => Math.floor(value + 1e-9);
    return [Math.max(1, round(width * scale)), Math.max(1, round(height * scale))];
}

function side(form, sent, length, canvas, crop) {
    const size = crop || canvas;
    const rest = Math.max(0, canvas - length);
    const shift =
        (form.fit === "letterbox" ? Math.floor(rest / 2) : half(rest)) +
        (size > canvas ? Math.floor((size - canvas) / 2) : -half(canvas - size));
    return {size, toSent: (at) => ((at - shift) * sent) / length};
}

// The picture below boxes and maps, as |about| the output says.
function below(picture, about) {
    return about.picture === "sent" ? picture.stored || picture : picture;
}

// How coordinates of boxes and maps become pixels of the picture below.
function viewOf(form, picture, about) {
    if (about.picture === "model") {
        return modelView(form, picture);
    }
    const whole = (length) => ({size: length, toSent: (at) => at});
    return {x: whole(picture.width), y: whole(picture.height)};
}

// The sides of the model's picture, and how its pixels become those of |picture|.
function modelView(form, picture) {
    const [w, h] = resized(form, picture.width, picture.height);
    const [canvasHeight, canvasWidth] = isFilled(form) ? [form.resize].flat() : [h, w];
    const [cropHeight, cropWidth] = form.crop || [0, 0];
    return {
        x: side(form, picture.width, w, canvasWidth, cropWidth),
        y: side(form, picture.height, h, canvasHeight, cropHeight),
    };
}

// ---- colours ------------------------------------------------------------------------------------

// The palette of PASCAL VOC, as maps have it.
function colourOf(index) {
    const colour = [0, 0, 0];
    for (let bit = 7, rest = index; rest; bit--, rest >>= 3) {
        colour.forEach((_, c) => {
            colour[c] |= ((rest >> c) & 1) << bit;
        });
    }
    return `rgb(${colour.join(",")})`;
}

// Bright ones for boxes, which lie on any picture.
function brightOf(index) {
    return `hsl(${(index * 137.508) % 360} 90% 60%)`;
}

function swatch(colour) {
    return drawing(
        "svg",
        {class: "swatch", viewBox: "0 0 10 10", "aria-hidden": "true"},
        drawing("rect", {width: 10, height: 10, fill: colour}),
    );
}

// ---- classes ------------------------------------------------------------------------------------

function nameOf(item) {
    return item.label || `class ${item.index}`;
}

// Shares of a whole as percents; other scores as numbers, beside the greatest of them.
function scoreBars(items, isColoured) {
    const scores = items.map((item) => Number(item.score));
    const finite = scores.filter(Number.isFinite);
    const areShares =
        finite.length === scores.length && finite.every((score) => score >= 0 && score <= 1);
    const low = areShares ? 0 : Math.min(0, ...finite);
    const high = areShares ? 1 : Math.max(low + 1e-6, ...finite);
    return element(
        "ol",
        {class: "bars"},
        items.map((item, i) =>
            element(
                "li",
                {},
                element(
                    "span",
                    {title: nameOf(item)},
                    isColoured ? swatch(brightOf(item.index)) : null,
                    nameOf(item),
                ),
                element("meter", {
                    min: low,
                    max: high,
                    value: Number.isFinite(scores[i]) ? scores[i] : low,
                    "aria-hidden": "true",
                }),
                element(
                    "data",
                    {value: item.score, title: String(item.score)},
                    areShares ? `${(100 * scores[i]).toFixed(1)} %` : numberText(item.score),
                ),
            ),
        ),
    );
}

// ---- over a picture -----------------------------------------------------------------------------

function boxShape(item, view, picture, about) {
    const [sx, sy] = about.normalized ? [view.x.size, view.y.size] : [1, 1];
    const [left, right] = [item.box[0], item.box[2]].map((at) => view.x.toSent(at * sx));
    const [top, bottom] = [item.box[1], item.box[3]].map((at) => view.y.toSent(at * sy));
    const font = Math.max(picture.width, picture.height) / 26;
    const text = `${nameOf(item)} ${Number(item.score).toFixed(2)}`;
    const y = Math.max(top, 0);
    return drawing(
        "g",
        {},
        drawing("rect", {
            class: "box",
            x: left,
            y: top,
            width: Math.max(0, right - left),
            height: Math.max(0, bottom - top),
            stroke: brightOf(item.index),
        }),
        drawing("rect", {
            class: "back",
            x: left,
            y,
            width: font * 0.54 * text.length,
            height: font * 1.2,
        }),
        drawing("text", {x: left + font * 0.2, y: y + font * 0.9, "font-size": font}, text),
    );
}

function showBoxes(row, sent, form, about) {
    const picture = sent && below(sent, about);
    if (row.length === 0) {
        return [element("p", {}, "Nothing was found.")];
    }
    const list = scoreBars(row, true);
    if (!picture) {
        return [list, element("pre", {tabindex: "0"}, JSON.stringify(row, null, 1))];
    }
    const view = viewOf(form, picture, about);
    return [
        element(
            "div",
            {class: "picture"},
            copyOf(picture.canvas, picture.name),
            drawing(
                "svg",
                {
                    class: "over",
                    viewBox: `0 0 ${picture.width} ${picture.height}`,
                    role: "img",
                    preserveAspectRatio: "none",
                    "aria-label": `${row.length} boxes: ${row.map(nameOf).join(", ")}`,
                },
                row.map((item) => boxShape(item, view, picture, about)),
            ),
        ),
        list,
    ];
}

// The map on a canvas of its own size; where a picture is below, class 0 is clear.
async function drawMap(map, canvas, isOver) {
    const bytes = Uint8Array.from(atob(map.png), (c) => c.charCodeAt(0));
    const bitmap = await createImageBitmap(new Blob([bytes], {type: "image/png"}));
    const context = canvas.getContext("2d");
    context.drawImage(bitmap, 0, 0);
    if (isOver) {
        const image = context.getImageData(0, 0, canvas.width, canvas.height);
        for (let i = 0; i < image.data.length; i += 4) {
            const isGround = !(image.data[i] || image.data[i + 1] || image.data[i + 2]);
            image.data[i + 3] = isGround ? 0 : 150;
        }
        context.putImageData(image, 0, 0);
    }
}

function showMap(map, sent, form, about) {
    const picture = sent && below(sent, about);
    const words = map.classes.map(nameOf).join(", ");
    const canvas = canvasOf(map.width, map.height, `a map of ${words}`);
    const total = map.width * map.height;
    const legend = element(
        "ul",
        {class: "legend"},
        map.classes.map((item) =>
            element(
                "li",
                {},
                swatch(colourOf(item.index)),
                `${nameOf(item)} `,
                element("span", {class: "soft"}, `${((100 * item.pixels) / total).toFixed(1)} %`),
            ),
        ),
    );
    const drawn = drawMap(map, canvas, Boolean(picture));
    if (!picture) {
        return [element("div", {class: "picture"}, canvas), legend];
    }
    const over = canvasOf(picture.canvas.width, picture.canvas.height, `a map of ${words}`);
    over.className = "over";
    const {x, y} = viewOf(form, picture, about);
    const scale = picture.canvas.width / picture.width;
    const [left, right, top, bottom] = [
        x.toSent(0),
        x.toSent(x.size),
        y.toSent(0),
        y.toSent(y.size),
    ].map((at) => at * scale);
    drawn.then(() => {
        const context = over.getContext("2d");
        context.imageSmoothingEnabled = false;
        context.drawImage(canvas, left, top, right - left, bottom - top);
    });
    return [element("div", {class: "picture"}, copyOf(picture.canvas, picture.name), over), legend];
}

// ---- an output ----------------------------------------------------------------------------------

const SHOWN = {
    classes: (row) => [scoreBars(row, false)],
    boxes: showBoxes,
    map: showMap,
    text: (row) => [element("p", {class: "said"}, row)],
};

function isClass(value) {
    return value && typeof value === "object" && "score" in value && "index" in value;
}

// Rows of an answer, and how they are shown; null: it is a tensor of numbers.
export function answerRows(value, output) {
    const rows = Array.isArray(value) && !isClass(value[0]) ? value : [value];
    if (output?.answer && output.answer !== "classes") {
        const isNumbers =
            output.answer === "boxes"
                ? rows.some((row) => !Array.isArray(row) || (row.length && !row[0]?.box))
                : rows.some((row) =>
                      output.answer === "map" ? !row?.png : typeof row !== "string",
                  );
        return isNumbers ? null : {kind: output.answer, rows, about: output[output.answer] || {}};
    }
    const isClasses = rows.length > 0 && rows.every((row) => Array.isArray(row) && isClass(row[0]));
    return isClasses ? {kind: "classes", rows} : null;
}

// |pictures|: that of each row, or one of all.
export function showRows(answer, pictures, form) {
    return answer.rows.map((row, i) => {
        const picture = pictures[i] || (pictures.length === 1 ? pictures[0] : null);
        const title =
            answer.rows.length > 1 ? element("h3", {}, picture ? picture.name : `row ${i}`) : null;
        return element(
            "div",
            {class: "row"},
            title,
            SHOWN[answer.kind](row, picture, form || {}, answer.about || {}),
        );
    });
}
