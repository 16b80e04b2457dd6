# frozen_string_literal: true

# The page and the pictures of rondo bench: hostile text does no harm, and all figures can be drawn.
# SPDX-License-Identifier: MIT

require "test_helper"
require "nokogiri"
require "rondo/command/bench"

class BenchPageTest < Minitest::Test
  Chart = Rondo::Bench::Chart
  Page = Rondo::Bench::Page
  Waits = Rondo::Bench::Waits
  HOSTILE = "<script>alert('1')</script>\u0000\xff&\"".b.freeze

  def test_hostile_text
    page = Page.new(HOSTILE)
    page.heading(HOSTILE).paragraph(HOSTILE).terms([[HOSTILE, HOSTILE]]).table([HOSTILE], [[HOSTILE, Page::Cell.new(HOSTILE, 1.5)]])
    page.plots(Chart.bars(HOSTILE, [Chart::Bar.new(label: HOSTILE, value: 1, text: HOSTILE)]))
    document = Nokogiri::XML(page.to_s, &:strict)
    assert_empty document.xpath("//script")
    assert_equal "<script>alert('1')</script>??&\"", document.at_xpath("//h1").text
    assert_equal "1.5", document.at_xpath("//data")["value"]
  end

  def test_extreme_figures
    [0, 0.001, 1, 1e12].each do |value|
      well_formed(Chart.bars("bars", [Chart::Bar.new(label: "a", value: value, text: "x", least: 0, most: value)], note: "n"))
      well_formed(Waits.curves("curves", { "a" => [0, value], "b" => [value, value] }))
      lines = %i[kept piped fresh].map { |kind| { kind: kind, p99_us: value } }
      well_formed(Waits.connections("dots", { "a" => lines, "b" => [] }))
    end
  end

  # One that is a file has its colours with it, for both kinds of pages.
  def test_a_picture_by_itself
    picture = Chart.bars("bars", [Chart::Bar.new(label: "a", value: 1, text: "x")], alone: true)
    well_formed(picture)
    assert_match(/<style>.*prefers-color-scheme:dark/m, picture)
    assert_match(/ width="600"/, picture)
  end

  private

  def well_formed(picture)
    assert_equal "svg", Nokogiri::XML(picture, &:strict).root.name
    refute_match(/NaN|Infinity/, picture)
  end
end
