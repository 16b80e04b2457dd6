/* SPDX-License-Identifier: MIT
 *
 * The thread and its two answers; see redirect.h. Everything but start and stop happens under the
 * lock of its own loop, except for reading a token.
 */
#include "control/redirect.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/text.h"
#include "control/reply.h"
#include "files/file_open.h"
#include "server/server.h"
#include "system/thread_start.h"

#define FOLDER     ".well-known/acme-challenge/"
#define TOKEN_MAX  128 /* authorities use 43 */
#define ANSWER_MAX 512 /* token, dot, and the hash of a key: 87 */

struct rd_redirect {
    rd_server *server;
    rd_file_root webroot;
    uint16_t https_port;
    bool running;
    pthread_t thread;
};

/* ---- tokens ---- */

/* base64url: a name without dots and slashes, so it stays in its folder. */
static bool is_token(rd_slice name) {
    if (name.len == 0 || name.len > TOKEN_MAX) return false;
    for (size_t i = 0; i < name.len; i++) {
        const char c = name.ptr[i];
        const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!is_letter && !(c >= '0' && c <= '9') && c != '-' && c != '_') return false;
    }
    return true;
}

/* Returns the length, or -1: there is no such token. */
static ssize_t read_token(const rd_redirect *redirect, const char *name, char answer[ANSWER_MAX]) {
    struct stat info;
    const int fd = rd_file_open(&redirect->webroot, name, &info);
    if (fd < 0) return -1;
    const ssize_t len = info.st_size > ANSWER_MAX ? -1 : read(fd, answer, ANSWER_MAX);
    close(fd);
    return len;
}

/* Reading may wait for a disk: without the lock, and the client may be gone afterwards. */
static void show_token(rd_redirect *redirect, rd_request *request, rd_slice token) {
    char name[sizeof(FOLDER) + TOKEN_MAX], answer[ANSWER_MAX];
    snprintf(name, sizeof(name), FOLDER "%.*s", (int)token.len, token.ptr);
    rd_server_unlock(redirect->server);
    const ssize_t len = read_token(redirect, name, answer);
    rd_server_lock(redirect->server);
    rd_buffer text = {0};
    if (len > 0) rd_buffer_append(&text, answer, (size_t)len);
    if (len < 0) rd_text_add(&text, "no such token\n");
    rd_reply(request, len < 0 ? 404 : 200, RD_REPLY_TEXT, &text);
    rd_buffer_clear(&text);
}

/* ---- redirects ---- */

/* The parser has refused what is no host; this leaves only bytes that mean nothing elsewhere. */
static bool is_plain(rd_slice host) {
    if (host.len == 0 || host.len > 255) return false;
    for (size_t i = 0; i < host.len; i++) {
        const char c = host.ptr[i];
        const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!is_letter && !(c >= '0' && c <= '9') && strchr("-._:[]", c) == NULL) return false;
    }
    return true;
}

static void add(rd_buffer *text, rd_slice part) {
    rd_buffer_append(text, part.ptr, part.len);
}

static void add_place(const rd_redirect *redirect, const rd_request *request, rd_buffer *place) {
    const rd_head *head = &request->head;
    rd_text_add(place, "https://");
    add(place, rd_request_slice(request, head->host));
    if (head->port > 0 && redirect->https_port != 443) {
        rd_text_add(place, ":%u", redirect->https_port);
    }
    if (head->path.len == 0) rd_text_add(place, "/");
    add(place, rd_request_slice(request, head->path));
    if (head->query.len == 0) return;
    rd_text_add(place, "?");
    add(place, rd_request_slice(request, head->query));
}

static void send_elsewhere(const rd_redirect *redirect, rd_request *request) {
    rd_buffer place = {0};
    add_place(redirect, request, &place);
    const rd_field fields[] = {
        {RD_SLICE("location"), rd_slice_of(rd_buffer_ptr(&place), rd_buffer_len(&place))}};
    const rd_response_head head = {.status = 308, .fields = fields, .count = 1, .close = true};
    if (request->conn != NULL && request->responder->start(request, &head) == 0) {
        request->responder->finish(request);
    }
    rd_buffer_clear(&place);
}

static void refuse(rd_request *request) {
    rd_buffer text = {0};
    rd_text_add(&text, "use https, with the name of this host\n");
    rd_reply(request, 400, RD_REPLY_TEXT, &text);
    rd_buffer_clear(&text);
}

static void handle(rd_redirect *redirect, rd_request *request) {
    static const rd_slice folder = RD_SLICE_INIT("/" FOLDER);
    const rd_head *head = &request->head;
    const rd_slice path = rd_request_slice(request, head->path);
    const bool reads = head->method_id == RD_METHOD_GET || head->method_id == RD_METHOD_HEAD;
    if (reads && path.len > folder.len && memcmp(path.ptr, folder.ptr, folder.len) == 0) {
        const rd_slice token = rd_slice_of(path.ptr + folder.len, path.len - folder.len);
        if (is_token(token)) {
            show_token(redirect, request, token);
            return;
        }
    }
    const bool has_place = head->form == RD_TARGET_ORIGIN || head->form == RD_TARGET_ABSOLUTE;
    if (has_place && is_plain(rd_request_slice(request, head->host))) {
        send_elsewhere(redirect, request);
    } else {
        refuse(request);
    }
}

/* ---- the thread ---- */

static void wait_in_poll(rd_server *server, int64_t timeout_us) {
    rd_loop_wait(&server->loop, &server->lead.found, timeout_us);
}

static void *run(void *argument) {
    rd_redirect *redirect = argument;
    rd_server *server = redirect->server;
    rd_loop_lock(&server->loop);
    while (!rd_server_is_done(server)) {
        rd_server_turn(server, wait_in_poll, true);
        rd_request *request = NULL;
        while ((request = rd_server_next_request(server, request)) != NULL) {
            if (request->conn != NULL) handle(redirect, request);
        }
    }
    rd_loop_unlock(&server->loop);
    return NULL;
}

int rd_redirect_start(rd_redirect *redirect) {
    const int code = rd_thread_start(&redirect->thread, run, redirect);
    redirect->running = code == 0;
    return -code;
}

/* ---- beginning and end ---- */

/* Anybody may come here, and nobody has to stay: one request a connection, soon. Bodies stay in
 * memory, at most 8 MiB of them together: one for each connection, because streams of HTTP/2 would
 * have one each. */
static void take_settings(rd_settings *settings) {
    rd_settings_init(settings);
    settings->max_head_bytes = 16384;
    settings->max_target_bytes = 8192;
    settings->max_body_bytes = 16384;
    settings->body_memory_bytes = 16384;
    settings->max_connections = 512;
    settings->http2 = 0;
    settings->head_timeout_ms = 5000;
    settings->body_timeout_ms = 5000;
    settings->write_timeout_ms = 5000;
    settings->drain_timeout_ms = 1000;
    settings->idle_grace_ms = 500; /* who has just been accepted may not have asked yet */
    settings->linger_timeout_ms = 500;
    settings->keep_alive = 0;
    settings->brief_wait_us = 0;
}

rd_redirect *rd_redirect_new(const char *webroot, uint16_t https_port) {
    rd_settings settings;
    take_settings(&settings);
    rd_redirect *redirect = rd_alloc_zero(sizeof(*redirect));
    redirect->https_port = https_port;
    if (rd_file_root_open(&redirect->webroot, webroot) == 0) {
        redirect->server = rd_server_new(&settings);
        if (redirect->server != NULL) return redirect;
        rd_file_root_close(&redirect->webroot);
    }
    rd_free(redirect);
    return NULL;
}

int rd_redirect_add_listener(rd_redirect *redirect, rd_listener *listener) {
    rd_loop *loop = &redirect->server->loop;
    rd_loop_lock(loop);
    const int added = rd_server_add_listener(redirect->server, listener);
    rd_loop_unlock(loop);
    return added;
}

void rd_redirect_free(rd_redirect *redirect) {
    if (redirect->running) {
        rd_server_stop(redirect->server, RD_STOP_DRAIN);
        pthread_join(redirect->thread, NULL);
    }
    rd_server_free(redirect->server);
    rd_file_root_close(&redirect->webroot);
    rd_free(redirect);
}

/* ---- forks ---- */

void rd_redirect_hold(rd_redirect *redirect) {
    rd_server_hold(redirect->server);
}

void rd_redirect_release(rd_redirect *redirect) {
    rd_server_release(redirect->server);
}

void rd_redirect_abandon(rd_redirect *redirect) {
    redirect->running = false;
    rd_file_root_close(&redirect->webroot);
    rd_server_abandon(redirect->server);
}
