/* SPDX-License-Identifier: MIT */
/*
 * main() of a fuzz target for a text format, for "make check": runs it on its corpus and on
 * MUTATE_ROUNDS damaged copies, the same ones in each run. The corpus of mutate_NAME is
 * corpus/NAME.
 */
#include "config.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* local.mk may set the target's own. */
#ifndef MUTATE_WORDS
#define MUTATE_WORDS "tests/fuzz/words_json.def"
#define MUTATE_ROUNDS 200000
#endif
#define SEEDS_MAX 64
#define INPUT_BYTES_MAX 8192
#define DAMAGES_MAX 6
#define PATH_BYTES 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    size_t size;
    uint8_t bytes[INPUT_BYTES_MAX];
};

/* Words that are likely to cause trouble. */
static const char *const words[] = {
#include MUTATE_WORDS
};

static struct input seeds[SEEDS_MAX];
static size_t seed_count;
static uint64_t random_state = 0x9e3779b97f4a7c15;

static size_t random_below(size_t limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (size_t)((random_state >> 32) % limit);
}

/* Replaces |removed| bytes at |where| by |len| others; does nothing if the result is too long. */
static void splice(struct input *input, size_t where, size_t removed, const void *bytes, size_t len)
{
    size_t tail = input->size - where - removed;
    if (where + len + tail > INPUT_BYTES_MAX) {
        return;
    }
    memmove(input->bytes + where + len, input->bytes + where + removed, tail);
    memcpy(input->bytes + where, bytes, len);
    input->size = where + len + tail;
}

static void damage(struct input *input)
{
    size_t where = random_below(input->size + 1), left = input->size - where;
    size_t removed = left ? random_below(left < 16 ? left + 1 : 16) : 0;
    const char *word = words[random_below(sizeof(words) / sizeof(words[0]))];
    const struct input *other = &seeds[random_below(seed_count)];
    uint8_t byte = (uint8_t)random_below(256);
    switch (random_below(6)) {
    case 0:
        splice(input, where, left ? 1 : 0, &byte, 1);
        break;
    case 1:
        splice(input, where, removed, "", 0);
        break;
    case 2:
        splice(input, where, 0, word, strlen(word));
        break;
    case 3:
        splice(input, where, removed, word, strlen(word));
        break;
    case 4: { /* a piece of another seed */
        size_t from = random_below(other->size + 1);
        splice(input, where, removed, other->bytes + from, random_below(other->size - from + 1));
        break;
    }
    default:
        input->size = random_below(8) ? input->size : where;
    }
}

/* Runs on memory of exactly the input's size, so that AddressSanitizer finds reads beyond it. */
static void run(const struct input *input)
{
    uint8_t *bytes = malloc(input->size ? input->size : 1);
    if (!bytes) {
        abort();
    }
    memcpy(bytes, input->bytes, input->size);
    LLVMFuzzerTestOneInput(bytes, input->size);
    free(bytes);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int read_seed(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || seed_count == SEEDS_MAX) {
        perror(path);
        return 1;
    }
    struct input *seed = &seeds[seed_count++];
    seed->size = fread(seed->bytes, 1, sizeof(seed->bytes), file);
    fclose(file);
    return 0;
}

/* Sorted by name, so that a run does not depend on the file system. */
static int read_seeds(const char *folder)
{
    char *names[SEEDS_MAX];
    size_t count = 0;
    int failures = 0;
    DIR *dir = opendir(folder);
    if (!dir) {
        perror(folder);
        return 1;
    }
    for (struct dirent *entry; (entry = readdir(dir)) && count < SEEDS_MAX;) {
        if (entry->d_name[0] != '.') {
            names[count] = strdup(entry->d_name);
            failures += !names[count];
            count += names[count] != NULL;
        }
    }
    closedir(dir);
    qsort(names, count, sizeof(names[0]), by_name);
    for (size_t i = 0; i < count; i++) {
        char path[PATH_BYTES];
        int len = snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        failures += len < 0 || (size_t)len >= sizeof(path) || read_seed(path);
        free(names[i]);
    }
    return failures + (seed_count == 0);
}

int main(int argc, char **argv)
{
    const char *top = getenv("top_srcdir"), *name = strstr(argv[0], "mutate_");
    char folder[PATH_BYTES];
    static struct input input;
    if (argc != 1 || !name) {
        fprintf(stderr, "usage: mutate_NAME\n");
        return 64;
    }
    int len = snprintf(folder, sizeof(folder), "%s/tests/fuzz/corpus/%s", top ? top : ".",
                       name + strlen("mutate_"));
    if (len < 0 || (size_t)len >= sizeof(folder) || read_seeds(folder)) {
        return 1;
    }
    for (size_t i = 0; i < seed_count; i++) {
        run(&seeds[i]);
    }
    for (int i = 0; i < MUTATE_ROUNDS; i++) {
        input = seeds[random_below(seed_count)];
        for (size_t count = 1 + random_below(DAMAGES_MAX); count > 0; count--) {
            damage(&input);
        }
        run(&input);
    }
    printf("%zu inputs in %s, %d damaged copies\n", seed_count, folder, MUTATE_ROUNDS);
    return 0;
}
