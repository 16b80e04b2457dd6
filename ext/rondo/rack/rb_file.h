/* SPDX-License-Identifier: MIT
 *
 * Answers of the application that are files: named by X-Sendfile, or by the body's to_path. On the
 * thread of the call.
 */
#ifndef RD_RACK_FILE_H
#define RD_RACK_FILE_H

#include "rack/rb_fields.h"

/* Answers with the file that collector->file names. False: the file is refused, and the call has
 * another response, made by the reporter. */
bool rd_file_respond_named(rd_collector *collector);

typedef enum rd_path_answer {
    RD_PATH_NONE,    /* nothing is done: use the body's `each` */
    RD_PATH_SENT,    /* all is done */
    RD_PATH_REFUSED, /* the call has another response, made by the reporter */
} rd_path_answer;

/* Answers with the file that the body's to_path names, if it names one that can be opened. */
rd_path_answer rd_file_respond_path(rd_collector *collector, VALUE body);

#endif
