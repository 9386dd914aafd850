// SPDX-License-Identifier: MIT
// The list of models, and the page of one model.

import {ask, bytesText, element, json, modelPath, shapeText, showError, timeText}
    from "/console/api.js";
import {showChat} from "/console/chat.js";
import {showForm} from "/console/form.js";
import {showGraph} from "/console/graph.js";

const LOOK_MS = 2000;

// Calls |look| now and every two seconds until |signal|; a look that fails is tried again.
function repeat(look, signal) {
    const again = async () => {
        if (signal.aborted) {
            return;
        }
        if (!document.hidden) {
            await look().catch(() => {});
        }
        setTimeout(again, LOOK_MS);
    };
    again();
}

// Rates and latencies of a model between two looks at its statistics.
function difference(now, before, ms) {
    const success = now.inference_stats.success;
    const old = before ? before.inference_stats.success : {count: 0, ns: 0};
    const count = success.count - old.count;
    return {
        rate: before && ms > 0 ? count * 1000 / ms : 0,
        ns: count > 0 ? (success.ns - old.ns) / count
            : success.count > 0 ? success.ns / success.count : 0,
        count: success.count,
        failed: now.inference_stats.fail.count,
    };
}

// ---- the list -----------------------------------------------------------------------------------

function changeButtons(row, reload) {
    const change = async (event, what) => {
        event.target.disabled = true;
        try {
            await ask(`/v2/repository/models/${encodeURIComponent(row.name)}/${what}`, {});
            reload();
        } catch (error) {
            event.target.closest("td").append(showError(error));
        }
        event.target.disabled = false;
    };
    const button = (text, what) => element("button", {
        type: "button", "aria-label": `${text} ${row.name}`, onclick: (event) => change(event, what),
    }, text);
    return element("span", {class: "buttons"}, row.state === "READY"
        ? [button("Reload", "load"), button("Unload", "unload")] : [button("Load", "load")]);
}

function modelRow(row, cells, reload) {
    const isReady = row.state === "READY";
    cells.set(`${row.name} ${row.version}`, {
        rate: element("td", {class: "number"}, "–"),
        time: element("td", {class: "number"}, "–"),
        count: element("td", {class: "number"}, "–"),
        memory: element("td", {class: "number"}, "–"),
    });
    const own = cells.get(`${row.name} ${row.version}`);
    return element("tr", {},
        element("th", {scope: "row"}, isReady
            ? element("a", {href: `#/models/${encodeURIComponent(row.name)}`}, row.name) : row.name),
        element("td", {}, row.version),
        element("td", {},
            element("span", {class: isReady ? "ready" : row.state === "UNKNOWN" ? "soft" : "failed"},
                row.state.toLowerCase()),
            row.reason ? element("div", {class: "soft"}, row.reason) : null),
        own.rate, own.time, own.count, own.memory,
        element("td", {}, changeButtons(row, reload)));
}

// Methods that only give a value of their program, such as get_max_seq_len.
function constantList(rows) {
    return element("details", {},
        element("summary", {}, rows.length === 1 ? "1 constant" : `${rows.length} constants`),
        element("ul", {}, rows.map((row) => element("li", {},
            element("a", {href: `#/models/${encodeURIComponent(row.name)}`}, row.name)))));
}

export async function showModels(signal) {
    const rows = await json("/v2/repository/index", {}, {signal});
    const cells = new Map();
    const reload = () => window.dispatchEvent(new HashChangeEvent("hashchange"));
    const constants = rows.filter((row) => row.constant);
    const models = rows.filter((row) => !row.constant);
    const heads = ["Model", "Version", "State", "Calls/s", "Mean time", "Calls", "Running", ""];
    const table = element("table", {class: "models"},
        element("thead", {}, element("tr", {}, heads.map((text, i) =>
            element("th", {scope: "col", class: i > 2 && i < 7 ? "number" : null}, text)))),
        element("tbody", {}, models.map((row) => modelRow(row, cells, reload))));
    let before = new Map();
    let then = 0;
    repeat(async () => {
        const stats = (await json("/v2/models/stats", undefined, {signal})).model_stats;
        const now = performance.now();
        for (const stat of stats) {
            const key = `${stat.name} ${stat.version}`;
            const own = cells.get(key);
            if (own) {
                const seen = difference(stat, before.get(key), now - then);
                own.rate.textContent = seen.rate ? seen.rate.toFixed(1) : "0";
                own.time.textContent = timeText(seen.ns);
                own.count.textContent = seen.count.toLocaleString("en")
                    + (seen.failed ? ` (${seen.failed} failed)` : "");
                own.memory.textContent = stat.load ? `${stat.load.running} + ${stat.load.waiting}` : "–";
            }
        }
        before = new Map(stats.map((stat) => [`${stat.name} ${stat.version}`, stat]));
        then = now;
    }, signal);
    return [
        element("h2", {}, `${models.length} ${models.length === 1 ? "model" : "models"}`),
        element("p", {class: "soft"}, "Running: calls that compute, and calls that wait. Loading and "
            + "unloading needs a token of scope admin, or an address of --admin-listen."),
        element("div", {class: "table"}, table),
        constants.length ? constantList(constants) : "",
    ];
}

// ---- one model ----------------------------------------------------------------------------------

const mediaText = {image: "a picture", sound: "a sound", text: "a text"};

function tensorTable(caption, tensors) {
    return element("div", {class: "table"}, element("table", {class: "tensors"},
        element("caption", {class: "soft"}, caption),
        element("tbody", {}, tensors.map((tensor) => element("tr", {},
            element("th", {scope: "row"}, tensor.name),
            element("td", {}, shapeText(tensor)),
            element("td", {class: "soft"}, [tensor.description,
                tensor.media ? `made from ${mediaText[tensor.media]}` : null,
                tensor.label_count ? `${tensor.label_count} labels` : null]
                .filter(Boolean).join(", ")))))));
}

function factList(stats) {
    const facts = element("p", {class: "soft", role: "status"});
    return {
        node: facts,
        set(seen, stat) {
            const sizes = (stat.batch_stats || []).map((batch) => batch.batch_size);
            facts.textContent = [
                `${seen.rate.toFixed(1)} calls/s`, `mean ${timeText(seen.ns)}`,
                `${seen.count.toLocaleString("en")} calls`, seen.failed ? `${seen.failed} failed` : null,
                stat.load ? `${stat.load.running} running, ${stat.load.waiting} waiting` : null,
                stat.memory ? `${bytesText(stat.memory.held || 0)} held` : null,
                sizes.length > 1 ? `batches of up to ${Math.max(...sizes)}` : null,
            ].filter(Boolean).join(" · ");
        },
    };
}

// Tabs as the ARIA practices have them: arrows move, the page of a tab is made when it is opened.
function tabs(pages) {
    const panel = element("div", {role: "tabpanel", id: "panel", tabindex: "0"});
    const list = element("div", {class: "tabs", role: "tablist"});
    const made = new Map();
    const open = async (button, page) => {
        for (const other of list.children) {
            other.setAttribute("aria-selected", other === button);
            other.tabIndex = other === button ? 0 : -1;
        }
        panel.setAttribute("aria-labelledby", button.id);
        if (!made.has(page)) {
            const place = element("div", {}, element("p", {class: "soft"}, "Loading …"));
            made.set(page, place);
            page.make().then((nodes) => place.replaceChildren(...nodes),
                (error) => place.replaceChildren(showError(error)));
        }
        panel.replaceChildren(made.get(page));
    };
    const buttons = pages.map((page, i) => element("button", {
        type: "button", role: "tab", id: `tab-${i}`, "aria-controls": "panel",
        onclick: (event) => open(event.currentTarget, page),
        onkeydown: (event) => {
            const to = {ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: -1}[event.key];
            if (to !== undefined) {
                event.preventDefault();
                const next = buttons[(to + buttons.length) % buttons.length];
                next.focus();
                next.click();
            }
        },
    }, page.title));
    list.append(...buttons);
    open(buttons[0], pages[0]);
    return [list, panel];
}

export async function showModel(name, signal) {
    const meta = await json(modelPath(name), undefined, {signal});
    const signature = await json(modelPath(name, "/signature"), undefined, {signal});
    const config = await json(modelPath(name, "/config"), undefined, {signal});
    const facts = factList();
    let before = null;
    let then = 0;
    repeat(async () => {
        const stat = (await json(modelPath(name, "/stats"), undefined, {signal})).model_stats[0];
        const now = performance.now();
        facts.set(difference(stat, before, now - then), stat);
        before = stat;
        then = now;
    }, signal);
    const pages = [];
    if (signature.has_words) {
        pages.push({title: "Chat", make: async () => showChat(name)});
    }
    pages.push({title: "Call", make: async () => showForm(name, meta, signature)});
    pages.push({title: "Inputs and outputs", make: async () => [
        tensorTable("Inputs", meta.inputs), tensorTable("Outputs", meta.outputs),
        element("h3", {}, "Schema of call"),
        element("pre", {}, JSON.stringify(signature.schema, null, 2))]});
    pages.push({title: "Graph", make: async () => showGraph(name, meta)});
    return [
        element("h2", {}, name),
        meta.description ? element("p", {}, meta.description) : null,
        element("p", {class: "soft"}, [meta.platform, `versions ${meta.versions.join(", ")}`,
            config.instance_group?.[0] ? `device ${config.instance_group[0].name}` : null,
            meta.precision ? `precision ${meta.precision}` : null].filter(Boolean).join(" · ")),
        facts.node,
        ...tabs(pages),
    ].filter(Boolean);
}
