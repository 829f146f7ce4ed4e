package ui

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Output is a key result for people: its name, what it rests on, and its value. Inferred sources are marked: nobody could see
// where the value comes from.
func Output(name string, value any, sources []string, inferred bool) string {
	head := Line(name)
	if len(sources) > 0 {
		head += "  (from " + stepRanges(sources)
		if inferred {
			head += ", inferred"
		}
		head += ")"
	}
	return head + "\n" + indented(Value(value)) + "\n"
}

// stepRanges names steps, three and more that follow each other by the first and the last: "steps 0-89, 91".
func stepRanges(steps []string) string {
	var out []string
	for i := 0; i < len(steps); {
		last := i
		for last+1 < len(steps) && follows(steps[last], steps[last+1]) {
			last++
		}
		if last-i < 2 {
			last = i
			out = append(out, steps[i])
		} else {
			out = append(out, steps[i]+"-"+steps[last])
		}
		i = last + 1
	}
	if len(steps) == 1 {
		return "step " + out[0]
	}
	return "steps " + strings.Join(out, ", ")
}

func follows(step, next string) bool {
	n, err := strconv.Atoi(step)
	m, also := strconv.Atoi(next)
	return err == nil && also == nil && m == n+1
}

// Value lays a JSON value out for people: texts as they are, lists with dashes, objects by key. A reference whose text is
// known is that text.
func Value(v any) string {
	switch v := v.(type) {
	case string:
		return Text(v)
	case []any:
		if len(v) == 0 {
			return "none"
		}
		var lines []string
		for _, x := range v {
			lines = append(lines, "- "+hanging(Value(x)))
		}
		return strings.Join(lines, "\n")
	case map[string]any:
		return object(v)
	case nil:
		return "-"
	default:
		return fmt.Sprint(v)
	}
}

func object(v map[string]any) string {
	if text, ok := v["text"].(string); ok && v["ref"] != nil {
		return Text(text)
	}
	if sha, ok := v["ref"].(string); ok && len(sha) == 64 {
		return fmt.Sprintf("%v (%s bytes, artifact %.12s)", v["name"], number(v["bytes"]), sha)
	}
	if text := concluded(v); text != "" {
		return text
	}
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(v)) {
		text := Value(v[key])
		if text == "" { // such as who answered, where nobody did
			text = "-"
		}
		if strings.Contains(text, "\n") {
			lines = append(lines, key+":\n"+indented(text))
		} else {
			lines = append(lines, key+": "+text)
		}
	}
	return strings.Join(lines, "\n")
}

func number(v any) string {
	if n, ok := v.(json.Number); ok {
		return n.String()
	}
	return fmt.Sprint(v)
}

// hanging indents all lines but the first.
func hanging(text string) string { return strings.ReplaceAll(text, "\n", "\n  ") }

// Excerpt keeps the first lines of a text, each at a readable length, and says how much is missing.
func Excerpt(s string, lines int) string {
	all := strings.Split(strings.TrimSpace(s), "\n")
	var out []string
	for _, l := range all[:min(len(all), lines)] {
		out = append(out, "  "+ansi.Truncate(l, 300, "..."))
	}
	if more := len(all) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("  (%d more lines)", more))
	}
	return strings.Join(out, "\n")
}

// Plan is a plan as a planner made it: its steps in order, each with what it is for, what it goes over and what it waits for. A long one
// goes on under its beginning. Instead of steps there may be questions, or the reason why there can be none.
func Plan(style Style, value []byte) string {
	var p struct {
		Outcome   string   `json:"outcome"`
		Note      string   `json:"note"`
		Questions []string `json:"questions"`
		Steps     []struct {
			ID          string   `json:"id"`
			Instruction string   `json:"instruction"`
			Each        string   `json:"each"`
			DependsOn   []string `json:"depends_on"`
		} `json:"steps"`
	}
	if json.Unmarshal(value, &p) != nil {
		return ""
	}
	switch p.Outcome {
	case "need_info":
		return "no plan yet, the planner asks:\n  " + Line(strings.Join(p.Questions, " / "))
	case "impossible":
		return "no plan, the planner says that it is impossible: " + Line(p.Note)
	}
	lines := []string{fmt.Sprintf("plan of %s:", Plural(int64(len(p.Steps)), "step", "steps"))}
	for _, s := range p.Steps {
		after := ""
		if len(s.DependsOn) > 0 {
			after = " (after " + strings.Join(s.DependsOn, ", ") + ")"
		}
		if s.Each != "" {
			after = " (for each of " + s.Each + ")" + after
		}
		lead := "  " + Line(s.ID) + "  "
		text, indent := Line(s.Instruction)+Line(after), ansi.StringWidth(lead)
		if room := style.Width - indent; room > leastCell && ansi.StringWidth(text) > room {
			text = strings.ReplaceAll(wrapped(text, room), "\n", "\n"+strings.Repeat(" ", indent))
		}
		lines = append(lines, lead+text)
	}
	return strings.Join(lines, "\n")
}
