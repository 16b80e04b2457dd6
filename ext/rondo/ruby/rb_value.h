/* SPDX-License-Identifier: MIT
 *
 * Reading Ruby's Strings and Hashes from C. Under the GVL.
 */
#ifndef RD_RUBY_VALUE_H
#define RD_RUBY_VALUE_H

#include <ruby.h>

#include "base/slice.h"

/* Valid while the String lives and does not change: RB_GC_GUARD it after the last use. */
static inline rd_slice rd_slice_of_string(VALUE string) {
    return rd_slice_of(RSTRING_PTR(string), (size_t)RSTRING_LEN(string));
}

/* The value under this Symbol, or nil. */
static inline VALUE rd_option(VALUE options, const char *name) {
    return rb_hash_lookup(options, ID2SYM(rb_intern(name)));
}

#endif
