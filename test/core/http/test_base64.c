/* SPDX-License-Identifier: MIT
 *
 * Base64: the test vectors of RFC 4648, section 10, every byte there and back, other letters, and
 * no room.
 */
#include "http/base64.h"

#include <string.h>

#include "check.h"

static const struct {
    const char *bytes, *text;
} vectors[] = {
    {"", ""},
    {"f", "Zg=="},
    {"fo", "Zm8="},
    {"foo", "Zm9v"},
    {"foob", "Zm9vYg=="},
    {"fooba", "Zm9vYmE="},
    {"foobar", "Zm9vYmFy"},
};

static rd_slice slice(const char *text) {
    return rd_slice_of(text, strlen(text));
}

static void test_vectors(void) {
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        char text[16] = "", bytes[16] = "";
        const rd_slice plain = slice(vectors[i].bytes), coded = slice(vectors[i].text);
        CHECK_INT(RD_BASE64_LEN(plain.len), coded.len);
        rd_base64_encode(plain.ptr, plain.len, text);
        CHECK(strcmp(text, vectors[i].text) == 0);
        CHECK_INT(rd_base64_decode(coded, bytes, sizeof(bytes)), plain.len);
        CHECK(memcmp(bytes, plain.ptr, plain.len) == 0);
    }
}

static void test_every_byte(void) {
    unsigned char bytes[256], again[256];
    char text[RD_BASE64_LEN(256)];
    for (int i = 0; i < 256; i++) bytes[i] = (unsigned char)i;
    rd_base64_encode(bytes, 256, text);
    const rd_slice coded = rd_slice_of(text, sizeof(text));
    CHECK_INT(rd_base64_decode(coded, (char *)again, sizeof(again)), 256);
    CHECK(memcmp(bytes, again, 256) == 0);
    CHECK_INT(rd_base64_decode(coded, (char *)again, 255), -1);
    int letters = 0;
    for (int i = -128; i < 128; i++) letters += rd_base64_value((char)i) >= 0;
    CHECK_INT(letters, 64);
}

static void test_what_is_no_base64(void) {
    static const char *const wrong[] = {"Zm9v Zg==", "Zg=a", "Zm-v", "Zm_v", "\xc3\xa9", "*"};
    char bytes[16];
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        CHECK_INT(rd_base64_decode(slice(wrong[i]), bytes, sizeof(bytes)), -1);
    }
    CHECK_INT(rd_base64_decode(rd_slice_of("Zm9v\0", 5), bytes, sizeof(bytes)), -1);
    CHECK_INT(rd_base64_decode(slice("===="), bytes, sizeof(bytes)), 0);
    CHECK_INT(rd_base64_decode(slice("Zg"), bytes, sizeof(bytes)), 1);
}

int main(void) {
    test_vectors();
    test_every_byte();
    test_what_is_no_base64();
    return check_summary();
}
