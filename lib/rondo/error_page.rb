# frozen_string_literal: true

# The answer to an exception, in development only: the backtrace, and the lines of the application around the error.
# A client that does not ask for HTML gets the backtrace as text. Files are shown only below the application's folder,
# and only sources, because a backtrace may say anything.
# SPDX-License-Identifier: MIT

module Rondo
  # Makes a Rack response out of an exception.
  # @api private
  module ErrorPage
    ESCAPES = { "&" => "&amp;", "<" => "&lt;", ">" => "&gt;", '"' => "&quot;", "'" => "&#39;" }.freeze
    # Lines that are shown before and behind that of the error.
    AROUND = 5
    # Bytes of a file that is shown, and characters of a line.
    LARGEST = 1 << 20
    WIDEST = 200
    # Places of a backtrace that are looked at.
    DEEPEST = 200
    SOURCES = %w[.rb .ru .rake .erb .haml .slim].freeze
    # Gems that an application keeps in its own folder are not its sources.
    OF_GEMS = %r{/(?:vendor/bundle|\.bundle|node_modules)/}
    STYLE = <<~CSS
      :root { color-scheme: light dark }
      body { font: 15px/1.5 system-ui, sans-serif; margin: 3em auto; max-width: 60em; padding: 0 1em;
        overflow-wrap: anywhere; background: Canvas; color: CanvasText }
      pre { background: #8881; overflow: auto; padding: 1em }
      pre b { background: #f443; display: inline-block; min-width: 100% }
    CSS
    private_constant :AROUND, :LARGEST, :WIDEST, :DEEPEST, :SOURCES, :OF_GEMS, :STYLE

    module_function

    # @param error [Exception]
    # @param env [Hash]
    # @param root [String] the folder of the application
    # @return [Array(Integer, Hash, Array<String>)]
    def call(error, env, root: Dir.pwd)
      title = "#{error.class}: #{clean(error.message)}"
      request = "#{env["REQUEST_METHOD"]} #{clean(env["PATH_INFO"])}"
      trace = (error.backtrace || []).map { |line| clean(line) }
      return response("plain", [title, request, "", *trace, ""].join("\n")) unless html?(env["HTTP_ACCEPT"])

      response("html", page(escape(title), escape(request), source(trace, root), escape(trace.join("\n"))))
    end

    def response(type, body)
      [500, { "content-type" => "text/#{type}; charset=utf-8", "x-content-type-options" => "nosniff" }, [body]]
    end

    # A client that says it: programs mostly accept anything, or name what they want.
    def html?(accept)
      accept.to_s.match?(%r{text/html|application/xhtml\+xml}i)
    end

    def page(title, request, source, backtrace)
      <<~HTML
        <!DOCTYPE html>
        <html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
        <title>#{title}</title><style>#{STYLE}</style></head>
        <body><h1>#{title}</h1><p>#{request}</p>#{source}<pre>#{backtrace}</pre>
        <p>Shown because the environment is development.</p></body></html>
      HTML
    end

    # @return [String, nil] HTML: the lines around the first place of the backtrace that is the application's
    def source(trace, root)
      root = File.realpath(root)
      trace.first(DEEPEST).each do |line|
        path, number = line.match(/\A(.+?):(\d{1,7})(?::in |\z)/)&.captures
        file = path && source_file(path, root) or next
        lines = excerpt(file, number.to_i) or next
        return "<h2>#{escape(file.delete_prefix("#{root}/"))}:#{number}</h2><pre>#{lines}</pre>"
      end
      nil
    rescue SystemCallError
      nil # the folder is gone
    end

    # @return [String, nil] the path, if it is a source below the folder; a link that leads elsewhere is not
    def source_file(path, root)
      file = File.realpath(path, root)
      return unless file.start_with?("#{root}/") && !file.delete_prefix(root).match?(OF_GEMS)

      stat = File.stat(file)
      file if SOURCES.include?(File.extname(file)) && stat.file? && stat.size <= LARGEST
    rescue SystemCallError, ArgumentError
      nil # "(eval)", or a file of a system that has changed
    end

    # @return [String, nil] HTML; nil: the file has no such line
    def excerpt(file, number)
      lines = clean(File.binread(file, LARGEST)).lines(chomp: true)
      return unless number.between?(1, lines.size)

      first = [number - AROUND, 1].max
      lines[(first - 1)..(number + AROUND - 1)].each.with_index(first).map do |line, at|
        text = escape(format("%<at>5d  %<line>s", at: at, line: line[0, WIDEST]))
        at == number ? "<b>#{text}</b>" : text
      end.join("\n")
    rescue SystemCallError
      nil
    end

    def clean(text)
      text.to_s.dup.force_encoding(Encoding::UTF_8).scrub
    end

    def escape(text)
      text.gsub(/[&<>"']/, ESCAPES)
    end
    private_class_method :response, :html?, :page, :source, :source_file, :excerpt, :clean, :escape
  end
end
