// SPDX-License-Identifier: MIT
// Requests to the daemon that has sent this page.

const TOKEN_KEY = "pted-token";
let whenDenied = () => {}; // gets the error of a request that lacked a token

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

export function onDenied(listener) {
    whenDenied = listener;
}

// The answer of a request, not read yet. Throws an Error with the daemon's own text. |body|: a
// value that is sent as JSON, or a Blob or FormData as it is.
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
        throw error.name === "AbortError" ? error : new Error("The daemon does not answer.");
    }
    if (!answer.ok) {
        const error = Object.assign(new Error(await reason(answer)), {status: answer.status});
        if (answer.status === 401) {
            whenDenied(error);
        }
        throw error;
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

// The data of the server-sent events of |answer|, one after the other. Throws what the daemon says
// has ended them.
export async function* events(answer) {
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
            const data = rest
                .slice(0, end)
                .split("\n")
                .filter((line) => line.startsWith("data:"))
                .map((line) => line.slice(5).trim())
                .join("\n");
            rest = rest.slice(end + 2);
            if (data && data !== "[DONE]") {
                const event = JSON.parse(data);
                if (event.error) {
                    throw new Error(event.error.message || event.error);
                }
                yield event;
            }
        }
    }
}
