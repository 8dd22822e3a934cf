-- Energy and carbon of the GPUs by team or job, each board counted once.
-- parameters: $from timestamp, $until timestamp,
--             $by text = 'team' of team|user|project|workload|pool|job
-- columns: held_by text, energy_kwh float64 [kWh], energy_site_kwh float64 [kWh],
--          carbon_kg float64 [kg CO2e], power_w float64 [W], gpu_hours_observed float64 [GPU·h],
--          gpu_hours_held float64 [GPU·h], energy_source text, coverage_ratio float64 [0-1]
-- one row per team (or user, project, workload, pool, job) whose GPUs had power read in
-- [$from, $until), and `(nobody)` for the boards' energy that no job can be charged with; they
-- sum to the boards. Ordered by energy_kwh, highest first, then name. Energy is the boards' for
-- the time observed: from the energy counter where there is one (`counter`), else power x period
-- (`power`); a gap is not filled, coverage_ratio is observed / held. energy_site_kwh is
-- energy_kwh x the site's overhead (PUE), which is 1 unless configured (`energy.pue`); carbon is
-- NULL where the grid's is not configured.
WITH held AS (
    SELECT held_by($by, t.team, t."user", t.project, t.workload, t."partition", t.job_id)
            AS held_by,
        sum(t.gpus * (CAST(least(t.ended_at, $until) AS BIGINT)
            - CAST(greatest(t.started_at, $from) AS BIGINT))) / 1000.0 AS held_s
    FROM held_time t
    WHERE t.started_at < $until AND t.ended_at > $from
    GROUP BY 1
),
read AS (
    SELECT r.job_id,
        held_by($by, r.team, r."user", r.project, r.workload, r."partition", r.job_id) AS held_by,
        r.gpus * (CAST(least(r.ended_at, $until) AS BIGINT)
            - CAST(greatest(r.started_at, $from) AS BIGINT)) / 1000.0 AS gpu_s,
        r.power_w, r.power_source
    FROM job_readings r
    WHERE r.power_w IS NOT NULL AND r.gpus > 0 AND r.started_at < $until AND r.ended_at > $from
),
charged AS (
    SELECT coalesce(r.held_by, '(none)') AS held_by, sum(r.gpu_s * r.power_w) AS energy_j,
        sum(r.gpu_s) AS observed_s,
        count(*) FILTER (WHERE r.power_source = 'counter') AS counted,
        count(*) FILTER (WHERE r.power_source = 'power') AS metered
    FROM read r
    WHERE r.job_id IS NOT NULL
    GROUP BY r.held_by
),
board AS (
    SELECT sum(b.gpu_s * b.power_w) AS energy_j, sum(b.gpu_s) AS observed_s,
        count(*) FILTER (WHERE b.power_source = 'counter') AS counted,
        count(*) FILTER (WHERE b.power_source = 'power') AS metered
    FROM (
        SELECT d.power_w, d.power_source,
            d.board_ratio * (CAST(least(d.sampled_at, $until) AS BIGINT)
                - CAST(greatest(d.started_at, $from) AS BIGINT)) / 1000.0 AS gpu_s
        FROM device_readings d
        WHERE d.power_w IS NOT NULL AND d.started_at < $until AND d.sampled_at > $from
    ) b
),
share AS (
    SELECT CASE WHEN o.own > 0 THEN c.held_by ELSE '(nobody)' END AS held_by,
        o.own * c.energy_j AS energy_j, o.own * c.observed_s AS observed_s,
        CASE WHEN o.own > 0 THEN c.counted ELSE 0 END AS counted,
        CASE WHEN o.own > 0 THEN c.metered ELSE 0 END AS metered
    FROM charged c
    CROSS JOIN (SELECT unnest([1, -1]) AS own) o
    UNION ALL
    SELECT '(nobody)' AS held_by, b.energy_j, b.observed_s, b.counted, b.metered FROM board b
),
summed AS (
    SELECT s.held_by, sum(s.energy_j) AS energy_j, sum(s.observed_s) AS observed_s,
        sum(s.counted) AS counted, sum(s.metered) AS metered
    FROM share s
    GROUP BY s.held_by
),
every AS (
    SELECT s.*, h.held_s
    FROM summed s
    LEFT JOIN held h ON coalesce(h.held_by, '(none)') = s.held_by
    WHERE s.observed_s > 1e-6
)
SELECT e.held_by, e.energy_j / 3600000 AS energy_kwh,
    e.energy_j / 3600000 * coalesce(g.pue, 1) AS energy_site_kwh,
    e.energy_j / 3600000 * coalesce(g.pue, 1) * g.grid_kg_co2e_per_kwh AS carbon_kg,
    e.energy_j / nullif(e.observed_s, 0) AS power_w, e.observed_s / 3600 AS gpu_hours_observed,
    e.held_s / 3600 AS gpu_hours_held,
    nullif(concat_ws(',', CASE WHEN e.counted > 0 THEN 'counter' END,
        CASE WHEN e.metered > 0 THEN 'power' END), '') AS energy_source,
    CASE WHEN e.held_s > 0 THEN least(e.observed_s / e.held_s, 1) END AS coverage_ratio
FROM every e
CROSS JOIN config_energy g
ORDER BY energy_kwh DESC, e.held_by
