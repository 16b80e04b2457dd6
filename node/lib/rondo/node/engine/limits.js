// Limits and times, with the values that the server on MRI has by default (docs/CONFIGURATION.md). Times are in
// milliseconds.
// SPDX-License-Identifier: MIT

"use strict";

module.exports = {
  maxHeadBytes: 114688,
  maxHeaderCount: 128,
  maxNameBytes: 256,
  maxValueBytes: 81920,
  maxTargetBytes: 12288,
  maxBodyBytes: 1073741824,
  totalBodyBytes: 268435456, // bodies are in memory here, not in files: this is total_input_bytes of all clients
  maxConnections: 0, // 0: as many as there are descriptors
  maxPipelined: 32, // requests of a connection that wait for earlier answers; then it is not read
  totalPipelined: 16384, // of all connections; each takes some kilobytes
  headTimeout: 30000,
  bodyTimeout: 30000,
  writeTimeout: 120000, // longer than on MRI: Node does not tell what the kernel has not sent
  totalOutputBytes: 268435456,
  keepAliveTimeout: 65000,
  drainTimeout: 30000,
  maxResponseBytes: 268435456, // of a body that is produced faster than its client reads, for Node cannot wait
  maxMessageBytes: 262144,
  totalMessageBytes: 67108864,
  maxPendingBytes: 1048576,
  maxWaitingMessages: 16, // while a callback waits; then the client is not read
  maxWaitingBlocks: 1024, // of subscriptions, while a callback waits; then the client is closed with 1013
  deflateThreshold: 1024,
  maxSubscriptions: 1024,
  maxSubscriptionBytes: 65536,
  totalSubscriptionBytes: 134217728,
  historyMessages: 100000,
  historyBytes: 67108864,
  maxPublishBytes: 1048576,
  hubQueueBytes: 67108864,
  pingInterval: 40000,
  closeTimeout: 5000,
  backlog: 1024,
};
