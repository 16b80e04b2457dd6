/* SPDX-License-Identifier: MIT
 *
 * Ticks and events; see live.h.
 */
#include "control/live.h"

#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "control/past.h"
#include "control/viewers.h"
#include "control/views.h"
#include "server/onlook.h"
#include "system/clock.h"

/* Whoever watches says so again within that time. */
#define WATCHED_MS 3000

struct rd_live {
    rd_report *report;
    rd_loop *loop;
    rd_past *past;
    rd_viewers viewers;
    uint64_t told; /* number of the last line of the journal that all viewers have */
    rd_timer tick;
};

void rd_report_watch(const rd_report *report, uint64_t for_ms) {
    const uint64_t until_ms = for_ms > 0 ? rd_clock_ms() + for_ms : RD_MAY_BE_WATCHED;
    for (uint32_t i = 0; i < report->board->row_count; i++) {
        _Atomic uint64_t *watched = &report->board->rows[i].watched_ms;
        if (until_ms > atomic_load(watched)) atomic_store(watched, until_ms);
    }
}

void rd_live_add_past(const rd_live *live, rd_buffer *text) {
    rd_buffer_truncate(text, rd_buffer_len(text) - strlen("}\n"));
    rd_text_add(text, ",\"samples\":");
    rd_past_add_samples(live->past, true, text);
    rd_text_add(text, ",\"lives\":");
    rd_past_add_lives(live->past, text);
    rd_text_add(text, ",\"log\":");
    rd_views_add_lines(live->report->board->journal, 0, text);
    rd_text_add(text, "}\n");
}

/* ---- events ---- */

static void add_stats(rd_live *live, rd_buffer *events) {
    rd_viewers_begin_event(events, "stats");
    rd_report_measure(live->report);
    rd_report_stats(live->report, events);
    rd_viewers_end_event(events);
}

static void add_lives(const rd_live *live, rd_buffer *events) {
    rd_viewers_begin_event(events, "lives");
    rd_past_add_lives(live->past, events);
    rd_viewers_end_event(events);
}

static void add_samples(const rd_live *live, bool all, rd_buffer *events) {
    rd_viewers_begin_event(events, "samples");
    rd_past_add_samples(live->past, all, events);
    rd_viewers_end_event(events);
}

/* The lines after number `after`. From now on all that were there are told. */
static void add_lines(rd_live *live, uint64_t after, rd_buffer *events) {
    rd_viewers_begin_event(events, "log");
    const uint64_t last = rd_views_add_lines(live->report->board->journal, after, events);
    if (last > live->told) live->told = last;
    rd_viewers_end_event(events);
}

static void add_new_lines(rd_live *live, rd_buffer *events) {
    if (rd_journal_newest(live->report->board->journal) > live->told) {
        add_lines(live, live->told, events);
    }
}

/* Those who look already get the newest lines at once: the stream that begins has them, too. */
static void tell_lines(rd_live *live) {
    rd_buffer events = {0};
    add_new_lines(live, &events);
    if (rd_buffer_len(&events) > 0) rd_viewers_send(&live->viewers, &events);
    rd_buffer_clear(&events);
}

void rd_live_show(rd_live *live, rd_request *request) {
    rd_buffer events = {0};
    tell_lines(live);
    rd_report_watch(live->report, WATCHED_MS);
    rd_text_add(&events, "retry: 1000\n\n");
    add_lines(live, 0, &events);
    add_lives(live, &events);
    add_samples(live, true, &events);
    add_stats(live, &events);
    rd_viewers_add(&live->viewers, request, &events);
    rd_buffer_clear(&events);
}

static void tell_all(rd_live *live, bool is_news) {
    rd_buffer events = {0};
    add_new_lines(live, &events);
    if (is_news) add_lives(live, &events);
    add_samples(live, false, &events);
    add_stats(live, &events);
    rd_viewers_send(&live->viewers, &events);
    rd_buffer_clear(&events);
}

/* ---- each second ---- */

/* Also while nobody looks: whoever comes sees what has been. */
static void on_tick(rd_timer *timer) {
    rd_live *live = RD_CONTAINER(timer, rd_live, tick);
    rd_loop *loop = live->loop;
    const bool is_news = rd_past_tick(live->past);
    const uint64_t next = timer->due + RD_PAST_EVERY_MS; /* ticks do not drift */
    rd_timer_set(&loop->timers, timer,
                 next > loop->now_ms ? next : loop->now_ms + RD_PAST_EVERY_MS);
    const bool is_watched = rd_viewers_count(&live->viewers) > 0;
    rd_report_watch(live->report, is_watched ? WATCHED_MS : 0);
    if (is_watched) tell_all(live, is_news);
}

/* ---- begin and end ---- */

rd_live *rd_live_new(rd_report *report, rd_loop *loop) {
    rd_live *live = rd_alloc_zero(sizeof(*live));
    live->report = report;
    live->loop = loop;
    live->past = rd_past_new(report);
    rd_viewers_init(&live->viewers);
    rd_timer_init(&live->tick, on_tick);
    return live;
}

void rd_live_begin(rd_live *live) {
    rd_report_watch(live->report, 0);
    rd_timer_set(&live->loop->timers, &live->tick, live->loop->now_ms + RD_PAST_EVERY_MS);
}

void rd_live_end(rd_live *live) {
    rd_viewers_end(&live->viewers);
}

void rd_live_free(rd_live *live) {
    rd_live_end(live);
    if (rd_timer_is_armed(&live->tick)) rd_timer_cancel(&live->tick);
    rd_past_free(live->past);
    rd_free(live);
}
