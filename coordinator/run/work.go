package run

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
)

// What a call is expected to take is told by sizes alone: no body is opened.
const (
	bytesPerToken = 4   // of English; a step's own calls soon tell better
	leastShared   = 256 // bytes: what is less is not worth a warm slot
)

// Effort is what a call is expected to take, in tokens; 0 is unknown.
type Effort struct {
	Prompt int
	Output int
	Shared int // of the prompt: what every call with the same affinity begins with
}

// sizes are the bytes of a step's prompt, and which part of them it shares with other calls.
type sizes struct {
	common   int // of every attempt: system, context, instruction, schema
	shared   int // of these, what comes first and is the same in other calls
	affinity string
}

// seen is what the attempts of one phase took so far.
type seen struct {
	calls, bytes, prompt, output int64
}

// measure reads the sizes once, when the step is requested.
func (s *spec) measure(kind string) {
	shared := len(s.System)
	for _, c := range s.Context {
		shared += bodyBytes(c)
	}
	own := len(s.Prompt) + len(s.Goal) + len(s.Schema)
	for _, list := range [][]string{s.Parts, s.Facts, s.Leads} {
		for _, text := range list {
			own += len(text)
		}
	}
	parts := append([]json.RawMessage{json.RawMessage(s.System)}, s.Context...)
	if shared == 0 && (kind == KindBatch || s.Item != nil) { // then all items have the instruction in common
		before, _, _ := bytes.Cut([]byte(s.Prompt), []byte("{{"))
		shared = len(s.Schema) + len(before)
		parts = []json.RawMessage{s.Schema, before}
	}
	s.size = sizes{common: len(s.System) + own + bytesPerImage*len(s.Images)}
	for _, list := range [][]json.RawMessage{s.Context, s.Sources, s.Inputs} {
		for _, b := range list {
			s.size.common += bodyBytes(b)
		}
	}
	if shared >= leastShared {
		s.size.shared, s.size.affinity = shared, affinity(parts)
	}
	s.Inputs, s.Sources, s.Goal, s.Parts, s.Facts, s.Leads = nil, nil, "", nil, nil, nil // only their size was wanted
}

// affinity names what calls share, the same for every run.
func affinity(parts []json.RawMessage) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(strconv.Itoa(len(p))))
		h.Write([]byte{0})
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// bodyBytes is the size of a body as it is sent, of an image what it counts for. Canonical JSON sorts keys, so a ref begins with its size.
func bodyBytes(raw json.RawMessage) int {
	if imageRef(raw) {
		return bytesPerImage
	}
	if rest, ok := bytes.CutPrefix(raw, []byte(`{"bytes":`)); ok {
		if end := bytes.IndexByte(rest, ','); end > 0 && bytes.Contains(rest, []byte(`"ref":"`)) {
			if n, err := strconv.Atoi(string(rest[:end])); err == nil {
				return n
			}
		}
	}
	if len(raw) > 1 && raw[0] == '"' {
		return len(raw) - 2
	}
	return len(raw)
}

// promptBytes is about how much an attempt of item i sends.
func (st *Step) promptBytes(i int, p Phase) int {
	it, s := &st.Items[i], st.spec
	own := bodyBytes(s.body(st.Kind, i))
	if s.lines != nil {
		own = int(s.lines.Bytes) / max(1, s.lines.Count)
	}
	if p != Judge {
		return (s.size.common + own) * max(1, len(s.Criteria))
	}
	result := len(it.Result.Value)
	if it.Result.Ref != "" {
		result = int(it.Result.Bytes)
	}
	judged := result + own + len(s.Prompt)
	for _, c := range s.Context {
		judged += bodyBytes(c)
	}
	return judged * len(s.Evaluate.Criteria)
}

// effort is what an attempt of item i will take, as far as the step's earlier ones and its limits tell.
func (st *Step) effort(i int, p Phase) Effort {
	size, so := st.promptBytes(i, p), st.seen[phaseIndex(p)]
	w := Effort{Prompt: size / bytesPerToken}
	if so.bytes > 0 && so.prompt > 0 {
		w.Prompt = int(int64(size) * so.prompt / so.bytes)
	}
	if so.calls > 0 {
		w.Output = int(so.output / so.calls)
	} else if p == Work {
		w.Output = st.spec.MaxTokens
	}
	if p == Work && size > 0 {
		w.Shared = int(int64(w.Prompt) * int64(st.spec.size.shared) / int64(size))
	}
	return w
}

// took takes in what an attempt needed.
func (st *Step) took(a AttemptID, r Report) {
	if r.PromptTokens == 0 && r.OutputTokens == 0 {
		return
	}
	so := &st.seen[phaseIndex(a.Phase)]
	so.calls++
	so.bytes += int64(st.promptBytes(a.Item, a.Phase))
	so.prompt += r.PromptTokens
	so.output += r.OutputTokens
}

// Uses are the named resources that each call of a step holds while it runs, without repetition.
func (st *Step) Uses() []string {
	if st.spec == nil {
		return nil
	}
	return st.spec.Uses
}

// settleUses sorts the names, so that what a step holds does not depend on how it was written.
func (s *spec) settleUses() {
	slices.Sort(s.Uses)
	s.Uses = slices.Compact(s.Uses)
}
