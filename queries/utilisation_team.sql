-- Utilisation of the GPUs that each team held by local hour or day.
-- parameters: $from timestamp, $until timestamp, $step text = 'hour' of bin
-- columns:    bin_started_at timestamp, team text,
--             util_ratio float64 [0-1],
--             effective_ratio float64 [0-1], mem_used_ratio float64 [0-1], power_w float64 [W],
--             gpu_hours_held float64 [GPU·h], gpu_hours_observed float64 [GPU·h],
--             gpu_hours_busy float64 [GPU·h], coverage_ratio float64 [0-1]
-- one row per bin and team with GPUs held or read in [$from, $until), clipped exactly; $step is
-- hour, day, week or month of local time; ordered by bin, team. Means are weighted by time and
-- by the part of the board that was the job's; power_w is that of a GPU. Where nothing was read
-- they are NULL with coverage 0: coverage_ratio is observed / held. `(none)` is work of no known
-- team.
WITH held AS (
    SELECT t.team AS team, t.gpus,
        greatest(t.started_at, $from) AS from_at, least(t.ended_at, $until) AS until_at
    FROM held_time t
    WHERE t.started_at < $until AND t.ended_at > $from
),
held_bin AS (
    SELECT h.team, h.gpus, unnest(split_bins(h.from_at, h.until_at, $step)) AS bin
    FROM held h
),
read AS (
    SELECT r.team AS team, r.gpus, r.util_ratio, r.effective_ratio,
        CASE WHEN r.mem_total_bytes IS NOT NULL THEN r.mem_used_bytes END AS used_bytes,
        CASE WHEN r.mem_used_bytes IS NOT NULL THEN r.mem_total_bytes END AS total_bytes,
        r.power_w, greatest(r.started_at, $from) AS from_at,
        least(r.sampled_at, $until) AS until_at
    FROM job_readings r
    WHERE r.job_id IS NOT NULL AND r.started_at < $until AND r.sampled_at > $from
),
read_bin AS (
    SELECT r.team, r.gpus, r.util_ratio, r.effective_ratio, r.used_bytes, r.total_bytes,
        r.power_w,
        unnest(split_bins(r.from_at, r.until_at, $step)) AS bin
    FROM read r
),
observed AS (
    SELECT r.team, r.bin['bin_started_at'] AS bin_started_at, r.bin['elapsed_s'] AS elapsed_s,
        r.gpus * r.bin['elapsed_s'] AS gpu_s, r.util_ratio, r.effective_ratio, r.used_bytes,
        r.total_bytes, r.power_w
    FROM read_bin r
),
part AS (
    SELECT h.bin['bin_started_at'] AS bin_started_at, h.team, 
        sum(h.gpus * h.bin['elapsed_s']) AS held_s,
        CAST(NULL AS DOUBLE) AS observed_s, CAST(NULL AS DOUBLE) AS busy_s,
        CAST(NULL AS DOUBLE) AS effective_s, CAST(NULL AS DOUBLE) AS used_byte_s,
        CAST(NULL AS DOUBLE) AS total_byte_s, CAST(NULL AS DOUBLE) AS spent_j,
        CAST(NULL AS DOUBLE) AS powered_s
    FROM held_bin h
    GROUP BY h.bin['bin_started_at'], h.team
    UNION ALL
    SELECT o.bin_started_at, o.team, CAST(NULL AS DOUBLE) AS held_s,
        sum(o.gpu_s) FILTER (WHERE o.util_ratio IS NOT NULL) AS observed_s,
        sum(o.gpu_s * o.util_ratio) AS busy_s, sum(o.gpu_s * o.effective_ratio) AS effective_s,
        sum(o.used_bytes * o.elapsed_s) AS used_byte_s,
        sum(o.total_bytes * o.elapsed_s) AS total_byte_s, sum(o.power_w * o.gpu_s) AS spent_j,
        sum(o.gpu_s) FILTER (WHERE o.power_w IS NOT NULL) AS powered_s
    FROM observed o
    GROUP BY o.bin_started_at, o.team
)
SELECT p.bin_started_at, coalesce(p.team, '(none)') AS team,
    sum(p.busy_s) / nullif(sum(p.observed_s), 0) AS util_ratio,
    sum(p.effective_s) / nullif(sum(p.observed_s), 0) AS effective_ratio,
    sum(p.used_byte_s) / nullif(sum(p.total_byte_s), 0) AS mem_used_ratio,
    sum(p.spent_j) / nullif(sum(p.powered_s), 0) AS power_w,
    sum(p.held_s) / 3600 AS gpu_hours_held, sum(p.observed_s) / 3600 AS gpu_hours_observed,
    sum(p.busy_s) / 3600 AS gpu_hours_busy,
    CASE WHEN sum(p.held_s) > 0 THEN
        least(coalesce(sum(p.observed_s), 0) / sum(p.held_s), 1) END AS coverage_ratio
FROM part p
GROUP BY p.bin_started_at, p.team
ORDER BY p.bin_started_at, team
