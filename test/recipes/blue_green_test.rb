# frozen_string_literal: true

# Two servers behind a proxy, and a switch from one to the other under load: no request is lost. Clients of HAProxy keep their
# connections and never send a request twice. nginx ends its idle connections when it reads its files again, so its clients
# connect anew for each request.
# SPDX-License-Identifier: MIT

require_relative "recipe_case"

class RecipeBlueGreenTest < RecipeCase
  CLIENTS = 4

  # Sends requests until it has answers of the second server. What is not answered 200 by a server counts as lost.
  class Load
    attr_reader :lost

    def initialize(port, kept:)
      @port = port
      @kept = kept
      @lost = Queue.new
      @seen = Queue.new
      @threads = Array.new(CLIENTS) { Thread.new { run } }
    end

    # @return [Integer] requests that were answered
    def answered
      @seen.size
    end

    def stop
      @stopped = true
      @threads.each(&:join)
    end

    private

    def run
      client = nil
      until @stopped
        client ||= RawClient.new("http://127.0.0.1:#{@port}")
        client.write("GET / HTTP/1.1\r\nHost: a\r\n#{"Connection: close\r\n" unless @kept}\r\n")
        response = client.response
        @seen << response.body
        @lost << response.status unless response.status == 200
        next if @kept

        client.close
        client = nil
      end
    rescue StandardError => e
      @lost << e
    end
  end

  def test_haproxy
    blue, green = ports = [free_port, free_port]
    front = proxy("haproxy") do |own|
      config = filled("blue_green/haproxy.cfg", "bind :80" => "bind 127.0.0.1:#{own.port}", "127.0.0.1:9301" => "127.0.0.1:#{blue}",
                                                "127.0.0.1:9302" => "127.0.0.1:#{green}", "/run/haproxy/admin.sock" => "#{own.folder}/admin.sock")
      [program("haproxy"), "-db", "-f", own.write("haproxy.cfg", config)]
    end
    switch = [RbConfig.ruby, File.join(RECIPES, "blue_green/switch_haproxy"), File.join(front.folder, "admin.sock")]
    switch_under_load(front, ports, kept: true) { run_command(*switch, "blue", "green") }
    assert_equal [1, "set server rondo/red state ready: No such server.\n"], run_command(*switch, "blue", "red").then { |said| [said.code, said.err] }
  end

  def test_nginx
    blue, green = ports = [free_port, free_port]
    live = nil
    front = proxy("nginx") do |own|
      live = own.write("rondo_live", "server 127.0.0.1:#{blue};\n")
      nginx(own, filled("blue_green/nginx.conf", "listen 80;" => "listen 127.0.0.1:#{own.port};", "/etc/nginx/rondo_live" => live))
    end
    switch_under_load(front, ports, kept: false) do
      run_command(File.join(RECIPES, "blue_green/switch_nginx"), live, green.to_s, "#{front.folder}/pid", *front.command)
    end
  end

  private

  def switch_under_load(front, ports, kept:)
    old, new = ports.zip(%w[blue green]).map do |port, name|
      serve("bundle exec rondo", { "PORT" => port.to_s, "RELEASE" => name, "CONTROL_URL" => "unix://#{@folder}/#{name}.sock" })
    end
    load = Load.new(front.port, kept: kept)
    wait_for_answers(load)
    assert_equal "release blue\n", fetch(front.url).body
    result = yield
    assert_equal 0, result.code, result.err
    eventually("the other server answers") { fetch(front.url).body == "release green\n" }
    assert_equal Signal.list["TERM"], old.stop(signal: "TERM").termsig
    wait_for_answers(load)
    load.stop
    assert_empty Array.new(load.lost.size) { load.lost.pop }
    new.stop(signal: "TERM")
  end

  def wait_for_answers(load)
    goal = load.answered + 200
    eventually("answers") { load.answered >= goal || !load.lost.empty? }
  end
end
