/* SPDX-License-Identifier: MIT
 *
 * What C reads out of Ruby's Strings and Hashes in many places. Under the GVL.
 */
#ifndef RD_RUBY_VALUE_H
#define RD_RUBY_VALUE_H

#include <ruby.h>

#include "base/slice.h"

/* Valid while the String stays, unchanged: RB_GC_GUARD it behind the last use. */
static inline rd_slice rd_slice_of_string(VALUE string) {
    return rd_slice_of(RSTRING_PTR(string), (size_t)RSTRING_LEN(string));
}

/* The value under this Symbol, or nil. */
static inline VALUE rd_option(VALUE options, const char *name) {
    return rb_hash_lookup(options, ID2SYM(rb_intern(name)));
}

#endif
