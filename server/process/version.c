/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/process/version.h"

#include <stdio.h>

#include <llhttp.h>
#include <nghttp2/nghttp2ver.h>
#include <uv.h>
#include <zlib.h>

#include "hal/device.h"
#include "server/process/library.h"

/* Of configure; those of pictures and sound are missing --without-media. */
static const char *const opened[] = {
    PTED_SONAME_OPENSSL,  PTED_SONAME_CURL,   PTED_SONAME_PCRE2,
    PTED_SONAME_UTF8PROC, PTED_SONAME_YAML,
#ifdef PTED_SONAME_JPEG
    PTED_SONAME_JPEG,     PTED_SONAME_PNG,    PTED_SONAME_WEBP,
    PTED_SONAME_SNDFILE,  PTED_SONAME_MPG123, PTED_SONAME_SOXR,
#endif
};

static const char *build_commit = "";

void version_set_commit(const char *commit)
{
    build_commit = commit;
}

const char *version_commit(void)
{
    return build_commit;
}

static void print_opened(void)
{
    for (size_t i = 0; i < sizeof(opened) / sizeof(opened[0]); i++) {
        printf("%s%s%s", i > 0 ? ", " : LIBRARY_WAY ": ", opened[i],
               library_is_there(opened[i]) ? "" : " (not found)");
    }
    putchar('\n');
}

void version_print(const char *program)
{
    struct buf devices;
    buf_init(&devices, 4096);
    hal_device_list(&devices);
    printf("%s %s\n", program, PACKAGE_VERSION);
    if (*build_commit) {
        printf("commit: %s\n", build_commit);
    }
    printf("sanitizers: %s\nlibraries: libuv %s, llhttp %d.%d.%d, nghttp2 %s, zlib %s\n",
           PTED_SANITIZERS, uv_version_string(), LLHTTP_VERSION_MAJOR, LLHTTP_VERSION_MINOR,
           LLHTTP_VERSION_PATCH, NGHTTP2_VERSION, zlibVersion());
    print_opened();
    printf("%.*s", SPAN_FMT(buf_span(&devices)));
    buf_fini(&devices);
}
