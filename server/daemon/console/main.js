// SPDX-License-Identifier: MIT
// Which page is shown: "#/" lists the models, "#/models/NAME/TAB" is one of them, "#/help" says
// where to read on.

import {json, keepToken, onDenied, token} from "/console/api.js";
import {element, showError} from "/console/dom.js";
import {showHelp} from "/console/help.js";
import {showHome} from "/console/home.js";
import {showModel} from "/console/model.js";

const main = document.getElementById("main");
const tokenButton = document.getElementById("token");
let leave = () => {}; // stops what the page that is shown does in the background
let shown = null; // "models/NAME"

function place() {
    return location.hash
        .replace(/^#\/?/, "")
        .split("/")
        .map((part) => {
            try {
                return decodeURIComponent(part);
            } catch {
                return part;
            }
        });
}

function pageOf([first, name, tab], signal) {
    return first === "models" && name
        ? showModel(name, tab, signal)
        : first === "help"
          ? showHelp()
          : showHome(signal);
}

async function show() {
    const parts = place();
    leave();
    const control = new AbortController();
    leave = () => control.abort();
    shown = parts.slice(0, 2).join("/");
    main.replaceChildren(element("p", {class: "soft"}, "Loading …"));
    try {
        const page = await pageOf(parts, control.signal);
        if (!control.signal.aborted) {
            document.title = parts[1] ? `${parts[1]} – pted` : "pted";
            main.replaceChildren(...page);
        }
    } catch (error) {
        if (!control.signal.aborted) {
            main.replaceChildren(
                element("h1", {}, "Not shown"),
                showError(error),
                element("p", {}, element("a", {href: "#/"}, "All models")),
            );
        }
    }
}

async function showServer() {
    const line = document.getElementById("server");
    try {
        const server = await json("/v2");
        line.textContent = `${server.version} at ${location.host}`;
    } catch {
        line.textContent = location.host;
    }
}

// ---- the token ----------------------------------------------------------------------------------

let wasAsked = false;

function askForToken() {
    const dialog = document.getElementById("token-dialog");
    const text = document.getElementById("token-text");
    if (dialog.open) {
        return;
    }
    text.value = token();
    dialog.addEventListener(
        "close",
        () => {
            const choice = dialog.returnValue;
            if (choice === "keep" || choice === "drop") {
                keepToken(choice === "keep" ? text.value.trim() : "");
                showServer();
                show();
            }
            text.value = "";
        },
        {once: true},
    );
    dialog.returnValue = "";
    dialog.showModal();
}

// The first request that lacks a token opens the dialog; later ones say what they lack.
onDenied(() => {
    tokenButton.hidden = false;
    if (!wasAsked) {
        wasAsked = true;
        askForToken();
    }
});
tokenButton.hidden = !token();
tokenButton.addEventListener("click", askForToken);

// ---- moving -------------------------------------------------------------------------------------

window.addEventListener("hashchange", () => {
    if (place().slice(0, 2).join("/") !== shown) {
        show().then(() => main.focus({preventScroll: true}));
        window.scrollTo(0, 0);
    }
});
window.addEventListener("reload", show);
showServer();
show();
