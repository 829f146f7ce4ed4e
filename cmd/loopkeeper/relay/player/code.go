package player

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/relay"
	"github.com/loopkeeper/loopkeeper/worker/ollama/ollamatest"
)

// planned is what every plan's prompt has.
const planned = "## Parts of the goal"

// step of a plan as a model writes it.
type step struct {
	N           int      `json:"a_n"`
	Parts       []string `json:"b_parts"`
	Instruction string   `json:"c_instruction"`
	Worker      string   `json:"d_worker"`
	Reads       []string `json:"e_reads"`
	Writes      []string `json:"f_writes"`
	After       []int    `json:"g_after"`
	DoneWhen    []string `json:"h_done_when"`
}

var inPlace = regexp.MustCompile(`(w\d+) answers in my place`)

// plan is the right plan as far as it can be known, or one that breaks a rule.
func (p *Player) plan(a ollamatest.Asked, time int) string {
	_, goal, _ := strings.Cut(a.Prompt, "## Goal\n")
	goal, _, _ = strings.Cut(goal, "\n\n")
	steps := []step{}
	add := func(s relay.Step) {
		steps = append(steps, step{N: len(steps) + 1, Parts: []string{"g1"}, Instruction: s.Instruction, Worker: s.Worker, Reads: s.Reads, Writes: s.Writes,
			After: []int{}, DoneWhen: []string{"A number was said and written down."}})
	}
	t, known := p.tasks[goal]
	if known {

		for _, s := range t.Gold() {
			if t.Workers[s.Worker].Refuses == "" && !strings.Contains(goal, s.Worker) && s.Worker != relay.Named {
				continue // who answers in the place of another is not known yet
			}
			if !strings.Contains(a.Prompt, "\n- "+s.Worker+": ") {
				s.Worker = relay.Named
			}
			add(s)
		}
	} else {
		for i, m := range inPlace.FindAllStringSubmatch(a.Prompt, -1) {
			if !strings.Contains(a.Prompt, m[1]+", asked with") {
				add(relay.Step{Instruction: fmt.Sprintf("Ask %s with the argument %q.", m[1], relay.Start), Worker: m[1], Reads: []string{}, Writes: []string{fmt.Sprintf("m%d", i+1)}})
			}
		}
	}
	if len(steps) > 0 && p.strikes(p.rates.BadPlan, "plan", time, a.Prompt) {
		spoil(steps, mix("spoil", time, a.Prompt)%3)
	}
	return encode(map[string]any{"a_note": "Each worker is asked once.", "b_outcome": "plan", "c_questions": []string{}, "d_steps": steps})
}

// spoil breaks a rule of plans.
func spoil(steps []step, how uint64) {
	first, last := &steps[0], &steps[len(steps)-1]
	switch how {
	case 0:
		last.Reads = append(last.Reads, "nowhere")
		last.Instruction += " Read nowhere, too."
	case 1:
		first.After = append(first.After, last.N)
		last.After = append(last.After, first.N)
	default:
		last.N += 2
	}
}

var (
	instructed = regexp.MustCompile(`(?m)^Instruction: (.*)$`)
	assigned   = regexp.MustCompile(`(?m)^(\S+) = (\d{6})$`)
	chosen     = regexp.MustCompile(`^If (\S+) is even ask (\w+), else ask (\w+)\.`)
	quoted     = regexp.MustCompile(`with the argument "(\w+)"`)
	argument   = regexp.MustCompile(`The argument is (\S+?)(?:, a plus sign and (\S+?))?\.$`)
	askedWhom  = regexp.MustCompile(`Ask (w\d+)`)
)

// fillIn is the argument of a step, and whom it asks where that has to be chosen.
func (p *Player) fillIn(a ollamatest.Asked, time int) string {
	values := map[string]string{}
	for _, m := range assigned.FindAllStringSubmatch(a.Prompt, -1) {
		values[m[1]] = m[2]
	}
	text := found(instructed, a.Prompt, 1)
	filled := map[string]string{"z_argument": found(quoted, text, 1)}
	if m := argument.FindStringSubmatch(text); m != nil {
		filled["z_argument"] = values[m[1]]
		if m[2] != "" {
			filled["z_argument"] += "+" + values[m[2]]
		}
	}
	if strings.Contains(string(a.Format), `"worker"`) {
		filled["worker"] = found(askedWhom, text, 1)
		if m := chosen.FindStringSubmatch(text); m != nil {
			filled["worker"] = m[3]
			if n := values[m[1]]; n != "" && strings.ContainsAny(n[len(n)-1:], "02468") {
				filled["worker"] = m[2]
			}
		}
	}
	if p.strikes(p.rates.Argument, "argument", time, a.Prompt) {
		filled["z_argument"] = fmt.Sprint(invented(time, a.Prompt))
	}
	return encode(filled)
}

func found(pattern *regexp.Regexp, text string, group int) string {
	if m := pattern.FindStringSubmatch(text); m != nil {
		return m[group]
	}
	return ""
}

func encode(value any) string {
	raw, err := json.Marshal(value)
	if err != nil { // cannot be: texts and numbers
		return "{}"
	}
	return string(raw)
}
