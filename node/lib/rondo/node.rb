# frozen_string_literal: true

# Compiles a Rack application to JavaScript with Opal and serves it on Node. node/cli.rb is the command line,
# node/build.rb finds or makes the JavaScript, node/engine/ is the server in JavaScript, and node/opal/ is the Ruby that
# is compiled together with the application.
# SPDX-License-Identifier: MIT

module Rondo
  module Node
    # That of all gems of the project.
    VERSION = "0.1.0"

    # What is wrong with the application or with this machine: one line for the user.
    class Error < StandardError; end

    # Where the files of this gem are.
    ROOT = File.expand_path("../..", __dir__)
    # The released Opal that everything is compiled with; the gemspec asks for the same.
    OPAL_VERSION = "1.8.3"
    # The oldest Node that the tests know.
    NODE_MAJOR = 20
  end
end
