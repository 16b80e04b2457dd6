/* SPDX-License-Identifier: MIT
 *
 * Offers of extensions; see websocket_extension.h.
 *
 *   offers    offer *("," offer)             blanks around every part
 *   offer     token *(";" parameter)
 *   parameter token ["=" (token | quoted)]
 */
#include "endpoint/websocket_extension.h"

#include <stdio.h>

#include "http/field.h"

/* Parameters of permessage-deflate. The bits say which of them an offer has. */
enum { SERVER_NO_TAKEOVER = 1, CLIENT_NO_TAKEOVER = 2, SERVER_WINDOW = 4, CLIENT_WINDOW = 8 };

enum { NO_VALUE = 0, NO_NUMBER = -1 };

typedef struct cursor {
    const char *at, *end;
} cursor;

static void skip_blanks(cursor *text) {
    while (text->at < text->end && rd_field_is_blank((unsigned char)*text->at)) text->at++;
}

static bool take_byte(cursor *text, char byte) {
    skip_blanks(text);
    if (text->at == text->end || *text->at != byte) return false;
    text->at++;
    return true;
}

/* Returns an empty slice when there is no token. */
static rd_slice take_token(cursor *text) {
    skip_blanks(text);
    const char *start = text->at;
    while (text->at < text->end && rd_field_name_bytes[(unsigned char)*text->at] != 0) text->at++;
    return rd_slice_of(start, (size_t)(text->at - start));
}

/* Takes a quoted value. Its value is the text inside, without the backslashes (RFC 6455, section
 * 9.1). `value` gets the first bytes: as many as a number may have, and one more. Returns false
 * when the closing quote is missing. */
static bool take_quoted(cursor *text, char value[3], size_t *len) {
    for (*len = 0; text->at < text->end; text->at++) {
        if (*text->at == '"') {
            text->at++;
            return true;
        }
        if (*text->at == '\\' && ++text->at == text->end) return false;
        if (*len < 3) value[(*len)++] = *text->at;
    }
    return false;
}

/* A decimal number without leading zeros, of at most two digits (RFC 7692, section 7.1.2.1). */
static int number_of(const char *digits, size_t len) {
    int number = 0;
    if (len == 0 || len > 2 || digits[0] == '0') return NO_NUMBER;
    for (size_t i = 0; i < len; i++) {
        if (digits[i] < '0' || digits[i] > '9') return NO_NUMBER;
        number = 10 * number + (digits[i] - '0');
    }
    return number;
}

/* The value of a parameter: NO_VALUE, a number above 0, or NO_NUMBER for anything else. */
static int take_value(cursor *text) {
    char quoted[3];
    size_t len;
    if (!take_byte(text, '=')) return NO_VALUE;
    if (take_byte(text, '"')) {
        return take_quoted(text, quoted, &len) ? number_of(quoted, len) : NO_NUMBER;
    }
    const rd_slice token = take_token(text);
    return number_of(token.ptr, token.len);
}

static unsigned parameter_of(rd_slice name) {
    static const rd_slice names[] = {
        RD_SLICE_INIT("server_no_context_takeover"), RD_SLICE_INIT("client_no_context_takeover"),
        RD_SLICE_INIT("server_max_window_bits"), RD_SLICE_INIT("client_max_window_bits")};
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (rd_slice_equal(name, names[i])) return 1U << i;
    }
    return 0;
}

/* Whether the server can keep to the parameter. A promise of the client about its own window needs
 * nothing: an inflater with 15 bits reads all windows. */
static bool is_kept(unsigned parameter, int value) {
    switch (parameter) {
    case SERVER_NO_TAKEOVER:
    case CLIENT_NO_TAKEOVER:
        return value == NO_VALUE;
    case SERVER_WINDOW:
        return value >= RD_WS_WINDOW_MIN && value <= RD_WS_WINDOW_MAX;
    case CLIENT_WINDOW:
        return value == NO_VALUE || (value >= 8 && value <= RD_WS_WINDOW_MAX);
    default:
        return false;
    }
}

/* Takes parameters up to one that the server cannot keep to. */
static bool take_parameters(cursor *text, rd_ws_extension *offer) {
    unsigned seen = 0;
    while (take_byte(text, ';')) {
        const unsigned parameter = parameter_of(take_token(text));
        const int value = take_value(text);
        if ((seen & parameter) != 0 || !is_kept(parameter, value)) return false;
        seen |= parameter;
        if (parameter != SERVER_WINDOW) continue;
        *offer = (rd_ws_extension){.window_bits = (uint8_t)value, .window_asked = true};
    }
    return true;
}

/* Moves to the next offer. Returns true when it skipped nothing but blanks. */
static bool skip_offer(cursor *text) {
    char value[3];
    size_t len;
    skip_blanks(text);
    const char *start = text->at;
    while (text->at < text->end && *text->at != ',') {
        if (*text->at++ == '"') take_quoted(text, value, &len);
    }
    const bool clean = text->at == start;
    if (text->at < text->end) text->at++;
    return clean;
}

static rd_ws_extension choose_in(rd_slice value) {
    cursor text = {value.ptr, value.ptr + value.len};
    while (text.at < text.end) {
        rd_ws_extension offer = {.window_bits = RD_WS_WINDOW_MAX};
        bool kept = rd_slice_equal(take_token(&text), RD_SLICE("permessage-deflate"));
        kept = kept && take_parameters(&text, &offer);
        if (skip_offer(&text) && kept) return offer;
    }
    return (rd_ws_extension){0};
}

rd_ws_extension rd_ws_extension_choose(const rd_head *head, const char *buf) {
    rd_ws_extension chosen = {0};
    if (!rd_head_has(head, RD_HEADER_SEC_WEBSOCKET_EXTENSIONS)) return chosen;
    for (unsigned i = 0; i < head->header_count && chosen.window_bits == 0; i++) {
        if (head->headers[i].id != RD_HEADER_SEC_WEBSOCKET_EXTENSIONS) continue;
        chosen = choose_in(rd_header_value(&head->headers[i], buf));
    }
    return chosen;
}

/* Neither side keeps a window between messages. The server may declare this for both sides without
 * being asked (RFC 7692, sections 7.1.1.1 and 7.1.1.2). */
size_t rd_ws_extension_write(const rd_ws_extension *extension, char text[RD_WS_EXTENSION_MAX]) {
    int len = 0;
    if (extension->window_bits == 0) return 0;
    len = snprintf(text, RD_WS_EXTENSION_MAX,
                   "permessage-deflate; server_no_context_takeover; client_no_context_takeover");
    if (extension->window_asked) {
        len += snprintf(text + len, RD_WS_EXTENSION_MAX - (size_t)len,
                        "; server_max_window_bits=%u", extension->window_bits);
    }
    return (size_t)len;
}

/* ---- the answer of a server ---- */

/* Whether a server may answer our offer with the parameter. It may choose its own window, and say
 * so without being asked; ours it may limit only if that was offered. */
static bool is_answer(unsigned parameter, int value) {
    if (parameter == CLIENT_WINDOW) return false;
    if (parameter == SERVER_WINDOW) return value >= RD_WS_WINDOW_MIN && value <= RD_WS_WINDOW_MAX;
    return is_kept(parameter, value);
}

bool rd_ws_extension_is_agreed(rd_slice answer) {
    cursor text = {answer.ptr, answer.ptr + answer.len};
    unsigned seen = 0;
    if (!rd_slice_equal(take_token(&text), RD_SLICE("permessage-deflate"))) return false;
    while (take_byte(&text, ';')) {
        const unsigned parameter = parameter_of(take_token(&text));
        const int value = take_value(&text);
        if ((seen & parameter) != 0 || !is_answer(parameter, value)) return false;
        seen |= parameter;
    }
    skip_blanks(&text);
    return text.at == text.end && (seen & SERVER_NO_TAKEOVER) != 0;
}
