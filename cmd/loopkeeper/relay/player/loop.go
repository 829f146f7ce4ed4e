package player

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/ollama/ollama/api"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/relay"
	"github.com/loopkeeper/loopkeeper/worker/ollama/ollamatest"
)

// loop is what a talk shows of a task, and what the player makes of it. All draws of a talk rest on one seed, so that what is dropped
// stays dropped.
type loop struct {
	p       *Player
	t       relay.Task
	seed    int
	heard   map[relay.Call]int // number; 0 for an answer without one
	answers map[relay.Call]int // how often it was answered, by a number or by a refusal
	calls   []relay.Call       // what the player asks for each required call
}

var saysNumber = regexp.MustCompile(`My number is (\d{6})`)

// listen reads a talk. Turns have the seeds that follow each other.
func (p *Player) listen(t relay.Task, a ollamatest.Asked) *loop {
	l := &loop{p: p, t: t, seed: a.Seed - len(a.Messages), heard: map[relay.Call]int{}, answers: map[relay.Call]int{}}
	var open []relay.Call
	for _, m := range a.Messages {
		for _, c := range m.ToolCalls {
			args := c.Function.Arguments.ToMap()
			open = append(open, relay.Call{Worker: fmt.Sprint(args["worker"]), Arg: fmt.Sprint(args["arg"])})
		}
		if m.Role != "tool" || len(open) == 0 {
			continue
		}
		call := open[0]
		open = open[1:]
		if !strings.Contains(m.Content, "busy") {
			l.answers[call]++
		}
		if n := saysNumber.FindStringSubmatch(m.Content); n != nil {
			l.heard[call], _ = strconv.Atoi(n[1])
		}
	}
	for i := range t.Required {
		l.calls = append(l.calls, l.call(i))
	}
	return l
}

// dropped says whether a call is never made; who answers in the place of another is known only from that one.
func (l *loop) dropped(i int) bool {
	if i > 0 && l.t.Workers[l.t.Required[i-1].Worker].Refuses == l.t.Required[i].Worker {
		return l.dropped(i - 1)
	}
	return l.p.strikes(l.p.rates.Drop, "drop", l.seed, i)
}

// call is what the player asks for a required call: made of the numbers that it heard from earlier ones, and of the last one where one
// is missing.
func (l *loop) call(i int) relay.Call {
	r := l.t.Required[i]
	if len(r.From) == 0 {
		return r.Call
	}
	var args []string
	for _, from := range r.From {
		arg := relay.Start
		for k := range i {
			n := l.heard[l.calls[k]]
			if n != 0 {
				arg = fmt.Sprint(n)
			}
			if n != 0 && l.t.Required[k].Worker == from {
				break
			}
		}
		args = append(args, arg)
	}
	return relay.Call{Worker: r.Worker, Arg: strings.Join(args, "+")}
}

// next is the next call of a tool.
func (l *loop) next() api.ToolCall {
	for i := range l.t.Required {
		if l.dropped(i) {
			continue
		}
		wanted := 1
		if l.p.strikes(l.p.rates.Duplicate, "duplicate", l.seed, i) {
			wanted = 2
		}
		if c := l.calls[i]; l.answers[c] < wanted {
			return use("ask", "worker", c.Worker, "arg", c.Arg)
		}
	}
	return use("finish", "report", l.report())
}

func (l *loop) report() string {
	report := map[string]int{}
	for i, r := range l.t.Required {
		name := r.Worker
		if r.Account != "" {
			name = r.Account
		}
		if n := l.heard[l.calls[i]]; n != 0 && !l.dropped(i) {
			report[name] = n
		}
		if l.p.strikes(l.p.rates.Invent, "invent", l.seed, i) {
			report[name] = invented(l.seed, i)
		}
	}
	var lines []string
	for name, n := range report {
		lines = append(lines, fmt.Sprintf("%s: %d", name, n))
	}
	return strings.Join(lines, "\n")
}

// use is a call of a tool; args are names and values.
func use(tool string, args ...string) api.ToolCall {
	values := api.NewToolCallFunctionArguments()
	for i := 0; i < len(args); i += 2 {
		values.Set(args[i], args[i+1])
	}
	return api.ToolCall{Function: api.ToolCallFunction{Name: tool, Arguments: values}}
}
