package script

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Each of these would take the coordinator with it if it ran inside. The limits are small so that the tests are quick.
func TestAChildDiesAloneAndSaysOfWhat(t *testing.T) {
	loops, eats := Limits{CPU: 300 * time.Millisecond}, Limits{CPU: 20 * time.Second, Memory: 64 << 20}
	cases := map[string]struct {
		limits  Limits
		program string
		kind    FailureKind
		place   string
	}{
		"a loop for ever":        {loops, "let n = 0;\nexport default () => {\n  for (;;) n = Math.abs(n);\n}", CPULimit, "flow.ts:3:"},
		"a loop in a callback":   {loops, "export default async () => {\n  await null;\n  [1].forEach((n) => {\n    while (true) n += Math.abs(n);\n  });\n}", CPULimit, "flow.ts:4:"},
		"a loop that catches":    {loops, "export default () => {\n  for (;;) try { for (;;) {} } catch {} finally { continue }\n}", CPULimit, "flow.ts:"},
		"a loop of promises":     {loops, "const again = async (): Promise<void> => { await null; return again(); };\nexport default () => again()", CPULimit, "flow.ts"},
		"a regular expression":   {loops, "export default () => /^((a+)+)\\1$/.test('a'.repeat(41) + '!')", CPULimit, "flow.ts: "},
		"a long text":            {eats, "export default () => 'x'.repeat(2 ** 30).length", Memory, "flow.ts: "},
		"a growing array":        {eats, "const kept: number[][] = [];\nexport default () => {\n  for (;;) kept.push(new Array(1000).fill(1));\n}", Memory, "flow.ts:3:"},
		"a JSON text":            {eats, "const wide = new Array(1000).fill('x'.repeat(1000));\nexport default () => JSON.stringify(new Array(1000).fill(wide)).length", Memory, "flow.ts"},
		"recursion":              {eats, "const deep = (n: number): number => 1 + deep(n);\nexport default () => deep(1)", Threw, "flow.ts:1:41:"},
		"recursion in built-ins": {eats, "const deep = (): any => [1].map(deep);\nexport default deep", Threw, "flow.ts:1:29:"},
		"a text beyond reason":   {eats, "export default () => 'x'.repeat(2 ** 45).length", "", "flow.ts: "},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			host := NewChildHost(ChildOptions{Command: []string{os.Args[0], childArgument}, Limits: c.limits})
			f := failedProgram(t, host, bundled(t, c.program))
			if c.kind != "" && f.Kind != c.kind || !strings.HasPrefix(f.Error(), c.place) {
				t.Errorf("failure = %s: %s\n%s", f.Kind, f, f.Stack)
			}
		})
	}
}

func TestALoopInThisProcessIsInterrupted(t *testing.T) {
	limit := 500 * time.Millisecond // far beyond what it takes to get to the loop, which counts too, on a busy machine
	f := failed(t, NewHost(Limits{CPU: limit}), "let n = 0;\nexport default () => {\n  for (;;) n = Math.abs(n);\n}")
	if f.Kind != CPULimit || f.Line != 3 {
		t.Errorf("failure = %+v", f)
	}
}

// A person sees the clock: where the limit took longer by it, the message says so. Where no line is known, none is promised.
func TestWhatSpunSaysLimitTimeAndPlace(t *testing.T) {
	v, err := newVM(1, anchor)
	if err != nil {
		t.Fatal(err)
	}
	w := &watchdog{limits: Limits{CPU: 10 * time.Second, Memory: 1 << 40}}
	err = w.guard(v, func() error {
		w.began = w.began.Add(-125 * time.Second)
		w.check(0, w.cpuBefore+11*time.Second)
		_, err := v.js.RunString("for (;;) {}")
		return v.failure(err)
	})
	var f *Failure
	if !errors.As(err, &f) || !strings.HasPrefix(f.Message, "the script computed for more than 10s of processor time, which took 2m5") ||
		!strings.Contains(f.Message, "script.cpu") || !strings.Contains(f.Message, "the line is where it was stopped") {
		t.Errorf("%v", err)
	}
	if m := cpuFailure(10*time.Second, 11*time.Second).Message; strings.Contains(m, "took") {
		t.Errorf("on an idle machine: %s", m)
	}
	host := NewChildHost(ChildOptions{Command: []string{os.Args[0], childArgument}, Limits: Limits{CPU: 300 * time.Millisecond}})
	if f := failedProgram(t, host, bundled(t, "export default () => /^((a+)+)\\1$/.test('a'.repeat(41) + '!')")); f.Line != 0 || !strings.Contains(f.Message, "no line is known") {
		t.Errorf("inside a regular expression: %s", f)
	}
}

// The CPU limit is for one step, not for the sum, and what stopped one step does not stop the next.
func TestTheCPULimitStartsAnewAtEachStep(t *testing.T) {
	v, err := newVM(1, anchor)
	if err != nil {
		t.Fatal(err)
	}
	w := &watchdog{limits: Limits{CPU: time.Hour, Memory: 1 << 40}}
	step := func(cpu time.Duration) error {
		return w.guard(v, func() error {
			w.check(0, w.cpuBefore+cpu)
			_, err := v.js.RunString("1")
			return v.failure(err)
		})
	}
	var f *Failure
	for i, cpu := range []time.Duration{59, 59, 61, 59} {
		if err := step(cpu * time.Minute); errors.As(err, &f) != (cpu > 60) || (cpu > 60 && f.Kind != CPULimit) {
			t.Errorf("step %d of %d minutes gave %v", i, cpu, err)
		}
	}
	w.check(1<<50, 1<<60) // between steps there is nothing to stop
	if err := step(0); err != nil {
		t.Errorf("a check between steps stopped the next: %v", err)
	}
}

// What stopped a script is noted once, before it is interrupted: what is exceeded while it ends is not to blame.
func TestTheFirstReasonIsTheReason(t *testing.T) {
	v, err := newVM(1, anchor)
	if err != nil {
		t.Fatal(err)
	}
	w := &watchdog{limits: Limits{CPU: time.Minute, Memory: 64 << 20}}
	err = w.guard(v, func() error {
		w.check(65<<20, 0)
		w.check(0, w.cpuBefore+time.Hour)
		_, err := v.js.RunString("for (;;) {}")
		return v.failure(err)
	})
	var f *Failure
	if !errors.As(err, &f) || f.Kind != Memory || !strings.Contains(f.Message, "64 MiB") || !strings.Contains(f.Message, "script.memory_bytes") || w.code != exitMemory {
		t.Errorf("failure = %v, exit code %d", err, w.code)
	}
}

// A child that does not answer may be slow, or its machine was asleep: its host tries again, and no line is blamed.
func TestALateChildIsNotBlamed(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if f := exitFailure(cmd.ProcessState, true, "", Limits{}.withDefaults()); f.Kind != Crashed || f.Line != 0 || !strings.Contains(f.Message, "asleep") {
		t.Errorf("failure = %+v", f)
	}
}

func TestCancellingStopsALoopAtOnce(t *testing.T) {
	for name, host := range hosts(Limits{CPU: time.Hour}) {
		t.Run(name, func(t *testing.T) {
			s, _, err := host.Start(context.Background(), Start{Program: bundled(t,
				`import { read } from "loopkeeper"; export default async () => { await read("x"); for (;;) {} }`)})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			defer cancel()
			if _, err = s.Deliver(ctx, Delivery{Value: json.RawMessage(`"x"`)}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("deliver gave %v", err)
			}
			if _, err = s.Deliver(context.Background(), Delivery{}); !errors.Is(err, errClosed) {
				t.Errorf("a session that was given up answered %v", err)
			}
		})
	}
}

func TestCloseFromAnotherGoroutineEndsAStep(t *testing.T) {
	host := NewChildHost(ChildOptions{Command: []string{os.Args[0], childArgument}, Limits: Limits{CPU: time.Hour}})
	s, _, err := host.Start(context.Background(), Start{Program: bundled(t,
		`import { read } from "loopkeeper"; export default async () => { await read("x"); for (;;) {} }`)})
	if err != nil {
		t.Fatal(err)
	}
	result := make(chan error)
	go func() {
		_, err := s.Deliver(context.Background(), Delivery{Value: json.RawMessage(`"x"`)})
		result <- err
	}()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-result; !errors.Is(err, errClosed) {
		t.Errorf("deliver gave %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("a second close gave %v", err)
	}
}

// A child whose parent is gone sees its stdin end, and goes too, even in the middle of a loop.
func TestAChildEndsWithItsStdin(t *testing.T) {
	var input bytes.Buffer
	limits := Limits{CPU: time.Hour, Memory: 1 << 30}
	start := Start{Program: bundled(t, `export default () => { for (;;) {} }`)}
	if err := writeMessage(&input, question{Limits: &limits, Start: &start}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], childArgument)
	cmd.Stdin = &input
	if err := cmd.Run(); err != nil {
		t.Errorf("the child ended with %v", err)
	}
}

// An oversized result is told once and for good, as the failure of its step: the script never holds it, and goes on.
func TestAResultTooLargeNeverEntersTheScript(t *testing.T) {
	huge := `"` + strings.Repeat("x", MaxValue) + `"`
	onBoth(t, func(t *testing.T, host Host) {
		r := started(t, host, `import { generate, read } from "loopkeeper";
export default async () => {
  const kept = await generate({ model: "m", prompt: "p", schema: {}, check: () => true });
  try { return await read("x") } catch (e) { return [kept, e.kind, e.step, e.message] }
}`, `{}`)
		y := r.deliver(Delivery{Pos: 0, Check: true, Value: json.RawMessage(huge)})
		if len(y.Checks) != 1 || y.Checks[0].Failure == nil || y.Checks[0].Failure.Kind != "too_large" {
			t.Errorf("the check of a huge value gave %+v", y.Checks)
		}
		r.value(0, `"small"`)
		want(t, string(r.value(1, huge).End.Value), `["small","too_large",1,"the result of step 1 has 16.0 MiB, and a script is given at most 16 MiB; pass it on by reference, or ask for less"]`)
	})
}

func TestTooLargeARequestIsRefused(t *testing.T) {
	var out bytes.Buffer
	body := json.RawMessage(`"` + strings.Repeat("x", maxMessage) + `"`)
	if err := reply(&out, answer{Yield: &Yield{Requests: []Request{{Kind: "log", Body: body}}}}); err != nil {
		t.Fatal(err)
	}
	var a answer
	if err := readMessage(bufio.NewReader(&out), &a); err != nil || a.Yield.End.Failure.Kind != Memory {
		t.Errorf("answer = %+v, %v", a, err)
	}
}

// Ctrl-C on a terminal reaches the children too. They must leave the end to their parent.
func TestAChildLeavesSignalsToItsParent(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("left out: there are no such signals on Windows")
	}
	r := started(t, NewChildHost(ChildOptions{Command: []string{os.Args[0], childArgument}}),
		`import { read } from "loopkeeper"; export default () => read("x")`, `{}`)
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		if err := r.session.(*childSession).cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
	}
	if y := r.value(0, `"text"`); y.End == nil || string(y.End.Value) != `"text"` {
		t.Errorf("end = %+v", y.End)
	}
}

func TestAKilledChildIsACrash(t *testing.T) {
	r := started(t, NewChildHost(ChildOptions{Command: []string{os.Args[0], childArgument}}),
		`import { read } from "loopkeeper"; export default () => read("x")`, `{}`)
	if err := r.session.(*childSession).cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if f := r.value(0, `"text"`).End.Failure; f == nil || f.Kind != Crashed {
		t.Errorf("failure = %v", f)
	}
}

func TestACommandThatIsNoChildIsAnError(t *testing.T) {
	for _, command := range [][]string{nil, {"/nonexistent"}} {
		if _, _, err := NewChildHost(ChildOptions{Command: command}).Start(context.Background(), Start{}); err == nil {
			t.Errorf("command %q started", command)
		}
	}
	_, y, err := NewChildHost(ChildOptions{Command: []string{os.Args[0], "-test.run=^$"}}).Start(context.Background(), Start{})
	if err != nil || y.End == nil || y.End.Failure.Kind != Crashed {
		t.Errorf("a program that does not speak gave %+v, %v", y.End, err)
	}
}
