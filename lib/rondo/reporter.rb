# frozen_string_literal: true

# Writes to the log, and answers, when an exception reaches the server, and when a request is refused or a
# connection is cut or closed. The extension calls it; its neighbours are error_page.rb, which
# makes the page for development, and logger.rb.
# SPDX-License-Identifier: MIT

module Rondo
  # Turns exceptions into log lines and responses.
  # @api private
  class Reporter
    HTML = { "content-type" => "text/html; charset=utf-8", "x-content-type-options" => "nosniff" }.freeze
    PLAIN = { "content-type" => "text/plain; charset=utf-8" }.freeze
    # Why a file that the application names is not sent: for the log, and for the client.
    FILES = { 404 => ["does not exist", "not found"],
              500 => ["is not below x_sendfile_root", "Internal Server Error"],
              503 => ["cannot be opened now, because too many files are open", "too many files are open"] }.freeze
    SHOWN_MAX = 300
    # In the env: a Hash of names and texts that log lines show; not there without ids (boot/request_ids.rb).
    IDS = "rondo.ids"
    # Bytes of a message in the log: that of a parser may quote a whole body.
    MESSAGE_MAX = 16_384

    # @param log [#info, #error]
    # @param handler [Proc, nil] lowlevel_error_handler, called with as many of (error, env, status)
    #   as it takes; answers [status, headers, body]
    # @param development [Boolean] whether the response shows the backtrace
    # @param folder [String, nil] where a page for other environments may be
    def initialize(log:, handler: nil, development: false, folder: nil)
      @log = log
      @handler = handler
      @development = development
      @folder = folder
    end

    # @param error [Exception] raised by the application before its response began
    # @param env [Hash]
    # @return [Array(Integer, Hash, #each)] a Rack response
    def handle_error(error, env)
      return refused_body(error) if error.is_a?(BodyError)

      report_error(error, env)
      return call_handler(error, env) if @handler
      return ErrorPage.call(error, env) if @development

      page = StaticFolder.error_page(@folder)
      page ? [500, HTML.dup, [page]] : [500, PLAIN.dup, ["Internal Server Error\n"]]
    end

    # @param error [Exception] raised when there is no response to give any more
    # @param env [Hash]
    # @return [void]
    def report_error(error, env)
      log_request(request_of(env), env, describe(error))
    end

    # @param error [Exception] raised by a task
    # @param block [Proc]
    # @return [void]
    def report_task(error, block)
      file, line = block.source_location
      @log.error("Task#{" of #{quote(file)}:#{line}" if file}: #{describe(error)}")
    end

    # @param url [String] of a connection that the application has asked for
    # @param why [String] it could not be made
    # @return [void]
    def report_dial(url, why)
      @log.warn("Could not connect to #{quote(url)}: #{why}")
    end

    # @param count [Integer] tasks that had not begun when the server had to end
    # @return [void]
    def report_dropped_tasks(count)
      @log.error("Dropped #{count} task#{"s" if count > 1}: the server stopped before their turn came")
    end

    # @param env [Hash]
    # @param path [String] that the application named by X-Sendfile
    # @param status [Integer] 404 it is not there, 500 it is below no x_sendfile_root, 503 it cannot be
    #   opened just now
    # @return [Array(Integer, Hash, #each)] what is answered in place of the application's response
    def refuse_file(env, path, status)
      why, text = FILES.fetch(status)
      log_request(request_of(env), env,
                  "the application named the file #{utf8(path).inspect[0, SHOWN_MAX]}, which #{why} (#{status})")
      headers = status == 503 ? PLAIN.merge("retry-after" => "1") : PLAIN.dup
      [status, headers, ["#{text}\n"]]
    end

    # @param address [String] of the client
    # @param status [Integer] what it was answered, 0 when it was not
    # @param reason [String]
    # @param unnamed [Integer] others since the last such line
    # @return [void]
    def report_refusal(address, status, reason, unnamed = 0)
      what = status < 1000 ? "Refused a request" : "Closed a WebSocket" # those are codes of Close frames
      more = "; #{unnamed} more were refused or closed before it" if unnamed.positive?
      @log.info("#{what} of #{address}: #{reason}#{" (#{status})" if status.positive?}#{more}")
    end

    # @param address [String] of the client
    # @param reason [String] why its handshake has failed
    # @param unnamed [Integer] others that failed since the last such line
    # @return [void]
    def report_handshake(address, reason, unnamed)
      @log.info("Handshake of #{address} failed: #{reason}#{"; #{unnamed} more failed before it" if unnamed.positive?}")
    end

    # @param address [String] of the client
    # @param reason [String] why its answer ended before its end
    # @param count [Integer] answers cut so far, of which the log does not name all
    # @return [void]
    def report_cut(address, reason, count)
      @log.error("Cut the answer to #{address}: #{reason}; #{count} cut so far")
    end

    # @param count [Integer] incidents that came at once with those that the log names
    # @return [void]
    def report_lost(count)
      @log.error("The log does not name #{count} more incidents like these: too many came at once")
    end

    # @param address [String] of the client
    # @param reason [String] why its connection was closed
    # @return [void]
    def report_closed(address, reason)
      @log.error("Closed the connection of #{address}: #{reason}")
    end

    # @param address [String] of the client
    # @param reason [String] why it was not subscribed
    # @return [void]
    def report_subscription(address, reason)
      @log.info("Refused a subscription of #{address}: #{reason}")
    end

    # @param address [String] of the client
    # @param reason [String] why it was subscribed without what it has missed
    # @return [void]
    def report_replay(address, reason)
      @log.error("Subscribed #{address} without the messages that it missed: #{reason}")
    end

    # @param address [String] of the client
    # @param reason [String] why the call that waited for it does not any more
    # @param count [Integer] clients given up so far, of which the log does not name all
    # @return [void]
    def report_given_up(address, reason, count)
      @log.error("Gave up the client #{address}: #{reason} (max_parked_bodies); #{count} given up so far")
    end

    # @param reason [String] why connections are refused from now on
    # @return [void]
    def report_no_descriptor(reason)
      limit, = Process.getrlimit(:NOFILE)
      @log.error("#{reason.capitalize}: they are answered 503 (the limit is #{limit} open files; " \
                 "see ulimit -n, LimitNOFILE)")
    end

    # @param reason [String] why calls that may wait for a disk are made by the loop itself
    # @return [void]
    def report_no_disk_thread(reason)
      @log.error("#{reason.capitalize}: a disk that does not answer now holds up all clients (see ulimit -u, TasksMax)")
    end

    # @param reason [String] why other workers answer requests of this one's clients
    # @return [void]
    def report_forwarding(reason)
      @log.info("#{reason.capitalize} (the numbers are forwarded_out and forwarded_in)")
    end

    # @param address [String] of the client
    # @param reason [String] why the worker or the application that should answer its request did not
    # @return [void]
    def report_unanswered(address, reason)
      @log.error("No whole answer for #{address}: #{reason}")
    end

    # @param scheduler [Fiber::Scheduler] that the application has set for an application thread
    # @return [void]
    def report_foreign_scheduler(scheduler)
      @log.warn("An application thread has a scheduler of the application, #{quote(scheduler.class.name)}: it keeps " \
                "that, and calls the application without fibers")
    end

    # @param milliseconds [Integer] the limit
    # @param place [Array<String>, nil] where the fiber is
    # @return [void]
    def report_slow_fiber(milliseconds, place)
      @log.warn("A fiber has kept its thread for more than #{milliseconds} ms, so the others of that thread wait; " \
                "it is at#{indent(place)}")
    end

    # @param verb [String] of the request line
    # @param path [String]
    # @param seconds [Float] since the application got the request
    # @param thread [Thread, Fiber] which is at it
    # @param env [Hash, nil] of the request
    # @return [void]
    def report_slow(verb, path, seconds, thread, env)
      log_request("#{quote(verb)} #{quote(path)}", env,
                  "no answer for #{seconds.round(1)} s; the application is at#{indent(thread.backtrace)}")
    end

    # @param verb [String] of the request line
    # @param path [String]
    # @param seconds [Float] since the application got the request
    # @param thread [Thread, Fiber] which hangs
    # @param env [Hash, nil] of the request
    # @return [void]
    def report_hung(verb, path, seconds, thread, env)
      log_request("#{quote(verb)} #{quote(path)}", env,
                  "no answer for #{seconds.round(1)} s (hard_request_timeout), given up (503); " \
                  "the application is at#{indent(thread.backtrace)}")
    end

    private

    # Ids have fields of their own where a line has fields.
    def log_request(request, env, words)
      ids = env && env[IDS]
      return @log.error("#{request}: #{words}") unless ids.is_a?(Hash)
      return @log.error("#{request}: #{words}", ids) if @log.is_a?(Logger) && @log.fields?

      @log.error("#{request} [#{ids.map { |name, id| "#{quote(name)}=#{quote(id)}" }.join(" ")}]: #{words}")
    end

    def request_of(env)
      env.values_at("REQUEST_METHOD", "PATH_INFO").compact.map { |text| quote(text) }.join(" ")
    end

    def refused_body(error)
      [error.status, PLAIN.dup, ["#{error.message}\n"]]
    end

    # Messages come in any encoding, and lines of several cannot be joined. A message may be the client's words, so
    # its further lines look neither like lines of the log nor like the backtrace.
    def describe(error)
      message = shorten(error.message.to_s).gsub("\n", "\n    | ")
      ["#{quote(error.class.name)}: #{message}", *error.backtrace&.map { |line| quote(line) }].join("\n    ")
    end

    def shorten(text)
      return utf8(text) if text.bytesize <= MESSAGE_MAX

      "#{utf8(text.byteslice(0, MESSAGE_MAX))} (cut: the message has #{text.bytesize} bytes)"
    end

    # @return [String, nil] further lines of an entry
    def indent(lines)
      lines&.map { |line| "\n    #{quote(line)}" }&.join
    end

    def quote(text)
      Logger.quote(text.to_s)
    end

    def utf8(text)
      text.to_s.dup.force_encoding(Encoding::UTF_8).scrub
    end

    def call_handler(error, env)
      arguments = [error, env, 500]
      count = @handler.respond_to?(:arity) && @handler.arity >= 0 ? @handler.arity : 3
      @handler.call(*arguments.first(count))
    end
  end
end
