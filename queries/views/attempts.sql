-- Job attempts as they are known at as_of(): what happens later is not seen yet.
-- columns: job_id text, attempt int32, cluster text, name text, user text, team text, project text,
--          workload text, partition text, state text, submitted_at timestamp,
--          eligible_at timestamp, started_at timestamp, ended_at timestamp,
--          gpus_requested float64, gpus_allocated float64, gpu_model_requested text,
--          gpus_asked float64, used_ratio float64 [0-1], wait_started_at timestamp,
--          wait_ended_at timestamp, waits boolean, nodes text
-- one row per attempt that was submitted or began by then. One that begins later waits, one that
-- ends later runs, and both are told so in state. gpus_asked is requested, else granted.
-- used_ratio is the share of its time that it is not suspended. It waits from wait_started_at (when
-- eligible, else submitted) to wait_ended_at (its start, its end without one, or now); waits is
-- true where it still does.
WITH known AS (
    SELECT j.job_id, j.attempt, j.cluster, j.name, j."user", j.team, j.project, j.workload,
        j."partition", j.state AS last_state, j.submitted_at, j.eligible_at,
        j.started_at > as_of() AS begins_later, j.ended_at > as_of() AS ends_later,
        CASE WHEN j.started_at <= as_of() THEN j.started_at END AS begun_at,
        CASE WHEN j.ended_at <= as_of() THEN j.ended_at END AS over_at,
        coalesce(j.eligible_at, j.submitted_at) AS wait_at,
        j.gpus_requested, j.gpus_allocated AS gpus_granted, j.gpu_model_requested, j.nodes,
        greatest(1 - coalesce(coalesce(j.suspended_s, 0) * 1000 / nullif(
            CAST(coalesce(j.ended_at, as_of()) AS BIGINT) - CAST(j.started_at AS BIGINT), 0), 0), 0)
            AS used_ratio
    FROM jobs j
    WHERE coalesce(least(j.submitted_at, j.started_at) <= as_of(), true)
)
SELECT k.job_id, k.attempt, k.cluster, k.name, k."user", k.team, k.project, k.workload,
    k."partition",
    CASE WHEN k.begins_later OR k.ends_later THEN
        CASE WHEN k.begun_at IS NULL THEN 'PENDING' ELSE 'RUNNING' END
        ELSE k.last_state END AS state,
    k.submitted_at, k.eligible_at, k.begun_at AS started_at, k.over_at AS ended_at,
    k.gpus_requested,
    CASE WHEN NOT coalesce(k.begins_later, false) THEN k.gpus_granted END AS gpus_allocated,
    k.gpu_model_requested, coalesce(k.gpus_requested, k.gpus_granted) AS gpus_asked, k.used_ratio,
    CASE WHEN k.wait_at IS NOT NULL THEN greatest(k.wait_at, span_started_at()) END
        AS wait_started_at,
    coalesce(k.begun_at, k.over_at, as_of()) AS wait_ended_at,
    k.begun_at IS NULL AND k.over_at IS NULL AND coalesce(k.wait_at <= as_of(), false) AS waits,
    k.nodes
FROM known k
