# frozen_string_literal: true

# Forms with their tokens, flash, redirects, JSON.
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
    return redirect_to(notes_path, notice: "Saved: #{@note.text}") if @note.save
    render :new, status: :unprocessable_entity
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
