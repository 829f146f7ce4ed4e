package api

import (
	"cmp"
	"context"

	"github.com/loopkeeper/loopkeeper/coordinator/tools"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// Tools implements coordinatorv1.ToolServiceServer.
type Tools struct {
	coordinatorv1.UnimplementedToolServiceServer
	Registry   *tools.Registry
	Workspaces []tools.Workspace
}

// ListTools implements the service.
func (t *Tools) ListTools(context.Context, *coordinatorv1.ListToolsRequest) (*coordinatorv1.ListToolsResponse, error) {
	out := &coordinatorv1.ListToolsResponse{}
	simulated := tools.EffectLog{}.Describe().Name
	for _, d := range t.Registry.Tools() {
		out.Tools = append(out.Tools, &coordinatorv1.Tool{Name: d.Name, Summary: d.Summary, InputSchemaJson: d.Input, OutputSchemaJson: d.Output,
			Effect: string(d.Effect), Undoable: d.Undoable, Verify: d.Verify, Simulated: d.Name == simulated})
	}
	for _, w := range t.Workspaces {
		out.Workspaces = append(out.Workspaces, &coordinatorv1.Workspace{Name: w.Name, Dir: w.Dir, Write: w.Write,
			MaxBytes: cmp.Or(w.MaxBytes, tools.DefaultMaxBytes)})
	}
	return out, nil
}
