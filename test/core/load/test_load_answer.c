/* SPDX-License-Identifier: MIT
 *
 * load/load_answer: each form of an answer, whole and in pieces of every size; what is no answer.
 * load/latency: percentiles.
 */
#include "base/alloc.h"
#include "check.h"
#include "load/latency.h"
#include "load/load_answer.h"

typedef struct rd_case {
    const char *text;
    int status;
    uint64_t body_bytes;
    bool until_close;
} rd_case;

static const rd_case CASES[] = {
    {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHello", 200, 5, false},
    {"HTTP/1.1 204 No Content\r\n\r\n", 204, 0, false},
    {"HTTP/1.1 200 OK\r\ncONTENT-lENGTH: 0\r\n\r\n", 200, 0, false},
    {"HTTP/1.1 500 No\r\ntransfer-encoding: "
     "Chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nt: "
     "1\r\n\r\n",
     500, 13, false},
    {"HTTP/1.1 200 OK\r\nContent-Length: 5 \r\ncontent-length:\t5\r\n\r\nHello", 200, 5, false},
    {"HTTP/1.0 200 OK\r\n\r\nuntil the close", 200, 15, true},
};

/* Hands the text over in pieces of that size; a head that is not whole is handed over again. */
static rd_load_answer_progress read_in_pieces(rd_load_answer *answer, const char *text,
                                              size_t size) {
    rd_known_answer known = {.bytes = {0}};
    rd_load_answer_progress progress = RD_MORE;
    size_t from = 0, len = strlen(text), held = 0;
    while (from < len && progress != RD_DONE && progress != RD_NO_ANSWER) {
        size_t piece = held + size < len - from ? held + size : len - from, used;
        progress = rd_load_answer_take(answer, &known, text + from, piece, &used);
        held = progress == RD_HEAD_CUT ? piece - used : 0;
        from += used;
    }
    return progress;
}

static void test_forms(void) {
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        for (size_t size = 1; size <= strlen(CASES[i].text); size++) {
            rd_load_answer answer = {.stage = RD_HEAD};
            rd_load_answer_progress progress = read_in_pieces(&answer, CASES[i].text, size);
            CHECK_INT(progress, CASES[i].until_close ? RD_MORE : RD_DONE);
            CHECK_INT(answer.head.status, CASES[i].status);
            CHECK_INT(answer.body_bytes, CASES[i].body_bytes);
            CHECK_INT(rd_load_answer_ends_with_close(&answer), CASES[i].until_close);
        }
    }
}

#define OF_LENGTH(field)  "HTTP/1.1 200 OK\r\n" field "\r\n\r\n5Hello"
#define OF_CHUNKS(chunks) "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" chunks

/* An answer whose end cannot be known is none (RFC 9112, 6.3): what follows would be read at a
 * wrong place. */
static void test_no_answers(void) {
    const char *const texts[] = {
        "SSH-2.0-OpenSSH_9.2p1\r\n\r\n",
        "HTTP/1.1 2x0 OK\r\n\r\n",
        "HTTP/2 200\r\n\r\n",
        "HTTP/1.1\r\n\r\n",
        "HTTP/1.1 099 No\r\n\r\n",
        "HTTP/1.1-200 OK\r\n\r\n",
        OF_LENGTH("Content-Length:"),
        OF_LENGTH("Content-Length: \t "),
        OF_LENGTH("Content-Length: -1"),
        OF_LENGTH("Content-Length: 5x"),
        OF_LENGTH("Content-Length: 99999999999999999999"),
        OF_LENGTH("Content-Length: 5\r\nContent-Length: 6"),
        OF_CHUNKS("\r\nhello"),
        OF_CHUNKS("hello\r\n"),
        OF_CHUNKS(";x\r\n"),
        OF_CHUNKS("10000000000000005\r\nhello\r\n0\r\n\r\n"),
        OF_CHUNKS("3\r\nhello\r\n0\r\n\r\n"),
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        for (size_t size = 1; size <= strlen(texts[i]); size++) {
            rd_load_answer answer = {.stage = RD_HEAD};
            rd_load_answer_progress progress = read_in_pieces(&answer, texts[i], size);
            CHECK_SAYS(progress == RD_NO_ANSWER, "%s is an answer", texts[i]);
        }
    }
}

static rd_load_answer_progress take_long(const char *begin, size_t len, const char *end,
                                         size_t size) {
    const size_t begin_len = strlen(begin), end_len = strlen(end);
    char *text = rd_alloc(len + end_len + 1);
    memset(text, 'x', len + end_len);
    memcpy(text, begin, begin_len);
    memcpy(text + len, end, end_len + 1);
    rd_load_answer answer = {.stage = RD_HEAD};
    rd_load_answer_progress progress = read_in_pieces(&answer, text, size);
    rd_free(text);
    return progress;
}

static void test_limits(void) {
    const size_t head = 65536 - 4, sizes[] = {65536 - 5, 65536, 100000};
    const char *const end = "\r\n\r\n", *const status = "HTTP/1.1 204 No\r\nx: ";
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        CHECK_INT(take_long(status, head, end, sizes[i]), RD_DONE);
        CHECK_INT(take_long(status, head + 1, end, sizes[i]), RD_NO_ANSWER);
        CHECK_INT(take_long(OF_CHUNKS("0;"), 70000, end, sizes[i]), RD_NO_ANSWER);
        CHECK_INT(take_long(OF_CHUNKS("0\r\nt: "), 70000, end, sizes[i]), RD_NO_ANSWER);
    }
}

static void test_percentiles(void) {
    static rd_latency waits;
    CHECK_INT(rd_latency_percentile_us(&waits, 0.5), 0);
    for (uint64_t i = 1; i <= 1000; i++) rd_latency_add(&waits, i * 1000000);
    CHECK_INT(waits.longest_ns, 1000000000);
    double middle = rd_latency_percentile_us(&waits, 0.5);
    CHECK_SAYS(middle > 490000 && middle < 510000, "is %f", middle);
    CHECK_INT(rd_latency_percentile_us(&waits, 1), 1000000);

    static rd_latency alike; /* below the middle of their bucket */
    for (unsigned i = 0; i < 9; i++) rd_latency_add(&alike, 1 << 27);
    CHECK(rd_latency_percentile_us(&alike, 0.5) <= (double)alike.longest_ns / 1000);
}

int main(void) {
    test_forms();
    test_no_answers();
    test_limits();
    test_percentiles();
    return check_summary();
}
