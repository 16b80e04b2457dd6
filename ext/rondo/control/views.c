/* SPDX-License-Identifier: MIT
 *
 * Views and lines as JSON; see views.h.
 */
#include "control/views.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "base/utf8.h"

static void add_peer(rd_buffer *text, const rd_address *peer) {
    char address[RD_ADDRESS_TEXT_MAX];
    if (peer->kind == RD_ADDRESS_NONE) {
        rd_text_add(text, ",\"client\":null");
        return;
    }
    rd_address_text(peer, address);
    if (peer->kind == RD_ADDRESS_UNIX) {
        rd_text_add(text, ",\"client\":\"unix\"");
    } else if (peer->kind == RD_ADDRESS_V6) {
        rd_text_add(text, ",\"client\":\"[%s]:%u\"", address, peer->port);
    } else {
        rd_text_add(text, ",\"client\":\"%s:%u\"", address, peer->port);
    }
}

static void add_call(rd_buffer *text, const rd_view_call *call) {
    char target[RD_VIEW_TARGET_MAX + 1];
    memcpy(target, call->target, call->len);
    target[call->len] = '\0';
    rd_text_add(text, "{\"state\":\"%s\",\"since_ms\":%" PRIu64 ",\"client_since_ms\":%" PRIu64,
                rd_view_state_name(call->state), call->since_ms, call->client_since_ms);
    rd_text_add(text, ",\"status\":%u,\"request\":", call->status);
    rd_text_add_json(text, target);
    add_peer(text, &call->peer);
    rd_text_add(text, "}");
}

static void add_client(rd_buffer *text, const rd_view_client *client) {
    rd_text_add(text, "{\"requests\":%u,\"longest_us\":%" PRIu64, client->requests,
                client->longest_us);
    add_peer(text, &client->peer);
    rd_text_add(text, ",\"waits\":[");
    for (unsigned i = 0; i < RD_VIEW_BANDS; i++) {
        rd_text_add(text, i == 0 ? "%u" : ",%u", client->bands[i]);
    }
    rd_text_add(text, "]}");
}

static void add_clients(rd_buffer *text, const char *name, const rd_view_client *clients,
                        uint32_t count) {
    rd_text_add(text, ",\"%s\":[", name);
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0) rd_text_add(text, ",");
        add_client(text, &clients[i]);
    }
    rd_text_add(text, "]");
}

static void add_channels(rd_buffer *text, const rd_view *view) {
    rd_text_add(text, ",\"channels\":%u,\"largest_channels\":[", view->channels);
    for (uint32_t i = 0; i < view->largest; i++) {
        const rd_view_channel *channel = &view->channel[i];
        char name[RD_VIEW_NAME_MAX + 1];
        memcpy(name, channel->name, channel->len);
        name[channel->len] = '\0';
        rd_text_add(text, i == 0 ? "{\"name\":" : ",{\"name\":");
        rd_text_add_json(text, name);
        rd_text_add(text, ",\"pattern\":%s,\"subscribers\":%u}",
                    channel->is_pattern ? "true" : "false", channel->subscribers);
    }
    rd_text_add(text, "]");
}

void rd_views_add(const rd_shared_view *shared, rd_buffer *text) {
    rd_view view;
    if (!rd_view_read(shared, &view) || view.written_ms == 0) return;
    rd_text_add(text, ",\"seen_ms\":%" PRIu64 ",\"waiting\":%u,\"calls\":[", view.written_ms,
                view.waiting);
    for (uint32_t i = 0; i < view.calls; i++) {
        if (i > 0) rd_text_add(text, ",");
        add_call(text, &view.call[i]);
    }
    rd_text_add(text, "]");
    add_clients(text, "busiest", view.busy, view.busiest);
    add_clients(text, "longest", view.late, view.longest);
    add_channels(text, &view);
    rd_text_add(text, ",\"clients_end_ms\":%" PRIu64 ",\"clients_ms\":%" PRIu64, view.period_end,
                view.period_ms);
}

void rd_views_add_bounds(rd_buffer *text) {
    rd_text_add(text, ",\"client_bounds_us\":[");
    for (unsigned i = 0; i + 1 < RD_VIEW_BANDS; i++) {
        rd_text_add(text, i == 0 ? "%" PRIu64 : ",%" PRIu64, rd_view_bound_us(i));
    }
    rd_text_add(text, "]");
}

/* ---- the journal ---- */

/* The writer may have been another program that shares this memory: bytes that are no UTF-8 would
 * make the whole page unreadable. */
static void add_text(rd_buffer *text, rd_journal_line *line) {
    char copy[RD_JOURNAL_TEXT_MAX + 1];
    memcpy(copy, line->text, line->len);
    copy[line->len] = '\0';
    if (!rd_utf8_is_text(rd_slice_of(copy, line->len))) {
        for (size_t i = 0; i < line->len; i++) {
            if ((unsigned char)copy[i] >= 0x80) copy[i] = '?';
        }
    }
    rd_text_add_json(text, copy);
}

static void add_line(rd_buffer *text, rd_journal_line *line) {
    rd_text_add(text,
                "{\"number\":%" PRIu64 ",\"time_ms\":%" PRIu64 ",\"pid\":%u,\"level\":\"%s\","
                "\"worker\":",
                line->number, line->time_ms, line->pid, rd_journal_level_name(line->level));
    if (line->worker < 0) {
        rd_text_add(text, "null");
    } else {
        rd_text_add(text, "%d", line->worker);
    }
    rd_text_add(text, ",\"cut\":%s,\"text\":", line->is_cut ? "true" : "false");
    add_text(text, line);
    rd_text_add(text, "}");
}

uint64_t rd_views_add_lines(const rd_journal *journal, uint64_t after, rd_buffer *text) {
    const uint64_t newest = rd_journal_newest(journal), oldest = rd_journal_oldest(journal);
    uint64_t last = after;
    rd_text_add(text, "[");
    bool first = true;
    for (uint64_t number = after + 1 > oldest ? after + 1 : oldest; number <= newest; number++) {
        rd_journal_line line;
        if (!rd_journal_read(journal, number, &line)) continue;
        if (!first) rd_text_add(text, ",");
        add_line(text, &line);
        first = false;
        last = number;
    }
    rd_text_add(text, "]");
    return last;
}
