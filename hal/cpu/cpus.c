/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "hal/cpu/cpus.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CGROUP_ROOT "/sys/fs/cgroup"
#define CACHE_ROOT "/sys/devices/system/cpu/cpu0/cache"

static bool parse_decimal(struct span *text, uint64_t *out_value)
{
    size_t i = 0;
    uint64_t value = 0;
    for (; i < text->len && text->ptr[i] >= '0' && text->ptr[i] <= '9'; i++) {
        if (value > UINT32_MAX) {
            return false;
        }
        value = value * 10 + (uint64_t)(text->ptr[i] - '0');
    }
    *text = span_of(text->ptr + i, text->len - i);
    *out_value = value;
    return i > 0;
}

unsigned hal_cpu_parse_quota(struct span text)
{
    uint64_t quota, period;
    if (!parse_decimal(&text, &quota) || text.len == 0 || text.ptr[0] != ' ') {
        return 0;
    }
    text = span_of(text.ptr + 1, text.len - 1);
    if (!parse_decimal(&text, &period) || period == 0 || quota == 0) {
        return 0;
    }
    uint64_t cpus = (quota + period - 1) / period;
    return cpus < UINT_MAX ? (unsigned)cpus : 0;
}

static struct span read_file(const char *path, char *text, size_t size)
{
    ssize_t len = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        len = read(fd, text, size);
        close(fd);
    }
    return span_of(text, len > 0 ? (size_t)len : 0);
}

/* The path after "0::" in /proc/self/cgroup, terminated; "" if there is no version 2. */
static void read_cgroup(char *path, size_t size)
{
    char text[PATH_MAX];
    struct span rest = read_file("/proc/self/cgroup", text, sizeof(text));
    path[0] = '\0';
    while (rest.len > 0) {
        const uint8_t *newline = memchr(rest.ptr, '\n', rest.len);
        size_t len = newline ? (size_t)(newline - rest.ptr) : rest.len;
        if (len > 3 && memcmp(rest.ptr, "0::", 3) == 0 && len - 3 < size) {
            memcpy(path, rest.ptr + 3, len - 3);
            path[len - 3] = '\0';
            return;
        }
        size_t used = newline ? len + 1 : len;
        rest = span_of(rest.ptr + used, rest.len - used);
    }
}

/* The smallest quota from the process's own group up to the root; 0: none. */
static unsigned quota_cpus(void)
{
    char group[PATH_MAX], path[PATH_MAX + sizeof(CGROUP_ROOT "/cpu.max")], text[64];
    unsigned least = 0;
    read_cgroup(group, sizeof(group));
    for (;;) {
        snprintf(path, sizeof(path), CGROUP_ROOT "%s/cpu.max", group);
        unsigned cpus = hal_cpu_parse_quota(read_file(path, text, sizeof(text)));
        if (cpus && (least == 0 || cpus < least)) {
            least = cpus;
        }
        char *last = strrchr(group, '/');
        if (!last) {
            return least;
        }
        *last = '\0';
    }
}

static unsigned affinity_cpus(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) == 0) {
        return (unsigned)CPU_COUNT(&set);
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN); /* more CPUs than a cpu_set_t can name */
    return online > 0 ? (unsigned)online : 1;
}

unsigned hal_cpu_count(void)
{
    unsigned cpus = affinity_cpus();
    unsigned quota = quota_cpus();
    if (quota && quota < cpus) {
        cpus = quota;
    }
    return cpus ? cpus : 1;
}

/* ---- caches ---------------------------------------------------------------------------------- */

size_t hal_cpu_parse_cache(struct span text)
{
    uint64_t kilobytes;
    if (!parse_decimal(&text, &kilobytes) || text.len == 0 || text.ptr[0] != 'K') {
        return 0;
    }
    return (size_t)kilobytes << 10;
}

/* sysconf() knows caches in glibc alone. */
size_t hal_cpu_cache_bytes(void)
{
    size_t largest = 0;
    for (unsigned i = 0;; i++) {
        char path[sizeof(CACHE_ROOT) + 32], text[32];
        snprintf(path, sizeof(path), CACHE_ROOT "/index%u/size", i);
        struct span size = read_file(path, text, sizeof(text));
        if (size.len == 0) {
            return largest;
        }
        size_t bytes = hal_cpu_parse_cache(size);
        largest = bytes > largest ? bytes : largest;
    }
}
