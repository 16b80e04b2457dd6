# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# A call in C that keeps Ruby's lock until the test opens a gate. For test cases with a folder, which is the working
# directory of their servers. Their other calls may wait for the file "go".
module Gate
  # For an application: GATE.call waits.
  APP = <<~RUBY
    require "fiddle"
    GATE = lambda do
      read = Fiddle::Function.new(Fiddle.dlopen(nil)["read"], [-Fiddle::TYPE_INT, Fiddle::TYPE_VOIDP, -Fiddle::TYPE_LONG],
                                  Fiddle::TYPE_LONG, need_gvl: true)
      File.open("gate", "r+") { |gate| read.call(gate.fileno, Fiddle.malloc(1), 1) }
    end
  RUBY

  def setup
    super
    File.mkfifo(File.join(@folder, "gate"))
    @gate = File.open(File.join(@folder, "gate"), "r+")
  end

  def teardown
    open_gate
    @sockets&.each(&:close)
    super
    @gate.close
  end

  # The calls that are inside continue.
  def open_gate
    write "go", ""
    @gate.write("x")
    @gate.flush
  end
end
