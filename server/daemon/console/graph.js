// SPDX-License-Identifier: MIT
// What a model has been compiled to: a node on each line, in the order in which they run, with
// lines for the tensors between them; and the time of each node, from a call that is profiled.

import {ask, json, modelPath} from "/console/api.js";
import {drawing, element, showError} from "/console/dom.js";
import {timeText} from "/console/text.js";

const ROW = 22,
    LANE = 14,
    TEXT = 8,
    BAR = 160;

// The lane of each node. A tensor keeps its lane from its producer to its last reader.
function layOut(nodes) {
    const lastUse = new Map();
    nodes.forEach((node, row) =>
        node.inputs.forEach((input) => {
            lastUse.set(`${node.block}.${input.value}`, row);
        }),
    );
    const lanes = []; // by lane: the row until which it is taken
    const places = new Map(); // of values: the row and lane of their producer
    const edges = [];
    const rows = nodes.map((node, row) => {
        const ends = node.outputs.map(
            (output) => lastUse.get(`${node.block}.${output.value}`) ?? row,
        );
        const end = Math.max(row, ...ends);
        for (const input of node.inputs) {
            const from = places.get(`${node.block}.${input.value}`);
            if (from) {
                edges.push({from, row, type: input.type});
            }
        }
        let lane = lanes.findIndex((until) => until <= row);
        lane = lane < 0 ? lanes.length : lane;
        lanes[lane] = end;
        node.outputs.forEach((output) => places.set(`${node.block}.${output.value}`, {row, lane}));
        return lane;
    });
    edges.forEach((edge) => {
        edge.lane = rows[edge.row];
    });
    return {rows, edges, width: lanes.length};
}

function describe(node) {
    const weights = node.inputs
        .filter((input) => input.constant)
        .map((input) => input.name || input.type);
    return [
        node.operator,
        node.layer,
        node.source,
        `from ${
            node.inputs
                .filter((input) => !input.constant)
                .map((input) => input.name || input.type)
                .join(", ") || "nothing"
        }`,
        weights.length ? `weights ${weights.join(", ")}` : null,
        `to ${node.outputs.map((output) => output.name || output.type).join(", ") || "nothing"}`,
    ]
        .filter(Boolean)
        .join("\n");
}

function draw(nodes, times) {
    const {rows, edges, width} = layOut(nodes);
    const left = (width + 1) * LANE;
    const x = (lane) => LANE * (lane + 0.75);
    const y = (row) => ROW * (row + 0.6);
    const most = Math.max(1, ...times.values());
    const total = [...times.values()].reduce((a, b) => a + b, 0);
    const barLeft = left + 560;
    const paths = edges.map(({from, row, lane, type}) => {
        const x0 = x(from.lane),
            x1 = x(lane),
            y0 = y(from.row),
            y1 = y(row);
        const d = x0 === x1 ? `M${x0},${y0}V${y1}` : `M${x0},${y0}V${y1 - ROW / 2}L${x1},${y1}`;
        return drawing("path", {d}, drawing("title", {}, type || ""));
    });
    const lines = nodes.map((node, row) => {
        const out = node.outputs[0];
        const ns = times.get(`${node.block}.${node.node}`);
        return drawing(
            "g",
            {},
            drawing("title", {}, describe(node)),
            drawing("circle", {cx: x(rows[row]), cy: y(row), r: 4}),
            drawing("text", {x: left + TEXT, y: y(row) + 4}, node.operator),
            drawing(
                "text",
                {x: left + 130, y: y(row) + 4, class: "soft"},
                (node.layer || node.source || (out && out.name) || "").slice(0, 28),
            ),
            drawing(
                "text",
                {x: left + 340, y: y(row) + 4, class: "soft"},
                ((out && out.type) || "").slice(0, 26),
            ),
            ns
                ? drawing("rect", {
                      x: barLeft + 60,
                      y: y(row) - 7,
                      height: 14,
                      width: (BAR * ns) / most,
                  })
                : null,
            ns
                ? drawing(
                      "text",
                      {x: barLeft + 64, y: y(row) + 4},
                      `${timeText(ns)} ${total ? `${((100 * ns) / total).toFixed(0)} %` : ""}`,
                  )
                : null,
        );
    });
    return drawing(
        "svg",
        {
            width: barLeft + 60 + BAR + 80,
            height: ROW * (nodes.length + 1),
            role: "img",
            "aria-label": `${nodes.length} nodes`,
        },
        paths,
        lines,
    );
}

// Nanoseconds by "block.node", of one call with zeros.
async function profile(name, meta) {
    const inputs = meta.inputs.map((tensor) => {
        const shape = (tensor.example_shape || tensor.shape).map((dim) => (dim < 0 ? 1 : dim));
        const size = shape.reduce((a, b) => a * b, 1);
        const zero = tensor.datatype === "BOOL" ? false : tensor.datatype === "BYTES" ? "" : 0;
        return {
            name: tensor.name,
            shape,
            datatype: tensor.datatype,
            data: new Array(size).fill(zero),
        };
    });
    const body = {inputs};
    await ask(modelPath(name, "/infer"), body); // plans, and warms the caches
    const answer = await json(modelPath(name, "/infer?profile=1"), body);
    return new Map(
        answer.profile.layers
            .filter((layer) => layer.node !== undefined)
            .map((layer) => [`${layer.block}.${layer.node}`, layer.busy_us * 1000]),
    );
}

export async function showGraph(name, meta) {
    const graph = await json(modelPath(name, "/graph"));
    const place = element("div", {class: "graph", tabindex: "0", "aria-label": "Graph"});
    const state = element("div", {role: "status"});
    const isPipeline = graph.kind === "pipeline";
    const measure = element(
        "button",
        {
            type: "button",
            onclick: async () => {
                measure.disabled = true;
                try {
                    place.replaceChildren(draw(graph.nodes, await profile(name, meta)));
                    state.replaceChildren();
                } catch (error) {
                    state.replaceChildren(showError(error));
                }
                measure.disabled = false;
            },
        },
        "Measure a call",
    );
    place.append(draw(graph.nodes, new Map()));
    return [
        element(
            "p",
            {class: "soft"},
            isPipeline
                ? "The steps of the pipeline, and what they give each other."
                : "What runs, in this order, after fusing and packing. Point at a line for more.",
        ),
        isPipeline ? "" : element("div", {class: "buttons"}, measure),
        state,
        place,
        element(
            "details",
            {},
            element("summary", {}, "As a list"),
            element(
                "ol",
                {},
                graph.nodes.map((node) => element("li", {}, describe(node).replaceAll("\n", "; "))),
            ),
        ),
    ];
}
