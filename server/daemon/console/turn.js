// SPDX-License-Identifier: MIT
// An answer of a language model, from the events of its stream to a message and back to a request.

const SHORT_S = 0.05; // an answer that comes in one piece; then the prompt's time counts, too

// What a template has the model think before it answers. Where the daemon does not tell it apart,
// an answer begins with "<think>"; a tag further on is one that the model writes about.
export function partsOf(message) {
    const content = message.content || "";
    const thought = message.reasoning_content || message.reasoning || "";
    const begin = /^\s*<think>/.exec(content);
    if (thought || !begin) {
        return {thought: thought.trim(), said: content, isThinking: Boolean(thought) && !content};
    }
    const from = begin[0].length;
    const end = content.indexOf("</think>", from);
    return {
        thought: content.slice(from, end < 0 ? content.length : end).trim(),
        said: end < 0 ? "" : content.slice(end + "</think>".length).trimStart(),
        isThinking: end < 0,
    };
}

function addCalls(calls, pieces) {
    for (const piece of pieces) {
        const at = piece.index ?? calls.length;
        calls[at] ||= {id: "", type: "function", function: {name: "", arguments: ""}};
        calls[at].id ||= piece.id || "";
        calls[at].function.name += piece.function?.name || "";
        calls[at].function.arguments += piece.function?.arguments || "";
    }
}

// Adds an event to the message. True: there is something to show.
export function addEvent(message, event) {
    const choice = event.choices?.[0];
    const delta = choice?.delta || {};
    message.usage = event.usage || message.usage;
    message.finish = choice?.finish_reason || message.finish;
    message.content += delta.content || "";
    const thought = delta.reasoning_content || delta.reasoning;
    if (thought) {
        message.reasoning_content = (message.reasoning_content || "") + thought;
    }
    if (delta.tool_calls) {
        addCalls((message.tool_calls ||= []), delta.tool_calls);
    }
    return Boolean(delta.content || thought || delta.tool_calls);
}

// The message as a request has it: thoughts of earlier turns stay here.
export function messageFor(message) {
    if (message.role === "tool") {
        return {role: "tool", tool_call_id: message.tool_call_id, content: message.content};
    }
    if (message.role !== "assistant") {
        return {role: message.role, content: message.content};
    }
    const calls = message.tool_calls?.filter(Boolean);
    return {
        role: "assistant",
        content: partsOf(message).said,
        ...(calls?.length ? {tool_calls: calls} : {}),
    };
}

// "12 tokens · 48.1 tokens/s · first after 20 ms"
export function figuresOf({usage, times, finish}) {
    if (!times) {
        return "";
    }
    const tokens = usage?.completion_tokens || 0;
    const seconds = (times.end - times.first) / 1000;
    const rate =
        seconds > SHORT_S ? (tokens - 1) / seconds : (tokens * 1000) / (times.end - times.begin);
    return [
        usage ? `${usage.prompt_tokens} + ${tokens} tokens` : null,
        tokens > 1 ? `${rate.toFixed(rate < 100 ? 1 : 0)} tokens/s` : null,
        times.first ? `first after ${(times.first - times.begin).toFixed(0)} ms` : null,
        finish === "length" ? "cut at the limit of tokens" : null,
        finish === "stopped" ? "stopped" : null,
    ]
        .filter(Boolean)
        .join(" · ");
}
