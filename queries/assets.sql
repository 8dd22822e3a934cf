-- Every GPU of the inventory: where it sits, what it is, what it cost.
-- columns:    cluster text, partition text, node text, gpu int16, gpu_uuid text, gpu_model text,
--             mem_total_bytes int64 [B], driver_version text, cuda_version text,
--             vbios_version text, node_ip text, site text, rack text, state text, node_state text,
--             first_seen_at timestamp, last_seen_at timestamp, bought_at timestamp,
--             purchase_price float64 [currency], depreciation_months float64 [month],
--             price_per_hour float64 [currency/h]
-- one row per GPU; ordered by cluster, partition, node, GPU, UUID. What the GPU does not say of its
-- place is taken from its node.
SELECT
    g.cluster, coalesce(g."partition", n."partition", 'default') AS "partition",
    g.node, g.gpu, g.gpu_uuid, g.gpu_model, g.mem_total_bytes,
    g.driver_version, g.cuda_version, g.vbios_version,
    coalesce(g.node_ip, n.node_ip) AS node_ip, coalesce(g.site, n.site) AS site,
    coalesce(g.rack, n.rack) AS rack, g.state, n.state AS node_state,
    g.first_seen_at, g.last_seen_at, g.bought_at,
    g.purchase_price, g.depreciation_months, g.price_per_hour
FROM gpus g
LEFT JOIN nodes n ON n.node = g.node AND (n.cluster IS NOT DISTINCT FROM g.cluster)
ORDER BY g.cluster, 2, g.node, g.gpu, g.gpu_uuid
