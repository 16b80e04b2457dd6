/* SPDX-License-Identifier: MIT
 *
 * A message to all links that want it; see hub_offer.h.
 */
#include "pubsub/hub_offer.h"

#include "pubsub/hub_interests.h"

void rd_hub_lose_message(rd_hub *hub, rd_hub_link *link) {
    if (!link->is_losing) link->outages++;
    link->is_losing = true;
    link->dropped++;
    hub->lost++;
}

bool rd_hub_send_message(rd_hub *hub, rd_hub_link *link, const rd_relay_frame *frame,
                         rd_message *message) {
    if (hub->send(link, frame, message)) {
        link->sent++;
        return true;
    }
    rd_hub_lose_message(hub, link);
    return false;
}

typedef struct offering {
    rd_hub *hub;
    const rd_relay_frame *frame;
    rd_message *message;
    unsigned reach; /* ROOT, WORKERS; 0: all */
} offering;

static bool is_meant(const offering *self, const rd_hub_link *link) {
    return self->reach == 0 || (self->reach == RD_RELAY_ROOT) == (link->kind == RD_HUB_ROOT);
}

static void offer(const offering *self, const rd_hub_topic *topic) {
    rd_hub *hub = self->hub;
    for (rd_list *node = topic->interests.next; node != &topic->interests; node = node->next) {
        rd_hub_link *link = RD_CONTAINER(node, rd_hub_interest, in_topic)->link;
        if (link->mark == hub->mark || !is_meant(self, link)) continue;
        link->mark = hub->mark;
        rd_hub_send_message(hub, link, self->frame, self->message);
    }
}

static void offer_to_pattern(void *with, rd_pattern *pattern) {
    offer(with, RD_CONTAINER(pattern, rd_hub_topic, pattern));
}

void rd_hub_offer(rd_hub *hub, const rd_relay_frame *frame, rd_message *message, unsigned reach) {
    offering self = {hub, frame, message, reach};
    const rd_hub_topic *topic = rd_hub_find_topic(hub, frame->channel, false);
    if (topic != NULL) offer(&self, topic);
    rd_patterns_match(&hub->matcher, frame->channel, offer_to_pattern, &self);
}
