/* SPDX-License-Identifier: MIT
 *
 * The same numbers for Prometheus, in its text format 0.0.4. The names come from scoreboard.def and
 * must not change; docs/MONITORING.md lists them. Any thread.
 */
#ifndef RD_CONTROL_METRICS_H
#define RD_CONTROL_METRICS_H

#include "control/stats.h"

#define RD_METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

void rd_report_metrics(const rd_report *report, rd_buffer *text);

#endif
