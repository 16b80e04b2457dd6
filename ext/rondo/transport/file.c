/* SPDX-License-Identifier: MIT
 *
 * Counting who sends from a file; see file.h.
 */
#include "transport/file.h"

#include <assert.h>
#include <unistd.h>

#include "base/alloc.h"

rd_file *rd_file_new(int fd) {
    rd_file *file = rd_alloc(sizeof(*file));
    *file = (rd_file){.fd = fd, .refs = 1};
    return file;
}

void rd_file_count(rd_file *file, uint32_t *open) {
    assert(file->open == NULL);
    file->open = open;
    ++*open;
}

void rd_file_ref(rd_file *file) {
    file->refs++;
}

void rd_file_unref(rd_file *file) {
    assert(file->refs > 0);
    if (--file->refs > 0) return;
    if (file->open != NULL) --*file->open;
    close(file->fd);
    rd_free(file);
}
