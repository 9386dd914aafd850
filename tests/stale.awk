# SPDX-License-Identifier: MIT
#
# Finds names in comments of C that are no longer in the tree: functions as name() or NAME(), names
# of several words as in two_words, and files as folder/name.c. Prints FILE:LINE: and what is stale.
#
#     awk -f tests/stale.awk - pass=words WORDS... pass=code C... pass=comments C... <PATHS
#
# PATHS are those of all files of the tree, one a line. A name exists if it is a word of code or of
# a string there, or a file's name without its ending; the words of WORDS, which are files of other
# languages, all count. Not looked at: what a comment quotes, patterns such as read_NAME(), pages of
# manuals such as sd_notify(3), names with the prefix of a library, and all of a comment that says
# of which foreign project it speaks.

BEGIN {
    pass = "paths"
    library = "^(uv|SSL|EVP|curl|vk|png|jpeg|pthread)_|^(openssl|vulkan|sys|linux)/"
    foreign = "ExecuTorch|PyTorch|torchao|libuv|cJSON|OpenSSL|Triton|KServe|Inference Protocol|" \
        "HuggingFace|Hugging Face|transformers|sentencepiece|SentencePiece|Jinja|GPT-2|systemd|" \
        "Ultralytics|libedit|sysexits|hashlib|C23|Python|C[+][+]|optimum"
}

pass == "paths" {
    path = $0
    sub(/^\.\//, "", path)
    is_path[path] = 1
    sub(/.*\//, "", path)
    is_name[path] = 1
    sub(/\..*/, "", path)
    is_word[path] = 1
    next
}

function note_words(text, count, word, i) {
    gsub(/[^A-Za-z0-9_]+/, " ", text)
    count = split(text, word, " ")
    for (i = 1; i <= count; i++)
        is_word[word[i]] = 1
}

pass == "words" { note_words($0); next }

FNR == 1 { is_comment = 0; lines = 0 }

# Cuts a line into code and comment; calls of end() are where a comment ends.
{
    rest = $0
    code = ""
    if (is_comment)
        said[++lines] = ""
    while (rest != "") {
        if (is_comment) {
            at = index(rest, "*/")
            said[lines] = said[lines] (at ? substr(rest, 1, at - 1) : rest)
            rest = at ? substr(rest, at + 2) : ""
            if (at) {
                is_comment = 0
                if (pass == "comments")
                    end()
                lines = 0
            }
        } else if (match(rest, /"([^"\\]|\\.)*"|'([^'\\]|\\.)+'|\/\*|\/\//)) {
            mark = substr(rest, RSTART, RLENGTH)
            code = code " " substr(rest, 1, RSTART - 1)
            rest = substr(rest, RSTART + RLENGTH)
            if (mark == "/*" || mark == "//") {
                is_comment = mark == "/*"
                first = FNR
                lines = 1
                said[1] = is_comment ? "" : rest
                if (!is_comment) {
                    rest = ""
                    if (pass == "comments")
                        end()
                    lines = 0
                }
            } else {
                code = code " " mark
            }
        } else {
            code = code " " rest
            rest = ""
        }
    }
    if (pass == "code" && code != "")
        note_words(code)
}

function stale(line, name) { print FILENAME ":" line ": stale in a comment: " name }

function check_word(line, name, is_function) {
    if (name in is_word || name ~ library || (name ~ /[A-Z]/ && name ~ /[a-z]/))
        return
    if (is_function || name ~ /^[a-z][a-z0-9]*(_[a-z0-9]+)+$/)
        stale(line, name (is_function ? "()" : ""))
}

function check_path(line, path, folder) {
    folder = FILENAME
    sub(/[^\/]*$/, "", folder)
    if (!(path in is_path) && path !~ library && !((folder path) in is_path) && path !~ /NAME/ &&
        (path ~ /\// || !(path in is_name)))
        stale(line, path)
}

# A comment of |lines| lines is over.
function end(i, all, text, name) {
    all = ""
    for (i = 1; i <= lines; i++)
        all = all said[i] "\n"
    if (all ~ foreign)
        return
    while (match(all, /"[^"]*"/)) {
        name = substr(all, RSTART, RLENGTH)
        gsub(/[^\n]/, "", name)
        all = substr(all, 1, RSTART - 1) " " name substr(all, RSTART + RLENGTH)
    }
    lines = split(all, said, "\n")
    for (i = 1; i < lines; i++) {
        text = said[i]
        while (match(text, /[A-Za-z0-9_][A-Za-z0-9_.\/-]*(\(\))?/)) {
            name = substr(text, RSTART, RLENGTH)
            text = substr(text, RSTART + RLENGTH)
            if (text ~ /^\([1-8]\)/)
                continue
            sub(/[.\/-]+$/, "", name)
            if (name ~ /\.(c|h|def|glsl|comp|mk|py|sh)$/)
                check_path(first + i - 1, name)
            else if (name ~ /^[A-Za-z_][A-Za-z0-9_]*\(\)$/)
                check_word(first + i - 1, substr(name, 1, length(name) - 2), 1)
            else if (name ~ /^[a-z0-9_]+$/)
                check_word(first + i - 1, name, 0)
        }
    }
}
