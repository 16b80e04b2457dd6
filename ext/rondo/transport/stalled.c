/* SPDX-License-Identifier: MIT
 *
 * The memory that slow readers hold; see stalled.h.
 */
#include "transport/stalled.h"

#include "base/error.h"
#include "transport/conn_parts.h"
#include "transport/progress.h"

#define LOOKED_AT_MAX 64  /* connections at a time: each holds at least RD_LEDGER_FREE */
#define JUDGED_MS     500 /* since it read something: an acknowledgement takes a round trip */
#define PART          8   /* of the limit */

static void stand_last(rd_conn *conn) {
    conn->stall->unread = conn->transport->count_unread(conn);
    conn->stall->since_ms = conn->set->loop->now_ms;
    rd_list_append(&conn->set->stalled, &conn->stall->in_set);
}

/* Its queue is short, or empty. The peer may still have to take something. */
static void leave(rd_conn *conn) {
    rd_stall *stall = conn->stall;
    if (stall == NULL) return;
    if (stall->deadline_ms == UINT64_MAX && conn->state != RD_CONN_LINGERING) {
        rd_conn_end_stall(conn);
        return;
    }
    rd_list_unlink(&stall->in_set);
    rd_ledger_recount(&conn->set->ledger, RD_LEDGER_OUTPUT, &stall->counted, 0);
}

void rd_stalled_note(rd_conn *conn, bool progress) {
    const size_t unsent = rd_conn_unsent(conn), own = rd_outq_own(&conn->out) + unsent;
    if (conn->out.memory + unsent <= RD_LEDGER_FREE) {
        leave(conn);
        return;
    }
    rd_stall *stall = rd_stall_of(conn);
    rd_ledger_recount(&conn->set->ledger, RD_LEDGER_OUTPUT, &stall->counted, own);
    if (rd_list_is_linked(&stall->in_set) && !progress) return;
    rd_list_unlink(&stall->in_set);
    stand_last(conn);
}

static void give_up(rd_conn *conn) {
    rd_conn_set *set = conn->set;
    rd_ledger_refuse(&set->ledger, RD_LEDGER_OUTPUT);
    if (set->on_cut != NULL) set->on_cut(conn, RD_ERR_OUTPUT_FULL);
    if (rd_conn_is_open(conn) && conn->protocol->on_stalled != NULL) {
        conn->protocol->on_stalled(conn);
    }
    rd_conn_reset(conn);
}

/* Choosing takes JUDGED_MS, so it begins a little below the limit. */
static bool is_relieved(const rd_conn_set *set) {
    const rd_ledger_row *row = &set->ledger.rows[RD_LEDGER_OUTPUT];
    return rd_list_is_empty(&set->stalled) || row->held <= row->limit - row->limit / PART;
}

static bool is_beyond(const rd_conn_set *set) {
    return !rd_ledger_has_room(&set->ledger, RD_LEDGER_OUTPUT, 0);
}

static rd_conn *first_of(const rd_conn_set *set) {
    return RD_CONTAINER(set->stalled.next, rd_stall, in_set)->conn;
}

/* Returns how much the peer has read. The kernel asks for more only when much of what it has is
 * gone, so the peer may have read without that. Such a connection goes to the end. */
static uint32_t look(rd_conn *conn) {
    const uint32_t before = conn->stall->unread, unread = conn->transport->count_unread(conn);
    if (unread >= before) return 0;
    rd_list_unlink(&conn->stall->in_set);
    stand_last(conn);
    return before - unread;
}

/* Far beyond the limit, connections are closed even if their peers read. */
static bool is_far_beyond(const rd_conn_set *set) {
    const rd_ledger_row *row = &set->ledger.rows[RD_LEDGER_OUTPUT];
    return row->held > row->limit && row->held - row->limit > row->limit / PART;
}

/* The first connection is enough: the others have read something even later. */
static bool is_too_early(const rd_conn_set *set, const rd_conn *first) {
    return set->loop->now_ms - first->stall->since_ms < JUDGED_MS && !is_far_beyond(set);
}

/* Examines each connection once: a peer that has just read something needs time to read more. If
 * all peers have read something, the connection whose peer has read least is closed. */
void rd_stalled_relieve(rd_conn_set *set) {
    const rd_list *last = set->stalled.prev;
    rd_conn *slowest = NULL;
    uint32_t least = UINT32_MAX;
    bool goes_on = true, has_closed = false;
    for (int left = LOOKED_AT_MAX; goes_on && left > 0 && !is_relieved(set); left--) {
        rd_conn *conn = first_of(set);
        if (is_too_early(set, conn)) break;
        goes_on = &conn->stall->in_set != last;
        const uint32_t taken = look(conn);
        if (taken == 0 || is_far_beyond(set)) {
            give_up(conn);
            has_closed = true;
        } else if (taken < least) {
            slowest = conn;
            least = taken;
        }
    }
    if (slowest != NULL && !has_closed && is_beyond(set)) give_up(slowest);
}
