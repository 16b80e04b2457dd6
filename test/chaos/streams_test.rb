# frozen_string_literal: true

# Three servers of two workers behind HAProxy, with one Redis: servers, workers and Redis are killed, stopped, cut off,
# and Redis gets a full disk, while ten clients of each channel write down what they saw. Then a checker compares that
# with what publishers were told to be kept.
#
# RONDO_CHAOS_MESSAGES says how many messages there are, RONDO_CHAOS_SEED repeats the order of what happens.
# SPDX-License-Identifier: MIT

require "integration/pubsub/streams_case"
require "chaos/chaos_crowd"
require "support/proxy_process"
require "support/tcp_cutter"

class StreamsUnderChaosTest < StreamsCase
  MESSAGES = ENV.fetch("RONDO_CHAOS_MESSAGES", "20000").to_i
  SEED = ENV.fetch("RONDO_CHAOS_SEED") { Random.new_seed % 1_000_000 }.to_i
  CHANNELS = (1..10).map { |number| "kept:#{number}" }.freeze
  CLIENTS = 10
  SERVERS = 3
  BATCH = 50
  LAST = 300 # seconds for the last message to arrive everywhere
  DISK = 4 << 30

  # A line of the body is a message; the answer names those that are kept.
  APP = <<~'RUBY'
    Rondo::PubSub.history("kept:*", match: :redis, size: 20_000)
    class Feed
      def initialize(name) = @name = name
      def on_open(client) = client.subscribe(@name)
    end
    run lambda { |env|
      channel = env["QUERY_STRING"]
      if env["rack.upgrade?"]
        env["rack.upgrade"] = Feed.new(channel)
        next [200, {}, []]
      end
      next [200, {}, []] if env["REQUEST_METHOD"] != "POST"

      answers = Queue.new
      texts = env["rack.input"].read.split("\n")
      waiting = texts.count { |text| Rondo.publish(channel, text, confirm: 60) { |id| answers << [text, id] } }
      kept = Array.new(waiting) { answers.pop }.select { |_, id| id.is_a?(Integer) }
      [200, { "content-type" => "text/plain" }, kept.map { |text, id| "#{text} #{id}\n" }]
    }
  RUBY

  def setup
    @disk = own_disk
    super
    @random = Random.new(SEED)
    @happened = Hash.new(0)
    @course = []
    @cutter = TcpCutter.new(@redis.port)
    @ports = Array.new(SERVERS) { HeldPort.new }
    write "rondo.rb", "history_messages 1_500_000\nhistory_bytes 512 << 20\nmax_pending_bytes 64 << 20\nhub_queue_bytes 256 << 20\n"
    @cluster = @ports.each_index.map { |index| begin_server(index) }
    @proxy = ProxyProcess.new("haproxy", @ports.first.number, patience: "60s", server: "check inter 100ms",
                                                              haproxy: <<~LINES)
                                                                balance roundrobin
                                                                option httpchk GET /
                                                                #{@ports.drop(1).map.with_index { |port, index| "server more#{index} 127.0.0.1:#{port.number} check inter 100ms" }.join("\n")}
                                                              LINES
  end

  def teardown
    @crowd&.close
  ensure
    @proxy&.stop
    @cutter&.close
    super
    @ports&.each(&:close)
    leave_disk if @disk
  end

  def leave_disk
    system("umount", @disk) || warn("#{@disk} is still mounted")
    FileUtils.rmdir(@disk)
  end

  # The disk needs root.
  def own_disk
    return unless Process.uid.zero?

    folder = Dir.mktmpdir("rondo-chaos-disk")
    return folder if system("mount", "-t", "tmpfs", "-o", "size=#{DISK}", "tmpfs", folder, err: File::NULL)

    FileUtils.rmdir(folder)
    nil
  end

  # What Redis acknowledged outlives kill -9: with "everysec" it may answer before it has written. After a rewriting of
  # its file, a full disk makes Redis 7.0.15 cut the new file in the wrong place: it loses messages, or ends.
  def redis_words
    ["--appendonly", "yes", "--appendfsync", "no", "--auto-aof-rewrite-percentage", "0", *(["--dir", @disk] if @disk)]
  end

  def begin_server(index)
    redis = index.zero? ? "redis://127.0.0.1:#{@cutter.port}" : @redis.url
    start("-w", "2", "-t", "8:8", "-C", "rondo.rb", "--redis-streams", redis, binds: ["tcp://127.0.0.1:#{@ports[index].number}"]).tap do |server|
      2.times { |number| server.wait_for_log(/- Worker #{number} .* booted/) }
    end
  end

  # ---- what happens ----

  WAYS = %i[kill_server kill_worker stop_server kill_redis stop_redis cut_server cut_clients fill_disk].freeze

  def happen
    way = WAYS.sample(random: @random)
    way = :cut_clients if way == :fill_disk && !@disk
    @course << format("%<at>.2f %<way>s", at: Time.now.to_f, way: way)
    send(way)
    @course << format("%.2f", Time.now.to_f)
    @happened[way] += 1
  rescue Errno::ESRCH, Minitest::Assertion => e
    raise "#{e.message}; Redis says: #{File.readlines(File.join(@redis.folder, "log")).last(20).join}; #{told(way)}"
  end

  def kill_server
    index = @random.rand(SERVERS)
    @cluster[index].kill
    pause(0.5)
    @cluster[index] = begin_server(index)
  end

  def kill_worker
    pid = workers(@cluster.sample(random: @random)).first
    Process.kill("KILL", pid) if pid
  rescue Errno::ESRCH
    nil
  end

  def stop_server
    pids = tree(@cluster.sample(random: @random))
    pids.each { |pid| Process.kill("STOP", pid) }
    pause(2)
  ensure
    pids.each { |pid| Process.kill("CONT", pid) }
  end

  def kill_redis
    @redis.kill
    pause(0.5)
    @redis.start
  end

  def stop_redis
    @redis.freeze_process
    pause(2)
  ensure
    @redis.thaw
  end

  def cut_server
    @cutter.cut
    pause(1)
    @cutter.mend
  end

  def cut_clients
    @crowd.cut
  end

  # What Redis acknowledged when the disk became full is in its memory until it has written again: a Redis that is
  # killed then has lost it.
  def fill_disk
    path = File.join(@disk, "filler")
    File.open(path, "wb") { |file| loop { file.write("\0" * (1 << 20)) && file.flush } }
  rescue Errno::ENOSPC
    pause(1.5)
  ensure
    FileUtils.rm_f(path) if path
    eventually("Redis writes again") { @redis.cli("INFO", "persistence").include?("aof_last_write_status:ok") }
  end

  # Chaos needs time between its parts, not for anything to become true.
  def pause(seconds)
    IO.select(nil, nil, nil, seconds)
  end

  def workers(server)
    tree(server) - [server.pid]
  end

  def tree(server)
    children = ->(pid) { File.read("/proc/#{pid}/task/#{pid}/children").split.map(&:to_i).flat_map { |each| [each, *children.call(each)] } }
    [server.pid, *children.call(server.pid)]
  end

  # ---- publishing ----

  # @return [Thread] whose value is the kept messages, id by text
  def publisher(channel)
    Thread.new do
      kept = {}
      (MESSAGES / CHANNELS.size).times.each_slice(BATCH) do |numbers|
        kept.merge!(publish_batch(channel, numbers.map { |number| "#{channel}-#{number}" }))
      end
      kept
    end
  end

  # What has no answer may have been kept, or not.
  def publish_batch(channel, texts)
    answer = Net::HTTP.start("127.0.0.1", @proxy.port, read_timeout: 120) { |http| http.post("/?#{channel}", texts.join("\n")) }
    return {} unless answer.code == "200"

    answer.body.lines.to_h { |line| line.split }.transform_values(&:to_i)
  rescue SystemCallError, IOError, Timeout::Error, Net::HTTPBadResponse
    {}
  end

  def test_nothing_is_missing_and_nothing_comes_twice
    texts = CHANNELS.to_h { |channel| [channel, {}] }
    @crowd = ChaosCrowd.new(@proxy.port, texts, CLIENTS)
    begin_everywhere
    publishers = CHANNELS.to_h { |channel| [channel, publisher(channel)] }
    while publishers.each_value.any?(&:alive?)
      happen
      pause(0.5)
    end
    kept = publishers.transform_values(&:value)
    end_everywhere(kept)
    @crowd.close
    check(kept, texts)
  end

  # A reader without an id would begin anew.
  def begin_everywhere
    eventually("everybody has an id") do
      CHANNELS.each { |channel| publish_batch(channel, ["begin"]) }
      @crowd.readers.all? { |reader| reader.ids.any? }
    end
  end

  def end_everywhere(kept)
    limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + LAST
    last = kept.transform_values { |ids| ids.values.max }
    until @crowd.readers.all? { |reader| (reader.ids.last || 0) >= last[reader.channel] }
      break if Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit

      pause(0.1)
    end
  end

  # All channels are checked before the test fails: a `reset` of one may come with a gap of another.
  def check(kept, texts)
    say(kept)
    wrong = @crowd.readers.group_by(&:channel).flat_map do |channel, readers|
      readers.flat_map { |reader| wrong_with(reader, kept[channel].values) } + wrong_texts(kept[channel], texts[channel])
    end
    wrong = wrong.first(20) + ["#{wrong.size} in all", *server_lines] if wrong.any?
    assert_empty wrong, told("what is wrong")
  end

  def wrong_with(reader, expected)
    missing = expected.reject { |id| id < reader.ids.first } - reader.ids
    found = reader.faults.first(5).map { |fault| "#{reader.channel} double: #{fault}" }
    found.concat(reader.resets.map { |at, after| "#{reader.channel} reset after #{after}: #{course_at(at)}" })
    return found if missing.empty?

    before = reader.ids.reverse.find { |id| id < missing.first }
    found << "#{reader.channel} gap: #{missing.size} after #{before}, #{course_at(missing.first / 1e6)}"
  end

  def wrong_texts(kept, texts)
    other = kept.reject { |text, id| texts[id] == text }
    twice = texts.values.tally.select { |text, count| count > 1 && text != "begin" }
    other.first(5).map { |text, id| "#{text} has #{id}, but that is #{texts[id].inspect}" } +
      twice.first(5).map { |text, count| "#{text} was written #{count} times" }
  end

  # What servers say of clients and of Redis. Those that were killed have said it, too.
  def server_lines
    @servers.flat_map { |server| server.log.lines.grep(/history|streams|[Rr]edis|hub|queue|slow|refused/).last(40) }
  end

  # What happened about then.
  # @param time [Float] an id is microseconds
  def course_at(time)
    index = @course.index { |line| line.to_f > time } || @course.size
    @course[[index - 8, 0].max, 16].join(", ")
  end

  def told(what)
    "#{what}; RONDO_CHAOS_SEED=#{SEED} RONDO_CHAOS_MESSAGES=#{MESSAGES}; #{@happened}"
  end

  def say(kept)
    deliveries = @crowd.readers.sum { |reader| reader.ids.size }
    puts "#{kept.values.sum(&:size)} of #{MESSAGES} messages were confirmed, #{deliveries} deliveries, seed #{SEED}, #{@happened}"
  end
end
