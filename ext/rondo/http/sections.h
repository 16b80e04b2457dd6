/* SPDX-License-Identifier: MIT
 *
 * Parsed header sections (RFC 9110, section 6.3) that were seen before. A client sends the same
 * section with nearly every request, and comparing bytes costs far less than parsing them. A
 * section is kept when it comes a second time and frames no body. The value of a secret, such as a
 * cookie, is not kept: a section has at most one, and a gap in its place. The table is bounded and
 * direct-mapped. Under the loop lock.
 */
#ifndef RD_HTTP_SECTIONS_H
#define RD_HTTP_SECTIONS_H

#include <string.h>

#include "http/head.h"

#define RD_SECTIONS_SIZE      256
#define RD_SECTIONS_SEEN_SIZE 1024

/* Positions count from the section's first byte, without the secret. */
typedef struct rd_section {
    uint64_t id;        /* unique to these bytes as long as the table lives; 0: empty */
    rd_header *headers; /* owned; the bytes follow them */
    const char *bytes;  /* field lines and the empty line, line ends included */
    uint32_t len;
    uint32_t gap;        /* where the value of the secret belongs; 0: there is none */
    uint16_t before_gap; /* headers up to the secret */
    uint64_t seen[2];
    rd_span authority, host;
    uint16_t port, header_count;
    bool keep_alive, repeated;
} rd_section;

typedef struct rd_sections {
    rd_section entries[RD_SECTIONS_SIZE];
    uint32_t seen[RD_SECTIONS_SEEN_SIZE]; /* hashes of sections that came once */
    uint64_t last_id;
    uint8_t last; /* index of the last one kept or found */
} rd_sections;

void rd_sections_init(rd_sections *sections);
void rd_sections_clear(rd_sections *sections);

/* Whether these bytes begin with what stands before the section's gap. Only then is the value in it
 * worth a look. */
static inline bool rd_section_leads(const rd_section *section, const char *fields, size_t len) {
    return len > section->gap && memcmp(fields, section->bytes, section->gap) == 0;
}

/* Whether the fields of the message `buf`, which begin at `head->fields`, are exactly this section,
 * with a valid value of `secret` bytes in its gap, or 0 if it has none. A section with a gap leads
 * them. Then the head is complete, as if the fields had been parsed. */
bool rd_section_apply(const rd_section *section, rd_head *head, const char *buf, size_t len,
                      uint32_t secret);

/* For a head that was parsed: finds or keeps its section, if it may be kept. Sets head->section.
 * Returns the index to try first for the connection's next head. */
uint8_t rd_sections_learn(rd_sections *sections, rd_head *head, const char *buf);

#endif
