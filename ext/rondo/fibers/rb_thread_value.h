/* SPDX-License-Identifier: MIT
 *
 * What the block of a thread has returned, while the thread closes its scheduler. Before 3.3 Ruby
 * keeps it only in a part of the thread's stack that it does not mark. It would be gone when the
 * thread ends, and the next collection that sees the thread would end the process.
 */
#ifndef RD_FIBERS_THREAD_VALUE_H
#define RD_FIBERS_THREAD_VALUE_H

#include <ruby.h>
#include <ruby/version.h>

/* What may be it: a copy of words of the stack. The stack itself may go away: a child that another
 * thread forks has no such thread. */
typedef struct rd_thread_value {
    VALUE *words; /* owned; NULL: none */
    size_t count;
} rd_thread_value;

/* Where the upper end of a stack can be found. */
#if RUBY_API_VERSION_CODE < 30300 && defined(__linux__)
#define RD_KEEPS_THREAD_VALUE

/* Looks up once what Ruby calls to close this scheduler. The first lookup for a class allocates,
 * and that would be before the value is held. */
void rd_thread_value_prepare(VALUE scheduler);

/* From here on this thread's is marked, until it is freed. */
void rd_thread_value_hold(rd_thread_value *value);

void rd_thread_value_mark(const rd_thread_value *value);
void rd_thread_value_free(rd_thread_value *value);

#else

static inline void rd_thread_value_prepare(VALUE scheduler) {
    (void)scheduler;
}

static inline void rd_thread_value_hold(rd_thread_value *value) {
    (void)value;
}

static inline void rd_thread_value_mark(const rd_thread_value *value) {
    (void)value;
}

static inline void rd_thread_value_free(rd_thread_value *value) {
    (void)value;
}

#endif

#endif
