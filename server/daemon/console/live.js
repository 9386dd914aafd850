// SPDX-License-Identifier: MIT
// What the daemon does now: its statistics, read every two seconds, as series for small plots.

import {ask, json} from "/console/api.js";
import {drawing} from "/console/dom.js";

const LOOK_MS = 2000;
const KEPT = 60; // looks: two minutes
const BUCKET = /^pted_model_request_duration_seconds_bucket\{.*le="([^"]+)"\} (\d+)$/gm;

const series = new Map(); // by the key of a model, or "": all of them
let last = null; // {at, stats by key, buckets}

export function keyOf({name, version}) {
    return `${name} ${version}`;
}

// {rate, ns, memory, p50, p99}: numbers a look each, the oldest first. Percentiles, in ns, are of all
// models.
export function seriesOf(key) {
    if (!series.has(key)) {
        series.set(key, {rate: [], ns: [], memory: [], p50: [], p99: []});
    }
    return series.get(key);
}

function add(list, value) {
    list.push(value);
    if (list.length > KEPT) {
        list.shift();
    }
}

// Calls since the look before, and their time.
function difference(now, before) {
    const count = now.count - (before?.count ?? now.count);
    return {count, ns: count > 0 ? now.ns - before.ns : 0};
}

function note(key, {count, ns}, ms, memory) {
    const own = seriesOf(key);
    add(own.rate, ms > 0 ? (count * 1000) / ms : 0);
    add(own.ns, count > 0 ? ns / count : (own.ns.at(-1) ?? 0));
    add(own.memory, memory);
}

// Calls of all models by their time: [bound in ns, calls up to it], ascending.
function bucketsOf(text) {
    const sums = new Map();
    for (const [, bound, count] of text.matchAll(BUCKET)) {
        const ns = bound === "+Inf" ? Infinity : Number(bound) * 1e9;
        sums.set(ns, (sums.get(ns) || 0) + Number(count));
    }
    return [...sums].sort(([a], [b]) => a - b);
}

// The time, in ns, below which |share| of the calls since the look before were, as far as buckets
// tell; 0: there were none, or a model has gone and its calls with it.
function percentile(share, now, before) {
    const earlier = new Map(before);
    const calls = now.map(([bound, count]) => [bound, count - (earlier.get(bound) || 0)]);
    const wanted = share * (calls.at(-1)?.[1] ?? 0);
    if (!(wanted > 0)) {
        return 0;
    }
    let [from, under] = [0, 0];
    for (const [bound, count] of calls) {
        if (count >= wanted) {
            const part = (wanted - under) / (count - under);
            return bound === Infinity ? from : from + (bound - from) * part;
        }
        [from, under] = [bound, count];
    }
    return from;
}

function notePercentiles(buckets) {
    const all = seriesOf("");
    for (const [name, share] of [
        ["p50", 0.5],
        ["p99", 0.99],
    ]) {
        const ns = last ? percentile(share, buckets, last.buckets) : 0;
        add(all[name], ns || (all[name].at(-1) ?? 0));
    }
}

function take(rows, {resident, buckets}) {
    const at = performance.now();
    const ms = last ? at - last.at : 0;
    const sum = {count: 0, ns: 0};
    const stats = new Map();
    for (const row of rows) {
        const key = keyOf(row);
        const success = row.inference_stats.success;
        const step = difference(success, last?.stats.get(key)?.inference_stats.success);
        stats.set(key, row);
        sum.count += step.count;
        sum.ns += step.ns;
        note(key, step, ms, row.memory.held);
    }
    note("", sum, ms, resident);
    notePercentiles(buckets);
    last = {at, stats, buckets};
    return stats;
}

// Memory of the daemon as the system counts it, and the times of calls.
async function metrics(signal) {
    const text = await (await ask("/metrics", undefined, {signal})).text();
    const resident = Number(/^process_resident_memory_bytes (\S+)$/m.exec(text)?.[1] || 0);
    return {resident, buckets: bucketsOf(text)};
}

// Calls |look| with the statistics by key, now and every two seconds until |signal|. A hidden page
// does not look; a look that fails is tried again, unless a token is missing.
export function watch(look, signal) {
    const again = async () => {
        if (signal.aborted) {
            return;
        }
        try {
            if (!document.hidden) {
                const [stats, values] = await Promise.all([
                    json("/v2/models/stats", undefined, {signal}),
                    metrics(signal),
                ]);
                if (!signal.aborted) {
                    look(take(stats.model_stats, values), stats.memory);
                }
            }
        } catch (error) {
            if (error.status === 401 || error.status === 403) {
                return;
            }
        }
        setTimeout(again, LOOK_MS);
    };
    again();
}

// A small plot whose right end is now. set(values, text): |text| says for readers what it shows.
export function spark(label) {
    const line = drawing("path", {class: "line"});
    const area = drawing("path", {class: "area"});
    const node = drawing(
        "svg",
        {
            class: "spark",
            viewBox: `0 0 ${KEPT - 1} 24`,
            role: "img",
            preserveAspectRatio: "none",
            "aria-label": label,
        },
        area,
        line,
    );
    return {
        node,
        set(values, text) {
            const most = Math.max(...values, 1e-9);
            const from = KEPT - values.length;
            const points = values.map(
                (value, i) => `${from + i},${(22.5 - (21 * value) / most).toFixed(2)}`,
            );
            const d = `M${points.join("L")}`;
            line.setAttribute("d", values.length > 1 ? d : "");
            area.setAttribute("d", values.length > 1 ? `${d}V24H${from}Z` : "");
            node.setAttribute("aria-label", `${label}: ${text}`);
        },
    };
}
