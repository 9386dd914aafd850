// SPDX-License-Identifier: MIT
// The chats of a browser: {id, revision, title, model, messages}, the newest first. They stay in
// its storage and go to the daemon only as the messages of a request. Other tabs write there as
// well: a revision counts how often a chat was written.

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

// Where there is no room the oldest chats go. What another tab has written into |chat| since it was
// read stays as it is, and |chat| becomes one beside it. A chat that is marked as dropped stays
// away. False: there is no room for this chat alone.
export function keepChat(chat) {
    if (chat.isDropped) {
        return true;
    }
    const kept = read(KEY, []);
    const other = kept.find(({id}) => id === chat.id);
    if (other && other.revision !== chat.revision) {
        chat.id = newId();
    }
    const revision = (chat.revision || 0) + 1;
    const rest = kept.filter(({id}) => id !== chat.id);
    const all = [{...chat, revision}, ...rest].slice(0, CHATS_MAX);
    let isKept;
    while (!(isKept = write(KEY, all)) && all.length > 1) {
        all.pop();
    }
    chat.revision = isKept ? revision : chat.revision;
    return isKept;
}

// Calls |listener| when another tab has written chats, until |signal|.
export function onChats(listener, signal) {
    const hear = ({key}) => {
        if (key === KEY || key === null) {
            listener();
        }
    };
    window.addEventListener("storage", hear, {signal});
}

export function dropChat(id) {
    write(
        KEY,
        read(KEY, []).filter((chat) => chat.id !== id),
    );
}

function newId() {
    return crypto.randomUUID?.() || String(Math.random());
}

export function newChat(model) {
    return {id: newId(), revision: 0, model, title: "", messages: []};
}

export function readSettings(model) {
    return read(SETTINGS, {})[model] || {};
}

export function keepSettings(model, settings) {
    write(SETTINGS, {...read(SETTINGS, {}), [model]: settings});
}
