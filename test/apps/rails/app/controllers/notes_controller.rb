# frozen_string_literal: true

# Forms with their tokens, flash, redirects, JSON; a new note goes to all open feeds.
# SPDX-License-Identifier: MIT

class NotesController < ApplicationController
  skip_forgery_protection only: %i[update destroy]

  def index
    @notes = Note.order(:id).last(20)
  end

  def new
    @note = Note.new
  end

  def show
    render json: Note.find(params[:id]).slice(:id, :text)
  end

  def create
    @note = Note.new(params.require(:note).permit(:text))
    return render(:new, status: :unprocessable_entity) unless @note.save

    Rondo.publish("notes", @note.slice(:id, :text))
    redirect_to notes_path, notice: "Saved: #{@note.text}"
  end

  def update
    note = Note.find(params[:id])
    note.update!(params.permit(:text))
    render json: note.slice(:id, :text)
  end

  def destroy
    Note.find(params[:id]).destroy
    head :no_content
  end
end
