/* SPDX-License-Identifier: MIT
 *
 * What has happened lately, for whoever begins to look now: a sample of the traffic each second for
 * five minutes, and the lives of the processes. It is made from the scoreboard once a second. One
 * owner, no lock.
 */
#ifndef RD_CONTROL_PAST_H
#define RD_CONTROL_PAST_H

#include "control/stats.h"

#define RD_PAST_EVERY_MS 1000

typedef struct rd_past rd_past;

/* Never NULL. The report outlives it. */
rd_past *rd_past_new(const rd_report *report);
void rd_past_free(rd_past *past);

/* To be called each RD_PAST_EVERY_MS. Returns whether a life has begun, changed or ended. */
bool rd_past_tick(rd_past *past);

/* Appends an array of samples, the oldest first: all of them, or the last one. Times are
 * CLOCK_MONOTONIC. "wait" and "duration" are pairs of a bucket and its count. */
void rd_past_add_samples(const rd_past *past, bool all, rd_buffer *text);

/* Appends an array of lives, the oldest first. */
void rd_past_add_lives(const rd_past *past, rd_buffer *text);

#endif
