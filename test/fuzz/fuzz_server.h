/* SPDX-License-Identifier: MIT
 *
 * What the fuzz targets of a whole server share.
 */
#ifndef FUZZ_SERVER_H
#define FUZZ_SERVER_H

#include "fuzz.h"
#include "serving.h"

/* A turn that does not wait, and its requests. */
static void fuzz_turn(void) {
    rd_loop_lock(&server->loop);
    rd_loop_wakeup(&server->loop); /* so that its poll does not wait */
    rd_server_turn(server, wait_in_poll, true);
    rd_request *request = NULL;
    while ((request = rd_server_next_request(server, request)) != NULL) {
        if (request->conn != NULL) app(request);
    }
    rd_loop_unlock(&server->loop);
}

/* After the last connection. What is for the log is not kept for the next input. */
static void fuzz_check_nothing_is_held(void) {
    rd_incidents_taken nothing;
    FUZZ_CHECK(server->conns.count == 0);
    FUZZ_CHECK(server->conns.ledger.rows[RD_LEDGER_HANDSHAKES].held == 0);
    FUZZ_CHECK(server->conns.ledger.rows[RD_LEDGER_INPUT].held == 0);
    FUZZ_CHECK(server->conns.ledger.rows[RD_LEDGER_OUTPUT].held == 0);
    FUZZ_CHECK(server->conns.ledger.rows[RD_LEDGER_MESSAGES].held == 0);
    rd_loop_lock(&server->loop);
    rd_incidents_take(server, &nothing);
    rd_loop_unlock(&server->loop);
}

#endif
