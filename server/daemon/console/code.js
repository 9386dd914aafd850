// SPDX-License-Identifier: MIT
// The very request that was made, for curl, Python and JavaScript.

import {token} from "/console/api.js";
import {copyButton, element} from "/console/dom.js";

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
        return flat
            ? `[${items.join(", ")}]`
            : `[\n${items.map((item) => deeper + item).join(",\n")}]`;
    }
    if (typeof value === "object") {
        return `{${Object.entries(value)
            .map(([key, item]) => `${JSON.stringify(key)}: ${python(item, deeper)}`)
            .join(`,\n${deeper}`)}}`;
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

// ---- forms of requests --------------------------------------------------------------------------

function quote(text) {
    return JSON.stringify(text).replace(
        /[\u2028\u2029]/g,
        (c) => `\\u${c.charCodeAt(0).toString(16)}`,
    );
}

// Each is {curl, python, script}: what follows the URL, or stands before the call.
function jsonTexts(body) {
    return {
        curl: `--json ${shell(JSON.stringify(body))}`,
        python: `json=${python(body)}`,
        type: "application/json",
        script: `JSON.stringify(${JSON.stringify(body, null, 4)})`,
    };
}

function aloneTexts({file, text}) {
    const type = file ? file.type || "application/octet-stream" : "text/plain";
    return {
        curl: `-H ${shell(`Content-Type: ${type}`)} ${
            file ? `--data-binary @${shell(file.name)}` : `--data-raw ${shell(text)}`
        }`,
        python: `data=${file ? `open(${quote(file.name)}, "rb")` : `${quote(text)}.encode()`}`,
        type,
        script: file ? "files[0]" : quote(text),
    };
}

function formTexts(parts) {
    const files = parts.filter((part) => part.file);
    const curlName = (name) => `"${name.replace(/["\\]/g, "\\$&")}"`;
    const value = (part) => part.text ?? JSON.stringify(part.json);
    return {
        curl: parts
            .map((part) =>
                part.file
                    ? `-F ${shell(`${part.name}=@${curlName(part.file.name)}`)}`
                    : `--form-string ${shell(`${part.name}=${value(part)}`)}`,
            )
            .join(" \\\n    "),
        python: `files=[\n${parts
            .map(
                (part) =>
                    `    (${quote(part.name)}, ${
                        part.file
                            ? `open(${quote(part.file.name)}, "rb")`
                            : `(None, ${quote(value(part))})`
                    })`,
            )
            .join(",\n")}]`,
        before: `const form = new FormData();\n${parts
            .map(
                (part) =>
                    `form.append(${quote(part.name)}, ${
                        part.file ? `files[${files.indexOf(part)}]` : quote(value(part))
                    });`,
            )
            .join("\n")}\n`,
        script: "form",
    };
}

function textsOf(request) {
    const cut = request.json ? shorten(request.json) : {isCut: false};
    const texts = request.json
        ? jsonTexts(cut.body)
        : request.alone
          ? aloneTexts(request.alone)
          : formTexts(request.parts);
    return {...texts, isCut: cut.isCut};
}

function curlOf(url, texts) {
    const access = token() ? ' -H "Authorization: Bearer $PTED_TOKEN"' : "";
    return `curl${access} ${texts.curl} \\\n    ${shell(url)}`;
}

function pythonOf(url, texts, type) {
    const headers = [
        type ? `"Content-Type": ${quote(type)}` : null,
        token() ? '"Authorization": f"Bearer {token}"' : null,
    ].filter(Boolean);
    const argument = headers.length ? `, headers={${headers.join(", ")}}` : "";
    return [
        "import requests\n",
        `answer = requests.post(${quote(url)}${argument}, ${texts.python})`,
        "print(answer.json())",
    ].join("\n");
}

// |names| of the files: the script takes them from the fields of a page.
function scriptOf(url, texts, names) {
    const headers = [
        texts.type ? `"Content-Type": ${quote(texts.type)}` : null,
        token() ? "Authorization: `Bearer ${token}`" : null,
    ].filter(Boolean);
    return [
        ...(names.length
            ? [
                  `// ${names.join(", ")}`,
                  'const files = [...document.querySelectorAll("input[type=file]")]',
                  "    .flatMap((input) => [...input.files]);",
              ]
            : []),
        `${texts.before || ""}const answer = await fetch(${quote(url)}, {`,
        '    method: "POST",',
        ...(headers.length ? [`    headers: {${headers.join(", ")}},`] : []),
        `    body: ${texts.script},`,
        "});",
        "console.log(await answer.json());",
    ].join("\n");
}

function write(request) {
    const texts = textsOf(request);
    const url = location.origin + request.path;
    const names = (request.parts || [request.alone || {}])
        .filter((part) => part.file)
        .map((part) => quote(part.file.name));
    return {
        isCut: texts.isCut,
        texts: {
            curl: curlOf(url, texts),
            Python: pythonOf(url, texts, request.alone ? texts.type : null),
            JavaScript: scriptOf(url, texts, names),
        },
    };
}

export function showCode(request) {
    const {isCut, texts} = write(request);
    const shown = element("pre", {tabindex: "0"}, texts.curl);
    const select = element(
        "select",
        {
            "aria-label": "Language",
            onchange: () => {
                shown.textContent = texts[select.value];
            },
        },
        Object.keys(texts).map((language) => element("option", {value: language}, language)),
    );
    return [
        element("h2", {}, "This request"),
        element(
            "div",
            {class: "buttons"},
            select,
            copyButton(() => shown.textContent),
        ),
        isCut
            ? element("p", {class: "soft"}, "Long lists are cut here to their first numbers.")
            : "",
        shown,
    ];
}
