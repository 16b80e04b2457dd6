# frozen_string_literal: true

# Several applications in one server, each with listeners of its own: of the configuration file and of a program, in one
# process and in every worker. Each request gets to the application of its address, whatever happens to processes.
# SPDX-License-Identifier: MIT

require_relative "cluster_case"
require "support/certificates"

class SitesTest < ClusterCase
  # A program or a rackup file in which each application answers its name.
  APPS = <<~RUBY
    def app(name)
      lambda do |env|
        warn "slow began" if env["PATH_INFO"] == "/slow"
        sleep 0.01 until env["PATH_INFO"] != "/slow" || File.exist?("go")
        [200, {}, [name, " ", env["PATH_INFO"]]]
      end
    end
  RUBY

  def setup
    super
    write "config.ru", "#{APPS}run app('main')\n"
    write "admin.ru", "#{APPS}run app('admin')\n"
  end

  def program(call)
    path = write("program.rb", "require \"rondo\"\n#{APPS}#{call}\n")
    Program.new(path, env: BLANK, spawn: { chdir: @folder }).tap do |server|
      @servers << server
      server.wait_for_log(/Use Ctrl-C/)
    end
  end

  def urls(server)
    server.log.scan(/^\* Listening on (\S+)$/).flatten
  end

  # A connection to a URL of the server, through the proxy if there is one.
  def connect(url)
    dial_url(XorProxy.front(url))
  end

  # @param to [String, Socket] a URL, or a connection that is kept
  def ask(to, path = "/")
    socket = to.is_a?(String) ? connect(to) : to
    socket.write("GET #{path} HTTP/1.1\r\nHost: a\r\n\r\n")
    hear(socket)
  end

  def hear(socket)
    Timeout.timeout(PATIENCE) do
      head = socket.gets("\r\n\r\n") or return
      [head[/\AHTTP\S+ (\d+)/, 1], socket.read(head[/^content-length: (\d+)/i, 1].to_i)].join(" ")
    end
  end

  def assert_answers(urls, *names)
    4.times { assert_equal(names.map { |name| "200 #{name} /" }, urls.map { |url| ask(url) }) }
  end

  def test_one_process
    write "public/page.txt", "the page"
    write "config/rondo.rb", <<~RUBY
      public "public"
      listen "127.0.0.1:0", "admin.ru"
      listen("unix://#{@folder}/site.sock") { |env| [200, {}, ["block ", env["PATH_INFO"]]] }
    RUBY
    server = start
    server.wait_for_log(/Use Ctrl-C/)
    before = urls(server)
    assert_equal 3, before.size
    2.times do
      assert_answers(before, "main", "admin", "block")
      assert_equal ["200 the page", "200 admin /page.txt", "200 block /page.txt"], before.map { |url| ask(url, "/page.txt") }
      after_signal(server, "USR2", /Use Ctrl-C/)
      assert_equal before, urls(server).last(3)
    end
    assert_equal 1, get(server).body.scan("main").size
    assert server.stop.success?
  end

  # Connections that are kept stay with their application when their worker is replaced.
  def test_workers
    server = program("Rondo.start(listen: { 'tcp://127.0.0.1:0' => app('one'), 'tcp://localhost:0' => app('two'), " \
                     "'unix://#{@folder}/three.sock' => app('three') }, workers: 2)")
    wait_for_workers(server, 2)
    places = urls(server).values_at(0, 1, -1)
    kept = places.flat_map { |url| Array.new(4) { connect(url) } }
    %w[USR1 TTIN USR2].each do |signal|
      assert_answers(places, "one", "two", "three")
      assert_equal(%w[one two three].flat_map { |name| ["200 #{name} /kept"] * 4 }, kept.map { |socket| ask(socket, "/kept") })
      old = workers(server).values
      from = server.log.bytesize
      server.signal(signal)
      next server.wait_for_log(/Worker 2 .*booted/, from: from) if signal == "TTIN"

      wait_for_workers(server, 2, from: from)
      wait_for_end_of(*old)
    end
    assert_answers(places, "one", "two", "three")
    assert server.stop.success?
  end

  # The request is forwarded: its connection has a state that stays here.
  def test_tls_and_a_worker_that_is_stuck
    pair = Certificates.new(@folder).pair("server")
    address = "ssl://127.0.0.1:0?#{pair.query}"
    server = program("Rondo.start(app('main'), bind: '#{address}', listen: { '#{address.sub("127.0.0.1", "localhost")}' => app('two') }, " \
                     "workers: 2, threads: 1)")
    wait_for_workers(server, 2)
    main, site = urls(server).first(2)
    names = -> { [main, site].map { |url| run_command("curl", "-sSk", "#{url}/a").out } }
    2.times { assert_equal ["main /a", "two /a"], names.call }
    slow = Thread.new { run_command("curl", "-sSk", "#{site}/slow").out }
    server.wait_for_log(/slow began/)
    2.times { assert_equal ["main /a", "two /a"], names.call }
    write "go", ""
    assert_equal "two /slow", slow.value
    assert server.stop.success?
  end

  # Nobody gets to another application than that of the address.
  def test_an_application_that_is_gone
    server = program("Rondo.start(app('main'), bind: 'tcp://127.0.0.1:0', listen: { 'tcp://localhost:0' => app('two') }, workers: 1)")
    wait_for_workers(server, 1)
    places = urls(server).first(2)
    assert_answers(places, "main", "two")
    write "program.rb", read("program.rb").sub(/listen: {.*?}, /, "")
    old = workers(server).values
    from = server.log.bytesize
    server.signal("USR1")
    server.wait_for_log(%r{Answering all requests at tcp://localhost:0 with 503}, from: from)
    wait_for_workers(server, 1, phase: 1, from: from)
    wait_for_end_of(*old)
    assert_equal ["200 main /", "503 "], places.map { |url| ask(url) }
    old = workers(server).values
    after_signal(server, "USR2", /phase: 2/)
    wait_for_end_of(*old)
    assert_answers(places.first(1), "main")
    assert_raises(Errno::ECONNREFUSED) { dial_url(places.last) }
    assert server.stop.success?
  end

  def test_applications_that_each_worker_loads
    write "config/rondo.rb", "preload_app! false\nworkers 2\nlisten \"tcp://localhost:0\", \"admin.ru\"\n"
    server = start
    wait_for_workers(server, 2)
    assert_answers(urls(server).first(2), "main", "admin")
    assert server.stop.success?
  end

  def test_a_rackup_file_that_is_not_there
    write "config/rondo.rb", 'listen "127.0.0.1:0", "none.ru"'
    assert_complaint 1, /no application: none\.ru does not exist in/, rondo("-b", "tcp://127.0.0.1:0", "-q")
  end
end
