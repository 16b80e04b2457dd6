# frozen_string_literal: true

# The status page in Chromium: of a quiet, a busy, a stuck and a restarting server; on a phone, in the dark, by
# keyboard. RONDO_TEST_PICTURES=FOLDER keeps pictures of them, as docs/MONITORING.md shows them.
# SPDX-License-Identifier: MIT

require_relative "control_case"
require "support/browser"

class StatusPageTest < ControlCase
  include Chromium::Pages

  PATIENT = 120
  WAITING = <<~RUBY
    run lambda { |env|
      case env["PATH_INFO"]
      when "/slow" then sleep 0.01 until File.exist?("over")
      when "/work" then sleep 0.002
      when "/upload" then env["rack.input"].read
      end
      [200, { "content-type" => "text/plain" }, ["done"]]
    }
  RUBY

  # ---- what it is ----

  def test_it_is_one_small_document
    answer = control(controlled, "/")
    assert_equal "text/html; charset=utf-8", answer["content-type"]
    assert_operator answer.body.bytesize, :<=, 30 * 1024
    assert_empty answer.body.scan(%r{(?:src|href)="(?!data:|#)[^"]*"|https?://(?!www\.w3\.org/2000/svg)\S+|@import|url\(}i)
    assert_match(/default-src 'none'; script-src 'sha256-/, answer["content-security-policy"])
  end

  def test_a_quiet_server
    page = look(controlled)
    assert_equal "ready", page.run(text("#state"))
    assert_match(/Rondo #{Regexp.escape(Rondo::VERSION)}/, page.run(text("h1")))
    assert_match(/No request is inside, none waits\./, page.run(text("#workers")))
    assert_match(/No requests in the last ten seconds\./, page.run(text("#fair-note")))
    assert_match(/Listening on/, page.run(text("#log")))
    picture(page, "quiet")
    assert_empty page.errors
  end

  # ---- who is served, who waits ----

  def test_a_busy_server
    write "config.ru", WAITING
    server = controlled("-t", "3")
    page = look(server)
    slow = request(server, "GET /slow?password=secret HTTP/1.1\r\nHost: a\r\n\r\n")
    upload = request(server, "POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\npart")
    refused = request(server, "GET / HTTP/1.1\r\n\r\n")
    assert_match(/ 400 /, refused.gets)
    with_load(server) do
      page.wait_for("#{text("#workers")}.includes('GET /slow')")
      page.wait_for("document.querySelector('#fair tbody').rows.length > 2")
      page.wait_for("#{text("#incidents")}.match(/broke a rule1 · 1 in/)")
      refute_match(/secret/, page.run(text("#workers")))
      assert_match(/in the application · 127\.0\.0\.1:#{slow.local_address.ip_port}/, page.run(text("#workers"))) unless ENV.key?("RONDO_TEST_XOR")
      assert_match(/HTTP\/1\.1 request has no Host/, page.run(text("#log")))
      page.run("document.querySelector('#log details').open = true")
      picture(page, "busy", settled: 14)
    end
    write "over", ""
    assert_match(/ 200 /, slow.gets)
    page.wait_for("!#{text("#workers")}.includes('GET /slow')")
    assert_empty page.errors
  ensure
    [slow, upload, refused].each { |socket| socket&.close }
  end

  # All threads are inside, and another request waits for one. Nothing else happens: no turn of the loop is due.
  def test_a_server_that_only_waits
    write "config.ru", WAITING
    server = controlled("-t", "2")
    clients = Array.new(3) { request(server, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n") }
    page = look(server)
    page.wait_for("#{text("#workers")}.includes('waits for a thread')")
    assert_equal 3, page.run("document.querySelectorAll('#workers li').length")
    write "over", ""
    clients.each { |client| assert_match(/ 200 /, client.gets) }
    page.wait_for("#{text("#workers")}.includes('No request is inside')")
  ensure
    clients&.each(&:close)
  end

  def test_channels
    write "config.ru", <<~RUBY
      Listener = Struct.new(:names) { def on_open(client) = names.each { |name| client.subscribe(name) } }
      run lambda { |env|
        env["rack.upgrade"] = Listener.new(["news", env["QUERY_STRING"]])
        [200, {}, []]
      }
    RUBY
    server = controlled
    streams = %w[one two].map do |name|
      request(server, "GET /?#{name} HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n").tap { |socket| assert_match(/ 200 /, socket.gets) }
    end
    page = look(server)
    page.wait_for("#{text("#channels")}.startsWith('news · 2')")
    assert_match(/one · 1.*two · 1|two · 1.*one · 1/, page.run(text("#channels")))
    assert_match(/event streams, raw connections2/, page.run(text("#push")))
  ensure
    streams&.each(&:close)
  end

  # ---- Ruby is stuck ----

  def test_a_stuck_server
    while_stuck(method(:controlled)) do |server, _|
      page = look(server)
      page.wait_for("#{text("#workers")}.includes('GET /stuck')")
      updates = page.run("Number(document.body.dataset.updates)")
      page.wait_for("Number(document.body.dataset.updates) >= #{updates + 5}")
      page.wait_for("#{text("#state")} === 'stuck'")
      assert_match(/No call has returned to Ruby for \d+/, page.run(text("#workers")))
      picture(page, "stuck", settled: updates + 8)
      assert_empty page.errors
    end
  end

  # ---- restarts ----

  def test_a_restarting_server
    server = controlled("-w", "2")
    page = look(server)
    page.wait_for("#{text("#state")} === '2 workers ready'")
    assert_equal "200", control(server, "/phased-restart", verb: :post).code
    server.wait_for_log(/Starting phased restart/)
    page.wait_for("document.querySelectorAll('#lives .drain').length === 2")
    page.wait_for("document.querySelectorAll('#lives .ready').length === 4")
    page.wait_for("#{text("#lives")}.includes('gen 1')")
    victim = JSON.parse(control(server, "/stats").body)["worker_status"].first["pid"]
    Process.kill(:KILL, victim)
    page.wait_for("document.querySelectorAll('#lives .lost').length === 1")
    page.wait_for("#{text("#log")}.includes('(PID: #{victim}) ')")
    page.wait_for("#{text("#state")} === '2 workers ready'")
    page.run("document.querySelector('[data-level=error]').click()")
    assert_equal "none", page.run("getComputedStyle(document.querySelector('#log .info')).display")
    assert_equal "block", page.run("getComputedStyle(document.querySelector('#log .error')).display.replace('list-item', 'block')")
    picture(page, "restarting")
    assert_empty page.errors
  end

  # The page has news again as soon as another server is there.
  def test_a_server_that_goes_and_comes_back
    HeldPort.open do |port|
      server = controlled(uri: "tcp://127.0.0.1:#{port}")
      page = look(server)
      server.stop
      page.wait_for("#{text("#state")}.startsWith('no news for')")
      controlled(uri: "tcp://127.0.0.1:#{port}")
      page.wait_for("#{text("#state")} === 'ready'")
    end
  end

  # ---- inside the application ----

  MOUNTED = <<~RUBY
    map("/server") do
      use(Rack::Auth::Basic) { |_, password| password == "open" }
      run Rondo::StatusPage.new(viewers: 2)
    end
    map("/slow") { run ->(_) { sleep 0.01 until File.exist?("over"); [200, {}, ["done"]] } }
    map("/") { run ->(_) { [200, {}, ["here"]] } }
  RUBY

  def test_behind_the_login_of_the_application
    write "config.ru", MOUNTED
    server = controlled("-w", "2", uri: "auto", token: nil)
    slow = request(server, "GET /slow/by HTTP/1.1\r\nHost: a\r\n\r\n")
    assert_equal "401", mounted(server, "/server", nil).code
    page = open_page("http://any:open@127.0.0.1:#{server.port}/server")
    page.wait_for("#{text("#state")} === '2 workers ready'")
    page.wait_for("#{text("#workers")}.includes('GET /slow/by')")
    updates = page.run("Number(document.body.dataset.updates)")
    page.wait_for("Number(document.body.dataset.updates) >= #{updates + 3}")
    assert_equal 2, JSON.parse(mounted(server, "/server/stats").body)["worker_status"].size
    assert_empty page.errors
    write "over", ""
    assert_match(/ 200 /, slow.gets)
  ensure
    slow&.close
  end

  # Proxies answer as well while there is no server behind them, and a browser does not come back after that by itself.
  def test_it_comes_back_when_there_was_no_place
    write "config.ru", MOUNTED
    server = controlled(uri: "auto", token: nil)
    streams = Array.new(2) { stream(server) }
    streams.each { |socket| read_until(socket, "event: stats") }
    url = "http://any:open@127.0.0.1:#{server.port}/server"
    page = Chromium.shared.open("about:blank")
    (@pages ||= []) << page
    page.go(url)
    page.wait_for("performance.getEntriesByType('resource').some((one) => one.name.endsWith('/events'))", deadline: PATIENT)
    streams.each(&:close)
    page.wait_for("Number(document.body.dataset.updates) >= 1", deadline: PATIENT)
    assert_equal "ready", page.run(text("#state"))
  ensure
    streams&.each(&:close)
  end

  def test_what_is_not_shown_inside_the_application
    write "config.ru", MOUNTED
    server = controlled(uri: "auto", token: nil)
    assert_equal "404", mounted(server, "/server/stop").code
    assert_equal "406", mounted(server, "/server/events").code
    post = Net::HTTP::Post.new("/server/stats").tap { |request| request.basic_auth("any", "open") }
    assert_equal "405", Net::HTTP.start("127.0.0.1", server.port) { |http| http.request(post) }.code
    streams = Array.new(2) { stream(server) }
    streams.each { |socket| assert_match(/event: stats/, read_until(socket, "event: stats")) } # both have their places
    refused = stream(server)
    assert_match(/ 503 /, refused.gets)
    streams.first.close
    eventually("a place") { stream(server).then { |socket| socket.gets.include?(" 200 ").tap { socket.close } } }
    streams.last.close
    without = start
    without.wait_for_log(/Use Ctrl-C to stop/)
    assert_equal ["503", "This server has no control server: activate_control_app\n"],
                 mounted(without, "/server").then { |answer| [answer.code, answer.body] }
  ensure
    [*streams, refused].compact.each(&:close)
  end

  # ---- people ----

  def test_a_phone_in_the_dark
    write "config.ru", WAITING
    server = controlled("-w", "2")
    page = look(server, width: 360, scheme: "dark")
    with_load(server) do
      page.wait_for("document.querySelector('#fair tbody').rows.length > 2")
      assert_operator page.run("document.documentElement.scrollWidth"), :<=, 360
      picture(page, "phone")
    end
    assert_equal "rgb(16, 19, 23)", page.run("getComputedStyle(document.body).backgroundColor")
  end

  def test_it_can_be_used_by_keyboard_and_read_aloud
    page = look(controlled("-w", "2"))
    page.run("document.dispatchEvent(new KeyboardEvent('keydown', { key: 'p' }))")
    assert_equal "true", page.run("document.getElementById('pause').getAttribute('aria-pressed')")
    before, seen = page.run("[document.body.dataset.updates, place.stats.time_ms]")
    page.wait_for("place.stats.time_ms > #{seen} + 1500") # it has heard more, and shows nothing of it
    assert_equal before, page.run("document.body.dataset.updates")
    page.run("document.getElementById('pause').click()")
    page.wait_for("document.body.dataset.updates !== '#{before}'")
    assert_empty page.run(NAMELESS)
    assert_equal "status", page.run("document.getElementById('state').getAttribute('role')")
    assert_equal "en", page.run("document.documentElement.lang")
  end

  # Parts that a screen reader would find without a name.
  NAMELESS = <<~SCRIPT
    [...document.querySelectorAll("section, button, canvas, [role=img], [role=group], [role=region], table th, a")]
      .filter((part) => !part.getAttribute("aria-label") && !part.getAttribute("aria-labelledby") && !part.textContent.trim())
      .map((part) => part.outerHTML.slice(0, 100))
  SCRIPT

  private

  def look(server, **options)
    open_page("http://127.0.0.1:#{control_port(server)}/?token=#{TOKEN}", **options)
  end

  # @return [Net::HTTPResponse]
  def mounted(server, path, password = "open")
    request = Net::HTTP::Get.new(path)
    request.basic_auth("any", password) if password
    Net::HTTP.start("127.0.0.1", server.port) { |http| http.request(request) }
  end

  # @return [TCPSocket] that has asked for the events
  def stream(server)
    request(server, "GET /server/events HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n" \
                    "Authorization: Basic #{["any:open"].pack("m0")}\r\n\r\n")
  end

  def read_until(socket, text)
    got = +""
    got << socket.readpartial(65_536) until got.include?(text)
    got
  end

  def open_page(url, width: 1200, scheme: "light")
    page = Chromium.shared.open("about:blank")
    (@pages ||= []) << page
    page.resize(width, 1400)
    page.prefer(scheme)
    page.go(url)
    page.wait_for("Number(document.body.dataset.updates) >= 1", deadline: PATIENT)
    page
  end

  def text(selector)
    "document.querySelector('#{selector}').textContent"
  end

  # @return [TCPSocket]
  def request(server, bytes)
    TCPSocket.new("127.0.0.1", server.port).tap { |socket| socket.write(bytes) }
  end

  # Yields while three clients ask: one without a pause, eight requests at a time, two one after the other.
  def with_load(server)
    over = false
    threads = [["/", 8], ["/work", 1], ["/", 1]].map do |path, depth|
      Thread.new { ask(server, "GET #{path} HTTP/1.1\r\nHost: a\r\n\r\n" * depth, depth) until over }
    end
    yield
  ensure
    over = true
    threads.each(&:join)
  end

  # A connection of a second or so.
  def ask(server, bytes, depth)
    TCPSocket.open("127.0.0.1", server.port) do |socket|
      200.times do
        socket.write(bytes)
        depth.times { read_answer(socket) }
      end
    end
  end

  def read_answer(socket)
    length = 0
    while (line = socket.gets) && line != "\r\n"
      length = line[/\d+/].to_i if line.match?(/\Acontent-length:/i)
    end
    socket.read(length)
  end

  # @param settled [Integer, nil] after so many updates of the page
  def picture(page, name, settled: nil)
    folder = ENV.fetch("RONDO_TEST_PICTURES", nil) or return
    page.wait_for("Number(document.body.dataset.updates) >= #{settled}") if settled
    page.resize(page.run("innerWidth"), page.run("document.documentElement.scrollHeight"))
    page.run("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 100)))")
    page.screenshot(File.join(folder, "status_#{name}.png"))
  end
end
