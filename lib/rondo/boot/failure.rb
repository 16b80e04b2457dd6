# frozen_string_literal: true

# Describes an exception that the application raised while it was loaded (application.rb): the innermost
# place in the application's own code, and the backtrace for the log.
# SPDX-License-Identifier: MIT

require "rbconfig"
require "rondo/boot/error"

module Rondo
  # One exception, seen from the application's folder.
  # @api private
  class BootFailure
    # A backtrace of an endless recursion has thousands of frames: this many from its beginning and from its end.
    SHOWN = 50
    # Causes of causes that are followed.
    CAUSES = 5
    CODE_MAX = 160
    RONDO = File.expand_path("../..", __dir__)
    # "path:12:in 'name'" and a message of the parser, "path:12: syntax error".
    FRAME = /\A(?<path>[^\n]+?):(?<line>\d+)(?::\s*(?<rest>.*))?$/

    # @param error [Exception]
    # @param rackup [String, nil] path of the rackup file, named if no other place is known
    # @param folder [String] the application's; the place is named from there
    # @param debug [Boolean] keeps the frames of the server in the backtrace
    def initialize(error, rackup, folder: Dir.pwd, debug: false)
      @rackup = File.expand_path(rackup, folder) if rackup
      @folder = folder
      @debug = debug
      @chain = chain_of(error)
    end

    # @return [String] place, message, class and the line of code, in one line
    def line
      path, number = place
      code = path && code_at(path, number)
      where = "#{path ? short(path) : "the application"}#{":#{number}" if number}"
      "#{where}: #{words}#{", at `#{code}`" if code}"
    end

    # @return [String] the whole message with the backtrace, causes included
    def trace
      @chain.each_with_index.map do |error, index|
        "#{"caused by " if index.positive?}#{described(error)}"
      end.join("\n    ")
    end

    private

    def chain_of(error)
      chain = [error]
      chain << chain.last.cause while chain.size <= CAUSES && chain.last.cause && !chain.include?(chain.last.cause)
      chain
    end

    # ---- where ----

    # The innermost frame of the application. The rackup file is the last choice, also before frames of
    # a cause: it loads everything, so it says nothing.
    def place
      return parsed if parsed

      places = @chain.flat_map { |error| frames(error) }.select { |path, _| own?(path) }
      places.find { |path, _| path != @rackup } || places.first || [@rackup, nil]
    end

    # Where a file cannot be parsed, the message alone says which and where.
    def parsed
      error = @chain.first
      return unless error.is_a?(SyntaxError) && (match = FRAME.match(BootError.message(error)))

      path = File.expand_path(match[:path], @folder)
      [path, match[:line].to_i] if File.file?(path)
    end

    def frames(error)
      without_server(backtrace(error)).filter_map do |frame|
        match = FRAME.match(frame) or next
        [File.expand_path(match[:path], @folder), match[:line].to_i] unless match[:path].start_with?("<internal:", "(")
      end
    end

    def own?(path)
      return true if path == @rackup

      roots.any? { |root| below?(root, path) } && foreign.none? { |root| below?(root, path) }
    end

    # A file is known by the name it was required under, or by its real one.
    def roots
      @roots ||= [@folder, (File.dirname(@rackup) if @rackup)].compact.flat_map { |root| both_names(root) }.uniq
    end

    # Code in the folder of the application that is not its own: gems, Ruby, this server.
    def foreign
      gems = defined?(Gem) ? [*Gem.path, Gem.default_dir] : [] # `ruby --disable-gems` has none
      @foreign ||= [*gems, RbConfig::CONFIG["rubylibprefix"], RONDO,
                    *roots.map { |root| File.join(root, "vendor/bundle") }].flat_map { |root| both_names(root) }.uniq
    end

    def both_names(folder)
      [folder, File.realpath(folder)].uniq
    rescue SystemCallError
      [folder]
    end

    def below?(root, path)
      path.start_with?(root == "/" ? root : "#{root}/")
    end

    def short(path)
      roots.each { |root| return path.delete_prefix("#{root}/") if path.start_with?("#{root}/") }
      path
    end

    def code_at(path, number)
      return unless number

      code = File.foreach(path).lazy.drop(number - 1).first.to_s
      code = BootError.utf8(code).strip[0, CODE_MAX]
      code unless code.empty?
    rescue SystemCallError
      nil
    end

    # ---- what ----

    def words
      return BootError.words(@chain.first) unless parsed

      "#{FRAME.match(BootError.message(@chain.first))[:rest]} (#{@chain.first.class})"
    end

    def described(error)
      lines = BootError.title(error).split("\n") + shown(backtrace(error)).map { |frame| BootError.utf8(frame) }
      lines.join("\n    ")
    end

    def shown(frames)
      frames = without_server(frames) unless @debug
      return frames if frames.size <= 2 * SHOWN

      [*frames.first(SHOWN), "... #{frames.size - (2 * SHOWN)} more ...", *frames.last(SHOWN)]
    end

    # From the call of the server on, the frames say nothing about the application.
    def without_server(frames)
      frames.take_while { |frame| !frame.start_with?("#{RONDO}/rondo/boot/application.rb:") }
    end

    # An exception may have no backtrace, and its class may return anything.
    def backtrace(error)
      Array(error.backtrace).grep(String)
    rescue StandardError
      []
    end
  end
end
