/* SPDX-License-Identifier: MIT
 *
 * Writes the numbers of a server into its row of the scoreboard, every turn, under the loop lock.
 */
#include "base/apart.h"
#include "server/server.h"

static void write_ledger(rd_score_row *score, rd_ledger *ledger) {
#define RD_LEDGER(NAME, name, unit, doc)                                                           \
    atomic_store_explicit(&score->name, ledger->rows[RD_LEDGER_##NAME].held,                       \
                          memory_order_relaxed);                                                   \
    atomic_store_explicit(&score->name##_refused, ledger->rows[RD_LEDGER_##NAME].refused,          \
                          memory_order_relaxed);
#include "base/ledger.def"
#undef RD_LEDGER
    ledger->changed = false;
}

/* The hub writes the gaps of its answers into the same number of a worker's row. */
RD_APART static void add_replay_gaps(rd_server *server) {
    rd_pubsub *pubsub = &server->pubsub;
    atomic_fetch_add_explicit(&server->score->replay_gaps, pubsub->replay_gaps,
                              memory_order_relaxed);
    pubsub->replay_gaps = 0;
}

#define PUT(name, value) atomic_store_explicit(&score->name, (value), memory_order_relaxed)

/* With a listener that is not plain, or after the first client with HTTP/2. */
RD_APART static void write_layered(rd_server *server) {
    rd_score_row *score = server->score;
    PUT(tls_connections, server->conns.shaken.open);
    PUT(tls_full, server->conns.shaken.full);
    PUT(tls_resumed, server->conns.shaken.resumed);
    PUT(tls_failed, server->conns.shaken.failed);
    PUT(forwarded_out, server->forwards.out);
    PUT(forwarded_in, server->forwards.in);
    PUT(forwards, server->forwards.running);
    PUT(http2_connections, server->http.http2_counts.connections);
    PUT(http2_streams, server->http.http2_counts.streams);
    PUT(http2_streams_refused, server->http.http2_counts.refused);
}

void rd_server_write_scores(rd_server *server) {
    rd_score_row *score = server->score;
    const uint32_t queue_len = server->queue.len - server->queue.behind;
    PUT(last_turn_ms, server->loop.now_ms);
    PUT(connections, server->conns.count);
    PUT(under_way, server->http.requests.live);
    PUT(queue, queue_len);
    PUT(requests, server->counts.requests);
    PUT(static_answers, server->files.folder == NULL ? 0 : server->files.folder->answers);
    PUT(call_us, server->calls.usual_ns / 1000 + 1);
    PUT(accepted, server->counts.accepted);
    PUT(refused, server->counts.refused);
    PUT(dropped, server->counts.dropped);
    PUT(oldest_call_ms, rd_calls_oldest_ms(server));
    PUT(timed_out, server->counts.timed_out);
    PUT(standing_in, server->lead.watch_owns);
    PUT(handed_in, server->counts.handed_in);
    PUT(handed_out, server->counts.handed_out);
    PUT(bytes_in, server->conns.bytes_in);
    PUT(bytes_out, server->conns.bytes_out);
    PUT(write_timeouts, server->conns.write_timeouts);
    PUT(given_up, server->counts.given_up);
    PUT(answers_cut, server->counts.cut);
    PUT(upgraded, server->events.holders[RD_EVENTS_OF_CONNECTION]);
    PUT(subscriptions, server->pubsub.channels.subscription_count);
    PUT(published, server->pubsub.published);
    PUT(messages_dropped, server->http.messages_dropped);
    PUT(replay_timeouts, server->pubsub.replay_timeouts);
    PUT(listening, !server->accepting.paused && server->stop.state == RD_STOP_NOT);
    if (queue_len > atomic_load_explicit(&score->max_queue_seen, memory_order_relaxed)) {
        PUT(max_queue_seen, queue_len);
    }
    if (server->accepting.is_secure | server->http.http2_counts.any) write_layered(server);
    if (server->pubsub.replay_gaps > 0) add_replay_gaps(server);
    if (server->conns.ledger.changed) write_ledger(score, &server->conns.ledger);
}

#undef PUT
