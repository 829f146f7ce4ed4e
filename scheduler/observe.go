package scheduler

// Observe turns a measured load into an observation: what the model was computed to need on the devices that the load was decided
// for, without margin, beside the bytes that were observed. False for a node or model whose need is not known, and for the memory of
// a host, where nothing can be measured.
func Observe(node Node, load Decision, observed uint64) (Observation, bool) {
	shapes := catalogOf([]*Node{&node})
	shape := shapes.byDigest[load.Digest]
	m := newMemory(&node, shapes, Limits{})
	if !m.devices || len(m.pools) == 0 || !shape.believable() {
		return Observation{}, false
	}
	slots := slotsOf(&node, findDigest(&node, load.Digest), shape)
	// The decision tells bytes, not on how many devices: the number that comes closest is the one.
	best, off := uint64(0), uint64(0)
	for devices := 1; devices <= len(m.pools); devices++ {
		need := NeedFor(*shape, load.Context, slots, m.options(&node, devices, load.Digest, load.Context, slots))
		if d := max(need.Total(), load.Need) - min(need.Total(), load.Need); devices == 1 || d < off {
			best, off = need.Total()-need.Margin, d
		}
	}
	return Observation{MarginKey: MarginKey{Digest: load.Digest, Context: load.Context, Slots: slots}, Version: node.OllamaVersion,
		Device: node.Accelerator(), Need: best, Observed: observed}, true
}
