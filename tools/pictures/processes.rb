# frozen_string_literal: true

# The processes of a cluster: which one forks which, and the sockets between them.
# SPDX-License-Identifier: MIT

require_relative "sources"
require_relative "svg"

module ProcessesPicture
  LEGEND = { ruby: "runs Ruby", native: "a native thread", shared: "shared, outlives processes" }.freeze

  module_function

  def draw
    svg = Svg.new(900, 574, "The processes of a cluster and how they speak to each other")
    svg.text(20, 30, "The processes of a cluster", size: 15, weight: "bold")
    master(svg)
    mold(svg)
    slots(svg)
    forks(svg)
    messages(svg)
    scoreboard(svg)
    clients(svg)
    legend(svg)
    svg.to_s
  end

  # Only its name, because all boxes here are narrow.
  def file(name)
    File.basename(Sources.path(name))
  end

  def master(svg)
    svg.box(24, 66, 190, 48, ["process 1 of a container", file("first_process.rb")], colour: :ruby, dashed: true)
    svg.frame(300, 50, 330, 162, "master", colour: :ruby)
    svg.box(314, 82, 148, 118, ["one Ruby thread", file("cluster.rb"), file("supervisor.rb"), file("generations.rb"),
                                file("slots.rb")])
    svg.box(474, 82, 142, 55, ["control server", file("control.c")], colour: :native)
    svg.box(474, 145, 142, 55, ["hub", file("hub_thread.c")], colour: :native)
  end

  def mold(svg)
    svg.frame(24, 262, 190, 106, "mold, one a generation", colour: :ruby)
    svg.box(36, 294, 166, 62, ["the application", "loaded, never called", file("mold.rb")])
  end

  def slots(svg)
    svg.frame(300, 270, 330, 180, "slot 0")
    worker(svg, 312, 148, "seat 0: serves")
    worker(svg, 470, 148, "seat 1: takes over")
    svg.box(312, 396, 306, 44, ["listening sockets, inbox", "they outlive the slot's workers"], colour: :shared)
    svg.frame(672, 270, 204, 180, "slot 1")
    worker(svg, 684, 180, "seat 0: serves")
    svg.box(684, 396, 180, 44, ["sockets, inbox"], colour: :shared)
  end

  def worker(svg, x, width, words)
    svg.box(x, 302, width, 76, ["worker", words, file("worker.rb"), file("server/server.c")], colour: :ruby)
  end

  def forks(svg)
    svg.arrow([214, 90], [300, 90])
    svg.note(257, 84, "forks", anchor: "middle")
    svg.arrow([214, 340], [312, 340])
    svg.note(257, 334, "forks", anchor: "middle")
  end

  # Through message sockets, the hub's links and inboxes.
  def messages(svg)
    svg.arrow([300, 170], [119, 170], [119, 262], both: true)
    svg.note(128, 164, "fork, ready, stop …")
    svg.arrow([386, 212], [386, 302], both: true)
    svg.note(378, 242, "alive, stop …", anchor: "end")
    svg.arrow([520, 212], [520, 302], both: true)
    svg.note(512, 242, "alive, stop …", anchor: "end")
    svg.arrow([590, 212], [590, 236], [730, 236], [730, 302], both: true)
    svg.note(600, 230, "published messages")
    svg.arrow([618, 340], [652, 340], [652, 470], [724, 470], [724, 440])
    svg.note(644, 474, "connections change their worker", anchor: "end")
  end

  def scoreboard(svg)
    svg.box(684, 82, 192, 76, ["scoreboard", "memory of all processes:", "a row for each that serves",
                               file("scoreboard.c")], colour: :shared)
    svg.arrow([684, 110], [616, 110])
    svg.note(657, 104, "reads", anchor: "middle")
    svg.arrow([850, 302], [850, 158])
    svg.note(842, 200, "each worker writes its row", anchor: "end")
  end

  def clients(svg)
    svg.box(300, 510, 576, 40, ["clients"])
    svg.arrow([400, 510], [400, 440])
    svg.arrow([774, 510], [774, 440])
  end

  def legend(svg)
    LEGEND.each_with_index do |(colour, words), row|
      svg.rect(24, 440 + row * 26, 18, 16, colour)
      svg.note(50, 453 + row * 26, words)
    end
    svg.note(24, 532, "A restart by exec replaces the master", "and keeps all the others.")
  end
end
