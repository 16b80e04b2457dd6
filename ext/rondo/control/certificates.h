/* SPDX-License-Identifier: MIT
 *
 * The certificates that the server shows, for the reports: whose they are, when they expire. The
 * process says which there are; this knows nothing of TLS. One owner, no lock.
 */
#ifndef RD_CONTROL_CERTIFICATES_H
#define RD_CONTROL_CERTIFICATES_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

typedef struct rd_certificate_row {
    char *url;   /* of the listener */
    char *file;  /* where it was read */
    char *names; /* of hosts, a JSON array */
    int64_t expires_s;
} rd_certificate_row;

/* Zeroed: there are none. */
typedef struct rd_certificate_list {
    rd_certificate_row *rows;
    size_t count;
} rd_certificate_list;

/* Copies the texts. */
void rd_certificate_list_add(rd_certificate_list *list, const rd_certificate_row *row);
void rd_certificate_list_clear(rd_certificate_list *list);

/* Appends a member of the JSON object of /stats, with a comma before it; nothing if there are no
 * certificates. */
void rd_certificate_list_stats(const rd_certificate_list *list, int64_t now_s, rd_buffer *text);

/* Appends the samples of the metric of that name. */
void rd_certificate_list_metrics(const rd_certificate_list *list, const char *name,
                                 rd_buffer *text);

#endif
