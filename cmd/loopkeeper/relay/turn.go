package relay

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ollama/ollama/api"
)

// tools are what a loop in the model has.
var tools = api.Tools{
	tool("ask", "Ask a worker. Its answer comes back.", []string{"worker", "arg"}, map[string]string{
		"worker": "name of the worker, such as w1", "arg": "the argument: a word or a number"}),
	tool("finish", "End the task with the report.", []string{"report"}, map[string]string{
		"report": "one line for each number, as in w1: 123456; the name is that of a worker, or of an account where the task asks for accounts"}),
}

func tool(name, about string, required []string, params map[string]string) api.Tool {
	p := api.NewToolPropertiesMap()
	for _, key := range required {
		p.Set(key, api.ToolProperty{Type: api.PropertyType{"string"}, Description: params[key]})
	}
	return api.Tool{Type: "function", Function: api.ToolFunction{Name: name, Description: about,
		Parameters: api.ToolFunctionParameters{Type: "object", Required: required, Properties: p}}}
}

var (
	thoughts = regexp.MustCompile(`(?s)<think(?:ing)?>.*?</think(?:ing)?>`)
	fences   = regexp.MustCompile("(?m)^```[a-z_]*\\s*$")
	printed  = regexp.MustCompile(`(?i)\b(?:ask|finish)\s*\(|<tool_call>|<function=`)
)

// classify says what a model did with a turn.
func classify(t Task, m api.Message) Turn {
	for _, c := range m.ToolCalls {
		if c.Function.Name == "finish" {
			return Finished
		}
	}
	content := strings.TrimSpace(thoughts.ReplaceAllString(m.Content, ""))
	switch {
	case len(m.ToolCalls) > 0:
		return Called
	case content == "":
		return Nothing
	case printed.MatchString(content) || namesWorker(t, strings.TrimSpace(fences.ReplaceAllString(content, ""))):
		return Printed
	}
	return Talked
}

// namesWorker says whether a text is an object, or a list of such, with the name of a worker or of a tool among its values.
func namesWorker(t Task, text string) bool {
	var value any
	if json.Unmarshal([]byte(text), &value) != nil {
		return false
	}
	var inside func(v any) bool
	inside = func(v any) bool {
		switch v := v.(type) {
		case string:
			_, worker := t.Workers[v]
			return worker || v == "ask" || v == "finish"
		case []any:
			return slices.ContainsFunc(v, inside)
		case map[string]any:
			for _, e := range v {
				if inside(e) {
					return true
				}
			}
		}
		return false
	}
	switch value.(type) {
	case map[string]any, []any:
		return inside(value)
	}
	return false
}

var words = regexp.MustCompile(`[A-Za-z]+\d*|\d+`)

// readReport finds names of workers or accounts, each with the six digits that follow it before the next name.
func readReport(t Task, text string) map[string]int {
	out := map[string]int{}
	accounts := t.accounts()
	name := ""
	for _, w := range words.FindAllString(text, -1) {
		lower := strings.ToLower(w)
		_, worker := t.Workers[lower]
		switch n, err := strconv.Atoi(w); {
		case slices.Contains(accounts, lower), worker && accounts == nil:
			name = lower
		case err == nil && len(w) == 6 && name != "":
			out[name], name = n, ""
		}
	}
	return out
}
