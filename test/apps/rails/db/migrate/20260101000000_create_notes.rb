# frozen_string_literal: true

# SPDX-License-Identifier: MIT

class CreateNotes < ActiveRecord::Migration[7.2]
  def change
    create_table :notes do |t|
      t.string :text, null: false
      t.timestamps
    end
  end
end
