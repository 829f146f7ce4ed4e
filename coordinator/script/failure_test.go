package script

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"
)

// failed runs a script that fails before it asks for anything.
func failed(t *testing.T, host Host, text string) *Failure {
	t.Helper()
	r := started(t, host, text, `{}`)
	if r.last.End == nil || r.last.End.Failure == nil {
		t.Fatalf("the script did not fail: %+v", r.last)
	}
	return r.last.End.Failure
}

func TestFailuresNameTheUsersOwnLine(t *testing.T) {
	cases := map[string]struct{ program, want string }{
		"throw": {"export default async function main(input: { a?: number }) {\n  const n: number = 1;\n  throw new RangeError(`bad ${n}`);\n}",
			"flow.ts:3:9: RangeError: bad 1"},
		"in a callback": {"export default () => [1].map((x: number) => {\n  return (x as any).y.z;\n})",
			"flow.ts:2:23: TypeError: Cannot read property 'z' of undefined"},
		"after an await": {"export default async () => {\n  await null;\n\n  (undefined as any).x;\n}",
			"flow.ts:4:22: TypeError: Cannot read property 'x' of undefined"},
		"at load": {"const x: any = undefined;\nx.y = 1;\nexport default () => 1",
			"flow.ts:2:3: TypeError: Cannot convert undefined or null to object"},
		"a thrown text": {"export default async () => { throw 'plain' }",
			"flow.ts: uncaught plain"},
		"unhandled": {"export default async () => {\n  (async () => { throw new Error('lost') })();\n  return 1\n}",
			"flow.ts:2:24: Error: lost"},
		"a call before the run": {"import { generate } from 'loopkeeper';\ngenerate({ model: 'm', prompt: 'p' });\nexport default () => 1",
			"flow.ts:2:1: Error: generate can only be called while the workflow runs, not while its file loads"},
		"no default": {"export const params = {}",
			"flow.ts: Error: flow.ts has no default function; a workflow is `export default async function name(input) { … }`"},
		"timer": {"export default async () => {\n  setTimeout(() => {}, 1);\n}",
			"flow.ts:2:3: TypeError: setTimeout is not available in a workflow: there are no timers; what takes time is a step"},
		"recursion": {"function deep(n: number): number {\n  return deep(n + 1) + 1;\n}\nexport default () => deep(0)",
			"flow.ts:2:10: functions call each other more than 4000 deep"},
		"promise in a request": {"import { output } from 'loopkeeper';\nexport default async () => {\n  output('x', { a: [Promise.resolve(1)] });\n}",
			"flow.ts:3:3: TypeError: output.value.a[0] is a promise; await it first; only JSON values can leave a workflow"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { want(t, failed(t, NewHost(Limits{}), c.program).Error(), c.want) })
	}
}

func TestAFailedStepNamesTheLineThatCalledIt(t *testing.T) {
	onBoth(t, func(t *testing.T, host Host) {
		r := started(t, host, `import { generate, all } from "loopkeeper";
const ask = (prompt: string) =>
  generate({ model: "m", prompt });
export default async () => {
  await all({ one: () => ask("1"), two: () => ask("2") });
}`, `{}`)
		r.value(0, `"x"`)
		f := r.fail(1, "empty_turn", "the answer is empty").End.Failure
		want(t, f.Error(), `flow.ts:3:3: Error: 1 of 2 branches failed: two: the answer is empty`)
		if !strings.Contains(f.Stack, "(flow.ts:3:3)") || strings.Contains(f.Stack, "loopkeeper:") {
			t.Errorf("stack:\n%s", f.Stack)
		}
	})
}

func TestADeadlockIsToldAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, host Host) {
		f := failed(t, host, `export default async () => { await new Promise(() => {}); }`)
		if f.Kind != Deadlock || !strings.Contains(f.Message, "waits for something that can never happen") {
			t.Errorf("failure = %+v", f)
		}
	})
}

func TestARejectionHandledLaterIsHandled(t *testing.T) {
	r := started(t, NewHost(Limits{}), `import { generate } from "loopkeeper";
export default async () => {
  const a = generate({ model: "m", prompt: "a" }), b = generate({ model: "m", prompt: "b" });
  await a;
  try { await b } catch (e) { return e.kind + " " + e.step }
}`, `{}`)
	r.fail(1, "deadline", "late")
	if y := r.value(0, `"x"`); y.End == nil || string(y.End.Value) != `"deadline 1"` {
		t.Errorf("end = %+v", y.End)
	}
}

func TestWhatDoesNotBundleIsASyntaxFailure(t *testing.T) {
	files := fstest.MapFS{
		"flows/syntax.ts":  {Data: []byte("export default () => {\n  const = 1;\n}")},
		"flows/package.ts": {Data: []byte("import x from 'lodash';\nexport default () => x")},
		"flows/node.ts":    {Data: []byte("const fs = require('fs');\nexport default () => fs")},
		"flows/missing.ts": {Data: []byte("import { x } from './nothing';\nexport default () => x")},
		"flows/export.ts":  {Data: []byte("import { generat } from 'loopkeeper';\nexport default generat")},
		"flows/deep.ts":    {Data: []byte("import { y } from '../lib/broken.js';\nexport default y")},
		"lib/broken.js":    {Data: []byte("export const y = 1;\n\n   let z = ;")},
		"flows/dynamic.ts": {Data: []byte("export default () => import('fs')")},
		"flows/await.ts":   {Data: []byte("await 1; export default () => 1")},
		"flows/ext.css":    {Data: []byte("")},
		"flows/css.ts":     {Data: []byte("import './ext.css'; export default () => 1")},
		"flows/sneaky.ts":  {Data: []byte("import { start } from 'loopkeeper:runtime'; export default start")},
	}
	cases := map[string]string{
		"syntax":  `flows/syntax.ts:2:9: Expected identifier but found "="`,
		"package": `flows/package.ts:1:15: cannot import "lodash"`,
		"node":    `flows/node.ts:1:20: cannot import "fs"`,
		"missing": `flows/missing.ts:1:19: cannot import "./nothing": there is no flows/nothing with an ending`,
		"export":  `flows/export.ts:1:10: No matching export in "loopkeeper:index.ts" for import "generat"`,
		"deep":    `lib/broken.js:3:12: Unexpected ";"`,
		"dynamic": `flows/dynamic.ts:1:29: cannot import "fs"`,
		"await":   `flows/await.ts:1:1: Top-level await is not available`,
		"css":     `flows/css.ts:1:8: cannot import "./ext.css"`,
		"sneaky":  `flows/sneaky.ts:1:23: cannot import "loopkeeper:runtime"`,
	}
	for name, want := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := BundleFS(files, "flows/"+name+".ts")
			var f *Failure
			if !errors.As(err, &f) || f.Kind != Syntax || !strings.HasPrefix(f.Error(), want) {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

func TestLocalImportsAndJSONAreBundled(t *testing.T) {
	files := fstest.MapFS{
		"a/main.js":       {Data: []byte("import rules from './rules.json';\nimport { both } from '../shared';\nexport default () => both(rules)")},
		"a/rules.json":    {Data: []byte(`{"n": [1, 2]}`)},
		"shared/index.ts": {Data: []byte("import { add } from './add.ts';\nexport const both = (r: { n: number[] }) => add(r.n[0], r.n[1]);")},
		"shared/add.ts":   {Data: []byte("export function add(a: number, b: number) {\n  if (b > 1) throw new Error('too much');\n  return a + b;\n}")},
	}
	p, err := BundleFS(files, "a/main.js")
	if err != nil {
		t.Fatal(err)
	}
	s, y, err := NewHost(Limits{}).Start(context.Background(), Start{Program: p})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	want(t, y.End.Failure.Error(), "shared/add.ts:2:20: Error: too much")
}
