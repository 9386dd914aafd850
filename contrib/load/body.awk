# SPDX-License-Identifier: MIT
#
# Reads a model's metadata (GET /v2/models/NAME) and prints an inference request for it, with each
# input filled with a fixed pattern. Works in every POSIX awk.
#
# -v shapes='input_0=1x3x224x224 input_1=8' gives shapes of inputs. Any other input has its only
# shape, or its example_shape, which is then printed on standard error. Optional inputs are left
# out.

BEGIN {
    count = split(shapes, list, " ")
    for (i = 1; i <= count; i++) {
        at = index(list[i], "=")
        dims_text = substr(list[i], at + 1)
        if (at < 2 || (dims_text != "" && dims_text !~ /^[0-9]+(x[0-9]+)*$/)) {
            fail("shape '" list[i] "': expected NAME=2x3x4")
        }
        wanted[substr(list[i], 1, at - 1)] = dims_text
    }
}

function fail(text) {
    print "body.awk: " text > "/dev/stderr"
    failed = 1
    exit 64
}

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

# The dims of the input that has been read, as 1x3x224x224.
function choose_shape(name) {
    if (name in wanted) {
        used[name] = 1
        return wanted[name]
    }
    if (example != "") {
        printf "%s: shape %s, the server's example (--shape sets another)\n", name, example \
            > "/dev/stderr"
        return example
    }
    if (shape ~ /-/) {
        fail("the server has no example_shape for " name ": give one")
    }
    return shape
}

function print_input(  count, i, name, rank, dims) {
    name = field["\"name\""]
    name = substr(name, 2, length(name) - 2)
    shape = choose_shape(name)
    rank = split(shape, dims, "x")
    count = 1
    for (i = 1; i <= rank; i++) {
        count *= dims[i]
    }
    gsub(/x/, ",", shape)
    printf "%s{\"name\":%s,\"shape\":[%s],\"datatype\":%s,\"data\":[", inputs++ ? "," : "",
        field["\"name\""], shape, field["\"datatype\""]
    for (i = 0; i < count; i++) {
        printf "%s%s", i ? "," : "", element(field["\"datatype\""], i)
    }
    printf "]}"
}

{ text = text $0 "\n" }

# An input is an object at depth 3 under "inputs"; its shapes are the arrays of numbers inside it.
END {
    if (failed) {
        exit 64
    }
    printf "{\"inputs\":["
    while (advance()) {
        if (token == "{" || token == "[") {
            depth++
            if (depth == 3) {
                shape = example = ""
                is_optional = 0
            }
        } else if (token == "}" || token == "]") {
            if (depth == 3 && key[1] == "\"inputs\"" && !is_optional) {
                print_input()
            }
            depth--
        } else if (token == ":") {
            key[depth] = last
        } else if (depth == 3 && last == ":") {
            field[key[3]] = token
            is_optional = is_optional || (key[3] == "\"optional\"" && token == "true")
        } else if (depth == 4 && key[3] == "\"shape\"" && token != ",") {
            shape = shape (shape == "" ? "" : "x") token
        } else if (depth == 4 && key[3] == "\"example_shape\"" && token != ",") {
            example = example (example == "" ? "" : "x") token
        }
        last = token
    }
    print "]}"
    for (name in wanted) {
        if (!(name in used)) {
            fail("the model has no input " name)
        }
    }
    exit !inputs
}
