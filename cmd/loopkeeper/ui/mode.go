package ui

import workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"

// Mode says in words how values are asked for: the endpoint and whether the model thinks there; "" while nobody has found out.
func Mode(m *workerv1.CallMode) string {
	switch {
	case m == nil:
		return ""
	case m.GetNone():
		return "not applied"
	}
	words := m.GetEndpoint()
	switch m.GetThink() {
	case "false", "":
	case "true":
		words += ", thinking"
	default:
		words += ", thinking " + m.GetThink()
	}
	if m.GetField() == "thinking" {
		words += ", in the thoughts"
	}
	return Line(words)
}
