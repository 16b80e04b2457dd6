# frozen_string_literal: true

# `rondo publish CHANNEL MESSAGE`: publishes through the control server of a running server. Exit code 0, or 1 with one
# line on standard error, or 130 after Ctrl-C. With --confirm the id of a message that is kept is on standard output.
# SPDX-License-Identifier: MIT

require "rondo/command/running_server"
require "rondo/pubsub/publisher"

module Rondo
  # Parses the words behind `publish` and publishes.
  # @api private
  class Publish
    # Bytes that are read from standard input.
    LONGEST = 1 << 20

    # @param arguments [Array<String>]
    # @param out [IO]
    # @param err [IO]
    # @param input [IO]
    def initialize(arguments, out: $stdout, err: $stderr, input: $stdin)
      @arguments = arguments
      @out = out
      @err = err
      @input = input
      @server = RunningServer.new
    end

    # @return [Integer] 0 or 1; 130: it was interrupted
    def run
      channel, message, *rest = words
      return @done if @done
      raise Error, "the channel is missing" unless channel
      raise Error, "the message is missing; - reads it from standard input" unless message
      raise Error, "too many arguments: #{rest.join(" ")}" if rest.any?

      publish(text(channel, "the channel"), text(message == "-" ? read : message, "the message"))
      0
    rescue OptionParser::ParseError, Error, Publisher::Error => e
      CommandLine.fail_with(e, parser, @err)
    rescue Interrupt
      130
    end

    private

    # What comes after `--` is no option. optparse of Ruby 3.1 does not know it where options must be exact.
    def words
      at = @arguments.index("--") || @arguments.size
      parser.parse(@arguments.take(at)) + @arguments.drop(at + 1)
    end

    def parser
      OptionParser.new do |options|
        options.banner = "Usage: rondo publish CHANNEL MESSAGE [options]\n\nMESSAGE: text, or - for standard input\n\n"
        options.require_exact = true
        @server.define(options)
        options.on("--confirm SECONDS", Float, "wait until the engine has the message; print its id if it is " \
                                               "kept") { |seconds| @confirm = seconds }
        options.on("-h", "--help", "show this text") do
          @out.puts options.help
          @done = 0
        end
      end
    end

    # @return [void]
    def publish(channel, message)
      id = publisher.publish(channel, message, confirm: @confirm)
      @out.puts id if id.is_a?(Integer)
    rescue ArgumentError => e
      raise Error, e.message
    end

    def publisher
      @server.locate
      client = @server.client # which knows why there is no address
      Publisher.new(client.url, token: @server.token)
    rescue ArgumentError => e
      raise Error, e.message
    end

    def text(given, what)
      text = given.dup.force_encoding(Encoding::UTF_8)
      text.valid_encoding? ? text : raise(Error, "#{what} is not valid UTF-8")
    end

    def read
      text = input
      text.bytesize > LONGEST ? raise(Error, "the message is longer than #{LONGEST} bytes") : text
    end

    def input
      raise IOError, "it is closed" unless @input

      @input.read(LONGEST + 1).to_s
    rescue SystemCallError, IOError => e
      reason = e.is_a?(SystemCallError) ? SystemCallError.new(nil, e.errno).message : e.message
      raise Error, "cannot read standard input: #{reason}"
    end
  end
end
