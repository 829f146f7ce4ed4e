package cli

import (
	"context"
	"fmt"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// fitNews asks what sizes alone do not tell: where a placement would leave the model out although it is up, such as for a while after a
// spill, and what cannot be unloaded. A file is no model that anything is known of.
func fitNews(ctx context.Context, c *client, r *coordinatorv1.FitRequest, out *coordinatorv1.FitResponse) (ui.FitNews, error) {
	news := ui.FitNews{LeftOut: map[string]string{}, Stays: map[string][]string{}}
	nodes, err := c.ListNodes(ctx, &coordinatorv1.ListNodesRequest{})
	if err != nil {
		return news, err
	}
	for _, n := range nodes.GetNodes() {
		news.Stays[n.GetName()] = stays(n)
	}
	if r.GetShape() != nil {
		return news, nil
	}
	e, err := c.Explain(ctx, &coordinatorv1.ExplainRequest{Subject: &coordinatorv1.ExplainRequest_Model{Model: r.GetModel()}, Context: out.GetContext()})
	if err != nil {
		return news, err
	}
	for _, one := range e.GetExplanations() {
		for _, v := range one.GetNodes() {
			if v.GetVerdict() == "excluded" && up(out, v.GetNode()) {
				news.LeftOut[v.GetNode()] = v.GetWhy()
			}
		}
	}
	return news, nil
}

// stays is what takes memory on a machine and is not for loopkeeper to unload.
func stays(n *coordinatorv1.Node) (list []string) {
	for _, c := range n.GetClaims() {
		switch {
		case c.GetPinned():
			list = append(list, ui.Line(c.GetModel())+", which is pinned")
		case c.GetForeign():
			list = append(list, ui.Line(c.GetModel())+", loaded by somebody else")
		}
	}
	var others uint64
	for _, p := range n.GetPools() {
		others += p.GetForeignBytes()
	}
	if others >= 1<<30/10 { // less is no reason
		list = append(list, fmt.Sprintf("%s GiB of other programs", ui.GiB(others)))
	}
	return list
}

func up(r *coordinatorv1.FitResponse, node string) bool {
	for _, n := range r.GetNodes() {
		if n.GetNode() == node {
			return n.GetState() == "up"
		}
	}
	return false
}
