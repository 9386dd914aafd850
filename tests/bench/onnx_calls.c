/* SPDX-License-Identifier: MIT */
/*
 * Calls a network some times with one thread of ONNX Runtime, whose library lies in its package for
 * Python, so that tests/bench/arm.py can count the instructions of a call.
 *
 * usage: onnx_calls LIBRARY NETWORK.onnx CALLS f32|i64 INPUT OUTPUT DIM...
 *
 * INPUT and OUTPUT are files of the numbers alone. The package has no header, so what is used of
 * the library's table of functions is declared here. Source: ONNX Runtime, onnxruntime_c_api.h: the
 * order of functions in struct OrtApi is part of its interface.
 */
#include "config.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API_VERSION 16
#define DIMS_MAX 8

typedef void (*call_f)(void); /* of the table; each has a type of its own */
struct base {
    const call_f *(*get)(uint32_t version);
    const char *(*version)(void);
};

/* Places in the table. */
enum {
    ERROR_MESSAGE = 2,
    CREATE_ENV = 3,
    CREATE_SESSION = 7,
    RUN = 9,
    CREATE_OPTIONS = 10,
    SET_THREADS = 24,
    INPUT_NAME = 36,
    OUTPUT_NAME = 37,
    CREATE_TENSOR = 49,
    TENSOR_DATA = 51,
    COUNT_NUMBERS = 64,
    TENSOR_SHAPE = 65,
    CREATE_MEMORY_INFO = 69,
    ALLOCATOR = 78,
};

/* Of CREATE_ENV: the level of warnings; of CREATE_MEMORY_INFO: an arena, the default. */
enum { WARNINGS = 2, ARENA = 1, DEFAULT = 0 };
enum { F32 = 1, I64 = 7 };

static const call_f *api;

#define CALL(place, types, ...) check(((void *(*)types)api[place])(__VA_ARGS__))

static void die(const char *what)
{
    fprintf(stderr, "onnx_calls: %s\n", what);
    exit(1);
}

static void check(void *failure)
{
    if (failure) {
        die(((const char *(*)(const void *))api[ERROR_MESSAGE])(failure));
    }
}

static void open_library(const char *path)
{
    void *library = dlopen(path, RTLD_NOW);
    if (!library) {
        die(dlerror());
    }
    void *symbol = dlsym(library, "OrtGetApiBase");
    if (!symbol) {
        die("the library has no OrtGetApiBase()");
    }
    const struct base *(*get_base)(void);
    memcpy(&get_base, &symbol, sizeof(symbol));
    api = get_base()->get(API_VERSION);
    if (!api) {
        die("the library is older than its interface 16");
    }
}

static void *read_file(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) {
        die(path);
    }
    *bytes = (size_t)ftell(file);
    rewind(file);
    void *data = malloc(*bytes + 1);
    if (!data || fread(data, 1, *bytes, file) != *bytes) {
        die(path);
    }
    fclose(file);
    return data;
}

struct network {
    void *session, *input;
    char *input_name, *output_name;
};

static void open_network(struct network *n, const char *path)
{
    void *env, *options, *allocator;
    CALL(CREATE_ENV, (int, const char *, void **), WARNINGS, "onnx_calls", &env);
    CALL(CREATE_OPTIONS, (void **), &options);
    CALL(SET_THREADS, (void *, int), options, 1);
    CALL(CREATE_SESSION, (void *, const char *, void *, void **), env, path, options, &n->session);
    CALL(ALLOCATOR, (void **), &allocator);
    CALL(INPUT_NAME, (void *, size_t, void *, char **), n->session, 0, allocator, &n->input_name);
    CALL(OUTPUT_NAME, (void *, size_t, void *, char **), n->session, 0, allocator, &n->output_name);
}

static void open_input(struct network *n, int type, const char *path, char **dims, int count)
{
    int64_t shape[DIMS_MAX];
    size_t bytes;
    void *info, *data = read_file(path, &bytes);
    for (int i = 0; i < count; i++) {
        shape[i] = strtoll(dims[i], NULL, 10);
    }
    CALL(CREATE_MEMORY_INFO, (int, int, void **), ARENA, DEFAULT, &info);
    CALL(CREATE_TENSOR, (void *, void *, size_t, const int64_t *, size_t, int, void **), info, data,
         bytes, shape, (size_t)count, type, &n->input);
}

static void *run(const struct network *n)
{
    const char *input_name = n->input_name, *output_name = n->output_name;
    void *input = n->input, *output = NULL;
    CALL(RUN,
         (void *, void *, const char *const *, void **, size_t, const char *const *, size_t,
          void **),
         n->session, NULL, &input_name, &input, 1, &output_name, 1, &output);
    return output;
}

static void write_output(void *output, const char *path)
{
    void *shape;
    float *data;
    size_t count;
    CALL(TENSOR_SHAPE, (void *, void **), output, &shape);
    CALL(COUNT_NUMBERS, (void *, size_t *), shape, &count);
    CALL(TENSOR_DATA, (void *, float **), output, &data);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, sizeof(*data), count, file) != count || fclose(file) != 0) {
        die(path);
    }
}

int main(int argc, char **argv)
{
    struct network n;
    void *output = NULL;
    if (argc < 8 || argc > 7 + DIMS_MAX) {
        die("usage: onnx_calls LIBRARY NETWORK.onnx CALLS f32|i64 INPUT OUTPUT DIM...");
    }
    open_library(argv[1]);
    open_network(&n, argv[2]);
    open_input(&n, strcmp(argv[4], "f32") == 0 ? F32 : I64, argv[5], argv + 7, argc - 7);
    for (long calls = strtol(argv[3], NULL, 10); calls > 0; calls--) {
        output = run(&n);
    }
    write_output(output, argv[6]);
    return 0;
}
