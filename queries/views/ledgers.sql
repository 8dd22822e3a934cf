-- Clusters of which something tells what jobs held: jobs, allocations or counts.
-- columns: cluster_key text
-- one row per such cluster, '' for none named. Elsewhere what was held and free is not known, which
-- is not 0.
SELECT coalesce(j.cluster, '') AS cluster_key FROM attempts j
UNION SELECT coalesce(a.cluster, '') AS cluster_key FROM allocations a WHERE a.started_at <= as_of()
UNION SELECT coalesce(c.cluster, '') AS cluster_key FROM counts c
