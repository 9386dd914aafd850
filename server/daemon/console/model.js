// SPDX-License-Identifier: MIT
// The page of one model: what it is for comes first, and what it is comes after.

import {json, modelPath} from "/console/api.js";
import {showChat} from "/console/chat.js";
import {element, tabs} from "/console/dom.js";
import {showForm} from "/console/form.js";
import {showGraph} from "/console/graph.js";
import {nameOf, pageOf} from "/console/home.js";
import {keyOf, seriesOf, spark, watch} from "/console/live.js";
import {showSpeech} from "/console/speech.js";
import {bytesText, countText, rateText, shapeText, timeText} from "/console/text.js";
import {showTexts} from "/console/texts.js";

const MADE_FROM = {image: "a picture", sound: "a sound", text: "a text"};

function tensorTable(caption, tensors) {
    const words = (tensor) =>
        [
            tensor.description,
            tensor.media ? `made from ${MADE_FROM[tensor.media]}` : null,
            tensor.label_count ? `${tensor.label_count} labels` : null,
            tensor.optional ? "may be left out" : null,
        ]
            .filter(Boolean)
            .join(", ");
    return element(
        "div",
        {class: "scroll", tabindex: "0", role: "region", "aria-label": caption},
        element(
            "table",
            {class: "tensors"},
            element("caption", {}, caption),
            element(
                "tbody",
                {},
                tensors.map((tensor) =>
                    element(
                        "tr",
                        {},
                        element("th", {scope: "row"}, tensor.name),
                        element("td", {}, element("code", {}, shapeText(tensor))),
                        element("td", {class: "soft"}, words(tensor)),
                    ),
                ),
            ),
        ),
    );
}

function showTensors(meta, signature) {
    const lacks = Object.entries(meta.lacks || {});
    return [
        tensorTable("Inputs", meta.inputs),
        tensorTable("Outputs", meta.outputs),
        lacks.length
            ? element(
                  "p",
                  {class: "note"},
                  lacks.map(([what, why]) => `No ${what}: ${why}. `),
              )
            : null,
        element("h2", {}, "Schema of call"),
        element("pre", {tabindex: "0"}, JSON.stringify(signature.schema, null, 2)),
    ].filter(Boolean);
}

// The numbers of the model, as they change.
function facts(row, signal) {
    const text = element("span", {});
    const plot = spark("calls a second");
    watch((stats) => {
        const stat = stats.get(keyOf(row));
        if (!stat) {
            return;
        }
        const own = seriesOf(keyOf(row));
        const {success, fail} = stat.inference_stats;
        const weights = stat.weights.own + stat.weights.shared;
        plot.set(own.rate, rateText(own.rate.at(-1)));
        text.textContent = [
            `${rateText(own.rate.at(-1))} calls/s`,
            `mean ${timeText(own.ns.at(-1) || success.ns / success.count)}`,
            success.count === 1 ? "1 call" : `${countText(success.count)} calls`,
            fail.count ? `${countText(fail.count)} failed` : null,
            stat.load.waiting ? `${stat.load.waiting} waiting` : null,
            weights ? `${bytesText(weights)} of weights` : null,
        ]
            .filter(Boolean)
            .join(" · ");
    }, signal);
    return element("p", {class: "soft facts"}, plot.node, text);
}

function pagesFor(name, row, meta, signature, signal) {
    const pages = {
        language: {key: "chat", title: "Chat", make: () => showChat(name, signal)},
        speech: {key: "speech", title: "Transcribe", make: () => showSpeech(nameOf(row))},
        embedding: {key: "texts", title: "Texts", make: () => showTexts(name, false)},
        ranking: {key: "texts", title: "Rank", make: () => showTexts(name, true)},
    };
    return [
        pages[row.kind],
        {key: "call", title: "Call", make: () => showForm(name, meta, signature)},
        {key: "tensors", title: "Inputs and outputs", make: () => showTensors(meta, signature)},
        {key: "graph", title: "Graph", make: () => showGraph(name, meta)},
    ].filter(Boolean);
}

export async function showModel(name, tab, signal) {
    const [meta, signature, config, index] = await Promise.all([
        json(modelPath(name), undefined, {signal}),
        json(modelPath(name, "/signature"), undefined, {signal}),
        json(modelPath(name, "/config"), undefined, {signal}),
        json("/v2/repository/index", {}, {signal}),
    ]);
    const row = index.find(
        (item) =>
            item.version === signature.version && (item.name === meta.name || item.id === name),
    ) || {name: meta.name, version: signature.version};
    const about = [
        `version${meta.versions.length > 1 ? "s" : ""} ${meta.versions.join(", ")}`,
        config.instance_group?.[0] ? `on ${config.instance_group[0].name}` : null,
        meta.precision ? `${meta.precision} arithmetic` : null,
    ]
        .filter(Boolean)
        .join(" · ");
    return [
        element("p", {class: "soft crumbs"}, element("a", {href: "#/"}, "Models"), " / ", about),
        element("div", {class: "head"}, element("h1", {}, nameOf(row)), facts(row, signal)),
        meta.description ? element("p", {class: "lead"}, meta.description) : null,
        ...tabs(pagesFor(meta.name, row, meta, signature, signal), tab, (key) => {
            history.replaceState(null, "", `${pageOf(name)}/${key}`);
        }),
    ].filter(Boolean);
}
