/* SPDX-License-Identifier: MIT
 *
 * Counts the references to a file and closes it; see file.h.
 */
#include "transport/file.h"

#include <assert.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/apart.h"

rd_file *rd_file_new(rd_loop *loop, int fd, uint64_t volume) {
    rd_file *file = rd_alloc(sizeof(*file));
    *file = (rd_file){.loop = loop, .volume = volume, .fd = fd, .refs = 1};
    return file;
}

void rd_file_count(rd_file *file, rd_ledger *ledger) {
    assert(file->ledger == NULL);
    file->ledger = ledger;
    rd_ledger_add(ledger, RD_LEDGER_DESCRIPTORS, 1);
}

void rd_file_ref(rd_file *file) {
    file->refs++;
}

void rd_file_close(rd_file *file) {
    close(file->fd);
    file->fd = -1;
}

static void run_close(rd_disk_job *job) {
    rd_file_close(RD_CONTAINER(job, rd_file, job));
}

static void close_done(rd_disk_job *job) {
    rd_file *file = RD_CONTAINER(job, rd_file, job);
    if (file->ledger != NULL) rd_ledger_release(file->ledger, RD_LEDGER_DESCRIPTORS, 1);
    rd_free(file);
}

RD_APART static void end(rd_file *file) {
    file->job = (rd_disk_job){.run = run_close, .done = close_done};
    if (file->fd >= 0) {
        rd_disk_do(file->loop, &file->job, file->volume);
    } else {
        close_done(&file->job);
    }
}

void rd_file_unref(rd_file *file) {
    assert(file->refs > 0);
    if (--file->refs == 0) end(file);
}
