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

/* The part of the stack; empty with both NULL. */
typedef struct rd_thread_value {
    const VALUE *from, *end;
} rd_thread_value;

#if RUBY_API_VERSION_CODE < 30300

/* From here on this thread's is marked. The caller makes it empty before it returns. */
void rd_thread_value_hold(rd_thread_value *value);

void rd_thread_value_mark(const rd_thread_value *value);

#else

static inline void rd_thread_value_hold(rd_thread_value *value) {
    (void)value;
}

static inline void rd_thread_value_mark(const rd_thread_value *value) {
    (void)value;
}

#endif

#endif
