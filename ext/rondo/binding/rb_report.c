/* SPDX-License-Identifier: MIT
 *
 * Tells the reporter what to log; see rb_report.h.
 */
#include "binding/rb_report.h"

#include "base/error.h"
#include "server/budgets.h"
#include "ruby/rb_error.h"
#include "ruby/rb_names.h"
#include "binding/rb_binding.h"

/* ---- errors ---- */

typedef struct rd_error_report {
    const rd_binding *binding;
    VALUE error, env;
} rd_error_report;

static VALUE report_error(VALUE argument) {
    const rd_error_report *report = (const rd_error_report *)argument;
    VALUE arguments[] = {report->error, NIL_P(report->env) ? rb_hash_new() : report->env};
    return rb_funcallv(report->binding->app.reporter, rd_id.report_error, 2, arguments);
}

int rd_report_error(const rd_binding *binding, VALUE error, VALUE env) {
    rd_error_report report = {binding, error, env};
    int state = 0;
    rb_protect(report_error, (VALUE)&report, &state);
    if (state == 0) return 0;
    if (rb_obj_is_kind_of(rb_errinfo(), rb_eException)) state = 0;
    rb_set_errinfo(Qnil);
    return state;
}

/* ---- incidents ---- */

typedef struct rd_incident_report {
    rd_binding *binding;
    rd_incident incident;
    uint64_t given_up, cut; /* in total, so far */
    uint32_t lost;
} rd_incident_report;

/* Clients get the same text, but without the setting, which concerns only the operator. */
static VALUE reason_of(int code) {
    const char *text = rd_error_text(code), *setting = rd_budget_setting(code);
    if (setting == NULL) return rb_str_new_cstr(text);
    return rb_sprintf("%s; the limit is %s", text, setting);
}

/* Of a handshake: our words, and those of the library where it says more. */
static VALUE report_handshake(VALUE reporter, const rd_incident *incident, VALUE address) {
    const char *more = incident->reason;
    VALUE reason = reason_of(incident->code);
    if (more != NULL) rb_str_catf(reason, " (%s)", more);
    return rb_funcall(reporter, rd_id.report_handshake, 3, address, reason,
                      UINT2NUM(incident->unnamed));
}

static VALUE report_incident(VALUE argument) {
    rd_incident_report *report = (rd_incident_report *)argument;
    char text[RD_ADDRESS_TEXT_MAX];
    size_t len = rd_address_text(&report->incident.peer, text);
    const int code = report->incident.code;
    VALUE address = rb_str_new(text, (long)len), reason = reason_of(code);
    VALUE reporter = report->binding->app.reporter;
    if (rd_incident_is_handshake(code)) {
        return report_handshake(reporter, &report->incident, address);
    }
    switch (code) {
    case RD_ERR_FILE_CUT:
    case RD_ERR_ANSWER_SHORT:
    case RD_ERR_ANSWER_LONG:
        return rb_funcall(reporter, rd_id.report_cut, 3, address, reason, ULL2NUM(report->cut));
    case RD_ERR_OUTPUT_FULL:
        return rb_funcall(reporter, rd_id.report_closed, 2, address, reason);
    case RD_ERR_CHANNEL_LIMIT:
    case RD_ERR_SUBSCRIPTIONS_FULL:
        return rb_funcall(reporter, rd_id.report_subscription, 2, address, reason);
    case RD_ERR_REPLAY_LATE:
    case RD_ERR_REPLAY_UNKNOWN:
        return rb_funcall(reporter, rd_id.report_replay, 2, address, reason);
    case RD_ERR_NO_DESCRIPTOR:
        return rb_funcall(reporter, rd_id.report_no_descriptor, 1, reason);
    case RD_ERR_NO_DISK_THREAD:
        return rb_funcall(reporter, rd_id.report_no_disk_thread, 1, reason);
    case RD_ERR_FORWARDED:
        return rb_funcall(reporter, rd_id.report_forwarding, 1, reason);
    case RD_ERR_REPLY_CUT:
    case RD_ERR_REPLY_INVALID:
    case RD_ERR_REPLY_TOO_LARGE:
    case RD_ERR_TAKEN_HEAD:
        return rb_funcall(reporter, rd_id.report_unanswered, 2, address, reason);
    case RD_ERR_GIVEN_UP:
        return rb_funcall(reporter, rd_id.report_given_up, 3, address, reason,
                          ULL2NUM(report->given_up));
    default:
        return rb_funcall(reporter, rd_id.report_refusal, 4, address,
                          INT2FIX(rd_error_status(code)), reason,
                          UINT2NUM(report->incident.unnamed));
    }
}

static VALUE report_lost(VALUE argument) {
    const rd_incident_report *report = (const rd_incident_report *)argument;
    return rb_funcall(report->binding->app.reporter, rd_id.report_lost, 1, UINT2NUM(report->lost));
}

/* Returns the state of what ends the thread, or 0. */
static int try_report(VALUE (*run)(VALUE argument), rd_incident_report *report) {
    int state = 0;
    rb_protect(run, (VALUE)report, &state);
    if (state == 0 || rd_ends_thread(rb_errinfo())) return state;
    rb_set_errinfo(Qnil);
    return 0;
}

/* Another thread logs the rest. Nobody knows whether the line under way was written, so the
 * incident is one of those that the log does not name. */
static int report_all(rd_incident_report *report, rd_incidents_taken *taken, uint32_t *done) {
    int killed = 0;
    while (*done < taken->count) {
        report->incident = taken->kept[(*done)++];
        killed = try_report(report_incident, report);
        if (killed == 0) continue;
        taken->lost++;
        return killed;
    }
    report->lost = taken->lost;
    return taken->lost > 0 ? try_report(report_lost, report) : 0;
}

void rd_report_incidents(rd_binding *binding) {
    rd_incidents_taken taken;
    rd_incident_report report = {.binding = binding};
    rd_lock(binding);
    rd_incidents_take(binding->server, &taken);
    report.given_up = binding->server->counts.given_up;
    report.cut = binding->server->counts.cut;
    rd_unlock(binding);
    uint32_t done = 0;
    const int killed = report_all(&report, &taken, &done);
    if (killed == 0) return;
    rd_lock(binding);
    rd_incidents_give_back(binding->server, &taken, done);
    rd_unlock(binding);
    rb_jump_tag(killed);
}
