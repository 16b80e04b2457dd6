/* SPDX-License-Identifier: MIT
 *
 * The certificates in the reports; see certificates.h.
 */
#include "control/certificates.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

#define DAY_S 86400

void rd_certificate_list_add(rd_certificate_list *list, const rd_certificate_row *row) {
    list->rows = rd_realloc(list->rows, (list->count + 1) * sizeof(list->rows[0]));
    list->rows[list->count++] = (rd_certificate_row){.url = rd_alloc_text(row->url),
                                                     .file = rd_alloc_text(row->file),
                                                     .names = rd_alloc_text(row->names),
                                                     .expires_s = row->expires_s};
}

void rd_certificate_list_clear(rd_certificate_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        rd_free(list->rows[i].url);
        rd_free(list->rows[i].file);
        rd_free(list->rows[i].names);
    }
    rd_free(list->rows);
    *list = (rd_certificate_list){0};
}

/* Whole days, and those that are over are negative. */
static int64_t days_until(int64_t then_s, int64_t now_s) {
    const int64_t left = then_s - now_s;
    return left >= 0 ? left / DAY_S : -((-left + DAY_S - 1) / DAY_S);
}

static void add_row(const rd_certificate_row *row, int64_t now_s, rd_buffer *text) {
    char expires[RD_TEXT_TIME_MAX];
    rd_text_time(row->expires_s, expires);
    rd_text_add(text, "{\"url\":");
    rd_text_add_json(text, row->url);
    rd_text_add(text, ",\"file\":");
    rd_text_add_json(text, row->file);
    rd_buffer_append(text, ",\"names\":", strlen(",\"names\":"));
    rd_buffer_append(text, row->names, strlen(row->names)); /* may be long */
    rd_text_add(text, ",\"expires_at\":\"%s\",\"days_left\":%" PRId64 "}", expires,
                days_until(row->expires_s, now_s));
}

void rd_certificate_list_stats(const rd_certificate_list *list, int64_t now_s, rd_buffer *text) {
    if (list == NULL || list->count == 0) return;
    rd_text_add(text, ",\"certificates\":[");
    for (size_t i = 0; i < list->count; i++) {
        if (i > 0) rd_text_add(text, ",");
        add_row(&list->rows[i], now_s, text);
    }
    rd_text_add(text, "]");
}

void rd_certificate_list_metrics(const rd_certificate_list *list, const char *name,
                                 rd_buffer *text) {
    for (size_t i = 0; list != NULL && i < list->count; i++) {
        const rd_certificate_row *row = &list->rows[i];
        rd_text_add(text, "rondo_%s{listener=", name);
        rd_text_add_json(text, row->url);
        rd_text_add(text, ",file=");
        rd_text_add_json(text, row->file);
        rd_text_add(text, "} %" PRId64 "\n", row->expires_s);
    }
}
