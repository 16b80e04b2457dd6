# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# A real browser: headless Chromium, driven by the DevTools protocol through a pipe (messages of JSON
# that end with NUL on its descriptors 3 and 4). Each page is a tab of its own. Every wait has a
# deadline; one thread at a time.
#
#   skip "chromium is not installed" unless Chromium.find
#   page = Chromium.shared.open(url)
#   page.run("document.title")                       # => "Chat"
#   page.wait_for("document.querySelector('li')?.textContent")
#   page.screenshot("chat.png")
#   page.close

require "fileutils"
require "io/nonblock"
require "io/wait"
require "json"
require "tmpdir"

class Chromium
  # The browser did not answer before the deadline, or refused, or a script raised.
  class Failure < StandardError; end

  DEADLINE = 60
  NAMES = %w[chromium chromium-browser google-chrome].freeze
  # Only loopback traffic, with whatever certificate. A page is not slowed down when another one is in front of it.
  OPTIONS = %w[
    --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --no-default-browser-check
    --disable-extensions --disable-background-networking --disable-component-update --disable-sync
    --disable-background-timer-throttling --disable-renderer-backgrounding --disable-backgrounding-occluded-windows
    --no-proxy-server --mute-audio --window-size=1000,800 --remote-debugging-pipe --ignore-certificate-errors
  ].push("--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost").freeze

  # One tab.
  class Page
    # @return [Array<String>] exceptions that no script caught, and what went to console.error
    attr_reader :errors

    def initialize(browser, target, session)
      @browser = browser
      @target = target
      @session = session
      @errors = []
      %w[Page Runtime].each { |domain| command("#{domain}.enable") }
    end

    # Loads another address, until its load event.
    # @return [Page]
    def go(url)
      @loaded = false
      failed = command("Page.navigate", url: url)["errorText"]
      raise Failure, "#{url}: #{failed}" if failed

      @browser.receive_until("#{url} does not load") { @loaded }
      self
    end

    # @param script [String] an expression; a promise is waited for
    # @return [Object, nil] its value, by way of JSON
    def run(script, deadline: DEADLINE)
      answer = command("Runtime.evaluate", deadline: deadline, expression: script, awaitPromise: true,
                                           returnByValue: true, userGesture: true)
      thrown = answer["exceptionDetails"]
      raise Failure, "#{script}: #{describe(thrown)}" if thrown

      answer["result"]["value"]
    end

    # @param expression [String] evaluated until it is true (in JavaScript's sense)
    # @return [Object] its value
    def wait_for(expression, deadline: DEADLINE)
      run(<<~SCRIPT, deadline: deadline)
        new Promise((resolve, reject) => {
          const look = () => {
            try {
              const value = (#{expression});
              value ? resolve(value) : setTimeout(look, 5);
            } catch (error) { reject(error); }
          };
          look();
        })
      SCRIPT
    rescue Failure => e
      raise Failure, "#{expression}: #{e.message.lines.last}; errors of the page: #{@errors}"
    end

    # @param width [Integer] in CSS pixels
    # @param height [Integer]
    # @return [void]
    def resize(width, height)
      command("Emulation.setDeviceMetricsOverride", width: width, height: height, deviceScaleFactor: 1, mobile: false)
    end

    # @param scheme [String] "light" or "dark"
    # @return [void]
    def prefer(scheme)
      command("Emulation.setEmulatedMedia", features: [{ name: "prefers-color-scheme", value: scheme }])
    end

    # A tab behind another one may draw no frame, and then there is never a picture.
    # @param path [String] of a PNG file
    # @return [void]
    def screenshot(path)
      command("Page.bringToFront")
      File.binwrite(path, command("Page.captureScreenshot", format: "png")["data"].unpack1("m"))
    end

    def close
      @browser.close_page(self, @target)
    end

    # @api private
    def on_event(name, event)
      case name
      when "Page.loadEventFired" then @loaded = true
      when "Runtime.exceptionThrown" then @errors << describe(event["exceptionDetails"])
      when "Runtime.consoleAPICalled"
        @errors << event["args"].map { |arg| arg["value"] || arg["description"] }.join(" ") if event["type"] == "error"
      end
    end

    private

    def command(name, deadline: DEADLINE, **parameters)
      @browser.command(name, session: @session, deadline: deadline, **parameters)
    end

    def describe(thrown)
      thrown.dig("exception", "description") || thrown.dig("exception", "value").to_s
    end
  end

  # For test classes: tests are skipped where there is no browser, and the tabs in @pages are closed behind each.
  module Pages
    def setup
      super
      skip "chromium is not installed" unless Chromium.find
    end

    def teardown
      @pages&.each(&:close)
      super
    end
  end

  # @return [String, nil] path of the program
  def self.find
    folders = ENV.fetch("PATH", "").split(":")
    NAMES.flat_map { |name| folders.map { |folder| File.join(folder, name) } }.find { |path| File.executable?(path) }
  end

  # One for all tests of the process: it takes seconds to start.
  def self.shared
    @shared ||= new.tap { |browser| Minitest.after_run { browser.stop } }
  end

  def initialize
    @directory = Dir.mktmpdir("rondo-chromium")
    @pages = {}
    @last_id = 0
    @buffer = +"".b
    @replies = {}
    start(self.class.find || raise(Failure, "chromium is not installed"))
  end

  # @return [Page] a new tab that has loaded the address
  def open(url)
    target = command("Target.createTarget", url: "about:blank")["targetId"]
    session = command("Target.attachToTarget", targetId: target, flatten: true)["sessionId"]
    page = @pages[session] = Page.new(self, target, session)
    page.go(url)
  end

  def stop
    command("Browser.close", deadline: 5)
  rescue Failure, SystemCallError, IOError
    nil
  ensure
    [@input, @output].each(&:close)
    end_process
    FileUtils.rm_rf(@directory)
  end

  # @api private
  def close_page(page, target)
    command("Target.closeTarget", targetId: target)
    @pages.delete_if { |_, one| one.equal?(page) }
  end

  # @api private
  # @return [Hash] the result
  def command(name, session: nil, deadline: DEADLINE, **parameters)
    id = @last_id += 1
    message = { id: id, method: name, params: parameters, sessionId: session }.compact
    @input.write("#{JSON.generate(message)}\0")
    receive_until("no answer to #{name}", deadline) { @replies.key?(id) }
    reply = @replies.delete(id)
    raise Failure, "#{name}: #{reply["error"]["message"]}" if reply["error"]

    reply["result"]
  end

  # @api private
  def receive_until(complaint, deadline = DEADLINE)
    limit = now + deadline
    until yield
      left = limit - now
      raise Failure, complaint if left <= 0 || !@output.wait_readable(left)

      receive
    end
  end

  private

  def start(program)
    theirs_in, @input = IO.pipe
    @output, theirs_out = IO.pipe
    [theirs_in, theirs_out].each { |pipe| pipe.nonblock = false } # it takes EAGAIN as the end
    @pid = Process.spawn({ "HOME" => @directory }, program, *OPTIONS, "--user-data-dir=#{@directory}/profile",
                         3 => theirs_in, 4 => theirs_out, in: File::NULL, out: log, err: log, pgroup: true)
    [theirs_in, theirs_out].each(&:close)
  end

  def log
    File.join(@directory, "log")
  end

  def receive
    @buffer << @output.readpartial(1 << 16)
    while (size = @buffer.index("\0"))
      take(JSON.parse(@buffer.slice!(0, size + 1).chop.force_encoding(Encoding::UTF_8)))
    end
  rescue EOFError
    raise Failure, "the browser ended: #{File.read(log)[-2000..]}"
  end

  def take(message)
    return @replies[message["id"]] = message if message["id"]

    @pages[message["sessionId"]]&.on_event(message["method"], message["params"])
  end

  # Ends it and every process that it started: they are a process group.
  def end_process
    limit = now + 10
    until Process.wait(@pid, Process::WNOHANG)
      Process.kill("KILL", -@pid) if now > limit
      IO.select(nil, nil, nil, 0.005)
    end
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
