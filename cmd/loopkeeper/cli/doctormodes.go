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

// coordinatorFacts asks a coordinator that runs here what it knows of this machine, and of the roles of the fleet; without one nothing is
// known.
func (a *app) coordinatorFacts(ctx context.Context) (modes []doctor.Mode, roles []doctor.Finding) {
	id, err := os.ReadFile(filepath.Join(a.config.DataDir, nodeIDFile))
	if err != nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, doctorPatience)
	defer cancel()
	c, err := reach(ctx, a.serverAddress())
	if err != nil {
		return nil, nil
	}
	defer c.close()
	r, err := c.ListNodes(ctx, &coordinatorv1.ListNodesRequest{})
	if err != nil {
		return nil, nil
	}
	for _, n := range r.GetNodes() {
		if n.GetId() == strings.TrimSpace(string(id)) {
			modes = modeFacts(n.GetReport())
		}
	}
	return modes, roleFacts(r)
}

// roleFacts are the roles, and what is not well with them. That judges are not calibrated is how everybody begins, and no warning.
func roleFacts(r *coordinatorv1.ListNodesResponse) (out []doctor.Finding) {
	for _, role := range r.GetRoles() {
		out = append(out, doctor.Finding{Level: doctor.OK, Part: "roles", Text: ui.Line(role.GetName() + ": " + strings.Join(role.GetModels(), ", "))})
	}
	for _, f := range r.GetFindings() {
		if !aboutRoles(f) {
			continue
		}
		level := doctor.Warning
		if f.GetCode() == "judges_uncalibrated" {
			level = doctor.OK
		}
		out = append(out, doctor.Finding{Level: level, Part: "roles", Text: ui.Line(f.GetText()), Next: strings.Join(f.GetNext(), "; or ")})
	}
	return out
}
