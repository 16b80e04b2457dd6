/* SPDX-License-Identifier: MIT
 *
 * Which incidents are logged; see incidents.h.
 */
#include "server/incidents.h"

#include <string.h>

#include "base/error.h"
#include "server/budgets.h"
#include "server/server.h"

#define RECOVERED_MS 10000 /* without another one of its kind: then a scarcity is over */
#define TOLD_MS      1000  /* between two lines about the same */

/* Whether the last incident of this kind (0: never) was TOLD_MS ago or more. If so, it is now. */
static bool is_due(const rd_server *server, uint64_t *last_ms) {
    const uint64_t now = server->loop.now_ms;
    if (*last_ms != 0 && now - *last_ms < TOLD_MS) return false;
    *last_ms = now;
    return true;
}

/* A scarcity is logged when it begins, and again only after it was over for a while. Without this
 * pause, each connection could begin a new one, because descriptors come and go. */
static bool begins(const rd_server *server, uint64_t *last_ms) {
    const uint64_t before = *last_ms, now = server->loop.now_ms;
    *last_ms = now;
    return before == 0 || now - before >= RECOVERED_MS;
}

/* A full budget refuses many requests. A file that shrinks cuts all answers that send it, and an
 * application that counts wrongly each of its answers. Silent clients may be many. In each of these
 * cases one line in the log stands for all. */
static bool may_log(rd_server *server, int code) {
    rd_incidents *incidents = &server->incidents;
    switch (code) {
    case RD_ERR_FILE_CUT:
        return is_due(server, &incidents->file_cut_ms);
    case RD_ERR_ANSWER_SHORT:
        return is_due(server, &incidents->answer_short_ms);
    case RD_ERR_ANSWER_LONG:
        return is_due(server, &incidents->answer_long_ms);
    case RD_ERR_GIVEN_UP:
        return is_due(server, &incidents->given_up_ms);
    case RD_ERR_NO_DESCRIPTOR:
        return begins(server, &incidents->no_descriptor_ms);
    case RD_ERR_NO_DISK_THREAD:
        return begins(server, &incidents->no_thread_ms);
    default:
        break;
    }
    const rd_ledger_kind budget = rd_budget_of(code);
    return budget == RD_LEDGER_KINDS ||
           rd_ledger_may_log(&server->conns.ledger, budget, server->loop.now_ms);
}

void rd_incidents_add(rd_server *server, const rd_address *peer, int code) {
    static const rd_address blank = {.kind = RD_ADDRESS_NONE};
    rd_incidents *incidents = &server->incidents;
    if (incidents->count == RD_INCIDENTS_KEPT) {
        incidents->lost++;
        return;
    }
    if (!may_log(server, code)) return;
    incidents->kept[incidents->count++] = (rd_incident){peer != NULL ? *peer : blank, code};
}

void rd_incidents_take(rd_server *server, rd_incidents_taken *taken) {
    rd_incidents *incidents = &server->incidents;
    taken->count = incidents->count;
    taken->lost = incidents->lost;
    memcpy(taken->kept, incidents->kept, incidents->count * sizeof(rd_incident));
    incidents->count = incidents->lost = 0;
}

void rd_incidents_give_back(rd_server *server, const rd_incidents_taken *taken, uint32_t from) {
    rd_incidents *incidents = &server->incidents;
    const uint32_t rest = taken->count - from, room = RD_INCIDENTS_KEPT - rest;
    const uint32_t newer = incidents->count < room ? incidents->count : room;
    memmove(incidents->kept + rest, incidents->kept, newer * sizeof(rd_incident));
    memcpy(incidents->kept, taken->kept + from, rest * sizeof(rd_incident));
    incidents->lost += taken->lost + incidents->count - newer;
    incidents->count = rest + newer;
}
