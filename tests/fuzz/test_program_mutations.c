/* SPDX-License-Identifier: MIT */
/*
 * Real programs with parts exchanged: element types, sizes, indices, operators, offsets, arguments,
 * constants, delegates' tables. If a damaged program still loads, it is compiled and called; it has
 * to be refused with a reason or compute something. Findings are crashes, failed invariants, reads
 * of the wrong memory, and calls that do not end.
 *
 *     test_program_mutations [ROUNDS [SEED [FILE...]]]
 *
 * Without files it takes those of tests/models and tests/ops. A child process does the work, so
 * that a finding costs one child: its file is kept as found-SEED-ROUND.pte, and replay_program
 * shows what it does. The same seed gives the same files.
 */
#include "config.h"

#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "runtime/ops/op.h"
#include "runtime/program/method.h"
#include "tests/fuzz/call_program.h"
#include "tests/fuzz/program_mutate.h"

#define ROUNDS 10000
#define SEED 1
#define PATH_BYTES 1024
#define FINDINGS_MAX 50
/* A child ends now and then, so that its leaks are reported soon. */
#define CHILD_ROUNDS 5000
#define HANG_SECONDS 60
#define OPS_MAX 1024
#define FILES_MAX 1024
#define CHILD_FAILED 3
#define CALLERS 2

/* Large allocations of a hostile file fail, as the operating system would make them fail. */
#ifdef __SANITIZE_ADDRESS__
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1:max_allocation_size_mb=1024:quarantine_size_mb=16:"
           "malloc_context_size=12";
}
#endif

/* Memory that parent and child share. */
struct shared {
    atomic_uint_fast64_t round; /* of the child */
    uint64_t loaded, called, runs, results, cancelled;
    uint64_t by_file[FILES_MAX], by_op[OPS_MAX]; /* calls with results */
};

struct fuzz {
    struct program_file files[FILES_MAX];
    uint64_t weights[FILES_MAX]; /* the sums of weights up to each file */
    uint32_t file_count;
    uint64_t rounds, seed;
    int fd; /* a file in memory, to which rounds write */
    char path[64];
    struct shared *shared;
    struct program_copy copy;
    uint32_t file;  /* of this round */
    bool is_random; /* its results differ from call to call */
};

static const struct rt_op *ops[OPS_MAX];
static uint32_t op_count;

static void note_op(const struct rt_op *op, void *arg)
{
    (void)arg;
    must(op_count < OPS_MAX);
    ops[op_count++] = op;
}

/* ---- the child ------------------------------------------------------------------------------- */

static void count_op(struct shared *shared, const struct rt_op *op)
{
    for (uint32_t i = 0; i < op_count; i++) {
        shared->by_op[i] += ops[i] == op;
    }
}

/* Counts the operators of the compiled method; folded and replaced ones are missing. */
static void on_result(void *arg, struct rt_method *method)
{
    struct fuzz *fuzz = arg;
    fuzz->shared->by_file[fuzz->file]++;
    for (uint32_t i = 0; i < method->code.block_count; i++) {
        const struct rt_graph *graph = &method->code.blocks[i]->graph;
        for (uint32_t k = 0; k < graph->node_count; k++) {
            count_op(fuzz->shared, graph->nodes[k].op);
            fuzz->is_random |= (graph->nodes[k].op->flags & RT_OP_RANDOM) != 0;
        }
    }
}

static bool write_file(const struct fuzz *fuzz)
{
    const struct program_copy *copy = &fuzz->copy;
    bool is_written = ftruncate(fuzz->fd, (off_t)copy->len) == 0 &&
                      pwrite(fuzz->fd, copy->bytes, copy->len, 0) == (ssize_t)copy->len;
    if (!is_written) {
        perror(fuzz->path);
    }
    return is_written;
}

/* Results do not depend on the number of workers. */
static bool try_again(struct fuzz *fuzz, const struct caller *first,
                      const struct call_counts *counts, struct caller *other)
{
    struct call_counts again = {0};
    struct error err = {0};
    uint64_t seed = other->seed;
    if (call_program(other, fuzz->path, &again, &err) != ST_OK) {
        return true;
    }
    bool is_same = other->digest == first->digest || counts->cancelled + again.cancelled > 0 ||
                   counts->results != again.results;
    if (!is_same) {
        fprintf(stderr, "other results with 1 worker: replay_program %s %" PRIu64 "\n",
                precision_word(other->precision), seed);
    }
    return is_same && again.late == 0;
}

static bool try_program(struct fuzz *fuzz, struct caller *caller, struct caller *other)
{
    struct shared *shared = fuzz->shared;
    struct call_counts counts = {0};
    struct error err = {0};
    enum status status = call_program(caller, fuzz->path, &counts, &err);
    shared->loaded += status == ST_OK;
    shared->called += counts.runs > 0;
    shared->runs += counts.runs;
    shared->results += counts.results;
    shared->cancelled += counts.cancelled;
    if (counts.late > 0) {
        fprintf(stderr, "a call does not end\n");
        return false;
    }
    if ((status != ST_OK || counts.runs == 0) && err.text[0] == '\0') {
        fprintf(stderr, "refused without a reason\n");
        return false;
    }
    return counts.results == 0 || fuzz->is_random || try_again(fuzz, caller, &counts, other);
}

static uint32_t choose_file(const struct fuzz *fuzz, uint64_t *random)
{
    uint64_t at = fuzz_random(random) % fuzz->weights[fuzz->file_count - 1];
    uint32_t i = 0;
    while (fuzz->weights[i] <= at) {
        i++;
    }
    return i;
}

/* The number of a round and the seed determine it completely. */
static bool do_round(struct fuzz *fuzz, struct caller *callers, uint64_t round)
{
    uint64_t random = (fuzz->seed << 40) + round;
    random = fuzz_random(&random);
    atomic_store(&fuzz->shared->round, round);
    fuzz->is_random = false;
    fuzz->file = choose_file(fuzz, &random);
    program_mutate(&fuzz->copy, &fuzz->files[fuzz->file], random);
    for (uint32_t i = 0; i < CALLERS; i++) {
        callers[i].seed = random;
        callers[i].digest = 0;
        callers[i].precision = (enum precision)(random % PRECISION_COUNT);
        callers[i].prints = round % 16 == 0;
        callers[i].pipes = round % 4 == 0;
    }
    return write_file(fuzz) && try_program(fuzz, &callers[0], &callers[1]);
}

static int be_child(struct fuzz *fuzz, uint64_t first, uint64_t end)
{
    static const uint32_t workers[CALLERS] = {2, 1};
    struct caller callers[CALLERS];
    struct error err;
    for (uint32_t i = 0; i < CALLERS; i++) {
        if (caller_init(&callers[i], workers[i], &err) != ST_OK) {
            fprintf(stderr, "%s\n", err.text);
            return CHILD_FAILED;
        }
    }
    callers[0].on_result = on_result;
    callers[0].arg = fuzz;
    bool is_good = true;
    for (uint64_t round = first; is_good && round < end; round++) {
        is_good = do_round(fuzz, callers, round);
    }
    for (uint32_t i = 0; i < CALLERS; i++) {
        caller_fini(&callers[i]);
    }
    program_copy_fini(&fuzz->copy);
    return is_good ? 0 : CHILD_FAILED;
}

/* ---- the parent ------------------------------------------------------------------------------ */

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* Steps of the system's time do not change it. */
static time_t now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

/* Waits for the child's end; kills it if it stays in one round for too long. */
static int wait_for(struct fuzz *fuzz, pid_t child)
{
    uint64_t round = UINT64_MAX;
    time_t since = now_seconds();
    int status;
    while (waitpid(child, &status, WNOHANG) == 0) {
        uint64_t now = atomic_load(&fuzz->shared->round);
        since = now == round ? since : now_seconds();
        round = now;
        if (now_seconds() - since > HANG_SECONDS) {
            fprintf(stderr, "round %" PRIu64 " does not end\n", round);
            kill(child, SIGABRT);
            since = now_seconds();
        }
        sleep_ms(5);
    }
    return status;
}

static void copy_file(const char *from, const char *to)
{
    char buffer[4096];
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    for (size_t n; in && out && (n = fread(buffer, 1, sizeof(buffer), in)) > 0;) {
        if (fwrite(buffer, 1, n, out) != n) {
            break;
        }
    }
    if (!in || !out || ferror(in) || fclose(out) != 0) {
        perror(to);
    }
    if (in) {
        fclose(in);
    }
}

static void keep_finding(const struct fuzz *fuzz, int status)
{
    char name[PATH_BYTES];
    uint64_t round = atomic_load(&fuzz->shared->round);
    snprintf(name, sizeof(name), "found-%" PRIu64 "-%" PRIu64 ".pte", fuzz->seed, round);
    fprintf(stderr, "seed %" PRIu64 " round %" PRIu64 ": the child ended with %s %d: %s\n",
            fuzz->seed, round, WIFSIGNALED(status) ? "signal" : "status",
            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), name);
    copy_file(fuzz->path, name);
}

static void print_progress(const struct fuzz *fuzz, uint64_t done)
{
    const struct shared *shared = fuzz->shared;
    printf("%" PRIu64 " files, %" PRIu64 " loaded, %" PRIu64 " could be called, %" PRIu64
           " calls, %" PRIu64 " results, %" PRIu64 " cut short\n",
           done, shared->loaded, shared->called, shared->runs, shared->results, shared->cancelled);
    fflush(stdout);
}

static void print_reached(const struct fuzz *fuzz)
{
    uint32_t reached_ops = 0, reached_files = 0;
    for (uint32_t i = 0; i < op_count; i++) {
        reached_ops += fuzz->shared->by_op[i] > 0;
    }
    for (uint32_t i = 0; i < fuzz->file_count; i++) {
        reached_files += fuzz->shared->by_file[i] > 0;
    }
    printf("results of %" PRIu32 " of %" PRIu32 " programs, with %" PRIu32 " of %" PRIu32
           " operators in their graphs; without:",
           reached_files, fuzz->file_count, reached_ops, op_count);
    for (uint32_t i = 0; i < op_count; i++) {
        if (fuzz->shared->by_op[i] == 0) {
            printf(" %s", ops[i]->name);
        }
    }
    printf("\n");
}

static int fuzz_all(struct fuzz *fuzz)
{
    int findings = 0;
    uint64_t next = 0;
    while (next < fuzz->rounds && findings < FINDINGS_MAX) {
        uint64_t end = next + CHILD_ROUNDS < fuzz->rounds ? next + CHILD_ROUNDS : fuzz->rounds;
        fflush(NULL);
        pid_t child = fork();
        must(child >= 0);
        if (child == 0) {
            exit(be_child(fuzz, next, end));
        }
        int status = wait_for(fuzz, child);
        next = status == 0 ? end : atomic_load(&fuzz->shared->round) + 1;
        if (status != 0) {
            keep_finding(fuzz, status);
            findings++;
        }
        if (next % (CHILD_ROUNDS * 4) == 0 || next == fuzz->rounds) {
            print_progress(fuzz, next);
        }
    }
    return findings;
}

/* ---- the programs ---------------------------------------------------------------------------- */

/* Small files are chosen more often; those with many methods count more. */
static uint64_t weight_of(const struct program_file *file)
{
    uint64_t methods = file->method_count < 32 ? file->method_count : 32;
    return 1 + (4 + methods) * 256 / (4 + file->len / 16384);
}

static bool add_file(struct fuzz *fuzz, const char *path)
{
    struct program_file *file = &fuzz->files[fuzz->file_count];
    must(fuzz->file_count < FILES_MAX);
    if (!program_file_read(file, path)) {
        program_file_fini(file);
        return false;
    }
    uint64_t before = fuzz->file_count ? fuzz->weights[fuzz->file_count - 1] : 0;
    fuzz->weights[fuzz->file_count++] = before + weight_of(file);
    return true;
}

static bool add_folder(struct fuzz *fuzz, const char *folder)
{
    const char *top = getenv("top_srcdir");
    char pattern[PATH_BYTES];
    glob_t found = {0};
    snprintf(pattern, sizeof(pattern), "%s/tests/%s/*.pte", top ? top : ".", folder);
    bool is_good = glob(pattern, 0, NULL, &found) == 0;
    if (!is_good) {
        fprintf(stderr, "%s: no programs\n", pattern);
    }
    for (size_t i = 0; is_good && i < found.gl_pathc; i++) {
        is_good = add_file(fuzz, found.gl_pathv[i]);
    }
    globfree(&found);
    return is_good;
}

static bool add_programs(struct fuzz *fuzz, int count, char **paths)
{
    bool is_good = true;
    for (int i = 0; i < count; i++) {
        is_good &= add_file(fuzz, paths[i]);
    }
    return count > 0 ? is_good
                     : add_folder(fuzz, "models") && add_folder(fuzz, "models/*") &&
                           add_folder(fuzz, "models/exported/growing") && add_folder(fuzz, "ops");
}

/* Opens the memory that parent and children share. */
static bool open_shared(struct fuzz *fuzz)
{
    fuzz->fd = memfd_create("program.pte", 0);
    snprintf(fuzz->path, sizeof(fuzz->path), "/proc/self/fd/%d", fuzz->fd);
    fuzz->shared = mmap(NULL, sizeof(*fuzz->shared), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (fuzz->shared == MAP_FAILED || fuzz->fd < 0) {
        perror("shared memory");
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    static struct fuzz fuzz;
    fuzz.rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : ROUNDS;
    fuzz.seed = argc > 2 ? strtoull(argv[2], NULL, 0) : SEED;
    rt_op_each(note_op, NULL);
    if (!add_programs(&fuzz, argc > 3 ? argc - 3 : 0, argv + 3) || !open_shared(&fuzz)) {
        return 1;
    }
    int findings = fuzz_all(&fuzz);
    print_reached(&fuzz);
    for (uint32_t i = 0; i < fuzz.file_count; i++) {
        program_file_fini(&fuzz.files[i]);
    }
    /* If nearly nothing can be called, the damage tests nothing. */
    return findings > 0 || fuzz.shared->called < fuzz.rounds / 20;
}
