# SPDX-License-Identifier: MIT
# shellcheck shell=sh
#
# How contrib/portable.sh builds each library of sources.tsv: build_NAME runs in the folder of its
# sources and installs into $prefix. $tools has the compilers of the target; CC and the flags are in
# the environment. What pted does not use is left out.
# shellcheck disable=SC2154 # variables of contrib/portable.sh

# For libraries that do not compute.
smaller() {
    CFLAGS="$CFLAGS -Os"
}

autotools() {
    ./configure --quiet --host="$target" --prefix="$prefix" --disable-shared --enable-static \
        --disable-dependency-tracking "$@"
    make -s -j"$jobs"
    make -s install
}

cmake_static() {
    cmake -S . -B build.cmake -G 'Unix Makefiles' -Wno-dev --log-level=ERROR \
        -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR="$cpu" -DCMAKE_BUILD_TYPE=None \
        -DCMAKE_C_COMPILER="$tools/cc" -DCMAKE_AR="$tools/ar" -DCMAKE_RANLIB="$tools/ranlib" \
        -DCMAKE_C_FLAGS="$CFLAGS" -DCMAKE_POSITION_INDEPENDENT_CODE=ON \
        -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_PREFIX_PATH="$prefix" \
        -DCMAKE_FIND_ROOT_PATH="$prefix" -DCMAKE_FIND_ROOT_PATH_MODE_PROGRAM=NEVER \
        -DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY -DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY \
        -DBUILD_SHARED_LIBS=OFF -DCMAKE_POLICY_VERSION_MINIMUM=3.5 "$@"
    make -s -C build.cmake -j"$jobs"
    make -s -C build.cmake install
}

build_zlib() {
    CHOST=$target ./configure --static --prefix="$prefix"
    make -s -j"$jobs" libz.a
    make -s install
}

build_libuv() {
    cmake_static -DLIBUV_BUILD_TESTS=OFF -DLIBUV_BUILD_BENCH=OFF
    # What the shared library's description says of threads is true of the static one too.
    # shellcheck disable=SC2016 # a variable of pkg-config
    sed 's/^Libs:.*/Libs: -L${libdir} -luv_a -lpthread/' <"$prefix/lib/pkgconfig/libuv-static.pc" \
        >"$prefix/lib/pkgconfig/libuv.pc"
}

build_cjson() {
    cmake_static -DENABLE_CJSON_TEST=OFF -DENABLE_CUSTOM_COMPILER_FLAGS=OFF \
        -DBUILD_SHARED_AND_STATIC_LIBS=OFF
}

# pted's own build compiles these C files.
build_llhttp() {
    mkdir -p "$prefix/share"
    cp -R usr/share/llhttp usr/share/include "$prefix/share"
}

# The library alone is in C; CMake looks for C++ all the same.
build_nghttp2() {
    cmake_static -DENABLE_LIB_ONLY=ON -DENABLE_STATIC_LIB=ON -DENABLE_SHARED_LIB=OFF \
        -DCMAKE_CXX_COMPILER="$tools/cc" -DCMAKE_CXX_COMPILER_WORKS=1
}

# The folder of certificates and of openssl.cnf is where distributions have it. Unused: engines, and
# modules beside the program. OpenSSL keeps the names of folders and the line of the compiler, so
# these are no names of this machine. Its ciphers are in assembler, whatever the flags.
build_openssl() {
    smaller
    case $cpu in
    x86_64) name=linux-x86_64 ;;
    *) name=linux-aarch64 ;;
    esac
    PATH=$tools:$PATH
    CC=cc AR=ar RANLIB=ranlib \
        ./Configure "$name" --prefix=/usr --libdir=lib --openssldir=/etc/ssl no-shared no-engine \
        no-dso no-legacy no-module no-tests no-async no-comp no-cms no-dtls no-ec2m no-gost \
        no-idea no-md4 no-mdc2 no-psk no-rc2 no-rc4 no-rc5 no-seed no-sm2 no-sm3 no-sm4 no-srp \
        no-srtp no-ssl3 no-ts no-whirlpool no-camellia no-aria no-bf no-blake2 no-cast no-ocb \
        no-rmd160 no-siphash no-siv no-rfc3779 no-ui-console no-cmp no-ct no-multiblock \
        no-nextprotoneg no-ssl-trace CFLAGS="$CFLAGS" >configure.log
    make -s -j"$jobs" build_libs
    make -s install_dev DESTDIR="$PWD/installed" >install.log
    sed -i "s|^prefix=.*|prefix=$prefix|" installed/usr/lib/pkgconfig/*.pc
    cp -R installed/usr/. "$prefix"
}

# Certificates: OpenSSL's places, which SSL_CERT_FILE and SSL_CERT_DIR change.
build_curl() {
    smaller
    cmake_static -DHTTP_ONLY=ON -DCURL_USE_OPENSSL=ON -DBUILD_CURL_EXE=OFF -DENABLE_MANUAL=OFF \
        -DCURL_CA_BUNDLE=none -DCURL_CA_PATH=none -DCURL_CA_FALLBACK=ON -DUSE_LIBIDN2=OFF \
        -DCURL_USE_LIBSSH2=OFF -DCURL_USE_LIBPSL=OFF -DCURL_DISABLE_NTLM=ON \
        -DCURL_DISABLE_COOKIES=ON -DCURL_DISABLE_ALTSVC=ON -DCURL_DISABLE_HSTS=ON \
        -DCURL_DISABLE_NETRC=ON -DENABLE_THREADED_RESOLVER=ON -DBUILD_TESTING=OFF \
        -DHAVE_GLIBC_STRERROR_R=0 -DHAVE_GLIBC_STRERROR_R__TRYRUN_OUTPUT= \
        -DHAVE_POSIX_STRERROR_R=1 -DHAVE_POSIX_STRERROR_R__TRYRUN_OUTPUT= \
        -DHAVE_POLL_FINE_EXITCODE=0 -DHAVE_POLL_FINE_EXITCODE__TRYRUN_OUTPUT=
    # CMake would have every program linked with the files of Zig's C library by their names.
    # shellcheck disable=SC2016 # a variable of pkg-config
    sed -i 's/^Libs:.*/Libs: -L${libdir} -lcurl -lssl -lcrypto -lz/; /^Libs.private:/d' \
        "$prefix/lib/pkgconfig/libcurl.pc"
}

build_pcre2() {
    cmake_static -DPCRE2_SUPPORT_JIT=ON -DPCRE2_BUILD_PCRE2GREP=OFF -DPCRE2_BUILD_TESTS=OFF
}

build_utf8proc() {
    cmake_static
    test -f "$prefix/lib/pkgconfig/libutf8proc.pc"
}

build_libyaml() {
    smaller
    cmake_static -DBUILD_TESTING=OFF
    mkdir -p "$prefix/lib/pkgconfig"
    cat >"$prefix/lib/pkgconfig/yaml-0.1.pc" <<EOF
Name: LibYAML
Description: YAML
Version: 0.2.5
Cflags: -I$prefix/include
Libs: -L$prefix/lib -lyaml
EOF
}

build_libjpeg_turbo() {
    cmake_static -DENABLE_SHARED=OFF -DENABLE_STATIC=ON -DWITH_TURBOJPEG=OFF -DWITH_JAVA=OFF \
        -DREQUIRE_SIMD=ON -DCMAKE_INSTALL_LIBDIR="$prefix/lib"
}

build_libpng() {
    cmake_static -DPNG_SHARED=OFF -DPNG_TESTS=OFF
}

build_libwebp() {
    cmake_static -DWEBP_BUILD_ANIM_UTILS=OFF -DWEBP_BUILD_CWEBP=OFF -DWEBP_BUILD_DWEBP=OFF \
        -DWEBP_BUILD_GIF2WEBP=OFF -DWEBP_BUILD_IMG2WEBP=OFF -DWEBP_BUILD_VWEBP=OFF \
        -DWEBP_BUILD_WEBPINFO=OFF -DWEBP_BUILD_WEBPMUX=OFF -DWEBP_BUILD_EXTRAS=OFF \
        -DWEBP_BUILD_LIBWEBPMUX=OFF
}

build_libogg() {
    smaller
    cmake_static -DBUILD_TESTING=OFF -DINSTALL_DOCS=OFF
}

build_libvorbis() {
    cmake_static
}

build_opus() {
    autotools --disable-doc --disable-extra-programs --disable-intrinsics
}

build_flac() {
    cmake_static -DBUILD_CXXLIBS=OFF -DBUILD_PROGRAMS=OFF -DBUILD_EXAMPLES=OFF -DBUILD_TESTING=OFF \
        -DBUILD_DOCS=OFF -DINSTALL_MANPAGES=OFF -DWITH_OGG=ON
}

build_libsndfile() {
    smaller
    cmake_static -DBUILD_PROGRAMS=OFF -DBUILD_EXAMPLES=OFF -DBUILD_TESTING=OFF -DENABLE_CPACK=OFF \
        -DENABLE_MPEG=OFF -DENABLE_EXTERNAL_LIBS=ON -DINSTALL_MANPAGES=OFF \
        -DENABLE_PACKAGE_CONFIG=OFF
}

# The library alone, without its assembler.
build_mpg123() {
    ./configure --quiet --host="$target" --prefix="$prefix" --disable-shared --enable-static \
        --disable-dependency-tracking --with-cpu=generic --with-audio=dummy --enable-modules=no \
        --disable-id3v2 --disable-icy --disable-feeder
    make -s -j"$jobs" src/libmpg123/libmpg123.la
    cp src/libmpg123/.libs/libmpg123.a "$prefix/lib"
    cp src/libmpg123/mpg123.h src/libmpg123/fmt123.h "$prefix/include"
    cp libmpg123.pc "$prefix/lib/pkgconfig"
}

# Flags of instruction sets are for some files. A check that links with them would have Zig build
# the C library once more.
build_soxr() {
    case $cpu in
    x86_64)
        set -- -DSIMD32_C_FLAGS=-msse -DSIMD32_FOUND=1 -DSIMD64_C_FLAGS=-mavx -DSIMD64_FOUND=1
        ;;
    *) set -- -DSIMD32_C_FLAGS= -DSIMD64_C_FLAGS= -DWITH_CR32S=OFF -DWITH_CR64S=OFF ;;
    esac
    cmake_static -DBUILD_TESTS=OFF -DBUILD_EXAMPLES=OFF -DWITH_OPENMP=OFF \
        -DWITH_LSR_BINDINGS=OFF "$@"
}

# The loader is opened if it is there.
build_vulkan_headers() {
    mkdir -p "$prefix/include"
    cp -R usr/include/vulkan usr/include/vk_video "$prefix/include"
}
