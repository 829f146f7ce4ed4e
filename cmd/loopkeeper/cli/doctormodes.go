package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/doctor"
	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
)

// modeFacts are the modes in a worker's report.
func modeFacts(r *workerv1.NodeReport) (out []doctor.Mode) {
	for _, m := range r.GetModels() {
		if mode := m.GetMode(); mode != nil {
			out = append(out, doctor.Mode{Model: ui.Line(m.GetName()), Way: ui.Mode(mode), Version: ui.Line(mode.GetServerVersion()), Probed: mode.GetTime().AsTime(), None: mode.GetNone()})
		}
	}
	return out
}

// coordinatorModes asks a coordinator that runs here what it knows of this machine; without one nothing is known.
func (a *app) coordinatorModes(ctx context.Context) []doctor.Mode {
	id, err := os.ReadFile(filepath.Join(a.config.DataDir, nodeIDFile))
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, doctorPatience)
	defer cancel()
	c, err := reach(ctx, a.serverAddress())
	if err != nil {
		return nil
	}
	defer c.close()
	r, err := c.ListNodes(ctx, &coordinatorv1.ListNodesRequest{})
	if err != nil {
		return nil
	}
	for _, n := range r.GetNodes() {
		if n.GetId() == strings.TrimSpace(string(id)) {
			return modeFacts(n.GetReport())
		}
	}
	return nil
}
