#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Compiles every shader (NAME.comp) to a header with its SPIR-V words, generated/NAME.spv.h below
# the shader's folder. The headers are committed, so that a build needs no shader compiler; run this
# script after changing a shader.
#
#   contrib/shaders.sh           writes the headers that differ
#   contrib/shaders.sh --check   writes nothing; the status is 1 if a header differs from its shader
#
# A shader is one form of a kernel, NAME_spirv, or has several: then its first comment has a line
#
#    * form NAME: [-DMACRO...] [GL_EXTENSION...]
#
# for each form, and NAME_spirv holds the words of the shader compiled with these. Compilers make
# different words: those committed are from glslang 12 (Debian 12). GLSLANG_NEWER names a newer
# compiler, for forms with an extension that glslang 12 does not know. Without it the script leaves
# these forms as they are and lists them at the end. Each form with extensions carries the checksum
# of its source, so that --check finds a changed source even then.
#
# A shader goes through the C preprocessor first, with HAL_SHADER defined, so that it includes the
# same headers as the C form of its kernel for constants, enums and lists. The script then rewrites
# the remaining structs and enums of C, since GLSL has no tags and no enums. A double is its bits.

set -eu
cd "$(dirname "$0")/.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
stale=0
seconds_max=120 # a shader takes one second, but glslang 12 never ends on some sources

mkdir "$scratch/include"
touch "$scratch/include/stdbool.h" "$scratch/include/stddef.h" "$scratch/include/stdint.h"

# preprocess SHADER [-DMACRO...]
preprocess() {
    shader=$1
    shift
    ${CC:-cc} -E -P -undef -nostdinc -x c -I . -I "$scratch/include" -DHAL_SHADER \
        -D'_Static_assert(claim, text)=' -Dclass=class_ -Din=in_ -Dout=out_ -Dlength=length_ \
        -Ddouble=uint64_t -Dsize_t=uint64_t "$@" "$shader"
}

# Rewrites one statement at a time: "enum x { A, B };" becomes constants, "enum x y" an uint32_t,
# "struct x y" an x.
to_glsl() {
    awk '
        BEGIN { RS = ";" }
        NR > 1 { printf ";" }
        match($0, /enum +[A-Za-z_0-9]+[ \n]*[{][^}]*[}][ \n]*$/) {
            names = substr($0, RSTART, RLENGTH)
            printf "%s", substr($0, 1, RSTART - 1)
            gsub(/^[^{]*[{]|[}][ \n]*$|[ \n]/, "", names)
            count = split(names, list, ",")
            value = "0u"
            for (i = 1; i <= count && list[i] != ""; i++) {
                split(list[i], pair, "=")
                value = list[i] ~ /=/ ? pair[2] : value
                printf "%s\nconst uint32_t %s = %s", (i > 1 ? ";" : ""), pair[1], value
                value = pair[1] " + 1u"
            }
            next
        }
        {
            while (match($0, /enum +[A-Za-z_0-9]+ +[a-z]/))
                $0 = substr($0, 1, RSTART - 1) "uint32_t " substr($0, RSTART + RLENGTH - 1)
            while (match($0, /struct +[A-Za-z_0-9]+ +[a-z]/))
                $0 = substr($0, 1, RSTART - 1) substr($0, RSTART + 7)
            printf "%s", $0
        }'
}

# knows COMPILER EXTENSION...
knows() {
    knows_compiler=$1
    shift
    {
        printf '#version 460\n'
        [ $# -eq 0 ] || printf '#extension %s : require\n' "$@"
        printf 'void main() {}\n'
    } >"$scratch/empty.comp"
    # shellcheck disable=SC2086 # a command and its arguments
    $knows_compiler -V --target-env vulkan1.2 -o "$scratch/empty.spv" "$scratch/empty.comp" \
        >/dev/null 2>&1
}

# choose_compiler EXTENSION...: prints the compiler for a form, or nothing.
choose_compiler() {
    if [ $# -eq 0 ]; then
        echo glslangValidator
        return
    fi
    for compiler in glslangValidator "${GLSLANG_NEWER-}"; do
        if [ -n "$compiler" ] && knows "$compiler" "$@"; then
            echo "$compiler"
            return
        fi
    done
}

# write_source SHADER [WORD...]: writes the source to compile. The words are the macros and the
# extensions of a form.
write_source() {
    source=$1
    shift
    macros='' extensions=''
    for word; do
        case $word in
        -D*) macros="$macros $word" ;;
        *) extensions="$extensions $word" ;;
        esac
    done
    {
        printf '#version 460\n'
        for extension in buffer_reference buffer_reference2 scalar_block_layout \
            shader_explicit_arithmetic_types_int8 shader_explicit_arithmetic_types_int16 \
            shader_explicit_arithmetic_types_int32 shader_explicit_arithmetic_types_int64 \
            shader_explicit_arithmetic_types_float64 \
            shader_16bit_storage shader_8bit_storage control_flow_attributes; do
            printf '#extension GL_EXT_%s : require\n' $extension
        done
        for extension in $extensions; do
            printf '#extension %s : require\n' "$extension"
        done
        printf 'layout(local_size_x_id = 0) in;\n'
        # shellcheck disable=SC2086 # a list of words
        preprocess "$source" $macros | to_glsl
    } >"$scratch/shader.comp"
}

# The checksum leaves out white space, which differs from compiler to compiler.
checksum_source() {
    tr -d ' \t\n' <"$scratch/shader.comp" | cksum | cut -d ' ' -f 1
}

# compile COMPILER SHADER: compiles the source that write_source() has written.
compile() {
    form_compiler=$1
    # shellcheck disable=SC2086 # a command and its arguments
    timeout "$seconds_max" $form_compiler -V --quiet --target-env vulkan1.2 -g0 \
        -o "$scratch/spv" "$scratch/shader.comp" || {
        [ $? -ne 124 ] || echo "$form_compiler did not end in $seconds_max s" >&2
        [ -z "${KEEP-}" ] || cp "$scratch/shader.comp" "$KEEP"
        echo "$2 does not compile; KEEP=FILE keeps the source with these line numbers" >&2
        exit 1
    }
}

# print_form SHADER HEADER NAME [WORD...]: prints the array of a form, or the array in HEADER if no
# compiler knows the form.
print_form() {
    form_source=$1 form_header=$2 form=$3
    shift 3
    begin="static const uint32_t ${form}_spirv[] = {"
    form_extensions=$(printf '%s\n' "$@" | sed -n '/^GL_/p')
    # shellcheck disable=SC2086 # a list of words
    chosen=$(choose_compiler $form_extensions)
    write_source "$form_source" "$@"
    source_line="/* of source $(checksum_source) */"
    if [ -n "$chosen" ]; then
        compile "$chosen" "$form_source"
        [ -z "$form_extensions" ] || printf '%s\n' "$source_line"
        printf '%s\n' "$begin"
        od -An -v -tx4 -w32 "$scratch/spv" | sed 's/ \([0-9a-f]\{8\}\)/0x\1,/g'
        printf '};\n'
    elif grep -qF "$source_line" "$form_header" 2>/dev/null; then
        awk -v begin="$source_line" '$0 == begin { on = 1 } on { print } $0 == "};" { on = 0 }' \
            "$form_header"
        printf ' %s' "$form" >>"$scratch/left"
    else
        echo "$form has changed and needs a newer glslang: set GLSLANG_NEWER" >&2
        exit 1
    fi
}

touch "$scratch/left"
knows glslangValidator || {
    echo "there is no glslangValidator" >&2
    exit 1
}
for shader in $(git ls-files -co --exclude-standard '*.comp' | sort); do
    name=$(basename "$shader" .comp)
    header=$(dirname "$shader")/generated/$name.spv.h
    [ "${1-}" = --check ] || mkdir -p "$(dirname "$header")"
    sed -n 's|^ \* form \([a-z0-9_]*\):|\1|p' "$shader" >"$scratch/forms"
    [ -s "$scratch/forms" ] || echo "$name" >"$scratch/forms"
    {
        guard=PTED_$(printf '%s' "$header" | tr '[:lower:]/.' '[:upper:]__')
        printf '/* SPDX-License-Identifier: MIT */\n'
        printf '/* Generated from %s.comp by contrib/shaders.sh. */\n' "$name"
        printf '#ifndef %s\n#define %s\n\n#include <stdint.h>\n\n' "$guard" "$guard"
        printf '/* clang-format off */\n'
        while read -r form; do
            # shellcheck disable=SC2086 # a list of words
            print_form "$shader" "$header" $form
        done <"$scratch/forms"
        printf '/* clang-format on */\n\n#endif\n'
    } >"$scratch/header"
    cmp -s "$scratch/header" "$header" && continue
    stale=1
    if [ "${1-}" = --check ]; then
        echo "$header differs from the compiled $name.comp: run contrib/shaders.sh"
    else
        cp "$scratch/header" "$header"
        echo "$header"
    fi
done
[ ! -s "$scratch/left" ] || echo "not compiled without a newer glslang:$(cat "$scratch/left")"
[ "${1-}" != --check ] || exit $stale
