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

/* ---- control groups -------------------------------------------------------------------------- */

/* Version 2 has one tree of groups for all controllers, and names none. Version 1 has one for each,
 * or for several, which has a link of this name. */
struct tree {
    const char *root, *controller;
};

static const struct tree trees[] = {{CGROUP_ROOT, ""}, {CGROUP_ROOT "/cpu", "cpu"}};

/* Removes what is before the first |end|, and |end|, from |text|, and returns it; without |end|,
 * all. */
static struct span cut(struct span *text, char end)
{
    const uint8_t *at = text->len > 0 ? memchr(text->ptr, end, text->len) : NULL;
    size_t len = at ? (size_t)(at - text->ptr) : text->len, used = at ? len + 1 : len;
    struct span part = span_of(text->ptr, len);
    *text = span_of(text->ptr + used, text->len - used);
    return part;
}

static bool has_word(struct span list, const char *word)
{
    do {
        if (span_equal(cut(&list, ','), span_str(word))) {
            return true;
        }
    } while (list.len > 0);
    return false;
}

/* The process's group in |tree|, from lines ID:CONTROLLER,...:PATH; "" if there is none. */
static void read_group(const struct tree *tree, char *path, size_t size)
{
    char text[PATH_MAX];
    struct span rest = read_file("/proc/self/cgroup", text, sizeof(text));
    path[0] = '\0';
    while (rest.len > 0) {
        struct span line = cut(&rest, '\n');
        (void)cut(&line, ':');
        if (has_word(cut(&line, ':'), tree->controller) && line.len < size) {
            memcpy(path, line.ptr, line.len);
            path[line.len] = '\0';
            return;
        }
    }
}

/* The text of a file of |group| without its newline, from |text| on. Returns its length. */
static size_t read_limit(const struct tree *tree, const char *group, const char *name, char *text,
                         size_t size)
{
    char path[2 * PATH_MAX];
    snprintf(path, sizeof(path), "%s%s/%s", tree->root, group, name);
    struct span all = read_file(path, text, size);
    return cut(&all, '\n').len;
}

static unsigned group_cpus(const struct tree *tree, const char *group)
{
    char text[64];
    if (!tree->controller[0]) {
        return hal_cpu_parse_quota(
            span_of(text, read_limit(tree, group, "cpu.max", text, sizeof(text))));
    }
    size_t len = read_limit(tree, group, "cpu.cfs_quota_us", text, sizeof(text) / 2);
    text[len++] = ' ';
    len += read_limit(tree, group, "cpu.cfs_period_us", text + len, sizeof(text) - len);
    return hal_cpu_parse_quota(span_of(text, len));
}

/* The smallest quota from the process's own group up to the root; 0: none. */
static unsigned tree_cpus(const struct tree *tree)
{
    char group[PATH_MAX];
    unsigned least = 0;
    read_group(tree, group, sizeof(group));
    for (;;) {
        unsigned cpus = group_cpus(tree, group);
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

/* ---- the number ------------------------------------------------------------------------------ */

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
    for (size_t i = 0; i < sizeof(trees) / sizeof(trees[0]); i++) {
        unsigned quota = tree_cpus(&trees[i]);
        cpus = quota && quota < cpus ? quota : cpus;
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
    return kilobytes <= SIZE_MAX >> 10 ? (size_t)kilobytes << 10 : 0;
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
