/* SPDX-License-Identifier: MIT
 *
 * The live part of the status page: what is remembered of the last minutes, and what those who look
 * at the page are sent each second. Under the lock of the control server's loop.
 */
#ifndef RD_CONTROL_LIVE_H
#define RD_CONTROL_LIVE_H

#include "control/stats.h"
#include "loop/loop.h"
#include "request/request.h"

typedef struct rd_live rd_live;

/* Never NULL. Report and loop outlive it. */
rd_live *rd_live_new(rd_report *report, rd_loop *loop);

/* Begins to remember, whether somebody looks or not. */
void rd_live_begin(rd_live *live);

/* Answers with an event stream: everything there is, then what is new each second. */
void rd_live_show(rd_live *live, rd_request *request);

/* Ends all event streams; a page that is open comes back later. */
void rd_live_end(rd_live *live);
void rd_live_free(rd_live *live);

/* Appends what is remembered to a complete JSON object, as members "samples", "lives" and "log". */
void rd_live_add_past(const rd_live *live, rd_buffer *text);

/* Tells the processes that somebody watches them for so long. With 0 those that nobody watches
 * learn that somebody may. */
void rd_report_watch(const rd_report *report, uint64_t for_ms);

#endif
