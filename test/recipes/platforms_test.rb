# frozen_string_literal: true

# What the files of examples/recipes tell platforms to do, done by hand: the command, the port and the environment are taken
# from each file, the server is asked as the platform would ask it, and is stopped by the signal that comes in the end. Nothing
# is deployed.
# SPDX-License-Identifier: MIT

require_relative "recipe_case"
require "support/redis_server"

class RecipePlatformsTest < RecipeCase
  # An application that is asked for something while its server is told to stop.
  SLOW = <<~RUBY
    require "fileutils"
    run lambda { |env|
      if env["PATH_INFO"] == "/slow"
        warn "slow began"
        File.read("gate")
      end
      [200, { "content-type" => "text/plain" }, ["up\\n"]]
    }
  RUBY

  # Heroku sends TERM to all processes of the dyno.
  def test_heroku
    processes = YAML.safe_load(recipe("Procfile"))
    assert_equal %w[web], processes.keys
    File.mkfifo(File.join(@folder, "gate"))
    write "config.ru", SLOW
    port = free_port
    server = serve(processes["web"], { "PORT" => port.to_s, "WEB_CONCURRENCY" => "2", "DYNO" => "web.1" })
    assert_up(port)
    asked = Thread.new { fetch("http://127.0.0.1:#{port}", "/slow").body }
    server.wait_for_log(/slow began/)
    Process.kill("TERM", -server.pid)
    server.wait_for_log(/Gracefully/)
    File.write(File.join(@folder, "gate"), "")
    assert_equal "up\n", asked.value
    assert_includes [Signal.list["TERM"]], server.stop(signal: 0).termsig
  end

  def test_fly
    port = free_port
    fly = toml("fly.toml")
    service = fly.fetch("http_service")
    assert_equal fly.dig("env", "PORT").to_i, service["internal_port"]
    serve(image["CMD"], fly["env"].merge("PORT" => port.to_s))
    service["checks"].each { |check| assert_up(port, check["path"]) }
    assert_in_time fly["kill_timeout"].to_i
  end

  def test_render
    port = free_port
    service = YAML.safe_load(recipe("render.yaml"))["services"].fetch(0)
    variables = service["envVars"].to_h { |row| row.values_at("key", "value") }
    assert_equal "10.0.0.0/8", variables["TRUSTED_PROXIES"]
    serve(service["startCommand"], variables.merge("PORT" => port.to_s, "TRUSTED_PROXIES" => "127.0.0.1"))
    assert_up(port, service["healthCheckPath"])
    # Render's proxy appends the address of Cloudflare.
    fields = { "CF-Connecting-IP" => "203.0.113.6", "X-Forwarded-For" => "203.0.113.6, 104.22.17.40" }
    assert_includes fetch("http://127.0.0.1:#{port}", "/client", fields, from: "127.0.0.1").body, " 203.0.113.6\n"
    assert_in_time service["maxShutdownDelaySeconds"]
  end

  def test_kamal
    port = free_port
    kamal = YAML.safe_load(recipe("kamal/deploy.yml"))
    assert_equal image["EXPOSE"].to_i, kamal.dig("proxy", "app_port")
    serve(image["CMD"], kamal.dig("env", "clear").merge("PORT" => port.to_s))
    assert_up(port, kamal.dig("proxy", "healthcheck", "path"))
    assert_in_time kamal["drain_timeout"]
  end

  # The commands of the services, with a real Redis; each container is a folder.
  def test_compose
    services = YAML.safe_load(recipe("compose.yaml"))["services"]
    redis = services["redis"]
    store = Store.new(redis["command"])
    assert_equal "PONG", store.cli(*redis["healthcheck"]["test"].drop(2))
    web = services["web"]
    urls = containers(web, web["environment"].merge("REDIS_URL" => web["environment"]["REDIS_URL"].sub("redis:6379", "127.0.0.1:#{store.port}")))
    assert_stream(*urls)
    urls.each { |url| assert_up(URI(url).port) }
    assert_in_time web["stop_grace_period"].to_i
    assert_equal web["ports"], [image["EXPOSE"]]
  ensure
    store&.close
  end

  # The health check of the Dockerfile, which asks the control server.
  def test_the_health_check_of_the_image
    check = image["HEALTHCHECK"][/CMD (.*)/, 1]
    refute system(environment, *JSON.parse(check), chdir: @folder, out: File::NULL, err: File::NULL)
    serve(image["CMD"], { "PORT" => free_port.to_s })
    assert system(environment, *JSON.parse(check), chdir: @folder, out: File::NULL)
  end

  # A service manager that listens, and begins the server with the first connection.
  def test_socket_activation
    skip "systemd-socket-activate is missing" unless program("systemd-socket-activate")
    port = free_port
    words = File.readlines(File.join(ROOT, "examples/systemd/rondo.service"), chomp: true).filter_map { |line| line[/\AExecStart=(.*)/, 1] }
    manager = serve("systemd-socket-activate -l 127.0.0.1:#{port} -E PATH -E RUBYLIB -E BUNDLE_GEMFILE -E RACK_ENV #{words.fetch(0)}", {}, listeners: 0)
    manager.wait_for_log(/Listening on 127/)
    refute_match(/Rondo/, manager.log)
    assert_up(port) # waits in the socket until the server is there
    assert_match(/Rondo starting/, manager.log)
    assert_equal Signal.list["TERM"], manager.stop(signal: "TERM").termsig
  end

  private

  # The Redis of compose.yaml, at a port of the test.
  class Store < RedisServer
    def initialize(words)
      @given = words
      super()
    end

    private

    def command
      [*@given, "--dir", folder, "--bind", "127.0.0.1", "--port", port.to_s]
    end
  end

  def containers(web, variables)
    (1..web.dig("deploy", "replicas")).map do |number|
      folder = File.join(@folder, "container#{number}")
      FileUtils.mkdir(folder)
      FileUtils.cp_r(File.join(RECIPES, "app/."), folder)
      port = free_port
      serve(image["CMD"], variables.merge("PORT" => port.to_s), folder: folder)
      "http://127.0.0.1:#{port}"
    end
  end

  def environment
    BLANK.merge("PATH" => [File.join(ROOT, "exe"), ENV.fetch("PATH")].join(File::PATH_SEPARATOR))
  end

  # @return [Hash{String => String}] the last of each instruction; CMD as words for a shell
  def image
    lines = recipe("Dockerfile").gsub("\\\n", " ").lines(chomp: true).reject { |line| line.empty? || line.start_with?("#") }
    steps = lines.to_h { |line| line.split(" ", 2) }
    steps.merge("CMD" => JSON.parse(steps["CMD"]).join(" "))
  end

  def toml(name)
    JSON.parse(IO.popen(["/usr/bin/python3", "-c", "import sys, tomllib, json; print(json.dumps(tomllib.load(open(sys.argv[1], 'rb'))))",
                         File.join(RECIPES, name)], &:read))
  end
end
