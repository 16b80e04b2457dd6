/* SPDX-License-Identifier: MIT
 *
 * The line of a link, and the replays that are set aside at topics; see hub_waiting.h.
 */
#include "pubsub/hub_waiting.h"

#include <string.h>

#include "base/alloc.h"

static void enter_line(rd_hub *hub, rd_hub_waiting *waiting) {
    rd_hub_link *link = waiting->link;
    if (rd_list_is_empty(&link->replays)) rd_list_append(&hub->asking, &link->in_asking);
    rd_list_append(&link->replays, &waiting->in_link);
}

static void leave_line(rd_hub_waiting *waiting) {
    rd_hub_link *link = waiting->link;
    rd_list_unlink(&waiting->in_link);
    if (rd_list_is_empty(&link->replays)) rd_list_unlink(&link->in_asking);
}

rd_hub_waiting *rd_hub_wait(rd_hub *hub, rd_hub_link *link, const rd_relay_frame *wanted) {
    const size_t name = wanted->channel.len, note = wanted->payload.len;
    rd_hub_waiting *added = rd_alloc(sizeof(*added) + name + note);
    *added = (rd_hub_waiting){.link = link, .frame = *wanted};
    memcpy(added->bytes, wanted->channel.ptr, name);
    if (note > 0) memcpy(added->bytes + name, wanted->payload.ptr, note);
    added->frame.channel = rd_slice_of(added->bytes, name);
    added->frame.payload = rd_slice_of(added->bytes + name, note);
    rd_list_init(&added->in_topic);
    enter_line(hub, added);
    link->replay_count++;
    return added;
}

void rd_hub_set_aside(rd_hub_topic *topic, rd_hub_waiting *waiting) {
    leave_line(waiting);
    rd_list_append(&waiting->link->aside, &waiting->in_link);
    rd_list_append(&topic->aside, &waiting->in_topic);
}

static void recall(rd_hub *hub, rd_hub_waiting *waiting) {
    rd_list_unlink(&waiting->in_topic);
    rd_list_unlink(&waiting->in_link);
    enter_line(hub, waiting);
}

void rd_hub_recall(rd_hub *hub, rd_hub_topic *topic) {
    while (!rd_list_is_empty(&topic->aside)) {
        recall(hub, RD_CONTAINER(topic->aside.next, rd_hub_waiting, in_topic));
    }
}

void rd_hub_recall_all(rd_hub *hub) {
    for (rd_list *node = hub->links.next; node != &hub->links; node = node->next) {
        rd_hub_link *link = RD_CONTAINER(node, rd_hub_link, in_hub);
        while (!rd_list_is_empty(&link->aside)) {
            recall(hub, RD_CONTAINER(link->aside.next, rd_hub_waiting, in_link));
        }
    }
}

void rd_hub_end_waiting(rd_hub_waiting *waiting) {
    waiting->link->replay_count--;
    if (rd_list_is_linked(&waiting->in_topic)) {
        rd_list_unlink(&waiting->in_topic);
        rd_list_unlink(&waiting->in_link);
    } else {
        leave_line(waiting);
    }
    rd_free(waiting);
}

void rd_hub_forget_replays(rd_hub_link *link) {
    while (!rd_list_is_empty(&link->replays)) rd_hub_end_waiting(rd_hub_first_waiting(link));
    while (!rd_list_is_empty(&link->aside)) {
        rd_hub_end_waiting(RD_CONTAINER(link->aside.next, rd_hub_waiting, in_link));
    }
}

void rd_hub_each_replay(const rd_hub_link *link, rd_history_emit *emit, void *with) {
    const rd_list *const lists[] = {&link->replays, &link->aside};
    for (int i = 0; i < 2; i++) {
        for (rd_list *node = lists[i]->next; node != lists[i]; node = node->next) {
            emit(with, &RD_CONTAINER(node, rd_hub_waiting, in_link)->frame);
        }
    }
}
