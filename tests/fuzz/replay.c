/* SPDX-License-Identifier: MIT */
/* main() of a fuzz target for compilers without libFuzzer: runs it on the named files, or without
 * any on the committed corpus: for fuzz_NAME it is corpus/NAME. */
#include "config.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The input is in memory of exactly its size, so that AddressSanitizer finds reads beyond it. */
static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) {
        perror(path);
        return 1;
    }
    long len = ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(len > 0 ? (size_t)len : 1);
    int failures = !bytes || len < 0 || fread(bytes, 1, (size_t)len, file) != (size_t)len;
    fclose(file);
    if (!failures) {
        LLVMFuzzerTestOneInput(bytes, (size_t)len);
    }
    free(bytes);
    return failures;
}

static int replay_folder(const char *folder)
{
    char path[PATH_BYTES];
    int failures = 0, count = 0;
    DIR *dir = opendir(folder);
    if (!dir) {
        perror(folder);
        return 1;
    }
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] != '.') {
            int len = snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
            failures += len < 0 || (size_t)len >= sizeof(path) || replay_file(path);
            count++;
        }
    }
    closedir(dir);
    printf("%d inputs in %s\n", count, folder);
    return failures + (count == 0);
}

int main(int argc, char **argv)
{
    const char *top = getenv("top_srcdir"), *name = strstr(argv[0], "fuzz_");
    char folder[PATH_BYTES];
    int failures = 0;
    for (int i = 1; i < argc; i++) {
        failures += replay_file(argv[i]);
    }
    if (argc == 1 && name) {
        int len = snprintf(folder, sizeof(folder), "%s/tests/fuzz/corpus/%s", top ? top : ".",
                           name + strlen("fuzz_"));
        failures += len < 0 || (size_t)len >= sizeof(folder) || replay_folder(folder);
    }
    return failures ? 1 : 0;
}
