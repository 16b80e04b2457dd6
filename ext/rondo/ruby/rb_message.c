/* SPDX-License-Identifier: MIT
 *
 * Names of channels and messages as the application gives them; see rb_message.h.
 */
#include "ruby/rb_message.h"

#include <ruby/encoding.h>

#include "base/utf8.h"
#include "pubsub/channel.h"
#include "ruby/rb_names.h"
#include "ruby/rb_value.h"

VALUE rd_channel_name_of(VALUE channel) {
    VALUE name = SYMBOL_P(channel) ? rb_sym2str(channel) : channel;
    if (!RB_TYPE_P(name, T_STRING)) {
        rb_raise(rb_eTypeError, "a channel must be a String or Symbol, not %" PRIsVALUE,
                 rb_obj_class(channel));
    }
    if (RSTRING_LEN(name) == 0 || RSTRING_LEN(name) > RD_CHANNEL_NAME_MAX) {
        rb_raise(rb_eArgError, "the name of a channel must have 1 to %d bytes",
                 RD_CHANNEL_NAME_MAX);
    }
    return name;
}

VALUE rd_channel_pattern_of(VALUE channel, bool is_pattern) {
    VALUE name = rd_channel_name_of(channel);
    if (is_pattern && RSTRING_LEN(name) > RD_GLOB_MAX) {
        rb_raise(rb_eArgError, "a pattern must have 1 to %d bytes", RD_GLOB_MAX);
    }
    return name;
}

VALUE rd_message_text_of(VALUE data) {
    if (RB_TYPE_P(data, T_STRING)) return data;
    if (RB_TYPE_P(data, T_HASH) || RB_TYPE_P(data, T_ARRAY)) {
        rb_require("json");
        return rb_funcall(rb_path2class("JSON"), rd_id.generate, 1, data);
    }
    rb_raise(rb_eTypeError, "a String, Hash or Array can be sent, not %" PRIsVALUE,
             rb_obj_class(data));
}

bool rd_message_is_encoded(VALUE string) {
    int encoding = rb_enc_get_index(string);
    return encoding == rb_utf8_encindex() || encoding == rb_usascii_encindex();
}

bool rd_message_is_text(VALUE string) {
    if (!rd_message_is_encoded(string)) return false;
    if (rb_enc_str_coderange(string) == ENC_CODERANGE_BROKEN) {
        rb_raise(rb_eArgError, "the text of the message is not valid UTF-8");
    }
    return true;
}

bool rd_message_is_published_as_text(VALUE string) {
    return rd_message_is_text(string) || rd_utf8_is_text(rd_slice_of_string(string));
}

void rd_message_too_long(void) {
    rb_raise(rb_eArgError, "the message is longer than max_publish_bytes");
}
