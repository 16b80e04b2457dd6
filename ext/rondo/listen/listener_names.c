/* SPDX-License-Identifier: MIT
 *
 * The table of names; see listener_names.h.
 */
#include "listen/listener_names.h"

#include <string.h>

#include "base/alloc.h"

static rd_slice slice_of(const char *text) {
    return rd_slice_of(text, strlen(text));
}

rd_slice rd_listener_name_of(const rd_listener *listener) {
    const bool is_alike = listener->transport->is_plain && listener->site == 0;
    return is_alike ? RD_SLICE("") : slice_of(listener->url);
}

static bool is_of_kind(const rd_listener_name *row, const rd_transport *transport) {
    return row->transport->is_plain == transport->is_plain &&
           row->transport->is_secure == transport->is_secure;
}

/* A site may have several listeners. What nobody is called is closed where it arrives. */
static rd_slice name_of_site(const rd_listener_names *names, const rd_transport *transport,
                             uint16_t site) {
    for (size_t i = 0; i < names->count; i++) {
        const rd_listener_name *row = &names->rows[i];
        if (row->site == site && is_of_kind(row, transport)) return slice_of(row->url);
    }
    return RD_SLICE("?");
}

rd_slice rd_listener_name_of_conn(const rd_listener_names *names, rd_conn *conn) {
    const rd_transport *transport = rd_conn_own_transport(conn);
    if (conn->origin.site > 0) return name_of_site(names, transport, conn->origin.site);
    return transport->is_plain ? RD_SLICE("") : slice_of(transport->scheme);
}

static bool is_called(const rd_listener_name *row, rd_slice name) {
    return rd_slice_equal(slice_of(row->url), name) ||
           (row->site == 0 && rd_slice_equal(slice_of(row->transport->scheme), name));
}

const rd_listener_name *rd_listener_names_find(const rd_listener_names *names, rd_slice name) {
    static const rd_listener_name plain = {.transport = &rd_transport_tcp};
    if (name.len == 0) return &plain;
    for (size_t i = 0; i < names->count; i++) {
        if (is_called(&names->rows[i], name)) return &names->rows[i];
    }
    return NULL;
}

static bool has_row(const rd_listener_names *names, const rd_listener *listener) {
    for (size_t i = 0; i < names->count; i++) {
        const rd_listener_name *row = &names->rows[i];
        if (row->transport == listener->transport && row->site == listener->site &&
            strcmp(row->url, listener->url) == 0) {
            return true;
        }
    }
    return false;
}

void rd_listener_names_add(rd_listener_names *names, const rd_listener *listener) {
    if (rd_listener_name_of(listener).len == 0 || listener->is_raw || has_row(names, listener)) {
        return;
    }
    names->rows = rd_realloc(names->rows, (names->count + 1) * sizeof(names->rows[0]));
    rd_listener_name *row = &names->rows[names->count++];
    row->transport = rd_transport_ref(listener->transport);
    row->site = listener->site;
    memcpy(row->url, listener->url, sizeof(row->url));
}

void rd_listener_names_clear(rd_listener_names *names) {
    for (size_t i = 0; i < names->count; i++) rd_transport_unref(names->rows[i].transport);
    rd_free(names->rows);
    *names = (rd_listener_names){0};
}
