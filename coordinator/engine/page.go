package engine

import (
	"context"
	"encoding/json"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

// page reads the values of a page that the state does not keep, and makes it what the script is given.
func (e *Engine) page(ctx context.Context, id string, p *run.Page) (json.RawMessage, error) {
	var seqs []int64
	for _, i := range p.Items {
		if i.Event != 0 {
			seqs = append(seqs, i.Event)
		}
	}
	results, err := e.resultsAt(ctx, id, seqs)
	if err != nil {
		return nil, err
	}
	for i := range p.Items {
		if seq := p.Items[i].Event; seq != 0 {
			p.Items[i].Fill(results[seq])
		}
	}
	return p.Value()
}

// events settles the checks of a part whose values only their events have.
func (p *player) events(ctx context.Context, part []delivery) error {
	var seqs []int64
	var of []int
	for i, d := range part {
		if d.what.Event != 0 {
			seqs, of = append(seqs, d.what.Event), append(of, i)
		}
	}
	if len(seqs) == 0 {
		return nil
	}
	rows, err := p.e.o.Store.EventsAt(ctx, p.id, seqs)
	if err != nil {
		return err
	}
	payloads := make([]run.Payload, len(rows))
	for i, row := range rows {
		ev, err := decoded(row)
		if err != nil {
			return err
		}
		payloads[i] = ev.Data
	}
	var failed error
	if err := p.with(ctx, func(s *run.State) {
		for i, at := range of {
			if part[at].what, err = s.CheckValue(part[at].at, payloads[i]); err != nil {
				failed = err
			}
		}
	}); err != nil {
		return err
	}
	return failed
}
