# frozen_string_literal: true

# What presence takes: bytes of memory for each of 10,000 ids, in the process that has their connections and in one that
# only knows of them; and how long the ids of a killed server stay at another one. Needs redis-server.
#
#   ruby bench/presence.rb [IDS]
# SPDX-License-Identifier: MIT

$LOAD_PATH.unshift(File.expand_path("../lib", __dir__), File.expand_path("../test", __dir__))
require "objspace"
require "rondo"
require "rondo/pubsub/presence"

IDS = Integer(ARGV.fetch(0, "10000"))
INFO = { "name" => "A name of some length", "at" => 1 }.freeze

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

def resident
  3.times { GC.start }
  File.read("/proc/self/smaps_rollup")[/^Pss_Anon:\s+(\d+)/, 1].to_i * 1024
end

# A process of its own, so that memory of another measurement is not used again.
def in_child
  read, write = IO.pipe
  pid = fork do
    write.write(Marshal.dump(yield))
    exit!(0)
  end
  write.close
  Marshal.load(read.read) # rubocop:disable Security/MarshalLoad
ensure
  Process.wait(pid)
end

def replica(name)
  Rondo::Presence::Replica.new(name, Rondo::Presence::Limits.default, 0.0)
end

def messages(info)
  sender = replica("b" * 16)
  IDS.times { |number| sender.join("room", "user-#{number}", info, 0.0) }
  sender.tick(0.0)
  sender.out.filter_map { |kind, room, text| [room, text] if kind == :room }
end

# @return [Array<Float>] bytes of objects for each id, and of the process
def known(info)
  texts = in_child { messages(info) } # its garbage would be used again
  in_child do
    receiver = replica("a" * 16)
    receiver.follow("room", 0.0)
    before = [resident, ObjectSpace.memsize_of_all]
    texts.each { |room, text| receiver.receive(room, text, 0.1) }
    after = [resident, ObjectSpace.memsize_of_all]
    raise "#{receiver.entries("room").size} ids came" unless receiver.entries("room").size == IDS

    before.zip(after).map { |one, other| (other - one) / IDS.to_f }
  end
end

def joined(info)
  in_child do
    own = replica("a" * 16)
    before = [resident, ObjectSpace.memsize_of_all]
    clients = {}.compare_by_identity
    IDS.times do |number|
      id = "user-#{number}".freeze
      own.join("room", id, info&.dup&.freeze, 0.0)
      clients[Object.new] = [own.rooms["room"].name, id]
    end
    own.tick(0.0)
    own.out.clear
    after = [resident, ObjectSpace.memsize_of_all]
    before.zip(after).map { |one, other| ((other - one) / IDS.to_f) }
  end
end

def row(title, process, objects)
  puts [title.ljust(54), process.to_s.rjust(8), objects.to_s.rjust(8)].join
end

def show_memory
  row("bytes for each of #{IDS} ids", "process", "objects")
  [["no info", nil], ["info of #{JSON.generate(INFO).bytesize} bytes", JSON.generate(INFO)]].each do |words, info|
    row("of another process, #{words}", *known(info).map(&:round))
    row("of this process with its clients, #{words}", *joined(info).map(&:round))
  end
end

# Two replicas by the clock of this loop: how long the ids of one stay at the other, for deaths at any time of a beat.
def deaths
  (0...20).map { |part| death(3 + (part / 20.0)) }
end

def death(died)
  time = 0.0
  living, other = replica("a" * 16), replica("b" * 16)
  other.join("room", "x", nil, time)
  living.follow("room", time, until_time: 1e9)
  while time < died || !living.entries("room").empty?
    time += 0.01
    here = time < died ? [living, other] : [living]
    here.each { |one| one.tick(time) }
    here.each { |from| exchange(from, here, time) }
  end
  time - died
end

def exchange(from, here, time)
  from.out.shift(from.out.size).each do |kind, *words|
    room = words[0] if kind == :room
    here.each { |one| one.receive(room, words.last, time) } if %i[room all].include?(kind)
  end
end

show_memory
all = deaths.sort
puts "a dead process is gone after #{all.first.round(2)} s to #{all.last.round(2)} s"
