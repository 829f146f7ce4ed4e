package run

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// The kinds of request that make a step, see docs/requests.md.
const (
	KindGenerate = "generate"
	KindBatch    = "batch"
	KindPlan     = "plan"
	KindEvaluate = "evaluate"
	KindEmbed    = "embed"
	KindRead     = "read"
	KindSleep    = "sleep"
	KindApprove  = "approve"
	KindQuestion = "question"
	KindTool     = "tool"
	KindSpawn    = "spawn"
	KindPage     = "page"
	KindPhase    = "phase"
)

// The kinds of request that are notes: recorded once, never answered.
const (
	KindOutput    = "output"
	KindCollected = "collected"
	KindLog       = "log"
	KindExpect    = "expect"
	KindCover     = "cover"
	KindWaive     = "waive"
	KindFallback  = "fallback"
	KindUntil     = "until"
)

// defaultAttempts is how often an item is tried in all when its request does not say, see docs/requests.md.
const defaultAttempts = 3

// spec is what the state machine needs to know of a step's request; everything else in it is for the worker.
type spec struct {
	Model    string            `json:"model"`
	Label    string            `json:"label"`
	Prompt   string            `json:"prompt"`
	Schema   json.RawMessage   `json:"schema"`
	Items    []json.RawMessage `json:"items"`
	Keys     []string          `json:"keys"`
	Item     json.RawMessage   `json:"item"`
	Context  []json.RawMessage `json:"context"`
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
	Evaluate *judging `json:"evaluate"`

	System    string            `json:"system"`
	Goal      string            `json:"goal"`
	Criteria  []string          `json:"criteria"`
	Sources   []json.RawMessage `json:"sources"`
	Inputs    []json.RawMessage `json:"inputs"`
	MaxTokens int               `json:"max_tokens"`

	size sizes
}

// judging asks that another call accepts an item's result.
type judging struct {
	Criteria []string `json:"criteria"`
	Model    string   `json:"model"`
}

// parseSpec reads a step's request and refuses what no worker could carry out.
func parseSpec(kind string, body json.RawMessage) (*spec, error) {
	s := &spec{}
	if err := json.Unmarshal(body, s); err != nil {
		return nil, fmt.Errorf("%s: the request does not parse: %w", kind, err)
	}
	if s.Retry.Attempts <= 0 {
		s.Retry.Attempts = defaultAttempts
	}
	switch kind {
	case KindGenerate, KindPlan, KindEmbed, KindEvaluate, KindBatch:
		if s.Model == "" {
			return nil, fmt.Errorf("%s: no model is named", kind)
		}
	case KindRead:
		if s.Ref == "" {
			return nil, fmt.Errorf("read: no ref is given")
		}
	default:
		return nil, fmt.Errorf("%q is no primitive of this version", kind)
	}
	if kind == KindGenerate || kind == KindBatch {
		if err := s.checkPrompt(kind); err != nil {
			return nil, err
		}
	}
	if len(s.Keys) > 0 && len(s.Keys) != len(s.Items) {
		return nil, fmt.Errorf("batch: %d keys for %d items", len(s.Keys), len(s.Items))
	}
	if e := s.Evaluate; e != nil && (e.Model == "" || len(e.Criteria) == 0) {
		return nil, fmt.Errorf("%s: evaluate needs criteria and a model", kind)
	}
	s.settleUses()
	s.measure(kind)
	return s, nil
}

// placeholder is what a prompt may hold in place of the item, and what looks like it.
var placeholder = regexp.MustCompile(`\{\{([^{}]*)\}\}`)

// checkPrompt refuses a prompt that every item would fail on, so that a batch of thousands says so once.
func (s *spec) checkPrompt(kind string) error {
	if strings.TrimSpace(s.Prompt) == "" {
		return fmt.Errorf("%s: the prompt is empty", kind)
	}
	if found := UnknownPlaceholder(s.Prompt); found != "" {
		return fmt.Errorf("%s: unknown placeholder %s in the prompt: only {{item}} is known", kind, found)
	}
	if kind == KindGenerate && s.Item == nil && placeholder.MatchString(s.Prompt) {
		return fmt.Errorf("%s: the prompt says {{item}} but there is no item", kind)
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

// items is how many items a step of this kind has.
func (s *spec) items(kind string) int {
	switch kind {
	case KindBatch:
		return len(s.Items)
	case KindRead:
		return 0
	default:
		return 1
	}
}

// body is what item i is about: its text, ref or value; nil when there is none.
func (s *spec) body(kind string, i int) json.RawMessage {
	switch kind {
	case KindBatch:
		return s.Items[i]
	case KindEvaluate:
		return s.Subject
	default:
		return s.Item
	}
}

// key names item i for people: the given key, the name of the file it refers to, or its index.
func (s *spec) key(kind string, i int) string {
	if i < len(s.Keys) {
		return s.Keys[i]
	}
	var ref struct {
		Ref  string `json:"ref"`
		Name string `json:"name"`
	}
	if b := s.body(kind, i); len(b) > 0 && b[0] == '{' && json.Unmarshal(b, &ref) == nil && ref.Ref != "" && ref.Name != "" {
		return ref.Name
	}
	return strconv.Itoa(i)
}

// judgeRequest is the evaluate request that judges an item's result; its subject goes beside it.
func (s *spec) judgeRequest(item json.RawMessage) (json.RawMessage, error) {
	sources := append([]json.RawMessage(nil), s.Context...)
	if item != nil {
		sources = append(sources, item)
	}
	return marshal(struct {
		Criteria []string          `json:"criteria"`
		Goal     string            `json:"goal,omitempty"`
		Model    string            `json:"model"`
		Sources  []json.RawMessage `json:"sources,omitempty"`
	}{s.Evaluate.Criteria, placeholder.ReplaceAllString(s.Prompt, "(the item)"), s.Evaluate.Model, sources})
}

// shared is the request without what travels beside it: what every attempt of a step has in common.
func shared(body json.RawMessage) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, err
	}
	for _, beside := range []string{"items", "keys", "feedback", "uses"} {
		delete(fields, beside)
	}
	return marshal(fields)
}
