/* SPDX-License-Identifier: MIT
 *
 * Request bodies in memory and in nameless files; see body.h.
 */
#include "http/body.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

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

static int move_to_file(rd_body *body) {
    body->fd = open_nameless();
    if (body->fd < 0) return RD_ERR_DISK_FULL;
    int code = write_all(body->fd, rd_buffer_ptr(&body->memory), rd_buffer_len(&body->memory));
    if (code == 0) {
        rd_buffer_clear(&body->memory);
    } else { /* what came stays readable */
        close(body->fd);
        body->fd = -1;
    }
    return code;
}

void rd_body_init(rd_body *body) {
    *body = (rd_body){.fd = -1};
}

int rd_body_append(rd_body *body, const char *bytes, size_t len, size_t memory_limit) {
    if (len == 0) return 0;
    if (body->fd < 0 && body->size + len > memory_limit) {
        int code = move_to_file(body);
        if (code != 0) return code;
    }
    if (body->fd >= 0) {
        int code = write_all(body->fd, bytes, len);
        if (code != 0) return code;
    } else {
        rd_buffer_append(&body->memory, bytes, len);
    }
    body->size += len;
    return 0;
}

ssize_t rd_body_read(const rd_body *body, uint64_t offset, char *bytes, size_t len) {
    if (offset >= body->size) return 0;
    if (len > body->size - offset) len = (size_t)(body->size - offset);
    if (body->fd < 0) {
        memcpy(bytes, rd_buffer_ptr(&body->memory) + offset, len);
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
