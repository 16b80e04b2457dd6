/* SPDX-License-Identifier: MIT
 *
 * Moves a hub from one program to the next within the same process: everything as frames in a file,
 * and back. After the history come the links, each with its interests, the incomplete frame it has
 * read, what it has not sent yet, and the waiting replays. So its stream continues with the very
 * next byte.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cluster/hub_link.h"

enum { WRITE_BYTES = 65536 };

/* ---- out ---- */

typedef struct saving {
    int fd;
    int error;
    rd_buffer bytes;
} saving;

static void write_out(saving *self) {
    while (self->error == 0 && rd_buffer_len(&self->bytes) > 0) {
        const ssize_t done =
            write(self->fd, rd_buffer_ptr(&self->bytes), rd_buffer_len(&self->bytes));
        if (done > 0) rd_buffer_consume(&self->bytes, (size_t)done);
        if (done < 0 && errno != EINTR) self->error = errno;
    }
    rd_buffer_clear(&self->bytes);
}

static void save_frame(void *with, const rd_relay_frame *frame) {
    saving *self = with;
    rd_relay_write(frame, RD_RELAY_PAYLOAD_MAX, &self->bytes);
    if (rd_buffer_len(&self->bytes) >= WRITE_BYTES) write_out(self);
}

static void save_bytes(saving *self, rd_relay_type type, const char *bytes, size_t len) {
    for (size_t at = 0; at < len; at += WRITE_BYTES) {
        const size_t part = len - at < WRITE_BYTES ? len - at : WRITE_BYTES;
        save_frame(self, &(rd_relay_frame){.type = type, .payload = rd_slice_of(bytes + at, part)});
    }
}

static void save_output(void *with, rd_slice bytes) {
    save_bytes(with, RD_RELAY_SAVED_OUTPUT, bytes.ptr, bytes.len);
}

static void save_link(saving *self, rd_conn *conn) {
    const rd_hub_conn *state = rd_hub_conn_of(conn);
    const rd_relay_reader *reader = &state->reader;
    char fd[8];
    rd_relay_put_number(fd, 8, (uint64_t)conn->source.fd);
    save_frame(self, &(rd_relay_frame){.type = RD_RELAY_SAVED_LINK,
                                       .id = (uint64_t)state->number,
                                       .payload = rd_slice_of(fd, sizeof(fd))});
    rd_hub_each_interest(&state->link, save_frame, self);
    const size_t unread = rd_buffer_len(&reader->kept) - reader->spent;
    if (unread > 0) {
        save_bytes(self, RD_RELAY_SAVED_INPUT, rd_buffer_ptr(&reader->kept) + reader->spent,
                   unread);
    }
    rd_outq_each(&conn->out, save_output, self);
    rd_hub_each_replay(&state->link, save_frame, self);
}

/* Also if it is 0. Without this frame the next hub takes the last id of the history, as from the
 * file of an older version, and that says nothing to an engine. */
static void save_engine_id(saving *self, const rd_hub *hub) {
    save_frame(self, &(rd_relay_frame){.type = RD_RELAY_SAVED_ENGINE, .id = hub->engine_id});
}

int rd_hub_thread_save(rd_hub_thread *thread, int fd) {
    saving self = {.fd = fd};
    rd_loop_lock(&thread->loop);
    rd_history_save(&thread->hub.history, save_frame, &self);
    save_engine_id(&self, &thread->hub);
    rd_hub_each_unclaimed(&thread->hub, save_frame, &self);
    RD_EACH_HUB_CONN(thread, conn, node) {
        if (rd_hub_conn_of(conn)->link.kind == RD_HUB_WORKER) save_link(&self, conn);
    }
    write_out(&self);
    rd_loop_unlock(&thread->loop);
    errno = self.error;
    return self.error == 0 ? 0 : -1;
}

/* ---- in ---- */

typedef struct restoring {
    rd_hub_thread *thread;
    rd_conn *conn; /* the link that the frames belong to */
} restoring;

static bool restore_link(restoring *self, const rd_relay_frame *frame) {
    const uint64_t fd = rd_relay_get_number(frame->payload.ptr, 8);
    if (fd > INT32_MAX || frame->id == 0 || frame->id > INT64_MAX / 2) return false;
    self->conn = rd_hub_link_open(self->thread, (int)fd, RD_HUB_WORKER);
    if (self->conn == NULL) return false;
    /* The link knows the rules already. What comes next may be the rest of a frame. */
    rd_outq_clear(&self->conn->out, &self->conn->set->chunks);
    const int64_t number = (int64_t)frame->id;
    rd_hub_conn_of(self->conn)->number = number;
    if (self->thread->last_number < number) self->thread->last_number = number;
    return true;
}

static bool restore_of_link(restoring *self, const rd_relay_frame *frame) {
    rd_hub_conn *state = rd_hub_conn_of(self->conn);
    rd_relay_frame none;
    size_t used;
    switch (frame->type) {
    case RD_RELAY_SUBSCRIBE:
    case RD_RELAY_REPLAY:
        return rd_hub_receive(&self->thread->hub, &state->link, frame) == 0;
    case RD_RELAY_SAVED_INPUT:
        return rd_relay_read(&state->reader, frame->payload.ptr, frame->payload.len, &used,
                             &none) == 0;
    case RD_RELAY_SAVED_OUTPUT:
        rd_outq_copy(&self->conn->out, &self->conn->set->chunks, frame->payload.ptr,
                     frame->payload.len);
        return true;
    default:
        return false;
    }
}

static bool restore_frame(restoring *self, const rd_relay_frame *frame) {
    if (frame->type == RD_RELAY_SAVED_LINK) return restore_link(self, frame);
    if (self->conn != NULL) return restore_of_link(self, frame);
    rd_hub *hub = &self->thread->hub;
    if (frame->flags & RD_RELAY_ENGINE) {
        rd_hub_publish(hub, frame);
    } else if (frame->type == RD_RELAY_SAVED_ENGINE) {
        hub->engine_id = frame->id;
    } else {
        rd_history_restore(&hub->history, frame);
        hub->engine_id = hub->history.last_id; /* until SAVED_ENGINE comes, if it does */
    }
    return true;
}

static bool restore_piece(restoring *self, rd_relay_reader *reader, const char *bytes, size_t len) {
    size_t used;
    for (size_t at = 0; at <= len; at += used) {
        rd_relay_frame frame;
        const int code = rd_relay_read(reader, bytes + at, len - at, &used, &frame);
        if (code == 0) return true;
        if (code < 0 || !restore_frame(self, &frame)) return false;
    }
    return true;
}

/* What waits for an engine has no limit here: it was within the limit when it was saved. */
int rd_hub_thread_restore(rd_hub_thread *thread, int fd) {
    const size_t unclaimed_max = thread->hub.unclaimed_max;
    restoring self = {.thread = thread};
    rd_relay_reader reader;
    bool is_good = true;
    ssize_t len = 0;
    char *bytes = rd_alloc(WRITE_BYTES);
    rd_relay_reader_init(&reader, RD_RELAY_PAYLOAD_MAX);
    reader.takes_saved = true;
    rd_loop_lock(&thread->loop);
    thread->hub.unclaimed_max = SIZE_MAX;
    for (off_t at = 0; is_good && (len = pread(fd, bytes, WRITE_BYTES, at)) > 0; at += len) {
        is_good = restore_piece(&self, &reader, bytes, (size_t)len);
    }
    is_good = is_good && len == 0 && rd_buffer_len(&reader.kept) == reader.spent;
    thread->hub.unclaimed_max = unclaimed_max;
    rd_loop_unlock(&thread->loop);
    rd_relay_reader_clear(&reader);
    rd_free(bytes);
    errno = EINVAL;
    return is_good ? 0 : -1;
}
