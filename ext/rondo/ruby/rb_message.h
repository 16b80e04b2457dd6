/* SPDX-License-Identifier: MIT
 *
 * What the application publishes or sends: names of channels, and messages. With the GVL.
 */
#ifndef RD_RUBY_MESSAGE_H
#define RD_RUBY_MESSAGE_H

#include <ruby.h>
#include <stdbool.h>

/* The String of a String or Symbol. Raises TypeError, and ArgumentError for a name that is too long
 * or empty. */
VALUE rd_channel_name_of(VALUE channel);

/* The same for a pattern of names, which is shorter. */
VALUE rd_channel_pattern_of(VALUE channel, bool is_pattern);

/* The String to send: a String as it is, a Hash or an Array as JSON. Raises TypeError. */
VALUE rd_message_text_of(VALUE data);

/* Whether the String's encoding is one of text; its bytes may be invalid. */
bool rd_message_is_encoded(VALUE string);

/* Whether the String is sent as text. Raises ArgumentError for invalid text. */
bool rd_message_is_text(VALUE string);

/* Whether subscribers get it as text if they do not say how: its bytes are UTF-8, whatever the
 * encoding of the String is called. Raises ArgumentError for text that is not valid. */
bool rd_message_is_published_as_text(VALUE string);

/* Raises ArgumentError. */
NORETURN(void rd_message_too_long(void));

#endif
