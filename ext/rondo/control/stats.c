/* SPDX-License-Identifier: MIT
 *
 * The JSON of /stats; see stats.h.
 */
#include "control/stats.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "system/clock.h"
#include "system/memory.h"
#include "base/text.h"
#include "control/views.h"

static bool is_used(const rd_score_row *row) {
    return rd_score_load(&row->state) != RD_SCORE_EMPTY;
}

unsigned rd_report_count(const rd_report *report, rd_score_state state) {
    unsigned count = 0;
    for (uint32_t i = 0; i < report->board->row_count; i++) {
        const rd_score_row *row = &report->board->rows[i];
        if (state == RD_SCORE_STATE_COUNT ? is_used(row) : rd_score_load(&row->state) == state)
            count++;
    }
    return count;
}

bool rd_report_is_leaving(const rd_report *report, uint32_t row) {
    const rd_score_row *rows = report->board->rows;
    for (uint32_t i = row % report->room; i < report->board->row_count; i += report->room) {
        if (i == row || !is_used(&rows[i])) continue;
        uint64_t started = rd_score_load(&rows[i].started_ms),
                 own = rd_score_load(&rows[row].started_ms);
        if (started > own || (started == own && i > row)) return true;
    }
    return false;
}

static bool is_stuck(const rd_score_row *row, uint64_t now, uint64_t within_ms) {
    uint64_t seen = rd_score_load(&row->ruby_turn_ms);
    bool has_work = rd_score_load(&row->busy) > 0 || rd_score_load(&row->queue) > 0;
    return has_work && seen > 0 && now > seen + within_ms;
}

bool rd_report_is_stuck(const rd_report *report, uint64_t within_ms) {
    uint64_t now = rd_clock_ms();
    unsigned ready = 0, stuck = 0;
    for (uint32_t i = 0; i < report->board->row_count; i++) {
        const rd_score_row *row = &report->board->rows[i];
        if (rd_score_load(&row->state) != RD_SCORE_READY) continue;
        ready++;
        if (is_stuck(row, now, within_ms)) stuck++;
    }
    return ready > 0 && stuck == ready;
}

/* ---- histograms ---- */

static uint64_t copy_counts(const rd_histogram *histogram, uint64_t counts[RD_HISTOGRAM_BUCKETS]) {
    uint64_t all = 0;
    for (unsigned i = 0; i < RD_HISTOGRAM_BUCKETS; i++)
        all += counts[i] = rd_score_load(&histogram->buckets[i]);
    return all;
}

static uint64_t within_bucket(unsigned bucket, uint64_t rank, uint64_t count) {
    uint64_t low = bucket == 0 ? 0 : rd_histogram_bound_us(bucket - 1);
    uint64_t high = rd_histogram_bound_us(bucket);
    if (high == UINT64_MAX)
        return low; /* nothing but its lower bound is known of the last
                     * bucket */
    return low + (uint64_t)((double)(high - low) * ((double)rank / (double)count));
}

uint64_t rd_histogram_percentile(const uint64_t counts[RD_HISTOGRAM_BUCKETS], unsigned permille) {
    uint64_t all = 0, below = 0;
    for (unsigned i = 0; i < RD_HISTOGRAM_BUCKETS; i++) all += counts[i];
    if (all == 0) return 0;
    uint64_t rank = (all * permille + 999) / 1000;
    if (rank == 0) rank = 1;
    for (unsigned i = 0; i < RD_HISTOGRAM_BUCKETS; i++) {
        if (below + counts[i] >= rank) return within_bucket(i, rank - below, counts[i]);
        below += counts[i];
    }
    return 0;
}

static void add_histogram(rd_buffer *text, const char *name, const rd_histogram *histogram) {
    uint64_t counts[RD_HISTOGRAM_BUCKETS];
    uint64_t all = copy_counts(histogram, counts);
    rd_text_add(text,
                ",\"%s\":{\"count\":%" PRIu64 ",\"sum\":%" PRIu64 ",\"p50\":%" PRIu64
                ",\"p99\":%" PRIu64 ",\"buckets\":[",
                name, all, rd_score_load(&histogram->sum_us), rd_histogram_percentile(counts, 500),
                rd_histogram_percentile(counts, 990));
    for (unsigned i = 0; i < RD_HISTOGRAM_BUCKETS; i++) {
        rd_text_add(text, i == 0 ? "%" PRIu64 : ",%" PRIu64, counts[i]);
    }
    rd_text_add(text, "]}");
}

/* ---- one worker ---- */

/* Writes a time of CLOCK_MONOTONIC, which the scoreboard uses, as wall time. */
static void add_time(rd_buffer *text, uint64_t at_ms) {
    char time[RD_TEXT_TIME_MAX];
    int64_t ago_ms = (int64_t)(rd_clock_ms() - at_ms);
    rd_text_time(rd_clock_wall_seconds() - ago_ms / 1000, time);
    if (at_ms == 0) {
        rd_text_add(text, "null");
    } else {
        rd_text_add(text, "\"%s\"", time);
    }
}

/* Puma's numbers with Puma's names. */
static void add_status(rd_buffer *text, const rd_score_row *row) {
    uint64_t busy = rd_score_load(&row->busy), most = rd_score_load(&row->max_threads);
    rd_text_add(text, "\"backlog\":%" PRIu64 ",\"running\":%" PRIu64, rd_score_load(&row->queue),
                rd_score_load(&row->threads));
    rd_text_add(text, ",\"pool_capacity\":%" PRIu64 ",\"busy_threads\":%" PRIu64,
                most > busy ? most - busy : 0, busy);
    rd_text_add(text, ",\"max_threads\":%" PRIu64 ",\"requests_count\":%" PRIu64, most,
                rd_score_load(&row->requests));
    rd_text_add(text, ",\"backlog_max\":%" PRIu64 ",\"reactor_max\":%" PRIu64 ",\"io_threads\":0",
                rd_score_load(&row->max_queue_seen), rd_score_load(&row->connections));
}

static void add_own(rd_buffer *text, const rd_score_row *row) {
    rd_text_add(text, "{\"state\":\"%s\"", rd_score_state_name(rd_score_load(&row->state)));
    for (size_t i = 0; i < rd_score_count; i++) {
        const rd_score_info *info = &rd_score_table[i];
        if (strcmp(info->name, "state") == 0) continue;
        rd_text_add(text, ",\"%s\":%" PRIu64, info->name, rd_score_get(row, info));
    }
    add_histogram(text, "queue_time_us", &row->wait);
    add_histogram(text, "duration_us", &row->duration);
    rd_views_add(&row->view, text);
    rd_text_add(text, "}");
}

static void add_worker(rd_buffer *text, const rd_score_row *row, uint32_t index) {
    uint64_t state = rd_score_load(&row->state);
    bool booted = state == RD_SCORE_READY || state == RD_SCORE_DRAINING;
    rd_text_add(text, "{\"started_at\":");
    add_time(text, rd_score_load(&row->started_ms));
    rd_text_add(text,
                ",\"pid\":%" PRIu64 ",\"index\":%u,\"phase\":%" PRIu64 ",\"booted\":%s"
                ",\"last_checkin\":",
                rd_score_load(&row->pid), index, rd_score_load(&row->generation),
                booted ? "true" : "false");
    add_time(text, rd_score_load(&row->last_turn_ms));
    rd_text_add(text, ",\"last_status\":{");
    add_status(text, row);
    rd_text_add(text, "},\"rondo\":");
    add_own(text, row);
    rd_text_add(text, "}");
}

/* ---- all of them ---- */

static uint64_t newest_generation(const rd_report *report) {
    uint64_t newest = 0;
    for (uint32_t i = 0; i < report->board->row_count; i++) {
        const rd_score_row *row = &report->board->rows[i];
        uint64_t generation = rd_score_load(&row->generation);
        if (is_used(row) && generation > newest) newest = generation;
    }
    return newest;
}

static unsigned count_old(const rd_report *report, uint64_t newest) {
    unsigned count = 0;
    for (uint32_t i = 0; i < report->board->row_count; i++) {
        const rd_score_row *row = &report->board->rows[i];
        if (is_used(row) && rd_score_load(&row->generation) < newest) count++;
    }
    return count;
}

static void add_cluster(const rd_report *report, rd_buffer *text) {
    uint64_t phase = newest_generation(report);
    unsigned ready = rd_report_count(report, RD_SCORE_READY);
    unsigned draining = rd_report_count(report, RD_SCORE_DRAINING);
    rd_text_add(text, ",\"workers\":%u,\"phase\":%" PRIu64 ",\"booted_workers\":%u",
                rd_report_count(report, RD_SCORE_STATE_COUNT), phase, ready + draining);
    rd_text_add(text, ",\"old_workers\":%u,\"worker_status\":[", count_old(report, phase));
    bool first = true;
    for (uint32_t i = 0; i < report->board->row_count; i++) {
        if (!is_used(&report->board->rows[i])) continue;
        if (!first) rd_text_add(text, ",");
        add_worker(text, &report->board->rows[i], rd_report_worker(report, i));
        first = false;
    }
    rd_text_add(text, "]");
}

static void add_single(const rd_report *report, rd_buffer *text) {
    rd_text_add(text, ",");
    add_status(text, &report->board->rows[0]);
    rd_text_add(text, ",\"rondo\":");
    add_own(text, &report->board->rows[0]);
}

static void add_number(rd_buffer *text, const char *name, int64_t number) {
    if (number < 0) {
        rd_text_add(text, ",\"%s\":null", name);
    } else {
        rd_text_add(text, ",\"%s\":%" PRId64, name, number);
    }
}

static void add_queues(const rd_report *report, rd_buffer *text) {
    rd_text_add(text, ",\"accept_queues\":[");
    for (size_t i = 0; i < report->queue_count; i++) {
        const rd_accept_queue *queue = &report->queues[i];
        rd_text_add(text, i == 0 ? "{\"url\":" : ",{\"url\":");
        rd_text_add_json(text, queue->url);
        add_number(text, "worker", queue->slot);
        add_number(text, "depth", queue->depth);
        add_number(text, "limit", queue->limit);
        rd_text_add(text, "}");
    }
    rd_text_add(text, "]");
}

static void add_memory(const rd_report *report, rd_buffer *text) {
    rd_text_add(text, ",\"master_rss_bytes\":%" PRIu64 ",\"mold_rss_bytes\":%" PRIu64,
                report->master_bytes, report->mold_bytes);
}

static void add_bounds(rd_buffer *text) {
    rd_text_add(text, ",\"bounds_us\":[");
    for (unsigned i = 0; i + 1 < RD_HISTOGRAM_BUCKETS; i++) {
        rd_text_add(text, i == 0 ? "%" PRIu64 : ",%" PRIu64, rd_histogram_bound_us(i));
    }
    rd_text_add(text, "]");
}

void rd_report_stats(const rd_report *report, rd_buffer *text) {
    char started[RD_TEXT_TIME_MAX];
    rd_text_time(report->started_s, started);
    rd_text_add(text, "{\"started_at\":\"%s\"", started);
    if (report->cluster) {
        add_cluster(report, text);
    } else {
        add_single(report, text);
    }
    add_queues(report, text);
    rd_certificate_list_stats(report->certificates, rd_clock_wall_seconds(), text);
    rd_text_add(text, ",\"control_refused\":%" PRIu64, report->refused);
    if (report->cluster) add_memory(report, text);
    add_bounds(text);
    rd_views_add_bounds(text);
    rd_text_add(text, ",\"time_ms\":%" PRIu64 ",\"versions\":%s}\n", rd_clock_ms(),
                report->versions == NULL ? "{}" : report->versions);
}

/* ---- what the kernel knows ---- */

static bool is_worker(const void *board, uint64_t pid) {
    const rd_scoreboard *scores = board;
    for (uint32_t i = 0; i < scores->row_count; i++) {
        if (atomic_load(&scores->rows[i].pid) == pid) return true;
    }
    return false;
}

/* The children of a master that are not workers are molds. */
static void measure_master(rd_report *report) {
    report->master_bytes = rd_memory_of((uint64_t)getpid());
    report->mold_bytes = rd_memory_of_children(is_worker, report->board);
}

void rd_report_measure(rd_report *report) {
    for (uint32_t i = 0; i < report->board->row_count; i++) {
        rd_score_row *row = &report->board->rows[i];
        uint64_t pid = atomic_load(&row->pid), bytes = pid > 0 ? rd_memory_of(pid) : 0;
        if (bytes > 0) atomic_store(&row->rss_bytes, bytes);
    }
    if (report->cluster) measure_master(report);
    for (size_t i = 0; i < report->queue_count; i++) {
        rd_accept_queue_measure(&report->queues[i]);
    }
}
