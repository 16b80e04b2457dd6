# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# Delivers the cases of http_rules.rb to real servers, one per set of settings, and judges the
# answers. Three ways, the answer must be the same:
#   whole  in one send, over TCP
#   bytes  one send per byte, over TCP, round robin between connections
#   cut    in two, over a Unix socket, where the kernel tells when the server has read the first
#          part; at every offset, or at CUTS of them spread evenly over a longer string (and over
#          what follows the valid request of an "-front" case)
# A string over LONG bytes goes in LONG pieces instead of bytes.

require "json"
require_relative "../support/exchange"
require_relative "../support/server_process"
require_relative "http_rules"

class ConformanceRunner
  CUTS = 40
  FRONT_CUTS = 12
  LONG = 2000
  # After this many failures the rest of a case is not delivered, because every timeout costs seconds.
  ENOUGH = 4
  APP = File.expand_path("echo.ru", __dir__)
  ALONE = ENV.key?("RONDO_TEST_EXCLUDED")
  # A request that comes byte by byte beside many others may take longer, and so may a client that goes on sending
  # behind a refusal.
  PATIENT = { head_timeout_ms: 600_000, body_timeout_ms: 600_000, body_min_rate: 0, linger_timeout_ms: 60_000,
              linger_bytes: HttpRules::READ_ON }.freeze

  # Values that the application reports under other names than Rack's.
  SEEN = { path: "PATH_INFO", query: "QUERY_STRING", method: "REQUEST_METHOD", server: "SERVER_NAME",
           protocol: "SERVER_PROTOCOL", body: "body", scheme: "scheme" }.freeze

  # One way of sending one case.
  Delivery = Struct.new(:test, :mode, :cut) do
    def to_s
      cut ? "#{mode} at #{cut}" : mode.to_s
    end
  end

  class << self
    # @return [Array<HttpRules::Case>] all, or those whose id matches CONFORMANCE_ONLY
    def cases
      only = Regexp.new(ENV.fetch("CONFORMANCE_ONLY", ""))
      @cases ||= table.select { |test| test.id.match?(only) }
    end

    def table
      HttpRules.cases
    end

    # Failures of a case; the first call for a set of settings delivers all cases of that set. If each test must fail
    # within seconds by itself (test/support/http2_exclusions.rb), its case is delivered alone.
    # @return [Array<String>]
    def failures(test)
      return new(test.settings, [test]).run[test.id] || [] if ALONE

      @failures ||= {}
      (@failures[test.settings] ||= new(test.settings).run)[test.id] || []
    end

    # @return [Integer]
    def deliveries
      @deliveries || 0
    end
    attr_writer :deliveries
  end

  def initialize(settings, tests = self.class.cases.select { |test| test.settings == settings })
    @settings = settings
    @tests = tests
    @failures = {}
  end

  def run
    serve do |server|
      @server = server
      ExchangeLoop.run(exchanges) { |exchange| judge(exchange) }
    end
    @failures
  rescue ServerProcess::Failure => e
    @tests.to_h { |test| [test.id, ["the server does not serve: #{e.message.lines.first(4).join}"]] }
  end

  private

  def serve(&block)
    ServerProcess.run(APP, settings: PATIENT.merge(@settings), unix: true, &block)
  end

  def exchanges
    Enumerator.new do |list|
      @tests.each do |test|
        list << exchange(Delivery.new(test, :whole), @server.url, [test.bytes])
        list << exchange(Delivery.new(test, :bytes), @server.url, small_pieces(test.bytes))
        cuts(test).each do |cut|
          break if @failures.fetch(test.id, []).size >= ENOUGH
          list << exchange(Delivery.new(test, :cut, cut), test.tcp_only || XorProxy.tls? ? @server.url : @server.unix_url,
                           [test.bytes.byteslice(0, cut), test.bytes.byteslice(cut..)])
        end
      end
    end
  end

  def exchange(delivery, url, pieces)
    self.class.deliveries += 1
    test = delivery.test
    Exchange.new(url, pieces, key: delivery, heads: test.answers.map(&:head),
                              statuses: test.answers.map(&:statuses),
                              follow_up: test.ends == :open && !test.half_close, half_close: test.half_close,
                              until_answered: test.ends == :any,
                              patient: delivery.mode == :cut)
  end

  def small_pieces(bytes)
    size = (bytes.bytesize / LONG.to_f).ceil.clamp(1, nil)
    (0...bytes.bytesize).step(size).map { |start| bytes.byteslice(start, size) }
  end

  def cuts(test)
    from = 1
    count = CUTS
    from, count = HttpRules::FRONT.bytesize - 2, FRONT_CUTS if test.id.end_with?("-front")
    offsets = test.bytes.bytesize - from
    return [] if offsets < 1
    return (from...test.bytes.bytesize).to_a if offsets <= count
    (0...count).map { |i| from + (i * (offsets - 1) / (count - 1)) }.uniq
  end

  def judge(exchange)
    complaint = complaint(exchange) or return
    delivery = exchange.key
    got = exchange.responses.map(&:status)
    (@failures[delivery.test.id] ||= []) << "#{delivery}: #{complaint}; got #{got}, then #{exchange.ending}"
  end

  def complaint(exchange)
    test = exchange.key.test
    return "malformed response: #{exchange.error}" if exchange.ending == :malformed
    return "no answer in time" if exchange.ending == :timeout && exchange.responses.empty?
    responses = exchange.responses
    return nil if silent_close?(test, exchange)
    test.answers.zip(responses) { |answer, response| (wrong = wrong_answer(answer, response)) and return wrong }
    wrong_ending(test, exchange, responses.drop(test.answers.size))
  end

  # A refusal without a body, where the rule allows it.
  def silent_close?(test, exchange)
    test.answers.last.statuses.include?(:none) && exchange.ending == :closed &&
      exchange.responses.size == test.answers.size - 1 &&
      test.answers.zip(exchange.responses).first(exchange.responses.size).none? { |pair| wrong_answer(*pair) }
  end

  def wrong_answer(answer, response)
    return "expected #{answer.statuses.join(" or ")}, got nothing" unless response
    return "expected #{answer.statuses.join(" or ")}, got #{response.status}" unless answer.statuses.include?(response.status)
    answer.fields.each do |name, value|
      got = response.header(name)
      return "expected #{name}: #{value}, got #{got.inspect}" unless got&.downcase == value
    end
    answer.saw.empty? ? nil : wrong_sight(answer.saw, response.body)
  end

  def wrong_sight(expected, body)
    seen = JSON.parse(body.dup.force_encoding("UTF-8"))
    expected.each do |key, value|
      value = "https" if key == :scheme && XorProxy.tls?
      got = seen[text(SEEN.fetch(key, key))]
      allowed = (value.is_a?(Array) ? value : [value]).map { |one| text(one) }
      return "the application saw #{key} = #{got.inspect[0, 200]} instead of #{value.inspect[0, 200]}" unless allowed.include?(got)
    end
    nil
  rescue JSON::ParserError
    "the application's answer is #{body[0, 100].inspect}"
  end

  def text(value)
    value && value.b.force_encoding(Encoding::ISO_8859_1).encode(Encoding::UTF_8)
  end

  def wrong_ending(test, exchange, rest)
    return nil if test.ends == :any
    return "the connection ended by #{exchange.ending}" unless exchange.ending == :closed || may_be_reset?(test, exchange)
    case test.ends
    when :open
      return rest.empty? ? nil : "a response too many" if test.half_close
      return "the connection was closed" if rest.empty?
      return "a response too many" if rest.size > 1
      wrong_answer(follow_up, rest[0])
    when :closed, :dropped
      return "a response too many" unless rest.empty?
      "the last response does not say connection: close" unless exchange.responses.last.close? || old?(test)
    end
  end

  def follow_up
    HttpRules::Answer.new([200], { path: "/follow-up" }, {}, false)
  end

  def may_be_reset?(test, exchange)
    exchange.ending == :reset && (test.ends == :dropped || late_bytes?(test))
  end

  # A client that asked for the close and keeps sending may be reset; its answer came before that.
  def late_bytes?(test)
    test.ends == :closed && test.answers.last.statuses == [200]
  end

  # HTTP/1.0 closes without a field that says so.
  def old?(test)
    test.bytes.include?("HTTP/1.0\r\n")
  end
end
