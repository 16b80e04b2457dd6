/* SPDX-License-Identifier: MIT
 *
 * Answers that are files; see rb_file.h. Files are opened without the GVL, so other threads do not
 * wait for a slow disk.
 */
#include "rack/rb_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hex.h"
#include "http/date.h"
#include "http/field_list.h"
#include "files/mime.h"
#include "server/files.h"
#include "ruby/rb_gvl.h"
#include "ruby/rb_names.h"
#include "binding/rb_binding.h"
#include "rack/rb_call.h"
#include "rack/rb_fields.h"

#define FIELDS_ADDED (4 + RD_FILE_BODY_FIELDS)

/* ---- opening ---- */

typedef struct rd_opening {
    const rd_file_roots *roots; /* NULL: the file may be anywhere */
    const char *path;
    int fd; /* below 0: see `error` */
    int error;
    struct stat info;
} rd_opening;

/* Checks the file before it opens it, because opening a FIFO would already wake its other end.
 * Checks it again afterwards, because another file may have the name by then. */
static int open_regular(const char *path, struct stat *info) {
    if (stat(path, info) != 0 || !S_ISREG(info->st_mode)) return -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || (fstat(fd, info) == 0 && S_ISREG(info->st_mode))) return fd;
    close(fd);
    return -1;
}

/* Slow clients that load many files must not use up the descriptors of the application. */
static bool may_open(rd_binding *binding) {
    rd_ledger *ledger = &binding->server->conns.ledger;
    rd_lock(binding);
    const bool may = !rd_ledger_lacks_descriptors(ledger);
    if (!may) rd_ledger_refuse(ledger, RD_LEDGER_DESCRIPTORS);
    rd_unlock(binding);
    return may;
}

static void open_nogvl(void *argument) {
    rd_opening *opening = argument;
    opening->fd = opening->roots == NULL
                      ? open_regular(opening->path, &opening->info)
                      : rd_file_roots_open(opening->roots, opening->path, &opening->info);
    opening->error = errno;
}

/* ---- the fields ---- */

static bool says_none(const rd_field *field) {
    return field != NULL && rd_field_is_word(field->value, RD_SLICE("none"));
}

/* Whether the answer is the whole file, so that ranges of it may be sent instead. */
static bool is_divisible(const rd_collector *collector) {
    return collector->head.status == 200 && rd_request_reads(collector->call->request) &&
           rd_collector_find(collector, RD_SLICE("content-range")) == NULL &&
           !says_none(rd_collector_find(collector, RD_SLICE("accept-ranges")));
}

static void add_missing(rd_collector *collector, rd_slice name, rd_slice value) {
    if (rd_collector_find(collector, name) == NULL) rd_collector_add(collector, name, value);
}

/* The validators in the fields; empty if there are none. */
static rd_validators validators_of(const rd_collector *collector) {
    const rd_field *etag = rd_collector_find(collector, RD_SLICE("etag"));
    const rd_field *modified = rd_collector_find(collector, RD_SLICE("last-modified"));
    return (rd_validators){etag != NULL ? etag->value : rd_slice_of("", 0),
                           modified != NULL ? rd_date_parse(modified->value) : -1};
}

/* ---- sending ---- */

static void finish_call(rd_collector *collector) {
    collector->call->state.done = true;
    RD_COLLECTOR_GUARD(collector);
}

/* Under the lock. */
static rd_file *new_file(rd_binding *binding, const rd_opening *opening) {
    rd_file *file = rd_file_new(&binding->server->loop, opening->fd, opening->info.st_dev);
    rd_file_count(file, &binding->server->conns.ledger);
    return file;
}

/* Sends the file, or what the request wants of it. Takes over the descriptor. */
static void send_wanted(rd_collector *collector, const rd_opening *opening,
                        const rd_validators *validators) {
    rd_binding *binding = collector->call->binding;
    rd_request *request = collector->call->request;
    rd_lock(binding);
    rd_file *file = new_file(binding, opening);
    const rd_file_body body = {file, NULL, (uint64_t)opening->info.st_size};
    collector->call->state.started = true;
    if (is_divisible(collector)) {
        rd_file_body_send_wanted(request, &collector->head, collector->fields, &body, validators,
                                 &binding->files.boundaries);
    } else {
        rd_file_body_send(request, &collector->head, &body);
    }
    rd_file_unref(file);
    rd_unlock(binding);
    finish_call(collector);
}

/* Sends as much of the file as the application has promised, as with any other body. Takes over the
 * descriptor. */
static void send_promised(rd_collector *collector, const rd_opening *opening) {
    rd_binding *binding = collector->call->binding;
    rd_request *request = collector->call->request;
    const rd_responder *to = request->responder;
    if (collector->head.length < 0) collector->head.length = opening->info.st_size;
    rd_lock(binding);
    rd_file *file = new_file(binding, opening);
    collector->call->state.started = true;
    if (to->start(request, &collector->head) >= 0) {
        to->send_file(request, file, 0, (size_t)opening->info.st_size);
        to->finish(request);
    }
    rd_file_unref(file);
    rd_unlock(binding);
    finish_call(collector);
}

/* ---- named by a header ---- */

/* The value of the field as a path with a NUL at its end, which other Strings may lack. Nil if the
 * value has a NUL inside. */
static VALUE path_of(const rd_collector *collector) {
    VALUE path = rb_str_new(RSTRING_PTR(collector->file), RSTRING_LEN(collector->file));
    char *to = RSTRING_PTR(path);
    const char *from = to, *end = to + RSTRING_LEN(path);
    while (collector->file_is_escaped && from < end) {
        const int byte = *from == '%' ? rd_hex_escape(from, (size_t)(end - from)) : -1;
        *to++ = byte >= 0 ? (char)byte : *from;
        from += byte >= 0 ? 3 : 1;
    }
    if (collector->file_is_escaped) rb_str_set_len(path, to - RSTRING_PTR(path));
    const bool has_nul = memchr(RSTRING_PTR(path), 0, (size_t)RSTRING_LEN(path)) != NULL;
    return has_nul ? Qnil : path;
}

/* A relative path of X-Sendfile is looked up in the working directory. That of X-Accel-Redirect is
 * an address, which has no such folder. */
static VALUE absolute(const rd_collector *collector, VALUE path) {
    if (NIL_P(path) || collector->file_is_escaped || RSTRING_PTR(path)[0] == '/') return path;
    const char *name = RSTRING_PTR(path), *end = name + RSTRING_LEN(path);
    while (end - name >= 2 && name[0] == '.' && name[1] == '/') name += 2;
    VALUE found = rb_str_cat(rb_str_cat_cstr(rb_dir_getwd(), "/"), name, end - name);
    RB_GC_GUARD(path);
    return found;
}

/* EACCES: the file is outside the roots. */
static int status_for(int error) {
    if (error == EACCES) return 500;
    return rd_file_may_pass(error) ? 503 : 404;
}

/* Refuses the file: the reporter's answer becomes the response of the call. */
static void refuse(rd_collector *collector, int error) {
    rd_call *call = collector->call;
    VALUE arguments[] = {call->env, collector->file, INT2FIX(status_for(error))};
    VALUE response = rb_funcallv(call->binding->app.reporter, rd_id.refuse_file, 3, arguments);
    rd_call_replace_response(call, response);
}

static void answer_nothing(rd_collector *collector, int status) {
    rd_call *call = collector->call;
    const rd_responder *to = call->request->responder;
    rd_response_head head = {.status = status, .length = 0};
    if (status == 304) {
        rd_collector_remove(collector, RD_SLICE("content-type"));
        head = collector->head;
        head.status = status;
        head.length = -1;
    }
    rd_lock(call->binding);
    collector->call->state.started = true;
    head.close = collector->head.close;
    if (to->start(call->request, &head) >= 0) to->finish(call->request);
    rd_unlock(call->binding);
    finish_call(collector);
}

static void answer_named(rd_collector *collector, const rd_opening *opening) {
    const struct stat *info = &opening->info;
    char etag[RD_ETAG_MAX], modified[RD_DATE_BYTES + 1];
    const size_t len =
        rd_file_etag(etag, (uint64_t)info->st_size, rd_file_mtime_ns(info), RD_SLICE(""));
    rd_validators validators = {rd_slice_of("", 0), -1};
    rd_date_format(info->st_mtim.tv_sec, modified);
    const char *path = opening->path;
    add_missing(collector, RD_SLICE("content-type"), rd_mime_type(rd_slice_of(path, strlen(path))));
    if (collector->head.status == 200 && rd_request_reads(collector->call->request)) {
        add_missing(collector, RD_SLICE("etag"), rd_slice_of(etag, len));
        if (rd_file_modified(info) >= 0) {
            add_missing(collector, RD_SLICE("last-modified"), rd_slice_of(modified, RD_DATE_BYTES));
        }
        add_missing(collector, RD_SLICE("accept-ranges"), RD_SLICE("bytes"));
        validators = validators_of(collector);
        const int condition = rd_file_conditions(collector->call->request, &validators);
        if (condition != RD_CONDITION_NONE) {
            close(opening->fd);
            answer_nothing(collector, condition);
            return;
        }
    }
    send_wanted(collector, opening, &validators);
}

bool rd_file_respond_named(rd_collector *collector) {
    VALUE path = absolute(collector, path_of(collector));
    rd_collector_reserve(collector, FIELDS_ADDED);
    if (NIL_P(path)) {
        refuse(collector, EACCES);
        return false;
    }
    rd_opening opening = {.roots = &collector->call->binding->files.roots,
                          .path = StringValueCStr(path),
                          .fd = -1,
                          .error = EMFILE};
    if (may_open(collector->call->binding)) rd_gvl_run(open_nogvl, &opening);
    const bool is_open = opening.fd >= 0;
    if (is_open) {
        answer_named(collector, &opening);
    } else {
        refuse(collector, opening.error);
    }
    RB_GC_GUARD(path);
    return is_open;
}

/* ---- named by the body ---- */

/* Whether the body is the whole file as it is: not cut, not compressed, with its own length. Only
 * then ranges may be sent. */
static bool is_plain(const rd_collector *collector, int64_t size) {
    return is_divisible(collector) &&
           (collector->head.length < 0 || collector->head.length == size) &&
           rd_collector_find(collector, RD_SLICE("content-encoding")) == NULL;
}

rd_path_answer rd_file_respond_path(rd_collector *collector, VALUE body) {
    if (!rb_respond_to(body, rd_id.to_path)) return RD_PATH_NONE;
    VALUE path = rb_funcall(body, rd_id.to_path, 0);
    rd_call_check(collector->call);
    if (NIL_P(path)) return RD_PATH_NONE;
    FilePathValue(path); /* a Pathname will do */
    VALUE own_path = rb_str_new(RSTRING_PTR(path), RSTRING_LEN(path));
    RB_GC_GUARD(path);
    path = own_path;
    rd_opening opening = {.path = StringValueCStr(path)};
    if (!may_open(collector->call->binding)) {
        collector->file = path;
        refuse(collector, EMFILE);
        return RD_PATH_REFUSED;
    }
    rd_collector_reserve(collector, FIELDS_ADDED);
    rd_gvl_run(open_nogvl, &opening);
    RB_GC_GUARD(path);
    if (opening.fd < 0) return RD_PATH_NONE;
    if (!is_plain(collector, opening.info.st_size)) {
        send_promised(collector, &opening);
        return RD_PATH_SENT;
    }
    const rd_validators validators = validators_of(collector);
    add_missing(collector, RD_SLICE("accept-ranges"), RD_SLICE("bytes"));
    send_wanted(collector, &opening, &validators);
    return RD_PATH_SENT;
}
