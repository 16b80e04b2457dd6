# frozen_string_literal: true

# The form that an answer must have to be the statistics of a server, as far as `rondo top` reads them. A program that
# only pretends to be a control server may send anything.
# SPDX-License-Identifier: MIT

require "set"

module Rondo
  class Top
    # Forms of JSON: a class, some that are allowed, [of each element], or {of values by key}. Keys may be missing,
    # except those that are in {NEEDED}.
    # @api private
    module Form
      # The numbers of a worker that are shown. Any of them may be missing: an older server does not have it.
      READ = %w[pid generation busy threads max_threads queue connections tls_connections tls_full tls_resumed
                tls_failed rss_bytes requests static_answers tasks tasks_waiting tasks_running timers refused dropped
                timed_out standing_in seen_ms oldest_call_ms oldest_task_ms ruby_turn_ms].freeze
      COUNTS = { "buckets" => [Integer] }.freeze
      CALL = { "state" => String, "since_ms" => Integer, "client_since_ms" => Integer }.freeze
      CERTIFICATE = { "days_left" => Integer, "names" => [String] }.freeze
      NUMBERS = READ.to_h { |name| [name, Integer] }.merge("state" => String, "calls" => [CALL],
                                                           "queue_time_us" => COUNTS, "duration_us" => COUNTS).freeze
      ROW = { "index" => Integer, "rondo" => NUMBERS }.freeze
      STATISTICS = ROW.merge(
        "worker_status" => [ROW], "time_ms" => Integer, "bounds_us" => [Integer], "started_at" => String,
        "versions" => Hash, "log" => [Hash], "certificates" => [CERTIFICATE],
        "accept_queues" => [{ "depth" => Set[Integer, NilClass] }], "master_rss_bytes" => Integer,
        "mold_rss_bytes" => Integer
      ).freeze
      NEEDED = { COUNTS => COUNTS.keys, CALL => CALL.keys, CERTIFICATE => CERTIFICATE.keys }.compare_by_identity.freeze

      module_function

      # @param value [Object] of a JSON text
      # @param form [Object]
      # @return [Boolean]
      def of?(value, form = STATISTICS)
        case form
        when Hash then value.is_a?(Hash) && keys?(value, form)
        when Array then value.is_a?(Array) && value.all? { |element| of?(element, form.first) }
        when Set then form.any? { |one| of?(value, one) }
        else value.is_a?(form)
        end
      end

      def keys?(value, form)
        form.all? { |key, each| !value.key?(key) || of?(value[key], each) } &&
          NEEDED.fetch(form, []).all? { |key| value.key?(key) }
      end
      private_class_method :keys?
    end
  end
end
