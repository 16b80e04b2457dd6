/* SPDX-License-Identifier: MIT
 *
 * How far a name, a target or a value reaches: sixteen bytes at a time with SSE2, otherwise one.
 * The block tests know only the common bytes; the byte at which they stop is looked up in the
 * tables of field.h. For http1_parser.c. Any thread.
 */
#ifndef RD_PROTOCOL_HTTP1_SCAN_H
#define RD_PROTOCOL_HTTP1_SCAN_H

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "http/field.h"

#if defined(__SSE2__)

static inline __m128i rd_scan_load(const char *buf) {
    return _mm_loadu_si128((const __m128i *)(const void *)buf);
}

/* 0xff where first <= byte <= last. */
static inline __m128i rd_scan_range(__m128i bytes, unsigned char first, unsigned char last) {
    const __m128i above = _mm_sub_epi8(bytes, _mm_set1_epi8((char)first));

    return _mm_cmpeq_epi8(_mm_min_epu8(above, _mm_set1_epi8((char)(last - first))), above);
}

static inline __m128i rd_scan_letters(__m128i bytes) {
    return rd_scan_range(_mm_or_si128(bytes, _mm_set1_epi8(0x20)), 'a', 'z');
}

/* Offset of the first byte that is not 0xff; 16 if there is none. */
static inline uint32_t rd_scan_first_miss(__m128i hits) {
    return (uint32_t)__builtin_ctz(~(unsigned)_mm_movemask_epi8(hits));
}

#endif

/* Letters, digits, '-': nearly all names have nothing else. (Dot and slash are left to the
 * table.) */
static inline uint32_t rd_scan_plain_name(const char *buf, uint32_t at, uint32_t end) {
#if defined(__SSE2__)
    while (end - at >= 16) {
        const __m128i bytes = rd_scan_load(buf + at);
        const __m128i digits = rd_scan_range(bytes, '0', '9');
        const __m128i dash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('-'));
        const uint32_t hits =
            rd_scan_first_miss(_mm_or_si128(rd_scan_letters(bytes), _mm_or_si128(digits, dash)));

        at += hits;
        if (hits < 16) break;
    }
#else
    (void)buf;
    (void)end;
#endif
    return at;
}

/* First byte of buf[at..end) that is not part of a token. Adds the kinds of the others to
 * *kinds. */
static inline uint32_t rd_scan_name(const char *buf, uint32_t at, uint32_t end, unsigned *kinds) {
    unsigned kind;

    at = rd_scan_plain_name(buf, at, end);
    while (at < end && (kind = rd_field_name_bytes[(unsigned char)buf[at]]) != 0) {
        *kinds |= kind;
        at++;
    }
    return at;
}

/* Letters, '=', '?', '_' and everything from '$' to ';', which is digits, '/', '.', '%' and '&'. */
static inline uint32_t rd_scan_plain_target(const char *buf, uint32_t at, uint32_t end) {
#if defined(__SSE2__)
    while (end - at >= 16) {
        const __m128i bytes = rd_scan_load(buf + at);
        const __m128i signs = _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('=')),
                                           _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('?')),
                                                        _mm_cmpeq_epi8(bytes, _mm_set1_epi8('_'))));
        const uint32_t hits = rd_scan_first_miss(_mm_or_si128(
            rd_scan_letters(bytes), _mm_or_si128(rd_scan_range(bytes, '$', ';'), signs)));

        at += hits;
        if (hits < 16) break;
    }
#else
    (void)buf;
    (void)end;
#endif
    return at;
}

static inline bool rd_scan_is_value_byte(unsigned char byte) {
    return byte >= 0x20 ? byte != 0x7f : byte == '\t';
}

/* First byte that is not allowed in a value (CTL except HTAB, DEL). Line ends are such bytes. */
static inline uint32_t rd_scan_value(const char *buf, uint32_t at, uint32_t end) {
#if defined(__SSE2__)
    while (end - at >= 16) {
        const __m128i bytes = rd_scan_load(buf + at);
        const __m128i tab = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\t'));
        const __m128i del = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x7f));
        const __m128i control = rd_scan_range(bytes, 0, 0x1f);
        const int bad = _mm_movemask_epi8(_mm_or_si128(_mm_andnot_si128(tab, control), del));

        if (bad) return at + (uint32_t)__builtin_ctz((unsigned)bad);
        at += 16;
    }
#endif
    while (at < end && rd_scan_is_value_byte((unsigned char)buf[at])) at++;
    return at;
}

#endif
