# frozen_string_literal: true

# What is true of each report of `rondo bench`: it is well-formed, needs nothing else, and its figures are those of the
# JSON file.
# SPDX-License-Identifier: MIT

require "json"
require "nokogiri"

module BenchPage
  # What fetches or runs something.
  ASSETS = /<(?:script|link|img|iframe|object|embed|image|use)\b|\b(?:src|href)\s*=|url\(|@import|\bon\w+\s*=/i
  COLUMNS = { "busy" => %w[rps cpu_us busy p50_us p99_us longest_us], "alone" => %w[mean_us cpu_us p50_us p99_us rps],
              "mixed" => %w[fairness p50_us p99_us longest_us rps], "memory" => %w[rss pss] }.freeze

  # @param document [Hash] of the JSON file
  # @param html [String]
  def assert_page(document, html)
    html = html.dup.force_encoding(Encoding::UTF_8)
    assert_predicate html, :valid_encoding?
    refute_match ASSETS, html.gsub("http://www.w3.org/2000/svg", "")
    page = Nokogiri::XML(html, &:strict) # strict: it raises where the text is not well-formed
    assert_match(/prefers-color-scheme:dark/, html)
    assert_match(/<meta name="viewport" content="width=device-width/, html)
    tables = page.xpath("//table").map { |table| table.xpath("tbody/tr").map { |row| values(row) } }
    expected = COLUMNS.map { |phase, names| document["servers"].map { |server| server["medians"][phase].values_at(*names) } }
    shown = tables.zip(expected).map { |rows, wanted| rows.zip(wanted).map { |row, figures| row.first(figures.size) } }
    assert_equal expected, shown
    assert_ratios(document, tables)
    advice = document["advice"].flat_map(&:values)
    refute_empty advice
    assert_equal advice, page.xpath("//dl/*").map(&:text).first(advice.size)
  end

  private

  def assert_ratios(document, tables)
    return if document["servers"].size == 1

    { "busy" => %w[rps cpu_us p99_us], "alone" => %w[mean_us cpu_us], "mixed" => %w[fairness],
      "memory" => %w[pss] }.each_with_index do |(phase, names), index|
      document["servers"].each_with_index do |server, row|
        assert_equal server["ratios"][phase].values_at(*names), tables[index][row].last(names.size)
      end
    end
  end

  def values(row)
    row.xpath("td/data").map { |cell| JSON.parse(cell["value"]) }
  end
end
