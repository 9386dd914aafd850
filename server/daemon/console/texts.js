// SPDX-License-Identifier: MIT
// The page of an encoder of texts: a vector, how alike two texts are, a ranking, a map of many.

import {json, modelPath} from "/console/api.js";
import {showCode} from "/console/code.js";
import {choice, drawing, element, field, showError} from "/console/dom.js";
import {showMatrix, showVector} from "/console/numbers.js";
import {cosine, mapOf} from "/console/vectors.js";

const MAP_MAX = 500; // texts
const MAP_WIDTH = 860,
    MAP_HEIGHT = 400; // at most; labels keep their size on a phone
const MATRIX_MAX = 40;
const EXAMPLE = [
    "The cat sleeps on the sofa.",
    "A kitten naps on the couch.",
    "The dog chases a ball.",
    "Stocks fell sharply on Monday.",
    "The market lost three percent.",
    "Investors sold their shares.",
    "Boil the pasta for nine minutes.",
    "Add salt to the water.",
    "Fry the onions until golden.",
];

function area(rows, value = "") {
    return element("textarea", {class: "prose", rows, spellcheck: "false"}, value);
}

function linesOf(control) {
    return control.value
        .split("\n")
        .map((line) => line.trim())
        .filter(Boolean);
}

async function embed(model, texts) {
    const answer = await json("/v1/embeddings", {model, input: texts});
    return answer.data.map((row) => row.embedding);
}

// ---- what is shown ------------------------------------------------------------------------------

function shareBar(name, value, text) {
    return element(
        "li",
        {},
        element("span", {title: name}, name),
        element("meter", {
            min: 0,
            max: 1,
            value: Math.max(0, Math.min(1, value)),
            "aria-hidden": "true",
        }),
        element("data", {value}, text),
    );
}

function showRanking(answer, texts) {
    const least = Math.min(0, ...answer.map((row) => row.score));
    const most = Math.max(1e-9, ...answer.map((row) => row.score));
    return element(
        "ol",
        {class: "bars long"},
        answer.map((row) =>
            shareBar(texts[row.index], (row.score - least) / (most - least), row.score.toFixed(4)),
        ),
    );
}

// Where the label of a point has room: {x, y, anchor}; null: nowhere. |taken| has boxes of labels.
function roomFor(x, y, length, taken, mapWidth) {
    const width = 6.4 * length;
    for (const [dx, dy] of [
        [10, 4],
        [-10 - width, 4],
        [-width / 2, -11],
        [-width / 2, 20],
    ]) {
        const box = {left: x + dx, right: x + dx + width, top: y + dy - 12, bottom: y + dy + 3};
        if (
            box.left > 0 &&
            box.right < mapWidth &&
            taken.every(
                (other) =>
                    box.left > other.right ||
                    box.right < other.left ||
                    box.top > other.bottom ||
                    box.bottom < other.top,
            )
        ) {
            taken.push(box);
            return {x: dx, y: dy};
        }
    }
    return null;
}

function placesOf(points, mapWidth) {
    const most = [0, 1].map((axis) =>
        Math.max(...points.map((point) => Math.abs(point[axis])), 1e-9),
    );
    return points.map(([x, y]) => [
        (mapWidth / 2) * (1 + (0.85 * x) / most[0]),
        (MAP_HEIGHT / 2) * (1 - (0.88 * y) / most[1]),
    ]);
}

function showMap(texts, vectors) {
    const {points, shares} = mapOf(vectors);
    const width = Math.min(MAP_WIDTH, document.documentElement.clientWidth - 32);
    const places = placesOf(points, width);
    const taken = places.map(([x, y]) => ({left: x - 6, right: x + 6, top: y - 6, bottom: y + 6}));
    const said = element(
        "p",
        {class: "picked", role: "status"},
        "Point at a text, or move to it with Tab.",
    );
    const dots = places.map(([x, y], i) => {
        const tell = () => {
            said.textContent = texts[i];
        };
        const label = texts[i].length > 32 ? `${texts[i].slice(0, 31)}…` : texts[i];
        const room = roomFor(x, y, label.length, taken, width);
        return drawing(
            "g",
            {
                tabindex: "0",
                role: "img",
                "aria-label": texts[i],
                class: "dot",
                onfocus: tell,
                onpointerenter: tell,
                transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`,
            },
            drawing("circle", {r: 5.5}),
            room ? drawing("text", room, label) : null,
        );
    });
    const percent = shares.map((share) => `${(100 * share).toFixed(0)} %`);
    return [
        drawing(
            "svg",
            {
                class: "map",
                viewBox: `0 0 ${width} ${MAP_HEIGHT}`,
                role: "group",
                "aria-label": `a map of ${texts.length} texts`,
            },
            drawing("path", {
                class: "axis",
                d: `M20 ${MAP_HEIGHT / 2}H${width - 20}M${width / 2} 15V${MAP_HEIGHT - 15}`,
            }),
            dots,
        ),
        said,
        element(
            "p",
            {class: "soft"},
            "Principal components: " +
                `across ${percent[0]} of the differences, up and down ${percent[1]}.`,
        ),
    ];
}

// ---- what can be done ---------------------------------------------------------------------------

// Each has fields, and run() answers {nodes, request}.
function embedPart(model) {
    const text = area(3, EXAMPLE[0]);
    return {
        title: "Embed",
        verb: "Embed",
        fields: [field("Text", text)],
        async run() {
            const [vector] = await embed(model, [text.value]);
            return {
                nodes: showVector(vector),
                request: {path: "/v1/embeddings", json: {model, input: text.value}},
            };
        },
    };
}

function comparePart(model) {
    const texts = [area(3, EXAMPLE[0]), area(3, EXAMPLE[1])];
    return {
        title: "Compare",
        verb: "Compare",
        fields: [field("One text", texts[0]), field("Another text", texts[1])],
        async run() {
            const input = texts.map((text) => text.value);
            const alike = cosine(...(await embed(model, input)));
            return {
                nodes: [
                    element(
                        "p",
                        {class: "figure"},
                        element("strong", {}, alike.toFixed(3)),
                        " cosine of the two vectors",
                    ),
                    element("meter", {
                        class: "wide",
                        min: -1,
                        max: 1,
                        value: alike,
                        "aria-label": "likeness from -1 to 1",
                    }),
                    element("p", {class: "soft"}, "1: the same direction, 0: nothing in common"),
                ],
                request: {path: "/v1/embeddings", json: {model, input}},
            };
        },
    };
}

function rankPart(model) {
    const query = element("input", {type: "text", value: "Where is the cat?"});
    const list = area(8, EXAMPLE.slice(0, 6).join("\n"));
    return {
        title: "Rank",
        verb: "Rank",
        fields: [field("Question", query), field("Texts, one a line", list)],
        async run() {
            const body = {query: query.value, texts: linesOf(list)};
            const path = modelPath(model, "/rerank");
            return {
                nodes: [showRanking(await json(path, body), body.texts)],
                request: {path, json: body},
            };
        },
    };
}

function mapPart(model) {
    const list = area(10, EXAMPLE.join("\n"));
    return {
        title: "Map",
        verb: "Draw the map",
        fields: [field("Texts, one a line", list)],
        async run() {
            const input = linesOf(list);
            if (input.length < 3 || input.length > MAP_MAX) {
                throw new Error(`A map has 3 to ${MAP_MAX} texts, these are ${input.length}.`);
            }
            const vectors = await embed(model, input);
            const matrix =
                input.length <= MATRIX_MAX
                    ? [
                          element("h3", {}, "How alike each two are"),
                          ...showMatrix(
                              vectors.map((a) => vectors.map((b) => cosine(a, b))),
                              {names: input},
                          ),
                      ]
                    : [];
            return {
                nodes: [...showMap(input, vectors), ...matrix],
                request: {path: "/v1/embeddings", json: {model, input}},
            };
        },
    };
}

function showPart(part) {
    const result = element("div", {class: "result"});
    const run = element("button", {class: "main", type: "submit"}, part.verb);
    const form = element(
        "form",
        {
            onsubmit: async (event) => {
                event.preventDefault();
                run.setAttribute("aria-disabled", "true");
                try {
                    const {nodes, request} = await part.run();
                    result.replaceChildren(
                        ...nodes,
                        element(
                            "details",
                            {},
                            element("summary", {}, "This request as code"),
                            showCode(request),
                        ),
                    );
                } catch (error) {
                    result.replaceChildren(showError(error));
                }
                run.removeAttribute("aria-disabled");
            },
        },
        part.fields,
        run,
    );
    return element("div", {class: part.title === "Map" ? "stacked" : "columns"}, form, result);
}

// |isRanker|: it reads pairs of texts and gives scores, no vectors.
export function showTexts(model, isRanker) {
    const parts = isRanker
        ? [rankPart(model)]
        : [embedPart(model), comparePart(model), rankPart(model), mapPart(model)];
    const shown = new Map(parts.map((part) => [part.title, showPart(part)]));
    const place = element("div", {}, shown.get(parts[0].title));
    return [
        parts.length > 1
            ? choice(
                  "What to do with texts",
                  Object.fromEntries(parts.map(({title}) => [title, title])),
                  parts[0].title,
                  (title) => place.replaceChildren(shown.get(title)),
              )
            : null,
        place,
    ].filter(Boolean);
}
