/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/pte/seen.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/digest.h"
#include "runtime/pte/file.h"
#include "runtime/pte/kept.h"

/* The first word of a record; the number changes with the format. */
#define MAGIC 0x314e454553544544u

/* A file whose times are younger may change again without another time. */
#define SETTLED_SECONDS 3

#define SAMPLES 64
#define SAMPLE_BYTES 4096
_Static_assert(RT_SEEN_BYTES_MIN >= SAMPLES * SAMPLE_BYTES, "samples do not overlap");

/* Which file in which state. No member leaves a gap. */
struct identity {
    uint64_t device, inode, file_system, bytes;
    int64_t modified[2], changed[2]; /* seconds, nanoseconds */
    uint64_t samples[2];
};

struct record {
    uint64_t magic;
    struct identity identity;
    uint64_t file_digest[2];
    uint64_t digest[2]; /* of all before it */
};

/* The first one is at the beginning of |bytes|, the last one at their end. */
static void digest_samples(struct span bytes, uint64_t out[2])
{
    struct digest digest;
    digest_init(&digest);
    for (uint64_t i = 0; i < SAMPLES; i++) {
        size_t at = (size_t)((uint64_t)(bytes.len - SAMPLE_BYTES) * i / (SAMPLES - 1));
        digest_add(&digest, span_of(bytes.ptr + at, SAMPLE_BYTES));
    }
    digest_end(&digest, out);
}

static void digest_record(const struct record *record, uint64_t out[2])
{
    struct digest digest;
    digest_init(&digest);
    digest_add(&digest, span_of(record, offsetof(struct record, digest)));
    digest_end(&digest, out);
}

/* False: its numbers and times say too little. */
static bool identify(const struct pte_file *file, struct identity *out)
{
    struct statvfs fs;
    if (!file->is_mapped || file->fd < 0 || file->bytes.len < RT_SEEN_BYTES_MIN ||
        fstatvfs(file->fd, &fs) < 0 || (fs.f_flag & ST_RDONLY)) {
        return false;
    }
    *out = (struct identity){
        .device = file->device,
        .inode = file->inode,
        .file_system = fs.f_fsid,
        .bytes = file->bytes.len,
        .modified = {file->modified.tv_sec, file->modified.tv_nsec},
        .changed = {file->changed.tv_sec, file->changed.tv_nsec},
    };
    return true;
}

/* A file has one record, whatever state it is in. */
static bool name_record(const struct identity *identity, const char *folder, char out[PATH_MAX])
{
    struct digest digest;
    uint64_t name[2];
    digest_init(&digest);
    digest_add_number(&digest, identity->device);
    digest_add_number(&digest, identity->inode);
    digest_add_number(&digest, identity->file_system);
    digest_end(&digest, name);
    int len = snprintf(out, PATH_MAX, "%s/%016" PRIx64 RT_KEPT_SEEN, folder, name[0]);
    return len >= 0 && len < PATH_MAX;
}

static bool read_record(const char *path, struct record *out)
{
    struct stat st;
    uint64_t digest[2];
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool is_read = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
                   rt_kept_is_private(&st) && st.st_size == (off_t)sizeof(*out) &&
                   pread(fd, out, sizeof(*out), 0) == (ssize_t)sizeof(*out);
    if (fd >= 0) {
        close(fd);
    }
    if (!is_read || out->magic != MAGIC) {
        return false;
    }
    digest_record(out, digest);
    return memcmp(digest, out->digest, sizeof(digest)) == 0;
}

bool rt_seen_find(const struct pte_file *file, const char *folder, uint64_t out_digest[2],
                  char out_path[PATH_MAX])
{
    struct identity identity;
    struct record record;
    const size_t times = offsetof(struct identity, samples);
    if (!identify(file, &identity) || !name_record(&identity, folder, out_path) ||
        !read_record(out_path, &record) || memcmp(&record.identity, &identity, times) != 0) {
        return false;
    }
    digest_samples(file->bytes, identity.samples);
    memcpy(out_digest, record.file_digest, sizeof(record.file_digest));
    return memcmp(&record.identity, &identity, sizeof(identity)) == 0;
}

static bool is_settled(const struct identity *identity)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t last =
        identity->modified[0] > identity->changed[0] ? identity->modified[0] : identity->changed[0];
    return now.tv_sec - last >= SETTLED_SECONDS;
}

void rt_seen_keep(const struct pte_file *file, const char *folder, const uint64_t digest[2])
{
    struct record record = {.magic = MAGIC, .file_digest = {digest[0], digest[1]}};
    struct error ignored;
    char path[PATH_MAX], new_path[PATH_MAX];
    if (!identify(file, &record.identity) || !is_settled(&record.identity) ||
        !name_record(&record.identity, folder, path) ||
        !rt_kept_name_new(path, new_path, sizeof(new_path))) {
        return;
    }
    digest_samples(file->bytes, record.identity.samples);
    digest_record(&record, record.digest);
    int fd = pte_file_verify(file, &ignored) == ST_OK ? rt_kept_open_new(new_path) : -1;
    if (fd >= 0 && (pwrite(fd, &record, sizeof(record), 0) != (ssize_t)sizeof(record) ||
                    !rt_kept_settle(fd, new_path, path))) {
        unlink(new_path);
        close(fd);
    }
}

void rt_seen_forget(const char *path)
{
    (void)unlink(path);
}
