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
WITH cut AS (
    SELECT t.*, unnest(split_bins(greatest(t.started_at, $from), least(t.ended_at, $until), $step))
        AS bin
    FROM job_time t
    WHERE t.started_at < $until AND t.ended_at > $from
),
timed AS (
    SELECT c.*, c.bin['bin_started_at'] AS bin_started_at, c.bin['elapsed_s'] AS elapsed_s,
        c.gpus_held * c.bin['elapsed_s'] AS held_s,
        c.gpus_read * c.bin['elapsed_s'] AS read_s
    FROM cut c
),
summed AS (
    SELECT t.bin_started_at, t.team, sum(t.held_s) AS held_s,
        sum(t.read_s) FILTER (WHERE t.util_ratio IS NOT NULL) AS observed_s,
        sum(t.read_s * t.util_ratio) AS busy_s, sum(t.read_s * t.effective_ratio) AS effective_s,
        sum(t.mem_used_bytes * t.elapsed_s) / nullif(sum(t.mem_total_bytes * t.elapsed_s), 0)
            AS mem_used_ratio,
        sum(t.read_s * t.power_w)
            / nullif(sum(t.read_s) FILTER (WHERE t.power_w IS NOT NULL), 0) AS power_w
    FROM timed t
    GROUP BY t.bin_started_at, t.team
)
SELECT s.bin_started_at, coalesce(s.team, '(none)') AS team,
    s.busy_s / nullif(s.observed_s, 0) AS util_ratio,
    s.effective_s / nullif(s.observed_s, 0) AS effective_ratio, s.mem_used_ratio, s.power_w,
    s.held_s / 3600 AS gpu_hours_held, s.observed_s / 3600 AS gpu_hours_observed,
    s.busy_s / 3600 AS gpu_hours_busy,
    CASE WHEN s.held_s > 0 THEN
        least(coalesce(s.observed_s, 0) / s.held_s, 1) END AS coverage_ratio
FROM summed s
ORDER BY s.bin_started_at, team
