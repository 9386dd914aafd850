# SPDX-License-Identifier: MIT
#
# Reads a model's metadata (GET /v2/models/NAME) and prints an inference request for it: each input
# filled with a fixed pattern, a dimension of -1 taken as 1. Works in every POSIX awk.

# Cuts the next JSON token off |text|; false at the end.
function advance() {
    sub(/^[ \t\r\n]+/, "", text)
    if (!match(text, /^"([^"\\]|\\.)*"/) && !match(text, /^[-+.0-9a-zA-Z]+/) &&
        !match(text, /^[][{}:,]/)) {
        return 0
    }
    token = substr(text, 1, RLENGTH)
    text = substr(text, RLENGTH + 1)
    return 1
}

function element(type, i) {
    if (type == "\"BYTES\"") {
        return "\"text\""
    }
    if (type == "\"BOOL\"") {
        return i % 2 ? "true" : "false"
    }
    return type ~ /FP|BF/ ? (i % 17) / 16 - 0.5 : i % 5
}

function print_input(  count, i, shape) {
    count = 1
    for (i = 0; i < rank; i++) {
        count *= dims[i] < 0 ? 1 : dims[i]
        shape = shape (i ? "," : "") (dims[i] < 0 ? 1 : dims[i])
    }
    printf "%s{\"name\":%s,\"shape\":[%s],\"datatype\":%s,\"data\":[", inputs++ ? "," : "",
        field["\"name\""], shape, field["\"datatype\""]
    for (i = 0; i < count; i++) {
        printf "%s%s", i ? "," : "", element(field["\"datatype\""], i)
    }
    printf "]}"
}

{ text = text $0 "\n" }

# An input is an object at depth 3 under "inputs"; its shape is the array of numbers inside it.
END {
    printf "{\"inputs\":["
    while (advance()) {
        if (token == "{" || token == "[") {
            depth++
            if (depth == 3) {
                rank = 0
            }
        } else if (token == "}" || token == "]") {
            if (depth == 3 && key[1] == "\"inputs\"") {
                print_input()
            }
            depth--
        } else if (token == ":") {
            key[depth] = last
        } else if (depth == 3 && last == ":") {
            field[key[3]] = token
        } else if (depth == 4 && key[3] == "\"shape\"" && token != ",") {
            dims[rank++] = token
        }
        last = token
    }
    print "]}"
    exit !inputs
}
