/* SPDX-License-Identifier: MIT
 *
 * Finding and comparing tokens; see token.h.
 */
#include "control/token.h"

#include "base/ascii.h"
#include "http/base64.h"
#include "base/hex.h"

#define TOKEN_MAX 512

/* Looks at every byte of the token, whatever was given and wherever the first difference is. */
static bool is_equal(const char *token, rd_slice given) {
    size_t len = strlen(token);
    size_t differ = len ^ given.len;
    for (size_t i = 0; i < len; i++) {
        unsigned char byte = given.len > 0 ? (unsigned char)given.ptr[i % given.len] : 0;
        differ |= (size_t)((unsigned char)token[i] ^ byte);
    }
    return differ == 0;
}

static bool is_equal_decoded(const char *token, rd_slice given) {
    char decoded[TOKEN_MAX];
    size_t len = 0;
    if (given.len > sizeof(decoded)) return false;
    for (size_t i = 0; i < given.len; i++) {
        const int escape = given.ptr[i] == '%' ? rd_hex_escape(given.ptr + i, given.len - i) : -1;
        decoded[len++] = (char)(escape < 0 ? given.ptr[i] : escape);
        if (escape >= 0) i += 2;
    }
    return is_equal(token, rd_slice_of(decoded, len));
}

static bool is_in_query(const char *token, rd_slice query) {
    static const rd_slice name = {"token=", 6};
    bool found = false;
    for (size_t at = 0, end; at < query.len; at = end + 1) {
        for (end = at; end < query.len && query.ptr[end] != '&' && query.ptr[end] != ';';) end++;
        rd_slice part = rd_slice_of(query.ptr + at, end - at);
        if (part.len < name.len || memcmp(part.ptr, name.ptr, name.len) != 0) continue;
        part = rd_slice_of(part.ptr + name.len, part.len - name.len);
        /* pumactl sends it as it is, other clients encode it */
        found |= is_equal(token, part);
        found |= is_equal_decoded(token, part);
    }
    return found;
}

/* What stands behind the scheme in Authorization; NULL: there is no such field. */
static rd_slice credentials(const rd_request *request, rd_slice scheme) {
    static const rd_slice none;
    const rd_header *header = rd_head_find(&request->head, RD_HEADER_AUTHORIZATION);
    if (header == NULL) return none;
    rd_slice value = rd_request_header_value(request, header);
    if (value.len < scheme.len) return none;
    if (!rd_ascii_is(rd_slice_of(value.ptr, scheme.len), scheme)) return none;
    return rd_slice_of(value.ptr + scheme.len, value.len - scheme.len);
}

static bool is_bearer(const char *token, const rd_request *request) {
    const rd_slice given = credentials(request, RD_SLICE("bearer "));
    return given.ptr != NULL && is_equal(token, given);
}

/* ---- Basic ---- */

static bool is_basic(const char *token, const rd_request *request) {
    char decoded[TOKEN_MAX * 2];
    const rd_slice given = credentials(request, RD_SLICE("basic "));
    const ssize_t len = given.ptr != NULL ? rd_base64_decode(given, decoded, sizeof(decoded)) : -1;
    const char *colon = len > 0 ? memchr(decoded, ':', (size_t)len) : NULL;
    if (colon == NULL) return false;
    return is_equal(token, rd_slice_of(colon + 1, (size_t)(decoded + len - colon - 1)));
}

bool rd_token_matches(const char *token, const rd_request *request) {
    bool bearer = is_bearer(token, request);
    bool query = is_in_query(token, rd_request_slice(request, request->head.query));
    return bearer || query;
}

bool rd_token_is_password(const char *token, const rd_request *request) {
    bool basic = is_basic(token, request);
    return rd_token_matches(token, request) || basic;
}
