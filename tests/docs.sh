#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Checks that the documents match the tree. Each `name()` and each `struct name` in them exists in
# C. Each path in backquotes exists, and each file in .c, .h, .def, .mk or .glsl. Each link
# leads to a file and a heading. Each page of docs/ opens with an example, and is in the archive of
# `make dist`. Each route is in serving.md of docs/reference/, each metric in metrics.md there. Each
# option is in docs/ with its default, and in the manuals. Each resource is in limits.md, with a
# metric and a test that exist. ARCHITECTURE.md lists the passes in their order. The version of
# configure.ac is the newest one of CHANGELOG.md and of debian/changelog. No line but rows of tables
# has more than 100 columns. Functions, names of several words and files that a comment of C names
# exist, too, and pages of docs/. No message names such a page.

set -u
: "${top_builddir:=.}"
top_builddir=$(cd "$top_builddir" && pwd) || exit 1
cd "${top_srcdir:-$(dirname "$0")/..}" || exit 1
LC_ALL=C.UTF-8
export LC_ALL

PTED=${PTED:-$top_builddir/pted}
PTE=${PTE:-$top_builddir/pte}
HELP=$("$PTED" --help) && PTE_HELP=$("$PTE" --help) || exit 1
DOCUMENTS="README.md ARCHITECTURE.md HACKING.md CHANGELOG.md CONTRIBUTING.md SECURITY.md
    docs/README.md $(echo docs/*/*.md docs/*/*/*.md)"
MANUAL=contrib/man/pted.8
SERVING=docs/reference/serving.md
METRICS=docs/reference/metrics.md
LIMITS=docs/reference/limits.md
OPTIONS=docs/reference/command-line.md
SOURCES='base protocol hal runtime lib server tests docs/examples'
report=$(mktemp) && rows=$(mktemp) && names=$(mktemp) || exit 1
trap 'rm -f "$report" "$rows" "$names"' EXIT

# mentioned REGEX: prints FILE:LINE:TEXT for each match in the documents, outside of code fences.
mentioned() {
    for document in $DOCUMENTS; do
        awk '/^```/ { is_code = !is_code } { print is_code ? "" : $0 }' "$document" |
            grep -noE "$1" | sed "s|^|$document:|"
    done
}

# sources PATTERN...: the files of code whose names match; no name in the tree holds a blank.
sources() {
    for pattern; do
        # shellcheck disable=SC2086 # a list of words
        find $SOURCES contrib m4 -type f -name "$pattern" ! -path '*/__pycache__/*'
    done
}

# headings FILE: prints its headings in the spelling of links.
headings() {
    sed -n 's/^##* //p' "$1" | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}

# code REGEX: prints each match in C and GLSL.
code() {
    # shellcheck disable=SC2086 # a list of words
    grep -rhoE --include='*.[ch]' --include='*.def' --include='*.glsl' "$1" $SOURCES
}

# expect WHAT NAMES: reads lines FILE:LINE:NAME. Reports those whose name is not in the file NAMES.
expect() {
    awk -F: -v what="$1" 'FNR == NR { is_known[$0]; next }
        !($3 in is_known) { print $1 ":" $2 ": there is no " what " " $3 }' "$2" -
}

{
    # Functions, macros and prototypes begin at the left margin; methods of Python are not C's.
    {
        code '^[a-zA-Z_].*[ *][a-z][a-z0-9_]*\(' | grep -oE '[ *][a-z][a-z0-9_]*\('
        code '^# *define [a-z][a-z0-9_]*\('
    } | sed -E 's/.*[ *]//; s/\(//' >"$names"
    mentioned '\.?\b[a-z][a-z0-9_]*\(\)' | grep -v ':\.' | sed 's/()$//' |
        expect function "$names"
    code '^ *struct [a-z][a-z0-9_]* [{]' | sed -E 's/^ *struct (.*) .$/\1/' >"$names"
    # shellcheck disable=SC2016 # backquotes of a document
    mentioned '`struct [a-z][a-z0-9_]*`' | tr -d '`' | sed 's/struct //' |
        expect struct "$names"
    # shellcheck disable=SC2016
    mentioned '`[a-zA-Z0-9_./-]+`' | tr -d '`' |
        sed 's|:daemon/|:server/daemon/|' |
        grep -E ':(base|protocol|hal|runtime|lib|server|tests|contrib|conf)/' |
        while IFS=: read -r file line path; do
            [ -e "$path" ] || [ -e "$path.c" ] ||
                echo "$file:$line: there is no $path"
        done
    # Files in a list or a sentence, also without backquotes: the path exists, and a name without a
    # folder is that of some file. Left out: headers of libraries, and patterns such as NAME.c.
    mentioned '[a-zA-Z0-9_./-]*[a-zA-Z0-9]\.(c|h|def|mk|glsl)\b' |
        grep -vE 'NAME|:(.*/)?(_priv|uv|llhttp|nghttp2|zlib|cJSON|vulkan)\.h$' |
        while IFS=: read -r file line path; do
            path=$(echo "$path" | sed -E 's|^(\.\./)*||; s|^daemon/|server/daemon/|')
            # shellcheck disable=SC2086 # a list of words
            if [ -e "$path" ]; then
                continue
            elif [ "$path" != "${path##*/}" ] || ! find $SOURCES -name "$path" | grep -q .; then
                echo "$file:$line: there is no $path"
            fi
        done
    # Links: the file exists, and has the heading.
    mentioned '\]\([^)]+\)' | sed 's/\](\(.*\))$/\1/' | grep -vE ':https?:' |
        while IFS=: read -r file line link; do
            path=${link%%#*}
            path=${path:+$(dirname "$file")/$path}
            path=${path:-$file}
            case $link in
            *'#'*) headings "$path" 2>/dev/null | grep -qxF -- "${link#*#}" ;;
            *) [ -e "$path" ] ;;
            esac || echo "$file:$line: there is no $link"
        done
    # The index leads to each page of the rooms; that of the recipes leads to them.
    for page in docs/tutorials/*.md docs/how-to/*.md docs/reference/*.md docs/explanation/*.md; do
        grep -qF "](${page#docs/})" docs/README.md || echo "docs/README.md:1: no link to $page"
    done
    for page in docs/*/*.md docs/*/*/*.md; do
        sed -n 3p "$page" | grep -qE '^(    |```)' || echo "$page:3: a page opens with an example"
        grep -qwF "%D%/${page#docs/}" docs/local.mk ||
            echo "docs/local.mk:1: the archive leaves out $page"
    done
    routes=server/daemon/request/route.def
    sed -n 's/^ROUTE([A-Z0-9_]*, \(GET\|POST\), "\([^"]*\)".*/\1 \2/p' $routes |
        while read -r route; do
            grep -qF "\`$route\`" $SERVING || echo "$SERVING:1: no route $route"
        done
    # Each row of metrics.def: "* `NAME` (TYPE; LABELS):", and the help in the next line.
    awk -F'"' '/^(SERVER|MODEL)_METRIC\(/ {
        split($1, part, ", ")
        labels = $6
        if (/^MODEL/) {
            labels = "model, version" (labels == "" ? "" : ", " labels)
        }
        labels = labels == "" ? "" : "; " labels
        printf "* `%s` (%s%s):\n  %s\n", $2, tolower(part[2]), labels, $8
    }' server/daemon/observe/metrics.def |
        while read -r row; do
            sed 's/^  //' $METRICS | grep -qxF -- "$row" ||
                echo "$METRICS:1: no line $row"
        done
    # Each row of resource.def: "* `NAME` (PARTY; METRIC; FILE: TEST):", with what is kept and how
    # it is taken back, before the next item. The metric and the test exist.
    first='[A-Z_]+, ([a-z_]+), ([A-Z]+), [0-9]+, "[^"]*"'
    last='"([a-z0-9_]+)", "([a-z0-9_.]+): ([a-z_]+)"'
    sed -nE "s/^RESOURCE\($first, $last\)\$/\1 \2 \3 \4 \5/p" \
        base/resource.def >"$rows"
    while read -r name party metric file test; do
        party=$(echo "$party" | tr '[:upper:]' '[:lower:]')
        row="* \`$name\` ($party; \`$metric\`; \`$file\`: $test):"
        item=$(awk -v row="$row" '
            /^(\*|$)/ { is_in = 0 }
            is_in { print }
            $0 == row { is_in = 1 }' $LIMITS | tr '\n' ' ')
        for part in 'Kept: ' 'Taken +back: '; do
            echo "$item" | grep -qE "$part" || echo "$LIMITS:1: no line $row with $part"
        done
        grep -q "\"$metric\"" server/daemon/observe/metrics.def ||
            echo "base/resource.def:1: no metric $metric"
        grep -q "^def $test()" "tests/http/$file" ||
            echo "base/resource.def:1: no test $test in $file"
    done <"$rows"
    [ "$(grep -c '^RESOURCE(' base/resource.def)" -eq "$(wc -l <"$rows")" ] ||
        echo "base/resource.def:1: a row of another form"
    sed -n '/^## What clients share/,/^## Options/p' $LIMITS | grep -c '^\*' |
        grep -qx "$(wc -l <"$rows")" || echo "$LIMITS:1: a resource without a row"
    # passes MACROS: the names in these rows of passes.def, in their order.
    passes() {
        sed -nE "s/^($1)\\(([a-z0-9_]+).*/\\2/p" runtime/passes/passes.def | paste -sd, |
            sed 's/,/, /g'
    }
    for list in "the first passes of runtime/passes/passes.def: $(passes PREPARE_PASS) " \
        "the other passes: $(passes 'PASS|CACHES_PASS');"; do
        tr -s ' \n' ' ' <ARCHITECTURE.md | grep -qF "$list" ||
            echo "ARCHITECTURE.md:1: expected '$list', the order of runtime/passes/passes.def"
    done
    # Each "  --NAME  TEXT (DEFAULT)" below "Limits and times:" is a row of the table.
    # shellcheck disable=SC2016
    echo "$HELP" |
        sed -nE 's/^  (--[a-z0-9-]+) +(.*) \(([0-9]+[A-Za-z]*)\)$/| `\1` | \3 | \2 |/p' |
        while read -r row; do
            grep -qxF "$row" $LIMITS || echo "$LIMITS:1: no row $row"
        done
    echo "$HELP" | grep -oE '^  --[a-z0-9-]+( [A-Z][A-Z:=]*)?' | sed 's/^  //' |
        grep -vE '^--(help|version)$' |
        while read -r option; do
            grep -qF "| \`$option\` |" $OPTIONS $LIMITS ||
                echo "$OPTIONS:1: no option $option"
        done
    echo "$HELP" | sed -nE 's/^  -(-[a-z0-9-]+) [A-Z].*/.It Fl \1 Ar /p' |
        while read -r item; do
            grep -qF -- "$item" "$MANUAL" || echo "$MANUAL:1: no $item"
        done
    echo "$HELP" | sed -nE 's/^  -(-[a-z0-9-]+) .* \(([0-9]+[A-Za-z]*)\)$/.It Fl \1 Ar N Pq \2/p' |
        while read -r item; do
            grep -qxF "$item" "$MANUAL" || echo "$MANUAL:1: no $item"
        done
    # What --set takes, and markup that a slip of the pen made a text.
    set_item=$(awk '/^\.It /{ is_in = 0 } is_in { print } /^\.It Fl -set /{ is_in = 1 }' $MANUAL)
    echo "$HELP" | awk '/^Of each model/{ is_in = 1 } /^$/{ is_in = 0 } is_in && sub(/^  --/, "") {
        print $1 }' |
        while read -r parameter; do
            echo "$set_item" | grep -qE "^\.Cm $parameter( |$)" ||
                echo "$MANUAL:1: no $parameter of --set"
        done
    grep -nE '^"|^.+\.(It|Cm|Fl|Ar) ' contrib/man/pted.8 contrib/man/pte.1 |
        sed 's|^\([^:]*:[0-9]*\):.*|\1: markup within a text|'
    sed -nE 's/^ISA(_ARM64)?\([A-Z0-9_]+, ([a-z0-9_]+),.*/\2/p' hal/cpu/isa.def |
        while read -r level; do
            grep -qE "^\.Ql $level( [,.])?\$" "$MANUAL" || echo "$MANUAL:1: no level $level"
        done
    echo "$PTE_HELP" | sed -nE 's/^[a-z: ]* pte ([a-z]+)( .*)?$/\1/p' |
        while read -r command; do
            grep -q "^    pte $command" $OPTIONS ||
                echo "$OPTIONS:1: no pte $command"
            grep -qxF ".It Cm $command" contrib/man/pte.1 || echo "contrib/man/pte.1:1: no $command"
        done
    # Each "  --name VALUE  text" or "  --name  text" in the help of a command of pte.
    echo "$PTE_HELP" | sed -nE 's/^  ([a-z]+) .*/\1/p' |
        while read -r command; do
            "$PTE" "$command" --help
        done | sed -nE 's/^  -(-[a-z0-9-]+( [A-Z][A-Za-z0-9=]*)?)  .*/\1/p' | sort -u |
        while read -r option; do
            grep -qF -- "-$option" $OPTIONS ||
                echo "$OPTIONS:1: no option -$option"
            case $option in
            *\ *) item=".It Fl ${option% *} Ar ${option#* }" ;;
            *) item=".It Fl $option" ;;
            esac
            grep -qxF "$item" contrib/man/pte.1 || echo "contrib/man/pte.1:1: no option -$option"
        done
    version=$(sed -n 's/^AC_INIT(\[pted\], \[\(.*\)\])$/\1/p' configure.ac)
    sed -n 's/^## \[\([0-9].*\)\].*/\1/p' CHANGELOG.md | head -n 1 | grep -qxF "$version" ||
        echo "CHANGELOG.md:1: the newest version is not the $version of configure.ac"
    sed -n '1s/^pted (\(.*\)) .*/\1/p' debian/changelog | grep -qxF "$version" ||
        echo "debian/changelog:1: the newest version is not the $version of configure.ac"
    # Who has only a package has no source: no message names a page or a file of it.
    grep -rnE --include='*.c' --include='*.def' --include='*.py' \
        '"[^"]*(\bdocs/|\bcontrib/|\b[a-z]+\.md\b)[^"]*"' base protocol hal runtime lib server \
        python/pted_server |
        grep -vE '#include|\.def"|:[0-9]+:"""' |
        sed 's|^\([^:]*:[0-9]*\):.*|\1: a message names a file|'
    # shellcheck disable=SC2086 # a list of words
    grep -rnoE --exclude-dir=docs '\bdocs/[a-z/-]+\.md\b' $SOURCES contrib findings |
        while IFS=: read -r file line page; do
            [ -e "$page" ] || echo "$file:$line: there is no $page"
        done
    # shellcheck disable=SC2046,SC2086 # lists of words
    find $SOURCES contrib conf docs m4 -type f |
        awk -f tests/stale.awk - pass=words $(sources '*.mk' '*.py' '*.sh') \
            pass=code $(sources '*.[ch]' '*.def' '*.comp' '*.glsl') \
            pass=comments $(sources '*.[ch]' '*.def')
    # shellcheck disable=SC2086
    grep -nE '^[^|].{100}' $DOCUMENTS | sed 's|^\([^:]*:[0-9]*\):.*|\1: more than 100 columns|'
} >"$report"

cat "$report"
violations=$(wc -l <"$report")
echo "docs: $violations violations"
[ "$violations" -eq 0 ]
