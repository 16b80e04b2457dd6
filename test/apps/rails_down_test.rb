# frozen_string_literal: true

# SPDX-License-Identifier: MIT

require_relative "app_case"
require "rondo"
require "rondo/rails/cable/publisher"
require "support/cable_peer"

# An adapter of Action Cable that is away when clients come, and a server that is away when jobs broadcast.
class RailsDownTest < Minitest::Test
  APP = File.join(__dir__, "rails_down/config.ru")

  def test_a_client_that_asks_again_is_confirmed_when_the_adapter_is_there
    Dir.mktmpdir do |folder|
      up = File.join(folder, "up")
      ServerProcess.run(APP, env: { "UP" => up, "RAILS_ENV" => "production" }) do |server|
        peer = CablePeer.new(server.url).welcomed
        id = peer.ask("RoomsChannel")
        server.wait_for_log(/RoomsChannel cannot stream from room: it is down \(RuntimeError\)/)
        File.write(up, "")
        assert_equal id, peer.subscribe("RoomsChannel")
        assert_equal "heard", peer.perform(id, "say", text: "heard").hear_of(id)
      ensure
        peer&.close
      end
    end
  end

  # A single process that becomes another program has no socket for a while, and keeps its number.
  def test_broadcasts_while_a_single_process_restarts
    Dir.mktmpdir do |folder|
      cable, heard = %w[cable heard].map { |name| File.join(folder, name) }
      ServerProcess.run(APP, env: { "FOLDER" => cable, "HEARD" => heard, "RAILS_ENV" => "production" }) do |server|
        publisher = Rondo::Rails::Cable::Publisher.new(Rondo::Rails::Cable::SocketFolder.new({ "socket_folder" => cable }))
        Timeout.timeout(120) { sleep 0.01 while Dir.glob("#{cable}/*.sock").empty? }
        sent = publish_until(publisher) { 2.times { restart(server) } }
        Timeout.timeout(120) { sleep 0.01 until File.exist?(heard) && File.readlines(heard).last.to_i == sent }
        assert_equal (1..sent).to_a, File.readlines(heard).map(&:to_i)
      end
    end
  end

  def restart(server)
    from = server.log.bytesize
    server.signal("USR2")
    server.wait_for_log(/Restarting.*Use Ctrl-C to stop/m, from: from)
  end

  # @return [Integer] the number of the last message
  def publish_until(publisher)
    over = false
    sender = Thread.new do
      1.step do |number|
        publisher.publish("room", number.to_s, patience: 120)
        break number if over
      end
    end
    yield
    over = true
    sender.value
  end
end
