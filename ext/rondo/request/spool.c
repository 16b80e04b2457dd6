/* SPDX-License-Identifier: MIT
 *
 * Writes and closes unnamed files; see spool.h.
 */
#include "request/spool.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"

#define SMALL       8192  /* memory that may stay with a body that waits */
#define LEAST_SPARE 65536 /* bytes; what is smaller or larger is freed */
#define MOST_SPARE  524288

const char *rd_spool_folder(void) {
    const char *folder = getenv("TMPDIR");
    return folder != NULL && folder[0] == '/' ? folder : "/tmp";
}

/* ---- on a thread ---- */

/* Without a name there is nothing to clean up, however the process ends. */
static int open_nameless(const char *folder) {
    char path[512];
#ifdef O_TMPFILE
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0) return fd;
#else
    int fd;
#endif
    int len = snprintf(path, sizeof(path), "%s/rondo-body-XXXXXX", folder);
    if (len < 0 || (size_t)len >= sizeof(path)) return -1;
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0) unlink(path);
    return fd;
}

static int write_all(int fd, const char *bytes, size_t len) {
    while (len > 0) {
        ssize_t written = write(fd, bytes, len);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return RD_ERR_DISK_FULL;
        bytes += written;
        len -= (size_t)written;
    }
    return 0;
}

static int open_file(rd_spool *spool) {
    spool->fd = open_nameless(spool->folder);
    if (spool->fd >= 0) return 0;
    return errno == EMFILE || errno == ENFILE ? RD_ERR_BODY_DESCRIPTOR : RD_ERR_DISK_FULL;
}

static void run_write(rd_disk_job *job) {
    rd_spool *spool = RD_CONTAINER(job, rd_spool, job);
    if (atomic_load_explicit(&spool->abandoned, memory_order_relaxed)) return;
    spool->error = spool->fd < 0 ? open_file(spool) : 0;
    if (spool->error != 0) return;
    spool->error =
        write_all(spool->fd, rd_buffer_ptr(&spool->writing), rd_buffer_len(&spool->writing));
}

static void run_close(rd_disk_job *job) {
    rd_spool *spool = RD_CONTAINER(job, rd_spool, job);
    const int fd = spool->fd;
    spool->fd = -1; /* first: a fork may come in between, and the number may be used again then */
    close(fd);
}

/* ---- under the lock ---- */

/* Also counts an abandoned spool: the disk may answer long after the client has gone. */
static void count_writing(rd_spool *spool, size_t size) {
    rd_ledger_recount(spool->ledger, RD_LEDGER_INPUT, &spool->counted, size);
}

static void free_spool(rd_spool *spool) {
    *spool->in_spools = spool->next;
    if (spool->next != NULL) spool->next->in_spools = spool->in_spools;
    rd_ledger_release_body_file(spool->ledger);
    rd_ledger_release(spool->ledger, RD_LEDGER_BODY_DISK, spool->reserved);
    rd_free(spool);
}

static void close_done(rd_disk_job *job) {
    free_spool(RD_CONTAINER(job, rd_spool, job));
}

static void unref(rd_spool *spool) {
    if (--spool->refs > 0) return;
    rd_buffer_clear(&spool->writing);
    count_writing(spool, 0);
    if (spool->fd < 0) {
        free_spool(spool);
        return;
    }
    spool->job.run = run_close;
    spool->job.done = close_done;
    rd_disk_do(spool->loop, &spool->job, RD_DISK_BODIES);
}

static void write_done(rd_disk_job *job) {
    rd_spool *spool = RD_CONTAINER(job, rd_spool, job);
    spool->busy = false;
    if (!atomic_load_explicit(&spool->abandoned, memory_order_relaxed)) {
        if (spool->error == 0) {
            spool->stored += rd_buffer_len(&spool->writing);
            rd_buffer_rewind(&spool->writing);
        }
        spool->on_written(spool->owner);
    }
    unref(spool);
}

static void enter(rd_spools *spools, rd_spool *spool) {
    spool->next = spools->first;
    if (spool->next != NULL) spool->next->in_spools = &spool->next;
    spool->in_spools = &spools->first;
    spools->first = spool;
}

rd_spool *rd_spool_new(rd_loop *loop, rd_ledger *ledger, rd_spools *spools,
                       void (*on_written)(void *owner), void *owner) {
    if (!rd_ledger_reserve_body_file(ledger)) return NULL;
    rd_spool *spool = rd_alloc_zero(sizeof(*spool));
    *spool = (rd_spool){.loop = loop, .ledger = ledger, .folder = spools->folder};
    spool->on_written = on_written;
    spool->owner = owner;
    spool->refs = 1;
    spool->fd = -1;
    atomic_init(&spool->abandoned, false);
    enter(spools, spool);
    return spool;
}

int rd_spool_reserve(rd_spool *spool, uint64_t len) {
    if (!rd_ledger_reserve(spool->ledger, RD_LEDGER_BODY_DISK, len)) return RD_ERR_BODY_DISK;
    spool->reserved += len;
    return 0;
}

void rd_spool_write(rd_spool *spool, rd_buffer *bytes) {
    const rd_buffer empty = spool->writing;
    assert(rd_buffer_len(&empty) == 0);
    spool->writing = *bytes;
    *bytes = empty;
    spool->busy = true;
    spool->refs++;
    spool->job.run = run_write;
    spool->job.done = write_done;
    rd_disk_do(spool->loop, &spool->job, RD_DISK_BODIES);
}

void rd_spool_abandon(rd_spool *spool) {
    atomic_store_explicit(&spool->abandoned, true, memory_order_relaxed);
    count_writing(spool, spool->writing.capacity);
    unref(spool);
}

/* ---- spare memory ---- */

void rd_spools_lend(rd_spools *spools, rd_buffer *buf, size_t len) {
    if (buf->capacity - buf->end >= len || rd_buffer_len(buf) + len <= SMALL) return;
    if (spools->spare_count == 0) return;
    rd_buffer spare = spools->spares[--spools->spare_count];
    rd_buffer_append(&spare, rd_buffer_ptr(buf), rd_buffer_len(buf));
    rd_buffer_clear(buf);
    *buf = spare;
}

void rd_spools_take_back(rd_spools *spools, rd_buffer *buf) {
    rd_buffer spare = *buf;
    const bool is_kept = spare.capacity >= LEAST_SPARE && spare.capacity <= MOST_SPARE &&
                         spools->spare_count < RD_SPOOL_SPARES;
    if (spare.capacity <= SMALL && rd_buffer_len(buf) > 0) return;
    *buf = (rd_buffer){0};
    rd_buffer_append(buf, rd_buffer_ptr(&spare), rd_buffer_len(&spare));
    rd_buffer_rewind(&spare);
    if (is_kept) {
        spools->spares[spools->spare_count++] = spare;
    } else {
        rd_buffer_clear(&spare);
    }
}

void rd_spools_clear(rd_spools *spools) {
    while (spools->spare_count > 0) rd_buffer_clear(&spools->spares[--spools->spare_count]);
}

/* Only the calling thread exists here, so no job is under way, whatever `busy` says. */
void rd_spools_abandon(rd_spools *spools) {
    for (rd_spool *spool = spools->first; spool != NULL; spool = spool->next) {
        if (spool->is_kept || spool->fd < 0) continue;
        close(spool->fd);
        spool->fd = -1;
    }
}
