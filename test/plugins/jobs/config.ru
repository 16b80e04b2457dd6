# frozen_string_literal: true

require_relative "config/application"

run lambda { |env|
  word = env["PATH_INFO"].delete_prefix("/")
  NoteJob.perform_later(word)
  [200, { "content-type" => "text/plain" }, [word]]
}
