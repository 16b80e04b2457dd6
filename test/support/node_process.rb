# frozen_string_literal: true

# SPDX-License-Identifier: MIT
# `rondo node` as a subprocess, with a cache of its own below build/ for all tests. With RONDO_TEST_UWS, the path of a
# uws.js, uWebSockets.js serves HTTP.

require_relative "server_process"

class NodeProcess < ServerProcess
  CACHE = File.join(ROOT, "build/node-cache")
  # Without Bundler, as a shell starts it.
  COMMAND = [RbConfig.ruby, "-I#{File.join(ROOT, "lib")}", "-I#{File.join(ROOT, "node/lib")}",
             File.join(ROOT, "exe/rondo"), "node"].freeze

  UWS = ENV.fetch("RONDO_TEST_UWS", nil)
  ENGINE = UWS ? ["--engine", "uws", "--uws-file", UWS].freeze : [].freeze

  # @param test [Minitest::Test] which is skipped where uWebSockets.js serves
  # @param why [String] in which way the library is another one
  def self.only_on_node(test, why)
    test.skip("uWebSockets.js: #{why}") if UWS
  end

  def self.running
    superclass.running
  end

  # @param args [Array<String>] options of `rondo node`
  # @param env [Hash{String => String}]
  def initialize(app, args: [], env: {}, **options)
    super(app, args: args, env: { "RONDO_NODE_CACHE" => CACHE, **env }, binds: [nil], **options)
  end

  private

  def command_line(app, _settings, _config, _binds, args)
    [*COMMAND, "-b", "127.0.0.1", "-p", "0", *ENGINE, *args, *app]
  end
end
