# frozen_string_literal: true

# Where a running server is found.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo/command/running_server"
require "tmpdir"

class RunningServerTest < Minitest::Test
  def find(*words)
    server = Rondo::RunningServer.new
    parser = OptionParser.new
    server.define(parser)
    parser.parse(words)
    server.locate
  end

  def place(*words)
    find(*words).then { |server| [server.pid, server.url, server.token] }
  end

  def in_folder(files)
    Dir.mktmpdir do |folder|
      Dir.chdir(folder) do
        files.each { |name, text| File.write(name, text) }
        yield File.realpath(folder)
      end
    end
  end

  def test_an_address_of_its_own_is_only_in_the_state_file
    in_folder("rondo.rb" => "activate_control_app 'auto'\n") do
      error = assert_raises(Rondo::RunningServer::NotFound) { find("-C", "rondo.rb") }
      assert_equal "the control server of rondo.rb has an address of its own (auto), which only a state file tells: " \
                   "set state_path there, and start the server anew", error.message
    end
  end

  STATE = "---\npid: 12\nversion: 1\ncontrol_url: unix:///tmp/a b.sock\ncontrol_auth_token: \"12ab\"\n" \
          "running_from: /\naddresses:\n  - http://a\n"

  def test_a_state_file
    in_folder("state" => STATE, "puma" => "pid: 3\ncontrol_auth_token: x\n") do
      assert_equal [12, "unix:///tmp/a b.sock", "12ab"], place("-S", "state")
      assert_equal [12, "unix:///tmp/a b.sock", "mine"], place("-S", "state", "-T", "mine")
      assert_equal [3, nil, "x"], place("-S", "puma")
    end
  end

  def test_a_pid
    in_folder("pid" => "44\n", "none" => "x") do
      assert_equal [44, nil, nil], place("-P", "pid")
      assert_equal [5, nil, nil], place("-p", "5")
      assert_raises(Rondo::RunningServer::NotFound) { find("-P", "none") }
      assert_raises(Rondo::RunningServer::NotFound) { find("-p", "5").client }
    end
  end

  # kill(2) takes these as groups of processes.
  def test_what_is_no_pid
    in_folder("state" => "pid: \n", "other" => "pid: -1\n", "pid" => "-1\n") do
      [%w[-p 0], %w[-p -1], %w[-S state], %w[-S other], %w[-P pid]].each do |words|
        assert_match(/process id$/, assert_raises(Rondo::RunningServer::NotFound, words) { find(*words) }.message)
      end
    end
  end

  def test_a_configuration_file
    in_folder("a.rb" => "directory '/srv'\nstate_path 'state'\n", "state" => STATE,
              "b.rb" => "state_path 'state'\nactivate_control_app 'tcp://127.0.0.1:1', auth_token: 'u'\n",
              "c.rb" => "state_path 'none'\nactivate_control_app 'tcp://127.0.0.1:1', no_token: true\n",
              "d.rb" => "activate_control_app\n") do
      assert_match(%r{/srv/state}, assert_raises(Rondo::RunningServer::NotFound) { find("-C", "a.rb") }.message)
      assert_equal [12, "unix:///tmp/a b.sock", "12ab"], place("-C", "b.rb")
      assert_equal [nil, "tcp://127.0.0.1:1", nil], place("-F", "c.rb")
      assert_raises(Rondo::RunningServer::NotFound) { find("-C", "d.rb") }
      assert_raises(Rondo::RunningServer::NotFound) { find("-C", "-") }
    end
  end
end
