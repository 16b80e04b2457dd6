/* SPDX-License-Identifier: MIT
 *
 * The requests of the client, see client_requests.h. */
#include "client_requests.h"

#include "client_base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct rd_text {
    char bytes[1 << 21];
    size_t len;
} rd_text;

static void text_add(rd_text *text, const char *bytes, size_t len) {
    if (text->len + len > sizeof text->bytes) rd_client_fail("requests too long");
    memcpy(text->bytes + text->len, bytes, len);
    text->len += len;
}

static void text_say(rd_text *text, const char *string) {
    text_add(text, string, strlen(string));
}

/* There is one client in the process, so its options are here. */
static rd_text text, headers;
static size_t ends[RD_MAX_REQUESTS];
static struct {
    const char *method, *body;
    unsigned paths;
} parts = {.method = "GET"};

void rd_requests_add_file(rd_requests *requests, const char *path) {
    FILE *file = fopen(path, "rb");
    char piece[4096];
    size_t got;
    if (requests->count == RD_MAX_REQUESTS) rd_client_fail("too many requests");
    if (!file) rd_client_fail(path);
    while ((got = fread(piece, 1, sizeof piece, file)) > 0) text_add(&text, piece, got);
    fclose(file);
    ends[requests->count++] = text.len;
}

void rd_requests_set_method(const char *method) {
    parts.method = method;
}

void rd_requests_set_body(const char *body) {
    parts.body = body;
}

void rd_requests_add_header(const char *line) {
    text_say(&headers, line);
    text_say(&headers, "\r\n");
}

void rd_requests_set_paths(unsigned count) {
    if (count > RD_MAX_REQUESTS) rd_client_fail("too many paths");
    parts.paths = count;
}

static void request_compose(const char *path, bool close_each) {
    char length[64];
    text_say(&text, parts.method);
    text_say(&text, " ");
    text_say(&text, path);
    text_say(&text, " HTTP/1.1\r\nHost: 127.0.0.1\r\n");
    text_add(&text, headers.bytes, headers.len);
    if (close_each) text_say(&text, "Connection: close\r\n");
    if (parts.body) {
        snprintf(length, sizeof length, "Content-Length: %zu\r\n", strlen(parts.body));
        text_say(&text, length);
    }
    text_say(&text, "\r\n");
    text_say(&text, parts.body ? parts.body : "");
}

static void requests_compose(rd_requests *requests, const char *path, bool close_each) {
    char numbered[4200];
    do {
        snprintf(numbered, sizeof numbered, "%s%u", path, requests->count);
        request_compose(parts.paths ? numbered : path, close_each);
        ends[requests->count++] = text.len;
    } while (requests->count < parts.paths);
}

void rd_requests_lay(rd_requests *requests, const char *path, bool close_each, unsigned depth) {
    if (requests->count == 0) requests_compose(requests, path, close_each);
    /* Twice the depth: a run may still grow while its beginning waits in the socket. */
    unsigned total = requests->count + 2 * depth;
    unsigned rounds = total / requests->count + 1;
    requests->bytes = malloc(text.len * rounds);
    requests->offsets = calloc((size_t)requests->count * rounds + 1, sizeof(size_t));
    if (!requests->bytes || !requests->offsets) rd_client_fail("out of memory");
    for (unsigned i = 0; i < rounds; i++) {
        memcpy(requests->bytes + text.len * i, text.bytes, text.len);
        for (unsigned j = 0; j < requests->count; j++)
            requests->offsets[i * requests->count + j + 1] = text.len * i + ends[j];
    }
}
