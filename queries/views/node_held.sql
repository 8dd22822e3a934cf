-- GPUs held at the store's latest instant, by the node that they are on.
-- columns: cluster text, partition text, node text, gpu_uuid text, gpus float64
-- one row per holding and node. Where no allocation tells the node, the nodes that the job lists
-- have equal parts of its GPUs, if there is one node or the number of GPUs divides evenly among
-- them: otherwise nobody knows which has more. node is NULL where it is not known.
WITH holding AS (
    SELECT h.cluster, h."partition", h.node, h.gpu_uuid, h.gpus,
        string_to_array(replace(h.nodes, ' ', ''), ',') AS listed
    FROM holdings h
    WHERE h.started_at <= as_of() AND h.ended_at >= as_of()
),
named AS (
    SELECT h.cluster, h."partition", h.gpu_uuid, h.gpus,
        CASE WHEN h.node IS NULL AND (array_length(h.listed) = 1
                OR h.gpus % CAST(array_length(h.listed) AS DOUBLE) = 0)
            THEN h.listed ELSE make_array(h.node) END AS nodes
    FROM holding h
),
spread AS (
    SELECT n.cluster, n."partition", n.gpu_uuid,
        n.gpus / CAST(array_length(n.nodes) AS DOUBLE) AS part,
        unnest(n.nodes) AS named
    FROM named n
)
SELECT s.cluster, s."partition", s.named AS node, s.gpu_uuid, s.part AS gpus
FROM spread s
