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
#define HANDSHAKES   5     /* lines about failed handshakes in TOLD_MS */
#define REFUSALS     100   /* lines about what no other rule is for, in TOLD_MS */

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

bool rd_incident_is_handshake(int code) {
    switch (code) {
    case RD_ERR_HANDSHAKE:
    case RD_ERR_TLS_MISSING:
    case RD_ERR_TLS_TOO_LONG:
    case RD_ERR_TLS_CUT:
    case RD_ERR_TLS_TIMEOUT:
    case RD_ERR_HANDSHAKES_FULL:
    case RD_ERR_TLS_VERSION:
    case RD_ERR_TLS_CIPHER:
    case RD_ERR_TLS_PROTOCOL:
    case RD_ERR_TLS_CLIENT_MISSING:
    case RD_ERR_TLS_CLIENT_INVALID:
    case RD_ERR_TLS_ALERT:
        return true;
    default:
        return false;
    }
}

/* Scanners and misconfigured clients come in floods. If there is a line, it has the number of those
 * before it that have none. */
static bool has_quota(const rd_server *server, rd_incident_quota *quota, uint32_t most,
                      uint32_t *unnamed) {
    const uint64_t now = server->loop.now_ms;
    if (now - quota->since_ms >= TOLD_MS) {
        quota->since_ms = now;
        quota->used = 0;
    }
    if (quota->used == most) {
        quota->unnamed++;
        return false;
    }
    quota->used++;
    *unnamed = quota->unnamed;
    quota->unnamed = 0;
    return true;
}

/* A full budget refuses many requests. A file that shrinks cuts all answers that send it, and an
 * application that counts wrongly each of its answers. Silent clients may be many. In each of these
 * cases one line in the log stands for all. */
static bool may_log(rd_server *server, int code, uint32_t *unnamed) {
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
    case RD_ERR_FORWARDED:
        return begins(server, &incidents->forwarded_ms);
    case RD_ERR_REPLY_CUT:
    case RD_ERR_REPLY_INVALID:
    case RD_ERR_REPLY_TOO_LARGE:
    case RD_ERR_TAKEN_HEAD:
        return is_due(server, &incidents->reply_ms);
    default:
        break;
    }
    const rd_ledger_kind budget = rd_budget_of(code);
    return budget == RD_LEDGER_KINDS
               ? has_quota(server, &incidents->refusals, REFUSALS, unnamed)
               : rd_ledger_may_log(&server->conns.ledger, budget, server->loop.now_ms);
}

static void keep(rd_incidents *incidents, rd_incident incident) {
    if (incidents->count == RD_INCIDENTS_KEPT) {
        incidents->lost++;
    } else {
        incidents->kept[incidents->count++] = incident;
    }
}

static void keep_handshake(rd_server *server, rd_incident incident) {
    rd_incident_quota *quota = &server->incidents.handshakes;
    if (has_quota(server, quota, HANDSHAKES, &incident.unnamed)) {
        keep(&server->incidents, incident);
    }
}

void rd_incidents_add_reason(rd_server *server, const rd_address *peer, int code,
                             const char *reason) {
    rd_incident incident = {.code = code, .reason = reason};
    if (peer != NULL) incident.peer = *peer;
    if (rd_incident_is_handshake(code)) {
        keep_handshake(server, incident);
    } else if (server->incidents.count == RD_INCIDENTS_KEPT ||
               may_log(server, code, &incident.unnamed)) {
        keep(&server->incidents, incident);
    }
}

void rd_incidents_add(rd_server *server, const rd_address *peer, int code) {
    rd_incidents_add_reason(server, peer, code, NULL);
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
