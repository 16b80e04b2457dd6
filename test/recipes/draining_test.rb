# frozen_string_literal: true

# Servers that stop while a load balancer sends them clients: HAProxy with the recipe for two servers, and what the recipe
# for Kubernetes says, done by hand. The order of the times in both.
# SPDX-License-Identifier: MIT

require_relative "recipe_case"

class RecipeDrainingTest < RecipeCase
  STREAMS = 24
  CLIENTS = 4
  # A stream begins with the name of its server.
  APP = <<~RUBY
    release = ENV.fetch("RELEASE", "none")
    news = Class.new { define_method(:on_open) { |client| client.write(release) } }
    run lambda { |env|
      env["rack.upgrade"] = news.new if env["rack.upgrade?"] == :sse
      [200, { "content-type" => "text/plain" }, [release]]
    }
  RUBY

  # Sends requests on a connection that it keeps, or on a new one each; what is not answered 200 is lost.
  class Load
    attr_reader :lost, :seen

    def initialize(port)
      @port = port
      @lost = Queue.new
      @seen = Queue.new
      @threads = Array.new(CLIENTS) { |number| Thread.new { run(number.odd?) } }
    end

    def stop
      @stopped = true
      @threads.each(&:join)
    end

    private

    def run(kept)
      client = nil
      until @stopped
        client ||= RawClient.new("http://127.0.0.1:#{@port}")
        client.write("GET / HTTP/1.1\r\nHost: a\r\n#{"Connection: close\r\n" unless kept}\r\n")
        response = client.response
        response.status == 200 ? @seen << response.body : @lost << response.status
        client = client.close unless kept && response.header("connection") != "close" # nginx ends each after 1000
      end
    rescue StandardError => e
      @lost << e
    end
  end

  # Reads a stream until it ends, and comes back until the other server has it.
  class Listener
    attr_reader :ends

    def initialize(url, other)
      @url = url
      @other = other
      @servers = Queue.new
      @ends = Queue.new
      @thread = Thread.new { run }
    end

    # @return [String] name of the next server
    def hear
      Timeout.timeout(ShellCase::PATIENCE) { @servers.pop }
    end

    def join
      @thread.join(ShellCase::PATIENCE) or raise "the stream has not come back"
    end

    private

    def run
      loop do
        stream = EventStream.new
        client = open_stream(stream)
        client.read_some.then { |bytes| stream.feed(bytes) } until (first = stream.events.first)
        @servers << first.data
        break client.close if first.data == @other

        until (bytes = client.read_some(timeout: ShellCase::PATIENCE)).nil? do stream.feed(bytes) end
        client.close
        @ends << stream.retry
      end
    end

    def open_stream(stream)
      client = RawClient.new(@url)
      client.write("GET /news HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAccept: text/event-stream\r\n\r\n")
      head = +"".b
      head << client.read_some until head.include?("\r\n\r\n")
      stream.feed(head.split("\r\n\r\n", 2).last)
      client
    end
  end

  def setup
    super
    write "config.ru", APP
  end

  def test_two_servers_behind_haproxy
    ports = Array.new(4) { free_port }
    front = haproxy_in_front(ports)
    one, two = %w[one two].each_with_index.map { |name, number| serve_as(name, *ports.each_slice(2).to_a[number]) }
    await_both(front)
    load = Load.new(front.port)
    listeners = Array.new(STREAMS) { Listener.new(front.url, "two") }
    of_one = listeners.count { |listener| listener.hear == "one" }
    assert_operator of_one, :>, 0

    status = one.stop(signal: "TERM")
    listeners.each(&:join)
    wait_for_answers(load)
    load.stop
    assert_empty Array.new(load.lost.size) { load.lost.pop }
    assert_equal Signal.list["TERM"], status.termsig
    retries = listeners.flat_map { |listener| Array.new(listener.ends.size) { listener.ends.pop } }
    assert_equal of_one, retries.size
    assert_empty retries.grep_v(1000..3000)
    assert_match(/^- Not ready .*^- Gracefully/m, one.log.gsub(/^\S+ - /, "- "))
    two.stop(signal: "TERM")
  end

  # It asks nobody: a refused connection sends it to the next server.
  def test_two_servers_behind_nginx
    ports = Array.new(4) { free_port }
    front = nginx_in_front(ports.first, ports[2])
    one, two = %w[one two].each_with_index.map { |name, number| serve_as(name, *ports.each_slice(2).to_a[number], "DRAIN_DELAY" => "0") }
    await_both(front)
    load = Load.new(front.port)
    listeners = Array.new(STREAMS) { Listener.new(front.url, "two") }
    assert_operator listeners.count { |listener| listener.hear == "one" }, :>, 0
    assert_equal Signal.list["TERM"], one.stop(signal: "TERM").termsig
    listeners.each(&:join)
    wait_for_answers(load)
    load.stop
    assert_empty Array.new(load.lost.size) { load.lost.pop }
    two.stop(signal: "TERM")
  end

  # ---- which number must be larger than which ----

  def test_the_page_shows_lines_of_the_recipes
    page = File.read(File.join(ROOT, "docs/DRAINING.md"))
    { /^```\n(backend rondo\n.*?)^```/m => "haproxy_two.cfg", /^```yaml\n(.*?)^```/m => "kubernetes.yaml" }.each do |block, name|
      shown, whole = [page[block, 1], recipe(name)].map { |text| text.lines.map { |line| line.sub(/\s+#.*/, "").strip } }
      assert_operator shown.size, :>, 7
      assert_empty shown - whole, name
    end
  end

  def test_haproxy_notices_in_time
    config = recipe("haproxy_two.cfg")
    interval, fall = config.match(/inter (\d+)s fall (\d+)/).captures.map(&:to_i)
    assert_operator config[/DRAIN_DELAY=(\d+)/, 1].to_i, :>, interval * fall
    refute_match(/on-marked-down \w+-sessions/, config)
  end

  def test_kubernetes
    pod = kubernetes.fetch("Deployment").dig("spec", "template", "spec")
    container = pod["containers"].fetch(0)
    variables = container["env"].to_h { |row| row.values_at("name", "value") }
    assert_in_time pod["terminationGracePeriodSeconds"] - variables["DRAIN_DELAY"].to_i - 1
    probe = container["readinessProbe"]
    assert_operator variables["DRAIN_DELAY"].to_i, :>, probe["periodSeconds"] * probe["failureThreshold"]
    assert_operator variables["DRAIN_SPREAD"].to_i, :<=, recipe("app/config/rondo.rb")[/^drain_timeout (\d+)/, 1].to_i * 3 / 4

    http, control = Array.new(2) { free_port }
    server = serve(image_command, variables.merge("PORT" => http.to_s, "CONTROL_URL" => "tcp://0.0.0.0:#{control}"))
    assert_equal [container["ports"].to_h { |port| port.values_at("name", "containerPort") }],
                 [{ "http" => variables["PORT"].to_i, "control" => variables["CONTROL_URL"][/\d+\z/].to_i }]
    eventually("ready") { ask(probe["httpGet"], control).code == "200" }
    assert_equal "200", ask(container["livenessProbe"]["httpGet"], control).code
    assert_equal "403", fetch("http://127.0.0.1:#{control}", "/ready").code
    server.signal("TERM")
    eventually("not ready") { ask(probe["httpGet"], control).code == "503" }
    assert_equal %w[200 200], [ask(container["livenessProbe"]["httpGet"], control), fetch("http://127.0.0.1:#{http}")].map(&:code)
    server.stop(signal: "TERM")
  end

  private

  def haproxy_in_front(ports)
    (web_one, control_one), (web_two, control_two) = ports.each_slice(2).to_a
    proxy("haproxy") do |own|
      config = filled("haproxy_two.cfg", "bind :80" => "bind 127.0.0.1:#{own.port}", "192.0.2.10:9292" => "127.0.0.1:#{web_one} port #{control_one}",
                                         "192.0.2.11:9292" => "127.0.0.1:#{web_two} port #{control_two}", **PATIENT_CHECKS)
      [program("haproxy"), "-db", "-f", own.write("haproxy.cfg", config)]
    end
  end

  # The recipe for one server, with the servers of docs/DRAINING.md.
  def nginx_in_front(one, two)
    servers = File.read(File.join(ROOT, "docs/DRAINING.md"))[/^```nginx\nupstream rondo \{\n(.*?)    keepalive/m, 1]
    servers = servers.sub("192.0.2.10:9292", "127.0.0.1:#{one}").sub("192.0.2.11:9292", "127.0.0.1:#{two}")
    proxy("nginx") do |own|
      nginx(own, filled("nginx.conf", "    server 127.0.0.1:9292;\n" => servers, "listen 80;" => "listen 127.0.0.1:#{own.port};"))
    end
  end

  def serve_as(name, port, control, **more)
    serve("bundle exec rondo", { "PORT" => port.to_s, "RELEASE" => name, "CONTROL_URL" => "tcp://127.0.0.1:#{control}", "CONTROL_TOKEN" => "change-me",
                                 "DRAIN_DELAY" => recipe("haproxy_two.cfg")[/DRAIN_DELAY=(\d+)/, 1], "DRAIN_SPREAD" => "2", **more })
  end

  def await_both(front)
    seen = []
    eventually("both servers are up") { seen.push(fetch(front.url).body).uniq.then { |all| (all & %w[one two]).size == 2 } }
  end

  def wait_for_answers(load)
    goal = load.seen.size + 100
    eventually("answers") { load.seen.size >= goal || !load.lost.empty? }
  end

  # @return [Hash{String => Hash}] by kind
  def kubernetes
    recipe("kubernetes.yaml").split(/^---$/).map { |text| YAML.safe_load(text) }.to_h { |document| [document["kind"], document] }
  end

  def image_command
    JSON.parse(recipe("Dockerfile")[/^CMD (.*)/, 1]).join(" ")
  end

  def ask(probe, port)
    fields = probe.fetch("httpHeaders").to_h { |row| row.values_at("name", "value") }
    fetch("http://127.0.0.1:#{port}", probe.fetch("path"), fields)
  end
end
