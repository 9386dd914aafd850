#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Checks rules of this project that a compiler does not know. Prints each violation as
# FILE:LINE: rule.
# include_rules() has the allowed includes; ARCHITECTURE.md shows them.

set -u
cd "${top_srcdir:-$(dirname "$0")/..}" || exit 1
LC_ALL=C.UTF-8
export LC_ALL

report=$(mktemp) || exit 1
trap 'rm -f "$report"' EXIT
FOLDERS='base protocol hal runtime lib server python tests contrib'
NL='
'

# files PATTERN...: the sources whose names match; no name in the tree holds a blank.
files() {
    for pattern; do
        # shellcheck disable=SC2086 # a list of words
        find $FOLDERS -type f -name "$pattern" ! -path '*/__pycache__/*'
    done | sort
}

C_FILES=$(files '*.c' '*.h')
CODE_FILES="$C_FILES$NL$(files '*.def')"
OWN_FILES=$(echo "$CODE_FILES" | grep -v '^tests/')
PTE_FILES=$(echo "$C_FILES" | grep '^runtime/pte/')
SCRIPTS=$(files '*.sh')
OTHER_CODE=$(files '*.py' '*.awk')
TEXT_FILES="$CODE_FILES$NL$SCRIPTS$NL$OTHER_CODE"

# A list of files may be empty; /dev/null keeps grep from reading stdin and makes it print names.
# shellcheck disable=SC2086 # lists of words from here to the end of the file
forbid() {
    rule=$1
    pattern=$2
    shift 2
    grep -nE "$pattern" /dev/null "$@" | sed "s|^\([^:]*:[0-9]*\):.*|\1: $rule|" >>"$report"
}

# Prints FILE:LINE: for every include that crosses a border the wrong way.
include_rules() {
    # shellcheck disable=SC2086
    grep -nE '^ *# *include *[<"]' /dev/null $C_FILES | awk '
        # The same for a layer of the runtime: itself and the layers below it.
        function layers(file, part, own, seen) {
            split(file, part, "/")
            own = part[2]
            seen = "^(config\\.h$|base/|hal/[a-z_]+\\.h$|runtime/" own "/|"
            if (own == "pte") return seen "^$)"
            if (own == "graph") return seen "^$)"
            if (own == "emit") return seen "runtime/graph/(graph|op)\\.h$)"
            if (own == "kernels")
                return seen "hal/cpu/uk[a-z0-9_]*\\.h$|runtime/emit/|runtime/graph/graph\\.h$)"
            if (own == "ops")
                return seen "hal/cpu/uk[a-z0-9_]*\\.h$|runtime/(kernels|emit)/|" \
                    "runtime/graph/(graph|op)\\.h$)"
            seen = seen "runtime/(ops|kernels|emit)/|runtime/graph/(graph|op|dim)\\.h$|"
            if (own == "passes") return seen "^$)"
            if (own == "plan") return seen "runtime/pte/files\\.h$)"
            if (own == "code")
                return seen "runtime/(passes|plan)/|runtime/pte/(files|packed)\\.h$)"
            if (own == "import") return seen "runtime/(pte|code)/)"
            seen = seen "runtime/(program|import|code|plan|passes|pte)/|"
            if (own == "program")
                return seen "protocol/(rawsig|sip|sig|sip_build|pytree|pick)\\.h$)"
            if (own == "call") return seen "^$)"
            seen = seen "runtime/call/|"
            if (own == "sched" || own == "vm") return seen "^$)"
            if (own == "pipeline")
                return seen "runtime/sched/|protocol/(rawsig|sip|sig|sip_build|pytree|pick)\\.h$)"
            if (own == "load") return seen "runtime/vm/)"
            return "^$"
        }
        # The doors of the runtime for the server.
        function runtime_doors() {
            return "runtime/(load/load|" \
                "call/(speculation|gains|invocation|batch|profile|siblings)|" \
                "pipeline/(pipeline|cascade)|" \
                "program/(adapt|carries|composition|example|held|keep|names|oracle|outline|" \
                "program|proven|resident|results|signature|state|summary)|" \
                "sched/(job|prefix|sched|sequence)|import/operators|pte/files)\\.h$"
        }
        # A row of the table of server/: a folder and what it may include of the folders beside it.
        # "runtime" are the doors of the runtime. A row names only folders of rows before it, so the
        # folders are in no circle.
        function row(folder, others, part, count, i) {
            count = split(others, part, " ")
            for (i = 1; i <= count; i++)
                if (part[i] != "runtime" && !("server/" part[i] in may))
                    print "tests/lint.sh:1: " folder " is in a circle with " part[i]
            may["server/" folder] = others
        }
        function server_table() {
            row("process", "")
            row("http", "process")
            row("media", "process")
            row("text/value", "")
            row("text/template", "text/value")
            row("text/grammar", "text/value")
            row("text/tokenizer", "process")
            row("language", "text/tokenizer text/template text/grammar media process runtime")
            row("model/answer", "media")
            row("model/card", "model/answer media process runtime")
            row("model/intake", "model/card language media runtime")
            row("model", "model/card model/intake language process runtime")
            row("profile", "")
            row("cli", "profile model/card model/intake text/tokenizer process runtime")
            row("daemon/console", "")
            row("daemon/conf", "http model model/card process")
            row("daemon/loop", "process")
            row("daemon/serving", "daemon/conf daemon/loop model language process runtime")
            row("daemon/infer", "daemon/loop daemon/serving http media model model/card " \
                "model/answer model/intake process profile runtime")
            row("daemon/generation", "daemon/serving daemon/infer http language media process " \
                "runtime")
            row("daemon/request", "daemon/loop daemon/serving daemon/infer http model process " \
                "runtime")
            row("daemon/connection", "daemon/loop daemon/request http process")
            row("daemon/observe", "daemon/loop daemon/serving daemon/infer daemon/request " \
                "daemon/generation daemon/connection http model process")
            row("daemon/api", "daemon/loop daemon/serving daemon/infer daemon/request " \
                "daemon/observe daemon/generation daemon/connection daemon/console language " \
                "model/intake process runtime")
            row("daemon", "daemon/conf daemon/loop daemon/serving daemon/infer daemon/request " \
                "daemon/generation daemon/observe daemon/connection daemon/api http language " \
                "process runtime")
        }
        # Each library of text/ has one door, the header with its name.
        function folder_door(folder, part) {
            if (folder ~ /^text\//) {
                split(folder, part, "/")
                return folder "/" part[2] "\\.h$"
            }
            return folder "/[^/]*$"
        }
        # The commands that call methods, and what they use, are programs of the library like
        # others. Cards, which the library does not have, reach the runtime by lib/cards.h.
        function is_on_library(file) {
            return file ~ ("^server/cli/(call|compare|dump|inputs?|io|np[yz]|pairs|print|" \
                "profile[a-z_]*|remote[a-z_]*|repository|result|run)\\.[ch]$")
        }
        function server_folders(file, own, part, count, i, seen) {
            own = file
            sub(/\/[^\/]*$/, "", own)
            if (!(own in may)) return "^$"
            seen = "^(config\\.h$|base/|protocol/|" own "/[^/]*$|"
            if (own == "server/cli") seen = seen "lib/pted\\.h$|"
            if (file ~ /^server\/cli\/(card|media)\.c$/) seen = seen "lib/cards\\.h$|"
            if (!is_on_library(file)) seen = seen "hal/[a-z_]+\\.h$|"
            count = split(may[own], part, " ")
            for (i = 1; i <= count; i++)
                if (part[i] != "runtime") seen = seen "server/" folder_door(part[i]) "|"
                else if (!is_on_library(file)) seen = seen runtime_doors() "|"
            return seen "^$)"
        }
        # The folders and files that a folder may include, as one expression.
        function allowed(file) {
            if (file ~ /^base\//) return "^(config\\.h$|base/)"
            if (file ~ /^protocol\//) return "^(config\\.h$|base/|protocol/)"
            if (file ~ /^hal\/[a-z]+\//) {
                split(file, part, "/")
                return "^(config\\.h$|base/|hal/[a-z_]+\\.h$|hal/" part[2] "/)"
            }
            if (file == "hal/drivers.c") return "^(config\\.h$|base/|hal/)"
            if (file ~ /^hal\//) return "^(config\\.h$|base/|hal/[a-z_]+\\.(h|def)$)"
            if (file ~ /^runtime\//) return layers(file)
            if (file == "lib/pted.h") return "^$"
            if (file ~ /^lib\//)
                return "^(config\\.h$|base/|hal/[a-z_]+\\.h$|lib/|" runtime_doors() ")"
            if (file == "server/main.c")
                return "^(config\\.h$|server/(cli|daemon)/main\\.h$|server/process/)"
            if (file ~ /^server\//) return server_folders(file)
            return "."
        }
        # Libraries that one folder hides from the others.
        function library_folder(name) {
            if (name ~ /^(uv\.h|llhttp\.h|nghttp2\/|curl\/|openssl\/|zlib\.h)/) return "^server/"
            if (name ~ /^(pcre2|utf8proc)\.h/) return "^server/text/"
            if (name ~ /^(sndfile|mpg123|soxr)\.h/) return "^server/media/"
            if (name ~ /^(jpeglib|jerror|png|webp\/decode)\.h/) return "^server/media/"
            if (name ~ /^(cjson\/)?cJSON\.h/) return "^server/process/document\\.c$"
            if (name ~ /^vulkan\//) return "^hal/vulkan/"
            if (name ~ /intrin\.h$|^arm_(neon|sve)\.h/) return "^hal/cpu/uk"
            return "."
        }
        BEGIN { server_table() }
        {
            file = $0; sub(/:.*/, "", file)
            line = $0; sub(/^[^:]*:/, "", line); sub(/:.*/, "", line)
            name = $0; sub(/^[^<"]*[<"]/, "", name); sub(/[>"].*/, "", name)
            if (file ~ /^tests\//) next
            # Programs that embed pted compile it with what C has, and as C++.
            if (file == "lib/pted.h" && name !~ /^std(bool|def|int)\.h$/)
                print file ":" line ": <" name "> is for no public header"
            if ($0 ~ /<[^>]*>/ && file !~ library_folder(name))
                print file ":" line ": <" name "> belongs to " library_folder(name)
            folder = name; sub(/[^\/]*$/, "", folder)
            if (name ~ /_priv\.h$/ && index(file, folder) != 1)
                print file ":" line ": \"" name "\" is private to its folder"
            if (name == "server/daemon/server.h" && file !~ /^server\/daemon\/(server|main)\.c$/)
                print file ":" line ": \"" name "\" is for server.c and main.c"
            if (name == "commit.h" && file == "server/main.c") next
            if ($0 ~ /"[^"]*"/ && name !~ allowed(file))
                print file ":" line ": may not include \"" name "\""
        }' >>"$report"
}

# Finds headers that include themselves through others: a reader of one would have to read all.
header_circles() {
    # shellcheck disable=SC2046
    grep -E '^ *# *include *"' /dev/null $(files '*.h') |
        sed 's/^\([^:]*\):[^"]*"\([^"]*\)".*/\1 \2/' | tsort 2>&1 >/dev/null |
        sed -n 's/^tsort: \([^ ]*\.h\)$/\1:1: in a circle of headers/p' | sort -u
}

# without LINES REGEX FILE...: prints the files that have no match in their first lines.
without() {
    awk -v lines="$1" -v regex="$2" 'BEGIN { ARGV[1] = ARGV[2] = "" }
        FNR <= lines && $0 ~ regex { has[FILENAME] }
        END { for (i = 3; i < ARGC; i++) if (!(ARGV[i] in has)) print ARGV[i] }' "$@"
}

# shellcheck disable=SC2046,SC2086
first_lines() {
    without 1 'SPDX-License-Identifier: MIT' $CODE_FILES $(files '*.mk') |
        sed 's/$/:1: the first line is the SPDX line/'
    without 2 'SPDX-License-Identifier: MIT' $SCRIPTS $OTHER_CODE |
        sed 's/$/:1: the SPDX line is in the first two lines/'
    awk '/^ *# *include/ && !(FILENAME in seen) {
            seen[FILENAME]
            if ($0 !~ /"config[.]h"/) print FILENAME ":" FNR ": config.h is the first include"
        }' $(files '*.c')
}

# shellcheck disable=SC2046
headers_guarded() {
    awk 'FNR == 1 {
            guard = toupper(FILENAME)
            gsub("[/.-]", "_", guard)
        }
        $0 == "#ifndef PTED_" guard { has[FILENAME] }
        END {
            for (i = 1; i < ARGC; i++) {
                if (ARGV[i] in has) continue
                guard = toupper(ARGV[i])
                gsub("[/.-]", "_", guard)
                print ARGV[i] ":1: the include guard is PTED_" guard
            }
        }' $(files '*.h' | grep -v '^tests/')
}

# Includes that follow each other without an empty line are of one kind and in order.
includes_sorted() {
    # shellcheck disable=SC2086
    awk '
        FNR == 1 { before = "" }
        !/^# *include ["<]/ { before = ""; next }
        {
            name = $0; sub(/^# *include /, "", name); sub(/[>"][^>"]*$/, "", name)
            if (before != "" && (substr(before, 1, 1) != substr(name, 1, 1) || name < before))
                print FILENAME ":" FNR ": " name " stands behind " before
            before = name
        }' $C_FILES
}

NOUNS='The|A|An|Another|Each|Every|Its|As|Like|Bytes|Number|Units|Elements'
NOUNS="$NOUNS|Nothing|No|There|Before|After|Once|Likewise|How|What|When|Where|Which|Who|Whose|Why"

# Finds contracts of functions in headers that begin with what the function is about rather than
# with a verb: "The bytes that ..." says less than "Returns the bytes that ..." or "Frees ...".
contracts_begin_with_verbs() {
    # shellcheck disable=SC2046
    awk '
        FNR == 1 { word = "" }
        /^\/\*/ {
            first = FNR; word = ""; is_open = 1
            text = $0; sub(/^\/\*/, "", text)
        }
        is_open && word == "" {
            if (FNR > first) { text = $0; sub(/^ \*/, "", text) }
            if (split(text, part, " ") > 0 && part[1] != "*/") word = part[1]
        }
        /\*\/$/ { is_open = 0; next }
        !is_open && word != "" {
            if ($0 ~ /^[A-Za-z_][A-Za-z0-9_ *]*[ *][a-z0-9_]+\(/ && word ~ nouns)
                print FILENAME ":" first ": a contract begins with a verb, not with " word
            word = ""
        }' nouns="$1" $(files '*.h' | grep -v '^tests/')
}

# Finds magic words that are used twice: objects with the same word could not be told apart.
magics_unique() {
    # shellcheck disable=SC2086
    grep -nE '\b[A-Z0-9_]*MAGIC[A-Z0-9_]* *=? *\(?(UINT32_C\()?0x' /dev/null $C_FILES |
        awk '{
            word = tolower($0); sub(/.*0x/, "", word); gsub(/[^0-9a-f].*/, "", word)
            split($0, part, ":"); place = part[1] ":" part[2]
            if (word in seen) print place ": magic 0x" word " is taken in " seen[word]
            seen[word] = place
        }'
}

# "AREA: VERB WHAT" in at most 72 characters, for each commit since the rule is checked; an archive
# has no commits.
SUBJECTS_SINCE=2b7f10ea
commit_subjects() {
    git log --format='%h %s' "$SUBJECTS_SINCE.." 2>/dev/null | awk '{
        id = $1; sub(/^[^ ]* /, "")
        if (length($0) > 72) print "commit " id ":1: a subject has at most 72 characters"
        if ($0 !~ /^[^ :][^:]*: [^ ]/) print "commit " id ":1: a subject is AREA: VERB WHAT"
    }'
}

shell_scripts() {
    for file in $SCRIPTS; do
        sh -n "$file" 2>&1 | sed "s|^|$file:1: sh -n: |"
    done
    command -v shellcheck >/dev/null || return
    # shellcheck disable=SC2086
    shellcheck -f gcc $SCRIPTS
}

# shellcheck disable=SC2086,SC2046
{
    include_rules
    {
        first_lines
        header_circles
        headers_guarded
        includes_sorted
        magics_unique
        contracts_begin_with_verbs "^($NOUNS)\$"
        commit_subjects
        shell_scripts
    } >>"$report"
    forbid 'structs are not typedefed' '\btypedef +(struct|union|enum)\b[^(]*[{;]' $CODE_FILES
    forbid 'folders are opened by folder_open()' '[=(!] *opendir\(' $OWN_FILES
    forbid 'a function without bounds' \
        '\b(strcpy|strcat|stpcpy|sprintf|vsprintf|gets|alloca|atoi|atol|atoll|atof|strtok)\(' \
        $CODE_FILES
    forbid 'an open end' '\b(TO''DO|FIX''ME|XX''X|HA''CK)\b' $TEXT_FILES
    forbid 'more than 100 columns' '^.{101}' $C_FILES $SCRIPTS $OTHER_CODE
    forbid 'a broken banner' '^ *\* -{10,} \*/|^/\* -{3,}.*[^/]$' $CODE_FILES
    forbid 'a tab or a blank at the end of the line' "[[:blank:]]\$|$(printf '\t')" \
        $CODE_FILES $SCRIPTS
    # A delegate of files has the same name as the driver: import/ is about that one.
    no_driver=$(echo "$CODE_FILES" | grep -E '^(base|protocol|hal|runtime|server)/' |
        grep -vE '^hal/(vulkan/|drivers\.c)|/import/')
    forbid 'a driver is named in its folder and in hal/drivers.c' '[vV]ulkan|VULKAN' $no_driver
    no_names=$(echo "$C_FILES" | grep -E '^runtime/(passes|import)/' | grep -v '/operators\.c$')
    forbid 'rows of operators come from runtime/ops/known.h' 'rt_op_find\(|op->name, *"' $no_names
    # A sum of two numbers from a file may wrap: in_range() subtracts.
    sum='(off|offset|start|begin|pos|at|base)[a-z_]* *\+ *[a-z_>.-]*(len|length|size|count|bytes|n)'
    forbid 'ranges are checked by in_range()' "${sum}[a-z_]* *[<>]|[<>]=? *[a-z_>.-]*${sum}\\b" \
        $PTE_FILES
}

cat "$report"
violations=$(wc -l <"$report")
echo "lint: $(echo "$TEXT_FILES" | grep -c .) files, $violations violations"
[ "$violations" -eq 0 ]
