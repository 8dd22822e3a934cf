-- Counts as they are known at as_of(), in the local hour that they stand for.
-- columns: counted_at timestamp, hour_started_at timestamp, cluster text, partition text,
--          team text, gpus_held float64, gpus_waiting float64, gpus_installed float64,
--          period_s float64 [s]
-- one row per count in [span_started_at(), as_of()] that is none of `blind_counts`. A count stands
-- for its period from its instant on, all of it in the hour that the instant is in; of an hour that
-- is not over at as_of() only what is past.
WITH known AS (
    SELECT c.*, local_hour(c.counted_at) AS hour_started_at
    FROM gpu_counts c
    LEFT JOIN blind_counts b
        ON b.counted_at = c.counted_at AND (b.cluster IS NOT DISTINCT FROM c.cluster)
    WHERE c.counted_at BETWEEN span_started_at() AND as_of() AND b.counted_at IS NULL
)
SELECT k.counted_at, k.hour_started_at, k.cluster,
    coalesce(k."partition", 'default') AS "partition", k.team, k.gpus_held, k.gpus_waiting,
    k.gpus_installed,
    CASE WHEN as_of() < local_hour_ended(k.counted_at) THEN
        least(k.period_s, (CAST(as_of() AS BIGINT) - CAST(k.counted_at AS BIGINT)) / 1000.0)
        ELSE k.period_s END AS period_s
FROM known k
