/* SPDX-License-Identifier: MIT
 *
 * Prometheus' text format, one family after the other, HELP and TYPE before the samples; see
 * metrics.h.
 */
#include "control/metrics.h"

#include <inttypes.h>
#include <stdio.h>

#include "system/clock.h"
#include "base/text.h"

#define EACH_WORKER(report, row, index)                                                            \
    for (uint32_t index = 0; index < (report)->board->row_count; index++)                          \
        for (const rd_score_row *row = &(report)->board->rows[index];                              \
             row != NULL && rd_score_load(&row->state) != RD_SCORE_EMPTY; row = NULL)

static void add_worker_label(const rd_report *report, rd_buffer *text, uint32_t row) {
    rd_text_add(text, "worker=\"%u\"", rd_report_worker(report, row));
    if (rd_report_is_leaving(report, row)) rd_text_add(text, ",leaving=\"1\"");
}

/* Writes the name, its label, and a space. */
static void begin_sample(const rd_report *report, rd_buffer *text, const char *name, uint32_t row) {
    rd_text_add(text, "rondo_%s{", name);
    add_worker_label(report, text, row);
    rd_text_add(text, "} ");
}

static void begin(rd_buffer *text, const char *name, const char *type, const char *help) {
    rd_text_add(text, "# HELP rondo_%s %s\n# TYPE rondo_%s %s\n", name, help, name, type);
}

/* ---- numbers of the scoreboard ---- */

static void add_row(const rd_report *report, rd_buffer *text, const rd_score_info *info) {
    bool counter = info->kind == RD_SCORE_COUNTER;
    char name[64];
    snprintf(name, sizeof(name), counter ? "%s_total" : "%s", info->name);
    begin(text, name, counter ? "counter" : "gauge", info->doc);
    EACH_WORKER(report, row, index) {
        begin_sample(report, text, name, index);
        rd_text_add(text, "%" PRIu64 "\n", rd_score_get(row, info));
    }
}

/* ---- histograms ---- */

static void add_buckets(const rd_report *report, rd_buffer *text, const char *family,
                        uint32_t index, const rd_histogram *histogram) {
    char name[64];
    uint64_t count = 0;
    for (unsigned i = 0; i < RD_HISTOGRAM_BUCKETS; i++) {
        count += rd_score_load(&histogram->buckets[i]);
        rd_text_add(text, "rondo_%s_bucket{", family);
        add_worker_label(report, text, index);
        rd_text_add(text, ",le=\"");
        if (i + 1 < RD_HISTOGRAM_BUCKETS) {
            rd_text_add_seconds(text, rd_histogram_bound_us(i));
        } else {
            rd_text_add(text, "+Inf");
        }
        rd_text_add(text, "\"} %" PRIu64 "\n", count);
    }
    snprintf(name, sizeof(name), "%s_sum", family);
    begin_sample(report, text, name, index);
    rd_text_add_seconds(text, rd_score_load(&histogram->sum_us));
    rd_text_add(text, "\n");
    snprintf(name, sizeof(name), "%s_count", family);
    begin_sample(report, text, name, index);
    rd_text_add(text, "%" PRIu64 "\n", count);
}

static void add_queue_times(const rd_report *report, rd_buffer *text) {
    begin(text, "queue_time_seconds", "histogram",
          "from the time a request can be read until the application gets it");
    EACH_WORKER(report, row, index) {
        add_buckets(report, text, "queue_time_seconds", index, &row->wait);
    }
}

static void add_durations(const rd_report *report, rd_buffer *text) {
    begin(text, "request_duration_seconds", "histogram", "in the application");
    EACH_WORKER(report, row, index) {
        add_buckets(report, text, "request_duration_seconds", index, &row->duration);
    }
}

/* ---- metrics made of facts ---- */

static void add_states(const rd_report *report, rd_buffer *text) {
    begin(text, "workers", "gauge", "worker processes by what they do");
    for (unsigned state = RD_SCORE_BOOTING; state < RD_SCORE_STATE_COUNT; state++) {
        rd_text_add(text, "rondo_workers{state=\"%s\"} %u\n", rd_score_state_name(state),
                    rd_report_count(report, (rd_score_state)state));
    }
}

static void add_generations(const rd_report *report, rd_buffer *text) {
    begin(text, "generation", "gauge", "of the application's code: one more each phased restart");
    EACH_WORKER(report, row, index) {
        begin_sample(report, text, "generation", index);
        rd_text_add(text, "%" PRIu64 "\n", rd_score_load(&row->generation));
    }
}

static void add_age(const rd_report *report, rd_buffer *text, const char *name, const char *help,
                    size_t offset) {
    uint64_t now = rd_clock_ms();
    begin(text, name, "gauge", help);
    EACH_WORKER(report, row, index) {
        const char *at = (const char *)row + offset;
        uint64_t since = rd_score_load((const _Atomic uint64_t *)(const void *)at);
        if (since == 0) continue; /* not yet */
        begin_sample(report, text, name, index);
        rd_text_add_seconds(text, now > since ? (now - since) * 1000 : 0);
        rd_text_add(text, "\n");
    }
}

/* ---- the server as a whole ---- */

static void add_queue(const rd_report *report, rd_buffer *text, const char *name, const char *help,
                      size_t offset) {
    begin(text, name, "gauge", help);
    for (size_t i = 0; i < report->queue_count; i++) {
        const rd_accept_queue *queue = &report->queues[i];
        int64_t number = *(const int64_t *)(const void *)((const char *)queue + offset);
        if (number < 0) continue;
        rd_text_add(text, "rondo_%s{listener=", name);
        rd_text_add_json(text, queue->url);
        if (queue->slot >= 0) rd_text_add(text, ",worker=\"%d\"", queue->slot);
        rd_text_add(text, "} %" PRId64 "\n", number);
    }
}

static void add_server(const rd_report *report, rd_buffer *text) {
    begin(text, "build_info", "gauge", "always 1; its labels have the versions");
    rd_text_add(text, "rondo_build_info{%s} 1\n", report->about == NULL ? "" : report->about);
    begin(text, "start_time_seconds", "gauge", "when the server was started, since the epoch");
    rd_text_add(text, "rondo_start_time_seconds %" PRId64 "\n", report->started_s);
    add_queue(report, text, "accept_queue_depth", "connections that wait in the kernel",
              offsetof(rd_accept_queue, depth));
    add_queue(report, text, "accept_queue_limit", "connections that the kernel keeps waiting",
              offsetof(rd_accept_queue, limit));
    begin(text, "certificate_expiry_time_seconds", "gauge",
          "when a certificate of a listener expires, since the epoch");
    rd_certificate_list_metrics(report->certificates, "certificate_expiry_time_seconds", text);
    begin(text, "control_refused_total", "counter",
          "requests that the control server refused with 403: a wrong or missing token, or a page "
          "of another site");
    rd_text_add(text, "rondo_control_refused_total %" PRIu64 "\n", report->refused);
}

void rd_report_metrics(const rd_report *report, rd_buffer *text) {
    add_server(report, text);
    add_states(report, text);
    add_generations(report, text);
    add_age(report, text, "worker_age_seconds", "since the process was started",
            offsetof(rd_score_row, started_ms));
    add_age(report, text, "last_turn_age_seconds", "since the last sign of life",
            offsetof(rd_score_row, last_turn_ms));
    add_age(report, text, "ruby_turn_age_seconds",
            "since a Ruby thread ran the loop or returned from the application",
            offsetof(rd_score_row, ruby_turn_ms));
    add_age(report, text, "oldest_call_age_seconds",
            "since the application got the oldest request that has no answer yet",
            offsetof(rd_score_row, oldest_call_ms));
    add_age(report, text, "task_lateness_seconds",
            "how late the task is that has waited for a thread for longest",
            offsetof(rd_score_row, oldest_task_ms));
    for (size_t i = 0; i < rd_score_count; i++) {
        if (rd_score_table[i].kind != RD_SCORE_FACT) add_row(report, text, &rd_score_table[i]);
    }
    add_queue_times(report, text);
    add_durations(report, text);
}
