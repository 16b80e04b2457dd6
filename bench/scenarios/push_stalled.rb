# frozen_string_literal: true

Bench.scenario "push_stalled" do
  describe "push_stalled: 30,000 messages of 8 KiB to two subscribers, one of whom never reads"
  app "push"
  kind :stalled
  rounds 1
  within 30
  fresh true
  over_connections 1
  show :grown_mib, :mb_per_s, :wrong
  at_most 11, 6, :grown_mib, "growth with a stalled reader (limit 1 MiB), MiB"
end
