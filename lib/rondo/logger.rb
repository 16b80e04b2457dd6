# frozen_string_literal: true

# The server's own lines: what it says of itself (boot, stop, workers) goes to standard output, as Puma's lines do;
# notes, refusals, warnings and errors go to standard error. Request lines are made by the extension. Nothing that came
# from a client reaches a terminal unescaped, or looks like a line of the log: the further lines of an entry are
# indented. In a file or a pipe a line begins with the time, and in a worker with its number.
# SPDX-License-Identifier: MIT

module Rondo
  # Writes lines to an IO or to a custom logger.
  # @api private
  class Logger
    # CTL, DEL and ESC, the second set of them (U+009B is another ESC [), line ends that only some programs
    # know, and what turns the direction of text round. Newline and tab stay, because backtraces have them.
    CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/
    # A further line of an entry that looks like the first line of another entry.
    UNINDENTED = /\n(?=[^ \t\n])/
    INDENTATION = "\n    "
    NONE = {}.freeze
    private_constant :UNINDENTED, :INDENTATION, :NONE

    # @return [Integer, nil] the number of the worker whose lines these are
    attr_accessor :worker

    # @param io [IO, nil] where all lines go; nil: standard output and standard error
    # @param custom [#write, #info, nil] a logger of the application; gets the lines instead
    # @param formatter [Proc, nil] called with a line, answers the line to write
    # @param quiet [Boolean] leaves out info lines
    # @param silent [Boolean] leaves out everything but errors
    # @param json [Boolean] one JSON object a line
    # @param time [Symbol] whether a line begins with the time: :always, :never, or :auto, which is not on a terminal
    #   and not in systemd's journal; a formatter, JSON and a custom logger go without
    def initialize(io: nil, custom: nil, formatter: nil, quiet: false, silent: false, json: false, time: :never)
      @out = io || $stdout
      @err = io || $stderr
      @custom = custom
      @formatter = formatter
      @quiet = quiet || silent
      @silent = silent
      @json = json
      @time = json || formatter || custom ? :never : time
      require "json" if json
    end

    # Each line also goes to the journal of the server, which its status page shows.
    # @param scoreboard [Scoreboard]
    # @return [void]
    def note_in(scoreboard)
      @journal = scoreboard
    end

    # A logger that only writes errors: the default of a server inside another program.
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
    # @param fields [Hash{String => String}] what a line of JSON has besides
    # @return [void]
    def error(line, fields = NONE)
      put(:error, line, @err, fields)
    end

    # @return [Boolean] whether a line has fields: it is JSON, and the server writes it
    def fields?
      @json && !@custom
    end

    # A line of the boot or stop block, for standard output; one that begins with "!" is a note, and goes where warnings
    # go.
    # @param line [String]
    # @return [void]
    def say(line)
      put(:info, line, line.start_with?("!") ? @err : @out) unless @quiet
    end

    # @param text [String] in whatever encoding, read as UTF-8
    # @return [String] valid UTF-8, control characters and other bytes made visible
    def self.escape(text)
      text = text.dup.force_encoding(Encoding::UTF_8)
      text = text.scrub { |bytes| bytes.bytes.map { |byte| format("\\x%02X", byte) }.join } unless text.valid_encoding?
      text.gsub(CONTROL) { |char| format(char.ord < 0x80 ? "\\x%02X" : "\\u%04X", char.ord) }
    end

    # @param text [String] that is quoted within a line
    # @return [String] of one line
    def self.quote(text)
      escape(text).gsub("\n", "\\x0A")
    end

    private

    def put(level, line, io = @err, fields = NONE)
      line = Logger.escape(line)
      @journal&.note(level, @worker, line)
      line = line.gsub(UNINDENTED, INDENTATION) unless @json
      return custom(level, line) if @custom

      line = json(level, line, fields) if @json
      line = @formatter.call(line) if @formatter
      line = "#{now} #{"[worker #{@worker}] " if @worker}#{line}" if time?(io)
      io.write("#{line}\n")
      io.flush
    rescue SystemCallError, IOError
      nil # nowhere left to say it
    end

    def custom(level, line)
      @custom.respond_to?(level) ? @custom.public_send(level, line) : @custom.write("#{line}\n")
    end

    def json(level, line, fields)
      fields = fields.to_h { |name, text| [Logger.escape(name.to_s), Logger.escape(text.to_s)] }
      JSON.generate({ time: now, level: level, pid: Process.pid, worker: @worker, message: line, **fields }.compact)
    end

    def now
      Time.now.strftime("%FT%T.%L%z")
    end

    # Asked for each line: the output may be another one since the last line (stdout_redirect).
    def time?(io)
      @time == :always || (@time == :auto && !io.tty? && !journal?(io))
    end

    # systemd.exec(5): JOURNAL_STREAM has device and inode of the socket to the journal, which has a time of its own.
    def journal?(io)
      stream = ENV.fetch("JOURNAL_STREAM", nil) or return false
      file = io.stat
      stream == "#{file.dev}:#{file.ino}"
    rescue NoMethodError
      false # an object that only writes
    end
  end
end
