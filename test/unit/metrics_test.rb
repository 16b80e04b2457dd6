# frozen_string_literal: true

# /metrics obeys Prometheus' text format 0.0.4. It is checked by strict rules here, and by the parser of Python's
# prometheus_client if that is installed. Its names are those of the docs.
# SPDX-License-Identifier: MIT

require "test_helper"
require "open3"
require "rondo/command/control_client"
require "rondo/process/control"

class MetricsTest < Minitest::Test
  PARSER = <<~PYTHON
    import sys
    from prometheus_client.parser import text_string_to_metric_families
    for family in text_string_to_metric_families(sys.stdin.read()):
        for sample in family.samples:
            print(family.type, sample.name, sorted(sample.labels.items()), sample.value)
  PYTHON
  SAMPLE = /\A(?<name>[a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(?<labels>(?:[a-z_]+="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? (?<value>[-+.\dEe]+|[+-]Inf|NaN)\z/

  def setup
    @board = Rondo::Scoreboard.new(3)
    @board.set(0, :state, 2)
    @board.set(2, :state, 1)
    @board.row(0).keys.each_with_index { |name, index| @board.set(0, name, index * 1000) unless name == :state }
  end

  def text
    @text ||= begin
      control = Rondo::Control.new(@board, Object.new, cluster: true)
      control.watch({ "unix:///a\"b\\c" => 0 })
      url = control.listen("unix://@rondo-metrics-test-#{Process.pid}-#{object_id}")
      control.start
      Rondo::ControlClient.new(url).get("/metrics").body
    ensure
      control.close
    end
  end

  # @return [Hash{String => Array}] name of the family => its type and samples
  def families
    found = {}
    text.each_line(chomp: true) do |line|
      case line
      when /\A# HELP (\S+) ([^\\]+)\z/ then assert_nil found[$1], "#{$1} twice"
      when /\A# TYPE (\S+) (counter|gauge|histogram)\z/ then found[$1] = [$2, []]
      else
        sample = SAMPLE.match(line) or flunk "no sample: #{line}"
        family = found.keys.last
        assert_includes [family, "#{family}_bucket", "#{family}_sum", "#{family}_count"], sample[:name]
        found[family].last << sample
      end
    end
    found
  end

  def test_the_rules_of_the_format
    assert text.end_with?("\n")
    families.each do |name, (type, samples)|
      assert name.start_with?("rondo_")
      assert_equal type == "counter", name.end_with?("_total"), name
      series = samples.map { |sample| [sample[:name], sample[:labels]] }
      assert_equal series.uniq, series
    end
  end

  def test_histograms_are_cumulative
    %w[rondo_queue_time_seconds rondo_request_duration_seconds].each do |name|
      samples = families.fetch(name).last.select { |sample| sample[:labels].include?('worker="0"') }
      buckets = samples.select { |sample| sample[:name].end_with?("_bucket") }
      bounds = buckets.map { |sample| sample[:labels][/le="([^"]+)"/, 1] }
      assert_equal Rondo::Scoreboard::BOUNDS_US.map { |us| us / 1e6 }, bounds[0...-1].map { |bound| Float(bound) }
      assert_equal "+Inf", bounds.last
      counts = buckets.map { |sample| sample[:value].to_i }
      assert_equal counts.sort, counts
      assert_equal counts.last, samples.find { |sample| sample[:name].end_with?("_count") }[:value].to_i
    end
  end

  def test_every_number_of_the_scoreboard_is_there
    facts = %i[pid generation state started_ms ready_ms last_turn_ms ruby_turn_ms oldest_call_ms
               oldest_task_ms stuck_ms call_us watched_ms]
    names = @board.row(0).keys - facts
    families = self.families.keys
    assert_empty(names.reject { |name| families.include?("rondo_#{name}") || families.include?("rondo_#{name}_total") })
    assert_includes text, "rondo_connections{worker=\"0\"} #{@board.get(0, :connections)}\n"
    assert_includes text, "rondo_connections{worker=\"2\"} 0\n"
    refute_includes text, 'worker="1"'
  end

  def test_every_family_is_in_the_documentation
    page = File.read(File.expand_path("../../docs/MONITORING.md", __dir__))
    assert_equal families.keys.sort, page.scan(/^\| `(rondo_\w+)`/).flatten.sort
  end

  def test_the_parser_of_prometheus_agrees
    python = ["/usr/bin/python3", "python3"].find { |name| system(name, "-c", PARSER, in: File::NULL, out: File::NULL, err: File::NULL) }
    skip "python3 has no prometheus_client" unless python
    out, status = Open3.capture2(python, "-c", PARSER, stdin_data: text)
    assert status.success?
    assert_equal text.lines.grep_v(/\A#/).size, out.lines.size
    assert_match(/^counter rondo_requests_total \[\('worker', '0'\)\] #{@board.get(0, :requests)}\.0$/, out)
    assert_match(/^histogram rondo_queue_time_seconds_bucket \[\('le', '\+Inf'\), \('worker', '0'\)\] 0\.0$/, out)
  end
end
