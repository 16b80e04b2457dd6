/* SPDX-License-Identifier: MIT
 *
 * Answers of the application that are files: named by X-Sendfile, or by the body's to_path; and the
 * folders that a server is given. On the thread of the call.
 */
#ifndef RD_RUBY_FILE_H
#define RD_RUBY_FILE_H

#include "rack/rb_fields.h"

/* A static folder by its absolute path, or nil. Raises SettingError. `alone`: there is no
 * application. */
void rd_serve_folder(rd_binding *binding, VALUE folder, bool alone);

/* An Array of absolute paths, or nil: below them X-Sendfile may name files. Raises SettingError. */
void rd_allow_file_roots(rd_binding *binding, VALUE folders);

/* Answers with the file that collect->file names, or with the reporter's words in place of it. */
void rd_respond_named_file(rd_collect *collect);

/* Answers with the file that the body's to_path names; false where it names none that can be
 * opened, and nothing is done: then the body's each has to do. */
bool rd_respond_path(rd_collect *collect, VALUE body);

#endif
