/* SPDX-License-Identifier: MIT
 *
 * The end of a listening socket while others, of this process or of another, listen at its address.
 * Until this socket is closed, the kernel still chooses it for some clients, and closing it resets
 * the connections in its queue. So first the kernel drops attempts to connect here: such a client
 * tries again after a second and gets another socket. Then unfinished handshakes are waited for;
 * usually there are none. At last the owner accepts what is queued and closes the socket. Under the
 * loop lock.
 */
#ifndef RD_LISTEN_RETIREMENT_H
#define RD_LISTEN_RETIREMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "loop/loop.h"

typedef struct rd_retirement rd_retirement;

struct rd_retirement {
    rd_timer timer;
    rd_loop *loop; /* NULL: retirement has not begun */
    void (*on_due)(rd_retirement *retirement);
    int fd;
    unsigned step_ms;
    bool holds_back; /* nobody new comes */
};

void rd_retirement_init(rd_retirement *retirement);
void rd_retirement_clear(rd_retirement *retirement);

/* `on_due` is called in a turn, soon, within a second, and may close the socket: a poll may have
 * found it meanwhile. If the system cannot hold clients back, it is called in the next turn. A
 * second call does nothing. */
void rd_retirement_begin(rd_retirement *retirement, rd_loop *loop, int fd,
                         void (*on_due)(rd_retirement *retirement));

static inline bool rd_retirement_has_begun(const rd_retirement *retirement) {
    return retirement->loop != NULL;
}

#endif
