# frozen_string_literal: true

# Publishes from a program that is no server, through the control server of one. It is plain Ruby: nothing that was
# compiled is loaded, so a job, a script or another application can have it. docs/PUBLISHING.md is the manual.
# SPDX-License-Identifier: MIT

require "json"
require "net/http"
require "openssl"
require "socket"
require "timeout"
require "uri"
require "rondo/pubsub/queued/shown"

module Rondo
  # Sends messages to the control server of a Rondo server. Each call has a connection of its own, so any thread may use
  # the same object.
  # @example
  #   require "rondo/pubsub/publisher"
  #   publisher = Rondo::Publisher.new("http://127.0.0.1:9293", token: ENV["RONDO_TOKEN"])
  #   publisher.publish("news", "hello")
  class Publisher
    # Why a message was not published, in one line.
    class Error < StandardError
      # @return [Integer, nil] the status of the answer; nil: there was none, and whether the message was published is
      #   not known
      attr_reader :status
      # @return [Integer] messages of the batch that were published
      attr_reader :published
      # @return [Array<Integer, Boolean, nil>] of each message in turn: its id in the history or true, if it is
      #   published; false if it is not; nil if that is not known, so that it would come twice if it was sent again
      attr_reader :messages

      # @param message [String]
      # @param status [Integer, nil]
      # @param published [Integer]
      # @param messages [Array<Integer, Boolean, nil>]
      def initialize(message, status: nil, published: 0, messages: [])
        super(message)
        @status = status
        @published = published
        @messages = messages
      end
    end

    # Seconds for a call.
    # @api private
    TIMEOUT = 10
    # Seconds that a call may wait for the engine.
    # @api private
    LONGEST_WAIT = 30
    # Bytes of an answer that are looked at.
    # @api private
    SHOWN = 65_536
    # Characters of a reason that are shown.
    # @api private
    REASON = 300
    # A server that listens on every address is reached at the loopback address.
    # @api private
    HOSTS = { "0.0.0.0" => "127.0.0.1", "[::]" => "[::1]" }.freeze
    # @api private
    TOKEN = /\A[!-~]{1,512}\z/

    # @param url [String] of the control server: http://HOST:PORT, tcp://HOST:PORT, https://HOST (a proxy in front of
    #   it), or unix:///PATH
    # @param token [String, nil] of the control server
    # @param timeout [Numeric] seconds for a call, everything included
    # @raise [ArgumentError] one of them is not valid
    def initialize(url, token: nil, timeout: TIMEOUT)
      @url = url.to_s
      @path = @url[%r{\Aunix://([^?]+)}, 1]
      @uri = @path ? URI("http://localhost") : uri_of(@url)
      raise ArgumentError, "the token must be at most 512 visible ASCII characters" unless token.nil? ||
                                                                                           TOKEN.match?(token)
      raise ArgumentError, "timeout must be more than 0 s" unless timeout.is_a?(Numeric) && timeout.positive?

      @token = token
      @timeout = timeout
    end

    # @param channel [String, Symbol]
    # @param data [String, Object] text as it is, anything else as JSON
    # @param confirm [Numeric, nil] seconds to wait until the engine has the message, 0.001 to 30; they are added to the
    #   timeout
    # @return [true, Integer] it is queued for all subscribers; with confirm: the engine has it, and this is its id if
    #   its channel has a history there
    # @raise [Error] it is not, or nobody said so in time
    # @raise [ArgumentError] it is not UTF-8, or cannot be JSON
    def publish(channel, data, confirm: nil)
      send_body(json(message(channel, data)), 1, confirm).fetch(0)
    end

    # @param messages [Array<Array(String, Object)>, Hash{String => Object}] channels and data, at most 1000; they are
    #   published in turn
    # @param confirm [Numeric, nil] as for {#publish}
    # @return [Integer] how many
    # @return [Array<Integer, true>] with confirm: what {#publish} returns, of each
    # @raise [Error] its `messages` say which ones are published; none is if one of them is refused
    # @raise [ArgumentError] as for {#publish}, or for a batch of another shape
    def publish_all(messages, confirm: nil)
      pairs = pairs_of(messages)
      results = send_body(json(pairs.map { |channel, data| message(channel, data) }), pairs.size, confirm)
      confirm ? results : results.size
    end

    # @return [String] without the token
    def inspect
      "#<#{self.class} #{@url}>"
    end

    private

    def uri_of(url)
      uri = URI(url.sub(/\Atcp:/, "http:"))
      return uri if uri.is_a?(URI::HTTP) && !uri.host.to_s.empty? && uri.userinfo.nil? && uri.query.nil?

      raise ArgumentError
    rescue URI::InvalidURIError, ArgumentError
      shown = PubSub::Queued.without_secrets(url)
      raise ArgumentError, "#{shown} is not the address of a control server: expected http://HOST:PORT or unix:///PATH"
    end

    # What is no pair could be taken for another message.
    def pairs_of(messages)
      pairs = messages.is_a?(Enumerable) ? messages.to_a : [nil]
      return pairs if pairs.all? { |pair| pair.is_a?(Array) && pair.size == 2 }

      raise ArgumentError, "a batch is an Array of [channel, data]"
    end

    def message(channel, data)
      { "channel" => channel.to_s, "data" => data }
    end

    def json(message)
      JSON.generate(message).tap { |text| raise ArgumentError unless text.valid_encoding? }
    rescue JSON::JSONError, EncodingError, ArgumentError
      raise ArgumentError, "a message must be UTF-8, or something that can be JSON"
    end

    # @return [Array<Integer, true>] of each message
    def send_body(body, count, confirm)
      limit = @timeout + seconds_of(confirm)
      response = Timeout.timeout(limit) { exchange(request(body, confirm)) }
      read(response, count)
    rescue Timeout::Error
      raise Error.new("no answer from #{@url} within #{limit} s", messages: Array.new(count))
    rescue Errno::ECONNREFUSED, Errno::ENOENT, SocketError => e
      raise nobody(e, Array.new(count, false))
    rescue SystemCallError, IOError, OpenSSL::SSL::SSLError, Net::ProtocolError, Net::HTTPBadResponse => e
      raise nobody(e, Array.new(count))
    end

    def nobody(error, messages)
      Error.new("no control server at #{@url}: #{why(error)}", messages: messages)
    end

    # What the system says, without the address that Net::HTTP adds.
    def why(error)
      return SystemCallError.new(nil, error.errno).message if error.is_a?(SystemCallError)

      error.message.lines.first.to_s.strip
    end

    def seconds_of(confirm)
      return 0 if confirm.nil?
      return confirm if confirm.is_a?(Numeric) && confirm.real? && confirm.between?(0.001, LONGEST_WAIT)

      raise ArgumentError, "confirm must be seconds, from 0.001 to #{LONGEST_WAIT}"
    end

    def request(body, confirm)
      query = format("?confirm=%.3f", confirm) if confirm
      request = Net::HTTP::Post.new("#{@uri.path.chomp("/")}/publish#{query}", "content-type" => "application/json")
      request["authorization"] = "Bearer #{@token}" if @token
      request["host"] = "localhost" if @path
      request["connection"] = "close"
      request.body = body
      request
    end

    def exchange(request)
      return exchange_by_file(request) if @path

      http = Net::HTTP.new(HOSTS.fetch(@uri.host, @uri.host).delete("[]"), @uri.port, nil)
      http.use_ssl = @uri.scheme == "https"
      http.max_retries = 0
      http.start { |open| open.request(request) }
    end

    def exchange_by_file(request)
      socket = UNIXSocket.new(@path.sub(/\A@/, "\0"))
      io = Net::BufferedIO.new(socket)
      write(request, io)
      response = Net::HTTPResponse.read_new(io) while response.nil? || response.is_a?(Net::HTTPContinue)
      response.reading_body(io, true) { nil }
      response
    ensure
      socket&.close
    end

    # A server that refuses a body closes before it has read it, as for Net::HTTP: its answer is there all the same.
    def write(request, io)
      request.exec(io, "1.1", request.path)
    rescue Errno::EPIPE
      nil
    end

    def read(response, count)
      status = response.code.to_i
      found = parse(response.body.to_s)
      results = results_of(status, found, count)
      return results if status == 200 && number_in(found)

      raise Error.new(reason(status, found), status: status, messages: results,
                                             published: [number_in(found).to_i, results.count(&:itself)].max)
    end

    # An answer that does not speak of messages refuses all of them, unless the server did not know itself.
    def results_of(status, found, count)
      given = found["messages"]
      return given if given.is_a?(Array) && given.size == count && given.all? { |one| result?(one) }
      return Array.new(count, true) if status == 200 && number_in(found)
      return Array.new(count, false) if status.between?(400, 499) || number_in(found)&.zero?

      Array.new(count)
    end

    # @return [Integer, nil] how many are published; nil: it does not say so
    def number_in(found)
      found["published"] if found["published"].is_a?(Integer)
    end

    def result?(value)
      value.is_a?(Integer) || [true, false, nil].include?(value)
    end

    def parse(text)
      found = JSON.parse(text.byteslice(0, SHOWN))
      found.is_a?(Hash) ? found : {}
    rescue JSON::ParserError, EncodingError
      {}
    end

    def reason(status, found)
      return "#{@url} does not publish: its answer is none of a control server" if status == 200

      words = { 404 => "it is no control server that publishes",
                413 => "the body is too long; without the right token 4 KiB are" }
      "#{@url} says #{status}: #{said(found["error"]) || words.fetch(status, "it does not publish")}"
    end

    # @return [String, nil] one short line; nil: it is no text
    def said(error)
      return unless error.is_a?(String)

      error.scrub[0, REASON].gsub(/[\u0000-\u001f\u007f-\u009f]+/, " ")
    end
  end
end
