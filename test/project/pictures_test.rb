# frozen_string_literal: true

# The pictures of docs/pictures/ are readable without zooming. tree_test.rb checks that they are what
# tools/draw_pictures draws.
# SPDX-License-Identifier: MIT

require "test_helper"
require_relative "../../tools/pictures/svg"

class PicturesTest < Minitest::Test
  FOLDER = File.expand_path("../../docs/pictures", __dir__)
  PICTURES = Dir[File.join(FOLDER, "*.svg")].sort
  TEXT = /<text x="([\d.]+)" y="([\d.]+)" font-family="([^"]+)" font-size="(\d+)" fill="[^"]*"([^>]*)>([^<]*)</
  Label = Struct.new(:words, :left, :right, :top, :bottom)

  PICTURES.each do |path|
    name = File.basename(path, ".svg")
    picture = File.read(path, encoding: "UTF-8")

    define_method(:"test_#{name}_has_text_of_at_least_12_pixels") do
      assert_operator picture.scan(/font-size="(\d+)"/).flatten.map(&:to_i).min, :>=, 12
    end

    # GitHub shows pictures at about this width. It would shrink a wider one, and its text.
    define_method(:"test_#{name}_is_not_wider_than_a_page") do
      assert_operator picture[/<svg [^>]*width="(\d+)"/, 1].to_i, :<=, 980
    end

    define_method(:"test_#{name}_has_a_background_of_its_own") do
      assert_match(/<rect width="\d+" height="\d+" rx="8" fill="#fcfdfe"/, picture)
    end

    define_method(:"test_#{name}_has_no_label_over_another_or_over_the_edge") do
      width = picture[/viewBox="0 0 (\d+)/, 1].to_i
      all = labels(picture)
      assert_empty(all.select { |label| label.left.negative? || label.right > width }.map(&:words))
      assert_empty(all.combination(2).select { |one, other| overlap?(one, other) }.map { |pair| pair.map(&:words) })
    end

    # A page of GitHub shows it without making its letters smaller.
    define_method(:"test_#{name}_is_no_wider_than_a_page") do
      assert_operator picture[/viewBox="0 0 (\d+)/, 1].to_i, :<=, 980
    end

    define_method(:"test_#{name}_is_shown_and_described_by_a_page") do
      page = File.read(File.join(FOLDER, "../ARCHITECTURE.md"), encoding: "UTF-8")
      assert_match(/!\[[^\]]{20,}\]\(pictures\/#{name}\.svg\)/, page)
      assert_match(/<title>.{10,}<\/title>/, picture)
    end
  end

  private

  # Rotated texts are left out.
  def labels(picture)
    picture.lines.grep_v(/transform=/).join.scan(TEXT).map do |x, y, font, size, more, words|
      width = Svg.width(words, size: size.to_i, font: font)
      label(words, x.to_f, y.to_f, size.to_i, width, more[/text-anchor="(\w+)"/, 1])
    end
  end

  def label(words, x, y, size, width, anchor)
    left = { "middle" => x - width / 2, "end" => x - width }.fetch(anchor, x)
    Label.new(words, left, left + width, y - size * 0.75, y + size * 0.2)
  end

  def overlap?(one, other)
    one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom
  end
end
