# frozen_string_literal: true

# Puma::LogWriter of a bundle without the gem puma.
# SPDX-License-Identifier: MIT

require "stringio"
require "rondo/puma/log_errors"

module Puma
  # Writes lines to two outputs.
  class LogWriter
    include Rondo::PumaLogErrors

    # Where nothing is kept.
    class Nowhere
      # @return [Integer] bytes
      def write(*texts)
        texts.sum { |text| text.to_s.bytesize }
      end

      # @return [nil]
      def puts(*) = nil

      # @return [self]
      def flush = self

      # @return [Boolean]
      def sync = true
    end

    # @return [LogWriter] of this process
    def self.stdio(**)
      new($stdout, $stderr)
    end

    # @return [LogWriter] that keeps what is written
    def self.strings(**)
      new(StringIO.new, StringIO.new)
    end

    # @return [LogWriter] that keeps nothing
    def self.null(**)
      new(Nowhere.new, Nowhere.new)
    end

    # @return [#write]
    attr_reader :stdout
    # @return [#write]
    attr_reader :stderr
    # @return [#call] makes a line of a text
    attr_accessor :formatter
    # @return [#write, nil] gets the lines instead
    attr_accessor :custom_logger

    # @param stdout [#write]
    # @param stderr [#write]
    def initialize(stdout, stderr, env: ENV)
      @stdout = stdout
      @stderr = stderr
      @debug = env.key?("PUMA_DEBUG")
      @formatter = :itself.to_proc
    end

    # @param text [String]
    # @return [void]
    def log(text)
      return @custom_logger.write(format(text)) if @custom_logger.respond_to?(:write)

      write("#{text}\n")
    end

    # @param text [String]
    # @return [void]
    def write(text)
      put(@stdout, format(text))
    end

    # @param text [String]
    # @return [String]
    def format(text)
      @formatter.call(text)
    end
    alias line format
    private :line

    # @return [Boolean]
    def debug?
      @debug
    end

    # @param text [String]
    # @raise [SystemExit] always, as Puma's
    def error(text)
      put(@stderr, "#{line("ERROR: #{text}")}\n")
      exit 1
    end

    # @param error [Exception]
    # @param _request [Object, nil]
    # @param text [String]
    # @return [void]
    def unknown_error(error, _request = nil, text = "Unknown error")
      put(@stderr, "#{line("#{text}: #{error.message} (#{error.class})")}\n#{Array(error.backtrace).join("\n")}\n")
    end

    private

    def put(output, text)
      output.write(text)
      output.flush
    rescue SystemCallError, IOError
      nil # nowhere left to say it
    end
  end
end
