package engine

import (
	"fmt"
	"strings"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
)

// record is what a run's script asked for and judged before. A replay has to do the same again.
type record struct {
	requests []run.Request
	next     int                     // position of the next request
	answers  map[checked]run.Checked // of checks, as far as they were asked for and not answered again
}

func newRecord(s *run.State) record {
	r := record{answers: map[checked]run.Checked{}, requests: make([]run.Request, len(s.Requests))}
	for i, st := range s.Requests {
		r.requests[i] = run.Request{Pos: st.Pos, Kind: st.Kind, Body: st.Body, Note: st.Note}
	}
	return r
}

// reaction is what a script did that is not recorded.
type reaction struct {
	requests []run.Request
	checks   []run.CheckAnswer
	failed   []run.Reject // items whose check failed by itself
	end      *run.ScriptEnd
}

// compare holds a yield against the record.
func (r *record) compare(y script.Yield, out *reaction) error {
	for _, got := range y.Requests {
		if r.next < len(r.requests) {
			was := r.requests[r.next]
			if script.Compare(script.Request{Pos: was.Pos, Kind: was.Kind, Body: was.Body, Note: was.Note}, got) != nil || was.Note != got.Note {
				at := differ(was.Body, got.Body)
				return &divergence{Pos: was.Pos, Expected: show(was.Kind, was.Body, at), Got: show(got.Kind, got.Body, at)}
			}
		} else {
			out.requests = append(out.requests, run.Request{Pos: got.Pos, Kind: got.Kind, Body: got.Body, Note: got.Note})
		}
		r.next++
	}
	if err := r.answered(y.Checks, out); err != nil || y.End == nil {
		return err
	}
	out.end = &run.ScriptEnd{}
	if f := y.End.Failure; f != nil {
		if f.Kind == script.Crashed || f.Kind == script.Incompatible { // its host's doing
			return f
		}
		out.end.Error = scriptError(f)
	}
	return nil
}

// complete says whether all that is recorded was done again.
func (r *record) complete(given, behind int, out reaction) error {
	got := "nothing more"
	if out.end != nil {
		got = "the end of the script"
		if out.end.Error != nil {
			if got = showEnd(out.end.Error); byMachine(out.end.Error) {
				return nil
			}
		}
	}
	if r.next < len(r.requests) {
		was := r.requests[r.next]
		return &divergence{Pos: was.Pos, Expected: show(was.Kind, was.Body, 0), Got: got}
	}
	if err := r.unanswered(got); err != nil || given >= behind {
		return err
	}
	return &divergence{Pos: r.next, Expected: "a script that waits", Got: got}
}

// differ is where two texts begin to differ.
func differ(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// shown is how much of a request people see, bytes.
const shownBytes = 300

// show is a request for people: its beginning, and where it gets long what is around at.
func show(kind string, body []byte, at int) string {
	if len(body) <= shownBytes {
		return kind + " " + string(body)
	}
	from := max(0, min(at-shownBytes/2, len(body)-shownBytes))
	cut := strings.ToValidUTF8(string(body[from:min(from+shownBytes, len(body))]), "")
	if from > 0 {
		return fmt.Sprintf("%s (from byte %d) …%s…", kind, from, cut)
	}
	return kind + " " + cut + "…"
}
