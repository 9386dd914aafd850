// SPDX-License-Identifier: MIT
// Where to read on, and the routes that people need first.

import {copyButton, element} from "/console/dom.js";

const ROUTES = [
    ["POST /v1/chat/completions", "chats, as OpenAI's clients ask; tools, schemas, streams"],
    ["POST /v1/embeddings", "vectors of texts"],
    ["POST /v1/rerank", "which texts answer a question"],
    ["POST /v1/audio/transcriptions", "files of sound to text and subtitles"],
    ["POST /v2/models/NAME/call", "a model by its own arguments: JSON, a picture, a sound, a text"],
    ["POST /v2/models/NAME/infer", "tensors by the Open Inference Protocol"],
    ["GET /v2/models", "the names of the models"],
    ["GET /v2/models/stats", "counts and times of each model"],
];

function command(text) {
    return element(
        "div",
        {class: "code"},
        element("pre", {tabindex: "0"}, text),
        copyButton(() => text),
    );
}

export function showHelp() {
    const origin = location.origin;
    return [
        element("h1", {}, "Documentation"),
        element(
            "p",
            {class: "lead"},
            "This daemon describes itself, and its pages are installed beside it.",
        ),
        element(
            "div",
            {class: "columns"},
            element(
                "section",
                {},
                element("h2", {}, "Here"),
                element(
                    "ul",
                    {},
                    element(
                        "li",
                        {},
                        element("a", {href: "/openapi.json"}, "OpenAPI"),
                        ": every route, and a typed call of each model",
                    ),
                    element(
                        "li",
                        {},
                        element("a", {href: "/metrics"}, "Metrics"),
                        ": what Prometheus reads",
                    ),
                    element(
                        "li",
                        {},
                        "The page of a model has its inputs, and each call as curl, Python and " +
                            "JavaScript",
                    ),
                ),
            ),
            element(
                "section",
                {},
                element("h2", {}, "On the machine"),
                element(
                    "ul",
                    {},
                    element(
                        "li",
                        {},
                        element("code", {}, "man pted"),
                        " and ",
                        element("code", {}, "man pte"),
                        ": options, signals, exit statuses",
                    ),
                    element(
                        "li",
                        {},
                        element("code", {}, "/usr/share/doc/pted"),
                        ": all pages, with Debian's package; ",
                        element("code", {}, "docs/"),
                        " in the source",
                    ),
                    element(
                        "li",
                        {},
                        element("code", {}, "pted --help"),
                        ": settings and their defaults",
                    ),
                ),
            ),
        ),
        element("h2", {}, "Routes"),
        element(
            "div",
            {class: "scroll", tabindex: "0", role: "region", "aria-label": "Routes"},
            element(
                "table",
                {class: "routes"},
                element(
                    "tbody",
                    {},
                    ROUTES.map(([route, text]) =>
                        element(
                            "tr",
                            {},
                            element("th", {scope: "row"}, element("code", {}, route)),
                            element("td", {}, text),
                        ),
                    ),
                ),
            ),
        ),
        element("h2", {}, "First calls"),
        command(`curl -s ${origin}/v2/models`),
        command(`pte chat ${origin}/NAME`),
        command(`pte run ${origin}/NAME picture.jpg`),
    ];
}
