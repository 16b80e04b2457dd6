/* SPDX-License-Identifier: MIT
 *
 * "BARE_LF" for RD_ERR_BARE_LF: what tests print and compare, because it says more than a number
 * and stays when the text for people changes.
 */
#ifndef ERROR_NAME_H
#define ERROR_NAME_H

#include "base/error.h"

__attribute__((unused)) static const char *error_name(int code) {
    static const char *const names[RD_ERROR_COUNT] = {
#define RD_ERROR(name, class, status, text) #name,
#include "base/error.def"
#undef RD_ERROR
    };

    return code < 0 && code >= -(int)RD_ERROR_COUNT ? names[-(code + 1)] : "none";
}

#endif
