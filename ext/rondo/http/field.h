/* SPDX-License-Identifier: MIT
 *
 * The syntax of fields: which bytes a name has, the elements of a list of tokens, and names that
 * would become one env key (RFC 9110, sections 5.1 and 5.6). Any thread.
 */
#ifndef RD_HTTP_FIELD_H
#define RD_HTTP_FIELD_H

#include "http/field_list.h"
#include "http/head.h"

enum { RD_NAME_BYTE = 1, RD_NAME_UNDERSCORE = 2 };

/* RD_NAME_* bits of the bytes of a token (RFC 9110, section 5.6.2), 0 for all others. */
extern const uint8_t rd_field_name_bytes[256];

/* Which error a byte behind a field name is that is no colon. */
int rd_field_name_error(unsigned char byte);

/*
 * Takes the first element off a comma-separated list, without the blanks around it; false when the
 * list has come to its end. A comma is one even in quotes: lists of tokens have none. Elements may
 * be empty.
 */
bool rd_field_next_element(rd_slice *list, rd_slice *element);

/*
 * Takes the fields with an underscore out of a complete head that would fall on the same env key as
 * a field with dashes that is there, or on one the server itself derives from a field.
 */
void rd_field_drop_twins(rd_head *head, const char *buf);

/* A header keeps the length of its name in 16 bits. */
static inline uint32_t rd_field_name_limit(const rd_head_limits *limits) {
    return limits->header_name_bytes < UINT16_MAX ? limits->header_name_bytes : UINT16_MAX;
}

#endif
