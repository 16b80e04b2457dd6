# frozen_string_literal: true

# Actions of ActionController::Live that wait, fail, and go on after their clients.
# SPDX-License-Identifier: MIT

class LiveStreamsController < ApplicationController
  include ActionController::Live

  skip_forgery_protection

  # As a library does it that keeps something for a request.
  prepend Module.new {
    def process(*)
      (Thread.current[:kept] ||= {})[:name] = params[:name]
      super
    end
  }

  after_action { response.stream.close }

  # Says whose it is, before and after a wait.
  def held
    Current.visitor = params[:name]
    say "#{Current.visitor} #{!request.env["rondo.live"].nil?}\n"
    wait_for params[:name]
    say "#{Current.visitor} still #{Thread.current[:kept][:name]}\n"
  end

  def silent
    head :ok
  end

  # Writes when it is released, and not before.
  def mute
    logger.info "#{params[:name]} says nothing"
    wait_for params[:name]
    loop { say("late\n" * 1000) }
  rescue ClientDisconnected => e
    logger.info "#{params[:name]}: #{e.message}"
  end

  def early
    raise ArgumentError, "on purpose"
  end

  def late
    say "begun\n"
    raise ArgumentError, "too late, on purpose"
  end

  def closed
    say "begun\n"
    response.stream.close
    say "never"
  rescue IOError => e
    logger.info "after the end: #{e.message}"
  end

  # Until the client leaves.
  def endless
    loop { say("line\n" * 1000) }
  rescue ClientDisconnected => e
    logger.info "#{params[:name]}: #{e.message}"
  end

  # More parts than wait to be sent.
  def sized
    100.times { |number| say "#{number}\n" }
  end

  # Reads the file of a form when the head is sent.
  def file
    upload = params[:file]
    say "begun\n"
    wait_for params[:name]
    say upload.read
  end

  private

  def say(text)
    response.headers["content-type"] ||= "text/plain"
    response.stream.write(text)
  end

  def wait_for(name)
    Rails.configuration.x.meeting[name].pop
  end
end
