/* SPDX-License-Identifier: MIT
 *
 * Which requests are forwarded, and how they leave; see forward.h. The other worker is in
 * handover.c.
 */
#include "server/forward.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "protocol/protocols.h"
#include "server/server.h"
#include "system/socket.h"

/* The line of a stream's request, or NULL. */
static rd_line *line_of(const rd_request *request) {
    rd_lines *lines = request->conn == NULL ? NULL : rd_conn_lines(request->conn);
    return lines == NULL ? NULL : &lines->calls;
}

/* Other workers have no line for the streams of one client, so this one limits them. */
static bool has_share(const rd_request *request) {
    const rd_line *line = line_of(request);
    return line == NULL || line->away < line->seats;
}

bool rd_forward_can_begin(const rd_server *server, const rd_request *request) {
    if (server->forwards.running >= RD_FORWARDS_MAX || !has_share(request)) return false;
    if (!rd_forwarding_is_possible(request)) return false;
    return request->head_len + rd_buffer_len(&request->body.memory) <= RD_HANDOVER_BYTES_MAX &&
           rd_ledger_has_room(&server->conns.ledger, RD_LEDGER_DESCRIPTORS, 2);
}

static bool send_request(rd_server *server, const rd_request *request, int fd, int64_t to) {
    rd_conn *conn = request->conn, *carrier = rd_conn_carrier(conn);
    const rd_buffer *body = &request->body.memory;
    const int flags = RD_HANDOVER_FORWARD | (carrier != NULL ? RD_HANDOVER_STREAM : 0);
    const uint64_t waited_us = (server->loop.now_ns - request->times.ready_ns) / 1000;
    rd_handover handover = {
        .header = {.time = waited_us > UINT32_MAX ? UINT32_MAX : (uint32_t)waited_us,
                   .flags = (uint8_t)flags,
                   .peer = conn->peer},
        .listener =
            rd_listener_name_of_conn(&server->accepting.names, carrier != NULL ? carrier : conn),
        .packed = {.parts = {[RD_PACKED_HEAD] = rd_slice_of(request->bytes, request->head_len),
                             [RD_PACKED_BODY] =
                                 rd_slice_of(rd_buffer_ptr(body), rd_buffer_len(body))}},
    };
    return rd_siblings_send(server, to, fd, &handover);
}

static void leave_for(rd_line *line) {
    if (line == NULL) return;
    line->away++;
    rd_lines_ref(RD_CONTAINER(line, rd_lines, calls));
}

static void come_back(rd_line *line) {
    if (line == NULL) return;
    line->away--;
    rd_lines_unref(RD_CONTAINER(line, rd_lines, calls));
}

bool rd_forward_begin(rd_server *server, rd_request *request, int64_t to) {
    int pair[2];
    if (rd_socket_pair(pair, false) != 0) return false;
    const bool is_sent = send_request(server, request, pair[1], to);
    close(pair[1]);
    if (!is_sent) {
        close(pair[0]);
        return false;
    }
    rd_request_ref(request);
    leave_for(line_of(request));
    server->handler.on_left(&server->handler, request); /* it leaves the queue */
    server->forwards.running++;
    server->forwards.out++;
    rd_incidents_add(server, NULL, RD_ERR_FORWARDED);
    rd_forwarding_begin(request, pair[0]);
    rd_request_unref(request);
    return true;
}

void rd_forward_leave(rd_server *server, rd_request *request) {
    rd_line *line = request->queued.line;
    server->forwards.running--;
    rd_forwarding_end(request);
    come_back(line);
}
