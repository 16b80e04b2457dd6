# frozen_string_literal: true

# The page for an exception, in development only: it shows the backtrace.
# SPDX-License-Identifier: MIT

module Rondo
  # Makes a Rack response out of an exception.
  # @api private
  module ErrorPage
    ESCAPES = { "&" => "&amp;", "<" => "&lt;", ">" => "&gt;", '"' => "&quot;" }.freeze

    module_function

    # @param error [Exception]
    # @param env [Hash]
    # @return [Array(Integer, Hash, Array<String>)]
    def call(error, env)
      page = html("#{error.class}: #{escape(error.message)}",
                  "#{env["REQUEST_METHOD"]} #{escape(env["PATH_INFO"])}",
                  (error.backtrace || []).map { |line| escape(line) }.join("\n"))
      [500, { "content-type" => "text/html; charset=utf-8" }, [page]]
    end

    def html(title, request, backtrace)
      <<~HTML
        <!DOCTYPE html>
        <html lang="en"><head><meta charset="utf-8"><title>#{title}</title>
        <style>body { font: 15px/1.5 system-ui, sans-serif; margin: 3em auto; max-width: 60em;
        padding: 0 1em; overflow-wrap: anywhere }
        pre { background: #f4f4f4; overflow: auto; padding: 1em }</style></head>
        <body><h1>#{title}</h1><p>#{request}</p><pre>#{backtrace}</pre>
        <p>Shown because the environment is development.</p></body></html>
      HTML
    end
    private_class_method :html

    def escape(text)
      text.to_s.dup.force_encoding(Encoding::UTF_8).scrub.gsub(/[&<>"]/, ESCAPES)
    end
    private_class_method :escape
  end
end
