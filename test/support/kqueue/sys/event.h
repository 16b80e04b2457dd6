/* SPDX-License-Identifier: MIT
 *
 * A part of kqueue(2) over epoll(7), so that the poller of macOS and the BSDs runs in the tests on
 * Linux: the filters for reading and writing with EV_ADD, EV_DELETE, EV_CLEAR and EV_ONESHOT, and
 * EV_EOF. Names and types are FreeBSD's. What it cannot show is what a real kernel does otherwise.
 */
#ifndef RD_TEST_KQUEUE_SYS_EVENT_H
#define RD_TEST_KQUEUE_SYS_EVENT_H

#include <stdint.h>
#include <time.h>

#define EVFILT_READ  (-1)
#define EVFILT_WRITE (-2)

#define EV_ADD     0x0001
#define EV_DELETE  0x0002
#define EV_ONESHOT 0x0010
#define EV_CLEAR   0x0020
#define EV_EOF     0x8000

struct kevent {
    uintptr_t ident;
    short filter;
    unsigned short flags;
    unsigned int fflags;
    int64_t data;
    void *udata;
};

#define EV_SET(event, ident_, filter_, flags_, fflags_, data_, udata_)                             \
    (*(event) = (struct kevent){(ident_), (filter_), (flags_), (fflags_), (data_), (udata_)})

int kqueue(void);
int kevent(int queue, const struct kevent *changes, int change_count, struct kevent *events,
           int event_count, const struct timespec *timeout);

#endif
