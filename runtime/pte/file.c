/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/pte/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"

/* ---- mappings that may break ----------------------------------------------------------------- */

/*
 * The mappings that the handler searches. A mapping is not unmapped while it is read, so an address
 * that faults in a mapping has its entry; all other entries may change meanwhile, and are seen
 * either whole or not at all.
 */
struct mapping {
    atomic_uintptr_t begin; /* 0: the entry is free; TAKEN: it is being filled or released */
    atomic_uintptr_t end;   /* of its last page */
    atomic_bool is_broken;
};

#define TAKEN 1

static struct mapping mappings[PTE_FILES_MAX];
static struct sigaction previous;

static uintptr_t page_bytes(void)
{
    return (uintptr_t)sysconf(_SC_PAGESIZE);
}

static struct mapping *find_mapping(uintptr_t address)
{
    for (uint32_t i = 0; i < PTE_FILES_MAX; i++) {
        struct mapping *m = &mappings[i];
        uintptr_t begin = atomic_load(&m->begin), end = atomic_load(&m->end);
        if (begin > TAKEN && address >= begin && address < end && atomic_load(&m->begin) == begin) {
            return m;
        }
    }
    return NULL;
}

/* Maps zeros from the page at |address| to the end: all bytes after it are gone as well. */
static bool cover(struct mapping *m, uintptr_t address)
{
    uintptr_t page = address & ~(page_bytes() - 1);
    union {
        uintptr_t number;
        void *ptr;
    } at = {.number = page};
    atomic_store(&m->is_broken, true);
    return mmap(at.ptr, atomic_load(&m->end) - page, PROT_READ,
                MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED;
}

/* A fault that is not ours: for the handler that was there before, or for the system. */
static void pass_on(int number, siginfo_t *info, void *context)
{
    if (previous.sa_flags & SA_SIGINFO) {
        previous.sa_sigaction(number, info, context);
    } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
        previous.sa_handler(number);
    } else {
        sigaction(number, &previous, NULL);
        if (info->si_code != BUS_ADRERR) { /* the fault comes again by itself */
            raise(number);
        }
    }
}

/* Uses only functions that a signal handler may call; the instruction is then tried again. */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
    int error = errno;
    struct mapping *m = info->si_code == BUS_ADRERR ? find_mapping((uintptr_t)info->si_addr) : NULL;
    if (!m || !cover(m, (uintptr_t)info->si_addr)) {
        pass_on(number, info, context);
    }
    errno = error;
}

static void install_handler(void)
{
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    must(sigaction(SIGBUS, &action, &previous) == 0);
}

static bool take_entry(struct pte_file *file)
{
    uintptr_t begin = (uintptr_t)file->bytes.ptr, page = page_bytes();
    for (uint32_t i = 0; i < PTE_FILES_MAX; i++) {
        uintptr_t unused = 0;
        if (atomic_compare_exchange_strong(&mappings[i].begin, &unused, TAKEN)) {
            atomic_store(&mappings[i].is_broken, false);
            atomic_store(&mappings[i].end, (begin + file->bytes.len + page - 1) & ~(page - 1));
            atomic_store(&mappings[i].begin, begin);
            file->entry = i;
            return true;
        }
    }
    return false;
}

static void give_back_entry(const struct pte_file *file)
{
    atomic_store(&mappings[file->entry].begin, TAKEN);
    atomic_store(&mappings[file->entry].end, 0);
    atomic_store(&mappings[file->entry].begin, 0);
}

/* Guards all entries. */
static atomic_uint descriptors;

uint32_t pte_file_descriptors(void)
{
    return atomic_load_explicit(&descriptors, memory_order_relaxed);
}

/* ---- mapping --------------------------------------------------------------------------------- */

static enum status check_kind(const char *path, const struct stat *st, struct error *err)
{
    if (S_ISDIR(st->st_mode)) {
        return error_set(err, ST_INVALID, "%.160s: is a directory, expected a file", path);
    }
    if (!S_ISREG(st->st_mode)) {
        return error_set(err, ST_INVALID, "%.160s: is not a regular file", path);
    }
    if (st->st_size == 0) {
        return error_set(err, ST_CORRUPT, "%.160s: the file is empty, expected a program or data",
                         path);
    }
    if ((uintmax_t)st->st_size > SIZE_MAX / 2) {
        return error_set(err, ST_TOO_LARGE, "%.160s: is too large to be mapped", path);
    }
    return ST_OK;
}

/* munmap() takes a pointer to non-const although it changes no byte. A process may have too many
 * mappings to split one that the system has joined with another: then the memory is lost. */
static void unmap(struct span bytes)
{
    must(munmap((void *)(uintptr_t)bytes.ptr, bytes.len) == 0 || errno == ENOMEM);
}

/* Takes over |fd| on success. */
static enum status map_fd(int fd, const char *path, const struct stat *st, struct pte_file *file,
                          struct error *err)
{
    static atomic_uint_fast64_t numbers;
    void *mapping = mmap(NULL, (size_t)st->st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (mapping == MAP_FAILED) {
        return error_set(err, ST_SYSTEM, "%.160s: cannot be mapped: %m", path);
    }
    file->bytes = span_of(mapping, (size_t)st->st_size);
    file->modified = st->st_mtim;
    file->changed = st->st_ctim;
    file->device = st->st_dev;
    file->inode = st->st_ino;
    file->fd = fd;
    file->number = atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed) + 1;
    if (!take_entry(file)) {
        unmap(file->bytes);
        return error_set(err, ST_EXHAUSTED, "%.160s: more than %d files are mapped", path,
                         PTE_FILES_MAX);
    }
    file->is_mapped = true;
    atomic_fetch_add_explicit(&descriptors, 1, memory_order_relaxed);
    return ST_OK;
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* Memory for |len| > 0 bytes of |file|, aligned to a page; NULL: there is none. */
static uint8_t *allocate(struct pte_file *file, size_t len)
{
    void *memory = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return NULL;
    }
    file->bytes = span_of(memory, len);
    file->is_copy = true;
    return memory;
}

/* From now on a stray write to it is found, unless the process has too many mappings. */
static void protect(const struct pte_file *file)
{
    (void)!mprotect((void *)(uintptr_t)file->bytes.ptr, file->bytes.len, PROT_READ);
}

static enum status read_all(int fd, const char *path, uint8_t *to, size_t len, struct error *err)
{
    for (size_t done = 0; done < len;) {
        ssize_t got = pread(fd, to + done, len - done, (off_t)done);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return error_set(err, ST_SYSTEM, "%.160s: %m", path);
        }
        if (got == 0) {
            return error_set(
                err, ST_UNAVAILABLE,
                "%.160s: was cut short while it was read: it has %zu bytes, it had %zu", path, done,
                len);
        }
        done += (size_t)got;
    }
    return ST_OK;
}

static enum status copy_fd(int fd, const char *path, const struct stat *st, struct pte_file *file,
                           struct error *err)
{
    size_t len = (size_t)st->st_size;
    uint8_t *memory = allocate(file, len);
    if (!memory) {
        return error_no_memory(err, "the %zu bytes of %.160s", len, path);
    }
    if (read_all(fd, path, memory, len, err) != ST_OK) {
        pte_file_unmap(file);
        return err->code;
    }
    protect(file);
    close(fd);
    return ST_OK;
}

enum status pte_file_copy(struct span bytes, struct pte_file *out_file, struct error *err)
{
    must(bytes.len > 0);
    *out_file = (struct pte_file){.fd = -1};
    uint8_t *memory = allocate(out_file, bytes.len);
    if (!memory) {
        return error_no_memory(err, "%zu bytes of a program", bytes.len);
    }
    memcpy(memory, bytes.ptr, bytes.len);
    protect(out_file);
    return ST_OK;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Takes over |fd| on success. */
static enum status take_fd(int fd, const char *path, enum pte_file_use use, struct pte_file *file,
                           struct error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return error_set(err, ST_SYSTEM, "%.160s: %m", path);
    }
    TRY(check_kind(path, &st, err));
    if (use == PTE_FILE_COPIED) {
        return copy_fd(fd, path, &st, file, err);
    }
    if (use == PTE_FILE_GUARDED) {
        pthread_once(&once, install_handler);
    }
    return map_fd(fd, path, &st, file, err);
}

enum status pte_file_open(const char *path, enum pte_file_use use, struct pte_file *out_file,
                          struct error *err)
{
    /* O_NONBLOCK: opening a fifo must not wait for a writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    const char *slash = strrchr(path, '/');
    if (fd < 0) {
        return error_set(err, status_of_errno(errno), "%.160s: %m", path);
    }
    *out_file = (struct pte_file){.fd = -1};
    snprintf(out_file->name, sizeof(out_file->name), "%s", slash ? slash + 1 : path);
    enum status status = take_fd(fd, path, use, out_file, err);
    if (status != ST_OK) {
        close(fd);
    }
    return status;
}

void pte_file_borrow(struct pte_file *file, struct span bytes)
{
    *file = (struct pte_file){.bytes = bytes, .fd = -1};
}

void pte_file_release(const struct pte_file *file)
{
    if (file->is_mapped) {
        must(madvise((void *)(uintptr_t)file->bytes.ptr, file->bytes.len, MADV_DONTNEED) == 0);
    }
}

void pte_file_forget(struct pte_file *file)
{
    if (file->fd >= 0) {
        close(file->fd);
        atomic_fetch_sub_explicit(&descriptors, 1, memory_order_relaxed);
    }
    file->fd = -1;
}

static bool is_same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

bool pte_file_is_same(const struct pte_file *a, const struct pte_file *b)
{
    return a->is_mapped && b->is_mapped && a->device == b->device && a->inode == b->inode &&
           a->bytes.len == b->bytes.len && is_same_time(a->modified, b->modified) &&
           is_same_time(a->changed, b->changed);
}

void pte_file_recall(struct pte_file *file, struct pte_file *from)
{
    must(file->fd < 0 && pte_file_is_same(file, from));
    file->fd = from->fd;
    from->fd = -1;
}

void pte_file_unmap(struct pte_file *file)
{
    if (file && file->is_mapped) {
        pte_file_forget(file);
        give_back_entry(file);
        unmap(file->bytes);
        file->is_mapped = false;
    } else if (file && file->is_copy) {
        unmap(file->bytes);
        file->is_copy = false;
    }
}

/* ---- changes --------------------------------------------------------------------------------- */

static enum status changed(const struct pte_file *file, const struct stat *st, struct error *err)
{
    if ((uintmax_t)st->st_size != file->bytes.len) {
        return error_set(err, ST_UNAVAILABLE,
                         "the file %s changed on disk since it was loaded: it has %" PRIuMAX
                         " bytes, it had %zu",
                         file->name, (uintmax_t)st->st_size, file->bytes.len);
    }
    return error_set(err, ST_UNAVAILABLE,
                     "the file %s changed on disk since it was loaded: it was written to",
                     file->name);
}

/* The identity of the file itself. Another file at the same path does not matter, and neither does
 * the time of the last change of status, which changes when the file is renamed or backed up. */
enum status pte_file_verify(const struct pte_file *file, struct error *err)
{
    struct stat st;
    if (file->fd < 0) {
        return ST_OK;
    }
    if (fstat(file->fd, &st) != 0) {
        return error_set(err, ST_UNAVAILABLE, "the file %s: %m", file->name);
    }
    if ((uintmax_t)st.st_size != file->bytes.len || !is_same_time(st.st_mtim, file->modified)) {
        return changed(file, &st, err);
    }
    if (atomic_load_explicit(&mappings[file->entry].is_broken, memory_order_acquire)) {
        return error_set(err, ST_UNAVAILABLE,
                         "the file %s changed on disk since it was loaded: it was cut short, or "
                         "its disk failed",
                         file->name);
    }
    return ST_OK;
}
