/* SPDX-License-Identifier: MIT
 *
 * What waits for an engine, in two queues of frames: `returned` is older than `unclaimed`; see
 * hub_unclaimed.h.
 */
#include "pubsub/hub_unclaimed.h"

#include <limits.h>

#include "pubsub/hub_interests.h"
#include "pubsub/hub_offer.h"

static size_t waiting_bytes(const rd_hub *hub) {
    return rd_buffer_len(&hub->returned) + rd_buffer_len(&hub->unclaimed);
}

static rd_relay_frame frame_that_waits(const rd_relay_frame *from) {
    return (rd_relay_frame){.type = RD_RELAY_PUBLISH,
                            .flags = from->flags & (RD_RELAY_TEXT | RD_RELAY_CONFIRM),
                            .channel = from->channel,
                            .payload = from->payload};
}

/* With the rule of the moment in which it leaves. */
static rd_relay_frame frame_for_engine(const rd_hub *hub, const rd_relay_frame *from) {
    rd_relay_frame frame = frame_that_waits(from);
    if (hub->has_streams) frame.id = rd_history_rule_number(&hub->history, from->channel);
    return frame;
}

/* ---- in ---- */

static bool add(rd_hub *hub, rd_buffer *frames, const rd_relay_frame *from) {
    const size_t len = RD_RELAY_HEAD_BYTES + from->channel.len + from->payload.len;
    const rd_relay_frame frame = frame_that_waits(from);
    return waiting_bytes(hub) + len <= hub->unclaimed_max &&
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
    if (hub->engine != NULL && waiting_bytes(hub) == 0) {
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

/* Shows the frames to `take` until it returns false. Returns the bytes of those it has taken. */
static size_t each_frame(const rd_buffer *frames, bool (*take)(void *with, rd_relay_frame *frame),
                         void *with) {
    const char *bytes = rd_buffer_ptr(frames);
    size_t taken = 0, used = 0;
    rd_relay_reader reader;
    rd_relay_frame frame;
    rd_relay_reader_init(&reader, RD_RELAY_PAYLOAD_MAX);
    while (taken < rd_buffer_len(frames) &&
           rd_relay_read(&reader, bytes + taken, rd_buffer_len(frames) - taken, &used, &frame) ==
               1 &&
           take(with, &frame)) {
        taken += used;
    }
    rd_relay_reader_clear(&reader);
    return taken;
}

typedef struct claiming {
    rd_hub *hub;
    unsigned left; /* messages */
    bool is_full;  /* the engine has no room */
} claiming;

static bool claim(void *with, rd_relay_frame *from) {
    claiming *self = with;
    if (self->left == 0 || self->is_full) return false;
    const rd_relay_frame frame = frame_for_engine(self->hub, from);
    self->is_full = !self->hub->send(self->hub->engine, &frame, NULL);
    if (self->is_full) return false;
    self->hub->engine->sent++;
    self->left--;
    return true;
}

bool rd_hub_claim(rd_hub *hub, unsigned count) {
    if (hub->engine == NULL || !rd_changes_is_empty(&hub->changes)) return false;
    claiming self = {.hub = hub, .left = count};
    rd_buffer_consume(&hub->returned, each_frame(&hub->returned, claim, &self));
    rd_buffer_consume(&hub->unclaimed, each_frame(&hub->unclaimed, claim, &self));
    return !self.is_full && waiting_bytes(hub) > 0;
}

typedef struct telling {
    rd_history_emit *emit;
    void *with;
} telling;

static bool tell(void *with, rd_relay_frame *frame) {
    const telling *self = with;
    frame->flags |= RD_RELAY_ENGINE;
    self->emit(self->with, frame);
    return true;
}

void rd_hub_each_unclaimed(const rd_hub *hub, rd_history_emit *emit, void *with) {
    telling self = {emit, with};
    each_frame(&hub->returned, tell, &self);
    each_frame(&hub->unclaimed, tell, &self);
}

void rd_hub_clear_unclaimed(rd_hub *hub) {
    rd_buffer_clear(&hub->returned);
    rd_buffer_clear(&hub->unclaimed);
}
