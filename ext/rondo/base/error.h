/* SPDX-License-Identifier: MIT
 *
 * The numbers of error.def. A function of the core returns a number >= 0 when it succeeds and one
 * of these when it fails. The class alone decides what to do about a failure. Used by every layer;
 * any thread.
 */
#ifndef RD_BASE_ERROR_H
#define RD_BASE_ERROR_H

enum rd_error_index {
#define RD_ERROR(name, class, status, text) RD_ERROR_INDEX_##name,
#include "base/error.def"
#undef RD_ERROR
    RD_ERROR_COUNT
};

enum rd_error {
#define RD_ERROR(name, class, status, text) RD_ERR_##name = -1 - (int)RD_ERROR_INDEX_##name,
#include "base/error.def"
#undef RD_ERROR
};

typedef enum rd_error_class_of {
    RD_ERROR_PEER,  /* answer rd_error_status(), stop reading, close with linger */
    RD_ERROR_FRAME, /* send a Close frame with rd_error_status(), stop reading, close */
    RD_ERROR_CONN   /* close at once */
} rd_error_class_of;

/*
 * The HTTP status to answer. For FRAME the close code of the WebSocket, 0 when there is no answer.
 * An unknown code has status 0, class CONN and the text "unknown error".
 */
int rd_error_status(int code);

rd_error_class_of rd_error_class(int code);

/* One line without a full stop. Static, never NULL, and never quotes what the peer sent. */
const char *rd_error_text(int code);

#endif
