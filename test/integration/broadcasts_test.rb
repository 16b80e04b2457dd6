# frozen_string_literal: true

# Broadcasts of another process while a server without workers becomes another program.
# SPDX-License-Identifier: MIT

require_relative "shell_case"
require "rondo"
require "rondo/rails/cable/publisher"

class BroadcastsTest < ShellCase
  Cable = Rondo::Rails::Cable

  # Notes what it takes. After a restart it listens when the gate is opened.
  TAKING = <<~RUBY
    require "logger"
    require "rondo/rails/cable/listener"
    folder = Rondo::Rails::Cable::SocketFolder.new({ "socket_folder" => "sockets" })
    listener = Rondo::Rails::Cable::Listener.new(folder, Logger.new($stderr)) do |_, message|
      File.write("taken", "\#{message}\\n", mode: "a")
    end
    Rondo.run do
      File.read("gate") if File.exist?("taken")
      listener.start
    end
    run ->(_) { [200, {}, []] }
  RUBY

  def setup
    super
    write "config.ru", TAKING
    File.mkfifo(File.join(@folder, "gate"))
    @listening = Cable::SocketFolder.new({ "socket_folder" => File.join(@folder, "sockets") })
  end

  def publisher
    Cable::Publisher.new(@listening)
  end

  def test_no_message_is_lost_while_a_process_restarts
    server = start
    Timeout.timeout(PATIENCE) { sleep 0.01 while @listening.sockets.empty? }
    last = 0
    over = false
    sender = Thread.new { publisher.then { |one| one.publish("a", (last += 1).to_s, patience: 300) until over } }
    Timeout.timeout(PATIENCE) { sleep 0.01 until last > 10 }
    server.signal("USR2")
    server.wait_for_log(/Restarting.*Use Ctrl-C to stop/m)
    assert_raises(Cable::Undelivered) { publisher.publish("a", "too late", patience: 0.1) }.then do |error|
      refute_kind_of Cable::NoServer, error
    end
    File.write(File.join(@folder, "gate"), "")
    again = last + 10
    Timeout.timeout(PATIENCE) { sleep 0.01 until last > again }
    over = true
    sender.value
    assert_equal (1..last).map(&:to_s), read("taken").lines(chomp: true).uniq
  end
end
