# frozen_string_literal: true

# Compares what Rondo does with what iodine 0.7.60 has done, which stands in `transcripts/`. With RONDO_COMPAT=iodine
# iodine itself runs, and has to do the same again; RONDO_COMPAT=record writes that down.
# SPDX-License-Identifier: MIT

require_relative "contender"

module Recorded
  KIND = ENV.fetch("RONDO_COMPAT", "rondo").to_sym
  FOLDER = File.join(__dir__, "transcripts")

  # @param name [String] of a transcript
  # @param run [#call] gets :rondo or :iodine, returns the text
  # @yieldparam theirs [String]
  # @yieldparam ours [String]
  def compare(name, run)
    path = File.join(FOLDER, "#{name}.txt")
    return yield(File.binread(path), run.call(:rondo)) if KIND == :rondo

    skip "iodine 0.7.60 is not installed (RONDO_TEST_IODINE)" unless Contender::IODINE
    found = run.call(:iodine)
    KIND == :record ? File.binwrite(path, found) : assert_equal(File.binread(path), found)
  end
end
