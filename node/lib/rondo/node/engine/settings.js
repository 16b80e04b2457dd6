// The option `--set NAME=VALUE`: names and ranges of the limits that can be set. The names are those of
// docs/CONFIGURATION.md where the server on MRI has such a setting.
// SPDX-License-Identifier: MIT

"use strict";

const limits = require("./limits");

const KI = 1024;
const MI = 1024 * KI;
const GI = 1024 * MI;
const DAY = 86400000;

// name → [property of limits.js, least, most]; NO_LIMIT: 0 means that there is none.
const NO_LIMIT = "no limit";
const SETTINGS = {
  max_head_bytes: ["maxHeadBytes", KI, MI],
  max_target_bytes: ["maxTargetBytes", 256, MI],
  max_header_count: ["maxHeaderCount", 8, 2048],
  max_header_name_bytes: ["maxNameBytes", 16, 4 * KI],
  max_header_value_bytes: ["maxValueBytes", 256, MI],
  max_body_bytes: ["maxBodyBytes", 0, 1024 * GI, NO_LIMIT],
  total_body_bytes: ["totalBodyBytes", KI, 1024 * GI],
  max_connections: ["maxConnections", 0, 1000000],
  max_pipelined_requests: ["maxPipelined", 1, 100000],
  total_pipelined_requests: ["totalPipelined", 1, 10000000],
  total_output_bytes: ["totalOutputBytes", 64 * KI, 1024 * GI],
  max_response_bytes: ["maxResponseBytes", 64 * KI, 1024 * GI],
  max_message_bytes: ["maxMessageBytes", 125, GI],
  total_message_bytes: ["totalMessageBytes", 0, 1024 * GI],
  max_pending_bytes: ["maxPendingBytes", 64 * KI, GI],
  deflate_threshold_bytes: ["deflateThreshold", 0, GI],
  max_subscriptions: ["maxSubscriptions", 1, 1000000],
  max_subscription_bytes: ["maxSubscriptionBytes", KI, GI],
  total_subscription_bytes: ["totalSubscriptionBytes", 0, 1024 * GI],
  history_messages: ["historyMessages", 0, 10000000],
  history_bytes: ["historyBytes", 0, 1024 * GI],
  max_publish_bytes: ["maxPublishBytes", 125, 64 * MI],
  hub_queue_bytes: ["hubQueueBytes", 64 * KI, GI],
  backlog: ["backlog", 1, 65535],
  head_timeout_ms: ["headTimeout", 10, DAY],
  body_timeout_ms: ["bodyTimeout", 10, DAY],
  write_timeout_ms: ["writeTimeout", 10, DAY],
  keep_alive_timeout_ms: ["keepAliveTimeout", 1, DAY],
  drain_timeout_ms: ["drainTimeout", 0, DAY],
  ping_interval_ms: ["pingInterval", 0, DAY],
  close_timeout_ms: ["closeTimeout", 10, 60000],
};

const UNITS = { k: KI, m: MI, g: GI };

function number(text) {
  const match = /^(\d{1,15})([kmg]?)$/i.exec(text);
  return match ? Number(match[1]) * (UNITS[match[2].toLowerCase()] || 1) : NaN;
}

// As it is written in the documentation.
function show(value) {
  for (const [unit, size] of Object.entries(UNITS).reverse()) {
    if (value >= size && value % size === 0) return `${value / size}${unit}`;
  }
  return String(value);
}

// Sets one limit. Returns null, or one line about what is wrong.
function set(words) {
  const [, name, text] = /^([^=]*)=?(.*)$/s.exec(words);
  if (!Object.hasOwn(SETTINGS, name)) return `--set: there is no setting ${JSON.stringify(name)}`;
  const [key, least, most, zero] = SETTINGS[name];
  const value = number(text);
  if (!(value >= least && value <= most)) {
    return `--set: ${name} must be from ${show(least)} to ${show(most)}, not ${JSON.stringify(text)}`;
  }
  limits[key] = value === 0 && zero === NO_LIMIT ? Infinity : value;
  return null;
}

module.exports = { names: Object.keys(SETTINGS), set };
