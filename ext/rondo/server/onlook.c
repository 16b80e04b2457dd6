/* SPDX-License-Identifier: MIT
 *
 * What others see of a server: its numbers, written every turn; calls, waiting requests and clients
 * while somebody watches. These looks are at a fixed number of requests, however many there are.
 * Under the loop lock.
 */
#include "server/onlook.h"

#include <string.h>

#include "base/alloc.h"
#include "base/apart.h"
#include "server/server.h"

#define EVERY_MS  250
#define PERIOD_MS 2000 /* of the clients */

/* ---- one request ---- */

/* Appends what there is room for in ASCII. Returns the length. */
static size_t add_ascii(char *to, size_t room, size_t at, rd_slice text) {
    for (size_t i = 0; i < text.len && at < room; i++, at++) {
        const bool is_shown = text.ptr[i] >= ' ' && text.ptr[i] <= '~';
        to[at] = text.ptr[i];
        if (!is_shown) to[at] = '?';
    }
    return at;
}

static void describe(rd_view_call *call, const rd_request *request) {
    const rd_slice parts[] = {rd_request_slice(request, request->head.method), RD_SLICE(" "),
                              rd_request_slice(request, request->head.path)};
    size_t at = 0;
    for (int i = 0; i < 3; i++) at = add_ascii(call->target, RD_VIEW_TARGET_MAX, at, parts[i]);
    call->len = (uint8_t)at;
    call->status = (uint16_t)request->status;
    if (request->conn != NULL) call->peer = request->conn->peer;
}

static rd_view_state state_inside(const rd_request *request) {
    if (request->hung) return RD_VIEW_HUNG;
    if (request->times.client_since_ns != 0) return RD_VIEW_CLIENT;
    return request->status != 0 ? RD_VIEW_ANSWERING : RD_VIEW_INSIDE;
}

static rd_view_call *next_of(rd_view *view) {
    rd_view_call *call = &view->call[view->calls++];
    memset(call, 0, sizeof(*call));
    return call;
}

/* ---- all of them ---- */

/* Places of waiting requests stay free, so that both are seen. */
#define INSIDE_MOST (RD_VIEW_CALLS * 2 / 3)

static void see_inside(const rd_server *server, rd_view *view) {
    const rd_list *active = &server->calls.active;
    for (rd_list *node = active->next; node != active && view->calls < INSIDE_MOST;
         node = node->next) {
        const rd_request *request = RD_CONTAINER(node, rd_request, in_queue);
        rd_view_call *call = next_of(view);
        describe(call, request);
        call->state = (uint8_t)state_inside(request);
        call->since_ms = request->times.taken_ns / 1000000;
        call->client_since_ms = request->times.client_since_ns / 1000000;
    }
}

/* The first request of each line. */
static void see_lines(const rd_list *lines, rd_view_state state, rd_view *view) {
    for (rd_list *node = lines->next; node != lines && view->calls < RD_VIEW_CALLS;
         node = node->next) {
        const rd_request *request = rd_standing_first(node);
        rd_view_call *call = next_of(view);
        describe(call, request);
        call->state = (uint8_t)state;
        call->since_ms = request->times.ready_ns / 1000000;
    }
}

static void see_clients(rd_server *server, uint64_t now_ms) {
    rd_onlook *onlook = &server->onlook;
    if (now_ms < onlook->since_ms + PERIOD_MS) return;
    rd_busiest_take(onlook->busiest, onlook->view);
    onlook->view->period_ms = now_ms - onlook->since_ms;
    onlook->view->period_end = now_ms;
    onlook->since_ms = now_ms;
}

#define CHANNELS_LOOKED_AT 64

static void see_channel(void *with, rd_slice name, bool is_pattern, uint32_t subscribers) {
    rd_view *view = with;
    uint32_t at = view->largest;
    if (rd_channel_is_private(name)) return;
    while (at > 0 && view->channel[at - 1].subscribers < subscribers) at--;
    if (at == RD_VIEW_CHANNELS) return;
    if (view->largest < RD_VIEW_CHANNELS) view->largest++;
    memmove(&view->channel[at + 1], &view->channel[at],
            (view->largest - 1 - at) * sizeof(view->channel[0]));
    rd_view_channel *channel = &view->channel[at];
    *channel = (rd_view_channel){.subscribers = subscribers, .is_pattern = is_pattern};
    channel->len = (uint8_t)add_ascii(channel->name, RD_VIEW_NAME_MAX, 0, name);
}

static void see_channels(const rd_channels *channels, rd_view *view) {
    view->channels = channels->names.count + channels->patterns.count;
    view->largest = 0;
    rd_channels_look(channels, CHANNELS_LOOKED_AT, see_channel, view);
}

static void look(rd_server *server) {
    rd_view *view = server->onlook.view;
    const uint64_t now_ms = server->loop.now_ms;
    view->written_ms = now_ms;
    view->waiting = server->queue.len;
    view->calls = 0;
    see_inside(server, view);
    see_lines(&server->queue.next, RD_VIEW_THREAD, view);
    see_lines(&server->queue.lines, RD_VIEW_THREAD, view);
    see_lines(&server->queue.full, RD_VIEW_TURN, view);
    see_clients(server, now_ms);
    see_channels(&server->pubsub.channels, view);
    rd_view_write(&server->score->view, view);
}

/* ---- begin and end ---- */

/* Whoever watches says so again before that time. */
static bool is_over(const rd_server *server) {
    const uint64_t until_ms = atomic_load(&server->score->watched_ms);
    return server->loop.now_ms > until_ms;
}

static void on_due(rd_timer *timer) {
    rd_server *server = RD_CONTAINER(timer, rd_server, onlook.timer);
    if (is_over(server)) {
        rd_onlook_end(server);
        return;
    }
    look(server);
    rd_timer_set(&server->loop.timers, timer, server->loop.now_ms + EVERY_MS);
}

void rd_onlook_init(rd_server *server) {
    rd_timer_init(&server->onlook.timer, on_due);
    atomic_init(&server->onlook.is_going, false);
}

void rd_onlook_begin(rd_server *server) {
    rd_onlook *onlook = &server->onlook;
    if (onlook->busiest != NULL) return;
    onlook->busiest = rd_alloc_zero(sizeof(*onlook->busiest));
    onlook->view = rd_alloc_zero(sizeof(*onlook->view));
    onlook->since_ms = server->loop.now_ms;
    atomic_store_explicit(&onlook->is_going, true, memory_order_relaxed);
    look(server);
    rd_timer_set(&server->loop.timers, &onlook->timer, server->loop.now_ms + EVERY_MS);
}

void rd_onlook_end(rd_server *server) {
    rd_onlook *onlook = &server->onlook;
    if (onlook->busiest == NULL) return;
    if (rd_timer_is_armed(&onlook->timer)) rd_timer_cancel(&onlook->timer);
    rd_free(onlook->busiest);
    rd_free(onlook->view);
    onlook->busiest = NULL;
    onlook->view = NULL;
    atomic_store_explicit(&onlook->is_going, false, memory_order_relaxed);
    atomic_store(&server->score->watched_ms, RD_MAY_BE_WATCHED);
    rd_view_clear(&server->score->view);
}

void rd_onlook_count(rd_onlook *onlook, const rd_request *request, uint64_t waited_us) {
    if (request->conn != NULL) rd_busiest_add(onlook->busiest, &request->conn->peer, waited_us);
}

/* ---- numbers ---- */

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
    if (rd_is_watched(score)) rd_onlook_begin(server);
    if (server->pubsub.replay_gaps > 0) add_replay_gaps(server);
    if (server->conns.ledger.changed) write_ledger(score, &server->conns.ledger);
}

#undef PUT
