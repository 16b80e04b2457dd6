/* SPDX-License-Identifier: MIT
 *
 * Answers as `rondo bench` reads them, one after the other. First byte: how many bytes at a time,
 * and whether plain bodies are skipped. Holds: no crash; any cutting gives the same answers and the
 * same end, whether bodies are skipped and whether a head is known or not.
 */
#include "fuzz.h"
#include "load/load_answer.h"

enum { MAX_ANSWERS = 64 };

typedef struct fuzz_answers {
    rd_load_answer_head heads[MAX_ANSWERS];
    uint64_t body_bytes[MAX_ANSWERS];
    unsigned count;
    bool is_broken;
    bool may_end; /* whether a close is a valid end of the last one */
} fuzz_answers;

typedef struct fuzz_way {
    size_t step;
    bool skips;
    bool forgets; /* no head is known */
} fuzz_way;

static rd_load_answer_progress take(rd_load_answer *answer, rd_known_answer *known, fuzz_way way,
                                    const char *at, size_t len, size_t *used) {
    const size_t plain = rd_load_answer_plain_left(answer);
    if (way.skips && plain > 0) {
        *used = plain < len ? plain : len;
        return rd_load_answer_skip(answer, *used);
    }
    if (way.forgets) *known = (rd_known_answer){.bytes = {0}};
    char *copy = fuzz_copy(at, len);
    const rd_load_answer_progress progress = rd_load_answer_take(answer, known, copy, len, used);
    free(copy);
    FUZZ_CHECK(*used <= len);
    FUZZ_CHECK(progress != RD_MORE || *used == len);
    FUZZ_CHECK(progress != RD_HEAD_CUT || *used == 0);
    return progress;
}

static fuzz_answers read_answers(const char *buf, size_t len, fuzz_way way) {
    fuzz_answers answers = {.count = 0};
    rd_load_answer answer = {.stage = RD_HEAD};
    rd_known_answer known = {.bytes = {0}};
    size_t from = 0, given = 0, used;

    while (from < len && !answers.is_broken && answers.count < MAX_ANSWERS) {
        if (given == from) given = len - given < way.step ? len : given + way.step;
        const rd_load_answer_progress progress =
            take(&answer, &known, way, buf + from, given - from, &used);
        from += used;
        answers.is_broken = progress == RD_NO_ANSWER;
        if (progress == RD_DONE) {
            answers.heads[answers.count] = answer.head;
            answers.body_bytes[answers.count++] = answer.body_bytes;
        }
        if (progress != RD_HEAD_CUT) continue;
        if (given == len) break;
        given = len - given < way.step ? len : given + way.step;
    }
    answers.may_end = rd_load_answer_ends_with_close(&answer);
    return answers;
}

static void check_same(const fuzz_answers *one, const fuzz_answers *other) {
    FUZZ_CHECK(one->count == other->count);
    FUZZ_CHECK(one->is_broken == other->is_broken);
    FUZZ_CHECK(one->is_broken || one->may_end == other->may_end);
    for (unsigned i = 0; i < one->count; i++) {
        const rd_load_answer_head *a = &one->heads[i], *b = &other->heads[i];
        FUZZ_CHECK(a->bytes == b->bytes && a->status == b->status && a->framing == b->framing);
        FUZZ_CHECK(a->length == b->length && a->closes == b->closes);
        FUZZ_CHECK(one->body_bytes[i] == other->body_bytes[i]);
        FUZZ_CHECK(a->framing != RD_BY_LENGTH || one->body_bytes[i] == a->length);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len) {
    if (len < 2 || len > 8192) return 0;
    const char *buf = (const char *)bytes + 1;
    const size_t step = (bytes[0] & 0x0f) + 1u;
    len--;
    const fuzz_answers whole = read_answers(buf, len, (fuzz_way){.step = len, .forgets = true});
    const fuzz_answers known = read_answers(buf, len, (fuzz_way){.step = len});
    const fuzz_answers pieces =
        read_answers(buf, len, (fuzz_way){.step = step, .skips = bytes[0] & 0x80});
    check_same(&whole, &known);
    check_same(&whole, &pieces);
    return 0;
}
