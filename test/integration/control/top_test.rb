# frozen_string_literal: true

# `rondo top` beside a real server: one line, lines, and a real terminal.
# SPDX-License-Identifier: MIT

require_relative "control_case"
require "io/console"
require "pty"

class TopTest < ControlCase
  LINE = %r{\A\d\d:\d\d:\d\d workers=1/1 busy=\d+/\d+ oldest=\S+ queue=\d+ accept_queue=\S+ rps=\S+ wait_p50=\S+ wait_p99=\S+ time_p50=\S+ time_p99=\S+ connections=\d+ memory=\S+\n\z}

  def test_once
    controlled("-S", "state")
    result = rondo("top", "-S", "state", "--once", "--interval", "0.1")
    assert_match LINE, result.out
    assert_equal [0, ""], [result.code, result.err]
  end

  def test_a_line_for_each_look_without_a_terminal
    controlled("-S", "state")
    reader, writer = IO.pipe
    pid = spawn(BLANK, *RONDO, "top", "-S", "state", "--interval", "0.1", chdir: @folder, out: writer)
    writer.close
    3.times { assert_match LINE, reader.gets }
    Process.kill("INT", pid)
    assert Process.wait2(pid)[1].success?
  ensure
    reader.close
  end

  def test_json
    server = controlled("-S", "state")
    result = rondo("top", "-S", "state", "--once", "--json", "--interval", "0.1")
    shown = JSON.parse(result.out)
    assert_equal [server.pid, "ready"], shown["workers"].first.values_at("pid", "state")
    assert_equal Rondo::VERSION, shown["version"]
    assert_equal [0, []], shown.then { |one| [one["total"]["queue"], one["calls"]] }
  end

  def test_keys
    controlled("-S", "state")
    in_terminal do |screen, _|
      screen.until(/q quits/)
      screen.terminal.write("p")
      screen.until(/paused: p goes on, q quits/)
      screen.terminal.write("ps")
      screen.until(/busy▾.*s sorts by oldest/m)
      screen.terminal.write("ri")
      screen.until(/incidents: refused 0 .*r shows requests · i hides incidents/m)
    end
  end

  def test_what_cannot_be_shown
    assert_complaint 1, /--sort must be one of worker, busy, /, rondo("top", "--sort", "nothing")
    server = controlled("-S", "state")
    assert_complaint 1, /which server is meant/, rondo("top")
    assert_complaint 1, /the token is wrong or missing/, rondo("top", "--control-url", control_url(server))
    assert_complaint 1, /no control server at/, rondo("top", "--control-url", "unix:///#{@folder}/none")
    assert_complaint 1, /interval must be/, rondo("top", "-S", "state", "--interval", "0")
    assert_complaint 1, /not the statistics page of a Rondo server/, rondo("top", "--control-url", server.own_urls.first.sub("http", "tcp"))
    server.stop
    assert_complaint 1, /cannot read the state file/, rondo("top", "-S", "state")
  end

  def test_a_terminal
    server = controlled("-S", "state")
    in_terminal do |screen, pid|
      assert_match(/\e\[\?1049h\e\[\?25l.*Rondo #{Rondo::VERSION} · ready · up .*requests\/s.*q quits/m, screen.until(/q quits/))
      assert_match(/#{server.pid}/, screen.until(/#{server.pid}.*q quits/m))
      server.stop
      screen.until(/! cannot read the stat/)
      screen.terminal.write("q")
      assert_match(/\e\[\?25h\e\[\?1049l\z/, screen.until(/1049l/))
      assert Process.wait2(pid)[1].success?
      assert_match(/ icanon .* echo /, screen.mode)
    end
  end

  # Long before the next update.
  def test_another_size_is_drawn_at_once
    controlled("-S", "state")
    in_terminal(interval: 1000) do |screen, pid|
      screen.until(/q quits/)
      screen.terminal.winsize = [5, 30]
      Process.kill("WINCH", pid)
      drawn = screen.until(/\e\[H.*\e\[J/m).split("\r\n")
      assert_equal 5, drawn.size
      assert(drawn.all? { |line| line.gsub(/\e\[\??\d*[A-Za-z]/, "").size <= 30 })
    end
  end

  def test_every_way_to_end_it
    controlled("-S", "state")
    ["\u0003", "\e", :TERM].each do |way|
      in_terminal do |screen, pid|
        screen.until(/q quits/)
        way.is_a?(Symbol) ? Process.kill(way, pid) : screen.terminal.write(way)
        screen.until(/\e\[\?25h\e\[\?1049l/)
        assert Process.wait2(pid)[1].success?, way
        assert_match(/ icanon .* echo /, screen.mode)
      end
    end
  end

  private

  # The bytes a terminal got, and its settings.
  class TerminalScreen
    attr_reader :terminal

    def initialize(test, terminal, slave)
      @test = test
      @terminal = terminal
      @slave = slave
      @text = +""
    end

    # @return [String] everything up to the match; the next call looks at what comes later
    def until(pattern)
      Timeout.timeout(ShellCase::PATIENCE) do
        @text << @terminal.readpartial(65_536).force_encoding("UTF-8") until @text.valid_encoding? && @text.match?(pattern)
      end
      @text.tap { @text = +"" }
    rescue Timeout::Error
      @test.flunk "no #{pattern.inspect} in #{@text.inspect}"
    end

    # @return [String] as stty prints it
    def mode
      " #{IO.popen(%w[stty -a], in: @slave, &:read).tr("\n;", "  ")} "
    end
  end

  def in_terminal(interval: 0.1)
    master, slave = PTY.open
    slave.winsize = [40, 150]
    pid = spawn(BLANK.merge("LANG" => "C.UTF-8", "LC_ALL" => "C.UTF-8"), *RONDO, "top", "-S", "state", "--interval", interval.to_s,
                in: slave, out: slave, err: slave, chdir: @folder, pgroup: true)
    yield TerminalScreen.new(self, master, slave), pid
  ensure
    Process.kill("KILL", pid) rescue nil
    [master, slave].each(&:close)
  end
end
