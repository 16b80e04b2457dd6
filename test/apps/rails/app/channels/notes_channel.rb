# frozen_string_literal: true

# What one page saves arrives at all.
# SPDX-License-Identifier: MIT

class NotesChannel < ApplicationCable::Channel
  def subscribed
    stream_from("saved")
  end

  def save(data)
    note = Note.create!(text: data["text"])
    ActionCable.server.broadcast("saved", { text: note.text, by: connection.env["rack.url_scheme"] })
  end
end
