# frozen_string_literal: true

# `rondo publish` whose message does not come from standard input.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "rondo/command/command_line"
require "rondo/command/publish"
require "stringio"

class PublishCommandTest < Minitest::Test
  # What is read raises this.
  Broken = Struct.new(:error) do
    def read(_) = raise(error)
  end

  def test_standard_input_that_cannot_be_read
    [Errno::EISDIR.new("io_fread - <STDIN>"), IOError.new("not opened for reading")].each do |error|
      assert_match(/\Arondo: cannot read standard input: (Is a directory|not opened for reading)\n\z/, said(1, Broken.new(error)))
    end
    assert_match(/\Arondo: cannot read standard input: it is closed\n\z/, said(1, nil))
  end

  def test_an_interrupt_while_it_waits
    assert_empty said(130, Broken.new(Interrupt.new("")))
  end

  private

  # @return [String] on standard error
  def said(code, input)
    out, err = StringIO.new, StringIO.new
    assert_equal code, Rondo::Publish.new(%w[news -], out: out, err: err, input: input).run
    assert_empty out.string
    err.string
  end
end
