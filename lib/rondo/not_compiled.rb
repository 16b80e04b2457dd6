# frozen_string_literal: true

# Raised if the extension is missing: in a clone, or with `gem "rondo", path:`, which Bundler does not compile.
# SPDX-License-Identifier: MIT

module Rondo
  # One line that says what to do.
  class NotCompiled < LoadError
    # Where the gem is.
    # @api private
    ROOT = File.expand_path("../..", __dir__)

    # Takes what `raise` gives; the message is always the same.
    def initialize(*)
      tool = File.join(ROOT, "tools/compile")
      clone = File.exist?(tool)
      why = ", because Bundler compiles no gem of path:" if clone && bundled?
      super("the extension of Rondo is not compiled for Ruby #{RUBY_VERSION}#{why}; compile it first: " \
            "#{clone ? tool : "gem pristine rondo"}")
    end

    private

    # Whether the Gemfile names this folder.
    def bundled?
      Gem.loaded_specs["rondo"]&.full_gem_path == ROOT && ENV.key?("BUNDLE_GEMFILE")
    end
  end
end
