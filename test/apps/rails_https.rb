# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# The Rails application over https in a real browser: a form, whose origin Rails compares with the
# address of the request, and Action Cable with its own client.

require "support/browser"
require "support/certificates"

module RailsHTTPS
  CABLE = File.join(Gem::Specification.find_by_name("actioncable").gem_dir, "app/assets/javascripts/actioncable.js")
  SUBSCRIBE = <<~SCRIPT
    globalThis.seen = [];
    globalThis.consumer = ActionCable.createConsumer();
    globalThis.notes = consumer.subscriptions.create("NotesChannel", {
      connected: () => seen.push(consumer.url),
      received: ({ text, by }) => seen.push(text + " by " + by)
    });
    0
  SCRIPT

  # @return [Array<String>] binds
  def self.binds
    pair = Certificates.new(File.join(RailsApp.instance.path, "tmp")).pair("server")
    ["tcp://127.0.0.1:0", "ssl://127.0.0.1:0?#{pair.query}"]
  end

  def open_secret(path)
    page = Chromium.shared.open("#{secret_url}#{path}")
    (@pages ||= []) << page
    page
  end

  def secret_url
    server.urls.find { |url| url.start_with?("https:") }
  end

  def teardown
    @pages&.each(&:close)
    super
  end

  def test_action_cable_and_a_form_over_https
    skip "chromium is not installed" unless Chromium.find
    pages = Array.new(2) { open_secret("/notes/new") }
    pages.each { |page| page.run("#{File.read(CABLE)}; #{SUBSCRIBE}") }
    pages.each { |page| page.wait_for("seen.length == 1") }
    pages.first.run("notes.perform('save', { text: 'h\\u00e4llo' }); 0")
    pages.each do |page|
      page.wait_for("seen.length == 2")
      assert_equal ["#{secret_url.sub("https", "wss")}/cable", "hällo by https"], page.run("seen")
    end
    check_a_form(pages.first)
    assert_equal [[], []], pages.map(&:errors)
  end

  def check_a_form(page)
    saved = page.run(<<~SCRIPT)
      document.querySelector("[name='note[text]']").value = "by a form";
      fetch("/notes", { method: "POST", body: new FormData(document.querySelector("form")) })
        .then(async (answer) => [answer.url, (await answer.text()).includes("Saved: by a form")])
    SCRIPT
    assert_equal ["#{secret_url}/notes", true], saved
  end
end
