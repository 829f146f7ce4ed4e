package api

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/grpc"

	"github.com/loopkeeper/loopkeeper/coordinator/answers"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// records implements coordinatorv1.RecordServiceServer: what the ledger answers, and how it is kept.
type records struct {
	coordinatorv1.UnimplementedRecordServiceServer
	s *Server
}

func (s *Server) registerRecords(g grpc.ServiceRegistrar) {
	coordinatorv1.RegisterRecordServiceServer(g, &records{s: s})
}

// events are a run's events up to one of them, read as often as they are gone through. tell sees each as the ledger has it.
func (r *records) events(ctx context.Context, id string, upTo int64, tell func(ledger.Event)) answers.Events {
	return func(yield func(run.Event, error) bool) {
		for e, err := range ledger.All(ctx, r.s.o.Store, id, 0) {
			if err != nil {
				yield(run.Event{}, err)
				return
			}
			if e.Seq > upTo {
				return
			}
			if tell != nil {
				tell(e)
			}
			decoded, err := run.Decode(e.Seq, e.Time, e.Kind, e.Payload)
			if err != nil {
				err = apierr.Wrap(err, apierr.LedgerTooNew, "read run %s", id)
			}
			if !yield(decoded, err) || err != nil {
				return
			}
		}
	}
}

// begin finds a run and the end of its chain.
func (r *records) begin(ctx context.Context, id string) (string, ledger.Head, error) {
	id, err := r.s.o.Engine.Resolve(ctx, id)
	if err != nil {
		return "", ledger.Head{}, err
	}
	head, err := r.s.o.Store.Head(ctx, id)
	return id, head, err
}

// nodes are the names of the machines that the fleet knows.
func (r *records) nodes() answers.Names {
	names := answers.Names{}
	views, _ := r.s.o.Fleet.View()
	for _, n := range views {
		names[n.ID] = n.Name
	}
	return names
}

// Why implements the service.
func (r *records) Why(ctx context.Context, q *coordinatorv1.WhyRequest) (*coordinatorv1.WhyResponse, error) {
	out, err := r.why(ctx, q)
	return out, apierr.ToStatus(err)
}

func (r *records) why(ctx context.Context, q *coordinatorv1.WhyRequest) (*coordinatorv1.WhyResponse, error) {
	id, head, err := r.begin(ctx, q.GetRunId())
	if err != nil {
		return nil, err
	}
	reason, err := answers.Why(r.events(ctx, id, head.Seq, nil), q.GetSubject(), r.nodes())
	if unknown := (*answers.Unknown)(nil); errors.As(err, &unknown) {
		e := apierr.New(apierr.NotFound, "%v", unknown)
		for _, name := range unknown.Names {
			e.Next = append(e.Next, "loopkeeper why "+id+" "+shellWord(name))
		}
		return nil, e.WithNext("loopkeeper show " + id)
	}
	if err != nil {
		return nil, err
	}
	if err := r.lookAt(ctx, reason); err != nil {
		return nil, err
	}
	out := &coordinatorv1.WhyResponse{Notes: reason.Notes}
	pruned, err := r.s.o.Store.Pruned(ctx, id)
	if err != nil {
		return nil, err
	}
	for _, p := range pruned {
		out.Notes = append(out.Notes, fmt.Sprintf("on %s %d bodies (%s, %d bytes) of this run were dropped; what they were about is still here", p.Time.Format("2006-01-02"), p.Bodies,
			kindOfKey(p.Key), p.Bytes))
	}
	for _, b := range reason.Bases {
		out.Bases = append(out.Bases, basisMessage(b))
	}
	if q.GetQuestion() != "" {
		return out, r.ask(ctx, id, reason, q.GetQuestion(), out)
	}
	return out, nil
}

// lookAt finds out which of the bodies can be opened, and how large they are.
func (r *records) lookAt(ctx context.Context, reason *answers.Reason) error {
	for i := range reason.Bases {
		for j := range reason.Bases[i].Bodies {
			b := &reason.Bases[i].Bodies[j]
			a, gone, err := r.stat(ctx, b.SHA256)
			if err != nil {
				return err
			}
			if b.Bytes, b.Gone = a.Size, gone; gone != "" {
				reason.Notes = append(reason.Notes, fmt.Sprintf("%s of %s: %s", b.Name, reason.Bases[i].Subject, gone))
			}
		}
	}
	return nil
}

// stat says why a body cannot be opened, "" when it can.
func (r *records) stat(ctx context.Context, sha string) (a ledger.Artifact, gone string, err error) {
	a, err = r.s.o.Store.StatArtifact(ctx, sha)
	switch {
	case apierr.CodeOf(err) == apierr.NotFound:
		return a, "it is not in this ledger", nil
	case err != nil:
		return a, "", err
	case !a.Pruned.IsZero():
		return a, "its body was dropped on " + a.Pruned.Format("2006-01-02"), nil
	}
	return a, "", nil
}

func basisMessage(b answers.Basis) *coordinatorv1.Basis {
	m := &coordinatorv1.Basis{Subject: b.Subject, Item: int32(b.Item), Key: b.Key, Kind: b.Kind, State: b.State, Node: b.Node, Model: b.Model, Digest: b.Digest,
		Time: stamp(b.Time), Attempts: int32(b.Attempts), Tries: b.Tries, Inputs: b.Inputs, Verdict: b.Verdict, Judged: b.Judged, Facts: b.Facts, Opinions: b.Opinions,
		Reasons: b.Reasons, From: b.From, Depth: int32(b.Depth), Simulated: b.Simulated}
	if b.Step >= 0 {
		m.Step = strconv.Itoa(b.Step)
	}
	for _, body := range b.Bodies {
		name := body.Name
		if body.Gone != "" {
			name += " (" + body.Gone + ")"
		}
		m.Bodies = append(m.Bodies, &coordinatorv1.Ref{Sha256: body.SHA256, Name: name, Bytes: uint64(body.Bytes)})
	}
	return m
}

// shellWord is a name as a POSIX shell takes it.
func shellWord(name string) string {
	if nodeWord(name, "") == name {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}
