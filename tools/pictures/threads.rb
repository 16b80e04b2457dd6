# frozen_string_literal: true

# The threads of a process, the rows of ARCHITECTURE's table: each has its place here, and each place its row.
# SPDX-License-Identifier: MIT

require_relative "sources"
require_relative "svg"

module ThreadsPicture
  HEADING = "The threads of a process"
  # Row of the table => x, y, width, height, colour, and what the box says between name and file.
  PLACES = {
    "the one that called `run()`" => [36, 84, 236, 58, :ruby, "supervises, takes signals"],
    "a thread for each engine" => [296, 84, 236, 58, :ruby, "tells it of subscriptions"],
    "standbys" => [54, 206, 178, 58, :ruby, "wait to take the loop"],
    "the leader" => [338, 206, 178, 58, :ruby, "runs the loop, calls"],
    "in the application" => [338, 324, 178, 58, :ruby, "lost the loop, goes on"],
    "stepped out" => [338, 446, 178, 58, :ruby, "waits for its client"],
    "aside" => [54, 446, 178, 58, :ruby, "lets others go first"],
    "the watch thread" => [696, 84, 196, 58, :native, "turns for the leader"],
    "threads for disks" => [696, 206, 196, 58, :native, "open, read, write files"],
    "the control thread" => [696, 324, 196, 58, :native, "a server of its own"],
    "the hub's thread" => [696, 446, 196, 58, :native, "in the master"]
  }.freeze

  module_function

  def draw
    svg = Svg.new(928, 546, "The threads of a process and what they share")
    svg.text(20, 30, HEADING, size: 15, weight: "bold")
    svg.frame(20, 48, 532, 480, "Ruby threads: one at a time holds the GVL")
    svg.frame(36, 164, 500, 352, "Application threads, by what they do just now")
    svg.frame(680, 48, 228, 480, "Native threads: no GVL")
    svg.box(570, 84, 92, 180, ["rd_server", "the loop", "connections", "queues", "timers", "", "under the",
                               "loop lock"], colour: :shared)
    svg.box(570, 324, 92, 180, ["cluster", "scoreboard", "inboxes", "", "published", "messages"], colour: :shared)
    threads(svg)
    arrows(svg)
    svg.to_s
  end

  def threads(svg)
    rows = Sources.table(HEADING).to_h { |name, _, where| [name, where] }
    differing = (rows.keys - PLACES.keys) + (PLACES.keys - rows.keys)
    raise "tools/pictures/threads.rb and ARCHITECTURE's table differ: #{differing.join(", ")}" if differing.any?

    PLACES.each do |name, (x, y, width, height, colour, words)|
      file = Sources.path(rows.fetch(name)[/`([^`]+)`/, 1])
      file = "lib: #{file}" if file.end_with?(".rb") # the others are below ext/rondo
      svg.box(x, y, width, height, [name.delete("`"), words, file], colour: colour)
    end
  end

  # Between the states of an application thread, see binding/rb_pool.h; then to what all share.
  def arrows(svg)
    svg.arrow([232, 222], [338, 222])
    svg.note(285, 217, "takes the loop", anchor: "middle")
    svg.arrow([400, 264], [400, 324])
    svg.arrow([470, 324], [470, 264])
    svg.note(394, 298, "calls", anchor: "end")
    svg.note(476, 298, "returns")
    svg.arrow([338, 344], [143, 344], [143, 264])
    svg.note(152, 338, "returns to a taken loop")
    svg.arrow([400, 382], [400, 446])
    svg.note(394, 419, "waits", anchor: "end")
    svg.arrow([470, 446], [470, 382])
    svg.note(476, 412, "a place", "is free")
    svg.arrow([338, 366], [100, 366], [100, 446])
    svg.note(109, 384, "its body had its time")
    svg.arrow([190, 446], [190, 408], [352, 408], [352, 382])
    svg.note(198, 424, "a place is left")
    svg.arrow([516, 235], [570, 235], both: true)
    svg.arrow([696, 113], [662, 113], both: true)
    svg.arrow([696, 235], [662, 235])
    svg.arrow([662, 353], [696, 353], both: true)
    svg.arrow([662, 475], [696, 475], both: true)
    svg.arrow([616, 264], [616, 324], both: true)
  end
end
