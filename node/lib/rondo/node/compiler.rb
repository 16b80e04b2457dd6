# frozen_string_literal: true

# Compiles an application and everything that it requires to one JavaScript file. Each Ruby file becomes a module with
# the name of its path; the names that `require` uses become aliases. So a file runs once, whatever it is called.
# SPDX-License-Identifier: MIT

require "json"
require "opal"
require "rondo/node/cache"
require "rondo/node/guards"
require "rondo/node/sources"

module Rondo
  module Node
    # One build.
    class Compiler
      # What is kept of a compiled file.
      Piece = Struct.new(:code, :requires, :optional, :source_map)
      # What runs before the application, in this order.
      FIRST = %w[opal rondo/boot].freeze
      OPTIONS = { requirable: true, dynamic_require_severity: :ignore }.freeze
      # Of the kept pieces; another number makes all of them anew.
      FORMAT = "7 #{OPAL_VERSION} #{RUBY_VERSION}".freeze
      # Roda's plugins.
      NAMED = { /\bplugin\b[ (]+:(\w+)/ => "roda/plugins/%<name>s" }.freeze
      # One mark for a whole file: what comes from here comes from no source.
      NO_SOURCE = { version: 3, sources: [], names: [], mappings: "A" }.freeze
      # Where the code of a file says its name.
      DEFINITION = /^Opal\.modules\["(?:[^"\\]|\\.)*"\]/
      private_constant :NAMED, :NO_SOURCE, :DEFINITION, :Piece, :FIRST, :OPTIONS, :FORMAT

      # Opal's compiler, which tells everybody about flags of regular expressions.
      class Quiet < Opal::Compiler
        def warning(_message, _line = nil); end
      end

      # @return [Array<String>] the files of the build, without Opal's
      attr_reader :files

      # @param rackup [String] absolute path of config.ru
      # @param cache [Cache]
      def initialize(rackup, cache)
        @rackup = rackup
        @cache = cache
        @sources = Sources.new(File.dirname(rackup))
        @aliases = {}
        @modules = {}
        @files = []
        Opal::Parser.default_parser_class.diagnostics_consumer = ->(_diagnostic) {} # the exception says it, too
      end

      # @yield [Integer] the number of files that are done
      # Compiles all files.
      # @raise [Error] with file and line
      def call(&progress)
        @progress = progress
        @modules[@sources.find("corelib/runtime.js")] = runtime
        FIRST.each { |feature| add(feature, nil) }
        add_file(@rackup)
      end

      # @return [String] JavaScript that exports `boot` and `application`, the name of the application's module
      def code
        [*@modules.values.map(&:code), *alias_lines, *last_lines].join("\n")
      end

      # The JavaScript is wrong in this line. A file of a gem is left out: whoever requires it gets a LoadError.
      # @param line [Integer]
      # @raise [Error] it is of the application
      def leave_out(line, message)
        path = path_of(line) or raise Error, "Opal's output is not valid: #{message}"
        raise Error, "#{path}: its JavaScript is not valid: #{message}" if @sources.application?(path)

        @modules[path] = Piece.new(refusal(path, "#{path}: #{message}"), [], [])
      end

      # @return [Hash] the source map of that JavaScript, with one section for each file
      def source_map
        line = 0
        sections = @modules.values.map do |piece|
          section = { offset: { line: line, column: 0 }, map: piece.source_map || NO_SOURCE }
          line += piece.code.count("\n") + 1
          section
        end
        sections << { offset: { line: line, column: 0 }, map: NO_SOURCE }
        { version: 3, sources: [], sections: sections } # Node looks for `sources`, too
      end

      private

      def path_of(line)
        @modules.each do |path, piece|
          line -= piece.code.count("\n") + 1
          return path unless line.positive?
        end
        nil
      end

      def runtime
        Piece.new("#{File.read(@sources.find("corelib/runtime.js"))}\nOpal.loaded([\"corelib/runtime.js\"]);\n")
      end

      def alias_lines
        lines = @aliases.map do |name, path|
          "Opal.modules[#{quote(name)}] = alias(#{quote(module_name(path))});"
        end
        ["const alias = name => () => Opal.require(name);", *lines]
      end

      # The engine calls `boot` with the object that Ruby knows as Opal.rondo.
      def last_lines
        required = FIRST.map { |feature| "  Opal.require(#{quote(feature)});" }
        ["exports.boot = engine => {", "  Opal.rondo = engine;", *required, "  return Opal;", "};",
         "exports.application = #{quote(module_name(@rackup))};", "//# sourceMappingURL=application.js.map\n"]
      end

      # @return [String] a literal of JavaScript
      def quote(text)
        JSON.generate(text)
      end

      def module_name(path)
        path == @rackup ? path.delete_prefix("/") : @sources.name_of(path)
      end

      # @param from [String, nil] path of the file that requires it
      def add(feature, from, optional: false)
        path = find(feature, optional)
        return missing(feature, from, optional) unless path

        name(feature, path)
        add_file(path)
      rescue CompiledGem => e
        raise unless from && @sources.application?(from)

        raise Error, "#{place(feature, from)}: #{e.message}"
      end

      def find(feature, optional)
        @sources.find(feature)
      rescue CompiledGem
        raise unless optional
      end

      # As Opal's runtime normalizes it.
      def name(feature, path)
        parts = feature.sub(/\.(?:rb|js)\z/, "").split("/").grep_v(/\A\.?\z/)
        normal = parts.each_with_object([]) { |part, kept| part == ".." ? kept.pop : kept << part }.join("/")
        @aliases[normal] = path unless normal == module_name(path)
      end

      def add_file(path)
        return if @modules.key?(path)

        @modules[path] = nil # files may require each other
        piece = path.end_with?(".js") ? script(path) : ruby(path)
        @modules[path] = piece
        @files << path unless @sources.opal?(path)
        @progress&.call(@modules.size)
        piece.requires.each { |feature| add(feature, path, optional: optional?(feature, piece, path)) }
      end

      # Gems name libraries that they may never need, in files that are loaded only when they are used.
      def optional?(feature, piece, path)
        piece.optional.include?(feature) || !@sources.application?(path)
      end

      def script(path)
        Piece.new("#{File.read(path)}\nOpal.loaded([#{quote(module_name(path))}]);\n", [], [])
      end

      def ruby(path)
        source = @sources.read(path)
        raise Error, "#{path}: it is not UTF-8" unless source.valid_encoding?

        source = source.sub(/^__END__\n.*\z/m, "") if path == @rackup
        key = "pieces/#{Digest::SHA256.hexdigest([FORMAT, path, source].join("\0"))[0, 40]}"
        kept = @cache.get(key)
        return Piece.new(*JSON.parse(kept)) if kept

        compile(path, source).tap { |piece| @cache.put(key, JSON.generate(piece.to_a)) }
      end

      def compile(path, source)
        compiler = Quiet.new(source, OPTIONS.merge(file: file_name(path)))
        code = compiler.compile.sub(DEFINITION) { "Opal.modules[#{quote(module_name(path))}]" }
        requires = compiler.requires.uniq
        named = named_at_run_time(source)
        Piece.new(code, requires | named, compiler.autoloads + named + guarded(source, requires),
                  map_of(path, compiler))
      rescue Opal::SyntaxError, Opal::Error => e
        raise Error, complaint(path, source, e) if @sources.application?(path)

        Piece.new(refusal(path, complaint(path, source, e)), [], [])
      end

      # A file of a gem that Opal cannot compile: whoever requires it gets a LoadError.
      def refusal(path, text)
        "Opal.modules[#{quote(module_name(path))}] = Opal => Opal.Kernel.$raise(Opal.LoadError, #{quote(text)});\n"
      end

      # Backtraces have lines of the application, but not of Opal: maps of all files would take as long to read as the
      # code.
      def map_of(path, compiler)
        return if @sources.opal?(path)

        compiler.source_map.to_h.slice(:version, :sources, :names, :mappings).merge(sources: ["file://#{path}"])
      end

      # The name in backtraces, and what __FILE__ and __dir__ say.
      def file_name(path)
        @sources.opal?(path) ? "#{@sources.name_of(path)}.rb" : path
      end

      def complaint(path, source, error)
        line = error.backtrace.to_a.first.to_s[/:(\d+):in /, 1]
        text = error.message.lines.map(&:strip).reject(&:empty?).first.to_s
        text = text.delete_prefix("#{path}:").sub(/\A\d*:?\s*/, "").sub(/\AUnsupported sexp: /,
                                                                        "Opal does not support ")
        shown = line && source.lines[line.to_i - 1].to_s.strip
        [line ? "#{path}:#{line}" : path, text, shown].compact.reject(&:empty?).join(": ")
      end

      # Features whose names are made when the program runs: all of them that the file may mean are compiled.
      def named_at_run_time(source)
        NAMED.flat_map { |pattern, feature| source.scan(pattern).map { |(name)| format(feature, name: name) } }.uniq
      end

      # Features that the file can do without: their `require` is inside of a method, or of a `begin` with `rescue`.
      def guarded(source, requires)
        requires.all? { |feature| found?(feature) } ? [] : Guards.new(source).features
      end

      def found?(feature)
        @sources.find(feature)
      rescue Error
        false # the place is known when the feature is added
      end

      def missing(feature, from, optional)
        return if optional

        raise Error, "#{place(feature, from)}: there is no #{feature} for Opal: " \
                     "neither the application, nor Opal's library, nor a gem has it"
      end

      def place(feature, from)
        return feature unless from

        stem = feature.start_with?("/") ? File.basename(feature) : feature
        lines = File.foreach(from).with_index(1)
        number = lines.find { |line, _| line.include?("require") && line.include?(stem) }&.last
        number ? "#{from}:#{number}" : from
      end
    end
  end
end
