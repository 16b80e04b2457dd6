# frozen_string_literal: true

# Results of benchmarks as HTML: every committed table is read whole.
# SPDX-License-Identifier: MIT

require "test_helper"
require "nokogiri"
require_relative "../../bench/html_report"

class BenchReportTest < Minitest::Test
  RESULTS = Dir[File.expand_path("../../bench/results/2*.md", __dir__)]

  def document(markdown)
    Nokogiri::XML(Bench::HtmlReport.new(markdown).to_s, &:strict).remove_namespaces!
  end

  def test_every_cell_of_every_table_is_there
    refute_empty RESULTS
    RESULTS.each do |file|
      lines = File.readlines(file).grep(/\A\|/).grep_v(/\A\|[-|: ]+\|?\n\z/)
      rows = document(File.read(file)).xpath("//tr")
      assert_equal lines.size, rows.size, file
    end
  end

  def test_bars_have_the_figures_of_the_table
    page = document(<<~MARKDOWN)
      # Results of a day

      ## hello: 64 connections

      |server|requests/s|median wait µs|
      |---|---|---|
      |Rondo|101,234|5|
      |Puma <8>|9,876.5|50|
      |Falcon|FAILED|FAILED|

      - Falcon: it does not start
    MARKDOWN
    assert_equal ["Results of a day"], page.xpath("//h1").map(&:text)
    bars = page.xpath("//svg/text").map(&:text)
    assert_equal ["hello: 64 connections: requests/s", "Rondo", "101,234", "Puma <8>", "9,876.5"], bars
    values = page.xpath("//data/@value").map { |value| value.text.to_f }
    assert_equal [101_234.0, 5.0, 9876.5, 50.0], values
    assert_match(/it does not start/, page.to_s)
  end
end
