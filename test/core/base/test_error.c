/* SPDX-License-Identifier: MIT
 *
 * base/error: the table answers for every code and for none.
 */
#include "check.h"
#include "error_name.h"

#include "base/error.h"

static void test_known_codes(void) {
    CHECK_INT(rd_error_status(RD_ERR_BARE_LF), 400);
    CHECK_INT(rd_error_class(RD_ERR_BARE_LF), RD_ERROR_PEER);
    CHECK_STR(rd_error_text(RD_ERR_BARE_LF), "line ends with a bare LF");
    CHECK_INT(rd_error_status(RD_ERR_BODY_TOO_LARGE), 413);
    CHECK_INT(rd_error_class(RD_ERR_CLOSED), RD_ERROR_CONN);
    CHECK_INT(rd_error_status(RD_ERR_WS_NOT_UTF8), 1007);
    CHECK_INT(rd_error_class(RD_ERR_WS_NOT_UTF8), RD_ERROR_FRAME);
}

static void test_every_row(void) {
    for (int code = -1; code >= -(int)RD_ERROR_COUNT; code--) {
        int status = rd_error_status(code);
        bool answered = rd_error_class(code) == RD_ERROR_PEER;
        bool framed = rd_error_class(code) == RD_ERROR_FRAME;

        CHECK_SAYS(answered == (status >= 400 && status <= 599), "%s", error_name(code));
        CHECK_SAYS(framed == (status >= 1000), "%s", error_name(code));
        CHECK_SAYS(strlen(rd_error_text(code)) > 0, "%s", error_name(code));
    }
}

static void test_unknown_codes(void) {
    static const int unknown[] = {0, 1, -1 - (int)RD_ERROR_COUNT, INT32_MIN, INT32_MAX};

    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        CHECK_INT(rd_error_status(unknown[i]), 0);
        CHECK_INT(rd_error_class(unknown[i]), RD_ERROR_CONN);
        CHECK_STR(rd_error_text(unknown[i]), "unknown error");
    }
}

int main(void) {
    test_known_codes();
    test_every_row();
    test_unknown_codes();
    return check_summary();
}
