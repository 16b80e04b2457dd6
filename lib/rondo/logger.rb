# frozen_string_literal: true

# The server's own lines (boot, stop, refusals, errors); request lines are made by the extension and
# go elsewhere. Nothing that came from a client reaches a terminal unescaped.
# SPDX-License-Identifier: MIT

module Rondo
  # Writes lines to an IO or to a custom logger.
  class Logger
    # CTL, DEL and ESC; newline and tab stay, because backtraces have them.
    CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f]/n

    # @param io [IO] where lines go
    # @param custom [#write, #info, nil] a logger of the application; gets the lines instead
    # @param formatter [Proc, nil] called with a line, answers the line to write
    # @param quiet [Boolean] leaves out info lines
    # @param silent [Boolean] leaves out everything but errors
    # @param json [Boolean] one JSON object a line
    def initialize(io: $stderr, custom: nil, formatter: nil, quiet: false, silent: false, json: false)
      @io = io
      @custom = custom
      @formatter = formatter
      @quiet = quiet || silent
      @silent = silent
      @json = json
      require "json" if json
    end

    # A logger that says nothing but errors: the default of a server inside another program.
    # @return [Logger]
    def self.errors_only
      new(silent: true)
    end

    # @param line [String]
    # @return [void]
    def info(line)
      put(:info, line) unless @quiet
    end

    # @param line [String]
    # @return [void]
    def warn(line)
      put(:warn, line) unless @silent
    end

    # @param line [String] may have several lines
    # @return [void]
    def error(line)
      put(:error, line)
    end

    # A line of the boot or stop block.
    # @param line [String]
    # @return [void]
    def say(line)
      put(:info, line) unless @quiet
    end

    # @param text [String]
    # @return [String] with control characters made visible
    def self.escape(text)
      text.b.gsub(CONTROL) { |char| format("\\x%02X", char.ord) }.force_encoding(text.encoding)
    end

    private

    def put(level, line)
      line = Logger.escape(line)
      return custom(level, line) if @custom

      line = json(level, line) if @json
      line = @formatter.call(line) if @formatter
      @io.write("#{line}\n")
      @io.flush
    rescue SystemCallError, IOError
      nil # nowhere left to say it
    end

    def custom(level, line)
      @custom.respond_to?(level) ? @custom.public_send(level, line) : @custom.write("#{line}\n")
    end

    def json(level, line)
      JSON.generate(time: Time.now.strftime("%FT%T.%L%z"), level: level, message: line.dup.force_encoding(Encoding::UTF_8).scrub)
    end
  end
end
