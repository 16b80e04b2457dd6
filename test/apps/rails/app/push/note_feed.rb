# frozen_string_literal: true

# New notes as they come, and answers to what a page asks for.
# SPDX-License-Identifier: MIT

class NoteFeed
  def initialize(count)
    @count = count
  end

  def on_open(client)
    client.subscribe("notes")
    client.subscribe("reload") { client.close(1012) } if client.env["QUERY_STRING"] == "reload"
    client.write("visit #{@count}")
  end

  def on_message(client, data)
    return client.write("leased: #{Note.connection_pool.active_connection?.present?}") if data == "leased"

    Rails.application.executor.wrap { client.write(answer(client, *data.split(" ", 2))) }
  end

  private

  def answer(client, verb, text = nil)
    case verb
    when "create" then "created #{Note.create!(text: text).text}"
    when "find" then "found #{Note.where(text: text).count}"
    when "lease" then Note.lease_connection.select_value("SELECT 'leased'")
    when "name" then "Note is #{Note.name}"
    when "version" then "the first version"
    when "wait"
      client.write("waiting")
      Timeout.timeout(60) { sleep(0.002) until unloading? }
      "waited for #{Note.name}"
    end
  end

  # Whether a request waits to take the code away that we use.
  def unloading?
    ActiveSupport::Dependencies.interlock.raw_state { |threads| threads.each_value.any? { |one| one[:waiting] } }
  end
end
