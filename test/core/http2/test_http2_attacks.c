/* SPDX-License-Identifier: MIT
 *
 * Clients of HTTP/2 that mean harm, or only have bad luck: what they make the server hold, and what
 * of their connection has to live on.
 */
#include "http2_serving.h"

#include "http2/http2_session.h"

enum { FRAME = 16384 };

static char body[1 << 20];
static size_t body_size;

static void answer_body(rd_request *request) {
    answer_with(request, body, body_size);
}

/* Sizes around those of frames and of what is queued ahead. */
static void test_sizes_of_answers(void) {
    for (size_t frames = 1; frames <= 24; frames++) {
        for (size_t more = 0; more < 3; more++) {
            body_size = frames * FRAME + more - 1;
            const int fd = begin_with(answer_body);
            put_setting(&out, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 30);
            put_window(&out, 0, 1 << 30);
            put_get(&out, 1, "/");
            for (int i = 0; i < 40 && !peer_of(1)->ended; i++) tell(fd, &out);
            CHECK_SAYS(peer_of(1)->body_len == body_size, "%zu of %zu bytes", peer_of(1)->body_len,
                       body_size);
            CHECK_INT(peer_of(1)->reset, NO_CODE);
            finish(fd);
        }
    }
}

/* The same with windows that open a little at a time. */
static void test_sizes_of_windows(void) {
    body_size = 3 * 65535 + FRAME;
    const int fd = begin_with(answer_body);
    put_get(&out, 1, "/");
    for (int i = 0; i < 40 && !peer_of(1)->ended; i++) {
        tell(fd, &out);
        put_window(&out, 0, FRAME);
        put_window(&out, 1, FRAME);
    }
    CHECK_INT(peer_of(1)->body_len, body_size);
    finish(fd);
}

static void test_all(void) {
    test_sizes_of_answers();
    test_sizes_of_windows();
}

int main(void) {
    return test_both_pollers(test_all);
}
