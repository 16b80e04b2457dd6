# frozen_string_literal: true

# The static folder behind a symbolic link that a deployment changes: the old folder until the restart, and the new one
# after it.
# SPDX-License-Identifier: MIT

require_relative "cluster_case"

class ClusterStaticFolderTest < ClusterCase
  def setup
    super
    release "one"
  end

  # Does what Capistrano does.
  def release(name)
    write "releases/#{name}/site/name.txt", name
    link = File.join(@folder, "link")
    File.symlink("releases/#{name}", link)
    File.rename(link, File.join(@folder, "current"))
  end

  def served(server)
    get(server, "/name.txt").body
  end

  def test_a_phased_restart_and_a_whole_one_follow_the_link
    server = cluster("-www", "current/site")
    %w[USR1 USR2].each_with_index do |signal, index|
      old = workers(server).values
      before = served(server)
      release "#{signal} #{index}"
      assert_equal before, served(server)
      server.signal(signal)
      wait_for_workers(server, 2, phase: index + 1)
      wait_for_end_of(*old)
      assert_equal "#{signal} #{index}", served(server)
    end
    assert_match(/^\* Serving files of #{@folder}\/current\/site$/, server.log)
  end

  def test_a_restart_without_workers_follows_the_link
    server = start("-www", "current/site")
    server.wait_for_log(/Use Ctrl-C/)
    release "two"
    assert_equal "one", served(server)
    after_signal(server, "USR2", /Use Ctrl-C/)
    assert_equal "two", served(server)
  end

  def test_a_folder_that_has_gone_changes_nothing
    server = cluster("-www", "current/site")
    File.delete(File.join(@folder, "current"))
    %w[USR1 USR2].each do |signal|
      after_signal(server, signal, /public: cannot read the folder #{@folder}\/current\/site: No such file or directory/)
      assert_equal "one", served(server)
    end
    release "two"
    server.signal("USR1")
    eventually("the new release") { served(server) == "two" }
  end
end
