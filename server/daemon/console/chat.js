// SPDX-License-Identifier: MIT
// A chat with a language model: the answer comes as server-sent events.

import {ask, element, showError} from "/console/api.js";
import {showCode} from "/console/code.js";

// The data of the events of |answer|, one after the other.
async function* events(answer) {
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
        const {value, done} = await reader.read();
        if (done) {
            return;
        }
        rest += value;
        let end;
        while ((end = rest.indexOf("\n\n")) >= 0) {
            const data = rest.slice(0, end).split("\n").filter((line) => line.startsWith("data:"))
                .map((line) => line.slice(5).trim()).join("\n");
            rest = rest.slice(end + 2);
            if (data && data !== "[DONE]") {
                yield JSON.parse(data);
            }
        }
    }
}

export function showChat(name) {
    const messages = [];
    let stop = null;
    const talk = element("div", {class: "talk", role: "log", "aria-live": "polite", "aria-label": "Chat"});
    const text = element("textarea", {"aria-label": "Message", rows: 2, placeholder: "Message"});
    const system = element("input", {type: "text", size: 30});
    const temperature = element("input", {type: "number", min: 0, max: 2, step: 0.1, value: 0.7});
    const limit = element("input", {type: "number", min: 1, step: 1, value: 200});
    const state = element("p", {class: "soft", role: "status"});
    const send = element("button", {class: "main", type: "submit"}, "Send");
    const halt = element("button", {type: "button", disabled: true, onclick: () => stop?.abort()}, "Stop");
    const code = element("div");

    function request() {
        const first = system.value ? [{role: "system", content: system.value}] : [];
        return {
            model: name, messages: [...first, ...messages], max_tokens: Number(limit.value) || 200,
            temperature: Number(temperature.value), stream: true,
            stream_options: {include_usage: true},
        };
    }

    async function answerTo(body) {
        const bubble = element("p", {class: "assistant"}, "");
        talk.append(bubble);
        const began = performance.now();
        let first = 0, usage = null, said = "";
        stop = new AbortController();
        const answer = await ask("/v1/chat/completions", body, {signal: stop.signal});
        try {
            for await (const event of events(answer)) {
                if (event.error) {
                    throw new Error(event.error.message);
                }
                const piece = event.choices?.[0]?.delta?.content;
                if (piece) {
                    first ||= performance.now();
                    said += piece;
                    bubble.textContent = said;
                }
                usage = event.usage || usage;
            }
        } catch (error) {
            if (error.name !== "AbortError") {
                throw error;
            }
        } finally {
            messages.push({role: "assistant", content: said});
        }
        const seconds = (performance.now() - first) / 1000;
        const tokens = usage ? usage.completion_tokens : 0;
        state.textContent = first ? [`first text after ${(first - began).toFixed(0)} ms`,
            usage ? `${usage.prompt_tokens} + ${tokens} tokens` : "stopped",
            tokens > 1 && seconds > 0 ? `${((tokens - 1) / seconds).toFixed(1)} tokens/s` : null]
            .filter(Boolean).join(" · ") : "an empty answer";
    }

    async function submit(event) {
        event.preventDefault();
        if (!text.value.trim() || stop) {
            return;
        }
        messages.push({role: "user", content: text.value});
        talk.append(element("p", {class: "user"}, text.value));
        text.value = "";
        send.disabled = true;
        halt.disabled = false;
        const body = request();
        code.replaceChildren(...showCode({path: "/v1/chat/completions", json: body}));
        try {
            await answerTo(body);
        } catch (error) {
            if (error.name !== "AbortError") {
                talk.append(showError(error));
            }
        }
        stop = null;
        send.disabled = false;
        halt.disabled = true;
        text.focus();
    }

    const form = element("form", {onsubmit: submit},
        text, element("div", {class: "buttons"}, send, halt,
            element("button", {type: "button", onclick: () => {
                stop?.abort();
                messages.length = 0;
                talk.replaceChildren();
                state.textContent = "";
            }}, "Begin again")),
        element("details", {}, element("summary", {}, "Settings"),
            element("label", {}, "System", system), element("label", {}, "Temperature", temperature),
            element("label", {}, "Tokens at most", limit)));
    text.addEventListener("keydown", (event) => {
        if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
            event.preventDefault();
            form.requestSubmit();
        }
    });
    return [talk, state, form, code];
}
