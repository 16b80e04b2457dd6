# frozen_string_literal: true

# The public folder of a listener that has an application of its own. That of the first application is the server's,
# which serves it without Ruby.
# SPDX-License-Identifier: MIT

module Iodine
  # @api private
  module Base
    # Its files come before the application.
    class PublicFiles
      # A part of the path that begins with a dot.
      HIDDEN = %r{(?:\A|/)\.}n
      METHODS = %w[GET HEAD].freeze

      # @param folder [String]
      # @param app [#call]
      def initialize(folder, app)
        require "rack" # which a program without such a folder does without
        @files = ::Rack::Files.new(File.expand_path(folder))
        @app = app
      end

      # @param env [Hash]
      # @return [Array]
      def call(env)
        path = env["PATH_INFO"]
        return @app.call(env) if !METHODS.include?(env["REQUEST_METHOD"]) || hidden?(path)

        answer = @files.call(path.end_with?("/") ? env.merge("PATH_INFO" => "#{path}index.html") : env)
        [404, 405].include?(answer.first) ? @app.call(env) : answer
      end

      private

      # As the files are found: a slash may be escaped, too.
      def hidden?(path)
        HIDDEN.match?(::Rack::Utils.unescape_path(path).b)
      end
    end
  end
end
