/* SPDX-License-Identifier: MIT
 *
 * Samples and lives; see past.h. Counters of the scoreboard begin anew with each process, so a
 * sample is the sum of what the processes have added since the one before.
 */
#include "control/past.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "system/clock.h"

#define SAMPLES 300
#define LIVES   128

/* What a sample counts, as sums over the processes; see cluster/scoreboard.def. */
#define EACH_COUNTER(take)                                                                         \
    take(requests) take(static_answers) take(accepted) take(refused) take(dropped) take(timed_out) \
        take(write_timeouts) take(answers_cut) take(handed_in) take(published)                     \
            take(messages_dropped) take(replay_gaps)

typedef struct rd_sample {
    uint64_t time_ms;
#define FIELD(name) uint64_t name;
    EACH_COUNTER(FIELD)
#undef FIELD
    uint64_t busy, queue, connections;
    uint32_t wait[RD_HISTOGRAM_BUCKETS], duration[RD_HISTOGRAM_BUCKETS];
} rd_sample;

/* What a process had counted when it was looked at last. */
typedef struct rd_seen {
    uint64_t pid;
    uint64_t left_pid; /* of the process before it */
#define FIELD(name) uint64_t name;
    EACH_COUNTER(FIELD)
#undef FIELD
    uint64_t wait[RD_HISTOGRAM_BUCKETS], duration[RD_HISTOGRAM_BUCKETS];
    struct rd_life *life;
} rd_seen;

typedef struct rd_life {
    rd_list node;
    uint64_t pid, generation, started_ms, ready_ms, draining_ms, ended_ms;
    uint32_t worker;
    bool was_lost; /* it ended although nobody had told it to */
} rd_life;

struct rd_past {
    const rd_report *report;
    rd_sample samples[SAMPLES];
    uint64_t count; /* of samples so far; the last ones are kept */
    rd_list lives;
    unsigned life_count;
    rd_seen seen[]; /* by row */
};

rd_past *rd_past_new(const rd_report *report) {
    rd_past *past = rd_alloc_zero(sizeof(*past) + report->board->row_count * sizeof(past->seen[0]));
    past->report = report;
    rd_list_init(&past->lives);
    rd_past_tick(past); /* what has been counted before is no sample */
    past->count = 0;
    return past;
}

void rd_past_free(rd_past *past) {
    for (rd_list *node; (node = rd_list_shift(&past->lives)) != NULL;) {
        rd_free(RD_CONTAINER(node, rd_life, node));
    }
    rd_free(past);
}

/* ---- samples ---- */

static uint64_t added(uint64_t now, uint64_t *before) {
    const uint64_t more = now > *before ? now - *before : 0;
    *before = now;
    return more;
}

static void add_histogram(uint32_t counts[RD_HISTOGRAM_BUCKETS], const rd_histogram *histogram,
                          uint64_t before[RD_HISTOGRAM_BUCKETS]) {
    for (unsigned i = 0; i < RD_HISTOGRAM_BUCKETS; i++) {
        counts[i] += (uint32_t)added(rd_score_load(&histogram->buckets[i]), &before[i]);
    }
}

static void add_row(rd_sample *sample, const rd_score_row *row, rd_seen *seen) {
#define ADD(name) sample->name += added(rd_score_load(&row->name), &seen->name);
    EACH_COUNTER(ADD)
#undef ADD
    sample->busy += rd_score_load(&row->busy);
    sample->queue += rd_score_load(&row->queue);
    sample->connections += rd_score_load(&row->connections);
    add_histogram(sample->wait, &row->wait, seen->wait);
    add_histogram(sample->duration, &row->duration, seen->duration);
}

/* ---- lives ---- */

/* Most processes end between two looks. Whether one had been told to is not known any more if
 * another one has come and gone since. */
static void end_life(rd_life *life, const rd_score_left *left, uint64_t now_ms) {
    const bool is_known = rd_score_load(&left->pid) == life->pid;
    const bool was_told = is_known && rd_score_load(&left->was_told) != 0;
    life->ended_ms = now_ms;
    if (was_told && life->draining_ms == 0) life->draining_ms = now_ms;
    life->was_lost = is_known && life->draining_ms == 0;
}

/* The oldest one that is over. There are never more processes than rows, and a few more lives than
 * LIVES where there are many rows. */
static void forget_one(rd_past *past) {
    for (rd_list *node = past->lives.next; node != &past->lives; node = node->next) {
        rd_life *life = RD_CONTAINER(node, rd_life, node);
        if (life->ended_ms == 0) continue;
        rd_list_unlink(node);
        rd_free(life);
        past->life_count--;
        return;
    }
}

static rd_life *begin_life(rd_past *past, uint32_t number, rd_life begun) {
    if (past->life_count >= LIVES) forget_one(past);
    rd_life *life = rd_alloc(sizeof(*life));
    *life = begun;
    life->worker = rd_report_worker(past->report, number);
    rd_list_append(&past->lives, &life->node);
    past->life_count++;
    return life;
}

static rd_life *begin_with(rd_past *past, uint32_t number, const rd_score_row *row) {
    return begin_life(past, number,
                      (rd_life){.pid = rd_score_load(&row->pid),
                                .generation = rd_score_load(&row->generation),
                                .started_ms = rd_score_load(&row->started_ms)});
}

/* A process that nobody has seen: it began and ended since the last look. */
static void add_unseen(rd_past *past, uint32_t number, const rd_score_left *left, uint64_t now_ms) {
    rd_life *life = begin_life(past, number,
                               (rd_life){.pid = rd_score_load(&left->pid),
                                         .generation = rd_score_load(&left->generation),
                                         .started_ms = rd_score_load(&left->started_ms),
                                         .ready_ms = rd_score_load(&left->ready_ms)});
    end_life(life, left, now_ms);
}

/* Returns whether a process has left the row that was not there at the last look. */
static bool look_for_unseen(rd_past *past, uint32_t number, rd_seen *seen, uint64_t now_ms) {
    const rd_score_left *left = &past->report->board->rows[number].left;
    const uint64_t pid = rd_score_load(&left->pid);
    if (pid == seen->left_pid) return false;
    seen->left_pid = pid;
    if (seen->life != NULL && seen->life->pid == pid) return false;
    add_unseen(past, number, left, now_ms);
    return true;
}

static bool follow_life(rd_life *life, const rd_score_row *row, uint64_t now_ms) {
    const uint64_t ready_ms = rd_score_load(&row->ready_ms);
    const bool is_draining = rd_score_load(&row->state) == RD_SCORE_DRAINING;
    const bool is_news = life->ready_ms != ready_ms || (is_draining && life->draining_ms == 0);
    life->ready_ms = ready_ms;
    if (is_draining && life->draining_ms == 0) life->draining_ms = now_ms;
    return is_news;
}

/* Returns whether there is news of the process in this row. */
static bool look_at_row(rd_past *past, uint32_t number, rd_sample *sample, uint64_t now_ms) {
    const rd_score_row *row = &past->report->board->rows[number];
    rd_seen *seen = &past->seen[number];
    const uint64_t pid =
        rd_score_load(&row->state) == RD_SCORE_EMPTY ? 0 : rd_score_load(&row->pid);
    bool is_news = look_for_unseen(past, number, seen, now_ms);
    if (seen->pid != pid) {
        if (seen->life != NULL) end_life(seen->life, &row->left, now_ms);
        is_news |= seen->life != NULL || pid != 0;
        *seen = (rd_seen){.pid = pid, .left_pid = seen->left_pid};
        if (pid != 0) seen->life = begin_with(past, number, row);
    }
    if (pid == 0) return is_news;
    add_row(sample, row, seen);
    return follow_life(seen->life, row, now_ms) || is_news;
}

bool rd_past_tick(rd_past *past) {
    rd_sample *sample = &past->samples[past->count++ % SAMPLES];
    const uint64_t now_ms = rd_clock_ms();
    bool is_news = false;
    *sample = (rd_sample){.time_ms = now_ms};
    for (uint32_t i = 0; i < past->report->board->row_count; i++) {
        is_news |= look_at_row(past, i, sample, now_ms);
    }
    return is_news;
}

/* ---- as JSON ---- */

static void add_counts(rd_buffer *text, const char *name,
                       const uint32_t counts[RD_HISTOGRAM_BUCKETS]) {
    bool first = true;
    rd_text_add(text, ",\"%s\":[", name);
    for (unsigned i = 0; i < RD_HISTOGRAM_BUCKETS; i++) {
        if (counts[i] == 0) continue;
        rd_text_add(text, first ? "[%u,%u]" : ",[%u,%u]", i, counts[i]);
        first = false;
    }
    rd_text_add(text, "]");
}

/* Zeros are left out: most numbers are. */
static void add_number(rd_buffer *text, const char *name, uint64_t number) {
    if (number > 0) rd_text_add(text, ",\"%s\":%" PRIu64, name, number);
}

static void add_sample(rd_buffer *text, const rd_sample *sample) {
    rd_text_add(text, "{\"time_ms\":%" PRIu64, sample->time_ms);
#define PUT(name) add_number(text, #name, sample->name);
    EACH_COUNTER(PUT)
#undef PUT
    add_number(text, "busy", sample->busy);
    add_number(text, "queue", sample->queue);
    add_number(text, "connections", sample->connections);
    add_counts(text, "wait", sample->wait);
    add_counts(text, "duration", sample->duration);
    rd_text_add(text, "}");
}

void rd_past_add_samples(const rd_past *past, bool all, rd_buffer *text) {
    const uint64_t kept = past->count < SAMPLES ? past->count : SAMPLES;
    const uint64_t shown = all || kept == 0 ? kept : 1;
    rd_text_add(text, "[");
    for (uint64_t at = past->count - shown; at < past->count; at++) {
        if (at > past->count - shown) rd_text_add(text, ",");
        add_sample(text, &past->samples[at % SAMPLES]);
    }
    rd_text_add(text, "]");
}

static void add_life(rd_buffer *text, const rd_life *life) {
    rd_text_add(text,
                "{\"worker\":%u,\"pid\":%" PRIu64 ",\"generation\":%" PRIu64
                ",\"started_ms\":%" PRIu64 ",\"ready_ms\":%" PRIu64,
                life->worker, life->pid, life->generation, life->started_ms, life->ready_ms);
    rd_text_add(text, ",\"draining_ms\":%" PRIu64 ",\"ended_ms\":%" PRIu64 ",\"lost\":%s}",
                life->draining_ms, life->ended_ms, life->was_lost ? "true" : "false");
}

void rd_past_add_lives(const rd_past *past, rd_buffer *text) {
    rd_text_add(text, "[");
    for (rd_list *node = past->lives.next; node != &past->lives; node = node->next) {
        if (node != past->lives.next) rd_text_add(text, ",");
        add_life(text, RD_CONTAINER(node, rd_life, node));
    }
    rd_text_add(text, "]");
}
