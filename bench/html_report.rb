# frozen_string_literal: true

# The Markdown of a run, or of a file of results, as one HTML file: its tables, and bars for the first figure of
# each table of servers. Used by run.rb; for a table that is there already:
#
#   ruby bench/html_report.rb bench/results/2026-11-22.md > results.html
# SPDX-License-Identifier: MIT

$LOAD_PATH.unshift(File.expand_path("../lib", __dir__))
require "rondo/command/bench/page"

module Bench
  # Reads headings, paragraphs, lists and tables, which is all that report.rb writes.
  class HtmlReport
    Page = Rondo::Bench::Page
    Chart = Rondo::Bench::Chart
    NUMBER = /\A-?\d{1,3}(?:,\d{3})*(?:\.\d+)?\z|\A-?\d+(?:\.\d+)?\z/
    # Column titles behind which no bar stands, because a long one means nothing.
    PLAIN = /\Ashare|\Aanswers\z/

    # @param markdown [String]
    def initialize(markdown)
      @blocks = markdown.strip.split(/\n{2,}/).flat_map { |block| split(block) }
    end

    # @return [String] HTML
    def to_s
      title = @blocks.first.to_s[/\A# (.*)/, 1] || "Results"
      page = Page.new(title)
      @blocks.each { |block| add(page, block) }
      page.to_s
    end

    private

    # A heading may stand right above its text.
    def split(block)
      block.lines.slice_when { |a, b| a.start_with?("#") || a.start_with?("|") != b.start_with?("|") }.map(&:join)
    end

    def add(page, block)
      case block
      when /\A# / then nil
      when /\A#+ (.*)/ then page.heading(@heading = words(Regexp.last_match(1)))
      when /\A\|/ then add_table(page, block.lines.map { |line| cells(line) })
      when /\A- / then block.split(/^- /).drop(1).each { |item| page.paragraph(words(item), soft: true) }
      else page.paragraph(words(block))
      end
    end

    # @param lines [Array<Array<String>>] the second one is Markdown's line below the titles
    def add_table(page, lines)
      titles, _, *rows = lines
      page.table(titles, rows.map { |name, *cells| [name, *cells.map { |cell| Page::Cell.new(cell, number(cell)) }] })
      page.plots(bars(titles, rows)) if titles.first == "server" && !titles[1].to_s.match?(PLAIN)
    end

    # What failed or was not measured has no bar.
    def bars(titles, rows)
      shown = rows.select { |row| number(row[1]) }
      Chart.bars("#{@heading}: #{titles[1]}"[0, 58],
                 shown.map { |row| Chart::Bar.new(label: row[0], value: number(row[1]), text: row[1]) })
    end

    def number(cell)
      Float(cell.delete(",")) if cell.to_s.match?(NUMBER)
    end

    def cells(line)
      line.strip.delete_prefix("|").delete_suffix("|").split(/(?<!\\)\|/, -1).map { |cell| words(cell) }
    end

    # Without the marks of Markdown.
    def words(text)
      text.gsub(/\[([^\]]*)\]\([^)]*\)/, '\1').delete("`").gsub("**", "").gsub(/\\([|*])/, '\1').gsub(/\s+/, " ").strip
    end
  end
end

puts Bench::HtmlReport.new(File.read(ARGV.fetch(0))) if $PROGRAM_NAME == __FILE__
