/* SPDX-License-Identifier: MIT
 *
 * Rondo::Load: load for a server of this machine, as `rondo bench` makes it.
 * lib/rondo/command/bench uses it. The run itself goes without the GVL, so that other threads of
 * Ruby can watch the server.
 */
#include "ruby/rb_objects.h"

#include "base/alloc.h"
#include "load/load.h"
#include "ruby/rb_gvl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <ruby.h>
#include <string.h>

static const char *const KINDS[RD_LOAD_KINDS] = {"kept", "piped", "fresh"};
enum { CURVE = 40 };

typedef struct rd_load_call {
    rd_load_plan plan;
    rd_slice *requests; /* both lists, one behind the other, and behind them their bytes */
    atomic_bool stop;
    rd_load_result result;
    int error;
} rd_load_call;

/* ---- what is asked for ---- */

/* Other machines are nobody's to load: this is checked here, whatever the caller has checked. */
static void address_read(rd_load_plan *plan, VALUE host, VALUE port) {
    const char *text = StringValueCStr(host);
    int number = NUM2INT(port);
    struct sockaddr_in *v4 = (struct sockaddr_in *)&plan->address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&plan->address;
    if (number < 1 || number > 65535) rb_raise(rb_eArgError, "%d is not a port", number);
    if (inet_pton(AF_INET, text, &v4->sin_addr) == 1 &&
        ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons((uint16_t)number);
        plan->address_len = sizeof *v4;
    } else if (inet_pton(AF_INET6, text, &v6->sin6_addr) == 1 &&
               IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr)) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons((uint16_t)number);
        plan->address_len = sizeof *v6;
    } else {
        rb_raise(rb_eArgError, "%s is not a loopback address", text);
    }
}

static unsigned count_read(VALUE value, unsigned least, unsigned most, const char *name) {
    long number = NUM2LONG(value);
    if (number < (long)least || number > (long)most)
        rb_raise(rb_eArgError, "%s must be between %u and %u", name, least, most);
    return (unsigned)number;
}

static uint64_t time_read(VALUE seconds, const char *name) {
    double number = NUM2DBL(seconds);
    if (!(number >= 0 && number <= 3600))
        rb_raise(rb_eArgError, "%s must be between 0 and 3600", name);
    return (uint64_t)(number * 1e9);
}

static VALUE option(VALUE options, const char *name) {
    return rb_hash_fetch(options, ID2SYM(rb_intern(name)));
}

static void connections_read(rd_load_plan *plan, VALUE options) {
    unsigned sum = 0;
    for (int kind = 0; kind < RD_LOAD_KINDS; kind++) {
        plan->connections[kind] =
            count_read(option(options, KINDS[kind]), 0, RD_LOAD_CONNECTIONS, KINDS[kind]);
        sum += plan->connections[kind];
    }
    if (sum == 0 || sum > RD_LOAD_CONNECTIONS)
        rb_raise(rb_eArgError, "there must be 1 to %d connections", RD_LOAD_CONNECTIONS);
}

/* Returns how many bytes they have. */
static size_t texts_check(VALUE texts) {
    size_t bytes = 0;
    Check_Type(texts, T_ARRAY);
    if (RARRAY_LEN(texts) < 1 || RARRAY_LEN(texts) > RD_LOAD_REQUESTS)
        rb_raise(rb_eArgError, "there must be 1 to %d requests", RD_LOAD_REQUESTS);
    for (long i = 0; i < RARRAY_LEN(texts); i++) {
        VALUE text = RARRAY_AREF(texts, i);
        Check_Type(text, T_STRING);
        if (RSTRING_LEN(text) == 0) rb_raise(rb_eArgError, "an empty request");
        bytes += (size_t)RSTRING_LEN(text);
    }
    return bytes;
}

/* Returns where the bytes of the next text belong. */
static char *texts_copy(VALUE texts, rd_slice *slices, char *to) {
    for (long i = 0; i < RARRAY_LEN(texts); i++) {
        VALUE text = RARRAY_AREF(texts, i);
        slices[i] = rd_slice_of(to, (size_t)RSTRING_LEN(text));
        memcpy(to, RSTRING_PTR(text), slices[i].len);
        to += slices[i].len;
    }
    return to;
}

/* The bytes are copied: the run has no GVL, and meanwhile others may change the texts, or
 * compaction moves them. */
static void requests_read(rd_load_call *call, VALUE options) {
    VALUE texts = option(options, "requests"), last = option(options, "last_requests");
    const size_t bytes = texts_check(texts) + texts_check(last);
    const size_t count = (size_t)RARRAY_LEN(texts);
    if (RARRAY_LEN(last) != RARRAY_LEN(texts))
        rb_raise(rb_eArgError, "there must be as many last_requests");
    call->requests = rd_alloc(sizeof(rd_slice) * 2 * count + bytes);
    char *to = texts_copy(texts, call->requests, (char *)(call->requests + 2 * count));
    texts_copy(last, call->requests + count, to);
    call->plan.requests = call->requests;
    call->plan.last_requests = call->requests + count;
    call->plan.request_count = (unsigned)count;
}

/* ---- what has been seen ---- */

static void put(VALUE hash, const char *name, VALUE value) {
    rb_hash_aset(hash, ID2SYM(rb_intern(name)), value);
}

static void put_waits(VALUE hash, const rd_latency *waits) {
    put(hash, "p50_us", DBL2NUM(rd_latency_percentile_us(waits, 0.5)));
    put(hash, "p99_us", DBL2NUM(rd_latency_percentile_us(waits, 0.99)));
    put(hash, "longest_us", DBL2NUM((double)waits->longest_ns / 1000));
    double count = waits->count ? (double)waits->count : 1;
    put(hash, "mean_us", DBL2NUM((double)waits->sum_ns / count / 1000));
}

static VALUE lines_show(const rd_load_result *result) {
    VALUE lines = rb_ary_new();
    for (unsigned i = 0; i < result->line_count; i++) {
        VALUE line = rb_hash_new();
        put(line, "kind", ID2SYM(rb_intern(KINDS[result->lines[i].kind])));
        put(line, "answers", ULL2NUM(result->lines[i].answers));
        put_waits(line, &result->lines[i].waits);
        rb_ary_push(lines, line);
    }
    return lines;
}

/* Waits by the share of requests that did not wait longer, from 0 to 1 in equal steps. */
static VALUE curve_show(const rd_latency *waits) {
    VALUE curve = rb_ary_new();
    for (int i = 0; i <= CURVE; i++)
        rb_ary_push(curve, DBL2NUM(rd_latency_percentile_us(waits, (double)i / (double)CURVE)));
    return curve;
}

static VALUE result_show(const rd_load_result *result) {
    VALUE shown = rb_hash_new(), statuses = rb_ary_new();
    for (int i = 0; i < 6; i++) rb_ary_push(statuses, ULL2NUM(result->statuses[i]));
    put(shown, "answers", ULL2NUM(result->answers));
    put(shown, "in_time", ULL2NUM(result->in_time));
    put(shown, "statuses", statuses);
    put(shown, "broken", ULL2NUM(result->broken));
    put(shown, "refused", ULL2NUM(result->refused));
    put(shown, "unanswered", ULL2NUM(result->unanswered));
    put(shown, "reconnects", ULL2NUM(result->reconnects));
    put(shown, "unclosed", ULL2NUM(result->unclosed));
    put(shown, "bytes", ULL2NUM(result->bytes));
    put(shown, "seconds", DBL2NUM((double)result->elapsed_ns / 1e9));
    put(shown, "client_cpu_s", DBL2NUM((double)result->cpu_ns / 1e9));
    put_waits(shown, &result->waits);
    put(shown, "curve_us", curve_show(&result->waits));
    put(shown, "connections", lines_show(result));
    return shown;
}

/* ---- the call ---- */

static void run_nogvl(void *argument) {
    rd_load_call *call = argument;
    call->error = rd_load_run(&call->plan, &call->stop, &call->result) < 0 ? errno : 0;
}

static void stop_nogvl(void *argument) {
    rd_load_call *call = argument;
    atomic_store(&call->stop, true);
}

static VALUE call_run(VALUE argument) {
    rd_load_call *call = (rd_load_call *)argument;
    rd_gvl_run_until_stopped(run_nogvl, stop_nogvl, call);
    if (call->error) rb_syserr_fail(call->error, "load");
    return result_show(&call->result);
}

static VALUE call_free(VALUE argument) {
    rd_load_call *call = (rd_load_call *)argument;
    rd_load_result_clear(&call->result);
    rd_free(call->requests);
    rd_free(call);
    return Qnil;
}

/* Asks a server in a closed loop. The kinds of connections: `kept` has one request at a time,
 * `piped` has `depth` of them, `fresh` is a new connection for each request.
 * @param host [String] a loopback address
 * @param port [Integer]
 * @param options [Hash{Symbol => Object}] requests, last_requests (Array<String>: whole requests,
 *   the second ones with "Connection: close"), kept, piped, fresh, depth (Integer), seconds,
 *   patience (Float: how long the last answers are awaited)
 * @return [Hash{Symbol => Object}] counts, waits in microseconds, and `connections`
 * @raise [ArgumentError] a value out of its limits, or an address of another machine
 * @raise [KeyError] an option is missing */
static VALUE load_run(VALUE self, VALUE host, VALUE port, VALUE options) {
    (void)self;
    rd_load_plan plan = {0};
    Check_Type(options, T_HASH);
    address_read(&plan, host, port);
    connections_read(&plan, options);
    plan.depth = count_read(option(options, "depth"), 1, RD_LOAD_DEPTH, "depth");
    plan.measure_ns = time_read(option(options, "seconds"), "seconds");
    plan.patience_ns = time_read(option(options, "patience"), "patience");
    rd_load_call given = {.plan = plan};
    requests_read(&given, options);
    rd_load_call *call = rd_alloc(sizeof *call);
    *call = given;
    return rb_ensure(call_run, (VALUE)call, call_free, (VALUE)call);
}

/* Document-module: Rondo::Load
 * Load for a server of this machine.
 * @api private */
void rd_init_load(VALUE rondo) {
    VALUE load = rb_define_module_under(rondo, "Load");
    rb_define_const(load, "CONNECTIONS", INT2FIX(RD_LOAD_CONNECTIONS));
    rb_define_const(load, "DEPTH", INT2FIX(RD_LOAD_DEPTH));
    rb_define_const(load, "REQUESTS", INT2FIX(RD_LOAD_REQUESTS));
    rb_define_singleton_method(load, "run", load_run, 3);
}
