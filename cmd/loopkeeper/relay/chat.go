package relay

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ollama/ollama/api"
)

// What a loop in the model is told. The goal of a task is the same text in all arms.
const (
	loopRules = "You do a task by asking workers. A worker is asked with the tool ask, and its answer comes back as the result of the tool. " +
		"You learn a number only by asking. When the task is done, call the tool finish with the report."
	planFirst = "First write down your plan: whom to ask, in which order, with which arguments. Call no tool yet."
	goAhead   = "Now carry the plan out with the tools."
	goldFirst = "Carry this plan out with the tools:\n"
	nudge     = "No tool was called. Go on with the tool ask, or end with the tool finish."
)

const (
	mostNudges = 2
	turnTokens = 1024 // of one turn at most
)

// mostTurns is where a loop is ended from outside.
func mostTurns(n int) int { return 3*n + 5 }

// talk is one loop that a model keeps.
type talk struct {
	job   job
	o     Options
	world *World
	said  []api.Message
	out   Outcome
}

// inModel lets a model keep the loop. An error is the server's, with what was done until then.
func inModel(ctx context.Context, j job, o Options) (Outcome, error) {
	k := &talk{job: j, o: o, world: NewWorld(j.task)}
	err := k.loop(ctx)
	k.out.Log = k.world.Log()
	return k.out, err
}

func (k *talk) loop(ctx context.Context) error {
	k.said = []api.Message{{Role: "system", Content: loopRules}}
	if err := k.begin(ctx); err != nil {
		return err
	}
	for range mostTurns(k.job.task.Size) {
		m, err := k.turn(ctx, tools)
		if err != nil {
			return err
		}
		turn := classify(k.job.task, m)
		k.out.Turns = append(k.out.Turns, turn)
		switch turn {
		case Called, Finished:
			if k.carryOut(m) {
				k.out.Ended = true
				return nil
			}
			continue
		}
		if k.out.Cost.Nudges == mostNudges {
			k.out.Ended, k.out.Report = true, readReport(k.job.task, m.Content)
			return nil
		}
		k.out.Cost.Nudges++
		k.said = append(k.said, api.Message{Role: "user", Content: nudge})
	}
	return nil
}

// begin gives the task, and the plan or the wish for one.
func (k *talk) begin(ctx context.Context) error {
	ask := func(text string) { k.said = append(k.said, api.Message{Role: "user", Content: text}) }
	if k.job.arm.gold() {
		ask(k.job.task.Goal + "\n\n" + goldFirst + inWords(k.job.task.Gold()))
		return nil
	}
	ask(k.job.task.Goal + "\n\n" + planFirst)
	_, err := k.turn(ctx, nil)
	ask(goAhead)
	return err
}

// turn lets the model say something, which becomes a part of the talk.
func (k *talk) turn(ctx context.Context, tools api.Tools) (api.Message, error) {
	stream := false
	request := &api.ChatRequest{Model: k.o.Model, Messages: k.said, Tools: tools, Stream: &stream, KeepAlive: &api.Duration{Duration: 10 * time.Minute},
		Options: map[string]any{"seed": k.job.seed(len(k.said)), "num_predict": turnTokens, "num_ctx": k.o.Context}}
	var m api.Message
	err := k.o.Client.Chat(ctx, request, func(r api.ChatResponse) error {
		m = r.Message
		c := &k.out.Cost
		c.Calls++
		c.PromptTokens += int64(r.PromptEvalCount)
		c.OutputTokens += int64(r.EvalCount)
		c.PrefillMS += float64(r.PromptEvalDuration) / float64(time.Millisecond)
		return nil
	})
	if err != nil {
		return m, fmt.Errorf("turn %d: %w", len(k.out.Turns)+1, err)
	}
	k.said = append(k.said, m)
	return m, nil
}

// carryOut makes the calls of a turn, in order, and says whether the last of them ended the loop.
func (k *talk) carryOut(m api.Message) (finished bool) {
	for _, c := range m.ToolCalls {
		args := c.Function.Arguments.ToMap()
		var reply string
		switch c.Function.Name {
		case "ask":
			reply = k.world.Ask(Call{Worker: text(args["worker"]), Arg: text(args["arg"])}).Reply
		case "finish":
			k.out.Report, finished, reply = readReport(k.job.task, text(args["report"])), true, "Done."
		default: // it counts as a call that nobody asked for
			reply = k.world.Ask(Call{Worker: "tool " + c.Function.Name}).Reply
		}
		k.said = append(k.said, api.Message{Role: "tool", ToolName: c.Function.Name, ToolCallID: c.ID, Content: reply})
	}
	return finished
}

// text of an argument: models write numbers as numbers, and reports as objects.
func text(arg any) string {
	if s, ok := arg.(string); ok {
		return s
	}
	if f, ok := arg.(float64); ok && f == float64(int64(f)) {
		return fmt.Sprint(int64(f))
	}
	raw, err := json.Marshal(arg)
	if err != nil || arg == nil {
		return ""
	}
	return string(raw)
}

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
