/* SPDX-License-Identifier: MIT */
/*
 * libpted: programs that ExecuTorch has exported (`.pte`), loaded and called in this process.
 *
 *     pted_device_open      a processor or a GPU, and the memory for calls
 *     pted_program_load     a file, or bytes in memory; checked, then compiled for the device
 *     pted_program_method   what it can do, and what each method takes and gives
 *     pted_call_new         a call: inputs, pted_call_run(), outputs
 *     pted_state_new        what calls remember from one to the next: a cache of keys and values
 *     pted_profile_new      where the time of calls goes, by layers and operators
 *
 * A language model is a program whose methods take token ids and give logits. The library has no
 * tokenizer, no server and no cards. It opens no file but those that it is given, and data files
 * beside a program.
 *
 * Errors. A function that can fail returns enum pted_status, and takes a struct pted_error last,
 * which may be NULL; after PTED_OK it has not changed. Its text says what is wrong, in which place,
 * what was expected and what was given. A damaged or hostile file is an error, and so is a wrong
 * index or a call in the wrong phase. A pointer that must not be NULL is not checked. If the
 * library finds its own data broken, it prints a line on standard error and calls abort().
 *
 * Objects. X_new(), X_open() and X_load() give an object to the caller, who ends it with X_free().
 * Objects may be freed in any order: what is still needed stays. A method, an info and all strings
 * belong to their program. X_free(NULL) does nothing.
 *
 * Threads. Devices, programs, methods and infos may be used on any thread, also at the same time. A
 * call belongs to one thread at a time, and so does a profile; so do the functions of a state,
 * except that calls of it may be submitted on different threads while none of those functions runs.
 * pted_call_cancel() may be called on any thread. The library makes threads of its own, which block
 * all signals that have no cause in the thread itself.
 *
 * The process. The library installs no signal handler unless PTED_FILES_GUARDED asks for one,
 * writes to no stream, changes no setting of the process, and reads one variable of the
 * environment: $PTED_CPU, the cpu_level of devices whose options have none (and, of a GPU,
 * variables for tests whose names begin with PTED_VULKAN_). After fork() the child must not use it.
 *
 * Versions. Numbers of enums and the layout of structs stay. A struct of options begins with its
 * size: it may get members at its end, and programs that were compiled earlier leave them out. A
 * library that does not know a member refuses options in which it is not zero.
 * Functions are added, not changed; the symbols of version 0.1 have the version PTED_0.1.
 */
#ifndef PTED_LIB_PTED_H
#define PTED_LIB_PTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PTED_API __attribute__((visibility("default")))
#define PTED_CHECKED PTED_API __attribute__((warn_unused_result))
#else
#define PTED_API
#define PTED_CHECKED
#endif

#define PTED_VERSION_MAJOR 0
#define PTED_VERSION_MINOR 1
#define PTED_VERSION_PATCH 0

/* Returns the version of the library that runs, "0.1.0"; the numbers above are those of the
 * header. */
PTED_API const char *pted_version(void);

/* ---- errors ---------------------------------------------------------------------------------- */

enum pted_status {
    PTED_OK = 0,
    PTED_INVALID = 1,      /* correct the argument that the text names */
    PTED_NOT_FOUND = 2,    /* name something that exists */
    PTED_TOO_LARGE = 3,    /* it can never fit: give less, or raise the limit that the text names */
    PTED_UNSUPPORTED = 4,  /* this library or this device cannot do it */
    PTED_EXHAUSTED = 5,    /* no memory now: free calls, or wait for some, and try again */
    PTED_CANCELLED = 6,    /* pted_call_cancel() was called */
    PTED_CORRUPT = 7,      /* the file is damaged: replace it */
    PTED_UNAVAILABLE = 8,  /* a file changed while it was in use, or the device was lost */
    PTED_SYSTEM_ERROR = 9, /* the text says what the operating system said */
    PTED_INTERNAL = 10,    /* a mistake in the library: report it */
};

#define PTED_ERROR_TEXT_MAX 508

struct pted_error {
    enum pted_status status;
    char text[PTED_ERROR_TEXT_MAX]; /* always terminated; a text that is too long is cut */
};

/* Returns a general text for |status|: "invalid argument". */
PTED_API const char *pted_status_text(enum pted_status status);

/* ---- devices --------------------------------------------------------------------------------- */

struct pted_device;

/* Zero in a member means: choose. Begin with PTED_DEVICE_OPTIONS_INIT. */
struct pted_device_options {
    size_t size;           /* sizeof(struct pted_device_options) */
    const char *name;      /* "cpu", which is the default; "auto": a GPU if there is one; or a name
                              that `pte devices` prints, such as "vulkan:0" */
    const char *cpu_level; /* highest instruction set: "generic", "avx2", "avx512", ...; it is one
                              for all devices that are open in the process */
    uint32_t workers;      /* threads that compute; 0: as many as the process may use */
    uint32_t nice;         /* added to the niceness of these threads */
    size_t memory_bytes;   /* for inputs, outputs and intermediate values of all calls in flight; it
                              takes memory only as it is used. 0: 4 GiB, or half of what there is */
};

#define PTED_DEVICE_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(struct pted_device_options), NULL, NULL, 0, 0, 0                                    \
    }

/* |options| may be NULL. PTED_NOT_FOUND: nothing has such a name; PTED_UNSUPPORTED: this machine
 * has no such device. */
PTED_CHECKED enum pted_status pted_device_open(const struct pted_device_options *options,
                                               struct pted_device **out_device,
                                               struct pted_error *err);

/* Waits for its threads, once nothing else needs the device. Not in a pted_done_f. */
PTED_API void pted_device_free(struct pted_device *device);

/* Returns "cpu" or "vulkan:0", which opens the same device again. */
PTED_API const char *pted_device_name(const struct pted_device *device);

/* Returns "avx512_vnni, 4 workers", or the name of a GPU; for people. */
PTED_API const char *pted_device_description(const struct pted_device *device);

/* Tells whether it is the processor, which uses the memory of callers where it lies. */
PTED_API bool pted_device_is_cpu(const struct pted_device *device);

/* Returns the number of threads that compute; 1 of a GPU. */
PTED_API uint32_t pted_device_workers(const struct pted_device *device);

/* What all workers of a device reach together, each in a loop that does nothing else: the bounds of
 * what a method can reach. This struct never changes. */
struct pted_peaks {
    double float32_macs, bfloat16_macs, int8_macs; /* multiply-adds a second; 0: no instructions */
    double read_bytes;                             /* bytes of memory a second */
};

/* Measures the peaks now, which takes some tenths of a second and 192 to 512 MiB; nothing else
 * should run on the device. PTED_UNSUPPORTED: the device is not the processor. */
PTED_CHECKED enum pted_status pted_device_measure_peaks(struct pted_device *device,
                                                        struct pted_peaks *out_peaks,
                                                        struct pted_error *err);

/* ---- programs -------------------------------------------------------------------------------- */

struct pted_program;

/* How the bytes of a program and of its data files come into memory. */
enum pted_files {
    /* They are read (bytes in memory: copied). Afterwards nobody can change them. */
    PTED_FILES_READ = 0,
    /* They are mapped (bytes in memory: borrowed until the program, its calls and its states have
     * been freed; they begin at a multiple of 64 bytes and do not change). Loading takes less
     * memory, and processes share it. Replace a file by renaming another one over it: calls of a
     * program whose file is written to fail with PTED_UNAVAILABLE, and if a file is cut short the
     * system may end the process with SIGBUS. */
    PTED_FILES_MAPPED = 1,
    /* They are mapped, and the library handles SIGBUS of its mappings, so that calls fail. The
     * handler is installed at the first such load and stays; it passes all other faults on to the
     * handler that was there before. For programs whose other parts leave SIGBUS alone. */
    PTED_FILES_GUARDED = 2,
};

/* How floats are computed. A device that lacks a mode uses the one above it. */
enum pted_precision {
    PTED_PRECISION_EXACT = 0, /* float32, sums of products as the operators define them */
    PTED_PRECISION_FAST = 1,  /* float32, also by algorithms with larger rounding errors */
    PTED_PRECISION_BF16 = 2,  /* products of bfloat16 numbers, summed in float32 */
};

/* An intermediate value of a method, as the file computes it: a tensor that follows from the inputs
 * or the state. Valid during the call that gets it; it may get members at its end. */
struct pted_value {
    const char *method;
    const char *name;   /* layer, operator, number: "stem.0.conv.12"; "conv.12" without weights */
    const char *origin; /* "net.py:8: return self.lin(x)", "handle 7", or "" */
    const char *type;   /* "f32[s1,8]" */
};

/* Is |value| wanted as an output? It is called for each value of each method, in the order of the
 * file, on the thread that loads, and must not call the library. */
typedef bool pted_keep_f(const struct pted_value *value, void *arg);

/* Begin with PTED_LOAD_OPTIONS_INIT. */
struct pted_load_options {
    size_t size; /* sizeof(struct pted_load_options) */
    enum pted_files files;
    enum pted_precision precision;
    /* Data files (`.ptd`: weights, adapters) to search, at most 64. None: if a program names data
     * that it lacks, NAME.ptd and NAME.*.ptd beside NAME.pte, then _default_external_constant.ptd,
     * then, if there is no other program in the folder, its other data files. */
    const char *const *data_paths;
    size_t data_count;
    /* Chooses intermediate values that become outputs of their methods, behind their own: for a
     * look inside. Operators are not joined across such a value, so the method is slower. NULL:
     * none. */
    pted_keep_f *keep;
    void *keep_arg;
};

#define PTED_LOAD_OPTIONS_INIT                                                                     \
    {                                                                                              \
        sizeof(struct pted_load_options), PTED_FILES_READ, PTED_PRECISION_FAST, NULL, 0, NULL,     \
            NULL                                                                                   \
    }

/*
 * Loads the file at |path|. |options| may be NULL. PTED_CORRUPT: it is damaged. A method that needs
 * something this library lacks is kept with the reason, and the other methods can be called: see
 * pted_method_verify(). Takes from a millisecond to seconds, for large weights.
 */
PTED_CHECKED enum pted_status pted_program_load(struct pted_device *device, const char *path,
                                                const struct pted_load_options *options,
                                                struct pted_program **out_program,
                                                struct pted_error *err);

/* Does the same for a program of |size| bytes in memory. Only |options->data_paths| are searched
 * for data. */
PTED_CHECKED enum pted_status pted_program_load_memory(struct pted_device *device,
                                                       const void *bytes, size_t size,
                                                       const struct pted_load_options *options,
                                                       struct pted_program **out_program,
                                                       struct pted_error *err);
PTED_API void pted_program_free(struct pted_program *program);

/* Returns the most bytes that a state of it keeps between calls; 0: it has no mutable buffers, and
 * needs no states. A call that reads old rows of a buffer after it has written new ones has a copy
 * of that buffer meanwhile, which is not counted here. */
PTED_API size_t pted_program_state_bytes(struct pted_program *program);

/* ---- methods --------------------------------------------------------------------------------- */

struct pted_method;

/* Returns the methods in the order of the file; NULL: |index| is too large. */
PTED_API size_t pted_program_method_count(const struct pted_program *program);
PTED_API const struct pted_method *pted_program_method(const struct pted_program *program,
                                                       size_t index);

/* Finds the method |name|; NULL: "forward", or the only one. PTED_NOT_FOUND. */
PTED_CHECKED enum pted_status pted_program_find_method(const struct pted_program *program,
                                                       const char *name,
                                                       const struct pted_method **out_method,
                                                       struct pted_error *err);

PTED_API const char *pted_method_name(const struct pted_method *method);

/* Returns "(float32[?,128]) -> (float32[?,10])" */
PTED_API const char *pted_method_signature(const struct pted_method *method);

/* Can it be called? The error says what it needs. Its inputs and outputs are known anyway. */
PTED_CHECKED enum pted_status pted_method_verify(const struct pted_method *method,
                                                 struct pted_error *err);

/* Is this one of the methods by which exporters say something about a program, such as
 * get_max_seq_len: without inputs, and with the same outputs each time? */
PTED_API bool pted_method_is_constant(const struct pted_method *method);

/* ---- inputs and outputs of methods ----------------------------------------------------------- */

/* An input or an output as the file declares it. */
struct pted_info;

enum pted_kind {
    PTED_KIND_NONE = 0, /* a place without a value */
    PTED_KIND_TENSOR = 1,
    PTED_KIND_INT = 2,    /* int64_t */
    PTED_KIND_FLOAT = 3,  /* double */
    PTED_KIND_BOOL = 4,   /* bool */
    PTED_KIND_STRING = 5, /* bytes */
};

/* Element types of tensors. The numbers are those of PyTorch's ScalarType. */
enum pted_dtype {
    PTED_UINT8 = 0,
    PTED_INT8 = 1,
    PTED_INT16 = 2,
    PTED_INT32 = 3,
    PTED_INT64 = 4,
    PTED_FLOAT16 = 5,
    PTED_FLOAT32 = 6,
    PTED_FLOAT64 = 7,
    PTED_BOOL = 11, /* a byte, 0 or 1 */
    PTED_BFLOAT16 = 15,
    PTED_UINT16 = 27,
    PTED_UINT32 = 28,
    PTED_UINT64 = 29,
};

#define PTED_RANK_MAX 16

/* Returns "float32"; NULL: there is no such type. */
PTED_API const char *pted_dtype_name(enum pted_dtype dtype);

/* Returns the bytes of an element; 0: there is no such type. */
PTED_API size_t pted_dtype_bytes(enum pted_dtype dtype);

PTED_API size_t pted_method_input_count(const struct pted_method *method);

/* Count the outputs: its own ones and, behind them, values that are kept (pted_keep_f); and these
 * alone. */
PTED_API size_t pted_method_output_count(const struct pted_method *method);
PTED_API size_t pted_method_kept_count(const struct pted_method *method);

/* Returns NULL: |index| is too large. */
PTED_API const struct pted_info *pted_method_input(const struct pted_method *method, size_t index);
PTED_API const struct pted_info *pted_method_output(const struct pted_method *method, size_t index);

/* Finds the index of the input or output that is called |name|, or "input_0", "output_0"; false:
 * none is. */
PTED_API bool pted_method_find_input(const struct pted_method *method, const char *name,
                                     size_t *out_index);
PTED_API bool pted_method_find_output(const struct pted_method *method, const char *name,
                                      size_t *out_index);

PTED_API const char *pted_info_name(const struct pted_info *info);
PTED_API enum pted_kind pted_info_kind(const struct pted_info *info);

/* Call only for a tensor. A dim that varies is at most what the file declares, and may be less; dim
 * |dim| below the rank, else 0 and false. */
PTED_API enum pted_dtype pted_info_dtype(const struct pted_info *info);
PTED_API size_t pted_info_rank(const struct pted_info *info);
PTED_API int64_t pted_info_dim(const struct pted_info *info, size_t dim);
PTED_API bool pted_info_dim_varies(const struct pted_info *info, size_t dim);

/* Has the exporter fixed the value of a scalar? As an input only that value is taken, and it may be
 * left out. */
PTED_API bool pted_info_is_fixed(const struct pted_info *info);

/* ---- shapes before a call -------------------------------------------------------------------- */

/* Dims of a tensor. This struct never changes. */
struct pted_shape {
    uint32_t rank;
    int64_t dims[PTED_RANK_MAX];
};

/* What is known of an output before it is computed. This struct never changes. */
struct pted_output_shape {
    struct pted_shape shape; /* of a tensor; rank 0 of other kinds */
    size_t bytes;            /* of a tensor with that shape */
    uint32_t open_dims;      /* bit d: dim d depends on data, and is at most shape.dims[d] */
};

/*
 * Finds the shapes of all outputs for inputs with these shapes: |inputs| by input, NULL for those
 * that are no tensors; |outputs| by output. Nothing is run or planned. PTED_INVALID: the method
 * does not take such inputs.
 */
PTED_CHECKED enum pted_status pted_method_output_shapes(const struct pted_method *method,
                                                        const struct pted_shape *const *inputs,
                                                        struct pted_output_shape *outputs,
                                                        struct pted_error *err);

/*
 * Chooses shapes that the method takes, for a trial or a measurement: a batch is 1, and other dims
 * are at their upper bounds, except that in a method with state inputs of integers are one step
 * long. |given|: by input the shape that it has to have, or NULL; the others are chosen to match.
 * |given| itself may be NULL. |shapes|: by input, rank 0 if it is no tensor. PTED_INVALID: there
 * are none.
 */
PTED_CHECKED enum pted_status pted_method_example_shapes(const struct pted_method *method,
                                                         const struct pted_shape *const *given,
                                                         struct pted_shape *shapes,
                                                         struct pted_error *err);

/* ---- states ---------------------------------------------------------------------------------- */

/*
 * The mutable buffers of a program for one sequence of calls: counters, caches of keys and values.
 * Calls with the same state run in the order in which they were submitted, one after the other, and
 * each sees what the one before it wrote. A call that fails or is cancelled leaves the state as it
 * was. A program has as many states as are made. A call without a state begins with the initial
 * content, and what it writes is dropped.
 */
struct pted_state;

PTED_CHECKED enum pted_status pted_state_new(struct pted_program *program,
                                             struct pted_state **out_state, struct pted_error *err);
PTED_API void pted_state_free(struct pted_state *state);

/* Gives the state its initial content again. PTED_INVALID: calls of it are in flight. */
PTED_CHECKED enum pted_status pted_state_reset(struct pted_state *state, struct pted_error *err);

/* Returns the bytes of memory that it takes now. No call of it is in flight. */
PTED_API size_t pted_state_bytes(const struct pted_state *state);

/* ---- calls ----------------------------------------------------------------------------------- */

/*
 * One call of a method. It is filled with inputs, then run, or submitted and waited for; then its
 * outputs can be read until it is reset or freed. Several calls may be in flight at a time, of one
 * method or of several: submit them all, then wait for each. After a few calls of the same dims
 * nothing is allocated from the heap.
 */
struct pted_call;

/* A tensor in memory. This struct never changes. */
struct pted_tensor {
    void *data;   /* the element whose indices are all 0 */
    size_t bytes; /* of memory from |data| on */
    enum pted_dtype dtype;
    uint32_t rank;          /* at most PTED_RANK_MAX; 0: one element */
    const int64_t *dims;    /* |rank| of them */
    const int64_t *strides; /* likewise, in elements, none negative; NULL: packed and row-major */
};

/* Fails with PTED_UNSUPPORTED, for example, if the method cannot be called: see
 * pted_method_verify(). */
PTED_CHECKED enum pted_status pted_call_new(const struct pted_method *method,
                                            struct pted_call **out_call, struct pted_error *err);

/* Cancels a call in flight and waits for it. Never call it in a pted_done_f. */
PTED_API void pted_call_free(struct pted_call *call);

/* Takes inputs again, without those that it had; its state stays, and outputs go to memory of the
 * call again. PTED_INVALID: it is in flight. */
PTED_CHECKED enum pted_status pted_call_reset(struct pted_call *call, struct pted_error *err);

/* |state| is of the method's program; NULL: none. Before the call is run. */
PTED_CHECKED enum pted_status pted_call_set_state(struct pted_call *call, struct pted_state *state,
                                                  struct pted_error *err);

/*
 * Gives an input, once. PTED_INVALID: the method takes another type, other dims, or needs more
 * bytes than there are.
 *
 * A copied tensor may change when the function has returned. A borrowed one is read until the call
 * has ended, and must not change before; on a device that is not the processor it is copied at
 * once. It is used where it lies if it is packed, at a multiple of its element's size, and packed
 * by the device otherwise. For an allocated one the call gives the memory and sets |data| and
 * |bytes|: write the elements there, packed, before the call runs; its |strides| must be NULL.
 */
PTED_CHECKED enum pted_status pted_call_copy_input(struct pted_call *call, size_t index,
                                                   const struct pted_tensor *tensor,
                                                   struct pted_error *err);
PTED_CHECKED enum pted_status pted_call_borrow_input(struct pted_call *call, size_t index,
                                                     const struct pted_tensor *tensor,
                                                     struct pted_error *err);
PTED_CHECKED enum pted_status pted_call_allocate_input(struct pted_call *call, size_t index,
                                                       struct pted_tensor *tensor,
                                                       struct pted_error *err);
PTED_CHECKED enum pted_status pted_call_set_int(struct pted_call *call, size_t index, int64_t value,
                                                struct pted_error *err);
PTED_CHECKED enum pted_status pted_call_set_float(struct pted_call *call, size_t index,
                                                  double value, struct pted_error *err);
PTED_CHECKED enum pted_status pted_call_set_bool(struct pted_call *call, size_t index, bool value,
                                                 struct pted_error *err);
PTED_CHECKED enum pted_status pted_call_set_string(struct pted_call *call, size_t index,
                                                   const char *text, size_t len,
                                                   struct pted_error *err);

/*
 * Output |index|, a tensor, is written to |data|, |bytes| of memory at a multiple of 64 bytes that
 * nothing else uses until the call has ended. Too few bytes: the call fails with PTED_INVALID or
 * PTED_TOO_LARGE. PTED_UNSUPPORTED: the device is not the processor. Before the call is run.
 */
PTED_CHECKED enum pted_status pted_call_place_output(struct pted_call *call, size_t index,
                                                     void *data, size_t bytes,
                                                     struct pted_error *err);

/* Runs the call, partly on this thread, and returns at its end. PTED_EXHAUSTED: it did not
 * begin, and may be run again with the inputs that it has; if it had to wait for other calls of its
 * state, reset it first. */
PTED_CHECKED enum pted_status pted_call_run(struct pted_call *call, struct pted_error *err);

/*
 * Called at the end of a call, on a thread of the library or on the one that submits, before
 * pted_call_wait() returns. It may read outputs and submit other calls; one that ends at once
 * is over before pted_call_submit() returns, so a long chain of them takes stack. It must not
 * block, and must neither wait for nor free anything of the library.
 */
typedef void pted_done_f(struct pted_call *call, enum pted_status status, void *arg);

/* Begins the call and returns. |done| may be NULL. If this fails, the call did not begin, |done| is
 * not called, and the call may be submitted again. */
PTED_CHECKED enum pted_status pted_call_submit(struct pted_call *call, pted_done_f *done, void *arg,
                                               struct pted_error *err);

/* Waits until the call has ended, and returns how; again and again the same. PTED_INVALID: it was
 * not submitted. */
PTED_CHECKED enum pted_status pted_call_wait(struct pted_call *call, struct pted_error *err);

/* Tells whether it is over, so that pted_call_wait() returns at once. False: it was not submitted,
 * or is in flight. */
PTED_API bool pted_call_has_ended(struct pted_call *call);

/* Tells whether a call failed because of one element of an input, such as an index that is out of
 * range; then |*out_element| has the element's indices. */
PTED_API bool pted_call_culprit(const struct pted_call *call, size_t *out_input,
                                struct pted_shape *out_element);

/* Ends the call soon, with PTED_CANCELLED unless it ends before; one that waits for other calls of
 * its state, when its turn comes. Any thread. */
PTED_API void pted_call_cancel(struct pted_call *call);

/*
 * Gives the outputs of a call that has ended with PTED_OK; PTED_INVALID: it has not, or the output
 * is of another kind. What |*out_tensor| and |*out_text| point to belongs to the call. Tensors are
 * packed. A kept value that the call did not compute, in a branch that it did not take, has NULL.
 */
PTED_CHECKED enum pted_status pted_call_output(const struct pted_call *call, size_t index,
                                               struct pted_tensor *out_tensor,
                                               struct pted_error *err);
PTED_CHECKED enum pted_status pted_call_output_int(const struct pted_call *call, size_t index,
                                                   int64_t *out_value, struct pted_error *err);
PTED_CHECKED enum pted_status pted_call_output_float(const struct pted_call *call, size_t index,
                                                     double *out_value, struct pted_error *err);
PTED_CHECKED enum pted_status pted_call_output_bool(const struct pted_call *call, size_t index,
                                                    bool *out_value, struct pted_error *err);
PTED_CHECKED enum pted_status pted_call_output_string(const struct pted_call *call, size_t index,
                                                      const char **out_text, size_t *out_len,
                                                      struct pted_error *err);

/* ---- profiles -------------------------------------------------------------------------------- */

/*
 * Where the time of calls goes, by the operators of a method and the layers of the exported model
 * that they come from. One call at a time is measured.
 *
 *     pted_profile_new          for calls of one method
 *     pted_call_set_profile     for each call that counts, before it is run
 *     pted_profile_read         when it has ended; then rows and spans
 */
struct pted_profile;

/* Numbers that an operator multiplies. */
enum pted_numbers {
    PTED_NUMBERS_FLOAT32 = 0,
    PTED_NUMBERS_INT8 = 1,
    PTED_NUMBERS_BFLOAT16 = 2,
};

/* An operator, and what ran for it in all calls together. The library makes it, and it may get
 * members at its end. */
struct pted_profile_row {
    const char *operation; /* "conv"; "copy" for copies that the plan adds */
    const char *layer;     /* "stem.0", or "" */
    const char *source;    /* "model.py:12: x = self.stem(x)", or "" */
    const char *kernel;    /* what computed it: "conv_f32" */
    uint32_t block;        /* a part of the method between branches */
    uint32_t node;         /* of the block's graph; UINT32_MAX: none */
    uint64_t dispatches;
    uint64_t busy_ns; /* of all threads together, and of a GPU */
    uint64_t host_ns; /* the part that is threads' */
    double macs;      /* multiply-adds; 0: it moves data */
    enum pted_numbers numbers;
    double bytes; /* read and written, each tensor once for a dispatch */
};

#define PTED_THREAD_DEVICE UINT32_MAX

/* Some work of one operator on one thread. This struct never changes. */
struct pted_profile_span {
    size_t row;
    uint32_t thread; /* 0: of the program; from 1 on: of the device; or PTED_THREAD_DEVICE: a GPU */
    uint32_t tiles;  /* pieces of work */
    uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC */
};

#define PTED_PROFILE_SPANS_MAX (1u << 24)

/* Makes a profile with room for |span_max| spans, 1 to PTED_PROFILE_SPANS_MAX; memory is taken only
 * as they come. PTED_UNSUPPORTED: the device has no timestamps. */
PTED_CHECKED enum pted_status pted_profile_new(const struct pted_method *method, size_t span_max,
                                               struct pted_profile **out_profile,
                                               struct pted_error *err);
PTED_API void pted_profile_free(struct pted_profile *profile);

/* Makes the call's next run a part of |profile|; NULL: of none. Before it is run, and again after
 * pted_call_reset(). PTED_INVALID: |profile| is of another method, or another call has it. */
PTED_CHECKED enum pted_status
pted_call_set_profile(struct pted_call *call, struct pted_profile *profile, struct pted_error *err);

/* Counts the calls that have ended. PTED_INVALID: a call that has the profile has not. */
PTED_CHECKED enum pted_status pted_profile_read(struct pted_profile *profile,
                                                struct pted_error *err);

/* Give what the last pted_profile_read() found: rows in the order in which operators run first,
 * valid until the next one; NULL, or false: |index| is too large. */
PTED_API size_t pted_profile_row_count(const struct pted_profile *profile);
PTED_API const struct pted_profile_row *pted_profile_row(const struct pted_profile *profile,
                                                         size_t index);
PTED_API size_t pted_profile_span_count(const struct pted_profile *profile);
PTED_API bool pted_profile_span(const struct pted_profile *profile, size_t index,
                                struct pted_profile_span *out_span);

/* Counts the spans that found no room: the times of rows are too small then. */
PTED_API size_t pted_profile_lost(const struct pted_profile *profile);

#ifdef __cplusplus
}
#endif

#endif
