/* SPDX-License-Identifier: MIT
 *
 * zlib for WebSocket messages; see websocket_deflate.h.
 */
#define ZLIB_CONST
#include "endpoint/websocket_deflate.h"

#include <assert.h>
#include <zlib.h>

#include "base/alloc.h"

/*
 * Level 1, because the loop waits for it: 12 us for a KiB of JSON (leaving a third of it), 1.5 ms
 * for 256 KiB, the most the loop ever waits. Level 6 takes three times as long and leaves a tenth
 * less. A hash of 13 bits (memory level 6), because it is cleared for each message: 15 bits take
 * half as long again for a KiB.
 */
#define LEVEL        1
#define MEMORY_LEVEL 6
#define PACK_MAX     262144

#define STEP_BYTES      16384
#define SPARE_MAX       4     /* inflaters kept, 40 KiB each */
#define ROOM_KEPT       65536 /* of the output buffer */
#define ZLIB_WINDOW_MIN 9     /* for raw deflate */
#define UNUSED_BITS     0x3f  /* in z_stream.data_type, see inflate() in zlib.h */
#define BEHIND_A_BLOCK  0x80

struct rd_ws_inflater {
    z_stream stream;
    rd_ws_deflate *shared;
    rd_ws_inflater *next; /* the next spare one */
    uint32_t taken;
    bool complete;
};

struct rd_ws_deflate {
    z_stream *packers[RD_WS_WINDOW_MAX + 1]; /* by bits of the window; most are never created */
    rd_ws_inflater *spare;
    unsigned spare_count;
    size_t threshold, room;
    unsigned char *packed;
    unsigned char step[STEP_BYTES];
};

const rd_slice rd_ws_inflate_tail = RD_SLICE_INIT("\0\0\xff\xff");

/* Never overflows: zlib asks for small sizes of its own. */
static void *take_memory(void *none, uInt count, uInt size) {
    (void)none;
    return rd_alloc((size_t)count * size);
}

static void give_memory(void *none, void *memory) {
    (void)none;
    rd_free(memory);
}

/* Memory allocation never fails here and the arguments are valid, so zlib does not fail either. */
static void must(int rc) {
    assert(rc == Z_OK);
    (void)rc;
}

rd_ws_deflate *rd_ws_deflate_new(size_t threshold) {
    rd_ws_deflate *shared = rd_alloc_zero(sizeof(*shared));
    shared->threshold = threshold;
    return shared;
}

static void free_inflater(rd_ws_inflater *inflater) {
    inflateEnd(&inflater->stream);
    rd_free(inflater);
}

void rd_ws_deflate_free(rd_ws_deflate *shared) {
    if (shared == NULL) return;
    for (rd_ws_inflater *inflater; (inflater = shared->spare) != NULL;) {
        shared->spare = inflater->next;
        free_inflater(inflater);
    }
    for (size_t bits = 0; bits <= RD_WS_WINDOW_MAX; bits++) {
        if (shared->packers[bits] == NULL) continue;
        deflateEnd(shared->packers[bits]);
        rd_free(shared->packers[bits]);
    }
    rd_free(shared->packed);
    rd_free(shared);
}

/* ---- deflating ---- */

static z_stream *packer_for(rd_ws_deflate *shared, unsigned bits) {
    z_stream *packer = shared->packers[bits];
    if (packer != NULL) {
        must(deflateReset(packer));
        return packer;
    }
    packer = shared->packers[bits] = rd_alloc_zero(sizeof(*packer));
    packer->zalloc = take_memory;
    packer->zfree = give_memory;
    must(deflateInit2(packer, LEVEL, Z_DEFLATED, -(int)bits, MEMORY_LEVEL, Z_DEFAULT_STRATEGY));
    return packer;
}

/* Frees what a large message needed. */
static void make_room(rd_ws_deflate *shared, size_t len) {
    if (len <= shared->room && (len > ROOM_KEPT || shared->room <= ROOM_KEPT)) return;
    rd_free(shared->packed);
    shared->room = len > ROOM_KEPT ? len : ROOM_KEPT;
    shared->packed = rd_alloc(shared->room);
}

rd_slice rd_ws_deflate_pack(rd_ws_deflate *shared, unsigned window_bits, rd_slice payload) {
    const rd_slice not_worth_it = {NULL, 0};
    if (payload.len < shared->threshold || payload.len > PACK_MAX) return not_worth_it;
    if (window_bits < ZLIB_WINDOW_MIN) {
        if (payload.len > (size_t)1 << window_bits) return not_worth_it;
        window_bits = ZLIB_WINDOW_MIN; /* a message cannot refer back further than its length */
    }
    /* A result that fills this room is not shorter than the payload, even without its tail. */
    const size_t room = payload.len + rd_ws_inflate_tail.len;
    make_room(shared, room);
    z_stream *packer = packer_for(shared, window_bits);
    packer->next_in = (const unsigned char *)payload.ptr;
    packer->avail_in = (uInt)payload.len;
    packer->next_out = shared->packed;
    packer->avail_out = (uInt)room;
    must(deflate(packer, Z_SYNC_FLUSH));
    if (packer->avail_out == 0) return not_worth_it;
    const size_t len = room - packer->avail_out - rd_ws_inflate_tail.len;
    return rd_slice_of((const char *)shared->packed, len);
}

/* ---- inflating ---- */

static rd_ws_inflater *new_inflater(rd_ws_deflate *shared) {
    rd_ws_inflater *inflater = rd_alloc_zero(sizeof(*inflater));
    inflater->shared = shared;
    inflater->stream.zalloc = take_memory;
    inflater->stream.zfree = give_memory;
    must(inflateInit2(&inflater->stream, -RD_WS_WINDOW_MAX));
    return inflater;
}

rd_ws_inflater *rd_ws_inflater_take(rd_ws_deflate *shared) {
    rd_ws_inflater *inflater = shared->spare;
    if (inflater == NULL) {
        inflater = new_inflater(shared);
    } else {
        shared->spare = inflater->next;
        shared->spare_count--;
        must(inflateReset(&inflater->stream));
    }
    inflater->taken = 0;
    inflater->complete = true;
    return inflater;
}

void rd_ws_inflater_give(rd_ws_inflater *inflater) {
    if (inflater == NULL) return;
    rd_ws_deflate *shared = inflater->shared;
    if (shared->spare_count == SPARE_MAX) {
        free_inflater(inflater);
        return;
    }
    inflater->next = shared->spare;
    shared->spare = inflater;
    shared->spare_count++;
}

/* Whether it is behind a block, with too few bits left to begin another one. */
static bool is_boundary(const z_stream *stream) {
    return (stream->data_type & BEHIND_A_BLOCK) != 0 && (stream->data_type & UNUSED_BITS) < 3;
}

/*
 * One call of zlib goes to the end of a block at most, because zlib reports the end of a block only
 * there. The last block of a stream (BFINAL) may come in the middle of a message, with another
 * stream behind it (RFC 7692, section 7.2.3.5). Output before an error is returned before the
 * error, so that the result does not depend on how the bytes were cut.
 */
int rd_ws_inflate(rd_ws_inflater *inflater, rd_slice *in, size_t limit, rd_slice *out) {
    z_stream *stream = &inflater->stream;
    const size_t room = limit < STEP_BYTES ? limit : STEP_BYTES, before = in->len;
    assert(room > 0);
    stream->next_in = (const unsigned char *)in->ptr;
    stream->avail_in = (uInt)in->len;
    stream->next_out = inflater->shared->step;
    stream->avail_out = (uInt)room;
    const int rc = inflate(stream, Z_BLOCK);
    *in = rd_slice_of((const char *)stream->next_in, stream->avail_in);
    *out = rd_slice_of((const char *)inflater->shared->step, room - stream->avail_out);
    inflater->taken += (uint32_t)(before - in->len);
    if (rc == Z_STREAM_END) must(inflateReset(stream));
    if (rc == Z_DATA_ERROR) return out->len > 0 ? 1 : RD_ERR_WS_DEFLATE;
    /* Nothing went in or out, and no block ended with the bits that were left. */
    if (rc == Z_BUF_ERROR && (stream->data_type & BEHIND_A_BLOCK) == 0) return 0;
    inflater->complete = rc == Z_STREAM_END || is_boundary(stream);
    return 1;
}

uint32_t rd_ws_inflater_taken(const rd_ws_inflater *inflater) {
    return inflater == NULL ? 0 : inflater->taken;
}

bool rd_ws_inflater_is_complete(const rd_ws_inflater *inflater) {
    return inflater->complete;
}
