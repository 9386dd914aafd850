/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/api/api_metrics_priv.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/folder.h"
#include "server/process/version.h"

void api_metrics_put_build(struct api_metrics_page *page)
{
    prom_label(&page->prom, "version", span_str(PACKAGE_VERSION));
    if (*version_commit()) {
        prom_label(&page->prom, "commit", span_str(version_commit()));
    }
    prom_label(&page->prom, "compiler", span_str(__VERSION__));
    api_metrics_add(page, 1);
}

/* The fields of /proc/self/stat behind the name, which may hold anything: from the third one on. */
static bool read_stat(char text[1024], unsigned long long *out_start, long *out_pages)
{
    FILE *file = fopen("/proc/self/stat", "re");
    size_t len = file ? fread(text, 1, 1023, file) : 0;
    if (file) {
        fclose(file);
    }
    text[len] = '\0';
    const char *fields = strrchr(text, ')');
    return fields && sscanf(fields + 1,
                            " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
                            "%*d %*d %llu %*u %ld",
                            out_start, out_pages) == 2;
}

/* When the system started, in s since 1970; 0 if it does not say. */
static unsigned long long boot_time_s(void)
{
    char line[256];
    unsigned long long seconds = 0;
    FILE *file = fopen("/proc/stat", "re");
    while (file && fgets(line, sizeof(line), file) && sscanf(line, "btime %llu", &seconds) != 1) {
    }
    if (file) {
        fclose(file);
    }
    return seconds;
}

void api_metrics_put_start_time(struct api_metrics_page *page)
{
    char text[1024];
    unsigned long long ticks, boot_s = boot_time_s();
    long pages, hertz = sysconf(_SC_CLK_TCK);
    if (boot_s && hertz > 0 && read_stat(text, &ticks, &pages)) {
        prom_number(&page->prom, boot_s * 1000000 + ticks * 1000000 / (unsigned long)hertz,
                    API_METRICS_US);
    }
}

static uint64_t us_of(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_usec;
}

void api_metrics_put_cpu_time(struct api_metrics_page *page)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        prom_number(&page->prom, us_of(usage.ru_utime) + us_of(usage.ru_stime), API_METRICS_US);
    }
}

void api_metrics_put_resident(struct api_metrics_page *page)
{
    char text[1024];
    unsigned long long ticks;
    long pages, page_bytes = sysconf(_SC_PAGESIZE);
    if (page_bytes > 0 && read_stat(text, &ticks, &pages)) {
        api_metrics_add(page, (uint64_t)pages * (uint64_t)page_bytes);
    }
}

uint64_t api_metrics_open_files(void)
{
    uint64_t count = 0;
    DIR *folder = folder_open("/proc/self/fd");
    if (!folder) {
        return 0;
    }
    for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        count += entry->d_name[0] != '.';
    }
    closedir(folder);
    return count - 1; /* without the folder itself */
}

void api_metrics_put_open_files(struct api_metrics_page *page)
{
    api_metrics_add(page, page->open_files);
}

void api_metrics_put_max_files(struct api_metrics_page *page)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        api_metrics_add(page, limit.rlim_cur);
    }
}
