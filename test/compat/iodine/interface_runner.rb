# frozen_string_literal: true

# Evaluates each line of a file in a process of its own, and writes what it returns or raises. Run with the library that
# is to be tried (interface_test.rb).
# SPDX-License-Identifier: MIT

# What newer Rubies write in another way than the one by which iodine was recorded.
class Hash
  def inspect
    "{#{map { |key, value| "#{key.inspect}=>#{value.inspect}" }.join(", ")}}"
  end
end

class Encoding
  def inspect
    "#<Encoding:#{name}#{" (dummy)" if dummy?}>"
  end
end

$stdout.sync = true
File.foreach(ARGV.fetch(0), chomp: true) do |line|
  next if line.start_with?("#")

  pid = fork do
    $stderr.reopen(File::NULL)
    result = begin
      eval(line).inspect # rubocop:disable Security/Eval -- that is what it is for
    rescue Exception => e # rubocop:disable Lint/RescueException
      "#{e.class}: #{e.message}"
    end
    puts "#{line} -> #{result.b.gsub(/0x\h+/n, "0x").inspect[1..-2]}"
    exit!(0)
  end
  status = Process.wait2(pid).last
  puts "#{line} -> crashed" unless status.success?
end
