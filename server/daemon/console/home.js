// SPDX-License-Identifier: MIT
// The start page: what is served, by kind, and what it does now.

import {ask, json} from "/console/api.js";
import {element, iconButton, showError} from "/console/dom.js";
import {keyOf, seriesOf, spark, watch} from "/console/live.js";
import {bytesText, countText, rateText, timeText} from "/console/text.js";

const FILTER_FROM = 12; // models

const KINDS = [
    // kinds of the index, and what people call them
    {title: "Chat", kinds: ["language"]},
    {title: "Pictures", kinds: ["image"]},
    {title: "Speech and sound", kinds: ["speech", "sound"]},
    {title: "Embeddings and texts", kinds: ["embedding", "ranking", "text"]},
    {title: "Tensors", kinds: ["tensors"]},
    {title: "Not loaded", kinds: ["none"]},
];

const UNLOADED = "unloaded"; // the reason of a model that was taken out of service

// What is not loaded may not have told yet what it is for.
function kindOf(row) {
    return row.kind || (row.state === "READY" ? "tensors" : "none");
}

// The name by which people call a model.
export function nameOf(row) {
    return row.id || row.name;
}

export function pageOf(name) {
    return `#/models/${encodeURIComponent(name)}`;
}

// ---- the daemon ---------------------------------------------------------------------------------

function tile(title, label) {
    const value = element("strong", {}, "–");
    const plot = spark(label);
    return {
        node: element(
            "div",
            {class: "tile"},
            element("span", {class: "soft"}, title),
            value,
            plot.node,
        ),
        set(values, text) {
            value.textContent = text;
            plot.set(values, text);
        },
    };
}

function tiles() {
    const rate = tile("Calls/s", "calls a second, two minutes");
    const p50 = tile("Time, p50", "time that half of the calls take at most, two minutes");
    const p99 = tile("Time, p99", "time that 99 % of the calls take at most, two minutes");
    const memory = tile("Memory", "memory of the daemon, two minutes");
    return {
        node: element("div", {class: "tiles"}, rate.node, p50.node, p99.node, memory.node),
        update() {
            const all = seriesOf("");
            rate.set(all.rate, rateText(all.rate.at(-1)));
            p50.set(all.p50, timeText(all.p50.at(-1)));
            p99.set(all.p99, timeText(all.p99.at(-1)));
            memory.set(all.memory, bytesText(all.memory.at(-1)));
        },
    };
}

// ---- a model ------------------------------------------------------------------------------------

// What an administrator can do with a model.
function changes(row, reload) {
    const place = element("span", {class: "buttons"});
    const change = (name, title, what) =>
        iconButton(name, `${title} ${row.name}`, async (event) => {
            event.currentTarget.disabled = true;
            try {
                await ask(`/v2/repository/models/${encodeURIComponent(row.name)}/${what}`, {});
                reload();
            } catch (error) {
                place.append(showError(error));
            }
        });
    place.append(
        ...(row.state === "READY"
            ? [change("retry", "Load again", "load"), change("remove", "Unload", "unload")]
            : [change("play", "Load", "load")]),
    );
    return place;
}

function stateOf(row) {
    const words = {
        READY: "ready",
        LOADING: "loading",
        UNKNOWN: "not loaded",
        UNAVAILABLE: "failed",
    };
    const state = row.reason === UNLOADED ? "UNKNOWN" : row.state;
    const mark = {READY: "ready", UNAVAILABLE: "failed"}[state] || "away";
    return element("span", {class: `state ${mark}`}, words[state] || state.toLowerCase());
}

function modelRow(row, isMany, isAdmin, reload) {
    const cells = {
        count: element("td", {class: "number"}, "–"),
        ns: element("td", {class: "number"}, "–"),
        memory: element("td", {class: "number"}, "–"),
        rate: element("span", {}, "–"),
    };
    const plot = spark(`calls a second of ${nameOf(row)}`);
    const name = nameOf(row);
    const node = element(
        "tr",
        {},
        element(
            "th",
            {scope: "row"},
            row.state === "READY" ? element("a", {href: pageOf(row.name)}, name) : name,
            isMany ? element("span", {class: "soft"}, ` version ${row.version}`) : null,
            row.reason && row.reason !== UNLOADED
                ? element("div", {class: "soft reason"}, row.reason)
                : null,
        ),
        element("td", {}, stateOf(row)),
        element("td", {class: "rate"}, plot.node, cells.rate),
        cells.ns,
        cells.count,
        cells.memory,
        isAdmin ? element("td", {}, changes(row, reload)) : null,
    );
    return {
        node,
        row,
        update(stats) {
            const stat = stats.get(keyOf(row));
            if (!stat) {
                return;
            }
            const own = seriesOf(keyOf(row));
            const success = stat.inference_stats.success;
            plot.set(own.rate, rateText(own.rate.at(-1)));
            cells.rate.textContent = rateText(own.rate.at(-1));
            cells.ns.textContent = timeText(own.ns.at(-1) || success.ns / success.count);
            cells.count.textContent = countText(success.count);
            cells.memory.textContent = bytesText(
                stat.weights.own + stat.weights.shared + stat.memory.held,
            );
        },
    };
}

function table(title, rows, isAdmin) {
    const heads = ["Model", "State", "Calls/s", "Mean time", "Calls", "Memory"];
    return element(
        "table",
        {class: "models"},
        element("caption", {class: "hidden"}, title),
        element(
            "thead",
            {},
            element(
                "tr",
                {},
                heads.map((text, i) =>
                    element("th", {scope: "col", class: i > 2 ? "number" : null}, text),
                ),
                isAdmin
                    ? element("th", {scope: "col"}, element("span", {class: "hidden"}, "Changes"))
                    : null,
            ),
        ),
        element(
            "tbody",
            {},
            rows.map((row) => row.node),
        ),
    );
}

function section(title, rows, isAdmin) {
    return element(
        "section",
        {class: "kind"},
        element("h2", {}, title, " ", element("span", {class: "soft"}, rows.length)),
        table(title, rows, isAdmin),
    );
}

// Methods that only give a value of their program, such as get_max_seq_len.
function constantList(rows) {
    return rows.length === 0
        ? null
        : element(
              "details",
              {},
              element(
                  "summary",
                  {},
                  rows.length === 1 ? "1 constant" : `${rows.length} constants`,
                  " of programs",
              ),
              element(
                  "ul",
                  {class: "constants"},
                  rows.map((row) =>
                      element("li", {}, element("a", {href: pageOf(row.name)}, row.name)),
                  ),
              ),
          );
}

// ---- the page -----------------------------------------------------------------------------------

function filterField(rows, sections) {
    const search = element("input", {
        type: "search",
        placeholder: "Find a model",
        "aria-label": "Find a model",
        oninput: () => {
            const wanted = search.value.trim().toLowerCase();
            rows.forEach(({node, row}) => {
                node.hidden = !nameOf(row).toLowerCase().includes(wanted);
            });
            sections.forEach((part) => {
                part.hidden = !part.querySelector("tbody tr:not([hidden])");
            });
        },
    });
    return rows.length >= FILTER_FROM ? search : null;
}

export async function showHome(signal) {
    const [index, server] = await Promise.all([
        json("/v2/repository/index", {}, {signal}),
        json("/v2", undefined, {signal}),
    ]);
    const isAdmin = server.scopes.includes("admin");
    const reload = () => window.dispatchEvent(new Event("reload"));
    const models = index.filter((row) => !row.constant);
    const times = new Map();
    models.forEach((row) => times.set(row.name, (times.get(row.name) || 0) + 1));
    const rows = models.map((row) => modelRow(row, times.get(row.name) > 1, isAdmin, reload));
    const sections = KINDS.map(({title, kinds}) => ({
        title,
        rows: rows.filter(({row}) => kinds.includes(kindOf(row))),
    }))
        .filter((part) => part.rows.length > 0)
        .map((part) => section(part.title, part.rows, isAdmin));
    const top = tiles();
    watch((stats) => {
        top.update();
        rows.forEach((row) => row.update(stats));
    }, signal);
    return [
        element(
            "div",
            {class: "head"},
            element("h1", {}, models.length === 1 ? "1 model" : `${models.length} models`),
            filterField(rows, sections),
        ),
        top.node,
        models.length
            ? null
            : element(
                  "p",
                  {class: "note"},
                  "No model is served yet. ",
                  element("code", {}, "pted model.pte"),
                  " serves one.",
              ),
        ...sections,
        constantList(index.filter((row) => row.constant)),
    ].filter(Boolean);
}
