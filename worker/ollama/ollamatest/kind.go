package ollamatest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// Kind is how a model thinks and is prompted, which decides whether a server applies a format and where the value arrives
// (research: judgement §2.1).
type Kind string

// The kinds of models.
const (
	// KindPlain does not think.
	KindPlain Kind = "plain"
	// KindTemplate thinks by its template (qwen3 of old, deepseek-r1): a generate that thinks puts the value into thinking.
	KindTemplate Kind = "template"
	// KindParser thinks and has a built-in parser (qwen3.5): before 0.21.1 a chat without thinking loses the format as well.
	KindParser Kind = "parser"
	// KindHarmony always thinks, at a level (gpt-oss): a format holds only in a chat that is not told to leave that.
	KindHarmony Kind = "harmony"
	// KindNative does not think, and from 0.30 on is prompted by llama-server, which sorts the keys of a format.
	KindNative Kind = "native"
	// KindNoGrammar never gets a format applied.
	KindNoGrammar Kind = "no_grammar"
)

var kinds = []Kind{KindPlain, KindTemplate, KindParser, KindHarmony, KindNative, KindNoGrammar}

func (m Model) defaultKind() Kind {
	switch {
	case strings.HasPrefix(m.Family, "gptoss"), strings.HasPrefix(m.Family, "gpt-oss"):
		return KindHarmony
	case m.can("thinking"):
		return KindTemplate
	default:
		return KindPlain
	}
}

// checkThink refuses what Ollama refuses about thinking (server/routes.go of 0.17.4).
func (g *generation) checkThink() error {
	switch {
	case g.think == nil:
		return nil
	case g.think.IsString() && g.model.Kind != KindHarmony:
		return refuse(http.StatusBadRequest, "think value %q is not supported for this model", g.think.String())
	case g.think.Bool() && !g.model.can("thinking"):
		return refuse(http.StatusBadRequest, "%q does not support thinking", g.asked)
	}
	return nil
}

// thinks says whether the model will think: by default it does when it can.
func (g *generation) thinks() bool {
	return g.model.can("thinking") && (g.model.Kind == KindHarmony || g.think == nil || g.think.Bool())
}

// unapplied says whether the server loses the format, so that the model answers as it likes.
func (g *generation) unapplied(c Config) bool {
	switch g.model.Kind {
	case KindNoGrammar:
		return true
	case KindParser:
		return g.endpoint == "chat" && !g.thinks() && !c.since(0, 21, 1)
	}
	return false
}

// route puts a value where the server would: into thinking, or nowhere.
func (g *generation) route(thinking, content string) (string, string) {
	switch {
	case !g.structured():
	case g.model.Kind == KindHarmony && (g.endpoint == "generate" || g.think != nil && g.think.IsBool() && !g.think.Bool()):
		return thinking, ""
	case g.endpoint == "generate" && g.thinks():
		return content, ""
	}
	return thinking, content
}

// schema is the format as it reaches the grammar.
func (g *generation) schema(c Config) json.RawMessage {
	if g.model.Kind != KindNative || !c.modern() {
		return g.format
	}
	var v any
	if json.Unmarshal(g.format, &v) != nil {
		return g.format
	}
	sorted, err := json.Marshal(v) // through a map, as Ollama does there
	if err != nil {
		return g.format
	}
	return sorted
}

// stopped cuts an answer at the first of the stop strings. A request's replace those of the model.
func (g *generation) stopped(text string, stop []string) string {
	for _, s := range stop {
		if s != "" {
			text, _, _ = strings.Cut(text, s)
		}
	}
	return text
}

// since says whether the rules of a version hold.
func (c Config) since(major, minor, patch int) bool {
	var a, b, p int
	if n, _ := fmt.Sscanf(c.Version, "%d.%d.%d", &a, &b, &p); n < 2 {
		return false
	}
	switch {
	case a != major:
		return a > major
	case b != minor:
		return b > minor
	default:
		return p >= patch
	}
}
