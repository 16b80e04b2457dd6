/* SPDX-License-Identifier: MIT
 *
 * In and out of the queue of events; see events.h.
 */
#include "server/events.h"

#include "server/server.h"

void rd_events_add(rd_server *server, rd_push *push) {
    if (rd_list_is_linked(&push->in_queue)) return;
    if (push->open_due) server->pushes++;
    rd_push_ref(push);
    rd_list_append(&server->events, &push->in_queue);
}

/* What every event does to the connection once the application knows of it. */
static void after(rd_server *server, const rd_event *event) {
    rd_push *push = event->push;
    switch (event->kind) {
    case RD_PUSH_SHUTDOWN:
        if (push->conn != NULL) push->ops->close(push, 1001, RD_SLICE("going away"));
        break;
    case RD_PUSH_CLOSE:
        server->pushes--;
        break;
    default:
        break;
    }
}

static void give_back(rd_server *server, const rd_event *event) {
    rd_push *push = event->push;
    push->is_told = false;
    after(server, event);
    if (push->conn != NULL || rd_push_is_own(push)) push->ops->told(push);
    if (rd_push_next(push) != RD_PUSH_NOTHING) rd_events_add(server, push);
    if (event->message != NULL) rd_push_free_message(event->message);
    rd_push_unref(push);
}

bool rd_server_tell(rd_server *server, rd_event *event, bool goes_on) {
    if (event->push != NULL) give_back(server, event);
    *event = (rd_event){.push = NULL};
    rd_list *node = goes_on ? rd_list_shift(&server->events) : NULL;
    if (node == NULL) return false;
    event->push = RD_CONTAINER(node, rd_push, in_queue);
    event->kind = rd_push_next(event->push);
    event->message = rd_push_take(event->push);
    event->push->is_told = true;
    return true;
}

bool rd_events_live(const rd_server *server) {
    return server->pushes > 0 || !rd_list_is_empty(&server->events);
}

void rd_events_clear(rd_server *server) {
    for (rd_list *node; (node = rd_list_shift(&server->events)) != NULL;) {
        rd_push_unref(RD_CONTAINER(node, rd_push, in_queue));
    }
}
