# frozen_string_literal: true

# What many connections need, from figures that were measured here and assumptions that are named: the tables of
# docs/SCALE.md. Nothing here was tried at that size.
# SPDX-License-Identifier: MIT

# One row of figures.tsv.
Figure = Struct.new(:name, :value, :unit, :meaning, :file, :text)

module ScaleCalculation
  FIGURES = File.readlines(File.join(__dir__, "figures.tsv"), chomp: true).drop(2).to_h do |line|
    figure = Figure.new(*line.split("\t"))
    [figure.name.to_sym, figure]
  end

  # [value, unit, what it is]
  ASSUMED = {
    cores: [16, "", "cores of a machine"],
    memory: [64, "GiB", "memory of a machine"],
    nic: [10, "Gbit/s", "network of a machine"],
    share: [0.5, "", "share of CPU, memory and network that may be used; the rest is for storms"],
    kernel: [4096, "bytes", "kernel memory of an idle TCP connection; not measured here"],
    wire: [180, "bytes", "of a message of 100 bytes on the wire: frame, TLS, TCP, IP, Ethernet"],
    rate: [0.1, "messages/s", "that each client gets"],
    crowd: [100, "clients", "of a channel; each is at a machine by chance"],
    stay: [600, "s", "that a client stays, for presence and new connections"],
    back: [30, "s", "over which the clients of a machine that is gone come back, evenly"],
    missed: [10, "messages", "that a client which comes back has missed"]
  }.freeze

  SIZES = [10_000, 1_000_000, 10_000_000].freeze
  NAMES = ["10 thousand", "1 million", "10 million"].freeze

  module_function

  def figure(name) = FIGURES.fetch(name).value.to_f
  def assumed(name) = name == :rate && @rate ? @rate : ASSUMED.fetch(name).first

  # With another rate of messages for each client.
  def at(rate)
    @rate = rate
    yield
  ensure
    @rate = nil
  end

  # ---- one machine ----

  def bytes_per_client = figure(:idle) + figure(:tls) + assumed(:kernel)
  def core_us = assumed(:cores) * assumed(:share) * 1_000_000

  # Messages come one at a time to a client.
  def us_per_client
    (assumed(:rate) * figure(:deliver)) + (figure(:handshake) / assumed(:stay))
  end

  # @return [Hash{Symbol => Float}] how many clients a machine can have, by what is used up
  def clients_by
    {
      memory: assumed(:memory) * (2**30) * assumed(:share) / bytes_per_client,
      cpu: core_us / us_per_client,
      network: assumed(:nic) * 1e9 / 8 * assumed(:share) / (assumed(:rate) * assumed(:wire)),
      storm: core_us * assumed(:back) / figure(:handshake)
    }
  end

  # ---- many machines ----

  def machines(clients) = [(clients / clients_by.values.min).ceil, 2].max

  # At how many of the machines a channel has a client.
  def reached(machines)
    machines * (1 - ((1 - (1.0 / machines))**assumed(:crowd)))
  end

  def published(clients) = clients * assumed(:rate) / assumed(:crowd)

  # What the engine of one machine has to do: its share of publishing, and all that reaches it. Half of the cost of a
  # message that is published and delivered is taken for each.
  def engine_share(clients)
    machines = machines(clients)
    coming = published(clients) * reached(machines) / machines
    going = published(clients) / machines
    (coming + going) * figure(:engine) / 2 / 1_000_000
  end

  def redis_share(clients)
    published(clients) * script_us(reached(machines(clients))) / 1_000_000
  end

  def script_us(servers)
    figure(:script) + ((figure(:script100) - figure(:script)) / 99 * (servers - 1))
  end

  # Messages of presence: each arrival and each departure to all of a channel.
  def presence(clients) = clients * 2.0 / assumed(:stay) * assumed(:crowd)

  # Messages a second that one engine, or one Redis, can have within the share.
  def engine_max(machines) = assumed(:share) * 1_000_000 / (figure(:engine) / 2 * (1 + (1.0 / machines)))
  def redis_max(servers) = assumed(:share) * 1_000_000 / script_us(servers)

  # ---- tables ----

  def number(value)
    value = value.round(value < 10 ? 2 : 0)
    value = value.to_i if value == value.to_i
    value.to_s.gsub(/(?<=\d)(?=(\d{3})+(?!\d))(?<!\.\d)/, ",")
  end

  def percent(value) = "#{number(value * 100)} %"

  def table(heads, rows)
    [heads, heads.map { "---" }, *rows].map { |cells| "| #{cells.join(" | ")} |" }.join("\n")
  end

  def measured
    rows = FIGURES.each_value.map do |each|
      path = each.file.start_with?("docs/") ? each.file.delete_prefix("docs/") : "../#{each.file}"
      [each.meaning, "#{each.value} #{each.unit}", "[#{File.basename(path)}](#{path})"]
    end
    table(["measured here", "figure", "where"], rows)
  end

  def assumptions
    table(%w[assumed figure], ASSUMED.each_value.map { |value, unit, what| [what, "#{value} #{unit}".strip] })
  end

  def machine
    words = { memory: "memory: #{number(bytes_per_client)} bytes each",
              cpu: "CPU: #{number(us_per_client)} µs a second each",
              network: "network: #{number(assumed(:rate) * assumed(:wire))} bytes a second each",
              storm: "all that come back within #{assumed(:back)} s, a full handshake each" }
    table(["a machine is full by", "at so many clients"],
          clients_by.sort_by(&:last).map { |name, count| [words[name], number(count)] })
  end

  ROWS = {
    "machines" => ->(n) { number(machines(n)) },
    "messages published/s" => ->(n) { number(published(n)) },
    "messages delivered/s" => ->(n) { number(n * assumed(:rate)) },
    "machines that a channel reaches" => ->(n) { number(reached(machines(n))) },
    "engine of a machine, of one core" => ->(n) { percent(engine_share(n)) },
    "one Redis, of one core" => ->(n) { percent(redis_share(n)) },
    "Redis needed at half a core" => ->(n) { number((redis_share(n) / 0.5).ceil) },
    "presence told to all of a channel, messages/s" => ->(n) { number(presence(n)) },
    "the same, over the messages delivered" => ->(n) { "#{number(presence(n) / (n * assumed(:rate)))} times" }
  }.freeze

  def sizes
    table(["", *NAMES], ROWS.map { |name, of| [name, *SIZES.map { |size| instance_exec(size, &of) }] })
  end

  def engines
    table(["messages of channels with a history", "at most"],
          [["reach the engine of a machine, a Ruby thread with one core; two machines", "#{number(engine_max(2))} /s"],
           ["the same, of a hundred machines", "#{number(engine_max(100))} /s"],
           ["written by one Redis for one server", "#{number(redis_max(1))} /s"],
           ["written by one Redis, each for a hundred servers", "#{number(redis_max(100))} /s"]])
  end

  def rates
    rows = [0.1, 1, 10].flat_map do |rate|
      at(rate) do
        SIZES.map.with_index do |clients, index|
          [number(rate), NAMES[index], number(machines(clients)), percent(engine_share(clients)),
           percent(redis_share(clients))]
        end
      end
    end
    table(["messages/s for each client", "clients", "machines", "engine of a machine, of one core",
           "one Redis, of one core"], rows)
  end

  def storms
    rows = SIZES.map.with_index do |clients, index|
      gone = clients / machines(clients)
      left = [machines(clients) - 1, 1].max
      busy = gone / left * figure(:handshake) / assumed(:back) / (assumed(:cores) * 1_000_000)
      bytes = gone * assumed(:missed) * assumed(:wire) * 8.0 / left / assumed(:back) / 1e9
      [NAMES[index], number(gone), percent(busy), "#{number(bytes)} Gbit/s", number(gone * assumed(:missed))]
    end
    table(["", "clients of a machine that is gone", "CPU of each other one, for handshakes",
           "network of each, for replays", "messages replayed in all"], rows)
  end
end
