# frozen_string_literal: true

# examples/monitoring: the rules for Prometheus and the dashboard for Grafana name only what /metrics has, and promtool
# takes both. The rules fire when they should.
# SPDX-License-Identifier: MIT

require "test_helper"
require "json"
require "open3"
require "tmpdir"
require "yaml"
require_relative "../../tools/metrics_page"

class DashboardsTest < Minitest::Test
  FOLDER = File.expand_path("../../examples/monitoring", __dir__)
  RULES = "#{FOLDER}/rules.yml"
  ROWS = ["Traffic", "Waiting", "Application", "Fairness and limits", "Restarts", "Memory", "Push", "TLS and HTTP/2"].freeze
  # Series of a server, the time, and the alerts that they fire.
  FIRES = {
    { 'rondo_workers{state="ready"}' => "0x20", 'rondo_workers{state="booting"}' => "2x20" } => ["RondoNoWorkerReady"],
    { 'rondo_workers{state="ready"}' => "1x20", 'rondo_busy{worker="1"}' => "0x20",
      'rondo_ruby_turn_age_seconds{worker="1"}' => "60x20" } => [],
    { 'rondo_busy{worker="1"}' => "2x20", 'rondo_ruby_turn_age_seconds{worker="1"}' => "60x20" } => ["RondoApplicationHangs"],
    { 'rondo_dropped_total{worker="0"}' => "0+6x20", 'rondo_timed_out_total{worker="0"}' => "0x20" } => ["RondoAnswers503"],
    { 'rondo_dropped_total{worker="0"}' => "7x20", 'rondo_timed_out_total{worker="0"}' => "0x20" } => [],
    { 'rondo_queue_time_seconds_bucket{le="0.1"}' => "0+50x20", 'rondo_queue_time_seconds_bucket{le="+Inf"}' => "0+100x20",
      'rondo_queue_time_seconds_bucket{le="0.2"}' => "0+100x20" } => ["RondoRequestsWait"],
    { 'rondo_accept_queue_depth{listener="a"}' => "1000x20", 'rondo_accept_queue_limit{listener="a"}' => "1024x20" } => ["RondoRequestsWait"],
    { 'rondo_accept_queue_depth{listener="a"}' => "10x20", 'rondo_accept_queue_limit{listener="a"}' => "1024x20" } => [],
    { 'rondo_certificate_expiry_time_seconds{listener="a"}' => "864000x90" } => ["RondoCertificateExpires"],
    { 'rondo_certificate_expiry_time_seconds{listener="a"}' => "8640000x90" } => []
  }.freeze

  def test_the_rules_name_what_is_there
    expressions = rules.map { |rule| rule.fetch("expr") }
    assert_equal 5, expressions.size
    expressions.each { |expression| check_names(expression) }
  end

  def test_promtool_takes_the_rules
    output, status = promtool("check", "rules", RULES)
    assert status.success?, output
    assert_includes output, "5 rules found"
  end

  def test_the_alerts_fire_when_they_should
    Dir.mktmpdir do |folder|
      File.write("#{folder}/tests.yml", YAML.dump("rule_files" => [RULES], "tests" => FIRES.map { |series, fired| case_of(series, fired) }))
      output, status = promtool("test", "rules", "#{folder}/tests.yml")
      assert status.success?, output
    end
  end

  def test_the_page_of_metrics_is_what_promtool_expects
    output, status = promtool("check", "metrics", stdin_data: MetricsPage.text)
    assert status.success?, output
  end

  def test_the_dashboard_can_be_imported
    assert_operator dashboard["schemaVersion"], :>=, 36
    source, *variables = dashboard.dig("templating", "list")
    assert_equal %w[datasource datasource prometheus], source.values_at("name", "type", "query")
    assert_equal %w[job instance], variables.map { |variable| variable["name"] }
    assert_equal ROWS, dashboard["panels"].select { |panel| panel["type"] == "row" }.map { |panel| panel["title"] }
    ids = dashboard["panels"].map { |panel| panel["id"] }
    assert_equal ids.uniq, ids
    sources = dashboard["panels"].flat_map { |panel| [panel, *panel["targets"]] }.map { |part| part["datasource"] }.compact.uniq
    assert_equal [{ "type" => "prometheus", "uid" => "${datasource}" }], sources
  end

  def test_no_panels_of_the_dashboard_overlap
    taken = dashboard["panels"].flat_map do |panel|
      x, y, w, h = panel["gridPos"].values_at("x", "y", "w", "h")
      [*x...(x + w)].product([*y...(y + h)])
    end
    assert_equal taken.uniq.size, taken.size
    assert_operator taken.map(&:first).max, :<, 24
  end

  def test_the_dashboard_names_what_is_there
    assert_operator expressions.size, :>, 50
    expressions.each { |expression| check_names(expression) }
    dashboard.dig("templating", "list").drop(1).each { |variable| check_names(variable["definition"]) }
  end

  def test_promtool_takes_the_expressions_of_the_dashboard
    rules = expressions.each_with_index.map do |expression, i|
      { "record" => "rondo:panel:#{i}", "expr" => expression.gsub("$__rate_interval", "5m").gsub(/\$\w+/, ".*") }
    end
    Dir.mktmpdir do |folder|
      File.write("#{folder}/rules.yml", YAML.dump("groups" => [{ "name" => "panels", "rules" => rules }]))
      output, status = promtool("check", "rules", "#{folder}/rules.yml")
      assert status.success?, output
    end
  end

  private

  def promtool(*words, **options)
    skip "promtool is not there (Debian's package prometheus)" unless system("command -v promtool >/dev/null")
    Open3.capture2e("promtool", *words, **options)
  end

  def rules
    YAML.load_file(RULES).fetch("groups").flat_map { |group| group.fetch("rules") }
  end

  def dashboard
    @dashboard ||= JSON.parse(File.read("#{FOLDER}/grafana.json"))
  end

  def expressions
    dashboard["panels"].flat_map { |panel| panel.fetch("targets", []) }.map { |target| target.fetch("expr") }
  end

  # Only counters and parts of histograms have a rate.
  def check_names(expression)
    names = expression.scan(/\brondo_\w+/)
    refute_empty names, expression
    names.each { |name| assert samples.key?(name), "#{name} in #{expression}" }
    rates = expression.scan(/rate\((\w+)/).flatten
    rates.each { |name| refute_equal "gauge", samples.fetch(name), expression }
    (names - rates).each { |name| assert_equal "gauge", samples.fetch(name), expression }
  end

  def samples
    @samples ||= MetricsPage.samples(MetricsPage.families)
  end

  def case_of(series, fired)
    inputs = series.map do |name, values|
      { "series" => name.sub("}", ',job="rondo",instance="shop:9293"}'), "values" => values }
    end
    at = series.any? { |name, _| name.include?("certificate") } ? "80m" : "15m"
    { "interval" => "1m", "input_series" => inputs,
      "promql_expr_test" => [{ "expr" => 'count by (alertname) (ALERTS{alertstate="firing"})', "eval_time" => at,
                               "exp_samples" => fired.map { |name| { "labels" => %({alertname="#{name}"}), "value" => 1 } } }] }
  end
end
