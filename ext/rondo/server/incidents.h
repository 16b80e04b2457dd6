/* SPDX-License-Identifier: MIT
 *
 * What the operator should read in the log: a request that was refused, an answer that was cut, a
 * descriptor or a thread that the system did not give. The core keeps a few incidents until the
 * binding takes them; how many more there were is one more line. A flood of the same kind becomes
 * one line a second, and a number of the scoreboard counts it. Under the loop lock.
 */
#ifndef RD_SERVER_INCIDENTS_H
#define RD_SERVER_INCIDENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/address.h"

#define RD_INCIDENTS_KEPT 32

struct rd_server;

typedef struct rd_incident {
    rd_address peer;    /* blank: no client is concerned */
    int code;           /* RD_ERR_* */
    uint32_t unnamed;   /* others like it that came before it and have no line */
    const char *reason; /* the same code for several; static, or NULL */
} rd_incident;

/* Failed handshakes have a few lines a second, and what no other rule is for some more: one client
 * can break a rule thousands of times a second. */
typedef struct rd_incident_quota {
    uint64_t since_ms;
    uint32_t used, unnamed;
} rd_incident_quota;

typedef struct rd_incidents {
    rd_incident kept[RD_INCIDENTS_KEPT];
    uint32_t count; /* in `kept` */
    uint32_t lost;  /* there was no room for them in `kept` */
    /* When the last incident of this kind happened, in ms; 0: never. */
    uint64_t no_descriptor_ms, no_thread_ms, given_up_ms, file_cut_ms, answer_short_ms,
        answer_long_ms, forwarded_ms, reply_ms;
    rd_incident_quota handshakes, refusals;
} rd_incidents;

typedef struct rd_incidents_taken {
    rd_incident kept[RD_INCIDENTS_KEPT];
    uint32_t count, lost;
} rd_incidents_taken;

/* Keeps an incident for the log, unless one like it was logged recently. `peer`: NULL if no client
 * is concerned. */
void rd_incidents_add(struct rd_server *server, const rd_address *peer, int code);

/* The same with a reason, which is there for ever, or NULL. */
void rd_incidents_add_reason(struct rd_server *server, const rd_address *peer, int code,
                             const char *reason);

/* Whether a handshake has failed, before there was any request. */
bool rd_incident_is_handshake(int code);

/* Takes out what is kept, for the log. */
void rd_incidents_take(struct rd_server *server, rd_incidents_taken *taken);

/* Keeps again what was taken but not logged: the incidents from number `from` on, and those that
 * were lost. They stand before newer ones. What there is no room for any more is lost. */
void rd_incidents_give_back(struct rd_server *server, const rd_incidents_taken *taken,
                            uint32_t from);

/* Whether there is something to log. */
static inline bool rd_has_incidents(const rd_incidents *incidents) {
    return (incidents->count | incidents->lost) != 0;
}

#endif
