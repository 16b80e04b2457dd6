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
      command = File.exist?(tool) ? tool : "gem pristine rondo"
      super("the extension of Rondo is not compiled for Ruby #{RUBY_VERSION}; compile it first: #{command}")
    end
  end
end
