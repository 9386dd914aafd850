// SPDX-License-Identifier: MIT
// The page of a chat: the conversation, the box below it, and the chats of this browser beside it.

import {ask, events} from "/console/api.js";
import {showMessage} from "/console/chat_message.js";
import {dropChat, keepChat, listChats, newChat, onChats} from "/console/chats.js";
import {membersOf, settingsPanel} from "/console/chat_settings.js";
import {showCode} from "/console/code.js";
import {element, icon, iconButton, showError} from "/console/dom.js";
import {addEvent, messageFor, partsOf} from "/console/turn.js";

const PATH = "/v1/chat/completions";
const TITLE_MAX = 60;
const FILE_MAX = 200000; // bytes of a text that is put into the box
const NOT_KEPT = "This browser has no room for this chat: it is lost when the page is left.";

function requestOf(chat, settings) {
    const first = settings.system?.trim() ? [{role: "system", content: settings.system}] : [];
    return {
        model: chat.model,
        messages: [...first, ...chat.messages.map(messageFor)],
        ...membersOf(settings),
        stream: true,
        stream_options: {include_usage: true},
    };
}

// Asks, and adds the events to |message| until they end or |signal| stops them. |onChange| is
// called once a frame.
async function streamInto(message, body, signal, onChange) {
    const times = {begin: performance.now(), first: 0, end: 0};
    let frame = 0;
    const change = () => {
        frame ||= requestAnimationFrame(() => {
            frame = 0;
            onChange();
        });
    };
    try {
        for await (const event of events(await ask(PATH, body, {signal}))) {
            if (addEvent(message, event)) {
                times.first ||= performance.now();
                change();
            }
        }
    } catch (error) {
        if (error.name !== "AbortError") {
            throw error;
        }
        message.finish = "stopped";
    } finally {
        cancelAnimationFrame(frame);
        times.end = performance.now();
        message.times = times;
    }
}

function hasCome(message) {
    return Boolean(message.content || message.tool_calls || message.reasoning_content);
}

// The page lasts until |signal|: then an answer that comes is stopped.
export function showChat(model, signal) {
    let chat = listChats(model)[0] || newChat(model);
    let stop = null; // of the answer that comes
    const {node: settingsNode, settings} = settingsPanel(model);
    const talk = element("div", {class: "talk"});
    const news = element("p", {class: "hidden", role: "status"});
    const notKept = element("div");
    const list = element("ul", {class: "chats"});
    const code = element(
        "details",
        {class: "request"},
        element("summary", {}, "The last request as code"),
    );

    // ---- what is shown --------------------------------------------------------------------------

    // What was said, and why there is no answer to the messages before |at|.
    function showTalk(failure = null, at = chat.messages.length) {
        const last = chat.messages.length - 1;
        talk.replaceChildren(
            ...chat.messages.map(
                (message, i) =>
                    showMessage(message, {
                        retry: i === last && message.role === "assistant" ? () => answer(i) : null,
                        edit: message.role === "user" ? () => edit(i) : null,
                        give: i === last ? give : null,
                    }).node,
            ),
        );
        if (chat.messages.length === 0) {
            talk.append(element("p", {class: "soft empty"}, `Ask ${model} something.`));
        }
        if (failure) {
            talk.append(showError(failure));
        }
        if (!stop && (failure || (last >= 0 && chat.messages[last].role !== "assistant"))) {
            talk.append(iconButton("retry", "Try again", () => answer(at), "Try again"));
        }
    }

    function showList() {
        list.replaceChildren(
            ...listChats(model).map((item) =>
                element(
                    "li",
                    {},
                    element(
                        "button",
                        {
                            type: "button",
                            class: "quiet",
                            "aria-current": item.id === chat.id ? "true" : null,
                            onclick: () => item.id !== chat.id && open(item),
                        },
                        item.title || "A chat",
                    ),
                    iconButton("remove", `Delete ${item.title || "this chat"}`, () => {
                        dropChat(item.id);
                        if (item.id === chat.id) {
                            leaveDropped();
                        } else {
                            showList();
                        }
                    }),
                ),
            ),
        );
    }

    function open(item) {
        stop?.abort();
        stop = null;
        setBusy(false);
        notKept.replaceChildren();
        chat = item;
        showTalk();
        showList();
        text.focus();
    }

    function leaveDropped() {
        chat.isDropped = true;
        open(listChats(model)[0] || newChat(model));
    }

    // What another tab has written is shown, but not in the place of an answer that comes.
    function follow() {
        const kept = listChats(model).find(({id}) => id === chat.id);
        if (!kept && chat.revision) {
            leaveDropped();
        } else if (kept && !stop && kept.revision !== chat.revision) {
            chat = kept;
            showTalk();
        }
        showList();
    }

    function keep(own) {
        const isKept = keepChat(own);
        if (own === chat) {
            notKept.replaceChildren(...(isKept ? [] : [showError(new Error(NOT_KEPT))]));
        }
        showList();
    }

    // ---- what is said ---------------------------------------------------------------------------

    // An answer to the messages before |at|, in place of those from there on. They come back if it
    // fails, or if it is left before it ends.
    async function answer(at = chat.messages.length) {
        if (stop) {
            return;
        }
        const own = chat;
        const old = own.messages.splice(at);
        const message = {role: "assistant", content: ""};
        const control = new AbortController();
        stop = control;
        showTalk();
        setBusy(true);
        const shown = showMessage(message, {isComing: true});
        talk.append(shown.node);
        shown.node.scrollIntoView({block: "nearest"});
        let failure = null;
        try {
            const body = requestOf(own, settings);
            code.replaceChildren(code.firstChild, ...showCode({path: PATH, json: body}));
            await streamInto(message, body, control.signal, () => {
                const isAtEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - 80;
                shown.update();
                if (isAtEnd) {
                    scrollTo(0, document.documentElement.scrollHeight);
                }
            });
        } catch (error) {
            failure = error;
        }
        const isLeft = own !== chat || signal.aborted;
        const isPart = failure || message.finish === "stopped";
        const isTaken = isPart ? hasCome(message) && !(old.length && (failure || isLeft)) : true;
        own.messages.push(...(isTaken ? [message] : old));
        if (!isLeft) {
            stop = null;
            setBusy(false);
            news.textContent = isTaken
                ? `The answer: ${partsOf(message).said || "a call of a tool"}`
                : "";
            showTalk(failure, at);
        }
        keep(own);
    }

    function say(content) {
        chat.messages.push({role: "user", content});
        chat.title ||= content.trim().split("\n")[0].slice(0, TITLE_MAX);
        keep(chat);
        answer();
    }

    // The message comes back into the box, to be said in another way.
    function edit(at) {
        if (stop) {
            return;
        }
        text.value = chat.messages[at].content;
        chat.messages.length = at;
        showTalk();
        fit();
        text.focus();
    }

    // What a tool has answered: the model goes on once all of its calls have that.
    function give(results) {
        chat.messages.push(
            ...results.map(([id, content]) => ({role: "tool", tool_call_id: id, content})),
        );
        keep(chat);
        answer();
    }

    // ---- the box --------------------------------------------------------------------------------

    const text = element("textarea", {
        rows: 1,
        "aria-label": "Message",
        placeholder: "Message",
        oninput: () => fit(),
        onkeydown: (event) => {
            if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
                event.preventDefault();
                box.requestSubmit();
            }
        },
    });
    const send = element(
        "button",
        {class: "main round", type: "submit", "aria-label": "Send"},
        icon("send"),
    );
    const gear = iconButton(
        "settings",
        "Settings",
        () => {
            settingsNode.hidden = !settingsNode.hidden;
            gear.setAttribute("aria-expanded", !settingsNode.hidden);
        },
        null,
        {"aria-expanded": "false", "aria-controls": "chat-settings"},
    );
    const box = element(
        "form",
        {
            class: "box",
            onsubmit: (event) => {
                event.preventDefault();
                if (stop) {
                    stop.abort();
                } else if (text.value.trim()) {
                    const said = text.value;
                    text.value = "";
                    fit();
                    say(said);
                }
            },
        },
        text,
        element("div", {class: "buttons"}, gear, send),
    );

    function fit() {
        text.style.height = "auto";
        text.style.height = `${Math.min(text.scrollHeight + 2, 240)}px`;
    }

    function setBusy(isBusy) {
        send.replaceChildren(icon(isBusy ? "stop" : "send"));
        send.setAttribute("aria-label", isBusy ? "Stop" : "Send");
        talk.setAttribute("aria-busy", isBusy);
    }

    // A text that is dropped on the page goes into the box.
    async function drop(event) {
        event.preventDefault();
        for (const file of event.dataTransfer.files) {
            if (file.size <= FILE_MAX && /^text\/|json|xml|^$/.test(file.type)) {
                text.value += `${text.value ? "\n\n" : ""}${file.name}:\n\n${await file.text()}`;
            } else {
                talk.append(
                    showError(
                        new Error(
                            `${file.name}: a chat takes texts of up to ${FILE_MAX / 1000} kB`,
                        ),
                    ),
                );
            }
        }
        fit();
    }

    showTalk();
    showList();
    onChats(follow, signal);
    signal.addEventListener("abort", () => stop?.abort());
    const chats = element(
        "details",
        {class: "side", open: innerWidth > 960},
        element("summary", {}, "Chats"),
        iconButton("add", "New chat", () => open(newChat(model)), "New chat"),
        list,
    );
    return [
        element(
            "div",
            {class: "chat", ondragover: (event) => event.preventDefault(), ondrop: drop},
            chats,
            element(
                "div",
                {class: "talk-side"},
                talk,
                news,
                notKept,
                code,
                element(
                    "div",
                    {class: "dock"},
                    settingsNode,
                    box,
                    element(
                        "p",
                        {class: "soft hint"},
                        "Enter sends, Shift+Enter begins a line. A model can be wrong.",
                    ),
                ),
            ),
        ),
    ];
}
