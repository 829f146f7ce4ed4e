package fleet

import workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"

// Modes are what workers found out about the way in which their Ollama applies a format, by model and version. They come with
// the reports, which are stored, and go with calls, so that a worker that starts need not find them out again.

// keepModes gives the models of a report the modes that were known before: a worker that has started anew has forgotten
// them. A mode holds for a digest and a version of the server; while the server does not say its version, it may still be that one.
func keepModes(before, r *workerv1.NodeReport) {
	known := map[string]*workerv1.CallMode{}
	for _, m := range before.GetModels() {
		if m.GetMode() != nil && m.GetDigest() != "" {
			known[m.GetDigest()] = m.GetMode()
		}
	}
	version := r.GetOllama().GetVersion()
	for _, m := range r.GetModels() {
		if was := known[m.GetDigest()]; m.GetMode() == nil && was != nil && (version == "" || version == was.GetServerVersion()) {
			m.Mode = was
		}
	}
}

// Mode is what is known about calling a model on a node with a format; nil while nothing is.
func (f *Fleet) Mode(nodeID, digest string) *workerv1.CallMode {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.nodes[nodeID]
	if n == nil || digest == "" {
		return nil
	}
	for _, m := range n.report.GetModels() {
		if m.GetDigest() == digest {
			return m.GetMode()
		}
	}
	return nil
}
