# frozen_string_literal: true

# The master of a server that a program began, after a restart by USR2. It is executed as a script (program.rb).
# SPDX-License-Identifier: MIT

require "rondo/process/program"

begin
  exit Rondo::Program.continue
rescue Rondo::Error => e
  abort "rondo: #{Rondo::Logger.escape(e.message.lines.map(&:chomp).join(" "))}"
end
