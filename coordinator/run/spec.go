package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/loopkeeper/loopkeeper/coordinator/run/ladder"
	"github.com/loopkeeper/loopkeeper/coordinator/run/panel"
)

// defaultAttempts is how often an item is tried in all when its request does not say, see docs/requests.md.
const defaultAttempts = 3

// spec is what the state machine needs to know of a step's request; everything else in it is for the worker.
type spec struct {
	Model    models            `json:"model"`
	Label    string            `json:"label"`
	Prompt   string            `json:"prompt"`
	Schema   json.RawMessage   `json:"schema"`
	Keys     []string          `json:"keys"`
	Item     json.RawMessage   `json:"item"`
	Context  []json.RawMessage `json:"context"`
	Images   []json.RawMessage `json:"images"`
	Subject  json.RawMessage   `json:"subject"`
	Ref      string            `json:"ref"`
	Feedback []string          `json:"feedback"`
	Uses     []string          `json:"uses"`
	Retry    struct {
		Attempts int `json:"attempts"`
	} `json:"retry"`
	Options struct {
		Context int `json:"num_ctx"` // tokens per slot
	} `json:"options"`
	Evaluate *judgeSpec `json:"evaluate"`
	Check    bool       `json:"check"`

	System    string            `json:"system"`
	Goal      string            `json:"goal"`
	Criteria  []panel.Criterion `json:"criteria"`
	Reversed  bool              `json:"reversed"` // the first judge is offered the answers in the other order
	Code      []panel.Code      `json:"code"`
	Author    string            `json:"author"` // of the subject: a model
	Sources   []json.RawMessage `json:"sources"`
	Inputs    []json.RawMessage `json:"inputs"`
	Parts     []string          `json:"parts"`
	Facts     []string          `json:"facts"`
	Leads     []string          `json:"leads"`
	MaxTokens int               `json:"max_tokens"`

	waitSpec
	pageSpec
	phaseSpec
	Name     string `json:"name"`
	Workflow string `json:"workflow"`
	Detached bool   `json:"detached"`

	items []json.RawMessage // of a batch: they lie in the request's body
	lines *lineSpec         // of a batch over lines
	size  sizes
}

// lineSpec is the artifact of a batch over lines.
type lineSpec struct {
	refBody
	Lines
}

// at is line i.
func (l *lineSpec) at(i int) *Line { return &Line{Ref: l.Ref, Name: l.Name, Index: l.Index, At: i} }

// judgeSpec asks that another call accepts an item's result.
type judgeSpec struct {
	Criteria []panel.Criterion `json:"criteria"`
	Model    models            `json:"model"`
}

// parseSpec reads a step's request and refuses what no worker could carry out.
func parseSpec(op string, body json.RawMessage, lines *Lines) (*spec, error) {
	check, ok := checks[op]
	if !ok {
		return nil, fmt.Errorf("%q is no primitive of this version", op)
	}
	s := &spec{}
	if err := json.Unmarshal(body, s); err != nil {
		return nil, fmt.Errorf("%s: the request does not parse: %w", op, err)
	}
	if s.Retry.Attempts <= 0 {
		s.Retry.Attempts = defaultAttempts
		if op == KindPlan {
			s.Retry.Attempts = ladder.Most(ladder.PlanInvalid)
		}
	}
	if op == KindBatch {
		if err := s.readItems(body, lines); err != nil {
			return nil, err
		}
	}
	if err := check(s, op); err != nil {
		return nil, err
	}
	if e := s.Evaluate; e != nil && (len(e.Model) == 0 || len(e.Criteria) == 0) {
		return nil, fmt.Errorf("%s: evaluate needs criteria and a model", op)
	}
	s.settleUses()
	s.measure(op)
	return s, nil
}

// readItems finds the items of a batch in its body, without a copy of them.
func (s *spec) readItems(body json.RawMessage, lines *Lines) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	_, err := dec.Token()
	for err == nil && dec.More() {
		var name json.Token
		if name, err = dec.Token(); err != nil {
			break
		}
		var value json.RawMessage
		if name != "items" {
			err = dec.Decode(&value)
			continue
		}
		rest := body[dec.InputOffset():]
		rest = rest[bytes.IndexByte(rest, ':')+1:]
		if rest = bytes.TrimLeft(rest, " \t\r\n"); len(rest) > 0 && rest[0] == '{' {
			return s.readLines(rest, lines)
		}
		s.items, err = elements(rest)
		break
	}
	if err != nil {
		return fmt.Errorf("batch: the items do not parse: %w", err)
	}
	return nil
}

func (s *spec) readLines(items []byte, lines *Lines) error {
	var over struct {
		Lines refBody `json:"lines"`
	}
	if err := json.NewDecoder(bytes.NewReader(items)).Decode(&over); err != nil || over.Lines.Ref == "" {
		return errors.New("batch: items must be an array or {lines: ref}")
	}
	if lines == nil {
		return errors.New("batch: the lines of the items are not known")
	}
	s.lines = &lineSpec{over.Lines, *lines}
	return nil
}

// elements are the elements of a JSON array, as parts of it. A null is none.
func elements(array []byte) ([]json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(array))
	if open, err := dec.Token(); err != nil || open != json.Delim('[') {
		return nil, err
	}
	var out []json.RawMessage
	var value json.RawMessage
	for dec.More() {
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		end := dec.InputOffset()
		out = append(out, json.RawMessage(array[end-int64(len(value)):end:end]))
	}
	return out, nil
}

func (s *spec) checkModel(op string) error {
	if len(s.Model) == 0 || slices.Contains(s.Model, "") {
		return fmt.Errorf("%s: no model is named", op)
	}
	return nil
}

func (s *spec) checkRead(string) error {
	if s.Ref == "" {
		return errors.New("read: no ref is given")
	}
	return nil
}

func (s *spec) checkTool(string) error {
	if s.Name == "" {
		return errors.New("tool: no tool is named")
	}
	return nil
}

// placeholder is what a prompt may hold in place of the item, and what looks like it.
var placeholder = regexp.MustCompile(`\{\{([^{}]*)\}\}`)

// checkPrompt refuses a prompt that every item would fail on, so that a batch of thousands says so once.
func (s *spec) checkPrompt(op string) error {
	if err := s.checkModel(op); err != nil {
		return err
	}
	if strings.TrimSpace(s.Prompt) == "" {
		return fmt.Errorf("%s: the prompt is empty", op)
	}
	if found := UnknownPlaceholder(s.Prompt); found != "" {
		return fmt.Errorf("%s: unknown placeholder %s in the prompt: only {{item}} is known", op, found)
	}
	if op == KindGenerate && s.Item == nil && placeholder.MatchString(s.Prompt) {
		return fmt.Errorf("%s: the prompt says {{item}} but there is no item", op)
	}
	return nil
}

func (s *spec) checkBatch(op string) error {
	if err := s.checkPrompt(op); err != nil {
		return err
	}
	if n := s.count(op); len(s.Keys) > 0 && len(s.Keys) != n {
		return fmt.Errorf("batch: %d keys for %d items", len(s.Keys), n)
	}
	return nil
}

// UnknownPlaceholder returns the first placeholder of a prompt that no worker can fill, "" when there is none. Only {{item}}
// is known; a prompt without it has the item appended by the worker.
func UnknownPlaceholder(prompt string) string {
	for _, found := range placeholder.FindAllStringSubmatch(prompt, -1) {
		if strings.TrimSpace(found[1]) != "item" {
			return found[0]
		}
	}
	return ""
}

// count is how many items a step of this kind has.
func (s *spec) count(op string) int {
	switch work := steps[op].work; {
	case op == KindBatch && s.lines != nil:
		return s.lines.Count
	case op == KindBatch:
		return len(s.items)
	case work == model || work == tool:
		return 1
	default:
		return 0
	}
}

// body is what item i is about: its text, ref or value; nil when there is none, or when it is a line.
func (s *spec) body(op string, i int) json.RawMessage {
	switch {
	case s.lines != nil:
		return nil
	case op == KindBatch:
		return s.items[i]
	case op == KindEvaluate:
		return s.Subject
	default:
		return s.Item
	}
}

// key names item i: by the given key, the name of the file it refers to, its line, or its index.
func (s *spec) key(op string, i int) string {
	if i < len(s.Keys) {
		return s.Keys[i]
	}
	if s.lines != nil {
		return lineKey(s.lines.Name, i)
	}
	if name := s.refName(op, i); name != "" {
		return name
	}
	return strconv.Itoa(i)
}

// refName is the name of the file that item i refers to, "" when it refers to none.
func (s *spec) refName(op string, i int) string {
	var ref refBody
	if b := s.body(op, i); len(b) > 0 && b[0] == '{' && json.Unmarshal(b, &ref) == nil && ref.Ref != "" {
		return ref.Name
	}
	return ""
}

func lineKey(name string, i int) string { return name + ":" + strconv.Itoa(i+1) }

// judgeRequest is the evaluate request that judges an item's result; its subject goes beside it.
func (s *spec) judgeRequest(item json.RawMessage) (json.RawMessage, error) {
	sources := append([]json.RawMessage(nil), s.Context...)
	if item != nil {
		sources = append(sources, item)
	}
	return marshal(struct {
		Criteria []panel.Criterion `json:"criteria"`
		Goal     string            `json:"goal,omitempty"`
		Sources  []json.RawMessage `json:"sources,omitempty"`
	}{s.Evaluate.Criteria, placeholder.ReplaceAllString(s.Prompt, "(the item)"), sources})
}

// shared is the request without what travels beside it: what every attempt of a step has in common.
func shared(body json.RawMessage) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, err
	}
	for _, beside := range []string{"items", "keys", "feedback", "uses", "check", "reuse"} {
		delete(fields, beside)
	}
	return marshal(fields)
}
