package engine

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
)

// A spawn whose input does not fit says so as a submission does, and what the workflow takes.
func TestASpawnsInputIsRefusedInTheWordsOfASubmission(t *testing.T) {
	child, err := script.BundleText("child.ts", `import { t } from "loopkeeper";
export const params = t.object({ name: t.string() });
export default async function child(input: any) { return input.name; }`)
	if err != nil {
		t.Fatal(err)
	}
	p := flow(t, `return await spawn({ workflow: "child", input: { name: 7 } }).catch((e: any) => e.message);`)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFarm(1), Options{Workflows: library{"child": child}.find})
		id := r.submit(p, nil)
		v := r.wait(id)
		if v.Status != run.Incomplete || len(v.Failures) != 1 {
			t.Fatalf("%s, %+v", v.Status, v.Failures)
		}
		f := v.Failures[0]
		if !strings.Contains(f.Message, "child: the input does not match the workflow's parameters: /name: got number, want string") || strings.Contains(f.Message, "schema.json") ||
			len(f.Next) != 1 || f.Next[0] != "loopkeeper run child --params" {
			t.Errorf("%q, next %q", f.Message, f.Next)
		}
	})
}
