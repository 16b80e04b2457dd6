/* SPDX-License-Identifier: MIT
 *
 * Frames to the hub: messages, rules, and which channels somebody here wants; see link.h.
 */
#include "cluster/link_parts.h"

#define CATCH_UP 1024 /* changes of subscriptions sent in one turn */

/* Rules and replays may use twice the limit. Rules are few and necessary, so a link that has no
 * room for one is closed. All other frames are refused. */
static bool has_room(rd_link *link, const rd_relay_frame *frame) {
    const size_t limit = (size_t)link->settings.hub_queue_bytes, queued = link->conn->out.bytes;
    const size_t len = RD_RELAY_HEAD_BYTES + frame->channel.len + frame->payload.len;
    if (frame->type <= RD_RELAY_PUBLISH) return queued == 0 || queued + len <= limit;
    if (queued + len <= 2 * limit) return true;
    if (frame->type == RD_RELAY_KEEP) rd_conn_close(link->conn);
    return false;
}

int rd_link_send(rd_link *link, const rd_relay_frame *frame) {
    char head[RD_RELAY_HEAD_BYTES];
    const int code = rd_relay_head(frame, RD_RELAY_PAYLOAD_MAX, head);
    if (code < 0) return code;
    if (link->conn == NULL || !has_room(link, frame)) return 0;
    rd_outq *out = &link->conn->out;
    rd_outq_copy(out, &link->conns.chunks, head, sizeof(head));
    rd_outq_copy(out, &link->conns.chunks, frame->channel.ptr, frame->channel.len);
    rd_outq_copy(out, &link->conns.chunks, frame->payload.ptr, frame->payload.len);
    rd_conn_mark_dirty(link->conn);
    return 1;
}

static bool send_interest(rd_link *link, rd_slice name, bool is_pattern, bool is_wanted) {
    return rd_link_send(link, &(rd_relay_frame){.type = is_wanted ? RD_RELAY_SUBSCRIBE
                                                                  : RD_RELAY_UNSUBSCRIBE,
                                                .flags = rd_link_pattern_flag(is_pattern),
                                                .channel = name}) > 0;
}

void rd_link_note_interest(rd_link *link, rd_slice name, bool is_pattern, bool is_wanted) {
    if (link->conn == NULL) return;
    if (rd_changes_is_empty(&link->changes) && send_interest(link, name, is_pattern, is_wanted)) {
        return;
    }
    rd_changes_note(&link->changes, name, is_pattern, is_wanted);
}

void rd_link_catch_up(rd_link *link) {
    for (int count = CATCH_UP; count > 0; count--) {
        rd_change *change = rd_changes_first(&link->changes);
        if (change == NULL) break;
        if (!send_interest(link, rd_change_name(change), change->is_pattern, change->is_wanted)) {
            break;
        }
        rd_changes_remove(&link->changes, change);
    }
    rd_conn_set_flush(&link->conns);
}

int rd_link_publish(rd_link *link, rd_slice channel, rd_slice payload, unsigned flags) {
    const int code = rd_link_send(link, &(rd_relay_frame){.type = RD_RELAY_PUBLISH,
                                                          .flags = (uint8_t)flags,
                                                          .channel = channel,
                                                          .payload = payload});
    link->published += code > 0;
    link->refused += code == 0;
    return code;
}

void rd_link_keep(rd_link *link, rd_slice name, bool is_pattern, const rd_relay_terms *terms) {
    char bytes[RD_RELAY_TERMS_BYTES];
    rd_link_send(link, &(rd_relay_frame){.type = RD_RELAY_KEEP,
                                         .flags = rd_link_pattern_flag(is_pattern),
                                         .channel = name,
                                         .payload = rd_relay_put_terms(bytes, terms)});
}
