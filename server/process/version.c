/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/process/version.h"

#include <stdio.h>

#include <llhttp.h>
#include <uv.h>
#include <zlib.h>

#include "hal/device.h"

void version_print(const char *program)
{
    struct buf devices;
    buf_init(&devices, 4096);
    hal_device_list(&devices);
    printf("%s %s\nsanitizers: %s\nlibraries: libuv %s, llhttp %d.%d.%d, zlib %s\n%.*s", program,
           PACKAGE_VERSION, PTED_SANITIZERS, uv_version_string(), LLHTTP_VERSION_MAJOR,
           LLHTTP_VERSION_MINOR, LLHTTP_VERSION_PATCH, zlibVersion(), SPAN_FMT(buf_span(&devices)));
    buf_fini(&devices);
}
