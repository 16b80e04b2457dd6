/* SPDX-License-Identifier: MIT
 *
 * Reads Forwarded and X-Forwarded-*; see forwarded.h.
 */
#include "request/forwarded.h"

#include "http/field_list.h"

typedef struct rd_trust {
    const rd_network *networks;
    size_t count;
} rd_trust;

static rd_slice unquote(rd_slice text) {
    if (text.len < 2 || text.ptr[0] != '"' || text.ptr[text.len - 1] != '"') return text;
    return rd_slice_of(text.ptr + 1, text.len - 2);
}

/* Takes the last element off a comma-separated list. Empty elements do not count (RFC 9110 section
 * 5.6.1). */
static bool take_last(rd_slice *list, rd_slice *element) {
    element->len = 0;
    while (list->len > 0 && element->len == 0) {
        size_t from = list->len;
        while (from > 0 && list->ptr[from - 1] != ',') from--;
        *element = rd_field_trim(rd_slice_of(list->ptr + from, list->len - from));
        list->len = from > 0 ? from - 1 : 0;
    }
    return element->len > 0;
}

/* Parses "192.0.2.1", "192.0.2.1:80", "[::1]:80" or "::1", each with or without quotes. */
static bool parse_node(rd_address *address, rd_slice node) {
    node = unquote(node);
    if (rd_address_parse(address, node.ptr, node.len)) return true;
    size_t colon = node.len;
    while (colon > 0 && node.ptr[colon - 1] != ':') colon--;
    if (colon <= 1) return false;
    if (memchr(node.ptr, ':', colon - 1) != NULL && node.ptr[colon - 2] != ']') return false;
    return rd_address_parse(address, node.ptr, colon - 1);
}

static uint8_t parse_scheme(rd_slice text) {
    if (rd_field_is_word(text, RD_SLICE("https")) || rd_field_is_word(text, RD_SLICE("wss"))) {
        return RD_FORWARDED_HTTPS;
    }
    if (rd_field_is_word(text, RD_SLICE("http")) || rd_field_is_word(text, RD_SLICE("ws"))) {
        return RD_FORWARDED_HTTP;
    }
    return RD_FORWARDED_NO_SCHEME;
}

static uint16_t parse_port(rd_slice text) {
    unsigned port = 0;
    if (text.len == 0 || text.len > 5) return 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9') return 0;
        port = port * 10 + (unsigned)(text.ptr[i] - '0');
    }
    return port <= 65535 ? (uint16_t)port : 0;
}

/* Goes one step outwards. Returns false at the end: at an untrusted client, or an invalid
 * address. */
static bool step(rd_forwarded *said, const rd_trust *trust, rd_slice node) {
    rd_address address;
    if (!parse_node(&address, node)) return false;
    said->client = address;
    said->has_client = true;
    return rd_networks_contain(trust->networks, trust->count, &address);
}

/* Finds the value of "key=value" in one Forwarded element. */
static bool parameter(rd_slice element, rd_slice key, rd_slice *value) {
    while (element.len > 0) {
        const char *end = memchr(element.ptr, ';', element.len);
        size_t len = end ? (size_t)(end - element.ptr) : element.len;
        rd_slice pair = rd_field_trim(rd_slice_of(element.ptr, len));
        const char *equals = memchr(pair.ptr, '=', pair.len);
        if (equals != NULL &&
            rd_field_is_word(rd_field_trim(rd_slice_of(pair.ptr, (size_t)(equals - pair.ptr))),
                             key)) {
            size_t at = (size_t)(equals - pair.ptr) + 1;
            *value = unquote(rd_field_trim(rd_slice_of(pair.ptr + at, pair.len - at)));
            return true;
        }
        size_t skip = end ? len + 1 : len;
        element = rd_slice_of(element.ptr + skip, element.len - skip);
    }
    return false;
}

/* Fields of the same name are one list (RFC 9110 section 5.3): the last field comes from the
 * nearest proxy. */
static int last_field(const rd_request *request, unsigned id, int before) {
    if (!rd_head_has(&request->head, id)) return -1;
    for (int i = before - 1; i >= 0; i--) {
        if (request->head.headers[i].id == id) return i;
    }
    return -1;
}

static rd_slice field_value(const rd_request *request, int index) {
    return rd_request_header_value(request, &request->head.headers[index]);
}

/* Each element describes the client of the proxy that wrote it. So the scheme, like the address, is
 * what the outermost trusted proxy says. */
static void read_standard(rd_forwarded *said, const rd_request *request, const rd_trust *trust) {
    int field = request->head.header_count;
    while ((field = last_field(request, RD_HEADER_FORWARDED, field)) >= 0) {
        rd_slice list = field_value(request, field), element, value;
        while (take_last(&list, &element)) {
            if (parameter(element, RD_SLICE("proto"), &value)) said->scheme = parse_scheme(value);
            if (!parameter(element, RD_SLICE("for"), &value) || !step(said, trust, value)) return;
        }
    }
}

static void read_client(rd_forwarded *said, const rd_request *request, const rd_trust *trust) {
    int field = request->head.header_count;
    while ((field = last_field(request, RD_HEADER_X_FORWARDED_FOR, field)) >= 0) {
        rd_slice list = field_value(request, field), element;
        while (take_last(&list, &element)) {
            if (!step(said, trust, element)) return;
        }
    }
}

static bool nearest_value(const rd_request *request, unsigned id, rd_slice *value) {
    int field = last_field(request, id, request->head.header_count);
    if (field < 0) return false;
    rd_slice list = field_value(request, field);
    return take_last(&list, value);
}

/* Scheme and port are what the nearest proxy says. These lists have no entry for each proxy: most
 * proxies overwrite them and some pass them on. So no other entry is known to come from a proxy. */
static void read_x_fields(rd_forwarded *said, const rd_request *request, const rd_trust *trust) {
    rd_slice value;
    read_client(said, request, trust);
    if (nearest_value(request, RD_HEADER_X_FORWARDED_PROTO, &value)) {
        said->scheme = parse_scheme(value);
    }
    if (nearest_value(request, RD_HEADER_X_FORWARDED_PORT, &value)) {
        said->port = parse_port(value);
    }
}

void rd_forwarded_read(rd_forwarded *said, const rd_request *request, unsigned fields,
                       const rd_network *trusted, size_t trusted_count) {
    rd_trust trust = {trusted, trusted_count};
    *said = (rd_forwarded){0};
    if (fields == RD_FORWARDED_FIELDS_STANDARD) {
        read_standard(said, request, &trust);
    } else {
        read_x_fields(said, request, &trust);
    }
}
