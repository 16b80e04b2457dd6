/* SPDX-License-Identifier: MIT
 *
 * The chunked transfer coding; see http1_chunked.h. One step for each byte except data, which is
 * returned in one piece. Sizes are added up digit by digit; no byte is read twice.
 *
 *   SIZE ─▶ (EXTENSION ...) ─▶ SIZE_LF ─▶ DATA ─▶ DATA_CR ─▶ DATA_LF ─▶ SIZE
 *                                 │ size 0
 *                                 ╰─▶ TRAILER ─▶ NAME ─▶ VALUE ─▶ VALUE_LF ─▶ TRAILER
 *                                        ╰─▶ END_LF ─▶ done
 */
#include "protocol/http1_chunked.h"

#include "base/hex.h"
#include "http/field.h"

enum {
    SIZE,
    EXTENSION,        /* behind ';' */
    EXTENSION_NAME,   /* in the name */
    EXTENSION_EQUALS, /* blanks behind the name: '=' or ';' must come */
    EXTENSION_VALUE,  /* behind '=' */
    EXTENSION_TOKEN,  /* in a value that is a token */
    EXTENSION_QUOTED,
    EXTENSION_ESCAPE, /* behind a backslash in quotes */
    EXTENSION_END,    /* behind the closing quote */
    EXTENSION_GAP,    /* blanks behind a value: only ';' may follow */
    SIZE_LF,
    DATA,
    DATA_CR,
    DATA_LF,
    TRAILER,
    NAME,
    VALUE,
    VALUE_LF,
    END_LF,
    DONE
};

enum { DIGITS_MAX = 16, OVERHEAD_FREE = 512 * 1024, OVERHEAD_RATIO = 3 };

void rd_http1_chunked_init(rd_http1_chunked *chunked) {
    memset(chunked, 0, sizeof *chunked);
}

static int go(rd_http1_chunked *chunked, uint8_t state) {
    chunked->state = state;
    return 0;
}

static int read_size(rd_http1_chunked *chunked, unsigned char byte) {
    const int digit = rd_hex_value((char)byte);

    if (digit < 0) {
        if (chunked->digits == 0) return RD_ERR_CHUNK_SIZE;
        if (byte == '\r') return go(chunked, SIZE_LF);
        return byte == ';' ? go(chunked, EXTENSION) : RD_ERR_CHUNK_SIZE;
    }
    if (chunked->digits++ == DIGITS_MAX) return RD_ERR_CHUNK_SIZE_TOO_LARGE;
    if (chunked->left > (uint64_t)INT64_MAX >> 4) return RD_ERR_CHUNK_SIZE_TOO_LARGE;
    chunked->left = chunked->left << 4 | (uint64_t)digit;
    return 0;
}

static bool is_name_byte(unsigned char byte) {
    return rd_field_name_bytes[byte] != 0;
}

static bool is_quotable(unsigned char byte) {
    return byte >= 0x20 ? byte != 0x7f : byte == '\t';
}

/* Checks what follows the value of an extension. */
static int end_extension(rd_http1_chunked *chunked, unsigned char byte) {
    if (byte == '\r') return go(chunked, SIZE_LF);
    if (rd_field_is_blank(byte)) return go(chunked, EXTENSION_GAP);
    return byte == ';' ? go(chunked, EXTENSION) : RD_ERR_CHUNK_EXTENSION;
}

/* RFC 9112, section 7.1.1: *( ";" name [ "=" ( token / quoted-string ) ] ), with bad blanks. */
static int read_extension(rd_http1_chunked *chunked, unsigned char byte) {
    switch (chunked->state) {
    case EXTENSION:
        if (rd_field_is_blank(byte)) return 0;
        return is_name_byte(byte) ? go(chunked, EXTENSION_NAME) : RD_ERR_CHUNK_EXTENSION;
    case EXTENSION_NAME:
        if (is_name_byte(byte)) return 0;
        if (rd_field_is_blank(byte)) return go(chunked, EXTENSION_EQUALS);
        return byte == '=' ? go(chunked, EXTENSION_VALUE) : end_extension(chunked, byte);
    case EXTENSION_EQUALS:
        if (rd_field_is_blank(byte)) return 0;
        if (byte == '=') return go(chunked, EXTENSION_VALUE);
        return byte == ';' ? go(chunked, EXTENSION) : RD_ERR_CHUNK_EXTENSION;
    case EXTENSION_VALUE:
        if (rd_field_is_blank(byte)) return 0;
        if (byte == '"') return go(chunked, EXTENSION_QUOTED);
        return is_name_byte(byte) ? go(chunked, EXTENSION_TOKEN) : RD_ERR_CHUNK_EXTENSION;
    case EXTENSION_GAP:
        if (rd_field_is_blank(byte)) return 0;
        return byte == ';' ? go(chunked, EXTENSION) : RD_ERR_CHUNK_EXTENSION;
    case EXTENSION_TOKEN:
        return is_name_byte(byte) ? 0 : end_extension(chunked, byte);
    case EXTENSION_QUOTED:
        if (byte == '"') return go(chunked, EXTENSION_END);
        if (byte == '\\') return go(chunked, EXTENSION_ESCAPE);
        return is_quotable(byte) ? 0 : RD_ERR_CHUNK_EXTENSION;
    case EXTENSION_ESCAPE:
        return is_quotable(byte) ? go(chunked, EXTENSION_QUOTED) : RD_ERR_CHUNK_EXTENSION;
    default:
        return end_extension(chunked, byte);
    }
}

/*
 * A size line is complete. Chunks of one byte cost the server far more than the sender. So beyond a
 * free allowance (a body of 64 KiB in single bytes fits) a quarter of a body at least must be data.
 */
static int start_chunk(rd_http1_chunked *chunked) {
    chunked->overhead += chunked->line + 4;
    if (chunked->overhead > OVERHEAD_FREE && chunked->overhead / OVERHEAD_RATIO > chunked->total)
        return RD_ERR_CHUNK_OVERHEAD;
    chunked->digits = 0;
    chunked->line = 0;
    return go(chunked, chunked->left > 0 ? DATA : TRAILER);
}

/* Reads a byte of a size line, including its LF. */
static int read_chunk_line(rd_http1_chunked *chunked, const rd_head_limits *limits,
                           unsigned char byte) {
    const uint8_t state = chunked->state;
    int rc;

    if (state == SIZE_LF) return byte == '\n' ? start_chunk(chunked) : RD_ERR_CHUNK_SIZE;
    rc = state == SIZE ? read_size(chunked, byte) : read_extension(chunked, byte);
    if (rc < 0 || chunked->state == SIZE_LF) return rc;
    if (++chunked->line > limits->chunk_line_bytes) return RD_ERR_CHUNK_LINE_TOO_LONG;
    if (chunked->state != SIZE && ++chunked->extensions > limits->chunk_extension_bytes)
        return RD_ERR_CHUNK_EXTENSIONS_TOO_LONG;
    return 0;
}

static int start_trailer(rd_http1_chunked *chunked, const rd_head_limits *limits,
                         unsigned char byte) {
    if (byte == '\r') return go(chunked, END_LF);
    if (byte == '\n') return RD_ERR_BARE_LF;
    if (rd_field_is_blank(byte)) return RD_ERR_FIELD_FOLDED;
    if (byte == ':') return RD_ERR_FIELD_NAME_EMPTY;
    if (!is_name_byte(byte)) return RD_ERR_FIELD_NAME_BYTE;
    if (chunked->fields >= limits->header_count) return RD_ERR_FIELD_COUNT;
    chunked->fields++;
    chunked->line = 1;
    return go(chunked, NAME);
}

static int read_trailer_name(rd_http1_chunked *chunked, const rd_head_limits *limits,
                             unsigned char byte) {
    if (byte == ':') {
        chunked->line = 0;
        return go(chunked, VALUE);
    }
    if (!is_name_byte(byte)) return rd_field_name_error(byte);
    return ++chunked->line > rd_field_name_limit(limits) ? RD_ERR_FIELD_NAME_TOO_LONG : 0;
}

static int read_trailer_value(rd_http1_chunked *chunked, const rd_head_limits *limits,
                              unsigned char byte) {
    if (byte == '\r') return go(chunked, VALUE_LF);
    if (byte == '\n') return RD_ERR_BARE_LF;
    if (!is_quotable(byte)) return RD_ERR_FIELD_VALUE_BYTE;
    return ++chunked->line > limits->header_value_bytes ? RD_ERR_FIELD_VALUE_TOO_LONG : 0;
}

/* Checks trailers by the same rules as fields of a head, and drops them. */
static int read_trailer(rd_http1_chunked *chunked, const rd_head_limits *limits,
                        unsigned char byte) {
    if (++chunked->trailers > limits->trailer_bytes) return RD_ERR_TRAILER_TOO_LARGE;
    switch (chunked->state) {
    case TRAILER:
        return start_trailer(chunked, limits, byte);
    case NAME:
        return read_trailer_name(chunked, limits, byte);
    case VALUE:
        return read_trailer_value(chunked, limits, byte);
    case VALUE_LF:
        return byte == '\n' ? go(chunked, TRAILER) : RD_ERR_BARE_CR;
    default:
        return byte == '\n' ? go(chunked, DONE) : RD_ERR_BARE_CR;
    }
}

static int read_byte(rd_http1_chunked *chunked, const rd_head_limits *limits, unsigned char byte) {
    switch (chunked->state) {
    case DATA_CR:
        return byte == '\r' ? go(chunked, DATA_LF) : RD_ERR_CHUNK_END;
    case DATA_LF:
        return byte == '\n' ? go(chunked, SIZE) : RD_ERR_CHUNK_END;
    default:
        if (chunked->state < DATA) return read_chunk_line(chunked, limits, byte);
        return read_trailer(chunked, limits, byte);
    }
}

int rd_http1_chunked_next(rd_http1_chunked *chunked, const rd_head_limits *limits, const char *buf,
                          size_t len, size_t *used, rd_slice *data) {
    size_t at = 0;
    int rc;

    *data = (rd_slice){buf, 0};
    while (at < len) {
        if (chunked->state == DATA) {
            const size_t piece = chunked->left < len - at ? (size_t)chunked->left : len - at;

            *data = (rd_slice){buf + at, piece};
            *used = at + piece;
            chunked->left -= piece;
            chunked->total += piece;
            if (chunked->left == 0) chunked->state = DATA_CR;
            return RD_CHUNKED_DATA;
        }
        rc = read_byte(chunked, limits, (unsigned char)buf[at++]);
        if (rc == 0 && chunked->state != DONE) continue;
        *used = at;
        return rc < 0 ? rc : RD_CHUNKED_DONE;
    }
    *used = at;
    return RD_CHUNKED_MORE;
}

uint64_t rd_http1_chunked_announced(const rd_http1_chunked *chunked) {
    return chunked->total + (chunked->state == DATA ? chunked->left : 0);
}
