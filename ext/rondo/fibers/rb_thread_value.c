/* SPDX-License-Identifier: MIT
 *
 * What the block of a thread has returned; see rb_thread_value.h.
 */
#include "fibers/rb_thread_value.h"

#ifdef RD_KEEPS_THREAD_VALUE

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"

void rd_thread_value_prepare(VALUE scheduler) {
    rb_obj_respond_to(scheduler, rb_intern("scheduler_close"), 1);
}

/* The functions that begin a thread are below its thread-local storage, at the upper end of the
 * stack: 5,000 bytes from there on x86-64 with Debian's Ruby 3.1. */
#define REACH (16 * 1024)

/* The part of this thread's stack that may have it. */
static bool find_words(const volatile VALUE **from, const volatile VALUE **end) {
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    pthread_attr_t attributes;
    void *lowest = NULL;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return false;
    pthread_attr_getstack(&attributes, &lowest, &size);
    pthread_attr_destroy(&attributes);
    const uintptr_t low = (uintptr_t)lowest, high = low + size;
    if (here < low || here >= high) return false; /* the stack of a fiber */
    *from = (const volatile VALUE *)(high - here > REACH ? high - REACH : here);
    *end = (const volatile VALUE *)high;
    return true;
}

/* ASan knows variables there that it would not let others read. */
__attribute__((no_sanitize("address"))) static size_t
copy_words(VALUE *to, const volatile VALUE *from, const volatile VALUE *end) {
    size_t count = 0;
    for (; from < end; from++) {
        const VALUE word = *from;
        if (!RB_SPECIAL_CONST_P(word) && word % sizeof(VALUE) == 0) to[count++] = word;
    }
    return count;
}

void rd_thread_value_hold(rd_thread_value *value) {
    const volatile VALUE *from, *end;
    if (rb_thread_current() == rb_thread_main()) return; /* nobody gets its value */
    if (!find_words(&from, &end)) return;
    value->words = rd_alloc((size_t)(end - from) * sizeof(VALUE));
    value->count = copy_words(value->words, from, end);
}

void rd_thread_value_mark(const rd_thread_value *value) {
    if (value->words != NULL) rb_gc_mark_locations(value->words, value->words + value->count);
}

void rd_thread_value_free(rd_thread_value *value) {
    rd_free(value->words);
    *value = (rd_thread_value){NULL, 0};
}

#endif
