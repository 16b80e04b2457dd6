/* SPDX-License-Identifier: MIT
 *
 * The end of a listening socket while others, of this process or of another, listen at its address.
 * The kernel goes on choosing among all of them until this one is closed, and what is queued then
 * is reset. So the kernel is told first to let nobody begin a connection here: such a client tries
 * again after a second and finds the others. Then those on their way are waited for, mostly nobody
 * at all, and then the owner takes what is queued and closes. Under the loop lock.
 */
#ifndef RD_TRANSPORT_RETIREMENT_H
#define RD_TRANSPORT_RETIREMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "loop/loop.h"

typedef struct rd_retirement rd_retirement;

struct rd_retirement {
    rd_timer timer;
    rd_loop *loop; /* NULL: it has not begun */
    void (*on_due)(rd_retirement *retirement);
    int fd;
    unsigned step_ms;
};

void rd_retirement_init(rd_retirement *retirement);
void rd_retirement_clear(rd_retirement *retirement);

/* `on_due` is called in a moment and may close the socket; it comes within a second. Again: nothing
 * more. -1 with errno where the system cannot hold anybody back. */
int rd_retirement_begin(rd_retirement *retirement, rd_loop *loop, int fd,
                        void (*on_due)(rd_retirement *retirement));

static inline bool rd_retirement_has_begun(const rd_retirement *retirement) {
    return retirement->loop != NULL;
}

#endif
