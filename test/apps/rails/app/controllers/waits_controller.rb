# frozen_string_literal: true

# Requests that wait in the application, for each other or for a file.
# SPDX-License-Identifier: MIT

class WaitsController < ApplicationController
  MEETING = Rails.application.config.x.meeting

  # Shows what was kept for this request before the other one came.
  def meet
    Current.visitor = params[:name]
    I18n.with_locale(params[:locale]) do
      note = Note.create!(text: params[:name])
      MEETING[params[:other]] << true
      MEETING[params[:name]].pop
      render plain: [Current.visitor, I18n.locale, note.reload.text].join(" ")
    end
  end

  # Whether a class was replaced meanwhile.
  def linger
    before = Greeting
    File.write("#{params[:flag]}.here", "")
    sleep 0.01 until File.exist?(params[:flag])
    render plain: "#{Greeting::TEXT}: #{before.equal?(Greeting) ? "one module" : "two modules"}"
  end

  def release
    MEETING[params[:name]] << true
    head :ok
  end

  # Whose request was here before must not be seen.
  def visitor
    before = Current.visitor
    Current.visitor = params[:name]
    render plain: "#{before.inspect} #{Current.visitor}"
  end
end
