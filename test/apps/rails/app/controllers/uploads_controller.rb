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

  # Kept by ActiveStorage on the disk; its own controllers send it.
  def stored
    blob = ActiveStorage::Blob.create_and_upload!(io: LARGE.open("rb"), filename: "stored.bin", identify: false)
    redirect_to params[:proxied] ? rails_storage_proxy_path(blob) : rails_blob_path(blob)
  end

  def inline
    send_data "a,b\n1,2\n", filename: "table.csv", type: "text/csv"
  end
end
