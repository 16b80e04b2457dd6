# frozen_string_literal: true

# Files in and out.
# SPDX-License-Identifier: MIT

require "digest"

class UploadsController < ApplicationController
  skip_forgery_protection

  LARGE = Rails.root.join("storage/large.bin")

  def create
    file = params.require(:file)
    digest = Digest::SHA256.file(file.tempfile.path).hexdigest
    render plain: "#{params[:title]} #{file.original_filename} #{file.size} #{digest}"
  end

  def show
    send_file LARGE, filename: "large.bin", type: "application/octet-stream"
  end

  def inline
    send_data "a,b\n1,2\n", filename: "table.csv", type: "text/csv"
  end
end
