// SPDX-License-Identifier: MIT
// Colours for code of any language: what is a comment, a text, a number or a word of the language
// in most of them.

import {element} from "/console/dom.js";

const WORDS = new Set(
    (
        "abstract and as async await bool boolean break case catch char class const continue " +
        "def default defer del delete do double elif else end enum except export extends " +
        "extern false final finally float fn for foreach from func function global go if impl " +
        "implements import in include int interface is lambda let long loop match mod module " +
        "mut namespace new nil none not null or package pass private protected pub public " +
        "raise return select self short signed sizeof static struct super switch template " +
        "then this throw throws trait true try type typedef typename undefined union unsafe " +
        "unsigned use using var virtual void volatile when where while with yield"
    ).split(" "),
);
const HASH =
    /^(bash|sh|shell|zsh|python|py|ruby|rb|perl|yaml|yml|toml|ini|make|makefile|dockerfile|r)$/i;
const TOKENS =
    "(?<text>\"(?:[^\"\\\\\\n]|\\\\.)*\"?|'(?:[^'\\\\\\n]|\\\\.)*'?|`(?:[^`\\\\]|\\\\.)*`?)" +
    "|(?<number>\\b\\d[\\w.]*)|(?<word>[A-Za-z_]\\w*)";
const C_LIKE = new RegExp(`(?<comment>//[^\\n]*|/\\*[^]*?(?:\\*/|$))|${TOKENS}`, "g");
const SCRIPT = new RegExp(`(?<comment>#[^\\n]*|"""[^]*?(?:"""|$))|${TOKENS}`, "g");
const LENGTH_MAX = 50000; // characters; longer code stays plain

// Nodes and texts of |code|.
export function highlight(code, language) {
    if (!language || code.length > LENGTH_MAX || /^(text|txt|plain|markdown|md)$/i.test(language)) {
        return [code];
    }
    const made = [];
    let at = 0;
    for (const found of code.matchAll(HASH.test(language) ? SCRIPT : C_LIKE)) {
        const {comment, text, number, word} = found.groups;
        const kind = comment
            ? "comment"
            : text
              ? "text"
              : number
                ? "number"
                : WORDS.has(word.toLowerCase())
                  ? "word"
                  : null;
        if (kind) {
            made.push(
                code.slice(at, found.index),
                element("span", {class: `code-${kind}`}, found[0]),
            );
            at = found.index + found[0].length;
        }
    }
    made.push(code.slice(at));
    return made;
}
