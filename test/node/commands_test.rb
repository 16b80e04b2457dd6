# frozen_string_literal: true

# The commands up_node and up, which need no gem `rondo`.
# SPDX-License-Identifier: MIT

require "test_helper"
require "fileutils"
require "open3"
require "rondo/version"
require "support/certificates"
require "support/node_process"
require "support/raw_client"
require "tmpdir"

class NodeCommandsTest < Minitest::Test
  APP = File.expand_path("answers.ru", __dir__)
  RUBY = [RbConfig.ruby, "-I#{File.join(NodeProcess::ROOT, "node/lib")}"].freeze

  # One of the two commands, with workers.
  class Command < NodeProcess
    def self.running
      superclass.running
    end

    private

    def command_line(app, _settings, _config, _binds, args)
      name, *words = args
      [*RUBY, File.join(ROOT, "node/exe", name), "-b", "127.0.0.1", "-p", "0", *words, *app]
    end
  end

  def setup
    @servers = []
    @folder = Dir.mktmpdir
  end

  def teardown
    @servers.each(&:stop)
    FileUtils.rm_rf(@folder)
  end

  def start(*args)
    Command.new(APP, args: args).tap { |server| @servers << server }
  end

  def run_up(name, *args)
    Open3.capture2e({ "RONDO_NODE_CACHE" => NodeProcess::CACHE }, *RUBY, File.join(NodeProcess::ROOT, "node/exe", name), *args)
  end

  def test_up_node
    server = start("up_node", "-w", "2")
    assert_includes server.log, "in cluster mode (2 workers)"
    assert_equal "abcd", RawClient.open(server.url) { |client| client.request("GET /parts HTTP/1.1\r\nhost: a\r\n\r\n").body }
  end

  def test_up
    library = NodeProcess::UWS || File.join(@folder, "uws.js").tap { |path| File.write(path, "require('./uws.node')") }
    File.binwrite(File.join(@folder, "uws.node"), "no library")
    server = start("up", "-w", "1", "--uws-file", library)
    failed = server.log[/uWebSockets.js cannot be loaded \(.+\): Node's own HTTP server serves/]
    assert_equal NodeProcess::UWS.nil?, !failed.nil?, server.log
    response = RawClient.open(server.url) { |client| client.request("GET /parts HTTP/1.1\r\nhost: a\r\n\r\n") }
    assert_equal "abcd", response.body
    assert_equal NodeProcess::UWS.nil?, response.header("uwebsockets").nil?
  end

  def test_an_engine_that_there_is_not
    output, status = run_up("up", "--engine", "falcon", APP)
    assert_equal 2, status.exitstatus
    assert_equal "up: invalid argument: --engine falcon", output.chomp
  end

  def test_help_and_version
    output, status = run_up("up_node", "--help")
    assert status.success?
    %w[-p -b -s -a -c -k -l -P -v -w].each { |option| assert_match(/^ +#{option}, --/, output) }
    assert_equal "up_node #{Rondo::VERSION}\n", run_up("up_node", "-v").first
  end

  def test_tls
    Dir.mktmpdir do |folder|
      certificates = Certificates.new(folder)
      pair = certificates.pair("server")
      server = start("up_node", "-w", "0", "-s", "-c", pair.certificate, "-k", pair.key)
      output, = Open3.capture2e("curl", "-sS", "--cacert", certificates.authority, "--resolve", "localhost:#{server.own_port}:127.0.0.1",
                                "https://localhost:#{server.own_port}/seen")
      assert_includes output, "[\"rack.url_scheme\", \"https\"]"
      assert_includes output, "[\"HTTPS\", \"on\"]"
    end
  end
end
