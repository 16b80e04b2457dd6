/* SPDX-License-Identifier: MIT
 *
 * What a server is doing at this moment, for somebody who watches it from outside: calls inside the
 * application, requests that wait, and the clients that ask most and wait longest. One process
 * writes a view, any may read it. A reader never waits for the writer, and never sees half of a
 * view.
 */
#ifndef RD_CLUSTER_VIEW_H
#define RD_CLUSTER_VIEW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/address.h"

#define RD_VIEW_CALLS      24 /* the oldest */
#define RD_VIEW_CLIENTS    8
#define RD_VIEW_BANDS      12 /* of waits; the last one counts everything above */
#define RD_VIEW_TARGET_MAX 88
#define RD_VIEW_CHANNELS   6
#define RD_VIEW_NAME_MAX   58

typedef enum rd_view_state {
    RD_VIEW_INSIDE,    /* in the application */
    RD_VIEW_CLIENT,    /* in the application, and waits for its client */
    RD_VIEW_ANSWERING, /* in the application, and its answer has begun */
    RD_VIEW_HUNG,      /* in the application for hard_request_timeout_ms */
    RD_VIEW_THREAD,    /* waits for a thread */
    RD_VIEW_TURN,      /* waits for other requests of its connection */
    RD_VIEW_STATE_COUNT
} rd_view_state;

/* A request. Times are CLOCK_MONOTONIC. */
typedef struct rd_view_call {
    uint64_t since_ms; /* in its state, but time inside the application counts from its begin */
    uint64_t client_since_ms; /* CLIENT: since when it waits for its client */
    rd_address peer;          /* blank: its client has gone */
    uint16_t status;          /* of its answer; 0: it has not begun */
    uint8_t state;            /* rd_view_state */
    uint8_t len;
    char target[RD_VIEW_TARGET_MAX]; /* method and path in ASCII, without the query; may be cut */
} rd_view_call;

/* A connection, during one period. Band i counts waits up to rd_view_bound_us(i). */
typedef struct rd_view_client {
    rd_address peer;
    uint32_t requests;
    uint64_t longest_us;
    uint32_t bands[RD_VIEW_BANDS];
} rd_view_client;

/* A channel or a pattern, of those that the process has subscribers for. */
typedef struct rd_view_channel {
    uint32_t subscribers;
    uint8_t is_pattern;
    uint8_t len;
    char name[RD_VIEW_NAME_MAX]; /* in ASCII; may be cut */
} rd_view_channel;

typedef struct rd_view {
    uint64_t written_ms;            /* 0: nobody has watched yet */
    uint64_t period_ms, period_end; /* of the clients below */
    uint32_t calls, busiest, longest;
    uint32_t channels; /* how many there are */
    uint32_t largest;  /* of them in `channel` */
    uint32_t waiting;  /* requests that wait, of which `call` has the oldest */
    rd_view_call call[RD_VIEW_CALLS];
    rd_view_client busy[RD_VIEW_CLIENTS];      /* the busiest first */
    rd_view_client late[RD_VIEW_CLIENTS];      /* the longest wait first */
    rd_view_channel channel[RD_VIEW_CHANNELS]; /* the most subscribers first */
} rd_view;

#define RD_VIEW_WORDS ((sizeof(rd_view) + 7) / 8)

/* A view in shared memory. */
typedef struct rd_shared_view {
    _Atomic uint64_t version; /* odd while it is written */
    _Atomic uint64_t words[RD_VIEW_WORDS];
} rd_shared_view;

/* "inside", "client", "answering", "hung", "thread", "turn"; "unknown" for anything else. */
const char *rd_view_state_name(unsigned state);

/* The upper bound of a band of waits in microseconds; UINT64_MAX for the last one. */
uint64_t rd_view_bound_us(unsigned band);
unsigned rd_view_band(uint64_t us);

/* One writer at a time. */
void rd_view_write(rd_shared_view *shared, const rd_view *view);

/* False: it is being written, or its writer died meanwhile. The numbers of entries are within their
 * bounds, whatever was written. */
bool rd_view_read(const rd_shared_view *shared, rd_view *view);

/* Makes it a view of nothing, also if its writer died. */
void rd_view_clear(rd_shared_view *shared);

#endif
