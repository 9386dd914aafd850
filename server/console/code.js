// SPDX-License-Identifier: MIT
// The very request that was made, for curl, Python and JavaScript.

import {element, token} from "/console/api.js";

const SHORT = 4000; // characters of a body that is shown whole

function shell(text) {
    return `'${text.replaceAll("'", "'\\''")}'`;
}

// Python writes what JSON writes, but for three words.
function python(value, indent = "") {
    const deeper = indent + "    ";
    if (value === null) {
        return "None";
    }
    if (typeof value === "boolean") {
        return value ? "True" : "False";
    }
    if (Array.isArray(value)) {
        const flat = value.every((item) => typeof item !== "object" || item === null);
        const items = value.map((item) => python(item, deeper));
        return flat ? `[${items.join(", ")}]`
            : `[\n${items.map((item) => deeper + item).join(",\n")}]`;
    }
    if (typeof value === "object") {
        return `{${Object.entries(value).map(([key, item]) =>
            `${JSON.stringify(key)}: ${python(item, deeper)}`).join(`,\n${deeper}`)}}`;
    }
    return JSON.stringify(value);
}

// A body whose long lists of numbers are cut, and whether any was.
function shorten(body) {
    let isCut = false;
    const cut = (value) => {
        if (Array.isArray(value)) {
            if (value.length > 64) {
                isCut = true;
                return value.slice(0, 8);
            }
            return value.map(cut);
        }
        if (value && typeof value === "object") {
            return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, cut(item)]));
        }
        return value;
    };
    const whole = JSON.stringify(body);
    return whole.length <= SHORT ? {body, isCut} : {body: cut(body), isCut: true};
}

export function showCode(path, wholeBody) {
    const {body, isCut} = shorten(wholeBody);
    const url = location.origin + path;
    const auth = token() ? {curl: ' -H "Authorization: Bearer $PTED_TOKEN"',
        python: ', headers={"Authorization": f"Bearer {token}"}',
        script: ', Authorization: `Bearer ${token}`'} : {curl: "", python: "", script: ""};
    const texts = {
        curl: `curl${auth.curl} --json ${shell(JSON.stringify(body))} \\\n    ${url}`,
        Python: `import requests\n\nanswer = requests.post("${url}"${auth.python}, json=${
            python(body)})\nprint(answer.json())`,
        JavaScript: `const answer = await fetch("${url}", {\n    method: "POST",\n    headers: {`
            + `"Content-Type": "application/json"${auth.script}},\n    body: JSON.stringify(${
                JSON.stringify(body, null, 4)}),\n});\nconsole.log(await answer.json());`,
    };
    const shown = element("pre", {tabindex: "0"}, texts.curl);
    const select = element("select", {"aria-label": "Language", onchange: () => {
        shown.textContent = texts[select.value];
    }}, Object.keys(texts).map((language) => element("option", {value: language}, language)));
    const copy = element("button", {type: "button", onclick: async () => {
        await navigator.clipboard.writeText(shown.textContent);
        copy.textContent = "Copied";
        setTimeout(() => { copy.textContent = "Copy"; }, 1500);
    }}, "Copy");
    return [element("h3", {}, "This request"),
        element("div", {class: "buttons"}, select, copy),
        isCut ? element("p", {class: "soft"}, "Long lists are cut here to their first numbers.") : "",
        shown];
}
