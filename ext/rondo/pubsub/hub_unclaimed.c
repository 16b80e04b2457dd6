/* SPDX-License-Identifier: MIT
 *
 * What waits for an engine, in two queues of frames: `returned` is older than `unclaimed`; see
 * hub_unclaimed.h.
 */
#include "pubsub/hub_unclaimed.h"

#include <limits.h>

#include "pubsub/hub_interests.h"
#include "pubsub/hub_offer.h"

static bool is_waiting(const rd_hub *hub) {
    return rd_buffer_len(&hub->returned) + rd_buffer_len(&hub->unclaimed) > 0;
}

/* What a message is to an engine. The rule may be another one than when it was published. */
static rd_relay_frame frame_for_engine(const rd_hub *hub, const rd_relay_frame *from) {
    return (rd_relay_frame){
        .type = RD_RELAY_PUBLISH,
        .flags = from->flags & (RD_RELAY_TEXT | RD_RELAY_CONFIRM),
        .id = hub->has_streams ? rd_history_rule_number(&hub->history, from->channel) : 0,
        .channel = from->channel,
        .payload = from->payload};
}

/* ---- in ---- */

static bool add(rd_hub *hub, rd_buffer *frames, const rd_relay_frame *from) {
    const size_t waiting = rd_buffer_len(&hub->returned) + rd_buffer_len(&hub->unclaimed);
    const size_t len = RD_RELAY_HEAD_BYTES + from->channel.len + from->payload.len;
    const rd_relay_frame frame = frame_for_engine(hub, from);
    return waiting + len <= hub->unclaimed_max &&
           rd_relay_write(&frame, RD_RELAY_PAYLOAD_MAX, frames) == 0;
}

static void lose(rd_hub *hub) {
    if (hub->engine != NULL) {
        rd_hub_lose_message(hub, hub->engine);
    } else {
        hub->unclaimed_lost++;
        hub->lost++;
    }
}

bool rd_hub_give_back(rd_hub *hub, const rd_relay_frame *from) {
    return add(hub, &hub->returned, from);
}

/* Whoever subscribes and publishes then gets the message. So it overtakes no subscription that
 * waits for room. Behind messages that wait it does not try: they go many at a time, and each time
 * moves those that stay. */
void rd_hub_publish_by_engine(rd_hub *hub, const rd_relay_frame *from) {
    if (hub->engine != NULL && !is_waiting(hub)) {
        rd_hub_catch_up(hub, UINT_MAX);
        if (rd_changes_is_empty(&hub->changes)) {
            const rd_relay_frame frame = frame_for_engine(hub, from);
            rd_hub_send_message(hub, hub->engine, &frame, NULL);
            return;
        }
    }
    if (!add(hub, &hub->unclaimed, from)) lose(hub);
}

/* ---- out ---- */

typedef struct claiming {
    rd_hub *hub;
    unsigned left; /* messages */
    bool is_full;  /* the engine has no room */
} claiming;

static void claim_from(claiming *self, rd_buffer *frames) {
    rd_relay_reader reader;
    rd_relay_reader_init(&reader, RD_RELAY_PAYLOAD_MAX);
    while (self->left > 0 && !self->is_full && rd_buffer_len(frames) > 0) {
        rd_relay_frame from;
        size_t used;
        if (rd_relay_read(&reader, rd_buffer_ptr(frames), rd_buffer_len(frames), &used, &from) !=
            1) {
            break;
        }
        const rd_relay_frame frame = frame_for_engine(self->hub, &from);
        self->is_full = !self->hub->send(self->hub->engine, &frame, NULL);
        if (self->is_full) break;
        self->hub->engine->sent++;
        self->left--;
        rd_buffer_consume(frames, used);
    }
    rd_relay_reader_clear(&reader);
}

bool rd_hub_claim(rd_hub *hub, unsigned count) {
    if (hub->engine == NULL || !is_waiting(hub) || !rd_changes_is_empty(&hub->changes)) {
        return false;
    }
    claiming self = {.hub = hub, .left = count};
    claim_from(&self, &hub->returned);
    claim_from(&self, &hub->unclaimed);
    return !self.is_full && is_waiting(hub);
}

static void emit_all(const rd_buffer *frames, rd_history_emit *emit, void *with) {
    const char *bytes = rd_buffer_ptr(frames);
    size_t len = rd_buffer_len(frames), used = 0;
    rd_relay_reader reader;
    rd_relay_frame frame;
    rd_relay_reader_init(&reader, RD_RELAY_PAYLOAD_MAX);
    while (len > 0 && rd_relay_read(&reader, bytes, len, &used, &frame) == 1) {
        frame.flags |= RD_RELAY_ENGINE;
        emit(with, &frame);
        bytes += used;
        len -= used;
    }
    rd_relay_reader_clear(&reader);
}

void rd_hub_each_unclaimed(const rd_hub *hub, rd_history_emit *emit, void *with) {
    emit_all(&hub->returned, emit, with);
    emit_all(&hub->unclaimed, emit, with);
}

void rd_hub_clear_unclaimed(rd_hub *hub) {
    rd_buffer_clear(&hub->returned);
    rd_buffer_clear(&hub->unclaimed);
}
