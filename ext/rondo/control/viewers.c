/* SPDX-License-Identifier: MIT
 *
 * Open event streams; see viewers.h.
 */
#include "control/viewers.h"

#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "control/reply.h"

#define QUEUED_MOST 1048576 /* bytes that a slow client has not taken */

typedef struct rd_viewer {
    rd_list node;
    rd_request *request;
} rd_viewer;

void rd_viewers_init(rd_viewers *viewers) {
    rd_list_init(&viewers->all);
    viewers->count = 0;
}

static void forget(rd_viewers *viewers, rd_viewer *viewer) {
    rd_list_unlink(&viewer->node);
    rd_request_unref(viewer->request);
    rd_free(viewer);
    viewers->count--;
}

unsigned rd_viewers_count(rd_viewers *viewers) {
    for (rd_list *node = viewers->all.next, *next; node != &viewers->all; node = next) {
        rd_viewer *viewer = RD_CONTAINER(node, rd_viewer, node);
        next = node->next;
        if (viewer->request->conn == NULL) forget(viewers, viewer);
    }
    return viewers->count;
}

static void pass_on(rd_request *request, const rd_buffer *events) {
    request->responder->write(request, rd_buffer_ptr(events), rd_buffer_len(events));
    request->responder->flush(request);
}

static const rd_field fields[] = {
    {RD_SLICE_INIT("content-type"), RD_SLICE_INIT("text/event-stream")},
    {RD_SLICE_INIT("cache-control"), RD_SLICE_INIT("no-store")},
    {RD_SLICE_INIT("x-accel-buffering"), RD_SLICE_INIT("no")}, /* nginx waits for more otherwise */
};

static bool answers_head_only(rd_request *request, const rd_response_head *head) {
    if (request->head.method_id != RD_METHOD_HEAD) return false;
    if (request->responder->start(request, head) == 0) request->responder->finish(request);
    return true;
}

bool rd_viewers_add(rd_viewers *viewers, rd_request *request, const rd_buffer *events) {
    const rd_response_head head = {
        .status = 200, .fields = fields, .count = sizeof(fields) / sizeof(fields[0]), .length = -1};
    if (rd_viewers_count(viewers) >= RD_VIEWERS_MAX) {
        rd_reply_error(request, 503, "too many look at this page");
        return false;
    }
    if (answers_head_only(request, &head) || request->responder->start(request, &head) != 0) {
        return true;
    }
    rd_viewer *viewer = rd_alloc_zero(sizeof(*viewer));
    viewer->request = request;
    rd_request_ref(request);
    rd_list_append(&viewers->all, &viewer->node);
    viewers->count++;
    pass_on(request, events);
    return true;
}

void rd_viewers_send(rd_viewers *viewers, const rd_buffer *events) {
    rd_viewers_count(viewers);
    for (rd_list *node = viewers->all.next; node != &viewers->all; node = node->next) {
        rd_request *request = RD_CONTAINER(node, rd_viewer, node)->request;
        if (request->conn != NULL && request->conn->out.bytes <= QUEUED_MOST)
            pass_on(request, events);
    }
}

void rd_viewers_end(rd_viewers *viewers) {
    while (!rd_list_is_empty(&viewers->all)) {
        rd_viewer *viewer = RD_CONTAINER(viewers->all.next, rd_viewer, node);
        if (viewer->request->conn != NULL) viewer->request->responder->finish(viewer->request);
        forget(viewers, viewer);
    }
}

void rd_viewers_begin_event(rd_buffer *events, const char *name) {
    rd_text_add(events, "event: %s\ndata: ", name);
}

/* Most JSON ends with a newline of its own. */
void rd_viewers_end_event(rd_buffer *events) {
    size_t len = rd_buffer_len(events);
    if (len > 0 && rd_buffer_ptr(events)[len - 1] == '\n') rd_buffer_truncate(events, len - 1);
    rd_text_add(events, "\n\n");
}
