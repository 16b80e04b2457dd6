/* SPDX-License-Identifier: MIT
 *
 * Exception classes and raising; see rb_error.h.
 */
#include "ruby/rb_error.h"

#include "base/error.h"

VALUE rd_eError, rd_eAddressError, rd_eSettingError, rd_eResponseError, rd_eClosed, rd_eBodyError,
    rd_eRequestTimeout;

void rd_init_errors(void) {
    VALUE rondo = rb_define_module("Rondo");
    /* Document-class: Rondo::Error
     * Something cannot be done as requested. */
    rd_eError = rb_define_class_under(rondo, "Error", rb_eStandardError);
    /* Document-class: Rondo::AddressError
     * The server cannot listen on an address. */
    rd_eAddressError = rb_define_class_under(rondo, "AddressError", rd_eError);
    /* Document-class: Rondo::SettingError
     * A setting is unknown, or cannot have this value. */
    rd_eSettingError = rb_define_class_under(rondo, "SettingError", rd_eError);
    /* Document-class: Rondo::ResponseError
     * The application returned something that is not a response. */
    rd_eResponseError = rb_define_class_under(rondo, "ResponseError", rd_eError);
    /* Document-class: Rondo::ClientGone
     * The client has closed the connection, so the response cannot be sent. */
    rd_eClosed = rb_define_class_under(rondo, "ClientGone", rb_eIOError);
    /* Document-class: Rondo::BodyError
     * The client did not send the whole body of its request. */
    rd_eBodyError = rb_define_class_under(rondo, "BodyError", rb_eEOFError);
    /* Document-class: Rondo::RequestTimeout
     * Raised in an application that has not begun its answer within request_timeout_ms. */
    rd_eRequestTimeout = rb_define_class_under(rondo, "RequestTimeout", rd_eError);
    /* @return [Integer] what the client is answered if this is not rescued: 400, 408 or 413 */
    rb_define_attr(rd_eBodyError, "status", 1, 0);
}

bool rd_ends_thread(VALUE error) {
    return !rb_obj_is_kind_of(error, rb_eException) || rb_obj_is_kind_of(error, rb_eSignal);
}

bool rd_is_fiber_error(VALUE error) {
    return rb_obj_is_kind_of(error, rb_path2class("FiberError"));
}

void rd_raise_body_error(int code) {
    VALUE error = rb_exc_new_cstr(rd_eBodyError, rd_error_text(code));
    int status = rd_error_status(code);
    rb_ivar_set(error, rb_intern("@status"), INT2FIX(status > 0 ? status : 400));
    rb_exc_raise(error);
}

void rd_raise_closed(void) {
    rb_raise(rd_eClosed, "the client has closed the connection");
}
