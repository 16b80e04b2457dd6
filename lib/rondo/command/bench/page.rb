# frozen_string_literal: true

# One HTML file that needs nothing else: no script, no other file, for light and dark screens, wide and
# narrow ones. `rondo bench` and the benchmarks in bench/ write their reports with it.
# SPDX-License-Identifier: MIT

require "rondo/command/bench/chart"

module Rondo
  class Bench
    # Collects headings, paragraphs, tables and pictures.
    class Page
      # A cell of a table: what is shown, and the exact figure.
      #
      # @!attribute text [String]
      # @!attribute value [Numeric, nil]
      Cell = Struct.new(:text, :value)

      STYLES = <<~CSS
        :root{color-scheme:light dark;--ink:#1f2933;--soft:#52606d;--line:#cbd2d9;--paper:#ffffff;--card:#f5f7fa}
        @media(prefers-color-scheme:dark){:root{--ink:#e6e9ec;--soft:#a9b3bd;--line:#3e4750;--paper:#14181c;--card:#1c2227}}
        *{box-sizing:border-box}
        body{margin:0 auto;max-width:62rem;padding:1rem;font:1rem/1.5 system-ui,Helvetica,Arial,sans-serif;color:var(--ink);background:var(--paper);overflow-wrap:anywhere}
        h1{font-size:1.6rem;line-height:1.2;margin:.5rem 0}h2{font-size:1.2rem;margin:2rem 0 .5rem}
        p{margin:.5rem 0;max-width:46rem}.soft{color:var(--soft)}
        .scroll{overflow-x:auto;margin:.75rem 0}
        table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.9rem}
        th,td{padding:.3rem .6rem;border-bottom:1px solid var(--line);text-align:right;overflow-wrap:normal}
        td{white-space:nowrap}th:first-child,td:first-child{text-align:left}th{vertical-align:bottom;font-weight:600}
        .plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,22rem),1fr));gap:1rem;margin:.75rem 0}
        .plots svg{width:100%;max-width:34rem;height:auto;background:var(--card);border-radius:6px}
        dl{margin:.5rem 0;max-width:46rem}dt{font-weight:600;margin-top:.75rem}dd{margin:.1rem 0 0}
      CSS

      # @param title [String]
      def initialize(title)
        @title = title
        @parts = ["<h1>#{escape(title)}</h1>"]
      end

      # @return [self]
      def heading(text)
        add("<h2>#{escape(text)}</h2>")
      end

      # @return [self]
      def paragraph(text, soft: false)
        add("<p#{' class="soft"' if soft}>#{escape(text)}</p>")
      end

      # @param titles [Array<String>]
      # @param rows [Array<Array<String, Cell>>] the first cell names the row
      # @return [self]
      def table(titles, rows)
        head = titles.map { |title| "<th scope=\"col\">#{escape(title)}</th>" }.join
        body = rows.map do |name, *cells|
          "<tr><td>#{escape(name)}</td>#{cells.map { |cell| "<td>#{cell(cell)}</td>" }.join}</tr>"
        end
        add("<div class=\"scroll\"><table><thead><tr>#{head}</tr></thead>\n" \
            "<tbody>#{body.join("\n")}</tbody></table></div>")
      end

      # @param pictures [Array<String>] of {Chart}
      # @return [self]
      def plots(*pictures)
        add("<div class=\"plots\">\n#{pictures.join}</div>") if pictures.any?
        self
      end

      # @param pairs [Array<Array(String, String)>] a term and what is to be said of it
      # @return [self]
      def terms(pairs)
        add("<dl>#{pairs.map { |term, text| "<dt>#{escape(term)}</dt><dd>#{escape(text)}</dd>" }.join("\n")}</dl>")
      end

      # @return [String]
      def to_s
        <<~HTML
          <!DOCTYPE html>
          <html lang="en"><head><meta charset="utf-8"/>
          <meta name="viewport" content="width=device-width, initial-scale=1"/>
          <title>#{escape(@title)}</title>
          <style>
          #{STYLES}#{Chart.styles}
          </style></head>
          <body>
          #{@parts.join("\n")}
          </body></html>
        HTML
      end

      private

      def add(html)
        @parts << html
        self
      end

      def cell(cell)
        return escape(cell) unless cell.is_a?(Cell)
        return escape(cell.text) if cell.value.nil?

        "<data value=\"#{cell.value}\">#{escape(cell.text)}</data>"
      end

      def escape(text)
        Chart.escape(text)
      end
    end
  end
end
