/* SPDX-License-Identifier: MIT
 *
 * The rows of error.def as one constant table; see error.h. Any thread.
 */
#include "base/error.h"

typedef struct row {
    const char *text;
    short status;
    unsigned char class;
} row;

static const row rows[RD_ERROR_COUNT + 1] = {
#define RD_ERROR(name, class, status, text) {text, status, RD_ERROR_##class},
#include "base/error.def"
#undef RD_ERROR
    {"unknown error", 0, RD_ERROR_CONN},
};

static const row *row_of(int code) {
    if (code >= 0 || code < -(int)RD_ERROR_COUNT) return &rows[RD_ERROR_COUNT];
    return &rows[-(code + 1)];
}

int rd_error_status(int code) {
    return row_of(code)->status;
}

rd_error_class_of rd_error_class(int code) {
    return (rd_error_class_of)row_of(code)->class;
}

const char *rd_error_text(int code) {
    return row_of(code)->text;
}
