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

/* RD_NAME_* bits for the bytes of a token (RFC 9110, section 5.6.2), 0 for all other bytes. */
extern const uint8_t rd_field_name_bytes[256];

/* The error for a byte that follows a field name and is not a colon. */
int rd_field_name_error(unsigned char byte);

/*
 * Takes the first element off a comma-separated list, without the blanks around it. Returns false
 * at the end of the list. A comma in quotes also separates: lists of tokens have no quotes.
 * Elements may be empty.
 */
bool rd_field_next_element(rd_slice *list, rd_slice *element);

/*
 * Removes fields from a complete head whose name has an underscore, if they would get the env key
 * of a present field with dashes, or a key that the server itself derives from a field.
 */
void rd_field_drop_twins(rd_head *head, const char *buf);

/* A header stores the length of its name in 16 bits. */
static inline uint32_t rd_field_name_limit(const rd_head_limits *limits) {
    return limits->header_name_bytes < UINT16_MAX ? limits->header_name_bytes : UINT16_MAX;
}

#endif
