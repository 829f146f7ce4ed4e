package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/loopkeeper/loopkeeper/coordinator/params"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// delivery is what a script is given, on its way there.
type delivery struct {
	at   run.Delivery
	what run.Settled
	line *run.Line // of a check: what its value was made of, where the script does not have it
}

// durable says whether it needs nothing that may only come with this turn's commit.
func (d delivery) durable() bool {
	return d.what.Load == nil && d.what.Page == nil && d.what.Event == 0
}

// settled is a delivery as the state has it.
func settled(s *run.State, at run.Delivery) delivery {
	settle := func() (run.Settled, error) { return s.Settle(at.Pos) }
	if at.Check {
		settle = func() (run.Settled, error) { return s.SettleCheck(at) }
	}
	what, err := settle()
	if err != nil { // a value that does not marshal came from a worker as JSON, so this cannot be
		what = run.Settled{Failure: &run.Failure{Kind: "internal", Message: err.Error(), Advice: run.Never}}
	}
	return delivery{at, what, s.CheckedLine(at)}
}

// What is replayed goes to the script in parts, so that neither the loop is held up nor memory filled by all of it.
const (
	partCount = 256
	partBytes = 4 << 20
)

// part is the next part of what a script was given.
func part(s *run.State, from, to int) []delivery {
	var out []delivery
	for size := 0; from < to && len(out) < partCount && size < partBytes; from++ {
		d := settled(s, s.Deliveries[from])
		size += len(d.what.Value)
		out = append(out, d)
	}
	return out
}

// player gives a script what was recorded, and holds what it does against the record.
type player struct {
	record
	e       *Engine
	id      string
	with    func(ctx context.Context, f func(*run.State)) error // f reads the state where nobody changes it
	session script.Session
}

// catchUp starts the script and gives it what it was given before.
func (p *player) catchUp(ctx context.Context, pinned run.Created, behind int) (out reaction, err error) {
	program, err := p.e.program(ctx, pinned)
	if err != nil {
		return out, err
	}
	session, y, err := p.e.o.Host.Start(ctx, script.Start{Program: program, Input: pinned.Input, Seed: pinned.Seed, Clock: pinned.Clock})
	if err != nil {
		return out, err
	}
	p.session = session
	if err := p.compare(y, &out); err != nil {
		return out, err
	}
	given := 0
	for given < behind && out.end == nil {
		var next []delivery
		if err := p.with(ctx, func(s *run.State) { next = part(s, given, behind) }); err != nil {
			return out, err
		}
		n, err := p.feed(ctx, next, &out)
		if given += n; err != nil {
			return out, err
		}
	}
	return out, p.complete(given, behind, out)
}

func (p *player) close() {
	if p.session != nil {
		_ = p.session.Close() // it has nothing worth saving
	}
}

// feed gives the script deliveries and says to how many of them it reacted: all, unless it ended.
func (p *player) feed(ctx context.Context, part []delivery, out *reaction) (heard int, err error) {
	if err := p.events(ctx, part); err != nil {
		return 0, err
	}
	var given []script.Delivery
	for i, size := 0, 0; i < len(part) && out.end == nil; i++ {
		d, err := p.open(ctx, part[i])
		if err != nil {
			return heard, err
		}
		given = append(given, d)
		if size += len(d.Value) + len(d.About); size < partBytes && i+1 < len(part) {
			continue
		}
		yields, err := p.session.DeliverAll(ctx, given)
		for _, y := range yields {
			p.asked(part[heard].at)
			heard++
			if err := p.compare(y, out); err != nil {
				return heard, err
			}
		}
		if err != nil {
			return heard, err
		}
		given, size = nil, 0
	}
	return heard, nil
}

// open makes a delivery what the script is given.
func (p *player) open(ctx context.Context, n delivery) (script.Delivery, error) {
	out := script.Delivery{Pos: n.at.Pos, Time: n.at.Time, Value: n.what.Value, Check: n.at.Check, Item: n.at.Item}
	if n.line != nil {
		about, err := p.e.about(ctx, *n.line)
		if err != nil {
			return out, fmt.Errorf("read what is checked of step %d: %w", n.at.Pos, err)
		}
		out.About = about
	}
	switch load := n.what.Load; {
	case n.what.Failure != nil:
		out.Err = &script.CallError{Kind: n.what.Failure.Kind, Message: n.what.Failure.Message, Step: n.at.Pos}
	case n.what.Page != nil:
		value, err := p.e.page(ctx, p.id, n.what.Page)
		if err != nil {
			return out, fmt.Errorf("read the items for step %d: %w", n.at.Pos, err)
		}
		out.Value = value
	case load != nil:
		if err := p.load(ctx, load, &out); err != nil {
			return out, apierr.Wrap(err, apierr.CodeOf(err), "open the result of step %d", n.at.Pos)
		}
	}
	return out, nil
}

// load opens a body for the script, unless it is larger than a script is given.
func (p *player) load(ctx context.Context, c *run.Content, out *script.Delivery) error {
	r, art, err := p.e.o.Bodies.OpenArtifact(ctx, c.Ref)
	if err != nil {
		return err
	}
	defer r.Close()
	if art.Size > script.MaxValue {
		out.Err = script.TooLarge(out.Pos, art.Size)
		return nil
	}
	body, err := io.ReadAll(r)
	switch {
	case err != nil:
		return err
	case c.Text && params.Image(body):
		out.Err = &script.CallError{Kind: "not_text", Step: out.Pos, Message: "it is an image: give its reference to generate or batch, as an item or in images"}
	case c.Text:
		out.Value, err = textValue(body)
	default:
		out.Value = body
	}
	return err
}

// textValue is a text as a JSON string.
func textValue(body []byte) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(strings.ToValidUTF8(string(body), "\uFFFD"))
	return bytes.TrimRight(b.Bytes(), "\n"), err
}
