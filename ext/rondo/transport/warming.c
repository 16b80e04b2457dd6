/* SPDX-License-Identifier: MIT
 *
 * Checks whether a file is in the kernel's memory, and reads it into that memory; see warming.h.
 */
#include "transport/warming.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "system/fd.h"

#define AHEAD_BYTES   1048576 /* read by one job, if checks tell what is still in memory */
#define SCRATCH_BYTES 65536

/* ---- checking ---- */

#ifdef RWF_NOWAIT
/* At the end of the file and after an error there is no need to wait: sending will report it. */
static rd_file_memory look(const rd_file *file, off_t offset) {
    char byte;
    const struct iovec iov = {.iov_base = &byte, .iov_len = 1};
    ssize_t got;
    do {
        got = preadv2(file->fd, &iov, 1, offset, RWF_NOWAIT);
    } while (got < 0 && errno == EINTR);
    if (got >= 0) return RD_FILE_WARM;
    if (errno == EAGAIN) return RD_FILE_COLD;
    const bool is_unknown =
        errno == EOPNOTSUPP || errno == ENOSYS || errno == EPERM || errno == EINVAL;
    return is_unknown ? RD_FILE_BLIND : RD_FILE_WARM;
}
#else
static rd_file_memory look(const rd_file *file, off_t offset) {
    (void)file, (void)offset;
    return RD_FILE_BLIND;
}
#endif

/* One check for each slice, at its end: a file is read in order, so what precedes is in memory. The
 * first of several slices is also checked at its beginning, because the kernel drops the oldest
 * parts first. */
bool rd_warming_is_warm(rd_chunk *part, size_t len) {
    rd_file *file = part->file;
    if (file->memory == RD_FILE_IS_MEMORY) return true;
    if (file->memory == RD_FILE_BLIND) return false;
    const bool is_first = part->offset > part->looked_to || part->looked_to == 0;
    rd_file_memory found = look(file, part->offset + (off_t)len - 1);
    if (found == RD_FILE_WARM && is_first && part->len > len) found = look(file, part->offset);
    if (found == RD_FILE_BLIND) file->memory = found;
    if (found != RD_FILE_WARM) return false;
    part->looked_to = part->offset + (off_t)len;
    return true;
}

/* ---- reading, on a thread ---- */

static void run(rd_disk_job *job) {
    rd_warming *warming = RD_CONTAINER(job, rd_warming, job);
    const int fd = warming->file->fd;
    warming->finds_out = warming->finds_out && rd_fd_is_in_memory(fd);
    if (warming->finds_out) return;
    char *scratch = rd_alloc(SCRATCH_BYTES);
    for (size_t done = 0; done < warming->len;) {
        const size_t left = warming->len - done;
        const ssize_t got = pread(fd, scratch, left < SCRATCH_BYTES ? left : SCRATCH_BYTES,
                                  warming->offset + (off_t)done);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        done += (size_t)got;
    }
    rd_free(scratch);
}

static void done(rd_disk_job *job) {
    rd_warming *warming = RD_CONTAINER(job, rd_warming, job);
    void (*on_warm)(void *owner) = warming->on_warm;
    void *owner = warming->owner;
    if (warming->finds_out) warming->file->memory = RD_FILE_IS_MEMORY;
    rd_file_unref(warming->file);
    rd_free(warming);
    on_warm(owner);
}

void rd_warming_begin(rd_chunk *part, size_t len, void (*on_warm)(void *owner), void *owner) {
    rd_warming *warming = rd_alloc(sizeof(*warming));
    const bool is_blind = part->file->memory == RD_FILE_BLIND;
    if (!is_blind) len = part->len < AHEAD_BYTES ? part->len : AHEAD_BYTES;
    *warming = (rd_warming){.job = {.run = run, .done = done},
                            .on_warm = on_warm,
                            .owner = owner,
                            .file = part->file,
                            .offset = part->offset,
                            .len = len,
                            .finds_out = is_blind};
    rd_file_ref(part->file);
    rd_disk_do(part->file->loop, &warming->job, part->file->volume);
}

/* ---- on a connection ---- */

static void let_go_on(void *owner) {
    rd_conn *conn = owner;
    conn->warming = false;
    conn->warmed = true;
    rd_conn_mark_dirty(conn);
    rd_conn_unref(conn);
}

bool rd_warming_may_send(rd_conn *conn, rd_chunk *part, size_t len) {
    if (conn->warming) return false;
    if (conn->warmed || rd_warming_is_warm(part, len)) {
        conn->warmed = false;
        return true;
    }
    conn->warming = true;
    if (conn->stall != NULL) conn->stall->deadline_ms = UINT64_MAX;
    rd_conn_ref(conn);
    rd_warming_begin(part, len, let_go_on, conn);
    return false;
}
