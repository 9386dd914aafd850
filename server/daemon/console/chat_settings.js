// SPDX-License-Identifier: MIT
// What a chat asks for beside its messages. A field that is empty asks for nothing: the model's own
// value counts.

import {element, field} from "/console/dom.js";
import {keepSettings, readSettings} from "/console/chats.js";

const NUMBERS = [
    ["temperature", "Temperature", {min: 0, max: 2, step: 0.1}],
    ["top_p", "Top p", {min: 0.01, max: 1, step: 0.01}],
    ["max_tokens", "Tokens at most", {min: 1, step: 1}],
    ["seed", "Seed", {min: 0, step: 1}],
];

const TEXTS = [
    ["schema", "JSON Schema of the answer", '{"type": "object", …}'],
    ["tools", "Tools", '[{"type": "function", "function": {"name": …, "parameters": …}}]'],
];

function parse(text, name, wants) {
    let value;
    try {
        value = JSON.parse(text);
    } catch (error) {
        throw new Error(`${name}: this is no JSON: ${error.message}`);
    }
    if (wants === "list" ? !Array.isArray(value) : value === null || typeof value !== "object") {
        throw new Error(`${name}: expected ${wants === "list" ? "a list" : "an object"}`);
    }
    return value;
}

// The members of a request that the settings give. Throws an Error where one is no JSON.
export function membersOf(settings) {
    const members = {};
    for (const [key] of NUMBERS) {
        if (settings[key] !== undefined && settings[key] !== "") {
            members[key] = Number(settings[key]);
        }
    }
    if (settings.schema?.trim()) {
        members.response_format = {
            type: "json_schema",
            json_schema: {name: "answer", schema: parse(settings.schema, TEXTS[0][1], "object")},
        };
    }
    if (settings.tools?.trim()) {
        members.tools = parse(settings.tools, TEXTS[1][1], "list");
    }
    if (settings.thinking) {
        members.reasoning_effort = settings.thinking;
    }
    return members;
}

export function settingsPanel(model) {
    const settings = readSettings(model);
    const keep = (key) => (event) => {
        settings[key] = event.target.value;
        keepSettings(model, settings);
    };
    const area = (key, placeholder) =>
        element(
            "textarea",
            {rows: 3, spellcheck: "false", placeholder, name: key, oninput: keep(key)},
            settings[key] || "",
        );
    const thinking = element(
        "select",
        {name: "thinking", onchange: keep("thinking")},
        ["", "none", "low", "medium", "high"].map((value) =>
            element(
                "option",
                {value, selected: (settings.thinking || "") === value},
                value || "model's own",
            ),
        ),
    );
    const node = element(
        "div",
        {class: "settings", id: "chat-settings", hidden: true},
        field("System prompt", area("system", "You are …")),
        element(
            "div",
            {class: "fields"},
            NUMBERS.map(([key, name, bounds]) =>
                field(
                    name,
                    element("input", {
                        type: "number",
                        name: key,
                        placeholder: "model's own",
                        value: settings[key] ?? "",
                        oninput: keep(key),
                        ...bounds,
                    }),
                ),
            ),
            field("Thinking", thinking),
        ),
        element(
            "div",
            {class: "fields wide"},
            TEXTS.map(([key, name, hint]) => field(name, area(key, hint))),
        ),
    );
    return {node, settings};
}
