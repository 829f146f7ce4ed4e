package api

import (
	"context"
	"io"
	"maps"
	"slices"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
	"github.com/loopkeeper/loopkeeper/proto/prompts"
)

// ListPrompts implements the service.
func (j *judgeServer) ListPrompts(ctx context.Context, r *coordinatorv1.ListPromptsRequest) (*coordinatorv1.ListPromptsResponse, error) {
	if r.GetRunId() == "" {
		return &coordinatorv1.ListPromptsResponse{Prompts: promptMessages(j.s.o.Prompts), Folder: j.s.o.PromptsFolder}, nil
	}
	out, err := j.pinned(ctx, r.GetRunId())
	return out, apierr.ToStatus(err)
}

func promptMessages(set prompts.Set) (out []*coordinatorv1.Prompt) {
	for _, p := range set.List() {
		out = append(out, &coordinatorv1.Prompt{Name: p.Name, Version: p.Version, Sha256: p.SHA256, Text: p.Text, Changed: p.Changed})
	}
	return out
}

// pinned are the texts that a run has pinned, which need not be those of this release, nor have their names.
func (j *judgeServer) pinned(ctx context.Context, id string) (*coordinatorv1.ListPromptsResponse, error) {
	c, err := j.s.o.Engine.Pinned(ctx, id)
	if err != nil {
		return nil, err
	}
	if len(c.Prompts) == 0 {
		return &coordinatorv1.ListPromptsResponse{Prompts: promptMessages(nil)}, nil
	}
	out := &coordinatorv1.ListPromptsResponse{Pinned: true}
	for _, name := range slices.Sorted(maps.Keys(c.Prompts)) {
		text, err := j.text(ctx, c.Prompts[name])
		if err != nil {
			return nil, apierr.Wrap(err, apierr.LedgerCorrupt, "open the prompt %s of run %s", name, c.ID)
		}
		out.Prompts = append(out.Prompts, &coordinatorv1.Prompt{Name: name, Version: prompts.Version(text), Sha256: c.Prompts[name], Text: text,
			Changed: text != prompts.Set(nil).Text(name)})
	}
	return out, nil
}

func (j *judgeServer) text(ctx context.Context, sha string) (string, error) {
	body, _, err := j.s.o.Store.OpenArtifact(ctx, sha)
	if err != nil {
		return "", err
	}
	defer body.Close() //nolint:errcheck // only read
	raw, err := io.ReadAll(body)
	return string(raw), err
}

// changedPrompts are those of a run's texts that are not this release's own.
func changedPrompts(pinned map[string]string) (out []*coordinatorv1.PinnedPrompt) {
	own := map[string]string{}
	for _, p := range prompts.Set(nil).List() {
		own[p.Name] = p.SHA256
	}
	for _, name := range slices.Sorted(maps.Keys(pinned)) {
		if sha := pinned[name]; sha != own[name] {
			out = append(out, &coordinatorv1.PinnedPrompt{Name: name, Version: sha[:min(12, len(sha))]})
		}
	}
	return out
}
