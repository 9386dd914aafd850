// SPDX-License-Identifier: MIT
// One message of a chat: a text of a person, an answer with its thoughts and calls of tools, or
// what a tool has answered.

import {copyButton, element, iconButton} from "/console/dom.js";
import {codeBlock, showMarkdown} from "/console/markdown.js";
import {figuresOf, partsOf} from "/console/turn.js";

function pretty(text) {
    try {
        return JSON.stringify(JSON.parse(text), null, 2);
    } catch {
        return text; // of a call that is cut
    }
}

function showCalls(calls, give) {
    const fields = calls.map((call) => [
        call.id,
        element("textarea", {
            rows: 2,
            spellcheck: "false",
            "aria-label": `Answer of ${call.function.name}`,
            placeholder: "what the tool answers",
        }),
    ]);
    const shown = calls.map((call, i) =>
        element(
            "div",
            {class: "tool"},
            element(
                "p",
                {},
                element("strong", {}, call.function.name),
                element("span", {class: "soft"}, " is called with"),
            ),
            codeBlock(pretty(call.function.arguments), "json"),
            give ? fields[i][1] : null,
        ),
    );
    const button = give
        ? element(
              "button",
              {type: "button", onclick: () => give(fields.map(([id, field]) => [id, field.value]))},
              "Give the answer",
          )
        : null;
    return [...shown, button];
}

function showUser(message, {edit}) {
    return element(
        "article",
        {class: "message user", "aria-label": "You"},
        element("div", {class: "said"}, message.content),
        edit ? element("div", {class: "buttons"}, iconButton("edit", "Edit", edit)) : null,
    );
}

function showTool(message) {
    return element(
        "article",
        {class: "message from-tool", "aria-label": "A tool"},
        element(
            "div",
            {class: "tool"},
            element("p", {class: "soft"}, "The tool answers"),
            codeBlock(pretty(message.content), "json"),
        ),
    );
}

// |actions|: retry, edit and give, where they are possible, and isComing while the stream lasts.
// {node, update}: update() shows what has been added to the message.
export function showMessage(message, actions = {}) {
    if (message.role !== "assistant") {
        return {
            node: message.role === "tool" ? showTool(message) : showUser(message, actions),
            update() {},
        };
    }
    const thought = element("div", {class: "thought"});
    const summary = element("summary", {}, "Thoughts");
    const thinking = element("details", {class: "thinking", hidden: true}, summary, thought);
    const said = element("div", {class: "said markdown"});
    const calls = element("div", {class: "calls"});
    const wait = actions.isComing
        ? element("span", {class: "wait", role: "img", "aria-label": "The answer is coming"})
        : null;
    const foot = actions.isComing
        ? wait
        : element(
              "div",
              {class: "foot"},
              copyButton(() => partsOf(message).said),
              actions.retry ? iconButton("retry", "Retry", actions.retry, "Retry") : null,
              element("span", {class: "soft figures"}, figuresOf(message)),
          );
    const update = () => {
        const parts = partsOf(message);
        thinking.hidden = !parts.thought;
        summary.textContent = parts.isThinking && actions.isComing ? "Thinking …" : "Thoughts";
        showMarkdown(thought, parts.thought);
        showMarkdown(said, parts.said);
        const made = message.tool_calls?.filter(Boolean) || [];
        if (made.length) {
            calls.replaceChildren(...showCalls(made, actions.give).filter(Boolean));
        }
    };
    update();
    return {
        node: element(
            "article",
            {class: "message assistant", "aria-label": "The model"},
            thinking,
            said,
            calls,
            foot,
        ),
        update,
    };
}
