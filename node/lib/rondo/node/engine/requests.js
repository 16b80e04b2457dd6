// From a request of Node to a call of the application.
// SPDX-License-Identifier: MIT

"use strict";

const body = require("./body");
const ruby = require("./ruby");
const { factsOf, makeEnv } = require("./env");
const { upgradeKind, takeHandler } = require("./upgrade");
const { openStream } = require("./event_stream");
const { readHead, reason } = require("./head");
const { refusalOf } = require("./rules");
const { Response, refuseRequest } = require("./response");

class Requests {
  // @param application what config.ru runs
  // @param scheme "http" or "https"
  // @param hints whether the application may send 103
  constructor(application, scheme, hints) {
    this.hints = hints;
    this.application = callerOf(application);
    this.scheme = scheme;
  }

  // For the event `request`. `openSocket` makes a WebSocket of the connection, if that is possible.
  take(req, res, openSocket = null) {
    const facts = factsOf(req.rawHeaders);
    const status = refusalOf(req, facts);
    if (status !== 0) return refuse(req, res, status);
    if (facts.isLast) res.shouldKeepAlive = false;
    if (facts.length === null && facts.coding === null) return this.call(req, res, facts, null, openSocket);
    return this.collect(req, res, facts);
  }

  // For the event `checkContinue`: the body is asked for only if it will be taken.
  takeExpecting(req, res) {
    const facts = factsOf(req.rawHeaders);
    const isKnown = req.headers.expect.toLowerCase() === "100-continue";
    const status = isKnown ? refusalOf(req, facts) || body.refusal(facts) : 417;
    if (status !== 0) return refuse(req, res, status);
    if (facts.isLast) res.shouldKeepAlive = false;
    res.writeContinue();
    return this.collect(req, res, facts);
  }

  collect(req, res, facts) {
    const status = body.refusal(facts);
    if (status !== 0) return refuse(req, res, status);
    return body.collect(req, (failed, bytes) => {
      if (failed !== 0) {
        refuse(req, res, failed);
      } else {
        this.call(req, res, facts, bytes);
      }
    });
  }

  // `bytes` is null without a body.
  call(req, res, facts, bytes, openSocket = null) {
    const kind = upgradeKind(req, facts);
    const env = makeEnv(req, facts, this.scheme, kind, bytes);
    if (this.hints && req.httpVersionMinor === 1) env.set("rack.early_hints", earlyHints(res));
    const response = new Response(req, res, env);
    response.openSocket = openSocket;
    if (bytes !== null) response.held = body.hold(bytes);
    let result;
    try {
      result = this.application(env);
    } catch (exception) {
      return response.fail(exception);
    }
    if (!(result instanceof Promise)) return this.answer(response, result);
    return result.then((value) => this.answerLater(response, value), (exception) => response.fail(exception));
  }

  // The client may have left meanwhile.
  answerLater(response, result) {
    return response.isOver() ? response.leave(result) : this.answer(response, result);
  }

  answer(response, result) {
    const handler = response.env.get("rack.upgrade");
    if (handler === undefined || handler === ruby.nil) return response.send(result);
    try {
      return takeHandler(response, result, handler, openStream);
    } catch (exception) {
      return response.fail(exception);
    }
  }
}

// A lambda of Ruby is a function of JavaScript: one that cannot be left by `return` in a block is called as it is.
function callerOf(application) {
  const isPlain = typeof application === "function" && application.$$is_lambda && !application.$$ret;
  return isPlain ? application : (env) => application.$call(env);
}

function earlyHints(res) {
  return ruby.Opal.lambda((headers) => {
    if (res.headersSent) return ruby.nil;
    readHead(headers); // raises for names and values that no head may have
    const hints = {};
    ruby.eachPair(headers, (name, value) => {
      hints[name] = Array.isArray(value) ? value.map(String) : String(value);
    });
    if (hints.link) res.writeEarlyHints(hints);
    return ruby.nil;
  });
}

// The rest of a refused body is not read: its connection ends.
function refuse(req, res, status) {
  req.socket.rondoRefused = true;
  res.on("finish", () => req.socket.destroySoon());
  refuseRequest(res, status, reason(status), true);
}

module.exports = { Requests, refuse };
