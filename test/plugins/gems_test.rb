# frozen_string_literal: true

# Gems that ask the module Puma, and plugins for metrics, as their authors made them.
# SPDX-License-Identifier: MIT

require_relative "plugin_case"
require "json"

class PluginGemsTest < PluginCase
  def ask(server, path)
    answer = get(server, path)
    assert_equal "200", answer.code, server.log
    JSON.parse(answer.body, symbolize_names: true)
  end

  def check_agents(gemfile)
    lay_out "agents"
    server = cluster("-t", "3:3", gemfile: gemfile)
    found = ask(server, "/barnes")
    assert found[:valid]
    assert_equal 6, found[:gauges][:"threads.max"]
    found = ask(server, "/exporter")
    assert_equal({ workers: 2, booted_workers: 2, max_threads: 6 }, found.slice(:workers, :booted_workers, :max_threads))
    assert_equal "Puma is using 3 threads", ask(server, "/good_job")
  end

  def test_barnes_prometheus_exporter_and_good_job
    check_agents(WITHOUT_PUMA)
  end

  def test_the_same_with_the_gem_puma
    check_agents(WITH_PUMA)
  end

  def page(port)
    Net::HTTP.get(URI("http://127.0.0.1:#{port}/metrics"))
  rescue SystemCallError, IOError
    ""
  end

  def free_port
    TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
  end

  # Both plugins of Yabeda, and telemetry, through a restart.
  def test_telemetry_and_yabeda
    lay_out "metrics"
    port = free_port
    write "config/puma.rb", <<~RUBY
      require "puma/plugin/telemetry"
      activate_control_app "unix://#{@folder}/control.sock", auth_token: "secret"
      plugin :yabeda
      plugin :yabeda_prometheus
      prometheus_exporter_url "tcp://127.0.0.1:#{port}/metrics"
      plugin :telemetry
      Puma::Plugin::Telemetry.configure do |config|
        config.enabled = true
        config.initial_delay = 0
        config.frequency = 0.2
        config.targets << ->(numbers) { File.write("telemetry", numbers.to_a.inspect) }
      end
    RUBY
    server = cluster("-t", "3:3", gemfile: WITH_PUMA)
    check_yabeda(port)
    assert_equal "3", get(server).body
    after_signal(server, "USR1", /(phase: 1.*){2}/m)
    File.delete(File.join(@folder, "telemetry"))
    check_yabeda(port)
    check_tools
    server.stop
    assert_empty page(port)
  end

  # It listens as soon as it starts.
  def test_puma_metrics
    lay_out "metrics"
    port = free_port
    write "config/puma.rb", "plugin :metrics\nmetrics_url 'tcp://127.0.0.1:#{port}'\n"
    server = cluster(gemfile: WITH_PUMA)
    eventually("puma-metrics") { page(port).match?(/^puma_booted_workers 2/) }
    %w[USR1 USR2].each_with_index do |signal, index|
      after_signal(server, signal, /(phase: #{index + 1}.*){2}/m)
      server.wait_for_log(/(Starting metrics server.*){#{index + 2}}/m)
      eventually("puma-metrics") { page(port).match?(/^puma_booted_workers 2/) }
    end
    refute_match(/cannot start/, server.log)
  end

  STATE = <<~RUBY
    state_path "state"
    activate_control_app "unix://control.sock"
    before_fork do
      require "puma_worker_killer"
      PumaWorkerKiller.frequency = 0.01
      PumaWorkerKiller.start
    end
  RUBY

  # puma-status reads the state file, and all pages that it names. puma_worker_killer looks for Puma's inner classes.
  def test_puma_status_and_puma_worker_killer
    write "config.ru", 'run ->(_env) { [200, {}, ["hello"]] }'
    write "config/puma.rb", STATE
    server = cluster("-t", "3:3", gemfile: WITH_PUMA)
    assert_equal "hello", get(server).body
    out = bundled("-e", 'load Gem.bin_path("puma-status", "puma-status")', "state", gemfile: WITH_PUMA).gsub(/\e\[[\d;]*m/, "")
    assert_match(/^#{server.pid} \(state\) .*Uptime: .* \| Load: \d\[.*\]6 \| Req: 1$/, out)
    assert_equal workers(server).values.sort, out.scan(/^ └ +(\d+) CPU: .* Load: /).flatten.map(&:to_i).sort
    assert_equal 1, server.log.scan(/^! puma_worker_killer replaces no worker of Rondo: the settings max_memory and max_age do that$/).size
    assert_predicate server.stop, :success?
  end

  def check_yabeda(port)
    eventually("Yabeda's page") { page(port).match?(/^puma_booted_workers 2/) }
    assert_match(/^puma_max_threads\{index="1"\} 3/, page(port))
    eventually("telemetry") { File.exist?(File.join(@folder, "telemetry")) && read("telemetry").match?(/workers.booted\W+2/) }
  end

  def check_tools
    control = ["-C", "unix://#{@folder}/control.sock", "-T", "secret"]
    puma = Dir[File.join(FOLDER, "gems/puma-[0-9]*/bin/pumactl")].first
    assert_match(/"booted_workers":\s*2/, bundled(puma, *control, "stats", gemfile: WITH_PUMA))
  end
end
