// SPDX-License-Identifier: MIT
// Requests to the daemon that has sent this page, and small helpers for elements.

const TOKEN_KEY = "pted-token";

export function token() {
    return sessionStorage.getItem(TOKEN_KEY) || "";
}

export function keepToken(text) {
    if (text) {
        sessionStorage.setItem(TOKEN_KEY, text);
    } else {
        sessionStorage.removeItem(TOKEN_KEY);
    }
}

// The answer of a request, not read yet. Throws an Error with the daemon's own text. |body|: a value
// that is sent as JSON, or a Blob or FormData as it is.
export async function ask(path, body, options = {}) {
    const headers = {};
    if (token()) {
        headers.Authorization = `Bearer ${token()}`;
    }
    const isWhole = body instanceof Blob || body instanceof FormData;
    if (body !== undefined && !isWhole) {
        headers["Content-Type"] = "application/json";
    }
    let answer;
    try {
        answer = await fetch(path, {
            method: body === undefined ? "GET" : "POST",
            headers,
            body: body === undefined || isWhole ? body : JSON.stringify(body),
            ...options,
        });
    } catch (error) {
        if (error.name === "AbortError") {
            throw error;
        }
        throw new Error("the daemon does not answer");
    }
    if (!answer.ok) {
        throw Object.assign(new Error(await reason(answer)), {status: answer.status});
    }
    return answer;
}

async function reason(answer) {
    const text = await answer.text();
    try {
        const error = JSON.parse(text).error;
        return typeof error === "string" ? error : error.message;
    } catch {
        return `${answer.status} ${answer.statusText}`;
    }
}

export async function json(path, body, options) {
    return (await ask(path, body, options)).json();
}

export function modelPath(name, rest = "") {
    return `/v2/models/${encodeURIComponent(name)}${rest}`;
}

// An element with attributes, listeners ("onclick") and children; texts are never HTML.
export function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    return fill(made, attributes, children);
}

export function drawing(tag, attributes = {}, ...children) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    return fill(made, attributes, children);
}

function fill(made, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
        if (name.startsWith("on")) {
            made.addEventListener(name.slice(2), value);
        } else if (value === true) {
            made.setAttribute(name, "");
        } else if (value !== false && value !== null && value !== undefined) {
            made.setAttribute(name, value);
        }
    }
    made.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return made;
}

export function showError(error) {
    const hint = error.status === 401 ? " Give one with the button 'Token'." : "";
    return element("p", {class: "error", role: "alert"}, error.message + hint);
}

export function bytesText(bytes) {
    const units = ["B", "KiB", "MiB", "GiB"];
    let unit = 0;
    while (bytes >= 1024 && unit < units.length - 1) {
        bytes /= 1024;
        unit++;
    }
    return `${bytes >= 100 || unit === 0 ? Math.round(bytes) : bytes.toFixed(1)} ${units[unit]}`;
}

export function timeText(ns) {
    if (!(ns > 0)) {
        return "–";
    }
    return ns < 1e6 ? `${(ns / 1e3).toFixed(0)} µs`
        : ns < 1e9 ? `${(ns / 1e6).toFixed(ns < 1e7 ? 2 : 1)} ms`
        : `${(ns / 1e9).toFixed(2)} s`;
}

export function shapeText(tensor) {
    const size = (dim, i) => dim >= 0 ? dim : tensor.max_shape ? `≤${tensor.max_shape[i]}` : "?";
    return `${tensor.datatype}[${(tensor.shape || []).map(size).join(",")}]`;
}
