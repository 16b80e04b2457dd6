/* SPDX-License-Identifier: MIT
 *
 * Rondo::Settings::CORE: the rows of settings.def for Ruby. lib/rondo/config/settings.rb makes the
 * names, documents and checks of the settings from them.
 */
#include "ruby/rb_objects.h"

#include "base/settings.h"

#include <ruby.h>

static VALUE settings_table(void) {
    VALUE table = rb_hash_new();
    for (size_t i = 0; i < rd_setting_count; i++) {
        const rd_setting_info *row = &rd_setting_table[i];
        VALUE entry = rb_hash_new();
        rb_hash_aset(entry, ID2SYM(rb_intern("default")), LL2NUM(row->fallback));
        rb_hash_aset(entry, ID2SYM(rb_intern("min")), LL2NUM(row->min));
        rb_hash_aset(entry, ID2SYM(rb_intern("max")), LL2NUM(row->max));
        rb_hash_aset(entry, ID2SYM(rb_intern("unit")), rb_obj_freeze(rb_str_new_cstr(row->unit)));
        rb_hash_aset(entry, ID2SYM(rb_intern("doc")), rb_obj_freeze(rb_str_new_cstr(row->doc)));
        rb_hash_aset(table, ID2SYM(rb_intern(row->name)), rb_obj_freeze(entry));
    }
    return rb_obj_freeze(table);
}

void rd_init_settings(VALUE rondo) {
    VALUE settings = rb_define_module_under(rondo, "Settings");
    rb_define_const(settings, "CORE", settings_table());
}
