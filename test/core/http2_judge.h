/* SPDX-License-Identifier: MIT
 *
 * Whether what the server said is what a row of http2_rules.h expects.
 */
#ifndef HTTP2_JUDGE_H
#define HTTP2_JUDGE_H

#include "http2_script.h"

/* What a line expects of a stream, as far as it mentions it. */
typedef struct judge_notes {
    bool answer[PEER_STREAMS], reset[PEER_STREAMS];
    bool goaway, closed, pings;
} judge_notes;

static judge_notes judge_told;

/* "=200:body", "~200@5", "-103" */
static bool judge_answer(uint32_t id, const char *text) {
    const peer_stream *stream = peer_of(id);
    char *rest;
    judge_told.answer[id / 2] = true;
    if (stream->status != strtol(text + 1, &rest, 10)) return false;
    if (stream->ended != (text[0] == '=')) return false;
    if (text[0] == '-') return stream->heads == 1;
    if (*rest == ':') return strcmp(stream->body, rest + 1) == 0;
    return *rest != '@' || stream->body_len == strtoul(rest + 1, NULL, 10);
}

static bool judge_stream(const char *text) {
    char *rest;
    const uint32_t id = (uint32_t)strtoul(text, &rest, 10);
    if (*rest != '!') return judge_answer(id, rest);
    judge_told.reset[id / 2] = true;
    return peer_of(id)->reset == script_code(rest + 1);
}

static bool judge_number(const char *text, int64_t number) {
    const int64_t expected = strtoll(text + 1, NULL, 10);
    return *text == '>' ? number > expected : number == expected;
}

static bool judge_of_stream(const char *text, char which) {
    char *rest;
    const unsigned long id = strtoul(text, &rest, 10);
    const int64_t number = which == 'S' ? server_said.setting[id % PEER_SETTINGS]
                           : id == 0    ? server_said.window
                                        : peer_of((uint32_t)id)->window;
    return judge_number(rest, number);
}

static bool judge_has(const char *text, const char *start) {
    return strncmp(text, start, strlen(start)) == 0;
}

static bool judge_token(const char *text) {
    const peer *said = &server_said;
    if (isdigit((unsigned char)text[0])) return judge_stream(text);
    if (judge_has(text, "C!")) {
        judge_told.goaway = judge_told.closed = true;
        return said->goaway == script_code(text + 2) && said->closed;
    }
    if (judge_has(text, "GOAWAY")) {
        judge_told.goaway = true;
        return said->goaways > 0 && said->goaway == NGHTTP2_NO_ERROR &&
               judge_number(text + 6, said->goaway_last);
    }
    if (judge_has(text, "END")) {
        judge_told.closed = true;
        return said->closed;
    }
    if (judge_has(text, "PINGS")) {
        judge_told.pings = true;
        return judge_number(text + 5, said->pings);
    }
    if (judge_has(text, "PONG<DATA")) {
        const char *pong = strchr(said->order, 'P');
        return pong != NULL && strchr(pong, 'D') != NULL;
    }
    if (judge_has(text, "ACKS")) return judge_number(text + 4, said->settings_acks);
    if (judge_has(text, "PONGS")) return judge_number(text + 5, said->pongs);
    CHECK_SAYS(text[0] == 'S' || text[0] == 'W', "%s", text);
    return judge_of_stream(text + 1, text[0]);
}

/* One of several, with | between them. All of them are looked at. */
static bool judge_one_of(char *text) {
    bool holds = false;
    for (char *save, *one = strtok_r(text, "|", &save); one != NULL;
         one = strtok_r(NULL, "|", &save)) {
        holds = judge_token(one) || holds;
    }
    return holds;
}

/* What the line does not mention must not have come. NULL, or what is wrong. */
static const char *judge_rest(void) {
    const peer *said = &server_said;
    if (said->goaways > 0 && !judge_told.goaway) return "a GOAWAY";
    if (said->closed && !judge_told.closed) return "closed";
    if (said->pings > 0 && !judge_told.pings) return "a PING";
    for (int i = 0; i < PEER_STREAMS; i++) {
        if (said->streams[i].heads > 0 && !judge_told.answer[i]) return "an answer too many";
        if (said->streams[i].reset != NO_CODE && !judge_told.reset[i]) return "a reset too many";
    }
    return NULL;
}

/* `line` is what follows "< ". NULL: it holds; or what does not. */
__attribute__((unused)) static const char *judge(const char *line, size_t len, bool is_tls) {
    static char text[512], wrong[128];
    memset(&judge_told, 0, sizeof(judge_told));
    snprintf(text, sizeof(text), "%.*s", (int)len, line);
    for (char *save, *token = strtok_r(text, " ", &save); token != NULL;
         token = strtok_r(NULL, " ", &save)) {
        const bool for_tls = judge_has(token, "tls:"), for_plain = judge_has(token, "plain:");
        if ((for_tls && !is_tls) || (for_plain && is_tls)) continue;
        token += for_tls ? 4 : for_plain ? 6 : 0;
        snprintf(wrong, sizeof(wrong), "not %s", token);
        if (!judge_one_of(token)) return wrong;
    }
    return judge_rest();
}

/* What came, for people. */
__attribute__((unused)) static const char *judge_story(void) {
    static char text[1024];
    const peer *said = &server_said;
    int at =
        snprintf(text, sizeof(text), "goaway %d last %u closed %d pings %u acks %u pongs %u w0 %d",
                 (int)said->goaway, said->goaway_last, said->closed, said->pings,
                 said->settings_acks, said->pongs, (int)said->window);
    for (int i = 0; i < PEER_STREAMS && at < 900; i++) {
        const peer_stream *stream = &said->streams[i];
        if (stream->heads == 0 && stream->reset == NO_CODE && stream->window == 0) continue;
        at += snprintf(text + at, sizeof(text) - (size_t)at,
                       "; %d: %d%s %zu bytes, reset %d, window %d", 2 * i + 1, stream->status,
                       stream->ended ? " ended" : "", stream->body_len, (int)stream->reset,
                       (int)stream->window);
    }
    return text;
}

#endif
