/* SPDX-License-Identifier: MIT
 *
 * Request bodies in memory and in unnamed files; see body.h.
 */
#include "request/body.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

#define KEPT_BACK 4096 /* bytes that wait for more before they are written */

void rd_body_init(rd_body *body, rd_ledger *ledger, rd_spools *spools) {
    *body = (rd_body){.ledger = ledger, .spools = spools};
}

int rd_body_error(const rd_body *body) {
    return body->spool == NULL || body->spool->busy ? 0 : body->spool->error;
}

/* When clients together leave little memory, a body waits for its disk after each read. */
bool rd_body_is_full(const rd_body *body) {
    const size_t len = rd_buffer_len(&body->memory);
    if (rd_body_is_stored(body)) return false;
    return len >= RD_BODY_QUEUE_BYTES ||
           (len > KEPT_BACK &&
            !rd_ledger_has_room(body->ledger, RD_LEDGER_INPUT, RD_BODY_QUEUE_BYTES));
}

static size_t memory_of(const rd_body *body) {
    return body->memory.capacity + (body->spool != NULL ? body->spool->writing.capacity : 0);
}

/* Returns false when the ledger has no room for what the body has in memory. Bytes that wait for
 * the disk are counted anyway. */
static bool count_memory(rd_body *body) {
    const size_t size = memory_of(body);
    if (rd_ledger_keep(body->ledger, RD_LEDGER_INPUT, &body->counted, size)) return true;
    if (body->spool != NULL) {
        rd_ledger_recount(body->ledger, RD_LEDGER_INPUT, &body->counted, size);
    }
    return false;
}

/* Writes one piece at a time; the next piece gathers meanwhile. */
static void write_more(rd_body *body, size_t kept_back) {
    if (body->spool->busy || rd_buffer_len(&body->memory) <= kept_back) return;
    rd_spool_write(body->spool, &body->memory);
}

/* A body that waits for its client has no more memory than its bytes need. */
static void on_written(void *owner) {
    rd_body *body = owner;
    if (rd_body_error(body) == 0) {
        write_more(body, KEPT_BACK);
        if (rd_body_is_stored(body)) {
            rd_spools_take_back(body->spools, &body->spool->writing);
            rd_spools_take_back(body->spools, &body->memory);
        }
    }
    count_memory(body);
    if (body->on_stored != NULL) body->on_stored(body);
}

/* Needs disk space for the present bytes and for `len` more. The body is unchanged when there is
 * none. */
static int move_to_file(rd_body *body, rd_loop *loop, size_t len) {
    int code = 0;
    rd_spool *spool = rd_spool_new(loop, body->ledger, body->spools, on_written, body);
    if (spool == NULL) return RD_ERR_BODY_DESCRIPTOR;
    code = rd_spool_reserve(spool, body->size + len);
    if (code == 0) {
        body->spool = spool;
    } else {
        rd_spool_abandon(spool);
    }
    return code;
}

int rd_body_append(rd_body *body, rd_loop *loop, const char *bytes, size_t len,
                   size_t memory_limit) {
    int code = rd_body_error(body);
    bool moves = body->spool == NULL && body->size + len > memory_limit;
    if (code != 0 || len == 0) return code;
    if (moves) {
        code = move_to_file(body, loop, len);
    } else if (body->spool != NULL) {
        code = rd_spool_reserve(body->spool, len);
    }
    if (code != 0) return code;
    if (body->spool != NULL) rd_spools_lend(body->spools, &body->memory, len);
    rd_buffer_append(&body->memory, bytes, len);
    body->size += len;
    if (!count_memory(body) && body->spool == NULL) {
        moves = true;
        code = move_to_file(body, loop, 0);
        if (code != 0) return code;
    }
    if (body->spool != NULL) write_more(body, moves ? 0 : KEPT_BACK);
    if (moves) count_memory(body);
    return 0;
}

static ssize_t read_file(int fd, uint64_t offset, char *bytes, size_t len) {
    ssize_t got;
    do {
        got = pread(fd, bytes, len, (off_t)offset);
    } while (got < 0 && errno == EINTR);
    return got;
}

/* Reads from a buffer that begins at offset `begin` of the body. */
static ssize_t read_memory(const rd_buffer *from, uint64_t begin, uint64_t offset, char *bytes,
                           size_t len) {
    const size_t at = (size_t)(offset - begin), left = rd_buffer_len(from) - at;
    if (len > left) len = left;
    memcpy(bytes, rd_buffer_ptr(from) + at, len);
    return (ssize_t)len;
}

ssize_t rd_body_read(const rd_body *body, uint64_t offset, char *bytes, size_t len) {
    const rd_spool *spool = body->spool;
    if (offset >= body->size) return 0;
    if (spool == NULL) return read_memory(&body->memory, 0, offset, bytes, len);
    const uint64_t written = spool->stored + rd_buffer_len(&spool->writing);
    if (offset >= written) return read_memory(&body->memory, written, offset, bytes, len);
    if (offset >= spool->stored) {
        return read_memory(&spool->writing, spool->stored, offset, bytes, len);
    }
    if (len > spool->stored - offset) len = (size_t)(spool->stored - offset);
    return read_file(spool->fd, offset, bytes, len);
}

void rd_body_clear(rd_body *body) {
    rd_buffer_clear(&body->memory);
    rd_ledger_keep(body->ledger, RD_LEDGER_INPUT, &body->counted, 0);
    if (body->spool != NULL) rd_spool_abandon(body->spool);
    rd_body_init(body, body->ledger, body->spools);
}
