// SPDX-License-Identifier: MIT
// Markdown as language models write it: CommonMark's common part, and GitHub's tables and tasks.
// A model is not trusted: all of it becomes text in nodes made here. HTML stays text, pictures
// become links, and links lead to the web alone. The time is linear in the length of the text.

import {copyButton, element} from "/console/dom.js";
import {highlight} from "/console/highlight.js";

const DEPTH_MAX = 6; // of quotations, lists and emphasis in each other
const ADDRESS = /((?:[^()<>\s]|\([^()<>\s]{0,200}\)){1,2000})/.source;
const LINK = new RegExp(
    `\\[([^[\\]\\n]{1,500})\\]\\((<?)${ADDRESS}>?(?:\\s+"[^"\\n]{0,200}")?\\)`,
    "y",
);
const BARE = /https?:\/\/[^\s<>"'`]{1,2000}/y;
const ESCAPE = /\\([!-/:-@[-`{-~])/y;

// ---- inside of a line ---------------------------------------------------------------------------

function link(address, ...children) {
    return /^(https?:|mailto:)/i.test(address)
        ? element("a", {href: address, target: "_blank", rel: "noopener noreferrer"}, children)
        : element("span", {title: address}, children);
}

function matchAt(pattern, text, at) {
    pattern.lastIndex = at;
    return pattern.exec(text);
}

function isWord(text, at) {
    return at >= 0 && at < text.length && /[\p{L}\p{N}]/u.test(text[at]);
}

const MARKS = [
    ["**", "strong"],
    ["__", "strong"],
    ["~~", "del"],
    ["*", "em"],
    ["_", "em"],
];

// Where the mark that opens at |at| closes, or -1. |never| has marks that close nowhere behind.
function closing(text, mark, at, never) {
    const from = at + mark.length;
    if (
        never.has(mark) ||
        from >= text.length ||
        /\s/.test(text[from]) ||
        (mark[0] === "_" && isWord(text, at - 1))
    ) {
        return -1;
    }
    for (
        let end = text.indexOf(mark, from + 1), tries = 0;
        end >= 0 && tries < 20;
        end = text.indexOf(mark, end + 1), tries++
    ) {
        const isLonger = mark.length === 1 && (text[end + 1] === mark || text[end - 1] === mark);
        if (
            !isLonger &&
            !/\s/.test(text[end - 1]) &&
            !(mark[0] === "_" && isWord(text, end + mark.length))
        ) {
            return end;
        }
    }
    if (text.indexOf(mark, from) < 0) {
        never.add(mark);
    }
    return -1;
}

// A span of code: as many backticks at its end as at its start.
function codeAt(text, at, never) {
    const ticks = matchAt(/`+/y, text, at)[0];
    const from = at + ticks.length;
    for (
        let end = never.has(ticks) ? -1 : text.indexOf(ticks, from), tries = 0;
        end >= 0 && tries < 20;
        tries++
    ) {
        const run = matchAt(/`+/y, text, end)[0];
        if (run.length === ticks.length) {
            const inside = text.slice(from, end);
            return {
                end: end + run.length,
                node: element(
                    "code",
                    {},
                    /^ [^]* $/.test(inside) && /[^ ]/.test(inside) ? inside.slice(1, -1) : inside,
                ),
            };
        }
        end = text.indexOf(ticks, end + run.length);
    }
    never.add(ticks);
    return {end: from, node: ticks};
}

// What stands at |at|, if it is more than a character: {end, node}.
function spanAt(text, at, depth, never) {
    const c = text[at];
    if (c === "\\") {
        const found = matchAt(ESCAPE, text, at);
        return found && {end: at + 2, node: found[1]};
    }
    if (c === "`") {
        return codeAt(text, at, never);
    }
    if (c === "[" || (c === "!" && text[at + 1] === "[")) {
        const found = matchAt(LINK, text, c === "!" ? at + 1 : at);
        return found && {end: LINK.lastIndex, node: link(found[3], inline(found[1], depth + 1))};
    }
    if (c === "h" && !isWord(text, at - 1)) {
        const found = matchAt(BARE, text, at)?.[0].replace(/[.,;:!?)\]]+$/, "");
        return found && {end: at + found.length, node: link(found, found)};
    }
    const mark = "*_~".includes(c) && MARKS.find(([word]) => text.startsWith(word, at));
    const end = mark ? closing(text, mark[0], at, never) : -1;
    return end < 0
        ? null
        : {
              end: end + mark[0].length,
              node: element(mark[1], {}, inline(text.slice(at + mark[0].length, end), depth + 1)),
          };
}

// Nodes and texts of |text|; a line break stays one.
function inline(text, depth = 0) {
    const made = [];
    const never = new Set();
    let plain = "";
    const flush = () => {
        if (plain) {
            made.push(plain);
            plain = "";
        }
    };
    for (let at = 0; at < text.length;) {
        if (text[at] === "\n") {
            flush();
            made.push(element("br"));
            at++;
            continue;
        }
        const span = depth < DEPTH_MAX ? spanAt(text, at, depth, never) : null;
        if (span) {
            flush();
            made.push(span.node);
            at = span.end;
        } else {
            plain += text[at++];
        }
    }
    flush();
    return made;
}

// ---- blocks -------------------------------------------------------------------------------------

const FENCE = /^( {0,3})(`{3,}(?=[^`]*$)|~{3,})\s*([^\s`]*)/;
const HEADING = /^ {0,3}(#{1,6})\s+(\S.*)$/s;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/s;
const QUOTE = /^ {0,3}> ?/;
const TABLE = /^\s*\|?(?:\s*:?-+:?\s*\|)+\s*(?::?-+:?\s*)?$/;

export function codeBlock(text, language) {
    return element(
        "div",
        {class: "code"},
        language ? element("span", {class: "language"}, language) : null,
        element("pre", {tabindex: "0"}, element("code", {}, highlight(text, language))),
        copyButton(() => text),
    );
}

function cells(line) {
    return line
        .trim()
        .replace(/^\||(?<!\\)\|$/g, "")
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim().replaceAll("\\|", "|"));
}

function tableOf(head, marks, rows) {
    const sides = cells(marks).map((mark) =>
        /^:-+:$/.test(mark) ? "center" : /-:$/.test(mark) ? "right" : null,
    );
    const row = (line, tag) =>
        element(
            "tr",
            {},
            cells(line)
                .slice(0, sides.length)
                .map((cell, i) =>
                    element(
                        tag,
                        {class: sides[i], scope: tag === "th" ? "col" : null},
                        inline(cell),
                    ),
                ),
        );
    return element(
        "div",
        {class: "scroll", tabindex: "0", role: "region", "aria-label": "Table"},
        element(
            "table",
            {},
            element("thead", {}, row(head, "th")),
            element(
                "tbody",
                {},
                rows.map((line) => row(line, "td")),
            ),
        ),
    );
}

function listItem(lines, depth) {
    const task = /^\[([ xX])\]\s+/.exec(lines[0]);
    const text = task ? [lines[0].slice(task[0].length), ...lines.slice(1)] : lines;
    return element(
        "li",
        {class: task ? "task" : null},
        task
            ? element("input", {
                  type: "checkbox",
                  disabled: true,
                  checked: task[1] !== " ",
                  "aria-label": task[1] !== " " ? "done" : "to do",
              })
            : null,
        blocks(text.join("\n"), depth + 1)
            .map(({make}) => make())
            .flatMap((node) =>
                node.tagName === "P" && text.length === 1 ? [...node.childNodes] : [node],
            ),
    );
}

function listOf(items, depth) {
    const isOrdered = /\d/.test(items[0].mark);
    return element(
        isOrdered ? "ol" : "ul",
        isOrdered && parseInt(items[0].mark, 10) !== 1 ? {start: parseInt(items[0].mark, 10)} : {},
        items.map((item) => listItem(item.lines, depth)),
    );
}

// The lines of a list from |at|: its items, and the line behind it.
function readList(lines, at) {
    const items = [];
    const indent = ITEM.exec(lines[at])[1].length;
    const isOrdered = /\d/.test(ITEM.exec(lines[at])[2]);
    for (; at < lines.length; at++) {
        const line = lines[at];
        const found = ITEM.exec(line);
        const width = line.length - line.trimStart().length;
        if (found && found[1].length <= indent + 1) {
            if (/\d/.test(found[2]) !== isOrdered || found[1].length < indent || RULE.test(line)) {
                break;
            }
            items.push({mark: found[2], lines: [found[3]], width: line.length - found[3].length});
        } else if (line.trim() === "") {
            const next = lines[at + 1];
            const goesOn =
                next !== undefined &&
                (/^\s{2,}\S/.test(next) ||
                    (ITEM.test(next) &&
                        ITEM.exec(next)[1].length >= indent &&
                        /\d/.test(ITEM.exec(next)[2]) === isOrdered));
            if (!goesOn) {
                break;
            }
            items.at(-1).lines.push("");
        } else if (
            width > indent ||
            !(HEADING.test(line) || FENCE.test(line) || QUOTE.test(line))
        ) {
            items.at(-1).lines.push(line.slice(Math.min(width, items.at(-1).width)));
        } else {
            break;
        }
    }
    items.forEach((item) => {
        while (item.lines.length > 1 && item.lines.at(-1) === "") {
            item.lines.pop();
        }
    });
    return {items, at};
}

function readFence(lines, at) {
    const [, indent, fence, language] = FENCE.exec(lines[at]);
    const inside = [];
    for (at++; at < lines.length; at++) {
        const line = lines[at].trim();
        if (line.startsWith(fence) && /^(`+|~+)$/.test(line)) {
            at++;
            break;
        }
        inside.push(lines[at].startsWith(indent) ? lines[at].slice(indent.length) : lines[at]);
    }
    return {make: () => codeBlock(inside.join("\n"), language), at};
}

// Does a block begin at |at| that ends a paragraph?
function begins(lines, at) {
    return (
        FENCE.test(lines[at]) ||
        HEADING.test(lines[at]) ||
        RULE.test(lines[at]) ||
        QUOTE.test(lines[at]) ||
        ITEM.test(lines[at]) ||
        isTable(lines, at)
    );
}

function isTable(lines, at) {
    return (
        lines[at].includes("|") &&
        at + 1 < lines.length &&
        lines[at + 1].length < 2000 &&
        lines[at + 1].includes("-") &&
        TABLE.test(lines[at + 1])
    );
}

function readWhile(lines, at, test) {
    const from = at;
    while (at < lines.length && test(lines[at], at)) {
        at++;
    }
    return {taken: lines.slice(from, at), at};
}

function readBlock(lines, at, depth) {
    const line = lines[at];
    if (FENCE.test(line)) {
        return readFence(lines, at);
    }
    const heading = HEADING.exec(line);
    if (heading) {
        return {
            make: () =>
                element(`h${Math.min(6, heading[1].length + 1)}`, {}, inline(heading[2].trimEnd())),
            at: at + 1,
        };
    }
    if (RULE.test(line)) {
        return {make: () => element("hr"), at: at + 1};
    }
    if (QUOTE.test(line) && depth < DEPTH_MAX) {
        const quote = readWhile(lines, at, (item) => QUOTE.test(item));
        const inside = quote.taken.map((item) => item.replace(QUOTE, "")).join("\n");
        return {
            make: () =>
                element(
                    "blockquote",
                    {},
                    blocks(inside, depth + 1).map(({make}) => make()),
                ),
            at: quote.at,
        };
    }
    if (ITEM.test(line) && depth < DEPTH_MAX) {
        const list = readList(lines, at);
        return {make: () => listOf(list.items, depth), at: list.at};
    }
    if (isTable(lines, at)) {
        const rows = readWhile(lines, at + 2, (item) => item.includes("|") && item.trim() !== "");
        return {make: () => tableOf(line, lines[at + 1], rows.taken), at: rows.at};
    }
    const text = readWhile(
        lines,
        at,
        (item, i) => item.trim() !== "" && (i === at || !begins(lines, i)),
    );
    return {make: () => element("p", {}, inline(text.taken.join("\n").trim())), at: text.at};
}

// The blocks of |text|: {source, make}, where make() gives the node of one.
function blocks(text, depth = 0) {
    const lines = text.replace(/\r\n?/g, "\n").split("\n");
    const found = [];
    for (let at = 0; at < lines.length;) {
        if (lines[at].trim() === "") {
            at++;
            continue;
        }
        const block = readBlock(lines, at, depth);
        found.push({source: lines.slice(at, block.at).join("\n"), make: block.make});
        at = block.at;
    }
    return found;
}

// Shows |text| in |place|, and keeps the nodes of blocks that are as before: a stream adds to the
// last one, and what a reader has marked above it stays marked.
export function showMarkdown(place, text) {
    const fresh = blocks(text);
    const old = place.sources || [];
    let same = 0;
    while (same < old.length && same < fresh.length && old[same] === fresh[same].source) {
        same++;
    }
    while (place.childNodes.length > same) {
        place.lastChild.remove();
    }
    place.append(...fresh.slice(same).map(({make}) => make()));
    place.sources = fresh.map(({source}) => source);
}
