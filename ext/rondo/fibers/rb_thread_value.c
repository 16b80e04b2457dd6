/* SPDX-License-Identifier: MIT
 *
 * What the block of a thread has returned; see rb_thread_value.h.
 */
#include "fibers/rb_thread_value.h"

#if RUBY_API_VERSION_CODE < 30300

#include <pthread.h>
#include <stdint.h>

/* The functions that begin a thread are below its thread-local storage, at the upper end of the
 * stack: 5,000 bytes from there on x86-64 with Debian's Ruby 3.1. */
enum { RD_THREAD_VALUE_REACH = 16 * 1024 };

void rd_thread_value_hold(rd_thread_value *value) {
#ifdef __linux__
    pthread_attr_t attributes;
    void *lowest;
    size_t size;
    if (rb_thread_current() == rb_thread_main()) return; /* its value is nobody's */
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
    if (pthread_attr_getstack(&attributes, &lowest, &size) == 0) {
        const uintptr_t here = (uintptr_t)__builtin_frame_address(0),
                        end = (uintptr_t)lowest + size;
        uintptr_t from = end - RD_THREAD_VALUE_REACH;
        if (from < here) from = here;
        if (here >= (uintptr_t)lowest && here < end) { /* not the stack of a fiber */
            value->from = (const VALUE *)from;
            value->end = (const VALUE *)end;
        }
    }
    pthread_attr_destroy(&attributes);
#else
    (void)value;
#endif
}

void rd_thread_value_mark(const rd_thread_value *value) {
    if (value->from != NULL) rb_gc_mark_locations(value->from, value->end);
}

#endif
