#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Compiles every shader (*.comp) to the header beside it that holds its words. The headers are
# committed, so that a build needs no compiler for shaders; run this after changing one.
#
#   contrib/shaders.sh           writes the headers that differ
#   contrib/shaders.sh --check   writes nothing; 1 when a header is not what its shader compiles to
#
# A shader goes through the C preprocessor first, with HAL_SHADER defined, so that it includes the
# very headers that its kernel's C form takes its constants, enums and lists from. Of C that is
# left then, structs and enums are rewritten: GLSL has no tags and no enums. A double is its bits.

set -eu
cd "$(dirname "$0")/.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
stale=0
seconds_max=120 # for a shader, which takes one: of some sources glslang 12 finds no end

mkdir "$scratch/include"
touch "$scratch/include/stdbool.h" "$scratch/include/stddef.h" "$scratch/include/stdint.h"

preprocess() {
    ${CC:-cc} -E -P -undef -nostdinc -x c -I . -I "$scratch/include" -DHAL_SHADER \
        -D'_Static_assert(claim, text)=' -Dclass=class_ -Din=in_ -Dout=out_ -Dlength=length_ \
        -Ddouble=uint64_t -Dsize_t=uint64_t "$1"
}

# A statement at a time: "enum x { A, B };" becomes constants, "enum x y" an uint32_t, "struct x y"
# an x.
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

compile() {
    {
        printf '#version 460\n'
        for extension in buffer_reference buffer_reference2 scalar_block_layout \
            shader_explicit_arithmetic_types_int8 shader_explicit_arithmetic_types_int16 \
            shader_explicit_arithmetic_types_int32 shader_explicit_arithmetic_types_int64 \
            shader_explicit_arithmetic_types_float64 \
            shader_16bit_storage shader_8bit_storage control_flow_attributes; do
            printf '#extension GL_EXT_%s : require\n' $extension
        done
        printf 'layout(local_size_x_id = 0) in;\n'
        preprocess "$1" | to_glsl
    } >"$scratch/shader.comp"
    timeout "$seconds_max" glslangValidator -V --quiet --target-env vulkan1.2 -g0 \
        -o "$scratch/spv" "$scratch/shader.comp" || {
        [ $? -ne 124 ] || echo "glslangValidator did not end in $seconds_max s" >&2
        [ -z "${KEEP-}" ] || cp "$scratch/shader.comp" "$KEEP"
        echo "$1 does not compile; the lines are those of what KEEP=FILE keeps" >&2
        exit 1
    }
}

for shader in $(git ls-files -co --exclude-standard '*.comp' | sort); do
    name=$(basename "$shader" .comp)
    header=${shader%.comp}.h
    compile "$shader"
    {
        guard=PTED_$(printf '%s' "$header" | tr '[:lower:]/.' '[:upper:]__')
        printf '/* SPDX-License-Identifier: MIT */\n'
        printf '/* Made of %s.comp by contrib/shaders.sh. */\n' "$name"
        printf '#ifndef %s\n#define %s\n\n#include <stdint.h>\n\n' "$guard" "$guard"
        printf '/* clang-format off */\nstatic const uint32_t %s_spirv[] = {\n' "$name"
        od -An -v -tx4 -w32 "$scratch/spv" | sed 's/ \([0-9a-f]\{8\}\)/0x\1,/g'
        printf '};\n/* clang-format on */\n\n#endif\n'
    } >"$scratch/header"
    cmp -s "$scratch/header" "$header" && continue
    stale=1
    if [ "${1-}" = --check ]; then
        echo "$header is not what $name.comp compiles to: run contrib/shaders.sh"
    else
        cp "$scratch/header" "$header"
        echo "$header"
    fi
done
[ "${1-}" != --check ] || exit $stale
