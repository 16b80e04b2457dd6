# frozen_string_literal: true

# What the server says when an application asks for a WebSocket or a stream of events
# (`env["rack.upgrade"]`), or for a raw connection (`env["upgrade.tcp"]`), and does not get it: the log, and the
# response. The extension calls it (ext/rondo/app/rb_upgrade.c); origins.rb knows who may.
# SPDX-License-Identifier: MIT

module Rondo
  # Answers and log lines of upgrades that cannot be.
  # @api private
  class Upgrades
    # Of handlers, that were spoken of once; more of them are not.
    SPOKEN_MAX = 100
    SHOWN_MAX = 200
    # Of refused WebSockets: who is refused may come again at once.
    LINES_A_SECOND = 20

    # @param log [#info, #warn]
    # @param origins [Origins, nil] who may open a WebSocket; nil for every origin
    # @param clock [#call] seconds
    def initialize(log:, origins: nil, clock: -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) })
      @log = log
      @origins = origins
      @clock = clock
      @spoken = {}
      @lock = Mutex.new
      @second = -1.0
      @lines = @unnamed = 0
    end

    # @param env [Hash]
    # @param trusted [Boolean] whether the peer may say what the client asked for
    # @return [Array(Integer, Hash, #each), nil] what a WebSocket is answered that may not be
    def refuse(env, trusted)
      return if @origins.nil? || @origins.allow?(env, trusted)

      log_refusal(env)
      [403, Reporter::PLAIN.dup, ["This origin is not allowed here\n"]]
    end

    # @param handler [Object]
    # @param env [Hash]
    # @param status [Integer] the application's
    # @return [Array(Integer, Hash, #each), nil] an answer where the application's is none: RFC 6455
    #   section 4.4 wants the version in it
    def report_impossible(handler, env, status)
      once(handler, "rack.upgrade is set for a request that cannot be upgraded (#{shown(env["PATH_INFO"])}, " \
                    "rack.upgrade? is nil): it is ignored")
      return unless status < 100

      headers = Reporter::PLAIN.merge("upgrade" => "websocket", "sec-websocket-version" => "13")
      [426, headers, ["Upgrade Required\n"]]
    end

    # @param handler [Object]
    # @param env [Hash]
    # @param status [Integer] the application's
    # @return [Array(Integer, Hash, #each), nil] an answer where the application's is none
    def report_not_raw(handler, env, status)
      once(handler, "upgrade.tcp is set for a request whose connection cannot become a raw one " \
                    "(#{shown(env["PATH_INFO"])}): it is ignored")
      return unless status < 200

      [500, Reporter::PLAIN.dup, ["This connection cannot become a raw one\n"]]
    end

    # @param handler [Object]
    # @param env [Hash]
    # @return [void]
    def report_protocol(handler, env)
      once(handler, "the response names a sec-websocket-protocol that its client did not offer " \
                    "(#{shown(env["HTTP_SEC_WEBSOCKET_PROTOCOL"])}), or several: it is left out")
    end

    private

    def log_refusal(env)
      unnamed = take_line or return
      more = "; #{unnamed} more were refused before it" if unnamed.positive?
      @log.info("Refused a WebSocket of #{env["REMOTE_ADDR"]}: origin #{shown(env["HTTP_ORIGIN"])} (403)#{more}")
    end

    # @return [Integer, nil] how many had no line before this one; nil: it has none either
    def take_line
      @lock.synchronize do
        now = @clock.call
        @second, @lines = now, 0 if @second.negative? || now - @second >= 1
        next @unnamed.tap { @lines, @unnamed = @lines + 1, 0 } if @lines < LINES_A_SECOND

        @unnamed += 1
        nil
      end
    end

    def once(handler, line)
      name = handler.is_a?(Module) ? handler : handler.class
      key = "#{name}: #{line[0, 20]}"
      return if @spoken.key?(key) || @spoken.size >= SPOKEN_MAX

      @spoken[key] = true
      @log.warn("#{name}: #{line} (said once)")
    end

    def shown(text)
      text.inspect[0, SHOWN_MAX]
    end
  end
end
