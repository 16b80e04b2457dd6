# frozen_string_literal: true

# The status page inside an application, behind the application's own login. It asks the control server for what it
# shows.
# SPDX-License-Identifier: MIT

require "rondo/status_page/page"

module Rondo
  # A Rack application with the status page of the server that serves it, which needs a control server. The page has no
  # login of its own: whoever can request it sees paths of requests and lines of the log.
  # @example Rails, behind the login of Devise
  #   authenticate(:user, ->(user) { user.admin? }) { mount Rondo::StatusPage::Engine => "/server" }
  # @example config.ru
  #   map("/server") { use Rack::Auth::Basic, &check; run Rondo::StatusPage.new }
  class StatusPage
    autoload :Viewer, "rondo/status_page/viewer"
    autoload :Engine, "rondo/status_page/engine"

    # How many may look at once, in one worker.
    VIEWERS = 16
    TEXT = { "content-type" => "text/plain; charset=utf-8", "cache-control" => "no-store" }.freeze
    private_constant :TEXT

    # @param viewers [Integer] how many may look at once, in one worker; one more is answered 503
    def initialize(viewers: VIEWERS)
      @viewers = viewers
    end

    # @param env [Hash{String => Object}] Rack SPEC: PATH_INFO is "" or "/" for the page, "/events" or "/stats" for
    #   what it shows
    # @return [Array(Integer, Hash, Array<String>)] 503 without a control server
    def call(env)
      return answer(405, "GET only\n", "allow" => "GET, HEAD") unless %w[GET HEAD].include?(env["REQUEST_METHOD"])
      return answer(503, "This server has no control server: activate_control_app\n") unless Rondo.control

      case env["PATH_INFO"]
      when "", "/" then page
      when "/events" then events(env)
      when "/stats" then stats
      else answer(404, "There is no such page\n")
      end
    end

    private

    def answer(status, text, fields = {})
      [status, TEXT.merge(fields), [text]]
    end

    def page
      [200, { "content-type" => "text/html; charset=utf-8", "cache-control" => "no-store",
              "content-security-policy" => StatusDocument.policy, "referrer-policy" => "no-referrer",
              "x-content-type-options" => "nosniff" }, [StatusDocument.html]]
    end

    def stats
      require "rondo/command/control_client"
      given = ControlClient.new(*Rondo.control).get("/stats?watch=5&past=1")
      [given.status, { "content-type" => "application/json", "cache-control" => "no-store" }, [given.body]]
    rescue Error => e
      answer(503, "#{e.message}\n")
    end

    def events(env)
      return answer(406, "An event stream for the status page\n") unless env["rack.upgrade?"] == :sse
      return answer(503, "Too many look at this page\n") if Viewer.count >= @viewers

      env["rack.upgrade"] = Viewer.new(*Rondo.control, @viewers)
      [200, {}, []]
    end
  end
end
