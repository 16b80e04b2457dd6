# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# The packages @rails/actioncable and @hotwired/turbo as npm has them, in two pages of a real browser, and a phased restart
# between. Runs if RONDO_TEST_CABLE is "npm": the packages are fetched once (`bin/test --long`).

return unless ENV["RONDO_TEST_CABLE"] == "npm"

require_relative "app_case"
require_relative "rails_turbo"

class RailsNpmTest < AppCase
  include Chromium::Pages

  HOME = File.join(ServerProcess::ROOT, "build/npm")
  PACKAGES = { "@rails/actioncable" => "8.1.400", "@hotwired/turbo" => "8.0.23" }.freeze
  FILES = { "actioncable.js" => "@rails/actioncable/app/assets/javascripts/actioncable.esm.js",
            "turbo.js" => "@hotwired/turbo/dist/turbo.es2017-esm.js" }.freeze
  ENVIRONMENT = RailsApp::ENVIRONMENT.merge("RAILS_ENV" => "production", "CABLE" => "rondo").freeze
  # All that comes is seen by the page: from a channel, and what Turbo appends by a WebSocket and by a stream of events.
  PAGE = <<~HTML
    <!DOCTYPE html>
    <ul id="cable"></ul>
    <ul id="events"></ul>
    <script type="module">
      import { createConsumer } from "/actioncable.js"
      import { connectStreamSource } from "/turbo.js"
      const params = new URLSearchParams(location.search), { subscriptions } = createConsumer()
      const seen = globalThis.seen = [], source = new EventTarget()
      const connected = globalThis.connected = { room: 0, turbo: 0 }
      globalThis.room = subscriptions.create({ channel: "RoomsChannel", room: "npm" },
        { connected: () => connected.room++, received: ({ text }) => seen.push(text) })
      subscriptions.create({ channel: "Turbo::StreamsChannel", signed_stream_name: params.get("cable") },
        { connected: () => connected.turbo++, received: (data) => source.dispatchEvent(new MessageEvent("message", { data })) })
      connectStreamSource(source)
      globalThis.events = new EventSource(params.get("events"))
      connectStreamSource(events)
    </script>
  HTML

  class << self
    def start_server
      install
      app = RailsApp.instance
      FILES.each { |name, path| FileUtils.cp(File.join(HOME, "node_modules", path), File.join(app.path, "public", name)) }
      File.write(File.join(app.path, "public/npm.html"), PAGE)
      ServerProcess.new(File.join(app.path, "config.ru"), spawn: { chdir: app.path }, env: ENVIRONMENT, args: ["-w", "2"]).tap do |server|
        server.wait_for_log(/(- Worker \d+ .*booted.*){2}/m)
      end
    end

    private

    def install
      return if FILES.values.all? { |path| File.file?(File.join(HOME, "node_modules", path)) }

      output, status = Open3.capture2e("npm", "install", "--prefix", HOME, "--no-audit", "--no-fund", "--ignore-scripts",
                                       *PACKAGES.map { |name, version| "#{name}@#{version}" })
      raise output unless status.success?
    end
  end

  # The names are signed, so the application's own page has to be asked for them.
  def open_page
    cable, events = %w[cable events].map { |how| browser.get("/turbo?#{URI.encode_www_form(room: "npm #{how}", by: how)}").body }
    query = { cable: cable[/signed-stream-name="([^"]+)"/, 1], events: CGI.unescapeHTML(events[/<turbo-stream-source src="([^"]+)">/, 1]) }
    page = Chromium.shared.open("#{server.url}/npm.html?#{URI.encode_www_form(query)}")
    (@pages ||= []) << page
    page
  end

  def wait_until_connected(page, times)
    page.wait_for("connected.room == #{times} && connected.turbo == #{times} && events.readyState == EventSource.OPEN")
  end

  def append(how, text)
    query = { "room" => "npm #{how}", "text[]" => text, "target" => how }
    assert_equal "1", browser.get("/turbo/say?#{URI.encode_www_form(query)}").body
  end

  # Each page says something to both.
  def say(round)
    @pages.each_with_index { |page, index| page.run("room.perform('say', { text: 'page #{index} round #{round}' })") }
    %w[cable events].each { |how| append(how, "round #{round}") }
  end

  def lines(how) = "[...document.querySelectorAll('##{how} li')].map(line => line.textContent)"

  def assert_all_seen(rounds)
    expected = Array.new(rounds) { |number| ["page 0 round #{number}", "page 1 round #{number}"] }.flatten
    @pages.each do |page|
      page.wait_for("seen.length >= #{2 * rounds} && #{lines("cable")}.length >= #{rounds} && #{lines("events")}.length >= #{rounds}")
      assert_equal expected, page.run("seen").sort_by { |text| text[/\d+\z/].to_i * 2 + text[/\d/].to_i }
      %w[cable events].each { |how| assert_equal Array.new(rounds) { |number| "round #{number}" }, page.run(lines(how)) }
    end
  end

  def test_two_pages_go_on_after_restarts
    2.times { open_page }
    3.times do |round|
      restart unless round.zero?
      @pages.each { |page| wait_until_connected(page, round + 1) }
      say(round)
      assert_all_seen(round + 1)
    end
  end

  def restart
    from = server.log.bytesize
    server.signal("USR1")
    server.wait_for_log(/(- Worker \d+ .*booted.*){2}/m, from: from)
  end
end
