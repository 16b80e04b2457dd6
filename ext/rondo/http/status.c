/* SPDX-License-Identifier: MIT
 *
 * The registered status codes (IANA HTTP Status Code Registry); see status.h.
 */
#include "http/status.h"

#include <stdio.h>

/* clang-format off */
#define STATUSES(X) \
    X(100, "Continue") X(101, "Switching Protocols") X(102, "Processing") X(103, "Early Hints") \
    X(200, "OK") X(201, "Created") X(202, "Accepted") X(203, "Non-Authoritative Information") \
    X(204, "No Content") X(205, "Reset Content") X(206, "Partial Content") X(207, "Multi-Status") \
    X(208, "Already Reported") X(226, "IM Used") \
    X(300, "Multiple Choices") X(301, "Moved Permanently") X(302, "Found") X(303, "See Other") \
    X(304, "Not Modified") X(305, "Use Proxy") X(307, "Temporary Redirect") \
    X(308, "Permanent Redirect") \
    X(400, "Bad Request") X(401, "Unauthorized") X(402, "Payment Required") X(403, "Forbidden") \
    X(404, "Not Found") X(405, "Method Not Allowed") X(406, "Not Acceptable") \
    X(407, "Proxy Authentication Required") X(408, "Request Timeout") X(409, "Conflict") \
    X(410, "Gone") X(411, "Length Required") X(412, "Precondition Failed") \
    X(413, "Content Too Large") X(414, "URI Too Long") X(415, "Unsupported Media Type") \
    X(416, "Range Not Satisfiable") X(417, "Expectation Failed") X(421, "Misdirected Request") \
    X(422, "Unprocessable Content") X(423, "Locked") X(424, "Failed Dependency") \
    X(425, "Too Early") X(426, "Upgrade Required") X(428, "Precondition Required") \
    X(429, "Too Many Requests") X(431, "Request Header Fields Too Large") \
    X(451, "Unavailable For Legal Reasons") \
    X(500, "Internal Server Error") X(501, "Not Implemented") X(502, "Bad Gateway") \
    X(503, "Service Unavailable") X(504, "Gateway Timeout") X(505, "HTTP Version Not Supported") \
    X(506, "Variant Also Negotiates") X(507, "Insufficient Storage") X(508, "Loop Detected") \
    X(511, "Network Authentication Required")
/* clang-format on */

#define ROW(code, reason)                                                                          \
    _Static_assert(sizeof("HTTP/1.1 " #code " " reason "\r\n") <= RD_STATUS_LINE_MAX, reason);
STATUSES(ROW)
#undef ROW

rd_slice rd_status_line(int status, char room[RD_STATUS_LINE_MAX]) {
    switch (status) {
#define ROW(code, reason)                                                                          \
    case code:                                                                                     \
        return RD_SLICE("HTTP/1.1 " #code " " reason "\r\n");
        STATUSES(ROW)
#undef ROW
    default:
        return rd_slice_of(room,
                           (size_t)snprintf(room, RD_STATUS_LINE_MAX, "HTTP/1.1 %d \r\n", status));
    }
}

bool rd_status_has_body(int status) {
    return status >= 200 && status != 204 && status != 304;
}
