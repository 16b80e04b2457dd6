# frozen_string_literal: true

# Servers that a program begins: what it has loaded serves, restarts execute it anew, what stands behind the call runs
# at the end, and mistakes are errors that name the place.
# SPDX-License-Identifier: MIT

require_relative "cluster_case"

class ProgramTest < ClusterCase
  RESTARTS = ENV.fetch("RONDO_TEST_RESTARTS", "4").to_i

  # @param settings [String] arguments of the call
  # @param before [String] lines in front of it
  # @param after [String] what stands behind it
  def text(settings, before: "", after: "")
    <<~RUBY
      require "rondo"
      warn "loaded by \#{Process.pid}"
      #{before}
      VERSION_OF_CODE = "one"
      app = lambda do |env|
        body = case env["PATH_INFO"]
               when "/code" then VERSION_OF_CODE
               when "/again" then (Rondo.start(nil) rescue $!.message)
               else Process.pid.to_s
               end
        [200, {}, [body]]
      end
      Rondo.start(app, #{settings})#{after}
    RUBY
  end

  def program(settings, env: {}, **parts)
    path = write("program.rb", text(settings, **parts))
    Program.new(path, env: BLANK.merge(env), spawn: { chdir: @folder }).tap { |server| @servers << server }
  end

  def loads(server)
    server.log.scan(/^loaded by (\d+)$/).flatten.map(&:to_i)
  end

  def code(server)
    get(server, "/code").body
  end

  def newer_code(name)
    write "program.rb", read("program.rb").sub(/ = ".*"$/, " = #{name.inspect}")
  end

  # @return [Integer] where a client reaches the first raw listener
  def raw_port(server)
    XorProxy.front_port(server.log[/Listening on raw tcp:\S+:(\d+)$/, 1].to_i)
  end

  def assert_echo(port)
    socket = TCPSocket.new("127.0.0.1", port)
    socket.write("words\n")
    assert_equal "words\n", Timeout.timeout(PATIENCE) { socket.gets }
  ensure
    socket&.close
  end

  def run_program(settings, **parts)
    run_command(RbConfig.ruby, "-I#{File.join(ROOT, "lib")}", write("program.rb", text(settings, **parts)))
  end

  def test_one_process
    server = program('bind: "tcp://127.0.0.1:0", threads: [1, 2]', after: "\nwarn 'behind the call'")
    assert_equal server.pid.to_s, get(server).body
    assert_includes server.log, "*  Max threads: 2 (Rondo.start)\n"
    newer_code("two")
    after_signal(server, "USR2", /Use Ctrl-C to stop/)
    assert_equal "two", code(server)
    assert_equal 0, server.stop.exitstatus
    assert_match(/- Goodbye!\nbehind the call$/, server.log)
  end

  def test_the_program_of_the_docs
    code = File.read(File.join(ROOT, "docs/PROGRAM.md"))[/^```ruby\n(.*?)^```$/m, 1]
    path = write("program.rb", code.sub("127.0.0.1:3000", "127.0.0.1:0"))
    server = Program.new(path, env: BLANK, spawn: { chdir: @folder }).tap { |each| @servers << each }
    wait_for_workers(server, 2)
    assert_equal "hello\n", get(server).body
    assert server.stop.success?
  end

  # What was loaded is there once: the first mold is forked.
  def test_workers_are_forked_from_what_was_loaded
    server = program("bind: %w[127.0.0.1:0 ./app.sock], workers: 2", after: "\nwarn 'behind the call'")
    wait_for_workers(server, 2)
    assert_equal [server.pid], loads(server)
    assert_includes workers(server).values, get(server).body.to_i
    assert_includes server.log, "unix://#{@folder}/app.sock"
    server.signal("TERM")
    assert_equal 15, server.stop.termsig
    refute_includes server.log, "behind the call"
  end

  def test_settings_of_the_environment_and_hooks
    more = ' { before_worker_boot { |index| warn ["worker", index, "boots"].join(" ") }; after_stopped { warn "stopped" }; after_drain { warn "drained" }; max_threads 2 }'
    server = program("bind: 'tcp://127.0.0.1:0'", env: { "WEB_CONCURRENCY" => "1", "RAILS_MAX_THREADS" => "3" }, after: more)
    wait_for_workers(server, 1)
    assert_includes server.log, "*  Max threads: 2 (Rondo.start)\n"
    assert_includes server.log, "! after_drain: the master stops using this at the first restart by USR2, because the next"
    assert server.stop.success?
    assert_match(/^worker 0 boots$.*^stopped$.*^drained$/m, server.log)
  end

  def test_restarts_under_load
    server = program('bind: "tcp://127.0.0.1:0", workers: 2')
    wait_for_workers(server, 2)
    load = load_on(server)
    RESTARTS.times do |n|
      newer_code("code #{n}")
      load.more(20)
      restart(server, n.even? ? "USR1" : "USR2", phase: n + 1)
      assert_equal "code #{n}", code(server)
    end
    load.more(20)
    assert_empty load.stop
    assert_equal RESTARTS + 1, loads(server).uniq.size
    refute_includes loads(server).drop(1), server.pid, "the master has loaded the program again"
    assert server.stop.success?
  end

  # The settings of the master are those of the program that runs now.
  def test_a_restart_reads_the_settings_again
    server = program('bind: "tcp://127.0.0.1:0", workers: 1')
    wait_for_workers(server, 1)
    write "program.rb", read("program.rb").sub("workers: 1", "workers: 2, tag: 'another'")
    restart(server, "USR2", phase: 1, count: 2)
    assert_includes title(server.pid), "[another]"
    assert server.stop.success?
  end

  LOG = <<~RUBY
    Name = Class.new(String)
    Log = Struct.new(:name) do
      def write(line)
        $stderr.write(line)
      end
    end
  RUBY

  # The next master does not know the classes of the program.
  def test_an_object_that_only_the_program_knows
    server = program('bind: "tcp://127.0.0.1:0", workers: 1, custom_logger: Log.new("name"), tag: Name.new("a tag")', before: LOG)
    wait_for_workers(server, 1)
    assert_includes server.log, "! custom_logger: the master stops using this at the first restart by USR2"
    2.times { |n| restart(server, "USR2", phase: n + 1) }
    assert_includes title(server.pid), "[a tag]"
    newer_code("two")
    restart(server, "USR1", phase: 3)
    assert_equal "two", code(server)
    assert server.stop.success?
  end

  ECHO = <<~RUBY
    class Echo
      def on_message(client, words)
        client.write(words)
      end
    end
  RUBY

  def test_raw_connections
    server = program('bind: "tcp://127.0.0.1:0", listen_raw: ["tcp://127.0.0.1:0", -> { Echo.new }], workers: 2', before: ECHO)
    wait_for_workers(server, 2)
    port = raw_port(server)
    %w[USR2 USR1 USR2].each.with_index(1) do |signal, phase|
      assert_echo(port)
      restart(server, signal, phase: phase)
    end
    assert_echo(port)
    assert_equal "one", code(server)
    assert server.stop.success?
  end

  ROOT_BLOCKS = <<~'RUBY'
    Rondo::Root.run { warn "root #{Process.pid} runs"; raise "a mistake" }
    Rondo::Root.run { exit 7 }
    ENDED = ->(pid) { File.read("/proc/#{pid}/stat").include?(") Z") rescue true }
    Rondo::Root.run do
      pids = Array.new(5) { spawn("exit 3") }
      10.times { sleep 0.01 until pids.all?(&ENDED) && sleep(0.005) }
      warn "codes #{pids.map { |pid| Process.wait2(pid)[1].exitstatus }.uniq}"
    end
    Rondo::Root.run_every(20, 3) { warn "root tick" }
    Rondo::Root.run_after(3_600_000) { warn "too early" }
    late = Rondo::Root.run_after(30) { warn "cancelled" }
    late.cancel
    Rondo::Root.subscribe("news") { |channel, message| warn "root #{Process.pid} heard #{message.encoding} #{message} of #{channel}" }
    Rondo::Root.subscribe("other*", true) { |channel, _| warn "root heard #{channel}"; Rondo::Root.unsubscribe("other*", true) }
    Rondo.publish "news", "nobody is there yet"
    Rondo.subscribe("talk") do |_, message|
      Rondo.publish("own", "up", Rondo::PubSub::ROOT)
      Rondo.publish("own", "sideways", Rondo::PubSub::SIBLINGS)
      Rondo.publish("news", message)
    end
    Rondo.subscribe("own") { |_, message| warn "worker heard #{message}" }
    Rondo::Root.subscribe("own") { |_, message| warn "root heard #{message}" }
  RUBY
  TALK = "Rondo::Root.run { Thread.new { sleep 0.01 until File.exist?('go'); Rondo.publish('own', 'down', Rondo::PubSub::SIBLINGS); " \
         "Rondo.publish('own', 'here', false); Rondo.publish('talk', 'words'); " \
         "2.times { |n| Rondo.publish(%(other\#{n}), 'x') } } }\n" \
         "Rondo::Root.subscribe('ready') { warn 'a worker is known' }\n" \
         "Rondo.run { Rondo.publish('ready', 'x', Rondo::PubSub::ROOT) }\n"

  # Never on the loop of the master, whatever they do.
  def test_blocks_of_the_first_process
    server = program('bind: "tcp://127.0.0.1:0", workers: 1', before: ROOT_BLOCKS + TALK)
    wait_for_workers(server, 1)
    assert_includes server.log, "! Rondo::Root: the master stops using this at the first restart by USR2"
    server.wait_for_log(/(root tick.*){3}/m)
    assert_includes server.wait_for_log(/^codes .*$/)[0], "codes [3]"
    server.wait_for_log(/^a worker is known$/) # with what it subscribes to
    write "go", ""
    server.wait_for_log(/^root #{server.pid} heard UTF-8 words of news$/)
    server.wait_for_log(/^root heard other0$/)
    heard = ["root heard here", "root heard sideways", "root heard up", "worker heard down"]
    heard.each { |line| server.wait_for_log(/^#{line}$/) } # the order is that of each channel
    assert_equal heard, server.log.scan(/^(?:root|worker) heard (?!other).*$/).sort
    assert_match(/^root #{server.pid} runs$/, server.log)
    assert_match(/^! Rondo::Root: .*a mistake/, server.log)
    assert_match(/^! Rondo::Root: .*exit/, server.log)
    assert_equal 3, server.log.scan("root tick").size
    refute_match(/cancelled|too early|heard other1|nobody is there/, server.log)
    restart(server, "USR1", phase: 1)
    restart(server, "USR2", phase: 2)
    assert_equal 1, server.log.scan(/ runs$/).size
    assert_equal "one", code(server)
    assert server.stop.success?
  end

  def test_blocks_of_the_first_process_where_there_is_one
    server = program('bind: "tcp://127.0.0.1:0"', before: ROOT_BLOCKS.sub(/^.*exit 7.*\n/, "") + "Rondo.run { Rondo.publish('news', 'words') }\n")
    server.wait_for_log(/^root #{server.pid} runs$.*^root #{server.pid} heard UTF-8 words of news$/m)
    server.wait_for_log(/(root tick.*){3}/m)
    refute_match(/cancelled|too early/, server.log)
    assert server.stop.success?
  end

  # A block that does not return keeps neither the master nor its end.
  def test_a_block_of_the_first_process_that_never_returns
    server = program('bind: "tcp://127.0.0.1:0", workers: 1', before: "Rondo::Root.run { warn 'it sleeps'; sleep }\n")
    server.wait_for_log(/it sleeps/)
    wait_for_workers(server, 1)
    restart(server, "USR1", phase: 1)
    assert server.stop.success?
    assert_includes server.log, "! A block of Rondo::Root did not end in time"
  end

  # They are more than a message between two processes may have, or a pipe holds.
  def test_settings_of_any_size
    server = program('bind: "tcp://127.0.0.1:0", workers: 1')
    wait_for_workers(server, 1)
    write "program.rb", read("program.rb").sub("workers: 1", "workers: 1, tag: 'long' * 25_000")
    2.times { |n| restart(server, "USR2", phase: n + 1) }
    assert_includes title(server.pid), "[longlong"
    restart(server, "USR1", phase: 3)
    write "program.rb", read("program.rb").sub("25_000", "5")
    restart(server, "USR2", phase: 4)
    assert_includes title(server.pid), "[longlonglonglonglong]"
    assert server.stop.success?
  end

  # The program takes its folder away, so nothing can be executed there.
  def test_a_master_that_cannot_be_replaced
    folder = File.join(@folder, "inside")
    path = write("inside/program.rb", text('bind: "tcp://127.0.0.1:0", workers: 1'))
    server = Program.new(path, env: BLANK, spawn: { chdir: folder }).tap { |each| @servers << each }
    wait_for_workers(server, 1)
    good = File.read(path)
    File.write(path, "File.rename(#{folder.inspect}, #{"#{folder} elsewhere".inspect})\n#{good}")
    after_signal(server, "USR2", /^! cannot restart: .*No such file/)
    assert_includes workers(server).values, get(server).body.to_i
    FileUtils.mv("#{folder} elsewhere", folder)
    File.write(path, good)
    restart(server, "USR2", phase: 1)
    assert_equal "one", code(server)
    assert server.stop.success?
  end

  def test_a_program_that_cannot_be_used_any_more
    server = program('bind: "tcp://127.0.0.1:0", workers: 1')
    wait_for_workers(server, 1)
    good = read("program.rb")
    signals = %w[USR1 USR2]
    { "raise 'no luck'" => /generation 0 keeps serving/, "exit" => /generation 0 keeps serving/,
      "Rondo.start(app, workrs: 1)" => /unknown setting workrs; did you mean workers\?; generation 0 keeps serving/,
      "Rondo.start(app, workers: 0)" => /workers is 0 now; stop the server and start it again; generation 0/ }.each do |line, log|
      write "program.rb", good.sub(/^Rondo\.start/, "#{line}\n\\0")
      signals.rotate!
      after_signal(server, signals.first, log)
    end
    write "program.rb", good
    restart(server, "USR2", phase: 1)
    assert server.stop.success?
  end

  # A program that the mold starts is no mold.
  def test_the_program_may_start_programs
    write "other.rb", "$LOAD_PATH.unshift(#{File.join(ROOT, "lib").inspect})\nrequire 'rondo'\n" \
                      "begin\n  Rondo.start(nil, rackup: 'none')\nrescue Rondo::Error => e\n  warn e.message\nend\n"
    server = program('bind: "tcp://127.0.0.1:0", workers: 1', before: 'system(RbConfig.ruby, "other.rb") or raise "it failed"')
    wait_for_workers(server, 1)
    after_signal(server, "USR1", /phase: 1$/)
    assert_equal 2, server.log.scan("no application: none").size
    assert server.stop.success?
  end

  def test_what_cannot_be_served
    taken = TCPServer.new("127.0.0.1", 0)
    address = "'tcp://127.0.0.1:#{taken.addr[1]}'"
    { "workrs: 2" => /program\.rb:13: unknown setting workrs; did you mean workers\?/,
      "workers: 'few'" => /workers/, "threads: [5, 1]" => /program\.rb:13: threads: the minimum 5 is above/,
      "threads: [1, 2, 3]" => /Rondo\.start: threads: wrong number of arguments/,
      "bind: #{address}" => /in use/, "bind: #{address}, workers: 1" => /in use/,
      "bind: 'a:b'" => /cannot listen on a:b/, "public: '/none'" => %r{/none} }.each do |settings, error|
      result = run_program(settings)
      assert_equal [1, true], [result.code, result.err.match?(error)], [settings, result]
    end
  ensure
    taken&.close
  end

  # Wherever it is called: on a thread, in a callback of a raw connection, in a task, in a block of the first process.
  def test_a_call_while_a_server_runs
    before = <<~'RUBY'
      def again = Rondo.start(->(_) { [200, {}, []] }, bind: "tcp://127.0.0.1:0")
      def try(where) = again.then { warn "#{where}: it started" } rescue warn("#{where}: #{$!.message}")
      Thread.new { sleep 0.01 until File.exist?("go"); try("thread") }
      Rondo::Root.run { try("root") }
      Rondo.run { try("task") }
      class Caller
        def on_message(client, _words) = client.write("heard").then { try("callback") }
      end
    RUBY
    { 0 => 4, 1 => 4 }.each do |workers, count|
      server = program("bind: 'tcp://127.0.0.1:0', listen_raw: { 'tcp://127.0.0.1:0' => -> { Caller.new } }, workers: #{workers}", before: before)
      workers.zero? ? server.wait_for_log(/Use Ctrl-C/) : wait_for_workers(server, 1)
      write "go", ""
      socket = TCPSocket.new("127.0.0.1", raw_port(server))
      socket.write("call")
      server.wait_for_log(/(^(?:thread|root|task|callback): a server runs in this process already$.*){#{count}}/m)
      refute_includes server.log, "it started"
      assert_equal "one", code(server)
      socket.close
      assert server.stop.success?
    ensure
      FileUtils.rm_f(File.join(@folder, "go"))
    end
  end

  # The process of the command is a server before it loads an application.
  def test_a_call_where_the_command_runs
    write "config.ru", "require 'rondo'\nrun ->(_) { [200, {}, [(Rondo.start(nil) rescue $!.message)]] }\n"
    ["0", "1"].each do |workers|
      server = start("-w", workers)
      server.wait_for_log(workers == "0" ? /Use Ctrl-C/ : /booted in/)
      assert_equal "a server runs in this process already", get(server).body
      assert server.stop.success?
    end
    write "config.ru", "require 'rondo'\nRondo.start(->(_) { [200, {}, []] }, bind: 'tcp://127.0.0.1:0')\n"
    ["0", "1"].each { |workers| assert_complaint 1, /a server runs in this process already$/, rondo("-b", "tcp://127.0.0.1:0", "-w", workers, "-q") }
  end

  # The whole program is the server then, whatever thread it is.
  def test_a_call_on_another_thread
    path = write("program.rb", text('bind: "tcp://127.0.0.1:0", workers: 1').sub(/^Rondo\.start.*/) { |line| "Thread.new { #{line} }.join" })
    server = Program.new(path, env: BLANK, spawn: { chdir: @folder }).tap { |each| @servers << each }
    wait_for_workers(server, 1)
    %w[USR1 USR2].each.with_index(1) do |signal, phase|
      newer_code(signal)
      restart(server, signal, phase: phase)
      assert_equal signal, code(server)
    end
    assert server.stop.success?
  end

  # A server that has ended is none: the next one may begin.
  def test_a_call_after_another
    path = write("program.rb", <<~RUBY)
      require "rondo"
      require "socket"
      held = TCPServer.new("127.0.0.1", 0)
      [0, 1].each do |workers|
        Rondo.start(->(_) { [200, {}, []] }, bind: "tcp://127.0.0.1:\#{held.addr[1]}", workers: workers)
      rescue Rondo::Error => e
        warn "refused: \#{e.message}"
      end
      held.close
      [0, 1].each { |workers| Rondo.start(->(_) { [200, {}, [workers.to_s]] }, bind: "tcp://127.0.0.1:0", workers: workers) }
      warn "the end"
    RUBY
    server = Program.new(path, env: BLANK, spawn: { chdir: @folder }).tap { |each| @servers << each }
    server.wait_for_log(/Use Ctrl-C/)
    assert_equal 2, server.log.scan(/^refused: cannot listen on \S+: .*in use/).size
    from = server.log.bytesize
    server.signal("INT")
    server.wait_for_log(/booted in/, from: from)
    server.signal("INT")
    server.wait_for_log(/^the end$/)
    assert server.stop(signal: 0).success? # no signal: it is ending already
  end

  # A hook or an application that fails in the second boot is not the end of the first.
  def test_what_is_wrong_in_the_second_boot
    server = program('bind: "tcp://127.0.0.1:0", workers: 1')
    wait_for_workers(server, 1)
    good = read("program.rb")
    { "workers: 1) { before_fork { raise 'no fork' } }" => /before_fork.*no fork/,
      "workers: 1) { before_worker_boot { raise 'no boot' } }" => /no boot.*generation 0 keeps serving/,
      "workers: 1, listen: { 'tcp://127.0.0.1:0' => 5 })" => /listen must be a path, not 5; generation 0 keeps/,
      "workers: 1, public: '/none')" => %r{/none.*generation 0 keeps serving} }.each do |words, log|
      write "program.rb", good.sub("workers: 1)", words)
      after_signal(server, "USR1", log)
      assert_equal "one", code(server)
    end
    write "program.rb", good
    restart(server, "USR2")
    assert server.stop.success?
  end

  def test_a_second_call_is_an_error
    [0, 1].each do |workers|
      server = program("bind: 'tcp://127.0.0.1:0', workers: #{workers}")
      assert_equal "a server runs in this process already", get(server, "/again").body
      assert server.stop.success?
    end
  end
end
