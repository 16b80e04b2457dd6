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
    return listener->transport->is_plain ? RD_SLICE("") : slice_of(listener->url);
}

rd_slice rd_listener_name_of_conn(rd_conn *conn) {
    const rd_transport *transport = rd_conn_own_transport(conn);
    return transport->is_plain ? RD_SLICE("") : slice_of(transport->scheme);
}

static bool is_called(const rd_listener_name *row, rd_slice name) {
    return rd_slice_equal(slice_of(row->url), name) ||
           rd_slice_equal(slice_of(row->transport->scheme), name);
}

const rd_transport *rd_listener_names_find(const rd_listener_names *names, rd_slice name) {
    if (name.len == 0) return &rd_transport_tcp;
    for (size_t i = 0; i < names->count; i++) {
        if (is_called(&names->rows[i], name)) return names->rows[i].transport;
    }
    return NULL;
}

static bool has_row(const rd_listener_names *names, const rd_listener *listener) {
    for (size_t i = 0; i < names->count; i++) {
        const rd_listener_name *row = &names->rows[i];
        if (row->transport == listener->transport && strcmp(row->url, listener->url) == 0) {
            return true;
        }
    }
    return false;
}

void rd_listener_names_add(rd_listener_names *names, const rd_listener *listener) {
    if (listener->transport->is_plain || listener->is_raw || has_row(names, listener)) return;
    names->rows = rd_realloc(names->rows, (names->count + 1) * sizeof(names->rows[0]));
    rd_listener_name *row = &names->rows[names->count++];
    row->transport = rd_transport_ref(listener->transport);
    memcpy(row->url, listener->url, sizeof(row->url));
}

void rd_listener_names_clear(rd_listener_names *names) {
    for (size_t i = 0; i < names->count; i++) rd_transport_unref(names->rows[i].transport);
    rd_free(names->rows);
    *names = (rd_listener_names){0};
}
