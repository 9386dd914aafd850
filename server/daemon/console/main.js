// SPDX-License-Identifier: MIT
// Which page is shown: "#/" lists the models, "#/models/NAME" is one of them.

import {element, json, keepToken, showError, token} from "/console/api.js";
import {showModel, showModels} from "/console/models.js";

const main = document.getElementById("main");
let leave = null; // stops what the page that is shown does in the background

async function show() {
    const parts = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
    if (leave) {
        leave();
        leave = null;
    }
    main.replaceChildren(element("p", {class: "soft"}, "Loading …"));
    const control = new AbortController();
    leave = () => control.abort();
    try {
        const name = parts[0] === "models" ? parts[1] : null;
        const page = name ? await showModel(name, control.signal) : await showModels(control.signal);
        if (!control.signal.aborted) {
            document.title = name ? `${name} – pted` : "pted";
            main.replaceChildren(...page);
        }
    } catch (error) {
        if (!control.signal.aborted) {
            main.replaceChildren(showError(error));
        }
    }
}

async function showServer() {
    const line = document.getElementById("server");
    try {
        const server = await json("/v2");
        line.textContent = `${server.name} ${server.version} at ${location.host}`;
    } catch (error) {
        line.textContent = error.message;
    }
}

function askForToken() {
    const dialog = document.getElementById("token-dialog");
    const text = document.getElementById("token-text");
    text.value = token();
    dialog.addEventListener("close", () => {
        if (dialog.returnValue === "keep") {
            keepToken(text.value.trim());
        } else if (dialog.returnValue === "drop") {
            keepToken("");
        }
        text.value = "";
        showServer();
        show();
    }, {once: true});
    dialog.returnValue = "";
    dialog.showModal();
}

document.getElementById("token").addEventListener("click", askForToken);
window.addEventListener("hashchange", () => {
    show().then(() => main.focus({preventScroll: true}));
    window.scrollTo(0, 0);
});
showServer();
show();
