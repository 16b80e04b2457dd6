/* SPDX-License-Identifier: MIT
 *
 * Request bodies in memory and in nameless files; see body.h.
 */
#include "http/body.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

#define KEPT_BACK 4096 /* bytes that wait for more before they are written */

static const char *temporary_folder(void) {
    const char *folder = getenv("TMPDIR");
    return folder != NULL && folder[0] == '/' ? folder : "/tmp";
}

/* Without a name there is nothing to clean up, however the process ends. */
static int open_nameless(void) {
    char path[512];
    const char *folder = temporary_folder();
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

/* What failed stays where it is, and readable. */
static int store(rd_body *body) {
    size_t len = rd_buffer_len(&body->memory);
    int code = write_all(body->fd, rd_buffer_ptr(&body->memory), len);
    if (code != 0) return code;
    body->stored += len;
    rd_buffer_clear(&body->memory);
    return 0;
}

static int move_to_file(rd_body *body) {
    body->fd = open_nameless();
    if (body->fd < 0) return RD_ERR_DISK_FULL;
    int code = store(body);
    if (code != 0) {
        close(body->fd);
        body->fd = -1;
    }
    return code;
}

/* Behind what was kept back. */
static int write_through(rd_body *body, const char *bytes, size_t len) {
    int code = store(body);
    if (code == 0) code = write_all(body->fd, bytes, len);
    if (code == 0) body->stored += len;
    return code;
}

void rd_body_init(rd_body *body) {
    *body = (rd_body){.fd = -1};
}

int rd_body_append(rd_body *body, const char *bytes, size_t len, size_t memory_limit) {
    bool moves = body->fd < 0 && body->size + len > memory_limit;
    int code = 0;
    if (len == 0) return 0;
    if (moves) code = move_to_file(body);
    if (code != 0) return code;
    if (body->fd < 0 || (!moves && rd_buffer_len(&body->memory) + len <= KEPT_BACK)) {
        rd_buffer_append(&body->memory, bytes, len);
    } else {
        code = write_through(body, bytes, len);
        if (code != 0) return code;
    }
    body->size += len;
    return 0;
}

ssize_t rd_body_read(const rd_body *body, uint64_t offset, char *bytes, size_t len) {
    if (offset >= body->size) return 0;
    uint64_t end = offset < body->stored ? body->stored : body->size;
    if (len > end - offset) len = (size_t)(end - offset);
    if (offset >= body->stored) {
        memcpy(bytes, rd_buffer_ptr(&body->memory) + (offset - body->stored), len);
        return (ssize_t)len;
    }
    ssize_t got;
    do {
        got = pread(body->fd, bytes, len, (off_t)offset);
    } while (got < 0 && errno == EINTR);
    return got;
}

void rd_body_clear(rd_body *body) {
    rd_buffer_clear(&body->memory);
    if (body->fd >= 0) close(body->fd);
    rd_body_init(body);
}
