/* SPDX-License-Identifier: MIT
 *
 * What each version of HTTP is called, and what it allows.
 */
#include "check.h"
#include "http/version.h"

static void check_row(unsigned version, const char *text, bool allows) {
    const rd_http_version *row = &rd_http_versions[version];
    CHECK_BYTES(row->text.ptr, row->text.len, text);
    CHECK_INT(row->keeps_alive, allows);
    CHECK_INT(row->has_chunked, allows);
    CHECK_INT(row->has_interim, allows);
}

int main(void) {
    check_row(RD_HTTP_1_0, "HTTP/1.0", false);
    check_row(RD_HTTP_1_1, "HTTP/1.1", true);
    return check_summary();
}
