// SPDX-License-Identifier: MIT
// The chats of a browser: {id, title, model, messages}, the newest first. They stay in its storage
// and go to the daemon only as the messages of a request.

const KEY = "pted-chats";
const SETTINGS = "pted-settings";
const CHATS_MAX = 60;

function read(key, otherwise) {
    try {
        return JSON.parse(localStorage.getItem(key)) ?? otherwise;
    } catch {
        return otherwise;
    }
}

// False: the browser keeps nothing, or has no room for it.
function write(key, value) {
    try {
        localStorage.setItem(key, JSON.stringify(value));
        return true;
    } catch {
        return false;
    }
}

export function listChats(model) {
    return read(KEY, []).filter((chat) => chat.model === model);
}

// Where there is no room the oldest chats go.
export function keepChat(chat) {
    const rest = read(KEY, []).filter(({id}) => id !== chat.id);
    const all = [chat, ...rest].slice(0, CHATS_MAX);
    while (!write(KEY, all) && all.length > 1) {
        all.pop();
    }
}

export function dropChat(id) {
    write(
        KEY,
        read(KEY, []).filter((chat) => chat.id !== id),
    );
}

export function newChat(model) {
    return {id: crypto.randomUUID?.() || String(Math.random()), model, title: "", messages: []};
}

export function readSettings(model) {
    return read(SETTINGS, {})[model] || {};
}

export function keepSettings(model, settings) {
    write(SETTINGS, {...read(SETTINGS, {}), [model]: settings});
}
