#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Compiles every shader (NAME.comp) of a folder to a file of SPIR-V words, generated/NAME.spv below
# the folder. Beside them it writes generated/spirv.S, which includes the files into an object, and
# generated/spirv.h, which declares the words. All of these are committed, so that a build needs no
# shader compiler; run this script after changing a shader.
#
#   contrib/shaders.sh           writes the files that differ
#   contrib/shaders.sh --check   writes nothing; the status is 1 if a file differs from its shader
#
# A shader is one form of a kernel, NAME_spirv in C, or has several: then its first comment has a
# line
#
#    * form NAME: [-DMACRO...] [GL_EXTENSION...]
#
# for each form, and NAME.spv holds the words of the shader compiled with these. Compilers make
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

# make_form SHADER FOLDER NAME [WORD...]: writes $made/NAME.spv and prints the declaration of its
# words. If no compiler knows the form, both stay as they are in FOLDER.
make_form() {
    form_source=$1 form_folder=$2 form=$3
    shift 3
    form_extensions=$(printf '%s\n' "$@" | sed -n '/^GL_/p')
    # shellcheck disable=SC2086 # a list of words
    chosen=$(choose_compiler $form_extensions)
    write_source "$form_source" "$@"
    source_sum=$(checksum_source)
    if [ -n "$chosen" ]; then
        compile "$chosen" "$form_source"
        mv "$scratch/spv" "$made/$form.spv"
    elif grep -q "^extern const uint32_t ${form}_spirv\[.* of source $source_sum " \
        "$form_folder/spirv.h" 2>/dev/null; then
        cp "$form_folder/$form.spv" "$made/$form.spv"
        printf ' %s' "$form" >>"$scratch/left"
    else
        echo "$form has changed and needs a newer glslang: set GLSLANG_NEWER" >&2
        exit 1
    fi
    printf 'extern const uint32_t %s_spirv[%d];%s\n' "$form" \
        $(($(wc -c <"$made/$form.spv") / 4)) "${form_extensions:+ /* of source $source_sum */}"
}

# make_forms SHADER FOLDER: makes all forms of a shader.
make_forms() {
    sed -n 's|^ \* form \([a-z0-9_]*\):|\1|p' "$1" >"$scratch/forms"
    [ -s "$scratch/forms" ] || basename "$1" .comp >"$scratch/forms"
    while read -r words; do
        # shellcheck disable=SC2086 # a list of words
        make_form "$1" "$2" $words
    done <"$scratch/forms"
}

# make_header FOLDER: prints spirv.h, with declarations from standard input.
make_header() {
    guard=PTED_$(printf '%s' "$1/spirv.h" | tr '[:lower:]/.' '[:upper:]__')
    printf '/* SPDX-License-Identifier: MIT */\n'
    printf '/* Words of the shaders in %s/, by contrib/shaders.sh. */\n' "$(dirname "$1")"
    printf '#ifndef %s\n#define %s\n\n#include <stdint.h>\n\n' "$guard" "$guard"
    printf '/* clang-format off */\n'
    cat
    printf '/* clang-format on */\n\n#endif\n'
}

# make_assembler FOLDER: prints spirv.S, for declarations from standard input.
make_assembler() {
    printf '/* SPDX-License-Identifier: MIT */\n'
    printf '/* Words of the shaders in %s/, by contrib/shaders.sh. */\n' "$(dirname "$1")"
    printf '\t.section .rodata\n'
    sed -n 's/^extern const uint32_t \(.*\)_spirv\[.*/\1/p' | while read -r form; do
        printf '\t.balign 4\n\t.global %s_spirv\n%s_spirv:\n' "$form" "$form"
        printf '\t.incbin "%s.spv"\n' "$form"
    done
    printf '\t.section .note.GNU-stack, "", %%progbits\n'
}

# settle FOLDER: makes FOLDER what $made is, or says with --check where they differ.
settle() {
    [ "$mode" = --check ] || mkdir -p "$1"
    for path in "$made"/* "$1"/*; do
        file=${path##*/}
        if [ ! -e "$path" ] || cmp -s "$made/$file" "$1/$file"; then
            continue
        fi
        stale=1
        if [ "$mode" = --check ]; then
            echo "$1/$file differs from the compiled shaders: run contrib/shaders.sh"
        elif [ -e "$made/$file" ]; then
            cp "$made/$file" "$1/$file"
            echo "$1/$file"
        else
            rm "$1/$file"
            echo "$1/$file is removed"
        fi
    done
}

mode=${1-}
made=$scratch/made
touch "$scratch/left"
knows glslangValidator || {
    echo "there is no glslangValidator" >&2
    exit 1
}
git ls-files -co --exclude-standard '*.comp' | sort >"$scratch/shaders"
for folder in $(sed 's|/[^/]*$||' "$scratch/shaders" | uniq); do
    generated=$folder/generated
    rm -rf "$made"
    mkdir "$made"
    for shader in "$folder"/*.comp; do
        make_forms "$shader" "$generated"
    done >"$scratch/rows"
    make_header "$generated" <"$scratch/rows" >"$made/spirv.h"
    make_assembler "$generated" <"$scratch/rows" >"$made/spirv.S"
    settle "$generated"
done
[ ! -s "$scratch/left" ] || echo "not compiled without a newer glslang:$(cat "$scratch/left")"
[ "$mode" != --check ] || exit $stale
